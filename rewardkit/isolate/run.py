"""Run a command that ends with this process, however this process ends, and with its deadline.

The command runs in the process group of a child, so that the guard of the child ends both. What the
command started is in its session, even if it left the group or its parent, as processes of Ray do.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from rewardkit.isolate.child import Channel
from rewardkit.isolate.child_process import ChildProcess

#: Seconds between SIGTERM and SIGKILL.
GRACE_SECONDS = 3.0


class CommandResult(NamedTuple):
    """How a command ended: its exit code, and its output, which is "" if it went to a file."""

    code: int
    stdout: str
    stderr: str


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    seconds: float,
    *,
    text: str = "",
    log: Path | None = None,
    should_end: Callable[[], bool] = lambda: False,
) -> CommandResult:
    """Run a command, and end it and what it started at the deadline, or when this process ends.

    `environment` is added to that of this process, `text` is the standard input, and `log` a file for
    the output. `should_end` is called several times per second.

    Raises:
        ChildTimeoutError: it takes longer, or should end.
        ChildCrashError: the process that runs it was ended.
    """
    if log:
        log.touch()  # for `should_end`, which may read it before the command has started
    process = ChildProcess("rewardkit.isolate.run")
    end = time.monotonic() + seconds
    try:
        process.send((list(words), text, {**os.environ, **environment}, log), seconds)
        return CommandResult(*process.receive(lambda: 0.0 if should_end() else end))
    finally:
        end_session(process.session)
        process.close()


def end_session(session: int) -> None:
    """End every process of a session, first by SIGTERM and then by SIGKILL."""
    deadline = time.monotonic() + GRACE_SECONDS
    while members := session_members(session):
        number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(GRACE_SECONDS / 10)


def session_members(session: int) -> list[int]:
    """Return the living processes of a session, as far as /proc has them; zombies do not count."""
    members = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            text = (path / "stat").read_text(encoding="utf-8", errors="replace")
            state, _parent, _group, own = text.rpartition(")")[2].split()[:4]
            if int(own) == session and state not in "ZX":
                members.append(int(path.name))
    return members


def serve(channel: Channel) -> None:
    """Run one command in the child process, and send its exit code and what it wrote.

    Its outputs are files: a process that the command leaves behind cannot hold them open.
    """
    words, text, environment, log = channel.receive()
    with log.open("w+b") if log else TemporaryFile() as stdout, TemporaryFile() as stderr:
        try:
            process = subprocess.run(  # noqa: S603 - our own file, or verl, in the user's environment
                words,
                input=text.encode(),
                stdout=stdout,
                stderr=stdout if log else stderr,
                env=environment,
                check=False,
            )
        except OSError as error:
            channel.send([1, "", f"{words[0]}: {error.strerror}"])
            return
        outputs = ["", ""]
        for i, output in enumerate((stdout, stderr)) if not log else ():
            output.seek(0)
            outputs[i] = output.read().decode("utf-8", "replace")
    channel.send([process.returncode, *outputs])
