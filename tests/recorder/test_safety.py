"""Nothing that happens to a recorder reaches the reward, and what can be saved is."""

import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.recorder import record_file, writer
from rewardkit.recorder.read import read_rewards
from rewardkit.recorder.writer import Recorder, flush_all, recorder_of

FIELDS = {"response": "#### 1", "data_source": "a", "ground_truth": "1", "extra_info": {}}


def add(recorder, count=1, **result):
    for _ in range(count):
        recorder.add({"score": 1.0, **result}, **FIELDS, seconds=0.001)


def total(folder, key="score"):
    """Return count and sum of a number over all slots and sources of a folder."""
    totals = [
        each.values[key]
        for slot in read_rewards(folder).slots
        for each in slot.sources.values()
        if key in each.values
    ]
    return sum(each.count for each in totals), sum(each.sum for each in totals)


def test_sixteen_threads_lose_nothing(tmp_path):
    recorder = Recorder(str(tmp_path))
    threads = [
        threading.Thread(target=add, args=(recorder, 2_000), kwargs={"part": i}) for i in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert total(tmp_path) == (32_000, 32_000)
    assert total(tmp_path, "part") == (32_000, 2_000 * sum(range(16)))
    assert read_rewards(tmp_path).dropped == 0


def test_callers_help_while_the_thread_is_slow_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_WAITING_CALLS", 600)
    monkeypatch.setattr(writer, "HELPED_CALLS", 300)
    recorder = Recorder(str(tmp_path))
    monkeypatch.setattr(recorder, "_awaken", lambda: setattr(recorder, "_is_asleep", False))
    add(recorder, 5_000)
    recorder.flush()
    assert total(tmp_path)[0] == 5_000


def test_threads_that_only_record_wait_for_each_other_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_WAITING_CALLS", 2_000)
    monkeypatch.setattr(writer, "HELPED_CALLS", 300)
    monkeypatch.setattr(writer, "MAX_HELP_SECONDS", 60)
    recorder = Recorder(str(tmp_path))
    threads = [threading.Thread(target=add, args=(recorder, 1_000)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.flush()
    assert total(tmp_path)[0] == 16_000


def test_calls_beyond_the_limit_are_counted_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_WAITING_CALLS", 100)
    recorder = Recorder(str(tmp_path))
    monkeypatch.setattr(recorder, "_awaken", lambda: None)
    add(recorder, 130)
    recorder.flush()
    assert total(tmp_path)[0] == 100
    assert read_rewards(tmp_path).dropped == 30


def test_the_thread_writes_soon_after_the_calls_pause_and_then_sleeps(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "PAUSE_SECONDS", 0.01)
    recorder = Recorder(str(tmp_path))
    for count in (1, 2):
        add(recorder)
        wait_until(lambda count=count: files(tmp_path) and total_or_none(tmp_path) == count)
        wait_until(lambda: recorder._is_asleep)


def files(folder):
    return list(folder.glob("rewards-*.jsonl"))


def total_or_none(folder):
    try:
        return total(folder)[0]
    except ValueError:  # only the header is there
        return None


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


KILLED = """
import sys, time
from rewardkit.recorder import writer
writer.PAUSE_SECONDS, writer.INTERVAL_SECONDS = 1e9, 1e9  # lines are written by flush only
recorder = writer.recorder_of(sys.argv[1])
def add(count):
    for _ in range(count):
        recorder.add({"score": 1.0}, response="r", data_source="a", ground_truth="1",
                     extra_info={}, seconds=0.0)
add(1000); recorder.flush(); add(500)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_killed_process_loses_only_the_calls_since_its_last_line(tmp_path):
    process = start(KILLED, tmp_path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert total(tmp_path) == (1000, 1000.0)


def start(code, folder, **options):
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], text=True, **options)


ENDS = """
import sys
from rewardkit.recorder.writer import recorder_of
recorder_of(sys.argv[1]).add({"score": 1.0}, response="r", data_source="a", ground_truth="1",
                             extra_info={}, seconds=0.0)
"""


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError"])
def test_a_process_that_ends_by_itself_loses_nothing(tmp_path, end):
    start(ENDS + end, tmp_path, stderr=subprocess.DEVNULL).wait()
    assert total(tmp_path) == (1, 1.0)


def test_a_torn_last_line_is_left_out_and_counted(tmp_path):
    recorder = Recorder(str(tmp_path), samples=0)
    add(recorder, 3)
    recorder.flush()
    add(recorder, 4)
    recorder.flush()
    [file] = files(tmp_path)
    os.truncate(file, file.stat().st_size - 20)
    assert total(tmp_path) == (3, 3.0)
    assert read_rewards(tmp_path).torn == 1


def test_a_forked_process_writes_its_own_calls_into_its_own_file(tmp_path):
    recorder = recorder_of(str(tmp_path))
    add(recorder, 5)
    pid = os.fork()
    if pid == 0:
        add(recorder, 3)
        flush_all()
        os._exit(0)
    os.waitpid(pid, 0)
    recorder.flush()
    assert total(tmp_path) == (8, 8.0)
    assert read_rewards(tmp_path).processes == 2


def test_a_child_of_multiprocessing_writes_when_it_ends(tmp_path):
    recorder = recorder_of(str(tmp_path))
    add(recorder, 5)
    child = multiprocessing.get_context("fork").Process(target=add, args=(recorder, 3))
    child.start()
    child.join()
    recorder.flush()
    assert total(tmp_path) == (8, 8.0)


def test_a_folder_that_cannot_be_written_is_logged_once_and_tried_again(tmp_path, caplog):
    folder = tmp_path / "records"
    folder.write_text("not a folder")
    recorder = Recorder(str(folder))
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            add(recorder)
            recorder.flush()
    [message] = [record.getMessage() for record in caplog.records]
    assert "rewards cannot be recorded" in message
    folder.unlink()
    add(recorder)
    recorder.flush()
    assert total(folder) == (4, 4.0)


def test_a_folder_that_is_deleted_is_made_again(tmp_path):
    folder = tmp_path / "records"
    recorder = Recorder(str(folder))
    add(recorder)
    recorder.flush()
    shutil.rmtree(folder)
    add(recorder, 2)
    recorder.flush()
    assert total(folder) == (2, 2.0)


FULL_DISK = """
import resource, sys
from pathlib import Path
from rewardkit.recorder.writer import Recorder
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))
recorder = Recorder(sys.argv[1], samples=0)
for _ in range(20):
    recorder.add({"score": 1.0}, response="r", data_source="a", ground_truth="1", extra_info={},
                 seconds=0.0)
    recorder.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
recorder.flush()
"""


def test_a_full_disk_delays_lines_and_loses_none(tmp_path):
    process = start(FULL_DISK, tmp_path, stderr=subprocess.PIPE)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors.count("rewards cannot be recorded") == 1
    assert total(tmp_path) == (20, 20.0)
    assert read_rewards(tmp_path).unread == 1  # the line that the disk cut


class Hostile:
    """A value whose every method raises."""

    def _raise(self, *_):
        raise RuntimeError("hostile")

    __float__ = __str__ = __repr__ = __eq__ = __lt__ = __bool__ = __len__ = _raise
    __hash__ = object.__hash__


VALUES = st.one_of(
    st.floats(), st.integers(), st.text(), st.booleans(), st.none(), st.just(10**400),
    st.builds(Hostile), st.lists(st.integers(), max_size=2), st.binary(max_size=3),
)  # fmt: skip
KEYS = st.one_of(st.text(max_size=4), st.integers(), st.none())
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=4)
CALLS = st.tuples(st.one_of(MAPPINGS, VALUES), VALUES, VALUES, VALUES, MAPPINGS | VALUES, VALUES)


@given(st.lists(CALLS, max_size=6))
def test_no_call_raises_and_every_call_is_counted(tmp_path_factory, calls):
    folder = tmp_path_factory.mktemp("records")
    recorder = Recorder(str(folder))
    for result, response, data_source, ground_truth, extra_info, seconds in calls:
        recorder.add(
            result,
            response=response,
            data_source=data_source,
            ground_truth=ground_truth,
            extra_info=extra_info,
            seconds=seconds,
        )
    add(recorder)
    recorder.flush()
    [line] = [
        record for record in map(json.loads, read_lines(folder)) if "sources" in record
    ]  # fmt: skip
    count = sum(source["count"] for source in line["sources"])
    assert count + line["dropped"] + line["unusable"] == len(calls) + 1
    assert read_rewards(folder).unread == 0


def read_lines(folder):
    return [line for file in files(folder) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("seconds", [nan, inf, -inf, 1e300, -1e12, 4e9])
def test_a_duration_that_cannot_be_one_loses_no_record(tmp_path, seconds):
    recorder = Recorder(str(tmp_path))
    for each in (seconds, 0.5):
        recorder.add({"score": 1.0}, **FIELDS, seconds=each)
    recorder.flush()
    records = read_rewards(tmp_path)
    [slot] = records.slots
    assert total(tmp_path) == (2, 2.0)
    assert records.unread == 0
    assert 0.5 <= slot.end - slot.start < 3600


def test_numbers_that_are_not_finite_are_counted_and_left_out(tmp_path):
    recorder = Recorder(str(tmp_path))
    for score in (1.0, nan, inf, 1e200, 0.5):
        add(recorder, score=score)
    recorder.flush()
    assert total(tmp_path) == (2, 1.5)
    [source] = [
        s for line in map(json.loads, read_lines(tmp_path)) for s in line.get("sources", ())
    ]
    assert (source["count"], source["not_finite"]) == (5, 3)


def test_data_sources_and_keys_are_limited(tmp_path):
    recorder = Recorder(str(tmp_path))
    for i in range(100):
        keys = {f"key{i}-{j}": 1.0 for j in range(100)}
        recorder.add(keys, **{**FIELDS, "data_source": f"source{i}"}, seconds=0.0)
    recorder.flush()
    [slot] = read_rewards(tmp_path).slots
    assert len(slot.sources) == 33
    assert slot.sources["other", False].count == 68
    assert max(len(totals.values) for totals in slot.sources.values()) <= 64


def test_intervals_double_as_the_file_grows(tmp_path, monkeypatch):
    monkeypatch.setattr(record_file, "BYTES_PER_DOUBLING", 2_000)
    recorder = Recorder(str(tmp_path))
    factors = []
    for _ in range(20):
        add(recorder)
        recorder.flush()
        factors.append(recorder._file.interval_factor)
    assert factors[0] == 1
    assert {2, 4} <= set(factors)
    assert factors == sorted(factors)


def test_a_file_stops_growing_at_its_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(record_file, "BYTES_PER_DOUBLING", 100)
    recorder = Recorder(str(tmp_path))
    for _ in range(40):
        add(recorder)
        recorder.flush()
    assert sum(file.stat().st_size for file in files(tmp_path)) < 10_000


def test_no_response_is_written_without_samples(tmp_path):
    recorder = Recorder(str(tmp_path), samples=0)
    add(recorder)
    recorder.flush()
    assert "####" not in "".join(read_lines(tmp_path))
