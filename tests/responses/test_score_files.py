"""`score_files`: every file format, many processes, interrupted runs, and scorers that fail."""

import gzip
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.errors import DataError, OutputError, SourceError, UsageError
from rewardkit.responses import chunks as chunks_module
from rewardkit.responses import resumable_output as output_module
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.report.page import write_report
from rewardkit.responses.resumable_output import ResumableOutput, output_paths
from rewardkit.responses.samples import Sample, SkippedRow
from rewardkit.responses.score import score_files
from rewardkit.responses.tally import (
    MAX_CLUSTERS,
    ScoreFigures,
    Tally,
    prompt_group,
    prompt_key,
)
from rewardkit.row import read_rows
from rewardkit.statistics import wilson_interval

ROWS = [
    {"output": f"so #### {i % 7}", "gts": str(i % 5), "step": i // 100, "score": 0.5}
    for i in range(400)
]
RIGHT = sum(i % 7 == i % 5 for i in range(400))


def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines(rows)))
    elif path.name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(lines(rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_bytes(lines(rows))
    return str(path)


@pytest.fixture
def small_chunks(monkeypatch):
    """Use chunks of a few rows, so that small files have many."""
    monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(chunks_module, "CHUNK_ROWS", 32)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_every_file_format_gives_the_same_scores(tmp_path, suffix):
    file = write(tmp_path / f"x.{suffix}", ROWS)
    report = score_files([file], "gsm8k")
    assert (report.total.n, report.total.correct, report.unscored) == (400, RIGHT, 0)
    assert {step: tally.n for step, tally in report.tallies["step"].items()} == {
        str(step): 100 for step in range(4)
    }


def test_files_of_folders_and_patterns_are_sorted_by_number(tmp_path):
    for step in (10, 9, 1):
        write(tmp_path / f"dump/{step}.jsonl", ROWS[:3])
    write(tmp_path / "dump/notes.txt", [])
    names = [name.rpartition("/")[2] for name in expand_paths([str(tmp_path / "dump")])]
    assert names == ["1.jsonl", "9.jsonl", "10.jsonl"]
    assert len(expand_paths([str(tmp_path / "dump/1*.jsonl")])) == 2
    with pytest.raises(SourceError, match="no such file, and no files of that pattern"):
        expand_paths([str(tmp_path / "nope*")])
    with pytest.raises(UsageError, match="is read alone"):
        expand_paths(["-", str(tmp_path / "dump")])
    dump = str(tmp_path / "dump")
    assert len(expand_paths([dump, dump])) == len(expand_paths([dump]))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe is not a regular file"):
        expand_paths([str(tmp_path / "pipe")])


def test_a_row_with_several_responses_has_a_score_for_each(tmp_path):
    rows = [{"responses": ["#### 1", "#### 2", None], "ground_truth": "1", "data_source": "a"}]
    out = tmp_path / "out.jsonl"
    report = score_files([write(tmp_path / "x.parquet", rows)], "gsm8k", out=out)
    assert (report.total.n, report.total.correct, report.unscored) == (2, 1, 1)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["responses"], row["sample"], row["acc"]) for row in lines] == [
        ("#### 1", 0, 1.0),
        ("#### 2", 1, 0.0),
    ]
    unscored = json.loads((tmp_path / "out.jsonl.unscored.jsonl").read_text())
    assert "NoneType, not text" in unscored["reason"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_the_output_does_not_depend_on_the_number_of_processes(tmp_path, small_chunks, suffix):
    file = write(tmp_path / "x.jsonl", ROWS)
    outs = [tmp_path / f"{jobs}.{suffix}" for jobs in (1, 2)]
    reports = [
        score_files([file], "gsm8k", out=out, jobs=jobs + 1) for jobs, out in enumerate(outs)
    ]
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert reports[0].summary() == reports[1].summary()
    if suffix == "parquet":
        row = next(read_rows(outs[0]))
        assert (row["step"], row["score"], json.loads(row["row"])["score_before"]) == (0, 1.0, 0.5)


class StopError(Exception):
    """Interrupts a run in a test."""


@pytest.mark.parametrize("tail", [b"", b'{"half a line'])
def test_a_resumed_run_has_every_row_once(tmp_path, small_chunks, tail):
    rows = [*ROWS[:200], {"nothing": 1}, *ROWS[200:]]
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.jsonl"
    complete = score_files([file], "gsm8k", out=tmp_path / "whole.jsonl")
    rows_done = 0

    def stop(n):
        nonlocal rows_done
        rows_done += n
        if rows_done > 250:
            raise StopError

    with pytest.raises(StopError):
        score_files([file], "gsm8k", out=out, progress=stop)
    assert not out.exists()
    part, _, _ = output_paths(out)
    with part.open("ab") as file_object:  # as after a kill during a write
        file_object.write(tail)
    with pytest.raises(OutputError, match="--resume continues it"):
        score_files([file], "gsm8k", out=out)
    with pytest.raises(DataError, match="scored in another way"):
        score_files([file], "math", out=out, resume=True)
    rerun_rows = []
    report = score_files([file], "gsm8k", out=out, resume=True, progress=rerun_rows.append)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert report.total == complete.total
    assert (report.total.n, report.unscored) == (400, 1)
    assert 0 < sum(rerun_rows) < 401 - 200
    assert not any(path.exists() for path in output_paths(out))


BAD = """
import os, sys

def score(response, ground_truth, extra_info=None):
    from rewardkit.scorers.base import Score, Status
    n = int(response.rpartition(" ")[2])
    if n == 170:
        raise ValueError("seventy")
    if n == 180:
        sys.exit(3)
    if n == 190:
        return 0.5
    if n == 200 and {dies}:
        os._exit(1)
    return Score(1.0, True, "x", Status.CORRECT)
"""


@pytest.mark.parametrize(("jobs", "dies"), [(1, False), (2, True)])
def test_a_scorer_that_fails_on_some_rows_loses_only_those(tmp_path, small_chunks, jobs, dies):
    (tmp_path / "bad.py").write_text(BAD.format(dies=dies))
    rows = [{"response": f"row {i}", "ground_truth": "1"} for i in range(300)]
    file = write(tmp_path / "x.jsonl", rows)
    report = score_files([file], f"{tmp_path}/bad.py:score", jobs=jobs, out=tmp_path / "out.jsonl")
    reasons = {row.where.rpartition(":")[2]: row.reason for row in report.examples}
    assert reasons["171"] == "the scorer raised ValueError: seventy"
    assert reasons["181"] == "the scorer raised ScorerExitedError: it calls sys.exit(3)"
    assert "it returned" in reasons["191"] or "not a Score" in reasons["191"]
    assert ("201" in reasons) == dies
    assert report.total.n == 300 - len(reasons)
    order = [
        json.loads(line)["response"] for line in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert order == [row["response"] for i, row in enumerate(rows, 1) if str(i) not in reasons]


def test_dumps_without_a_data_source_are_looked_up_in_the_training_parquet(tmp_path):
    train = tmp_path / "train.parquet"
    rewardkit.prep("gsm8k", train, sample=True)
    dump = [
        {
            "input": f"user\n{row['prompt'][-1]['content']}\nassistant\n",
            "output": f"#### {row['reward_model']['ground_truth']}",
            "gts": row["reward_model"]["ground_truth"],
            "step": 1,
        }
        for row in read_rows(train)
    ]
    dump.append({"input": "something else altogether", "output": "#### 1", "gts": "1"})
    report = score_files([write(tmp_path / "1.jsonl", dump)], train=train)
    assert set(report.tallies["data_source"]) == {"openai/gsm8k"}
    assert (report.total.n, report.total.correct, report.unscored) == (64, 64, 1)
    assert "it answers no row of" in report.examples[0].reason


def test_rows_with_an_index_are_looked_up_by_it(tmp_path):
    train = tmp_path / "train.parquet"
    rewardkit.prep("gsm8k", train, sample=True)
    dump = [
        {"output": "#### 1", "gts": row["reward_model"]["ground_truth"], "extra_info": info}
        for row in read_rows(train)
        for info in [{name: row["extra_info"][name] for name in ("split", "index")}]
    ]
    report = score_files([write(tmp_path / "1.jsonl", dump)], train=train)
    assert (set(report.tallies["data_source"]), report.unscored) == ({"openai/gsm8k"}, 0)


def test_a_parquet_output_holds_any_dump_and_can_be_scored_again(tmp_path):
    rows = [
        {"output": "\ud800 #### 3", "gts": "3", "data_source": 5, "step": 10**23},
        {"output": "#### 4", "gts": 4, "data_source": ["x"], "step": 2, "input": "what?"},
    ]
    out = tmp_path / "out.parquet"
    score_files([write(tmp_path / "x.jsonl", rows)], "gsm8k", out=out)
    first_row, second_row = read_rows(out)
    assert (first_row["response"], first_row["data_source"], first_row["step"]) == (
        "\\ud800 #### 3",
        "5",
        None,
    )
    assert (second_row["ground_truth"], second_row["step"], second_row["acc"]) == ("4", 2, 1.0)
    rescored = score_files([str(out)], "gsm8k", out=tmp_path / "again.jsonl")
    assert (rescored.total.n, rescored.total.correct) == (2, 2)
    assert json.loads((tmp_path / "again.jsonl").read_text().splitlines()[1])["input"] == "what?"


def test_a_parquet_output_has_response_and_gold_under_fixed_names(tmp_path):
    rows = [{"said": "#### 1", "reward_model": {"ground_truth": "1"}}]
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.parquet"
    score_files([file], "gsm8k", response_key="said", out=out)
    row = next(read_rows(out))
    assert (row["response"], row["ground_truth"]) == ("#### 1", "1")


def test_a_score_that_is_not_finite_is_reported(tmp_path):
    (tmp_path / "nan.py").write_text(
        "from rewardkit.scorers.base import Score, Status\n"
        "def score(r, g, e=None): return Score(float('nan'), False, '', Status.WRONG)\n"
    )
    file = write(tmp_path / "x.jsonl", ROWS[:2])
    report = score_files([file], f"{tmp_path}/nan.py:score")
    assert (report.total.n, report.unscored) == (0, 2)
    assert "its score is nan" in report.examples[0].reason


def test_resume_requires_an_output_readable_files_and_a_valid_state(tmp_path):
    file, out = write(tmp_path / "x.jsonl", ROWS[:2]), tmp_path / "out.jsonl"
    with pytest.raises(UsageError, match="--resume needs --out"):
        score_files([file], "gsm8k", resume=True)
    with pytest.raises(UsageError, match="files that can be read again"):
        score_files(["-"], "gsm8k", resume=True, out=out)
    output_paths(out)[2].write_text("")
    with pytest.raises(DataError, match="not a state that this version wrote"):
        score_files([file], "gsm8k", resume=True, out=out)
    with pytest.raises(OutputError, match="cannot be written"):
        score_files([file], "gsm8k", out=tmp_path / "x.jsonl" / "y.jsonl")


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_lines_before_the_cut_of_a_truncated_compressed_file_are_scored(
    tmp_path, suffix, share
):
    rng = Random(0)  # incompressible, so that a share of the file is the same share of the rows
    rows = [{**row, "input": rng.randbytes(2000).hex()} for row in ROWS]
    good, file = write(tmp_path / "1.jsonl", ROWS[:3]), write(tmp_path / f"2.{suffix}", rows)
    data = (tmp_path / f"2.{suffix}").read_bytes()
    (tmp_path / f"2.{suffix}").write_bytes(data[: 10 + int(share * len(data))])
    report = score_files([file, good], "gsm8k")
    count = report.total.n - 3
    assert count >= 400 * share - 70  # zstd reads a block of 128 kB completely or not at all
    assert count < 400
    (only,) = report.examples
    assert "cut off or damaged from here on" in only.reason
    assert only.where == f"{file}:{count + 1}"


def test_a_file_that_is_not_compressed_is_reported_and_the_others_are_scored(tmp_path):
    (tmp_path / "1.jsonl.gz").write_bytes(lines(ROWS[:5]))
    file = write(tmp_path / "2.jsonl", ROWS[:3])
    report = score_files([str(tmp_path / "1.jsonl.gz"), file], "gsm8k")
    assert (report.total.n, report.unscored) == (3, 1)
    assert "Not a gzipped file" in report.examples[0].reason


def test_a_list_of_scores_has_one_for_each_response_of_the_row(tmp_path):
    row = {"responses": ["#### 1", "#### 2"], "ground_truth": "1", "acc": [1.0, 0.0], "score": [7]}
    out = tmp_path / "out.jsonl"
    score_files([write(tmp_path / "x.parquet", [row])], "gsm8k", out=out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["acc"], r["acc_before"], r["score_before"]) for r in lines] == [
        (1.0, 1.0, [7]),
        (0.0, 0.0, [7]),
    ]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"out": "x.csv"}, UsageError, "ends in .jsonl or .parquet"),
        ({"out": "x.jsonl.gz"}, UsageError, "ends in .jsonl or .parquet"),
        ({"address": "auto"}, UsageError, "add --engine ray"),
        ({"train": "nope.parquet"}, SourceError, "no such file"),
        ({"train": "x.jsonl"}, DataError, "this is JSON Lines, not parquet"),
        ({"train": "other.parquet"}, DataError, "no 'data_source' and no 'prompt'"),
    ],
)
def test_wrong_arguments_are_reported_before_a_row_is_read(tmp_path, options, error, message):
    file = write(tmp_path / "x.jsonl", [{**row, "data_source": "d"} for row in ROWS])
    write(tmp_path / "other.parquet", [{"x": 1}])
    arguments = {
        name: tmp_path / value if name != "address" else value for name, value in options.items()
    }
    calls = []
    with pytest.raises(error, match=message):
        score_files([file], "gsm8k", progress=calls.append, **arguments)
    assert not calls
    assert not list(tmp_path.glob(".x*"))


