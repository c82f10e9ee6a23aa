"""Start a child process that loads a function, under a deadline; say where a load or a call hung.

The child loads a user's file inside `Channel.load_deadline`, whose watchdog ends the child in time and
leaves the stacks of its threads. The message names the line of the file that was running.
"""

import importlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from rewardkit import errors
from rewardkit.errors import SourceError, UsageError
from rewardkit.isolate.child import LOAD_MARK
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.isolate.serve import Limits, Loaded

#: Default timeout for importing a user's file, which may import torch.
LOAD_TIMEOUT_SECONDS = Limits.load_seconds

#: Timeout for a child process to start, before it imports the file.
START_TIMEOUT_SECONDS = 60.0

#: Seconds after the deadline in which the child should have ended by itself.
GRACE_SECONDS = 2.0

#: `faulthandler` writes the stacks of at most this many threads.
MAX_THREADS = 100

_HEADING = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$', re.MULTILINE)

#: Beginnings of the names of files that import a registered module.
_OWN_FILES = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<")


class _Frame(NamedTuple):
    """A line of a stack: file, line and function."""

    file: str
    line: str
    function: str


def start_function(
    load: Callable[..., Loaded],
    arguments: Sequence[Any],
    name: str,
    limits: Limits,
    *,
    environment: Mapping[str, str] | None = None,
    is_quiet: bool = False,
) -> tuple[ChildProcess, Any, bool]:
    """Start a child process that loads a function, for an `IsolatedFunction`.

    Args:
        load: loads the function there; a function of a module, which is imported there.
        arguments: arguments of `load`, which can be pickled.
        name: `file.py:attribute` or a registered name, for messages.
        limits: the limits of the function.
        environment: environment variables to add to those of this process.
        is_quiet: whether to discard what the file prints.

    Raises:
        SourceError: there is no such file.
        UsageError: the file does not load in time, or it ends the process.
        RewardkitError: as `load` raises it.
    """
    file = name.partition(":")[0]
    if file.endswith(".py") and not Path(file).is_file():
        raise SourceError(f"{file}: no such file.")
    process = ChildProcess("rewardkit.isolate.serve", environment=environment, is_quiet=is_quiet)
    start_deadline = monotonic() + START_TIMEOUT_SECONDS

    def deadline() -> float:
        start, number = process.mark
        return (
            start + limits.load_seconds + GRACE_SECONDS if number == LOAD_MARK else start_deadline
        )

    try:
        request = load, arguments, name, limits
        problem, reply, is_async = process.exchange(request, START_TIMEOUT_SECONDS, deadline)
    except (ChildTimeoutError, ChildCrashError) as error:
        if isinstance(error, ChildTimeoutError) or process.stacks:
            message = timeout_message(process.stacks, name, limits.load_seconds)
            raise UsageError(message) from None
        hint = "; REWARDKIT_DEBUG=1 shows its output" if is_quiet else ""
        message = f"{name}: its process ended while it was imported ({error}){hint}."
        raise UsageError(message) from None
    if problem:
        process.close()
        raise getattr(errors, problem)(reply)
    return process, reply, is_async


def timeout_message(stacks: str, name: str, seconds: float) -> str:
    """Return why a file or registered name did not load in time, with the line in its stacks."""
    file = name.partition(":")[0]
    text = _HEADING.split(stacks)[-1] if _HEADING.search(stacks) else ""
    threads = _THREAD.split(text)
    # The main thread is the last one, unless there are too many.
    frames = _frames(threads[-1]) if len(threads) <= MAX_THREADS else []
    frame = _user_frame(frames, file)
    advice = "Fix the file, or raise --load-seconds if it is only slow."
    if frame is None:
        return f"{name}: not imported within {seconds:g} s. {advice}"
    path = file if file.endswith(".py") else frame.file
    inner = "" if frames[0] == frame else f" (in {frames[0].file}:{frames[0].line})"
    return (
        f"{path}:{frame.line}: the import stood at this line{inner} after {seconds:g} s. {advice}"
    )


def place_in_stacks(error: ChildTimeoutError, name: str) -> str:
    """Return `, at file.py:LINE`, where a call of `file.py:attribute` stood that took too long, or ""."""
    file = name.partition(":")[0]
    line = line_in_stacks(str(error), file) if file.endswith(".py") else ""
    return f", at {file}:{line}" if line else ""


def line_in_stacks(stacks: str, file: str) -> str:
    """Return the innermost line of a file in stacks that `faulthandler` wrote; "" without one."""
    frame = _user_frame(_frames(stacks), file)
    return frame.line if frame else ""


def _frames(stacks: str) -> list[_Frame]:
    return [_Frame(*match.groups()) for match in _FRAME.finditer(stacks)]


def _user_frame(frames: Sequence[_Frame], file: str) -> _Frame | None:
    """Return the innermost frame of a user's file; of a registered module, if `file` is its name."""
    if file.endswith(".py"):
        path = os.path.abspath(file)  # noqa: PTH100 - removes `..`, too
    else:
        path = next((f.file for f in reversed(frames) if not f.file.startswith(_OWN_FILES)), "")
    name = path.encode("ascii", "backslashreplace").decode()  # as `faulthandler` writes it
    return next((frame for frame in frames if os.path.normpath(frame.file) == name), None)
