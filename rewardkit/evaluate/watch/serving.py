"""A model's server as a process of ours: started, waited for, and ended with all it started."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import httpx

from rewardkit.errors import SourceError, UsageError
from rewardkit.redact import Redactor

#: Seconds between two looks at a server that starts.
LOOK = 0.5

#: Seconds that a server has to end, before it is killed.
GRACE = 10.0

#: Statuses that say that a server has no such page.
NO_SUCH_PAGE = frozenset({404, 405})

#: Bytes of the end of a server's output that are looked at when it fails.
TAIL = 4000


def command_of(template: str, model: Path, port: int) -> list[str]:
    """A server's command: words as a shell reads them, `{model}` and `{port}` filled in.

    Raises:
        UsageError: it cannot be read, is not there, or lacks one of the two.
    """
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"--serve: no shell command ({error}).") from error
    if Redactor().text(template) != template:  # servers write their arguments into their log
        raise UsageError(
            "--serve has a secret in it; export it instead, as VLLM_API_KEY for vllm serve."
        )
    for mark in ("{model}", "{port}"):
        if not any(mark in word for word in words):
            raise UsageError(
                f"--serve: {mark} is missing; write it as in 'vllm serve {{model}} --port {{port}}'."
            )
    if shutil.which(words[0]) is None:
        raise UsageError(f"--serve: {words[0]}: no such command here.")
    return [word.replace("{model}", str(model)).replace("{port}", str(port)) for word in words]


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Served:
    """A server that runs.

    Attributes:
        url: its base URL.
        check: raises `SourceError` if it has ended.
    """

    url: str
    check: Callable[[], None]


@contextmanager
def served(template: str, model: Path, log: Path, seconds: float) -> Iterator[Served]:
    """A server of a model, once it answers. It is ended with the block, or with this process.

    Args:
        template: its command, with `{model}` and `{port}`; it stays in the foreground.
        model: a folder with Hugging Face weights.
        log: where its output goes.
        seconds: that it may take until it answers.

    Raises:
        SourceError: it cannot be run, ended, or did not answer in time; its last line is told.
    """
    port = free_port()
    words = command_of(template, model, port)
    keeper = [sys.executable, "-m", "rewardkit.evaluate.watch.keeper_child", str(GRACE), *words]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            keeper, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )

    def check() -> None:
        if (code := process.poll()) is not None:
            raise SourceError(f"the server ended with exit code {code}; {last_line(log)}")

    try:
        _wait(check, f"http://127.0.0.1:{port}", log, seconds)
        yield Served(f"http://127.0.0.1:{port}/v1", check)
    finally:
        _end(process)


def _wait(check: Callable[[], None], root: str, log: Path, seconds: float) -> None:
    """Until `/health` says yes or, of a server without it, `/v1/models` does."""
    until = monotonic() + seconds
    with httpx.Client(timeout=10.0, trust_env=False) as http:
        while True:
            check()
            with suppress(httpx.TransportError):
                answer = http.get(f"{root}/health")
                if answer.status_code in NO_SUCH_PAGE:
                    answer = http.get(f"{root}/v1/models")
                if not answer.is_error:
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
    """Let the keeper end the server's group; at a second Ctrl-C it goes on alone."""
    if process.stdin:
        process.stdin.close()
    process.wait()