def test_the_interval_is_over_prompts(tmp_path):
    rows = [
        {"input": f"question {i}", "output": f"#### {i % 2}", "gts": "1", "step": 1}
        for i in range(64)
    ]
    single, repeated = (
        score_files([write(tmp_path / f"{n}.jsonl", rows * n)], "gsm8k").total for n in (1, 8)
    )
    ungrouped = score_files(
        [write(tmp_path / "x.jsonl", [{**r, "input": ""} for r in rows * 8])], "gsm8k"
    )
    widths = [
        high - low for low, high in (single.interval, repeated.interval, ungrouped.total.interval)
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)
    assert widths[2] < widths[0] / 2


def test_rows_of_two_sources_with_the_same_index_are_two_prompts():
    """Every data source and split counts its rows from 0."""
    fields = [
        {"data_source": source, "extra_info": {"index": 0, "split": split}}
        for source in "ab"
        for split in ("train", "test")
    ]
    samples = [Sample("x:1", "", "", row["extra_info"], row) for row in fields]
    assert len({prompt_group(sample, "") for sample in samples}) == 4
    assert len({prompt_group(sample, "") for sample in samples[:1] * 2}) == 1
    assert prompt_group(Sample("x:7", "", "", {}, {}), "") == "x:7"


@pytest.mark.parametrize(("prompts", "responses"), [(50, 8), (700, 1), (5000, 2)])
def test_score_and_report_have_the_same_interval_for_one_file(tmp_path, prompts, responses):
    rng = Random(3)
    ease = [rng.random() for _ in range(prompts)]
    rows = [
        {
            "input": f"q{i}",
            "response": f"#### {int(rng.random() < ease[i])}",
            "ground_truth": "1",
            "step": step,
            "data_source": f"s{i % 2}",
        }
        for i in range(prompts)
        for step in range(responses)
    ]
    file = write(tmp_path / "x.jsonl", rows)
    scored = score_files([file], "gsm8k", jobs=2)
    totals = write_report([file], tmp_path / "x.html", scorer="gsm8k").totals
    for of_score, key_of in (
        ("total", lambda *_: ""),
        ("data_source", lambda source, _: source),
        ("step", lambda _, step: str(step)),
    ):
        of_report = totals.accuracies(key_of)
        for name, tally in scored.tallies[of_score].items():
            interval = of_report[name].low, of_report[name].high
            assert interval == pytest.approx(tally.interval, abs=1e-12)
    total = scored.total
    if responses == 1:
        assert total.interval == wilson_interval(total.correct, total.n)
    assert len(total.prompts) <= min(prompts, MAX_CLUSTERS)


