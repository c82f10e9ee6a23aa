"""Nothing that happens to a recorder reaches the reward, and nothing that can be saved is lost."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.recorder import writer
from rewardkit.recorder.writer import PATTERN, Recorder, recorder_of
from rewardkit.trainlog.reward_files import read_rewards

FIELDS = {
    "response": r"so \boxed{1}", "data_source": "a", "ground_truth": "1",
    "extra_info": {"index": 3, "split": "train", "question": "How many?"}, "seconds": 0.25,
}  # fmt: skip


def add(recorder, count=1, **result):
    for _ in range(count):
        recorder.add({"score": 1.0, **result}, **FIELDS)


def lines(folder):
    """Return the lines of all files of a folder; each must be whole."""
    texts = [file.read_text(encoding="utf-8") for file in folder.glob(PATTERN)]
    return [json.loads(line) for text in texts for line in text.splitlines() if line]


def lost(folder):
    """Return the calls that lines say were lost; a line that a full disk cut is left out."""
    texts = [file.read_text(encoding="utf-8") for file in folder.glob(PATTERN)]
    whole = (line for text in texts for line in text.splitlines() if line.endswith("}"))
    return sum(json.loads(line).get("lost", 0) for line in whole)


def test_a_call_is_a_line_when_it_returns(tmp_path):
    recorder = Recorder(str(tmp_path), clock=lambda: 1.75e9, share=1)
    recorder.add({"score": 0.5, "acc": True, "pred": "1"}, **FIELDS)
    recorder.add({"score": 0.5}, **{**FIELDS, "extra_info": {"split": "test"}})
    first, second = lines(tmp_path)
    del first["prompt"], first["answer"]
    assert first == {
        "time": 1.75e9, "seconds": 0.25, "source": "a", "values": {"score": 0.5, "acc": 1.0},
        "characters": 12, "gold": True, "response": r"so \boxed{1}", "question": "How many?",
        "pred": "1", "index": "3",
    }  # fmt: skip
    assert second["validation"] is True


def test_the_stated_share_of_calls_has_its_text_and_none_has_without_a_share(tmp_path):
    for share in (0.0, 0.25):
        add(Recorder(str(tmp_path / str(share)), share=share), 400)
        texts = sum("response" in line for line in lines(tmp_path / str(share)))
        assert abs(texts - 400 * share) <= 2
    assert "boxed" not in "".join(map(str, lines(tmp_path / "0.0")))


def test_long_responses_names_and_results_of_a_line_are_cut(tmp_path):
    keys = {f"key{i}" + "x" * 1_000: 1.0 for i in range(500)}
    changes = {"response": "x" * 100_000 + "end", "data_source": "s" * 10_000}
    Recorder(str(tmp_path), share=1).add(keys, **{**FIELDS, **changes})
    [line] = lines(tmp_path)
    assert line["characters"] == 100_003
    assert line["response"].endswith("xend")  # it loses its middle
    assert len(line["values"]) == writer.MAX_VALUES
    assert len(json.dumps(line)) < 35_000


def test_sixteen_threads_lose_nothing(tmp_path):
    recorder = Recorder(str(tmp_path))
    adds = [partial(add, recorder, 200, part=i) for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(each) for each in adds]:
            done.result()
    parts = [line["values"]["part"] for line in lines(tmp_path)]
    assert sorted(parts) == [i for i in range(16) for _ in range(200)]


def test_a_forked_child_records_beside_its_parent(tmp_path):
    recorder = recorder_of(str(tmp_path))
    assert recorder is recorder_of(str(tmp_path))
    add(recorder, 50)
    if (pid := os.fork()) == 0:
        add(recorder_of(str(tmp_path)), 50)
        os._exit(0)
    add(recorder, 50)
    os.waitpid(pid, 0)
    assert len(lines(tmp_path)) == 150


KILLED = """
import sys
from rewardkit.recorder.writer import Recorder
recorder = Recorder(sys.argv[1])
for number in range(10**9):
    recorder.add({"score": 1.0, "number": number}, response="r", data_source="a", ground_truth="1",
                 extra_info={}, seconds=0.0)
"""


def test_a_killed_process_leaves_every_call_but_the_last(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    while not list(tmp_path.glob(PATTERN)) or len(lines(tmp_path)) < 100:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    numbers = [line["values"]["number"] for line in lines(tmp_path)]
    assert numbers == list(range(len(numbers)))


def test_a_folder_that_cannot_be_written_is_logged_once_and_its_calls_are_counted(tmp_path, caplog):
    folder = tmp_path / "records"
    folder.write_text("not a folder")
    recorder = Recorder(str(folder))
    with caplog.at_level(logging.ERROR):
        add(recorder, 3)
    [message] = [record.getMessage() for record in caplog.records]
    assert "rewards cannot be recorded" in message
    folder.unlink()
    add(recorder, 2)
    assert [line.get("lost", 0) for line in lines(folder)] == [3, 0]


def test_a_folder_that_is_deleted_is_made_again(tmp_path):
    folder = tmp_path / "records"
    recorder = Recorder(str(folder))
    add(recorder)
    shutil.rmtree(folder)
    add(recorder, 100)
    assert len(lines(folder)) > 80


# The limit of a file's size stands for a full disk: a write is cut there, and the next one fails.
FULL_DISK = """
import resource, signal, sys
from rewardkit.recorder.writer import Recorder

recorder = Recorder(sys.argv[1], share=0.0)
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
for size in (int(sys.argv[2]), limit[0]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    for number in range(10):
        recorder.add({"score": 1.0}, response="r", data_source="a", ground_truth="1",
                     extra_info={}, seconds=0.01)
"""


@pytest.mark.parametrize("size", [0, 300])
def test_a_full_disk_costs_a_count_and_never_a_reward_or_a_later_line(tmp_path, size):
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr.count("rewards cannot be recorded") == 1
    records = read_rewards(tmp_path)
    assert records.count + lost(tmp_path) == 20
    assert records.count >= 10
    assert records.unread <= 1  # what the disk left of a line


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
    recorder = Recorder(str(folder), share=1)
    for result, response, data_source, ground_truth, extra_info, seconds in calls:
        recorder.add(
            result, response=response, data_source=data_source, ground_truth=ground_truth,
            extra_info=extra_info, seconds=seconds,
        )  # fmt: skip
    add(recorder)
    found = lines(folder)
    assert len(found) + sum(line.get("lost", 0) for line in found) == len(calls) + 1
    assert read_rewards(folder).unread == 0


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    recorder = Recorder(str(tmp_path))
    for score in (1.0, nan, inf, 1e200, 0.5):
        add(recorder, score=score)
    assert [line["values"].get("score") for line in lines(tmp_path)] == [1.0, None, None, None, 0.5]
