"""A row's tests become one ground truth, whatever layout and encoding its dataset has."""

import base64
import json
import pickle
import zlib

import pytest

import rewardkit
from rewardkit.preprocess.base import Dropped
from rewardkit.preprocess.code_rows import pickled_text
from rewardkit.preprocess.column_map import UnreadableValueError
from rewardkit.preprocess.load import load_dataset
from rewardkit.preprocess.mix import MixPart, mix
from rewardkit.programs.problem import read_problem
from rewardkit.row import read_rows
from tests.preprocess.rows import dropped, golds, infos, jsonl, write_card
from tests.tables import every

PARTS = {
    "question": "q",
    "tests": "t",
    "entry_point": "f",
    "site": "s",
    "checker": "c",
    "time_limit": "l",
    "solution": "code | python 3",
    "starter": "starter",
}
RAW = dict.fromkeys(("q", "t", "f", "s", "c", "l", "code", "starter"))
CASES = [{"input": "1", "output": "2"}, {"input": "3", "output": "4"}]
PAIRS = {"inputs": ["1", "3"], "outputs": ["2", "4"]}
CALLS = [{**case, "type": "function_call", "fn_name": "g"} for case in CASES]
FUNCTIONAL = [
    {**case, "testtype": "functional", "metadata": '{"func_name": "g"}'} for case in CASES
]


@pytest.fixture(scope="module")
def to_problem(tmp_path_factory):
    dataset = load_dataset(write_card(tmp_path_factory.mktemp("card"), PARTS, scorer="code"))
    return lambda **raw: dataset.to_problem({**RAW, "q": "Say it.", **raw})


def packed(value, *, as_pickle=False):
    text = json.dumps(value)
    data = pickle.dumps(text) if as_pickle else text.encode()
    return base64.b64encode(zlib.compress(data)).decode()


#: Tests as datasets have them, and as the ground truth has them.
LAYOUTS = [
    (PAIRS, PAIRS),
    (json.dumps(PAIRS), PAIRS),
    (json.dumps(json.dumps(PAIRS)), PAIRS),
    ({"input": ["1", "3"], "output": ["2", "4"]}, PAIRS),
    (CASES, PAIRS),
    (packed(CASES), PAIRS),
    (packed(CASES, as_pickle=True), PAIRS),
    ([{**case, "testtype": "stdin"} for case in CASES], PAIRS),
    (CALLS, {**PAIRS, "fn_name": "g"}),
    (FUNCTIONAL, {**PAIRS, "fn_name": "g"}),
    ({**PAIRS, "inputs": [["1", "\r\n3"], "a\r\nb"]}, {**PAIRS, "inputs": [["1", "\n3"], "a\nb"]}),
    (["assert g(1) == 2\r\n"], {"assert_case": ["assert g(1) == 2\n"]}),
    ('"""A text."""\r\ndef check(f):\r\n    assert f(1)', {"test": '"""A text."""\ndef check(f):\n    assert f(1)'}),
]  # fmt: skip


@every(("tests", "expected"), LAYOUTS)
def test_each_layout_and_encoding_becomes_the_same_ground_truth(to_problem, tests, expected):
    assert json.loads(to_problem(t=tests).ground_truth) == expected


UNREADABLE = [
    (None, "no tests"), ("", "no tests"), ("[]", "no tests"), (7, "no known layout"), ([7], "no known layout"),
    ({"inputs": ["1"]}, "cannot be run"), ({"inputs": ["1"], "outputs": []}, "cannot be run"),
    ({"inputs": ["1"], "outputs": [None]}, "an output is null"), ([*CALLS, *CASES], "several"),
    ([CALLS[0], {**CALLS[1], "fn_name": "h"}], "several"), ([{**CASES[0], "type": "function_call"}], "no function"),
    ("eJxyz", "not compressed"), (packed(CASES)[:-8], "not compressed"), ("[" * 5_000, "nested|cannot"),
    (base64.b64encode(zlib.compress(b"\x80\x04cos\nsystem\n(X\x02\x00\x00\x00idtR.")).decode(), "a pickle of something else"),
]  # fmt: skip


