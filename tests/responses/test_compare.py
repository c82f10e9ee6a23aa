"""`rewardkit compare`: counts, intervals, causes of disagreement, exported cases and the page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import OutputError, UsageError
from rewardkit.pages.html import to_html
from rewardkit.responses.compare_scorers import (
    MAX_EXAMPLES,
    CallResult,
    ScorerCalls,
    agreement,
    call_on_sample,
    compare_files,
    compare_page,
    describe_difference,
)
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import score_file
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.load import load_scorer


def scorer_of(*verdicts):
    """Return a scorer that returns or raises the verdict at the index in the response."""

    def scorer(response, ground_truth, extra_info=None):
        verdict = verdicts[int(response)]
        if isinstance(verdict, Exception):
            raise verdict
        return Score(
            float(verdict), bool(verdict), "7", Status.CORRECT if verdict else Status.WRONG
        )

    return scorer


def write(tmp_path, *rows):
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


def compare_file(file, a, b, **options):
    return compare_files([str(file)], a, b, **options)


def write_responses(tmp_path, n):
    return write(tmp_path, *({"response": str(i), "ground_truth": "7"} for i in range(n)))


def test_every_sample_is_in_one_cell(tmp_path):
    a, b = scorer_of(1, 1, 1, 0, 0, 0), scorer_of(1, 1, 0, 1, 0, 0)
    summary = compare_file(write_responses(tmp_path, 6), ("a", a), ("b", b)).summary()
    cells = ("both_right", "only_a_right", "only_b_right", "neither_right")
    assert [summary[cell] for cell in cells] == [2, 1, 1, 2]
    assert (summary["agreement"], summary["mcnemar_p"]) == (4 / 6, 1.0)
    assert (summary["a"]["mean_score"], summary["b"]["right"]) == (0.5, 3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_swapping_the_scorers_swaps_the_results(tmp_path_factory, pairs):
    file = write_responses(tmp_path_factory.mktemp("r"), len(pairs))
    a, b = (scorer_of(*side) for side in zip(*pairs, strict=True))
    report, swapped = (compare_file(file, ("x", x), ("y", y)) for x, y in ((a, b), (b, a)))
    assert {(q, p): n for (p, q), n in report.outcomes.items()} == dict(swapped.outcomes)
    assert (report.agreed, report.p_value) == (swapped.agreed, swapped.p_value)
    assert sum(g.count for g in report.groups.values()) == report.judged - report.agreed


def test_a_failure_is_counted_and_grouped_and_excluded_from_the_table(tmp_path):
    a, b = scorer_of(1, ValueError("odd"), ValueError("even"), 0), scorer_of(1, 1, KeyError("x"), 1)
    report = compare_file(write_responses(tmp_path, 4), ("a", a), ("b", b))
    assert (report.judged, report.a.raised.total(), report.b.raised.total()) == (2, 2, 1)
    assert report.a.first["raised ValueError"].endswith("r.jsonl:2: odd")
    causes = {(cause.status_a, cause.status_b, cause.preds) for cause in report.groups}
    assert causes == {
        (
            "raised ValueError",
            "correct",
            "A failed",
        ),  # on the third sample both fail: no disagreement
        ("wrong", "correct", "same pred"),
    }


def test_disagreements_are_grouped_by_cause_with_the_most_frequent_first(tmp_path):
    integers = [{"response": "#### 1,000", "ground_truth": "1000"}] * 5
    prose = [{"response": f"{'so ' * 200}it is 12", "ground_truth": "12"}] * 7
    file = write(tmp_path, *integers, *prose)
    robust = load_scorer("gsm8k", method="robust")
    report = compare_file(file, ("strict", load_scorer("gsm8k")), ("robust", robust))
    groups = [(group.count, cause.gold_kind) for cause, group in report.worst()]
    assert groups == sorted(groups, reverse=True)
    for _, group in report.worst():
        assert len(group.examples) <= MAX_EXAMPLES
        assert len(group.examples[0].ending) <= 200


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("", "", "no pred"),
        ("5", "", "only A has a pred"),
        ("", "5", "only B has a pred"),
        ("5", "5", "same pred"),
        (r"\left( 1, 2\right)", "(1,2)", "same pred, spelled differently"),
        ("0.5", r"\frac12", "same number, written differently"),
        ("5", "6", "different numbers"),
        ("x+1", "y=x+1", "A's pred is part of B's"),
        ("x+1 or x", "x+1", "B's pred is part of A's"),
        ("x+1", "y", "different preds"),
    ],
)
def test_the_difference_of_two_preds_is_described(a, b, expected):
    left, right = (CallResult(False, 0.0, pred, "wrong") for pred in (a, b))
    assert describe_difference(left, right) == expected


@pytest.mark.parametrize(
    ("status", "pred"), [("no_answer", "[INVALID]"), ("wrong", "[INVALID]"), ("no_answer", "none")]
)
def test_a_placeholder_for_a_missing_answer_is_not_a_pred(status, pred):
    none, answer = CallResult(False, -1.0, pred, status), CallResult(True, 1.0, "A", "correct")
    assert describe_difference(none, answer) == "only B has a pred"
    assert describe_difference(none, none) == "no pred"


@given(st.text(st.characters(), max_size=600), st.text(st.characters(), max_size=600))
def test_the_difference_of_any_two_preds_has_a_description(a, b):
    left, right = (CallResult(False, 0.0, pred, "wrong") for pred in (a, b))
    assert describe_difference(left, right)


@pytest.mark.parametrize("score", [1.0, None, {"score": 1.0}, ("a",)])
def test_an_invalid_score_counts_as_a_failure(score):
    sample = Sample("x:1", "r", "g", {}, {})
    result = call_on_sample(lambda *_: score, sample)
    assert (result.correct, result.status) == (None, "returned an invalid score")


def test_one_scorer_cannot_change_what_the_other_sees(tmp_path):
    def greedy(response, ground_truth, extra_info=None):
        extra_info.clear()
        return Score(1.0, True, "", Status.CORRECT)

    def reads_rows(response, ground_truth, extra_info=None):
        return Score(1.0, extra_info["data_source"] == "d", "", Status.CORRECT)

    row = {"response": "x", "ground_truth": "1", "data_source": "d"}
    report = compare_file(write(tmp_path, row, row), ("g", greedy), ("l", reads_rows))
    assert report.agreed == 2


def test_the_first_call_is_not_timed_unless_it_is_the_only_one():
    side = ScorerCalls("s")
    side.nanoseconds.extend([9_000_000, 1000, 2000, 3000])
    assert (side.speed()["median_us"], side.speed()["p99_us"]) == (2.0, 3.0)
    assert side.speed()["calls_per_second"] == pytest.approx(500_000)
    assert ScorerCalls("none").speed()["median_us"] == 0.0


def test_exported_cases_reproduce_the_disagreements(tmp_path):
    (tmp_path / "verl.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    assert data_source == 'd' and extra_info['index'] == 3\n"
        "    return {'score': 1.0, 'acc': True, 'pred': solution_str}\n"
    )
    row = {"ground_truth": "1", "data_source": "d", "extra_info": {"index": 3}}
    texts = ["#### 1", "#### 2", "none \ud800"]
    file = write(tmp_path, *({**row, "response": text} for text in texts))
    sides = (
        ("gsm8k", load_scorer("gsm8k")),
        ("verl.py", load_scorer(f"{tmp_path}/verl.py:compute_score")),
    )
    out = tmp_path / "cases.jsonl"
    compare_file(file, *sides, export=out)
    cases = [json.loads(line) for line in out.read_text().splitlines()]
    assert [case["response"] for case in cases] == texts[1:]
    assert (cases[0]["data_source"], cases[0]["extra_info"]) == ("d", {"index": 3})
    assert cases[0]["a"] == {
        "scorer": "gsm8k",
        "correct": False,
        "score": 0.0,
        "pred": "2",
        "status": "wrong",
    }
    second_report = compare_file(out, *sides)
    assert second_report.outcomes == {(False, True): 2}
    assert score_file(out, load_scorer("gsm8k")).total.n == 2
    with pytest.raises(OutputError, match="--overwrite"):
        compare_file(file, *sides, export=out)
    with pytest.raises(UsageError, match="is the input file"):
        compare_file(file, *sides, export=file, overwrite=True)


def test_rows_without_a_usable_response_are_counted(tmp_path):
    file = write(tmp_path, {"response": "0", "ground_truth": "7"}, {"response": "0"}, [])
    report = compare_file(file, ("a", scorer_of(1)), ("b", scorer_of(1)))
    assert (report.judged, report.unread, len(report.unread_examples)) == (1, 2, 2)


def test_the_page_shows_every_comparison(tmp_path):
    rows = [
        {"response": f"<script>alert(1)</script>\x1b \ud800 #### {i}", "ground_truth": "1"}
        for i in range(3)
    ]
    a, b = load_scorer("gsm8k"), lambda *_: 1 / 0
    for other_side in (("b", b), ("a", a), ("robust", load_scorer("gsm8k", method="robust"))):
        report = compare_file(write(tmp_path, *rows), ("a", a), other_side)
        text = to_html(compare_page(report))
        assert "<script" not in text
        assert "agreement" in agreement(report)


def test_folders_and_patterns_are_compared_as_score_reads_them(tmp_path):
    for step in (2, 10):
        row = {"response": "0", "ground_truth": "7"}
        (tmp_path / f"{step}.jsonl").write_text(json.dumps(row) + "\n")
    both = [str(tmp_path / "2.jsonl"), str(tmp_path / "10.jsonl")]
    for names in ([str(tmp_path)], [str(tmp_path / "*.jsonl")], both, [str(tmp_path), *both]):
        report = compare_files(names, ("a", scorer_of(1)), ("b", scorer_of(0)))
        assert report.judged == 2
        assert report.name.startswith("2 files")
    scorers = ("a", scorer_of(1)), ("b", scorer_of(0))
    with pytest.raises(UsageError, match="is the input file"):
        compare_files(both, *scorers, export=tmp_path / "10.jsonl")
    with pytest.raises(UsageError, match="the next run would count its rows"):
        compare_files([str(tmp_path)], *scorers, export=tmp_path / "new.jsonl")
