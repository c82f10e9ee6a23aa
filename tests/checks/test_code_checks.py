"""`check` runs the programs of code rows: the row's own must pass, and those that solve nothing must not."""

import json
import re

import pytest

import rewardkit
from rewardkit.checks.row_checks import check_row
from rewardkit.row import build_row, write_rows
from tests.tables import every


def row(gold, prompt="Double the number.", solution=""):
    return build_row(
        data_source="apps",
        prompt=[{"role": "user", "content": prompt}],
        ability="code",
        ground_truth=gold if isinstance(gold, str) else json.dumps(gold),
        index=0,
        answer=solution,
    )


def pairs(*tests, **more):
    return {"inputs": [i for i, _ in tests], "outputs": [o for _, o in tests], **more}


DOUBLE = pairs(("1\n", "2\n"), ("4\n", "8\n"))
CALL = pairs(([1], 2), ([4], 8), fn_name="f")
RIGHT = "print(2 * int(input()))"
FUNCTION = "def f(x):\n    return 2 * x"
WRAPPED = {**CALL, "outputs": [[2], [8]]}
MANY = "Print the divisors. If there are several answers, print any of them."
CHECKER = "import sys\n_, a, b = (open(n).read().split() for n in sys.argv[1:])\nprint(int(a == b))"
PYTEST = "from solution import f\n\ndef test_f():\n    assert f(1) == 2\n\ndef test_g():\n    assert f(4) == 8"
PYTEST_ROW = {"test": PYTEST}
CHECK = {
    "test": "def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(4) == 8",
    "entry_point": "f",
}
ASSERTS = {"assert_case": ["assert f(1) == 2", "assert f(4) == 8"]}

#: Rows, each with the rules that it breaks.
ROWS = [
    (row(DOUBLE, solution=RIGHT), ""),
    (row(DOUBLE), ""),
    (row(CALL, solution=FUNCTION), ""),
    (row(CHECK, solution=FUNCTION), ""),
    (row(ASSERTS, solution=FUNCTION), ""),
    (row({"test": PYTEST}, solution=FUNCTION), ""),
    # the solution
    (row(DOUBLE, solution="print(3)"), "solution_is_wrong"),
    (row(DOUBLE, solution="```python\nnot python"), "solution_is_wrong"),
    (row(CALL, solution="def g(x):\n    return 2 * x"), "solution_is_wrong"),
    (row(CHECK, solution="def f(x):\n    return x"), "solution_is_wrong"),
    # the gold
    (row("4"), "bad_gold"),
    (row({"inputs": ["1"]}), "bad_gold"),
    (row({"inputs": ["1"], "outputs": [None]}), "bad_gold"),
    (row(pairs(("1", ""), ("2", "\n"))), "wrong_is_right"),
    (row(pairs(("1", "1"), ("2", "2 "))), "wrong_is_right"),
    (row(pairs(("1", "yes"), ("2", "yes"))), "wrong_is_right"),
    (row(pairs(([1], True), ([2], True), fn_name="f")), "wrong_is_right"),
    (row({"assert_case": ["assert f(1) is None", "assert not f(2)"]}), "wrong_is_right"),
    (row({"test": "x = 1\nassert x", "entry_point": ""}), "wrong_is_right"),
    (row(pairs(("1", "2"), checker="print(1)")), "wrong_is_right"),
    (row(pairs(("1", "2"), ("3", "2"), checker=CHECKER)), "wrong_is_right"),
    (row(pairs(("1\r\n", "2"), ("4\r\n", "8"))), "line_ends"),
    (row(pairs((["a"], "b\r\n"), (["c"], "d"), fn_name="f")), "line_ends"),
    # results in lists
    (row(WRAPPED), "wrapped_gold"),
    (row(WRAPPED, solution=FUNCTION), "wrapped_gold"),
    (row(WRAPPED, solution="def f(x):\n    return [2 * x]"), ""),
    # several outputs
    (row(DOUBLE, MANY), "several_outputs"),
    (row({**DOUBLE, "checker": CHECKER}, MANY), ""),
    (row(CHECK, "Return the answer in any order."), "several_outputs"),
    (row({**CHECK, "test": CHECK["test"] + "\n    assert sorted(candidate(3))"}, "Return them in any order."), ""),
    *[(row(DOUBLE, text), "several_outputs") for text in (
        "If there are multiple solutions, print any.", "Output any valid answer.", "You may return any of these numbers.",
        "If several answers exist, any of them is accepted.", "Print the indices in any order")],
    *[(row(DOUBLE, text), "") for text in (
        "The edges are given in any order.", "Print -1 if there is not any answer.", "If there are multiple answers, print the smallest.",
        "Return true if any of the numbers is even.", "Print how many companies there are.")],
    # tests in the prompt
    (row(DOUBLE, "Double.\nInput\n1\nOutput\n2\n\nInput: 4 Output: 8"), "tests_in_prompt"),
    (row(DOUBLE, "Double.\nInput\n1\nOutput\n2\n\nUp to 48."), ""),
    (row(DOUBLE, "Double. Input 10 Output 20, and 48 stays."), ""),
    (row(CALL, "f(1) returns 2, and f(4) returns 8."), "tests_in_prompt"),
    (row(pairs(([1, [2, 3]], 5), ([7, []], 9), fn_name="f"), "f(1, [2,3]) = 5; f(7, []) -> 9"), "tests_in_prompt"),
    (row(ASSERTS, "Pass these:\nassert f(1) == 2\nassert f(4) == 8"), "tests_in_prompt"),
    (row(ASSERTS, "Pass tests such as:\nassert f(1) == 2"), ""),
]  # fmt: skip