def test_memory_of_the_interval_does_not_grow_with_prompts():
    tally, merged = Tally(), Tally()
    for i in range(100_000):
        part = Tally()
        for one in (tally, part):
            one.count("correct", bool(i % 3), prompt_key(f"prompt {i}"), 1)
        merged.merge(part)
    assert len(tally.prompts) == MAX_CLUSTERS
    assert merged == tally
    figures = ScoreFigures(1, [SkippedRow("x.jsonl:1", "no gold")], 2, {"total": {"": tally}})
    assert ScoreFigures.from_values(json.loads(json.dumps(figures.as_values()))) == figures
    assert tally.interval == pytest.approx(wilson_interval(tally.correct, tally.n), abs=2e-4)


def test_a_small_file_is_shared_among_processes_for_a_custom_scorer(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, time\nfrom rewardkit.scorers.base import Score, Status\n"
        "def score(r, g, e=None):\n"
        "    time.sleep(0.002)\n"
        "    return Score(1.0, True, str(os.getpid()), Status.CORRECT)\n"
    )
    file = write(tmp_path / "x.jsonl", [{**row, "input": "x" * 1000} for row in ROWS])
    out = tmp_path / "out.jsonl"
    score_files([file], f"{tmp_path}/slow.py:score", jobs=2, out=out)
    assert len({json.loads(line)["pred"] for line in out.read_text().splitlines()}) == 2


