"""A run that is killed goes on: nothing is lost, nothing is asked twice, the file is the same."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rewardkit.responses.append_only_file import part_path
from rewardkit.responses.response_log import ResponseIndex, read_response_index


def start(server, parquet, out, *more, before=()):
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
    command = [*before, *map(str, command)]
    said = out.with_suffix(".said").open("w")
    with said:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.full
@pytest.mark.parametrize("per_request", [1, 4])
def test_a_run_killed_twice_ends_with_the_file_of_one_that_was_not(
    serve, parquet, tmp_path, per_request
):
    rows, killed, whole = parquet(60), tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    more = ["--per-request", per_request, "--concurrency", 4]
    with serve() as server:
        assert start(server, rows, whole, *more).wait(60) == 0
    asked = []
    with serve(seconds=0.02) as server:
        for kill in range(2):
            before = len(server.bodies)
            process = start(server, rows, killed, *more)
            wait_for(lambda seen=before: len(server.bodies) > seen + 10)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(60)
            wait_for(lambda: server.active == 0)
            kept = read_response_index(part_path(killed))
            assert len(kept.rows) >= 10 * kill
            asked.append((len(server.bodies), len(kept.rows)))
        assert start(server, rows, killed, *more).wait(60) == 0
    assert killed.read_bytes() == whole.read_bytes()
    # Only what was under way at a kill, 4 requests at most, is asked once more.
    assert len(server.bodies) <= 240 // per_request + 2 * 4
    assert not part_path(killed).exists()


def test_responses_are_in_the_order_of_their_samples_and_of_two_of_one_the_first_counts():
    kept = ResponseIndex()
    for offset, (row, sample) in enumerate([(2, 1), (0, 0), (2, 0), (2, 1), (0, 0), (2, 3)]):
        kept.add(row, sample, offset, "0" * 64)
    assert {row: list(found) for row, found in kept.by_row().items()} == {0: [1], 2: [2, 0, 5]}


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
            in out.with_suffix(".said").read_text()
        )
        assert start(server, parquet(60), out).wait(60) == 0
    assert len(out.read_text().splitlines()) == 240


@pytest.mark.full
def test_a_disk_that_is_full_costs_no_response_that_was_kept(serve, parquet, tmp_path):
    out, whole, rows = tmp_path / "m.jsonl", tmp_path / "whole.jsonl", parquet(60)
    with serve() as server:
        assert start(server, rows, whole).wait(60) == 0
        limit = ["bash", "-c", 'ulimit -f 10; exec "$@"', "-"]  # files of up to 10 KiB
        assert start(server, rows, out, before=limit).wait(60) != 0
        assert "cannot be written: File too large." in out.with_suffix(".said").read_text()
        kept = len(read_response_index(part_path(out)).rows)
        assert kept > 20
        asked = len(server.bodies)
        assert start(server, rows, out).wait(60) == 0
    assert len(server.bodies) == asked + 240 - kept
    assert out.read_bytes() == whole.read_bytes()
