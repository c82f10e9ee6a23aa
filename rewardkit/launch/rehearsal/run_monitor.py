"""What verl is doing in a rehearsal, from its growing log, and whether the rehearsal has to end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rewardkit.launch.rehearsal.hanging_calls import HangingCall, find_hanging_call

#: An activity of verl: its place in the order of a rehearsal, and its description.
Activity: TypeAlias = tuple[int, str]

STARTING: Activity = (0, "starting Ray")

#: Texts of verl's log, and what verl does once it has written them, before the steps and after.
MARKS: tuple[tuple[bytes, Activity], ...] = (
    (b"Started a local Ray instance", (1, "starting verl's trainer")),
    (b"dataset len: ", (2, "reading the rows")),
    (b"Total training steps: ", (3, "building the models")),
    (b"reward loop manager initialized", (4, "starting the inference server")),
    (b"test_gen_batch meta info", (1 << 30, "validating")),
    (b"local_global_step_folder: ", (2 << 30, "saving the checkpoint")),
    (b"Saving checkpoint to ", (2 << 30, "saving the checkpoint")),
    (b"Final validation metrics", (3 << 30, "ending")),
)

#: The steps that are done, in verl's line of metrics and in its progress bar.
_STEPS_DONE = re.compile(rb"\bstep:(\d{1,9}) - |Training Progress: .*?\| (\d{1,9})/\d+ \[")


class RunMonitor:
    """Follows a run; `run_command` calls it several times per second.

    Attributes:
        log: verl's log.
        hanging_call: a call of the scorer that exceeded its limit, for which the run has to end.
    """

    def __init__(
        self,
        folder: Path,
        *,
        steps: int,
        limit: float,
        progress: Callable[[str], object],
    ) -> None:
        """Begin to follow a run.

        Args:
            folder: the folder of the rehearsal.
            steps: the planned steps.
            limit: the time limit of a call of the scorer, in seconds.
            progress: called with an activity when it begins.
        """
        self.log, self._running = folder / "verl.log", folder / "running"
        self._steps, self._limit = steps, limit
        self._progress = progress
        self._bytes_read, self._rest = 0, b""
        self._last: Activity = STARTING
        self.hanging_call: HangingCall | None = None
        progress(self.activity)

    @property
    def activity(self) -> str:
        """What verl is doing."""
        return self._last[1]

    def __call__(self) -> bool:
        """Read what is new in the log; return whether the run has to end."""
        activity = last_activity(self._new_lines(), self._steps)
        if activity > self._last:  # the parts of the log are not in order
            self._last = activity
            self._progress(self.activity)
        if self.hanging_call is None:
            self.hanging_call = find_hanging_call(self._running, self._limit)
        return self.hanging_call is not None

    def _new_lines(self) -> bytes:
        with self.log.open("rb") as file:
            file.seek(self._bytes_read)
            new = file.read()
        self._bytes_read += len(new)
        whole, end, self._rest = (self._rest + new).rpartition(b"\n")
        return whole + end


def last_activity(log: bytes, steps: int) -> Activity:
    """Return the last activity, in the order of a rehearsal, that a part of verl's log shows.

    Args:
        log: whole lines of the log.
        steps: the steps of the run.
    """
    activities = [STARTING, *(activity for text, activity in MARKS if text in log)]
    for match in _STEPS_DONE.finditer(log):
        step = min(int(match[1] or match[2]) + 1, steps)
        activities.append((10 + step, f"training step {step} of {steps}"))
    return max(activities)