def test_the_state_of_a_run_is_not_written_for_every_chunk(tmp_path, small_chunks, monkeypatch):
    writes = []
    save = ResumableOutput.save

    def counted(output):
        writes.append(output.state.units)
        save(output)

    monkeypatch.setattr(ResumableOutput, "save", counted)
    monkeypatch.setattr(output_module, "SAVE_SECONDS", 1000.0)
    score_files([write(tmp_path / "x.jsonl", ROWS)], "gsm8k", out=tmp_path / "out.jsonl")
    assert len(writes) == 2  # after the first chunk, and at the end
    assert writes[0] == 1 < writes[1]


class FullDisk:
    """File that accepts half of a text, like a disk that becomes full."""

    def __init__(self, file):
        self.file = file

    def write(self, text):
        self.file.write(text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    def truncate(self, size):
        self.file.truncate(size)

    def fileno(self):
        return self.file.fileno()


@pytest.fixture
def disk_full_at(monkeypatch):
    """Make the disk full at the nth write of scored rows."""

    def fail_at(n):
        write_rows, calls = ResumableOutput.write, []

        def counted(output, lines, unscored):
            calls.append(1)
            if len(calls) == n:
                output._files[0].file = FullDisk(output._files[0].file)
            write_rows(output, lines, unscored)

        monkeypatch.setattr(ResumableOutput, "write", counted)

    return fail_at


@pytest.mark.parametrize("seconds", [0.0, 1000.0])
def test_a_run_resumes_correctly_after_a_full_disk(
    tmp_path, small_chunks, disk_full_at, monkeypatch, seconds
):
    monkeypatch.setattr(output_module, "SAVE_SECONDS", seconds)
    file, out = write(tmp_path / "x.jsonl", ROWS), tmp_path / "out.jsonl"
    complete = score_files([file], "gsm8k", out=tmp_path / "whole.jsonl")
    disk_full_at(4)
    with pytest.raises(OutputError, match="No space left"):
        score_files([file], "gsm8k", out=out)
    monkeypatch.undo()
    monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 2000)
    report = score_files([file], "gsm8k", out=out, resume=True)
    assert report.summary() == complete.summary()
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def interrupt_run(tmp_path, rows):
    """Interrupt a run; return its input, its output, and the output of a complete run."""
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.jsonl"
    complete = tmp_path / "whole.jsonl"
    score_files([file], "gsm8k", out=complete)
    chunks = []

    def stop(n):
        chunks.append(n)
        if sum(chunks) > len(rows) // 2:
            raise StopError

    with pytest.raises(StopError):
        score_files([file], "gsm8k", out=out, progress=stop)
    return file, out, complete


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_run_interrupted_while_it_finishes_its_output_can_be_resumed(
    tmp_path, small_chunks, monkeypatch, suffix
):
    """After an interruption at any step, the files that the next run needs are there."""
    rows = [*ROWS[:200], {"nothing": 1}, *ROWS[200:]]
    file, complete = write(tmp_path / "x.jsonl", rows), tmp_path / f"whole.{suffix}"
    score_files([file], "gsm8k", out=complete)
    for step in ("finish", "remove"):
        out = tmp_path / f"{step}.{suffix}"

        def stop(*_, **__):
            raise StopError

        with monkeypatch.context() as patch:
            patch.setattr(ResumableOutput, step, stop)
            if step == "remove":
                patch.setattr("pathlib.Path.replace", stop)
            with pytest.raises(StopError):
                score_files([file], "gsm8k", out=out)
        report = score_files([file], "gsm8k", out=out, resume=True)
        assert (report.total.n, report.unscored, len(report.examples)) == (400, 1, 1)
        assert out.read_bytes() == complete.read_bytes()
        unscored = "{}.unscored.jsonl"
        assert (tmp_path / unscored.format(out.name)).read_bytes() == (
            tmp_path / unscored.format(complete.name)
        ).read_bytes()


