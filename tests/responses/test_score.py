"""`score_files`: what is counted and written, in many processes, by interrupted runs and scorers that fail."""

import json
import os
from random import Random

import pytest

import rewardkit
from rewardkit.errors import DataError, OutputError, UsageError
from rewardkit.responses import figures as figures_module
from rewardkit.responses import files as files_module
from rewardkit.responses.figures import Cell, GradientGroups, ScoreFigures, Tally
from rewardkit.responses.files import SkippedRow
from rewardkit.responses.matching import training_rows
from rewardkit.responses.score import score_file, score_files
from rewardkit.responses.store import part_path
from rewardkit.row import read_rows
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import wilson_interval
from tests.responses.test_files import ROWS, write


@pytest.fixture
def small_chunks(monkeypatch):
    """Use chunks of a few rows, so that small files have many."""
    monkeypatch.setattr(files_module, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(files_module, "CHUNK_ROWS", 32)


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_report_counts_by_status_and_data_source(tmp_path):
    """Each row is scored by its own scorer by default."""
    math, unknown = {"extra_info": {"scorer": "math"}}, {"data_source": "unknown"}
    gsm8k = {"ground_truth": "1", "data_source": "openai/gsm8k"}
    rows = [{"response": text, **gsm8k} for text in ("#### 1", "#### 2", "none")]
    rows += [{**gsm8k, **math, "response": r"\boxed{1}"}, {**gsm8k, **unknown, "response": "1"}]
    report = score_file(write(tmp_path / "x.jsonl", rows))
    summary = report.summary()
    statuses = {"correct": 2, "wrong": 1, "no_answer": 1}
    assert {"n": 4, "accuracy": 1 / 2, "no_answer": 1 / 4, "statuses": statuses}.items() <= summary["total"].items()  # fmt: skip
    assert summary["by_data_source"]["openai/gsm8k"]["accuracy"] == 0.5
    assert report.unscored == 1
    assert "no scorer is known for data_source 'unknown'" in report.examples[0].reason


def test_scored_rows_keep_all_their_fields(tmp_path):
    row = {"output": "#### 1", "gts": "1", "score": 0.25, "step": 3}
    file, out = write(tmp_path / "x.jsonl", [row]), tmp_path / "scored.jsonl"
    score_file(file, "gsm8k", out=out)
    flags = {"no_answer": 0.0, "timeout": 0.0, "error": 0.0, "status": "correct"}
    scores = {"score": 1.0, "score_before": 0.25, "acc": 1.0, "pred": "1", **flags}
    assert read_lines(out) == [{**row, **scores}]
    with pytest.raises(OutputError, match="--overwrite"):
        score_file(file, "gsm8k", out=out)


def test_rows_that_state_a_score_can_keep_it(tmp_path):
    """Its status is that of the row, or of its flags; a score that is not finite cannot be used."""
    row = {"output": "#### 1", "gts": "1", "data_source": "openai/gsm8k"}
    stated = [
        ({"score": 1.0}, (1.0, True, "correct")),
        ({"score": 0.0, "no_answer": 1.0}, (0.0, False, "no_answer")),
        ({"score": 0.0, "error": 1.0}, (0.0, False, "failed")),
        ({"score": -1.0, "acc": 1.0, "pred": 1}, (-1.0, True, "correct")),
        ({"score": 0.0, "status": "too_long", "pred": None}, (0.0, False, "too_long")),
        ({"score": 1.0, "status": "wrong"}, (1.0, True, "correct")),
        ({"score": None}, (1.0, True, "correct")),
        ({"score": "n/a"}, (1.0, True, "correct")),
        ({"score": float("nan")}, None),
        ({"score": 10**400}, None),
    ]
    file = write(tmp_path / "x.jsonl", [{**row, **fields} for fields, _ in stated])
    pairs = []
    report = score_file(file, keeps_scores=True, on_score=lambda *pair: pairs.append(pair))
    scores = [(score.score, score.correct, score.status.value) for _, score in pairs]
    assert scores == [expected for _, expected in stated if expected]
    assert [sample.where for sample, _ in pairs[:2]] == [f"{file}:1", f"{file}:2"]
    assert [row.reason for row in report.examples] == ["its score is not a finite number"] * 2


def test_hostile_responses_are_scored_like_any_other(tmp_path):
    texts = ["\ud800", "\x00", "#### " * 100_000, "{" * 1_000_000, "9" * 1_000_000, "\u202e#### 1"]
    rows = [{"response": text, "ground_truth": "1"} for text in texts]
    file = write(tmp_path / "x.jsonl", rows)
    for name in ("gsm8k", "math"):
        report = score_file(file, name, out=tmp_path / f"{name}.jsonl")
        assert (report.total.n, report.unscored) == (len(texts), 0)


def test_the_output_does_not_depend_on_the_number_of_processes(tmp_path, small_chunks):
    file = write(tmp_path / "x.jsonl", ROWS)
    outs = [tmp_path / f"{jobs}.jsonl" for jobs in (1, 2)]
    one, two = (score_file(file, "gsm8k", out=out, jobs=n) for n, out in enumerate(outs, 1))
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert one.summary() == two.summary()


class StopError(Exception):
    """Interrupts a run in a test."""


def interrupt(file, out):
    """Interrupt a run after some rows."""
    rows = []

    def stop(n):
        rows.append(n)
        if sum(rows) > 250:
            raise StopError

    with pytest.raises(StopError):
        score_file(file, "gsm8k", out=out, progress=stop)
    assert not out.exists()


def test_a_resumed_run_has_every_row_once(tmp_path, small_chunks):
    rows = [*ROWS[:200], {"nothing": 1}, *ROWS[200:]]
    file, out, whole = write(tmp_path / "x.jsonl", rows), tmp_path / "o.jsonl", tmp_path / "w.jsonl"
    complete = score_file(file, "gsm8k", out=whole)
    interrupt(file, out)
    with part_path(out).open("ab") as part:  # as after a kill during a write
        part.write(b'{"half a line')
    with pytest.raises(DataError, match="the interrupted run had other"):
        score_file(file, "math", out=out, resume=True)
    rerun = []
    report = score_file(file, "gsm8k", out=out, resume=True, progress=rerun.append)
    assert out.read_bytes() == whole.read_bytes()
    names = [f"{path.name}.unscored.jsonl" for path in (out, whole)]
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1
    assert report.summary() == complete.summary()
    assert (report.total.n, report.unscored, len(report.examples)) == (400, 1, 1)
    assert 0 < sum(rerun) < 401 - 200
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "step",
    [
        "rewardkit.responses.score._write_output",
        "pathlib.Path.replace",
        "rewardkit.responses.store.Store.remove",
    ],
)
def test_a_run_that_was_killed_while_it_finished_can_be_resumed(tmp_path, monkeypatch, step):
    """At each step, the files that the next run needs are there."""
    file, out = write(tmp_path / "x.jsonl", [{"nothing": 1}, *ROWS]), tmp_path / "out.jsonl"

    def stop(*_, **__):
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(step, stop)
        with pytest.raises(StopError):
            score_file(file, "gsm8k", out=out)
    report = score_file(file, "gsm8k", out=out, resume=True, overwrite="remove" in step)
    assert (report.total.n, report.unscored, len(read_lines(out))) == (400, 1, 400)
    names = ["out.jsonl", "out.jsonl.unscored.jsonl", "x.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_a_changed_input_of_the_same_size_and_time_is_detected(tmp_path, small_chunks):
    path, out = tmp_path / "x.jsonl", tmp_path / "out.jsonl"
    interrupt(write(path, ROWS), out)
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"so #### 1", b"so #### 2", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(DataError, match="the interrupted run had other"):
        score_file(path, "gsm8k", out=out, resume=True)


def test_a_second_run_to_the_same_output_is_refused(tmp_path, small_chunks):
    file, out = write(tmp_path / "x.jsonl", ROWS), tmp_path / "out.jsonl"
    refused = []

    def start_another(_):
        for options in ({}, {"overwrite": True}, {"resume": True}):
            with pytest.raises(OutputError, match="another run is writing it"):
                score_file(file, "gsm8k", out=out, **options)
            refused.append(options)

    assert score_file(file, "gsm8k", out=out, progress=start_another).total.n == 400
    assert refused
    assert len(read_lines(out)) == 400


@pytest.mark.parametrize("rows", [ROWS[:2], [*ROWS[:2], {"nothing": 1}]])
@pytest.mark.parametrize("text", ["my notes\n", '{"where": "here"}\n', "{" * 10**6])
def test_a_file_of_the_users_at_the_name_of_unscored_rows_is_replaced_only_with_overwrite(
    tmp_path, rows, text
):
    """Nor is it removed by a run that scores every row; it is refused before a row is scored."""
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.jsonl"
    mine = tmp_path / "out.jsonl.unscored.jsonl"
    mine.write_text(text)
    scored = []
    with pytest.raises(OutputError, match=r"unscored\.jsonl exists; add --overwrite"):
        score_file(file, "gsm8k", out=out, progress=scored.append)
    assert (mine.read_text(), scored, out.exists()) == (text, [], False)
    score_file(file, "gsm8k", out=out, overwrite=True)
    assert out.exists()
    assert mine.exists() == (len(rows) > 2)
    out.unlink()  # as after a kill between the two renames
    assert score_file(file, "gsm8k", out=out).unscored == len(rows) - 2


def test_links_at_the_names_of_outputs_are_refused_and_never_followed(tmp_path):
    file = write(tmp_path / "x.jsonl", [{"nothing": 1}, *ROWS[:5]])
    victim, out = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    for planted in (part_path(out), tmp_path / "out.jsonl.unscored.jsonl"):
        planted.symlink_to(victim)
        with pytest.raises(OutputError, match="symbolic link that rewardkit did not create"):
            score_file(file, "gsm8k", out=out, overwrite=True)
        planted.unlink()
    assert victim.read_text() == "mine"


BAD = """
import os, sys

def score(response, ground_truth, extra_info=None):
    from rewardkit.scorers.base import Score
    n = int(response.rpartition(" ")[2])
    if n == 70:
        raise ValueError("seventy")
    if n == 80:
        sys.exit(3)
    if n == 95:
        return 0.5
    if n == 100 and {dies}:
        os._exit(1)
    return Score.right(str(os.getpid()))
"""


@pytest.mark.parametrize(("jobs", "dies"), [(1, False), (2, True)])
def test_a_scorer_that_fails_on_some_rows_loses_only_those(tmp_path, small_chunks, jobs, dies):
    (tmp_path / "bad.py").write_text(BAD.format(dies=dies))
    rows = [{"response": f"row {i}", "ground_truth": "1"} for i in range(120)]
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.jsonl"
    report = score_file(file, f"{tmp_path}/bad.py:score", jobs=jobs, out=out)
    reasons = {row.where.rpartition(":")[2]: row.reason for row in report.examples}
    assert reasons["71"] == "the scorer raised ValueError: seventy"
    assert reasons["81"] == "the scorer raised ScorerExitedError: it calls sys.exit(3)"
    assert "not a Score" in reasons["96"]
    assert ("101" in reasons) == dies
    assert report.total.n == 120 - len(reasons)
    expected = [row["response"] for i, row in enumerate(rows, 1) if str(i) not in reasons]
    scored = read_lines(out)
    assert [row["response"] for row in scored] == expected
    assert len({row["pred"] for row in scored}) >= jobs


def test_dumps_without_a_data_source_are_looked_up_in_the_training_parquet(tmp_path):
    """By their prompt or their index."""
    train = tmp_path / "train.parquet"
    rewardkit.prep("gsm8k", train, sample=True)
    dump = []
    for row in read_rows(train):
        gold = row["reward_model"]["ground_truth"]
        place = {name: row["extra_info"][name] for name in ("split", "index")}
        text = f"user\n{row['prompt'][-1]['content']}\nassistant\n"
        own = ({"input": text}, {"extra_info": place})
        dump += [{"output": f"#### {gold}", "gts": gold, **fields} for fields in own]
    dump.append({"input": "something else altogether", "output": "#### 1", "gts": "1"})
    report = score_files([write(tmp_path / "1.jsonl", dump)], train=train)
    assert set(report.sources) == {"openai/gsm8k"}
    assert (report.total.n, report.total.correct, report.unscored) == (128, 128, 1)
    assert "it answers no row of" in report.examples[0].reason
    assert training_rows(train) is training_rows(train)  # read once


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"out": "x.csv"}, UsageError, "ends in .jsonl"),
        ({"out": "x.jsonl/y.jsonl"}, OutputError, "cannot be written"),
        ({"train": "x.jsonl"}, DataError, "this is JSON Lines, not parquet"),
        ({"train": "other.parquet"}, DataError, "no 'data_source' and no 'prompt'"),
        ({"resume": True}, UsageError, "--resume needs --out"),
    ],
)
def test_wrong_arguments_are_reported_before_a_row_is_scored(tmp_path, options, error, message):
    file = write(tmp_path / "x.jsonl", [{**row, "data_source": "d"} for row in ROWS])
    write(tmp_path / "other.parquet", [{"x": 1}])
    for name in {"out", "train"} & options.keys():
        options = {**options, name: tmp_path / options[name]}
    calls = []
    with pytest.raises(error, match=message):
        score_file(file, "gsm8k", progress=calls.append, overwrite=True, **options)
    assert not calls
    with pytest.raises(UsageError, match="files that can be read again"):
        score_files(["-"], "gsm8k", resume=True, out=tmp_path / "o.jsonl")


