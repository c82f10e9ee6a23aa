"""Run a command until it ends or has to be ended, and leave none of its processes behind.

Some of Ray's processes become children of init, and their titles overwrite their environment. They
are recognised by the session that they were started in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Seconds between two polls of the process.
POLL_SECONDS = 0.2

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 3.0


@dataclass(frozen=True)
class CommandOutcome:
    """The exit code of a command, None if it was ended, and the seconds that it took."""

    exit_code: int | None
    seconds: float


def run_command(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    seconds: float,
    should_end: Callable[[], bool] = lambda: False,
) -> CommandOutcome:
    """Run a command in a session of its own, and write its output to `log`.

    No process of that session is left afterwards, not even after Ctrl-C.

    Args:
        command: the arguments; the first is the path of a program.
        env: variables in addition to those of this process.
        log: the file for the output.
        seconds: the deadline.
        should_end: called several times per second, and once after the end; the command is ended
            when it returns True.
    """
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - verl, in the user's own environment
            command,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while process.poll() is None and time.monotonic() - started < seconds:
            time.sleep(POLL_SECONDS)
            if should_end():
                break
        code = process.poll()
    finally:
        end_session(process.pid)
        process.wait()
    should_end()
    return CommandOutcome(code, time.monotonic() - started)


def end_session(session: int) -> None:
    """End every process of a session, first by SIGTERM and then by SIGKILL."""
    deadline = time.monotonic() + GRACE_SECONDS
    signals = signal.SIGTERM, signal.SIGKILL
    for number in signals:
        while members := session_members(session):
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(POLL_SECONDS)
            if number == signal.SIGTERM and time.monotonic() > deadline:
                break


def session_members(session: int) -> list[int]:
    """Return the living processes of a session, from /proc; zombies do not count."""
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and _session(path) == session
    ]


def _session(process: Path) -> int | None:
    try:
        fields = (process / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None  # it has ended meanwhile
    state, _parent, _group, session = fields.rpartition(")")[2].split()[:4]
    return None if state in "ZX" else int(session)
