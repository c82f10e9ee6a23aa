"""Run verl, follow what it does in its log, and leave none of its processes behind."""

from __future__ import annotations

import math
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.run import run
from rewardkit.launch.rehearsal.calls import read_records
from rewardkit.launch.rehearsal.settings import table

#: Time that a process gets to write the stacks of its threads, in seconds.
STACK_SECONDS = 1.0


def run_command(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    seconds: float,
    should_end: Callable[[], bool] = lambda: False,
) -> tuple[int | None, float]:
    """Run a command in a session of its own, and return its exit code and how many seconds it took.

    The exit code is None if the command was ended. No process of that session is left afterwards, not
    even after Ctrl-C.

    Args:
        command: the arguments; the first is the path of a program.
        env: variables in addition to those of this process.
        log: the file for the output.
        seconds: the deadline.
        should_end: called several times per second, and once after the end; the command is ended
            when it returns True.
    """
    started, code = time.monotonic(), None
    with suppress(ChildTimeoutError, ChildCrashError):
        code = run(command, env, seconds, log=log, should_end=should_end).code
    should_end()
    return code, time.monotonic() - started


#: The steps that are done, in verl's line of metrics and in its progress bar.
_STEPS_DONE = re.compile(r"\bstep:(\d{1,9}) - |Training Progress: .*?\| (\d{1,9})/\d+ \[")

#: Characters of the log that are read again, because a text may be written in two parts.
_OVERLAP = 200


class RunMonitor:
    """Follows a run; `run_command` calls it several times per second.

    Attributes:
        activity: what verl is doing.
        hanging_call: the message about a call of the scorer that exceeded its limit, for which the
            run has to end; "" without one.
    """

    def __init__(
        self, folder: Path, *, steps: int, limit: float, progress: Callable[[str], object]
    ) -> None:
        """Begin to follow a run."""
        self._folder, self._steps, self._limit, self._progress = folder, steps, limit, progress
        self._bytes_read, self._end, self._place = 0, "", 0
        self.activity, self.hanging_call = "starting Ray", ""
        progress(self.activity)

    def __call__(self) -> bool:
        """Read what is new in the log; return whether the run has to end."""
        with (self._folder / "verl.log").open("rb") as file:
            file.seek(self._bytes_read)
            new = file.read()
        self._bytes_read += len(new)
        lines = self._end + new.decode(errors="replace")
        self._end = lines[-_OVERLAP:]
        place, activity = last_activity(lines, self._steps)
        if place > self._place:  # the parts of the log are not in order
            self._place, self.activity = place, activity
            self._progress(activity)
        self.hanging_call = self.hanging_call or hanging_call(self._folder, self._limit)
        return bool(self.hanging_call)


def last_activity(log: str, steps: int) -> tuple[int, str]:
    """Return the last activity, in the order of a rehearsal, that a part of verl's log shows."""
    last, activities = (0, ""), list(table("activities").items())
    for place, (text, activity) in enumerate(activities, 1):
        if text in log:  # the steps are between the fourth and the fifth activity
            last = (place if place < 5 else place << 32, activity)
    steps_done = [int(match[1] or match[2]) for match in _STEPS_DONE.finditer(log)]
    if steps_done:
        step = min(max(steps_done) + 1, steps)
        last = max(last, (5 + step, f"training step {step} of {steps}"))
    return last


#: The heading of a thread, and a line of its stack, as faulthandler writes them.
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^ {2}File "(.+)", line (\d+) in ')


def hanging_call(folder: Path, limit: float) -> str:
    """Return a message about a call that has run for longer than its limit; "" if there is none.

    It names the scorer's file, the line and the row.
    """
    for record in read_records(folder):
        age = time.monotonic() - record.get("started", math.inf)
        pid = record["call"].partition("-")[0]
        if "seconds" in record or age < limit + STACK_SECONDS or not Path("/proc", pid).exists():
            continue
        line = record.get("line") or _line_of_stack(folder, int(pid), record)
        row = f"data_source {record['data_source']!r}, ground_truth {record['ground_truth']!r}"
        if record["index"] is not None:
            row = f"extra_info.index {record['index']}, {row}"
        return (
            f"{record['path']}{f':{line}' if line else ''}: a call of the scorer has not returned "
            f"after {age:,.0f} s; its row has {row}; the response begins with "
            f"{record['response'][:60]!r}. Fix the scorer, or raise --rehearse-call-seconds if it is "
            "only slow"
        )
    return ""


def _line_of_stack(folder: Path, pid: int, record: Mapping[str, Any]) -> int:
    """Return the innermost line of the scorer's file in the call's stack; 0 if it is not known."""
    file = folder / f"stacks-{pid}.txt"
    if not file.exists():  # the process does not handle the signal, which would end it
        return 0
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
    time.sleep(STACK_SECONDS)
    stacks = file.read_text(encoding="utf-8", errors="replace")
    name = record["path"].encode("ascii", "backslashreplace").decode()  # as faulthandler writes it
    is_inside = False
    for text in stacks.splitlines():
        if match := _THREAD.match(text):
            is_inside = int(match[1], 16) == record["stack"]
        elif is_inside and (match := _FRAME.match(text)) and match[1] == name:
            return int(match[2])
    return 0
