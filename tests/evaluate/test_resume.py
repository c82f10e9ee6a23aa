"""A run that was killed resumes without losing or repeating a response, and ends with the same file."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rewardkit.responses.response_log import ResponseIndex, read_response_index
from rewardkit.responses.resumable_output import part_path


def start(server, parquet, out, *more, prefix=()):
    arguments = ["--base-url", server.url, "--model", "M", "-n", "4", "--seed", "1"]
    command = [
        sys.executable,
        "-m",
        "rewardkit",
        "eval",
        "run",
        parquet,
        *arguments,
        "--out",
        out,
        *more,
    ]
    command = [*prefix, *map(str, command)]
    stderr = out.with_suffix(".stderr").open("w")
    with stderr:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.full
@pytest.mark.parametrize("per_request", [1, 4])
def test_a_run_that_is_killed_twice_ends_with_the_same_file(serve, parquet, tmp_path, per_request):
    rows, killed, complete = parquet(60), tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    more = ["--per-request", per_request, "--concurrency", 4]
    with serve() as server:
        assert start(server, rows, complete, *more).wait(60) == 0
    counts = []
    with serve(seconds=0.02) as server:
        for kill in range(2):
            requests = len(server.bodies)
            process = start(server, rows, killed, *more)
            wait_for(lambda count=requests: len(server.bodies) > count + 10)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(60)
            wait_for(lambda: server.active == 0)
            index = read_response_index(part_path(killed))
            assert len(index.rows) >= 10 * kill
            counts.append((len(server.bodies), len(index.rows)))
        assert start(server, rows, killed, *more).wait(60) == 0
    assert killed.read_bytes() == complete.read_bytes()
    # Only requests in flight at a kill, at most 4, are sent again.
    assert len(server.bodies) <= 240 // per_request + 2 * 4
    assert not part_path(killed).exists()


def test_the_index_sorts_samples_and_keeps_the_first_of_duplicates():
    index = ResponseIndex()
    for offset, (row, sample) in enumerate([(2, 1), (0, 0), (2, 0), (2, 1), (0, 0), (2, 3)]):
        index.add(row, sample, offset, "0" * 64)
    assert {row: list(places) for row, places in index.by_row().items()} == {0: [1], 2: [2, 0, 5]}


@pytest.mark.full
def test_an_interrupted_run_says_how_to_resume(serve, parquet, tmp_path):
    out = tmp_path / "m.jsonl"
    with serve(seconds=0.05) as server:
        process = start(server, parquet(60), out)
        wait_for(lambda: len(server.bodies) > 20)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert (
            f"{out}: interrupted; run the same command again to resume."
            in out.with_suffix(".stderr").read_text()
        )
        assert start(server, parquet(60), out).wait(60) == 0
    assert len(out.read_text().splitlines()) == 240


@pytest.mark.full
def test_a_full_disk_loses_no_saved_response(serve, parquet, tmp_path):
    out, complete, rows = tmp_path / "m.jsonl", tmp_path / "whole.jsonl", parquet(60)
    with serve() as server:
        assert start(server, rows, complete).wait(60) == 0
        limit = ["bash", "-c", 'ulimit -f 10; exec "$@"', "-"]  # files of up to 10 KiB
        assert start(server, rows, out, prefix=limit).wait(60) != 0
        assert "cannot be written: File too large." in out.with_suffix(".stderr").read_text()
        response_count = len(read_response_index(part_path(out)).rows)
        assert response_count > 20
    # A server of its own: the first may still count requests of the run that has ended.
    with serve() as server:
        assert start(server, rows, out).wait(60) == 0
    assert len(server.bodies) == 240 - response_count
    assert out.read_bytes() == complete.read_bytes()
