"""Find a call of the user's scorer that does not return, and the line at which it stands."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Time that a process gets to write its stacks after the signal, in seconds.
STACK_SECONDS = 2.0

#: The heading of a thread, and a line of its stack, as faulthandler writes them.
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(r'^ {2}File "(.+)", line (\d+) in ')


@dataclass(frozen=True)
class HangingCall:
    """A call of the scorer that has not returned within its limit.

    Attributes:
        path: the file of the function.
        seconds: how long it has run.
        row: the arguments that identify the row, for a message.
        response: the first characters of the response.
        line: the line of the scorer's file at which the call stands; 0 if it is not known.
    """

    path: str
    seconds: float
    row: str
    response: str
    line: int

    def describe(self) -> str:
        """Return the call in a sentence that names the scorer's file, the line and the row."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return (
            f"{place}: a call of the scorer has not returned after {self.seconds:,.0f} s; its row "
            f"has {self.row}; the response begins with {self.response[:60]!r}. Fix the scorer, or "
            "raise --rehearse-call-seconds if it is only slow"
        )


def find_hanging_call(folder: Path, seconds: float) -> HangingCall | None:
    """Return a call that has run for longer than its limit; None if there is none.

    Args:
        folder: the folder of the running calls.
        seconds: the limit of a call.
    """
    for file in sorted(folder.glob("call-*.json")):
        call = _read(file)
        age = time.monotonic() - call["started"] if call else 0.0
        if call is None or age <= seconds or not _is_alive(call["pid"]):
            continue
        stacks = _ask_for_stacks(folder, call["pid"])
        call = _read(file)  # the call may have ended, or have written the line at which it waits
        if call is not None:
            line = line_of_thread(stacks, call["thread"], call["path"]) or call.get("line", 0)
            return HangingCall(call["path"], age, call["row"], call["response"], line)
    return None


def line_of_thread(stacks: str, thread: int, path: str) -> int:
    """Return the innermost line of a file in a thread's stack; 0 if the file is not in it.

    Args:
        stacks: the stacks as faulthandler writes them, the innermost frame first.
        thread: the identifier of the thread.
        path: the file.
    """
    name = path.encode("ascii", "backslashreplace").decode()  # as faulthandler writes it
    is_inside, lines = False, []
    for text in stacks.splitlines():
        if match := _THREAD.match(text):
            is_inside = int(match[1], 16) == thread
        elif is_inside and (match := _FRAME.match(text)) and match[1] == name:
            lines.append(int(match[2]))
    return lines[0] if lines else 0


def _read(file: Path) -> dict[str, Any] | None:
    try:
        call: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # the call has ended
    return call


def _is_alive(pid: int) -> bool:
    return Path("/proc", str(pid)).exists()


def _ask_for_stacks(folder: Path, pid: int) -> str:
    """Return the stacks of a process's threads; "" if it does not write them in time."""
    file = folder / f"stacks-{pid}.txt"
    if not file.exists():  # the process does not handle the signal, which would end it
        return ""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGUSR1)
    deadline, text = time.monotonic() + STACK_SECONDS, ""
    while time.monotonic() < deadline:
        time.sleep(0.1)
        before, text = text, file.read_text(encoding="utf-8", errors="replace")
        if text and text == before:
            break
    return text