@every(("sample", "rules"), ROWS)
def test_each_fault_of_a_code_row_is_found_and_no_other(sample, rules):
    assert [finding.rule for finding in check_row(sample, 0)] == rules.split()


def test_the_first_failing_test_is_in_the_finding():
    [finding] = check_row(row(DOUBLE, solution="print(2)"), 0)
    text = "it passes 1 of 2 tests; the first that fails: another output; input '4'; expected '8'; got '2'"
    assert finding.message == text


def test_options_of_the_scorer_hold_for_the_programs():
    endless = row(DOUBLE, solution="import time\nwhile True: pass")
    [finding] = check_row(endless, 0, options={"seconds": 0.2})
    assert re.search(r"more than 0\.\d seconds of processor time", finding.message)


def test_a_row_that_a_server_cannot_grade_has_a_bad_gold():
    options = {"backend": "sandbox_fusion", "sandbox_url": "http://127.0.0.1:9"}
    [finding] = check_row(row(PYTEST_ROW, solution=FUNCTION), 0, options=options)
    assert finding.rule == "bad_gold"
    assert "use backend=local" in finding.message


def test_a_sandbox_that_fails_is_a_finding_of_its_own(monkeypatch):
    from rewardkit.programs.local import SandboxError
    from rewardkit.scorers import code

    def fail(*_, **__):
        raise SandboxError("no sandbox here")

    monkeypatch.setattr(code, "grade_locally", fail)
    [finding] = check_row(row(DOUBLE, solution=RIGHT), 0)
    assert (finding.rule, "no sandbox here" in finding.message) == ("scorer_raises", True)


def test_rows_are_checked_in_threads_with_progress_and_in_order(tmp_path):
    """Also beside rows of another scorer; each finding is that of its row."""
    rows = [row(DOUBLE, f"Double {i}.", RIGHT if i % 5 else "print(0)") for i in range(35)]
    maths = build_row(data_source="openai/gsm8k", prompt=[{"role": "user", "content": "1+1?"}], ability="math", ground_truth="2", index=0)  # fmt: skip
    file, steps = tmp_path / "rows.parquet", list[int]()
    write_rows([*rows, maths], file, {})
    report = rewardkit.check(file, jobs=2, progress=steps.append)
    assert steps == [32, 4]
    assert report.counts == {"solution_is_wrong": 7}
    assert [finding.row for finding in report.examples] == list(range(0, 35, 5))
    assert report.stats.answer_kinds == {"tests": 35, "integer": 1}


@pytest.mark.parametrize("gold", ['{"inputs": []}', '{"a": 1}', "[1, 2]", "x"])
def test_a_gold_that_is_no_test_is_explained_as_one(gold):
    [finding] = check_row(row(gold), 0)
    assert finding.rule == "bad_gold"
    assert "one answer" not in finding.message
