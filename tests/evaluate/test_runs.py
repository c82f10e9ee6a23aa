"""Runs side by side: cells with intervals, marks, averages, notes, differences and an HTML page."""

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.evaluate.runs import compare_runs, parse_runs, question_key, read_run
from rewardkit.jsonl import MAX_LINE_BYTES
from rewardkit.pages.html import to_html
from rewardkit.responses.samples import Sample
from rewardkit.responses.score import score_file

#: A line of a result file, but for its row, sample and verdict.
LINE = {"model": "M", "sampling": {"api": "chat", "seed": 1}, "response": "so\n#### 1"}
LINE |= {"finish_reason": "stop", "tokens": 5, "data_source": "set", "ground_truth": "1"}
LINE |= dict.fromkeys(("no_answer", "timeout", "error"), 0.0)


def line(row, sample, right, **fields):
    """Return a line of a result file."""
    prompt = [{"role": "user", "content": f"question {row}?"}]
    place = {"row": row, "sample": sample, "prompt": prompt, "extra_info": {"index": row}}
    verdict = {"score": float(right), "acc": float(right), "pred": f"wrong {sample}"}
    verdict |= {"status": "correct", "pred": "1"} if right else {"status": "wrong"}
    return {**LINE, **place, **verdict, **fields}


@pytest.fixture
def results(tmp_path):
    """Return a function that writes a result file: `rights[i]` of n responses to question i are right."""

    def make(name, rights, n=4, **fields):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            for row, right in enumerate(rights):
                lines = (line(row, sample, sample < right, **fields) for sample in range(n))
                file.writelines(json.dumps(record) + "\n" for record in lines)
        return path

    return make


def read(*paths):
    return [read_run(path.stem, [path]) for path in paths]


def marks(comparison, source="set"):
    return {run.name: cells[source].mark for run, cells in comparison.rows}


def test_the_best_run_and_runs_within_chance_of_it_are_marked(results):
    best = results("best.jsonl", [4] * 30 + [3] * 10)
    near = results("near.jsonl", [4] * 29 + [3] * 11)
    far = results("far.jsonl", [1] * 40)
    comparison = compare_runs(read(far, near, best))
    assert list(marks(comparison).items()) == [("best", "*"), ("near", "~"), ("far", "")]
    cells = [cells["set"] for _, cells in comparison.rows]
    assert cells[0].value == pytest.approx((30 * 4 + 10 * 3) / 160)
    assert re.fullmatch(r"25\.0 \[[\d.]+, [\d.]+\]", cells[2].text)
    assert cells[0].text.startswith("93.8* [")
    equal = compare_runs(read(far, results("same.jsonl", [1] * 40)))
    assert set(marks(equal).values()) == {"*"}
    other = compare_runs(read(best, results("other.jsonl", [1] * 41)))
    assert set(marks(other).values()) == {""}  # of other questions
    assert set(marks(compare_runs(read(best))).values()) == {""}


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8))
def test_marks_and_order_agree_with_the_means(tmp_path_factory, rights):
    folder, paths = tmp_path_factory.mktemp("r"), []
    for number, row in enumerate(rights):
        paths.append(folder / f"{number}.jsonl")
        lines = (json.dumps(line(i, 0, right)) + "\n" for i, right in enumerate(row))
        paths[-1].write_text("".join(lines))
    comparison = compare_runs(read(*paths))
    values = [cells["set"].value for _, cells in comparison.rows]
    assert values == sorted(values, reverse=True)
    if len(rights) > 1:
        assert values[[*marks(comparison).values()].index("*")] == max(values)


def test_an_average_weights_data_sources_equally_and_needs_all_of_them(results):
    big = results("r/big.jsonl", [4] * 90 + [0] * 10, data_source="big")
    small = results("r/small.jsonl", [0] * 10, data_source="small")
    two, one = read_run("two", [big]), read_run("one", [big, small])
    comparison = compare_runs([two, one])
    assert [run.name for run, _ in comparison.rows] == ["one", "two"]
    average = comparison.rows[0][1][None]
    assert average.value == pytest.approx(0.45)
    assert 0 <= average.interval[0] < average.value < average.interval[1] <= 1
    assert comparison.table().columns == ["run", "average", "big", "small"]
    assert [bool(cell) for cell in comparison.table().rows[1]] == [True, False, True, False]


def test_what_makes_runs_less_comparable_is_noted(results):
    a = results("a.jsonl", [1] * 10)
    b = results("b.jsonl", [1] * 8, n=2, sampling={"api": "chat", "temperature": 0.5})
    notes = " ".join(compare_runs(read(a, b)).notes)
    assert "the runs have different questions (10, 8; 8 in all runs)" in notes
    assert "different numbers of responses per question (2, 4)" in notes
    assert "2 different samplings" in notes
    seeds = results("c.jsonl", [1] * 10, sampling={"api": "chat", "seed": 2})
    assert compare_runs(read(a, seeds)).notes == ()
    filtered = results("d.jsonl", [0] * 2, n=1, finish_reason="content_filter")
    (note,) = compare_runs(read(filtered)).notes
    assert note == "d: no usable response for 2 of 2 (content_filter 2); they count as wrong."


def test_a_metric_that_is_unknown_or_needs_more_responses_is_an_error_or_a_note(results):
    few = results("a.jsonl", [1])
    for metric in ("pass@0", "pass", "best@4", "pass@x", "mean@4", "maj@-1"):
        with pytest.raises(UsageError, match="mean@n, pass@K or maj@K"):
            compare_runs(read(few), metric)
    with pytest.raises(DataError, match="a: set: no pass@8: a question has too few"):
        compare_runs(read(few), "pass@8")
    full = results("c.jsonl", [4] * 3, n=8, data_source="other")
    comparison = compare_runs([read_run("both", [few, full])], "pass@8")
    assert comparison.columns == ("other",)
    assert [note.partition(": a")[0] for note in comparison.notes] == ["both: set: no pass@8"]