@pytest.mark.parametrize("rows", [ROWS[:2], [*ROWS[:2], {"nothing": 1}]])
@pytest.mark.parametrize("text", ["my notes\n", "\n", '{"where": "here"}\n', "{" * 10**6])
def test_a_file_of_the_users_at_the_name_of_unscored_rows_is_replaced_only_with_overwrite(
    tmp_path, rows, text
):
    """Nor is it removed by a run that scores every row; it is refused before a row is scored."""
    file, out = write(tmp_path / "x.jsonl", rows), tmp_path / "out.jsonl"
    mine = tmp_path / "out.jsonl.unscored.jsonl"
    mine.write_text(text)
    scored = []
    with pytest.raises(OutputError, match=r"unscored\.jsonl exists; add --overwrite"):
        score_files([file], "gsm8k", out=out, progress=scored.append)
    assert (mine.read_text(), scored, out.exists()) == (text, [], False)
    score_files([file], "gsm8k", out=out, overwrite=True)
    assert out.exists()
    assert mine.exists() == (len(rows) > 2)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_a_link_at_the_name_of_unscored_rows_is_never_followed(tmp_path, name, overwrite):
    file, out = write(tmp_path / "x.jsonl", [{"nothing": 1}, *ROWS[:2]]), tmp_path / name
    victim, link = tmp_path / "victim", tmp_path / f"{name}.unscored.jsonl"
    link.symlink_to(victim)
    for text in (None, "mine"):
        if text:
            victim.write_text(text)
        with pytest.raises(OutputError, match="is a symbolic link that rewardkit did not create"):
            score_files([file], "gsm8k", out=out, overwrite=overwrite)
        assert (victim.read_text() if victim.exists() else None) == text
    assert not out.exists()