@every(("tests", "reason"), UNREADABLE)
def test_tests_that_cannot_be_read_drop_the_row_and_say_why(to_problem, tests, reason):
    result = to_problem(t=tests)
    if isinstance(result, Dropped):
        assert any(word in result.reason for word in reason.split("|")), result
    else:  # text that is not data is a test that is code, which cannot run
        assert read_problem(result.ground_truth).kind == "tests"


@every("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@every("text", ["", "é\n", "x" * 300, '[{"input": "\\ud800"}]', "\ud800"])
def test_a_pickled_text_is_read_as_pickle_reads_it(protocol, text):
    assert pickled_text(pickle.dumps(text, protocol)) == text


@every(
    "value",
    [["a"], 5, b"a", None, {"a": "b"}, Ellipsis, print, ("a", "b"), pytest.raises],
    ids=repr,
)
@every("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_anything_but_a_text_is_refused(protocol, value):
    """So is a text whose end is missing, and one with an instruction after it."""
    with pytest.raises(UnreadableValueError, match="something else"):
        pickled_text(pickle.dumps(value, protocol))
    for data in (pickle.dumps("text")[:-1], pickle.dumps("text")[:-1] + b"R.", b"\x80\x04."):
        with pytest.raises(UnreadableValueError):
            pickled_text(data)


def test_long_tests_are_compressed_and_too_long_ones_are_refused_with_their_size(
    to_problem, monkeypatch
):
    tests = {"inputs": ["1 " * 40_000], "outputs": ["2"]}
    gold = to_problem(t=tests).ground_truth
    assert list(json.loads(gold)) == ["zlib"]
    assert len(gold) < 1_000
    assert read_problem(gold).tests == (("1 " * 40_000, "2"),)
    monkeypatch.setattr("rewardkit.preprocess.code_rows.MAX_CHARACTERS", 79_000)
    for value in (tests, packed(tests)):
        result = to_problem(t=value)
        assert result.reason == "the tests are too long"
        assert "MB" in result.detail


@every(
    ("site", "outputs", "expected"),
    [
        ("codewars", [[1], [[2]]], [1, [2]]),
        ("https://www.codewars.com/kata/5", [[1], [2]], [1, 2]),
        ("geeksforgeeks", [[1], [2]], [1, 2]),
        ("codewars", [[1], [2, 3]], [[1], [2, 3]]),
        ("codewars", [1, [2]], [1, [2]]),
        ("leetcode", [[1], [2]], [[1], [2]]),
        ("", [[1], [2]], [[1], [2]]),
    ],
)
def test_results_are_unwrapped_only_where_the_source_wraps_them_and_all_are_wrapped(
    to_problem, site, outputs, expected
):
    tests = {"fn_name": "g", "inputs": [[1], [2]], "outputs": outputs}
    assert json.loads(to_problem(t=tests, s=site).ground_truth)["outputs"] == expected


def test_limits_checker_starter_and_name_come_from_their_columns(to_problem):
    row = to_problem(t=CASES, c="print(1)", l="2.5", starter="def g(x):", f="Solution().g")
    gold = json.loads(row.ground_truth)
    assert gold == {**PAIRS, "checker": "print(1)", "time_limit": 2.5}
    assert row.question == "Say it.\n\nThe program begins with:\n\n```python\ndef g(x):\n```"
    called = to_problem(t=[{**CASES[0], "type": "function_call"}], f="g")
    assert called.question == "Say it.\n\nThe function is called `g`."
    assert to_problem(t=CASES, l="2 s").reason == "a limit is not a number"


@every(
    ("solutions", "chosen"),
    [
        (["print 1", "print(1)", "print(2)"], "print(1)"),
        ('["x = raw_input()", "x = input()"]', "x = input()"),
        ("Look:\n```python\nprint(1)\n```\n", "print(1)\n"),
        (["for i in xrange(3):\n    pass"], ""),
        (["try:\n    f()\nexcept E, e:\n    pass"], ""),
        ("print (1)", "print (1)"),
        (None, ""),
        ("", ""),
    ],
)
def test_the_first_solution_for_python_3_is_kept_without_its_fence(to_problem, solutions, chosen):
    assert to_problem(t=CASES, code=solutions).answer == chosen


def test_a_maths_file_and_a_code_file_mix_check_and_score_as_one(tmp_path):
    """`auto` finds the scorer of each row, in verl's signature too."""
    from rewardkit.scorers.auto import compute_score

    files = [tmp_path / f"{name}.parquet" for name in ("gsm8k", "livecodebench")]
    for name, out in zip(("gsm8k", "livecodebench"), files, strict=True):
        rewardkit.prep(name, out, sample=True, limit=3)
    mixed = tmp_path / "mixed.parquet"
    mix([MixPart(file) for file in files], mixed)
    assert rewardkit.check(mixed, jobs=2).ok
    rows = list(read_rows(mixed))
    code = "a, b = int(input()), int(input())\nprint(max(0, 4 * a - b))"
    for row in rows:
        info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
        right = f"```python\n{code}\n```" if row["ability"] == "code" else f"#### {gold}"
        results = [compute_score(row["data_source"], text, gold, info) for text in (right, "pass")]
        is_first = row["ability"] != "code" or "tram" in info["question"]
        assert [result["score"] for result in results] == [float(is_first), 0.0]
        assert results[0].keys() == results[1].keys()
    for source in ("codecontests", "apps", "codeforces", "taco"):
        assert compute_score(source, "print(input())", json.dumps(PAIRS))["error"] == 0


@pytest.mark.full
def test_all_solutions_of_leetcodedataset_and_humaneval_pass(shared, tmp_path):
    """Rows that allow several outputs are dropped before. One solution of LeetCode's needs 24 seconds."""
    counts = {}
    for name, source in (
        ("leetcode", "code_leetcode"),
        ("humaneval", "code_suites/openai+human-eval/data_HumanEval.jsonl.gz"),
    ):
        out = tmp_path / f"{name}.parquet"
        rows = shared / "cases" / source
        report = rewardkit.prep(name, out, split="test", source=rows, jobs=2, limit=80)
        counts[name] = report.splits[0].written, dict(report.splits[0].dropped)
    written, dropped = counts["leetcode"]
    assert dropped.pop("solution_is_wrong", 0) <= 1
    assert dropped.keys() <= {"several_outputs"}
    assert written >= 76
    assert counts["humaneval"] == (80, {})


def test_sandboxfusion_s_mbpp_rows_pass_with_their_challenge_tests(shared, tmp_path):
    lines = (shared / "cases/code_suites/bytedance+SandboxFusion").glob("*mbpp.jsonl")
    rows = [json.loads(line) for file in lines for line in file.read_text().splitlines()]
    raws = [
        {
            "text": row["content"],
            "code": row["canonical_solution"],
            "test_list": row["test_list"],
            "challenge_test_list": row["labels"]["challenge_test_list"],
            "test_setup_code": row["labels"]["test_setup_code"],
            "task_id": row["id"],
        }
        for row in rows
    ]
    out = tmp_path / "mbpp.parquet"
    report = rewardkit.prep("mbpp", out, split="test", source=jsonl(tmp_path / "test.jsonl", *raws))
    assert report.splits[0].written >= 18
    assert all("\r" not in text for text in (*infos(out, "answer"), *golds(out)))


def test_a_row_of_livecodebench_s_loader_has_public_and_private_tests():
    raw = {"question_content": "q", "starter_code": "", "metadata": "{}", "question_id": "1"}
    raw |= {"difficulty": "easy", "platform": "atcoder", "public_test_cases": json.dumps(CASES[:1])}
    raw["private_test_cases"] = packed(CASES[1:], as_pickle=True)
    problem = load_dataset("livecodebench").to_problem(raw)
    assert read_problem(problem.ground_truth).tests == (("1", "2"), ("3", "4"))


def test_prep_names_the_first_test_that_a_solution_fails(tmp_path):
    card = write_card(
        tmp_path, {"question": "q", "tests": "t", "solution": "c"}, scorer="code", template="code"
    )
    good, bad = ({"q": f"Double {n}.", "t": [{"input": "2", "output": "4"}, {"input": "3", "output": n}], "c": "print(2 * int(input()))"} for n in "67")  # fmt: skip
    out = tmp_path / "out.parquet"
    rewardkit.prep(card, out, source=jsonl(tmp_path / "sums.jsonl", good, bad))
    [entry] = dropped(out)
    assert "passes 1 of 2 tests" in entry["reasons"][0]
    assert "input '3'; expected '7'; got '6'" in entry["reasons"][0]
