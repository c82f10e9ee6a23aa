"""A model's server as a process of ours: started, waited for, and ended with all it started."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import httpx

from rewardkit.errors import SourceError, UsageError

#: Seconds between two looks at a server that starts.
LOOK = 0.5

#: Seconds that a server has to end, before it is killed.
GRACE = 30.0

#: Bytes of the end of a server's output that are looked at when it fails.
TAIL = 4000


def command_of(template: str, model: Path, port: int) -> list[str]:
    """A server's command: words as a shell reads them, `{model}` and `{port}` filled in.

    Raises:
        UsageError: it cannot be read, or lacks one of the two.
    """
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"--serve: no shell command ({error}).") from error
    for mark in ("{model}", "{port}"):
        if not any(mark in word for word in words):
            raise UsageError(
                f"--serve: {mark} is missing; write it as in 'vllm serve {{model}} --port {{port}}'."
            )
    return [word.replace("{model}", str(model)).replace("{port}", str(port)) for word in words]


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(template: str, model: Path, log: Path, seconds: float) -> Iterator[str]:
    """A server of a model; its base URL once it answers. It is ended with the block.

    The server has a process group of its own, which is what is ended: a server's workers with it.

    Args:
        template: its command, with `{model}` and `{port}`.
        model: a folder with Hugging Face weights.
        log: where its output goes, after what is there.
        seconds: that it may take until it answers.

    Raises:
        UsageError: the command cannot be run.
        SourceError: it ended, or did not answer in time; its last lines are told.
    """
    port = free_port()
    words = command_of(template, model, port)
    with log.open("ab") as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"--serve: {words[0]}: {error.strerror}.") from error
    try:
        url = f"http://127.0.0.1:{port}/v1"
        _wait(process, url, log, seconds)
        yield url
    finally:
        _end(process)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path, seconds: float) -> None:
    until = monotonic() + seconds
    with httpx.Client(timeout=10.0, trust_env=False) as http:
        while True:
            code = process.poll()
            if code is not None:
                raise SourceError(
                    f"the server ended with exit code {code} before it answered; {last_line(log)}"
                )
            with suppress(httpx.TransportError):
                if not http.get(f"{url}/models").is_server_error:
                    return
            if monotonic() > until:
                raise SourceError(
                    f"the server did not answer within {seconds:g} s; {last_line(log)}"
                )
            sleep(LOOK)


def last_line(log: Path) -> str:
    """What the end of a log says, for a message."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL))
        lines = file.read().decode(errors="replace").split("\n")
    said = [" ".join(line.split()) for line in lines if line.strip()]
    return f"{log} ends: {said[-1][:300] if said else '(empty)'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server's process group: asked first, then killed."""
    for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