def test_the_interval_is_over_prompts(tmp_path):
    rows = [{"output": f"#### {i % 2}", "gts": "1", "input": f"q {i}"} for i in range(64)]
    alone = [{**row, "input": ""} for row in rows * 8]
    files = (write(tmp_path / f"{i}.jsonl", r) for i, r in enumerate((rows, rows * 8, alone)))
    widths = [high - low for low, high in (score_file(f, "gsm8k").total.interval for f in files)]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[2] < widths[0] / 2


def test_memory_of_the_interval_does_not_grow_with_prompts(monkeypatch):
    """Prompts that share a cluster estimate the interval all the same."""
    monkeypatch.setattr(figures_module, "MAX_CLUSTERS", 4096)
    tally, merged, rng = Tally(), Tally(), Random(3)
    for _ in range(9000):
        part, score = Tally(), Score.right("1") if rng.random() < 0.3 else Score.wrong()
        prompt = rng.getrandbits(64)
        for own in (tally, part):
            own.add(score, 7, prompt)
        merged.merge(part)
    assert len(tally.clusters) <= 4096
    assert tally.interval == pytest.approx(wilson_interval(tally.correct, tally.n), abs=1e-3)
    assert merged == tally
    figures = ScoreFigures(1, [SkippedRow("x.jsonl:1", "no gold")], {("a", "3"): tally})
    assert ScoreFigures.from_values(json.loads(json.dumps(figures.values()))) == figures


def test_a_group_with_a_single_score_has_no_gradient():
    cells = []
    for scores in ([1, 1], [1, 0], [0, 0], [1], [0.5, 0.5, 0.5]):
        cells.append(Cell())
        for score in scores:
            cells[-1].add(Score(score, score == 1, "", Status.CORRECT))
    groups = GradientGroups.of(cells)
    assert groups == (4, 3, 1, 2, 9)
    assert groups.kinds(has_verdicts=False) == [("scores differ", 1), ("same score", 3)]
    same = [("same score, all correct", 1), ("same score, none correct", 2)]
    assert groups.kinds(has_verdicts=True) == [("scores differ", 1), *same]
