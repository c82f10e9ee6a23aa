"""A run that was killed, or gets a larger n, goes on without losing or repeating a response."""

import os
import signal
import subprocess
import sys
import time

import pytest

from rewardkit.errors import DataError, OutputError, SourceError
from rewardkit.evaluate.generate import ResponseIndex
from rewardkit.responses.store import open_store, part_path

E500 = (500, {}, {"error": {"message": "engine died"}})
KEY = {"model": "M", "sampling": {"api": "chat", "seed": 1}}


def stored(out):
    """Return the number of responses of an interrupted run."""
    with open_store(out, KEY, resume=True, overwrite=False) as store:
        return ResponseIndex(store).n


def start(server, parquet, out, *more):
    arguments = ["--base-url", server.url, "--model", "M", "-n", "4", "--seed", "1", "--out", out]
    command = [sys.executable, "-m", "rewardkit", "eval", "run", parquet, *arguments, *more]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.full
def test_a_run_that_is_killed_twice_ends_with_the_same_file(serve, parquet, tmp_path):
    rows, killed, complete = parquet(60), tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    more = ["--concurrency", 4]
    with serve() as server:
        assert start(server, rows, complete, *more).wait(60) == 0
    with serve(seconds=0.02) as server:
        for kill in range(2):
            requests = len(server.bodies)
            process = start(server, rows, killed, *more)
            wait_for(lambda count=requests: len(server.bodies) > count + 10)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(60)
            wait_for(lambda: server.active == 0)
            assert stored(killed) >= 10 * kill
        assert start(server, rows, killed, *more).wait(60) == 0
    assert killed.read_bytes() == complete.read_bytes()
    # Only requests in flight at a kill, at most 4, are sent again.
    assert len(server.bodies) <= 240 + 2 * 4
    assert not part_path(killed).exists()


def test_the_index_has_the_requests_of_each_row_and_the_first_of_two_same_samples_counts(
    serve, generate, tmp_path
):
    with serve() as server:
        _, expected = generate(server, rows=2, n=3, out="clean.jsonl")
    message = "no answer to requests for 1 responses: 500: engine died"
    with serve(faults={2: E500}) as server, pytest.raises(SourceError, match=message):
        generate(server, rows=2, n=3, tries=1, concurrency=1)
    part = part_path(tmp_path / "m.jsonl")
    first, *records = part.read_bytes().split(b'{"rewardkit_part"')[1:]
    marked = [first, *records, records[0].replace(b"so it is", b"SO IT IS")]
    part.write_bytes(b"".join(b'{"rewardkit_part"' + record for record in marked))
    with serve() as server:
        assert generate(server, rows=2, n=3)[1] == expected
    assert len(server.bodies) == 1


def test_a_run_of_another_model_or_prompt_does_not_resume(serve, generate, parquet):
    with serve(faults={2: E500}) as server:
        with pytest.raises(SourceError):
            generate(server, rows=6, n=1, tries=1, concurrency=1)
        with pytest.raises(DataError, match="had other model;"):
            generate(server, rows=6, n=1, model="other")
        parquet.instruction = "Think."
        with pytest.raises(DataError, match="had other questions; --overwrite starts again"):
            generate(server, rows=6, n=1)
        _, lines = generate(server, rows=6, n=1, model="other", overwrite=True)
    assert {line["model"] for line in lines} == {"other"}


def test_a_larger_n_requests_only_what_it_adds_and_the_file_is_that_of_one_run(
    serve, generate, tmp_path
):
    options = {"resume": True}
    with serve() as server:
        _, expected = generate(server, n=8, out="whole.jsonl", **options)
    with serve() as server:
        _, four = generate(server, n=4, **options)
        assert generate(server, n=4, **options)[1] == four
        assert len(server.bodies) == 3 * 4
    with serve() as server:
        assert generate(server, n=8, **options)[1] == expected
    assert len(server.bodies) == 3 * 4
    assert [line for line in expected if line["sample"] < 4] == four
    assert not list(tmp_path.glob(".*"))


def test_an_interrupted_addition_goes_on_and_the_finished_file_stays_until_then(
    serve, generate, tmp_path
):
    with serve() as server:
        _, expected = generate(server, n=6, out="whole.jsonl")
        generate(server, n=4)
    before = (tmp_path / "m.jsonl").read_bytes()
    with serve(faults={3: E500}) as server, pytest.raises(SourceError):
        generate(server, n=6, tries=1, concurrency=1, resume=True)
    assert (tmp_path / "m.jsonl").read_bytes() == before
    with serve() as server:
        assert generate(server, n=6, resume=True)[1] == expected
    assert len(server.bodies) == 1


def test_an_output_of_another_run_is_not_continued(serve, generate, tmp_path):
    with serve() as server:
        generate(server, n=2)
        before = (tmp_path / "m.jsonl").read_bytes()
        for change, message in (
            ({"model": "other"}, "another model"),
            ({"seed": 2}, "another sampling"),
            ({"rows": 2}, "row 2 is of another prompt"),
            ({"n": 1}, "more than 1 responses.*larger -n"),
        ):
            with pytest.raises(DataError, match=message):
                generate(server, resume=True, **{"n": 3, **change})
        with pytest.raises(OutputError, match="--resume adds responses"):
            generate(server, n=3)
    assert len(server.bodies) == 6
    assert (tmp_path / "m.jsonl").read_bytes() == before
