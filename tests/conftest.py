"""Shared fixtures. Real data and cases lie outside the repository: `REWARDKIT_SHARED` names where."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from hypothesis import settings

# A shell starts what it puts in the background with Ctrl-C ignored, nohup with the terminal's end,
# and children inherit that.
if current_thread() is main_thread():
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

# On CI the examples are the same in every run; elsewhere each run looks for new ones. No deadline:
# how long an example takes is the machine's affair.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def shared():
    """The folder of real data and answer cases; its tests skip where there is none."""
    folder = os.environ.get("REWARDKIT_SHARED")
    if not folder:
        pytest.skip("REWARDKIT_SHARED is unset: it names the folder of real data and cases")
    return Path(folder)


@pytest.fixture(scope="session")
def gsm8k_responses(request):
    """(response, gold) of real GSM8K responses; empty without REWARDKIT_SHARED."""
    if not os.environ.get("REWARDKIT_SHARED"):
        return []
    folder = request.getfixturevalue("shared") / "cases"
    lines = [
        line
        for file in sorted(folder.glob("*gsm8k*.jsonl"))
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]
    return [(case["solution_str"], case["ground_truth"]) for case in map(json.loads, lines)]
