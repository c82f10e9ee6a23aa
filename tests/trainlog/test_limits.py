"""Logs may come from anyone: reading is bounded in memory, and showing them is harmless."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from random import Random

import pytest

from rewardkit.errors import DataError
from rewardkit.trainlog import files, training_run
from rewardkit.trainlog.console_reader import MAX_LINE_BYTES
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.tables import write_csv
from rewardkit.trainlog.training_run import MAX_METRICS, TableBuilder
from tests.trainlog.runs import make_run


def test_metrics_beyond_the_limit_and_a_step_with_only_such_are_left_out_and_counted():
    metrics = {f"m/{i}": 1.0 for i in range(MAX_METRICS)}
    run = make_run({1: metrics, 2: {"other/0": 1.0}, 3: {"m/0": 2.0, "other/0": 1.0}})
    assert run.steps == (1, 3)
    assert (len(run.table), run.series("m/0")) == (MAX_METRICS, [(1, 1.0), (3, 2.0)])
    assert "more than 20,000 different metrics" in run.examples[0].reason
    assert run.unread == 2


def test_values_beyond_the_limit_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(training_run, "MAX_VALUES", 100)
    run = make_run({step: {"a/b": 1.0, "a/c": 1.0, "a/d": 1.0} for step in range(50)})
    assert (run.steps[-1], run.unread) == (32, 17)
    assert "more than 100 values" in run.examples[0].reason


def test_rows_dropped_by_a_restart_free_their_room(monkeypatch):
    monkeypatch.setattr(training_run, "MAX_VALUES", 10)
    builder = TableBuilder()
    for _ in range(20):
        builder.is_launched = True
        for step in range(5):
            builder.add(step, {"a/b": 1.0}, "")
    assert builder.run(name="", path="", source="").unread == 0


def test_an_overlong_step_line_is_left_out_and_counted(tmp_path):
    path = tmp_path / "run.log"
    line = "step:2 - " + "a/b:1.000 - " * (MAX_LINE_BYTES // 12 + 1) + "a/b:2.000"
    path.write_text(f"step:1 - a/b:1.000\n{line}\nstep:3 - a/b:3.000\n")
    run = read_run(path)
    assert (run.steps, run.unread) == ((1, 3), 1)
    assert "the line has 4,1" in run.examples[0].reason


@pytest.mark.parametrize("tail", ["\n", ""])
def test_an_overlong_jsonl_line_is_skipped_and_counted_once(tmp_path, tail):
    """The end of the line is not read as a record, wherever the file is split into pieces."""
    record = '{"step": %d, "data": {"a/b": 1}}'
    path = tmp_path / "run.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(f"{record % 1}\n" + " " * (3 * files.MAX_LINE_BYTES) + record % 2)
        file.write(f"\n{record % 3}\nx\n{record % 4}" + tail)
    run = read_run(path)
    assert run.steps == (1, 3, 4)
    assert [line.where for line in run.examples] == ["line 2", "line 4"]
    assert "more than the limit of 8,388,608" in run.examples[0].reason


def test_an_overlong_line_of_a_dump_is_left_out_and_counted(tmp_path):
    with (tmp_path / "1.jsonl").open("wb") as file:
        file.write(b'{"input": "q", "output": "a", "score": 1.0}\n')
        file.truncate(70 << 20)  # sparse
    run = read_run(tmp_path)
    assert (run.steps, run.unread, run.examples[0].where) == ((1,), 1, "1.jsonl:2")
    assert "more than the limit of 67,108,864" in run.examples[0].reason


def test_a_damaged_gzip_is_one_clear_error(tmp_path):
    """The damage is noticed while unpacking or by the checksum."""
    path = tmp_path / "run.log.gz"
    random = Random(0)
    compressed = gzip.compress(b"step:1 - a/b:1.000\n" * 500 + random.randbytes(20_000))
    for _ in range(50):
        data, at = bytearray(compressed), random.randrange(20, len(compressed) - 30)
        data[at : at + 20] = random.randbytes(20)
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"run\.log\.gz: the file is damaged"):
            read_run(path)


BOMBS = {
    "one line of a console log": b"\0" * (1 << 20),
    "one step line": b"step:1 - a/b:1.000 - " * 50_000,
    "one line of brackets in JSON": b"[]," * 350_000,
}
#: Prints the steps of a log, and the megabytes that this takes; ru_maxrss would include the parent's.
READ = r"""
import re, sys; from rewardkit.trainlog.read import read_run
print(*read_run(sys.argv[1]).steps)
print(int(re.search(r'VmHWM:\s*([0-9]+)', open('/proc/self/status').read())[1]) >> 10)
"""


@pytest.mark.full
@pytest.mark.parametrize("piece", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("head", [b"step:1 - a/b:1.0\n", b'{"step": 1, "data": {"a/b": 1}}\n'])
def test_a_compressed_log_of_half_a_gigabyte_is_read_in_bounded_memory(tmp_path, piece, head):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.writelines([head, *[piece] * 512])
    output = subprocess.check_output([sys.executable, "-c", READ, str(path)], text=True)
    steps, megabytes = output.split()
    assert steps == "1"
    assert int(megabytes) < 200


@pytest.mark.parametrize(
    "name", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "＝1+1"]
)
def test_names_that_start_like_a_formula_get_an_apostrophe_in_csv(tmp_path, name):
    write_csv([make_run({1: {name: -1.5}}, name)] * 2, tmp_path / "out.csv", overwrite=False)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows == [["run", "step", f"'{name}"], *[[f"'{name}", "1", "-1.5"]] * 2]
