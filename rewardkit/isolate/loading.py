"""Load a user's file or module in a child process, under a deadline.

The child loads it inside `Channel.load_deadline`, whose watchdog ends the child in time and leaves
the stacks of its threads. The message names the line of the file that was running.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from rewardkit.errors import SourceError, UsageError
from rewardkit.isolate.child import LOAD_MARK
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError

#: Default timeout for importing a user's file, which may import torch.
LOAD_TIMEOUT_SECONDS = 60.0

#: Timeout for a child process to start, before it imports the file.
START_TIMEOUT_SECONDS = 60.0

#: Seconds after the deadline in which the child should have ended by itself.
GRACE_SECONDS = 2.0

#: `faulthandler` writes the stacks of at most this many threads.
MAX_THREADS = 100

_HEADING = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)
_THREAD = re.compile(r"^Thread 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)

#: Beginnings of the names of files that import a registered module.
_OWN_FILES = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<")


class _Frame(NamedTuple):
    """A line of a stack: file, line and function."""

    file: str
    line: str
    function: str


def start_and_load(
    module: str, request: Sequence[Any], name: str, seconds: float, *, is_quiet: bool = False
) -> tuple[ChildProcess, Any]:
    """Start a child process that loads a user's file; return it with its reply.

    Args:
        module: the child's module; its `serve` receives `(*request, seconds)`.
        request: what the child needs to load the file.
        name: `file.py:attribute` or a registered name, for messages.
        seconds: the timeout.
        is_quiet: whether to discard what the file prints; see `ChildProcess`.

    Raises:
        SourceError: there is no such file.
        UsageError: the file does not load in time, or it ends the process.
    """
    file = name.partition(":")[0]
    if file.endswith(".py") and not Path(file).is_file():
        raise SourceError(f"{file}: no such file.")
    process = ChildProcess(module, is_quiet=is_quiet)
    start_deadline = monotonic() + START_TIMEOUT_SECONDS

    def deadline() -> float:
        start, number = process.mark
        return start + seconds + GRACE_SECONDS if number == LOAD_MARK else start_deadline

    try:
        reply = process.exchange((*request, seconds), START_TIMEOUT_SECONDS, deadline)
    except ChildTimeoutError:
        raise UsageError(timeout_message(process.stacks, name, seconds)) from None
    except ChildCrashError as error:
        if process.stacks:
            raise UsageError(timeout_message(process.stacks, name, seconds)) from None
        hint = "; REWARDKIT_DEBUG=1 shows its output" if is_quiet else ""
        message = f"{name}: its process ended while it was imported ({error}){hint}."
        raise UsageError(message) from None
    return process, reply


def timeout_message(stacks: str, name: str, seconds: float) -> str:
    """Return why a user's file did not load in time, with the line that was running.

    Args:
        stacks: the stacks of the process's threads, as `faulthandler` writes them.
        name: `file.py:attribute` or a registered name.
        seconds: the timeout.
    """
    file, frames = name.partition(":")[0], _main_stack(stacks)
    frame = _user_frame(frames, file)
    advice = "Fix the file, or raise --load-seconds if it is only slow."
    if frame is None:
        return f"{name}: not imported within {seconds:g} s. {advice}"
    path = file if file.endswith(".py") else frame.file
    inner = "" if frames[0] == frame else f" (in {frames[0].file}:{frames[0].line})"
    return (
        f"{path}:{frame.line}: the import stood at this line{inner} after {seconds:g} s. {advice}"
    )


def place_in_stacks(stacks: str, name: str) -> str:
    """Return `file.py:LINE`, where a call of a user's file stood; "" if no thread was in it.

    Args:
        stacks: the stacks of the process's threads, as `faulthandler` writes them.
        name: `file.py:attribute`.
    """
    file = name.partition(":")[0]
    frames = [_Frame(*match.groups()) for match in _FRAME.finditer(stacks)]
    frame = _user_frame(frames, file) if file.endswith(".py") else None
    return f"{file}:{frame.line}" if frame else ""


def _main_stack(stacks: str) -> list[_Frame]:
    text = _HEADING.split(stacks)[-1] if _HEADING.search(stacks) else ""
    if len(_THREAD.findall(text)) >= MAX_THREADS:
        return []  # the main thread may be missing
    last = _THREAD.split(text)[-1]
    return [_Frame(*match.groups()) for match in _FRAME.finditer(last)]


def _user_frame(frames: Sequence[_Frame], file: str) -> _Frame | None:
    """Return the innermost frame of a user's file; of a registered module, if `file` is its name."""
    if file.endswith(".py"):
        path = os.path.abspath(file)  # noqa: PTH100 - removes `..`, too
    else:
        path = next((f.file for f in reversed(frames) if not f.file.startswith(_OWN_FILES)), "")
    name = path.encode("ascii", "backslashreplace").decode()  # as `faulthandler` writes it
    return next((frame for frame in frames if os.path.normpath(frame.file) == name), None)