def test_unscored_rows_without_an_output_do_not_block_the_next_run(tmp_path):
    """As a run leaves them that was killed before its last rename."""
    rows = [{"nothing": 1}, *ROWS[:2]]
    file, out = write(tmp_path / 'a "quoted" name.jsonl', rows), tmp_path / "out.jsonl"
    score_files([file], "gsm8k", out=out)
    out.unlink()
    assert score_files([file], "gsm8k", out=out).unscored == 1


@pytest.mark.parametrize("file_number", [0, 1])
@pytest.mark.parametrize("damage", ["cut", "zeros", "gone"])
def test_a_part_that_does_not_match_its_state_is_refused(
    tmp_path, small_chunks, damage, file_number
):
    """A power cut may leave less than was written, or zeros in its place."""
    rows = [{"nothing": 1}, *ROWS]
    file, out, _ = interrupt_run(tmp_path, rows)
    part = output_paths(out)[file_number]
    text = part.read_bytes()
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(text[:-10] + (b"" if damage == "cut" else bytes(10)))
    with pytest.raises(DataError, match="is not what the interrupted run wrote"):
        score_files([file], "gsm8k", out=out, resume=True)
    assert not part.exists() or part.stat().st_size <= len(text)  # a refused part is not extended
    assert score_files([file], "gsm8k", out=out, overwrite=True).total.n == 400


