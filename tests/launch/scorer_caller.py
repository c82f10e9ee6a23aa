"""A process that calls a user's scorer through the recorder of a rehearsal, as verl does."""

from __future__ import annotations

import json
import sys

from rewardkit.launch.rehearsal.engines import HOOKS_FOLDER


def recorder_settings(folder, path=""):
    (folder / "running").mkdir(exist_ok=True)
    names = {"calls": str(folder / "calls.jsonl"), "running": str(folder / "running")}
    return {
        "path": str(path),
        "name": "compute_score",
        "call_seconds": 1,
        "varied_metric": "",
        **names,
    }


#: A process that calls a scorer as verl does: rows 0 and 1 return, row 2 hangs.
CALLER = """
import asyncio, inspect, os, sys
sys.path.insert(0, sys.argv[1])
settings = os.environ.pop("REWARDKIT_REHEARSAL_REWARD")
import rehearsal_reward
os.environ["REWARDKIT_REHEARSAL_REWARD"] = settings
names = {}
exec(compile(open(sys.argv[2]).read(), sys.argv[2], "exec"), names)
rehearsal_reward.running_calls.write_stacks_on_signal(
    rehearsal_reward.Path(rehearsal_reward._settings()["running"])
)
score = rehearsal_reward.record_calls(names["compute_score"], "compute_score")
for row in range(3):
    result = score(
        data_source="d", solution_str="an answer", ground_truth="7", extra_info={"index": row}
    )
    if inspect.iscoroutine(result):
        asyncio.run(result)
"""

HANGING = {
    "sleep": """import time

def compute_score(data_source, solution_str, ground_truth, extra_info):
    if extra_info["index"] == 2:
        time.sleep(600)
    return 1.0
""",
    "regex": """import re

def compute_score(data_source, solution_str, ground_truth, extra_info):
    if extra_info["index"] == 2:
        re.match("(a+)+$", "a" * 64 + "b")
    return 1.0
""",
    "coroutine": """import asyncio

async def compute_score(data_source, solution_str, ground_truth, extra_info):
    if extra_info["index"] == 2:
        await asyncio.sleep(600)
    return 1.0
""",
}


def caller(folder, code):
    """Return the command and the environment of a process that calls a scorer with this code."""
    path = folder / "mine.py"
    path.write_text(code)
    settings = json.dumps(recorder_settings(folder, path))
    command = [sys.executable, "-c", CALLER, str(HOOKS_FOLDER), str(path)]
    return command, {"REWARDKIT_REHEARSAL_REWARD": settings}