def test_two_runs_are_compared_question_by_question(results):
    """The values are those of scipy.stats.ttest_rel for the same fractions."""
    a = results("a.jsonl", [2 * (i % 2 == 0) for i in range(40)], n=2)
    b = results("b.jsonl", [2 if i % 2 == 0 else int(i % 8 == 1) for i in range(40)], n=2)
    difference = compare_runs(read(a, b)).differences["all"]
    assert (difference.questions, difference.difference) == (40, pytest.approx(5 * 0.5 / 40))
    expected = (0.008941764723762, 0.116058235276238)
    assert difference.interval == pytest.approx(expected, abs=1e-12)
    assert difference.p == pytest.approx(0.02335192036345708, abs=1e-12)
    backwards = compare_runs(read(b, a)).differences["set"]
    assert backwards.difference == -difference.difference
    other = results("c.jsonl", [1], ground_truth="2")
    assert compare_runs(read(a, other)).differences == {}
    assert compare_runs(read(a, b, other)).differences == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"score": float("nan")}, r"a\.jsonl:1: not a scored response \(its score is not"),
        ({"score": 10**400}, r"a\.jsonl:1: not a scored response"),
        ({"acc": None, "score": None}, r"a\.jsonl:1: not a scored response \(neither acc nor"),
        ({"response": None}, r"a\.jsonl:1: not a scored response \(no response"),
        ({"acc": 0.5, "score": 0.5}, "which score is right is not known"),
    ],
)
def test_a_line_that_is_no_result_is_an_error_with_its_number(results, fields, message):
    with pytest.raises(DataError, match=message):
        read(results("a.jsonl", [1], n=1, **fields))


def test_files_that_are_no_run_are_errors(results, tmp_path):
    empty, path = tmp_path / "empty.jsonl", results("b.jsonl", [1], n=1)
    empty.touch()
    with pytest.raises(DataError, match="has no results"):
        read(empty)
    with pytest.raises(DataError, match="answer the same questions: name them as two runs"):
        read_run("r", [results("r/a.jsonl", [1]), results("r/b.jsonl", [4])])
    os.truncate(path, path.stat().st_size + MAX_LINE_BYTES + 10)  # sparse
    with pytest.raises(DataError, match=r"b\.jsonl:2: .*the line has 67,108,874 bytes"):
        read(path)


def test_runs_are_named_after_their_files_or_their_paths_if_these_collide(results, tmp_path):
    a, b = results("x/test.jsonl", [1]), results("y/test.jsonl", [1])
    assert [name for name, _ in parse_runs([str(a), f"B={b}"])] == ["test", "B"]
    assert [name for name, _ in parse_runs([str(a), str(b)])] == [str(a), str(b)]
    (tmp_path / "x/.part.jsonl").touch()
    (tmp_path / "x/test.jsonl.unscored.jsonl").touch()
    assert parse_runs([str(tmp_path / "x")]) == [("x", [a])]
    path = results("lr=1.jsonl", [1])
    assert parse_runs([str(path)]) == [("lr=1", [path])]
    (tmp_path / "empty").mkdir()
    for arguments, error, message in (
        ([f"B={a}", f"B={b}"], UsageError, "two runs are called B"),
        ([str(tmp_path / "none")], SourceError, "no such file"),
        ([str(tmp_path / "empty")], SourceError, "the folder has no file of responses"),
    ):
        with pytest.raises(error, match=message):
            parse_runs(arguments)


def test_names_cannot_break_the_page(results):
    run = read_run("<script>|*a*", [results("a.jsonl", [4, 0], data_source="<b>|x`")])
    page = to_html(compare_runs([run]).page())
    assert "<script" not in page
    assert "&lt;b&gt;|x`" in page


def test_questions_are_told_apart_by_their_rows_and_by_their_texts(results):
    """A set may have a question twice, and two files the same row numbers."""
    twice = results("a.jsonl", [4, 0], prompt=[{"role": "user", "content": "same?"}])
    assert len(read(twice)[0].questions) == 2
    a = results("b.jsonl", [4], data_source="a")
    run = read_run("both", [a, results("c.jsonl", [0], data_source="b")])
    assert len(run.questions) == len(run.metrics.total.questions) == 2
    assert run.metrics.sources["a"].summary()["mean"]["value"] == 1.0
    odd = {"finish_reason": {}, "tokens": 10**30, "extra_info": [], "sampling": "x"}
    assert len(read(results("d.jsonl", [1], n=1, **odd))[0].questions) == 1

    def key(prompt, gold="1"):
        return question_key(Sample("f:1", "", gold, {"question": "2+2?"}, {"prompt": prompt}))

    assert key("2+2?") == key([{"role": "user", "content": "Think. 2+2?"}]) != key("2+2?", "5")


def test_files_that_score_wrote_are_runs_with_the_prompts_as_questions(tmp_path):
    """Their responses to a prompt need not follow each other, and intervals are those of `score`."""
    golds = "01001010" * 4
    rows = [
        {"input": f"q {i % 8}", "output": f"#### {i // 8 % 2}", "gts": gold, "step": i}
        for i, gold in enumerate(golds)
    ]
    file, out = tmp_path / "r.jsonl", tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = score_file(file, "gsm8k", out=out).total
    total = read(out)[0].metrics.summary()["total"]
    assert (total["questions"], total["n"]) == (8, [4, 4])
    assert total["mean"]["value"] == pytest.approx(scored.accuracy)
    assert total["mean"]["interval"] == pytest.approx(scored.interval)
