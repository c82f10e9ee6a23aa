"""Run a command to its end or to a deadline, and leave none of its processes behind.

Ray's processes are not all children of the one that started them: some are handed to init, and
their titles overwrite their environment. They are known by the session they were started in.
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

#: Seconds between looks at the process.
TICK = 0.2

#: Seconds that processes have to end when told, before they are killed.
GRACE = 3.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, None if it ran out of time; and the seconds it took."""

    code: int | None
    seconds: float


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    seconds: float,
    tick: Callable[[], object] = lambda: None,
) -> Ended:
    """Run a command in a session of its own, with all it prints in `log`.

    Whatever happens, Ctrl-C included, no process of that session is left.

    Args:
        command: its first item is a path.
        env: variables besides those of this process.
        log: a file that is written.
        seconds: it may take.
        tick: called a few times a second.
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
            time.sleep(TICK)
            tick()
        code = process.poll()
    finally:
        end_session(process.pid)
        process.wait()
    tick()
    return Ended(code, time.monotonic() - started)


def end_session(session: int) -> None:
    """End every process of a session: told first, killed a few seconds later."""
    deadline = time.monotonic() + GRACE
    signals = signal.SIGTERM, signal.SIGKILL
    for number in signals:
        while members := session_members(session):
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(TICK)
            if number == signal.SIGTERM and time.monotonic() > deadline:
                break


def session_members(session: int) -> list[int]:
    """The living processes of a session, from /proc; zombies do not count."""
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
