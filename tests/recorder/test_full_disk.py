"""A disk that is full for a while costs samples at most, and never the folder."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rewardkit.recorder.read import read_rewards

# The limit of a file's size stands for a full disk: a write is cut there, and the next one fails.
CODE = """
import resource, sys
from rewardkit.recorder.writer import Recorder

recorder = Recorder(sys.argv[1])
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
for size in (int(sys.argv[2]), limit[0]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    for number in range(10):
        recorder.add(
            {"score": 1.0}, response="x" * 3000, data_source="test", ground_truth="1",
            extra_info={"index": number}, seconds=0.01,
        )
    recorder.flush()
"""


@pytest.mark.parametrize("size", [0, 20, 200, 2000])
def test_calls_are_counted_once_wherever_a_write_was_cut(tmp_path, size):
    """In the first line, in an interval, or in the samples after it."""
    command = [sys.executable, "-c", CODE, str(tmp_path), str(size)]
    subprocess.run(command, check=True, capture_output=True)
    slots = read_rewards(tmp_path).slots
    assert sum(slot.count(is_validation=False) for slot in slots) == 20
