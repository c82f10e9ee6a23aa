"""A scorer that is not ours, in a process of its own: it may hang, print or end its process.

Every call is answered, or given up after a time; then the process is ended and another started, so
that a response which breaks a scorer costs its own verdict and no other.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from socket import socketpair
from typing import Any, NoReturn, TypeVar

from rewardkit import registry
from rewardkit.errors import DataError, UsageError
from rewardkit.scorers.base import Score, Scorer, Status, guarded
from rewardkit.scorers.load import load_scorer

#: A scorer's time for one response, if not told otherwise.
SECONDS = 60.0

#: For a process to start and to load a scorer, which may import torch.
LOADING = 300.0

#: Who gave no verdict on any of so many responses, the first it was given, is not asked on.
FIRST = 5

#: The path of this process, before anything is imported: a folder may have a `select.py`.
_CHILD = (
    "import sys; sys.path[:] = sys.argv[2:]; from rewardkit.rollouts._child import main; main()"
)

T = TypeVar("T")


class NoVerdictError(RuntimeError):
    """A scorer gave no verdict; `did` says in a word or two what it did."""

    did = "gave no verdict"


class EndedError(NoVerdictError):
    """A scorer ended its process."""

    did = "ended its process"


class LateError(NoVerdictError):
    """A scorer gave no verdict in time."""

    did = "took too long"


class NeverAnswersError(DataError):
    """A scorer has not given one verdict."""


class Apart:
    """A scorer in a process of its own; called like any other. `close` ends the process.

    Attributes:
        taken: nanoseconds that the last call took there.
    """

    def __init__(self, name: str, options: Mapping[str, Any], seconds: float) -> None:
        """Load the scorer there.

        Raises:
            UsageError: it does not load.
        """
        self.name, self.options, self.seconds = name, dict(options), seconds
        self.taken = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._ended = ""
        self._lost = 0
        self._answered = False
        self._ready()

    def __call__(
        self, response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None
    ) -> Score:
        """The scorer's verdict; what it raises is raised here, with its name and message.

        Raises:
            EndedError: it ended its process, twice.
            LateError: `seconds` were over.
            NeverAnswersError: so it was for the first `FIRST` responses.
        """
        request = (response, ground_truth, dict(extra_info or {}))
        # Ended by the memory killer, perhaps: once more says whether it was the response.
        reply = self._ask(request) or self._ask(request)
        if reply is None:
            self._give_up(EndedError(f"the scorer ended its process ({self._ended})"))
        self._answered, self.taken = True, reply["taken"]
        if "raised" in reply:
            kind, message = reply["raised"]
            raised: type[Exception] = type(kind, (Exception,), {})
            raise raised(message)
        score, correct, pred, status = reply["score"]
        return Score(score, correct, pred, Status(status))

    def close(self) -> None:
        """End the process, and what it started."""
        if self._child is None:
            return
        self._requests.close()
        self._lines.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._ended = _said(self._child.wait())
        self._child = None

    def _ask(self, request: tuple[Any, ...]) -> dict[str, Any] | None:
        """The reply, None if the process ended."""
        self._ready()
        try:
            self._send(request)
            reply = self._reply(self.seconds)
        except OSError:  # a broken pipe
            reply = b""
        if reply is None:
            self.close()
            self._give_up(LateError(f"no verdict within {self.seconds:g} s"))
        if not reply:
            self._wait_for_end()
            self.close()
            return None
        said: dict[str, Any] = json.loads(reply)
        return said

    def _send(self, value: Any) -> None:
        self._requests.send(value)

    def _reply(self, seconds: float) -> bytes | None:
        """A line, an empty one if the process ended; None if the time is over."""
        if not self._poll.poll(seconds * 1000):
            return None
        line = self._lines.readline()
        return line if line.endswith(b"\n") else b""

    def _wait_for_end(self) -> None:
        """It closes its end before it is gone: its exit code comes a moment later."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(1)

    def _ready(self) -> None:
        """Start the process if there is none, or none that lives."""
        if self._child is not None and self._child.poll() is None:
            return
        self.close()
        ours, theirs = socketpair()
        with ours, theirs:
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-c", _CHILD, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a scorer prints is no result of ours
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that what the scorer starts can be ended with it
            )
            self._requests, self._lines = Connection(os.dup(ours.fileno())), ours.makefile("rb")
        self._poll = select.poll()
        self._poll.register(self._lines, select.POLLIN)
        self._load()

    def _load(self) -> None:
        try:
            self._send((os.getpid(), self.name, self.options))
            reply = self._reply(LOADING)
        except OSError:  # a broken pipe
            reply = b""
        if reply is None:
            wrong = f"{self.name}: not imported within {LOADING:g} s."
        elif reply:
            wrong = json.loads(reply)
        else:
            self._wait_for_end()
            self.close()
            wrong = f"{self.name}: its process ended while it was imported ({self._ended})."
        if wrong:
            self.close()
            raise UsageError(wrong)

    def _give_up(self, why: NoVerdictError) -> NoReturn:
        self._lost += 1
        if not self._answered and self._lost >= FIRST:
            raise NeverAnswersError(
                f"{self.name}: no verdict on the first {FIRST} responses it was given: {why}. Try "
                "it by itself; if it only is slow, raise --seconds-per-row."
            )
        raise why


def _said(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    name = guarded(signal.Signals, -code)
    return f"signal {-code}" if isinstance(name, Exception) else name.name


def is_ours(name: str) -> bool:
    """Whether a scorer is of this package; `auto` may call those of other packages, if any are."""
    if name != "auto":
        return name in registry.SCORERS
    built_in = {"scorers": registry.SCORERS, "data_sources": registry.DATA_SOURCES}
    return all(registry.known(group) == names for group, names in built_in.items())


def scorer_of(name: str, options: Mapping[str, Any], seconds: float = SECONDS) -> Scorer:
    """The scorer of that name: ours in this process, any other in one of its own.

    Raises:
        UsageError: there is none, or it does not load, or has no such option.
    """
    if not registry.is_path(name):
        registry.target("scorers", name)  # an unknown name is told before a process is started
    return load_scorer(name, **options) if is_ours(name) else Apart(name, options, seconds)


@contextmanager
def loaded(name: str, options: Mapping[str, Any], seconds: float = SECONDS) -> Iterator[Scorer]:
    """`scorer_of`, whose process ends with the block."""
    scorer = scorer_of(name, options, seconds)
    try:
        yield scorer
    finally:
        close(scorer)


def close(scorer: Scorer) -> None:
    """End the process of a scorer that has one."""
    if isinstance(scorer, Apart):
        scorer.close()


def asked(function: Callable[..., T], *arguments: Any) -> T | Exception:
    """What a scorer returns or raises; a scorer that never answers is raised."""
    result = guarded(function, *arguments)
    if isinstance(result, NeverAnswersError):
        raise result
    return result


def why_not(error: Exception) -> str:
    """Why a response has no score, in a line."""
    if isinstance(error, NoVerdictError):
        return str(error)
    return f"the scorer raised {type(error).__name__}: {in_a_line(error)}"


def in_a_line(error: Exception) -> str:
    """What an exception says, without the ends of lines."""
    return " ".join(str(error).split())