def test_a_second_run_to_the_same_output_is_refused(tmp_path, small_chunks):
    file, out = write(tmp_path / "x.jsonl", ROWS), tmp_path / "out.jsonl"
    errors = []

    def start_another(_):
        for options in ({}, {"overwrite": True}, {"resume": True}):
            if len(errors) < 3:
                with pytest.raises(OutputError) as error:
                    score_files([file], "gsm8k", out=out, **options)
                errors.append(str(error.value))

    assert score_files([file], "gsm8k", out=out, progress=start_another).total.n == 400
    assert all("another run is writing it" in message for message in errors)
    assert len(out.read_text().splitlines()) == 400


@pytest.mark.parametrize("options", [{"overwrite": True}, {"resume": True}])
def test_without_any_lock_no_output_has_the_rows_of_two_runs(
    tmp_path, small_chunks, monkeypatch, options
):
    """On a file system on which even the lock fails: one of the runs ends with an error at least."""
    file, out = write(tmp_path / "x.jsonl", ROWS), tmp_path / "out.jsonl"
    lock = SimpleNamespace(require=lambda: None)
    monkeypatch.setattr(output_module, "lock_part", lambda *_: nullcontext(lock))
    errors, starts = [], []

    def start_another(_):
        if not starts:
            starts.append(1)
            try:
                score_files([file], "gsm8k", out=out, **options)
            except (OutputError, DataError) as error:
                errors.append(str(error))

    try:
        score_files([file], "gsm8k", out=out, overwrite=True, progress=start_another)
    except (OutputError, DataError) as error:
        errors.append(str(error))
    assert any("another run has written" in error for error in errors)
    assert not out.exists() or len(out.read_text().splitlines()) == 400


@pytest.mark.parametrize("file_number", [0, 1])
def test_a_part_that_is_not_as_its_state_says_does_not_become_the_output(
    tmp_path, small_chunks, monkeypatch, file_number
):
    file, out = write(tmp_path / "x.jsonl", [{"nothing": 1}, *ROWS]), tmp_path / "out.jsonl"
    finish = ResumableOutput.finish

    def write_too(output, out, **options):
        with output_paths(out)[file_number].open("ab") as part:
            part.write(b'{"of": "another run"}\n')
        finish(output, out, **options)

    monkeypatch.setattr(ResumableOutput, "finish", write_too)
    expected = r"another run has written 22 bytes to it, too\. Wait .* --overwrite starts again"
    with pytest.raises(DataError, match=expected):
        score_files([file], "gsm8k", out=out)
    assert not out.exists()


