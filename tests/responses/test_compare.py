"""Two scorers on the same responses: counts, causes of disagreement, exported cases and the page."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import OutputError, UsageError
from rewardkit.pages.html import to_html
from rewardkit.responses.compare import (
    MAX_EXAMPLES,
    Verdict,
    compare_files,
    compare_page,
    describe_difference,
)
from rewardkit.responses.score import ScoringPlan, score_file
from rewardkit.scorers.base import Score, Status
from rewardkit.scorers.load import load_scorer
from tests.responses.test_files import write


def scorer_of(*verdicts):
    """Return a scorer that returns or raises the verdict at the index in the response."""

    def scorer(response, ground_truth, extra_info=None):
        verdict = verdicts[int(response)]
        if isinstance(verdict, Exception):
            raise verdict
        status = Status.CORRECT if verdict else Status.WRONG
        return Score(float(verdict), bool(verdict), "7", status)

    return scorer


def compare(file, a, b, **options):
    files = file if isinstance(file, list) else [file]
    return compare_files(files, ("a", ScoringPlan(a)), ("b", ScoringPlan(b)), **options)


def write_responses(tmp_path, n):
    return write(
        tmp_path / "r.jsonl", [{"response": str(i), "ground_truth": "7"} for i in range(n)]
    )


def test_every_sample_is_in_one_cell(tmp_path):
    a, b = scorer_of(1, 1, 1, 0, 0, 0), scorer_of(1, 1, 0, 1, 0, 0)
    rows = [{"response": str(i), "ground_truth": "7"} for i in range(6)]
    file = write(tmp_path / "r.jsonl", [*rows, {"response": "0"}, {"ground_truth": "7"}])
    report = compare(file, a, b)
    summary = report.summary()
    assert (report.judged, report.unread, len(report.unread_examples)) == (6, 2, 2)
    cells = ("both_right", "only_a_right", "only_b_right", "neither_right")
    assert [summary[cell] for cell in cells] == [2, 1, 1, 2]
    assert (summary["agreement"], summary["mcnemar_p"]) == (4 / 6, 1.0)
    assert (summary["a"]["mean_score"], summary["b"]["right"]) == (0.5, 3)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_swapping_the_scorers_swaps_the_results(tmp_path_factory, pairs):
    file = write_responses(tmp_path_factory.mktemp("r"), len(pairs))
    a, b = (scorer_of(*side) for side in zip(*pairs, strict=True))
    report, swapped = compare(file, a, b), compare(file, b, a)
    assert {(q, p): n for (p, q), n in report.outcomes.items()} == dict(swapped.outcomes)
    assert (report.agreed, report.p_value) == (swapped.agreed, swapped.p_value)


def test_a_failure_is_counted_and_grouped_and_excluded_from_the_table(tmp_path):
    a, b = scorer_of(1, ValueError("odd"), ValueError("even"), 0), scorer_of(1, 1, KeyError("x"), 1)
    report = compare(write_responses(tmp_path, 4), a, b)
    assert (report.judged, [side.failed for side in report.sides.values()]) == (2, [2, 1])
    assert report.sides["A"].first_failure.endswith("r.jsonl:2: raised ValueError: odd")
    # On the third sample both fail, which is not a disagreement.
    assert {(cause.status_a, cause.status_b, cause.preds) for cause in report.causes} == {
        ("raised ValueError", "correct", "A failed"),
        ("wrong", "correct", "same pred"),
    }


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("", "", "no pred"),
        ("5", "", "only A has a pred"),
        ("", "5", "only B has a pred"),
        ("[INVALID]", "5", "only B has a pred"),
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
    left, right = (Verdict(False, 0.0, pred, "wrong") for pred in (a, b))
    assert describe_difference(left, right) == expected
    none = Verdict(False, 0.0, "none", "no_answer")
    assert describe_difference(none, Verdict(True, 1.0, "A", "correct")) == "only B has a pred"


@given(st.text(st.characters(), max_size=600), st.text(st.characters(), max_size=600))
def test_the_difference_of_any_two_preds_has_a_description(a, b):
    assert describe_difference(*(Verdict(False, 0.0, pred, "wrong") for pred in (a, b)))


def test_one_scorer_cannot_change_what_the_other_sees(tmp_path):
    def greedy(response, ground_truth, extra_info=None):
        extra_info.clear()
        return Score(1.0, True, "", Status.CORRECT)

    def reads_rows(response, ground_truth, extra_info=None):
        return Score(1.0, extra_info["data_source"] == "d", "", Status.CORRECT)

    row = {"response": "x", "ground_truth": "1", "data_source": "d"}
    assert compare(write(tmp_path / "r.jsonl", [row, row]), greedy, reads_rows).agreed == 2


def test_exported_cases_reproduce_the_disagreements(tmp_path):
    (tmp_path / "verl.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    assert data_source == 'd' and extra_info['index'] == 3\n"
        "    return {'score': 1.0, 'acc': True, 'pred': solution_str}\n"
    )
    row = {"ground_truth": "1", "data_source": "d", "extra_info": {"index": 3}}
    texts = ["#### 1", "#### 2", "none \ud800"]
    file = write(tmp_path / "r.jsonl", [{**row, "response": text} for text in texts])
    sides, out = ("gsm8k", f"{tmp_path}/verl.py:compute_score"), tmp_path / "cases.jsonl"
    compare(file, *sides, export=out)
    cases = [json.loads(line) for line in out.read_text().splitlines()]
    assert [case["response"] for case in cases] == texts[1:]
    assert (cases[0]["data_source"], cases[0]["extra_info"]) == ("d", {"index": 3})
    verdict = {"correct": False, "score": 0.0, "pred": "2", "status": "wrong"}
    assert cases[0]["a"] == {"scorer": "a", **verdict}
    assert compare(str(out), *sides).outcomes == {(False, True): 2}
    assert score_file(out, "gsm8k").total.n == 2
    with pytest.raises(OutputError, match="--overwrite"):
        compare(file, *sides, export=out)
    with pytest.raises(UsageError, match="is the input file"):
        compare([file, str(out)], *sides, export=out, overwrite=True)
    with pytest.raises(UsageError, match="the next run would count its rows"):
        compare([str(tmp_path)], *sides, export=tmp_path / "new.jsonl")


def test_the_page_shows_every_comparison(tmp_path):
    text = "<script>alert(1)</script>\x1b \ud800 ####"
    rows = [{"response": f"{text} {i}", "ground_truth": "1"} for i in range(7)]
    rows += [{"response": f"{'so ' * 200}it is 12", "ground_truth": "12"}] * 7
    file = write(tmp_path / "r.jsonl", rows)
    for other in (lambda *_: 1 / 0, "gsm8k", load_scorer("gsm8k", method="robust")):
        report = compare(file, "gsm8k", other)
        assert "<script" not in to_html(compare_page(report))
        assert "agreement" in report.agreement()
        for examples in report.examples.values():
            assert len(examples) <= MAX_EXAMPLES
            assert len(examples[0].ending) <= 200
