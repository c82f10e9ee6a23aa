"""Start a model's server as a child process, wait until it answers, and end its process group."""

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

from rewardkit.errors import MissingPackageError, SourceError, UsageError
from rewardkit.redact import Redactor

#: Seconds between two requests to a starting server.
POLL_SECONDS = 0.5

#: Seconds between SIGTERM and SIGKILL for a server.
GRACE_SECONDS = 10.0

#: HTTP statuses of a server without the requested page.
MISSING_PAGE_STATUSES = frozenset({404, 405})

#: Bytes at the end of a log among which the last line is searched.
LOG_TAIL_BYTES = 4000


def server_command(template: str, model: Path, port: int) -> list[str]:
    """Return the words of a server's command, as a shell splits them, with both marks replaced.

    Args:
        template: the command, with `{model}` and `{port}` in it.
        model: folder with the weights.
        port: port to listen on.

    Raises:
        MissingPackageError: the command is not installed.
        UsageError: the command cannot be split, contains a secret, or lacks one of the marks.
    """
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise UsageError(f"--serve: not a shell command ({error}).") from error
    if Redactor().text(template) != template:  # servers write their arguments to their log
        raise UsageError(
            "--serve contains a secret; export it instead, such as VLLM_API_KEY for vllm serve."
        )
    for mark in ("{model}", "{port}"):
        if not any(mark in word for word in words):
            raise UsageError(
                f"--serve: {mark} is missing; write it as in 'vllm serve {{model}} --port {{port}}'."
            )
    if shutil.which(words[0]) is None:
        raise MissingPackageError(
            f"--serve: {words[0]}: the command is not installed on this machine."
        )
    return [word.replace("{model}", str(model)).replace("{port}", str(port)) for word in words]


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class ModelServer:
    """A running server of a model.

    Attributes:
        url: base URL of its API.
        check: raises `SourceError` if the server has ended.
    """

    url: str
    check: Callable[[], None]


@contextmanager
def serve_model(template: str, model: Path, log: Path, seconds: float) -> Iterator[ModelServer]:
    """Start a model's server and yield it once it answers.

    The server ends with the block, and also if this process is killed.

    Args:
        template: command with `{model}` and `{port}`, which must stay in the foreground.
        model: folder with Hugging Face weights.
        log: file that gets the server's output.
        seconds: how long the server may take until it answers.

    Raises:
        SourceError: the server cannot be started, ended, or did not answer in time; the message has
            the last line of its log.
    """
    port = free_port()
    words = server_command(template, model, port)
    keeper = [
        sys.executable,
        "-m",
        "rewardkit.evaluate.watch.keeper_child",
        str(GRACE_SECONDS),
        *words,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            keeper, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )

    def check() -> None:
        if (code := process.poll()) is not None:
            raise SourceError(f"the server ended with exit code {code}; {last_log_line(log)}")

    try:
        _wait_until_ready(check, f"http://127.0.0.1:{port}", log, seconds)
        yield ModelServer(f"http://127.0.0.1:{port}/v1", check)
    finally:
        _end_server(process)


def _wait_until_ready(check: Callable[[], None], root: str, log: Path, seconds: float) -> None:
    """Wait until `/health` succeeds, or `/v1/models` on a server without that page."""
    deadline = monotonic() + seconds
    with httpx.Client(timeout=10.0, trust_env=False) as http:
        while True:
            check()
            with suppress(httpx.TransportError):
                answer = http.get(f"{root}/health")
                if answer.status_code in MISSING_PAGE_STATUSES:
                    answer = http.get(f"{root}/v1/models")
                if not answer.is_error:
                    return
            if monotonic() > deadline:
                raise SourceError(
                    f"the server did not answer within {seconds:g} s; {last_log_line(log)}"
                )
            sleep(POLL_SECONDS)


def last_log_line(log: Path) -> str:
    """Return the last line of a log, for an error message."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    texts = [" ".join(line.split()) for line in lines if line.strip()]
    return f"{log} ends: {texts[-1][:300] if texts else '(empty)'}"


def _end_server(process: subprocess.Popen[bytes]) -> None:
    """Let the keeper end the server's process group, which it also does after a second Ctrl-C."""
    if process.stdin:
        process.stdin.close()
    process.wait()