def test_a_changed_input_of_the_same_size_and_time_is_detected(tmp_path, small_chunks):
    file, out, _ = interrupt_run(tmp_path, ROWS)
    path = tmp_path / "x.jsonl"
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"so #### 1", b"so #### 2", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(DataError, match="read other files"):
        score_files([file], "gsm8k", out=out, resume=True)


def test_a_symbolic_link_as_output_stays_and_one_as_part_is_refused(tmp_path):
    file = write(tmp_path / "x.jsonl", ROWS[:5])
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real/out.jsonl", tmp_path / "out.jsonl"
    target.write_text("old")
    link.symlink_to(target)
    score_files([file], "gsm8k", out=link, overwrite=True)
    assert link.is_symlink()
    assert len(target.read_text().splitlines()) == 5
    second_output = tmp_path / "other.jsonl"
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for planted in output_paths(second_output):
        planted.symlink_to(victim)
        with pytest.raises(OutputError, match="symbolic link that rewardkit did not create"):
            score_files([file], "gsm8k", out=second_output, overwrite=True)
        planted.unlink()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_a_line_that_is_too_long_is_the_only_one_that_fails(
    tmp_path, monkeypatch, small_chunks, suffix
):
    monkeypatch.setattr(chunks_module, "MAX_LINE_BYTES", 5000)
    long = {"output": "x" * 20_000, "gts": "1"}
    rows = [*ROWS[:50], long, *ROWS[50:100], long]
    report = score_files([write(tmp_path / f"x.{suffix}", rows)], "gsm8k")
    assert report.total.n == 100
    assert [row.where.rpartition(":")[2] for row in report.examples] == ["51", "102"]
    assert {row.reason for row in report.examples} == {"the line is longer than 5,000 bytes"}


@pytest.mark.full
def test_a_compressed_line_of_a_gigabyte_does_not_fill_the_memory(tmp_path):
    """Three megabytes of gzip are three gigabytes of text; the child reports its peak memory."""
    file = tmp_path / "x.jsonl.gz"
    with gzip.open(file, "wb", compresslevel=1) as stream:
        stream.write(b'{"output": "')
        for _ in range(1024):
            stream.write(b"x" * (1 << 20))
        stream.write(b'"}\n' + lines(ROWS[:3]))
    script = (
        "import re, sys; from rewardkit.responses.score import score_files; "
        "r = score_files([sys.argv[1]], 'gsm8k'); "  # ru_maxrss would include the parent's memory
        "peak = re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1]; "
        "print(r.total.n, r.unscored, peak)"
    )
    result = subprocess.run([sys.executable, "-c", script, file], capture_output=True, check=True)
    scored_count, unscored_count, peak = map(int, result.stdout.split())
    assert (scored_count, unscored_count) == (3, 1)
    assert peak < 500_000  # kilobytes


def test_fast_chunks_are_sent_to_a_process_together(tmp_path, small_chunks, monkeypatch):
    """The figures, the rows and their order are the same as with single chunks."""
    from rewardkit.responses import score as score_module

    (tmp_path / "mine.py").write_text(
        "from rewardkit.scorers.base import Score, Status\n"
        "def score(r, g, e=None): return Score(1.0, True, r, Status.CORRECT)\n"
    )
    file, sizes = write(tmp_path / "x.jsonl", ROWS), []
    score_together = score_module.score_chunks

    def counted(plan, some):
        sizes.append(len(some))
        return score_together(plan, some)

    monkeypatch.setattr(score_module, "score_chunks", counted)
    for seconds, largest in ((1000.0, True), (0.0, False)):
        sizes.clear()
        monkeypatch.setattr(score_module, "GROUP_SECONDS", seconds)
        out = tmp_path / f"{largest}.jsonl"
        score_files([file], f"{tmp_path}/mine.py:score", out=out)
        assert (max(sizes) > 1) is largest
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["pred"] for row in rows] == [row["output"] for row in ROWS]
