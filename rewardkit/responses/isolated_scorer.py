"""A scorer that is not ours, in a process of its own: it may hang, print, fork or end its process.

Responses are sent in batches, and every one of them is answered, or given up after a time; then the
process is ended with all that it started and another is started, so that a response which breaks a
scorer costs its own verdict and no other.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from socket import SO_SNDTIMEO, SOL_SOCKET, socketpair
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, TypeAlias

from rewardkit import registry
from rewardkit.errors import UnknownNameError, UsageError, call_catching
from rewardkit.responses.scorer_child import MARK, SHARED_BYTES, STATUS
from rewardkit.scorers.base import Score, Scorer, Status
from rewardkit.scorers.call import InvalidScoreError, NeverAnswersError, NoVerdictError
from rewardkit.scorers.load import load_scorer

#: A scorer's time for one response, if not told otherwise.
SECONDS = 60.0

#: For a process to start and to load a scorer, which may import torch.
LOADING = 300.0

#: A scorer that gives no verdict on any of its first responses is given up after this many.
FIRST = 5

#: Seconds between two looks at whether the process lives, while its verdicts are waited for. Its end
#: is noticed at once, unless something that it forked holds the socket open.
LOOK_SECONDS = 0.5

#: For the guard of a process to end it, before it is ended without its guard.
GUARD_TIMEOUT_SECONDS = 10.0

#: Bytes of one message from the process. A batch holds a megabyte of rows, and a pred is seldom
#: longer than its response.
MAX_REPLY_BYTES = 1 << 28

#: What the kernel takes for a time: seconds and microseconds.
TIMEVAL = struct.Struct("@ll")

#: Why a process is ended that sends what is not a verdict.
STRAY_OUTPUT = "it wrote to the socket that its verdicts are sent through"

#: The path of this process, before anything is imported: a folder may have a `select.py`.
_CHILD = "import sys; sys.path[:] = sys.argv[4:]; from rewardkit.responses.scorer_child import main; main()"

#: A response, its gold and its extra_info.
Request: TypeAlias = tuple[str, str, Mapping[str, Any]]


class EndedError(NoVerdictError):
    """A scorer ended its process."""

    description = "ended its process"


class LateError(NoVerdictError):
    """A scorer gave no verdict in time."""

    description = "took too long"
    status = Status.TIMEOUT


#: The errors of ours that a scorer's process may send by name; others get a type of their name.
OUR_ERRORS: Mapping[str, type[Exception]] = {
    error.__name__: error for error in (InvalidScoreError, UnknownNameError, UsageError)
}


class _TimeIsOverError(Exception):
    """The process did not reply in time."""


class Apart:
    """A scorer in a process of its own; called like any other. `close` ends the process.

    Attributes:
        taken: nanoseconds that the scorer took for the last response.
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
        self._batches = 0
        self._failures = 0
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
        (result,) = self.judge([(response, ground_truth, dict(extra_info or {}))])
        if isinstance(result, Exception):
            raise result
        return result

    def judge(self, requests: Sequence[Request]) -> list[Score | Exception]:
        """The verdict on each response of a batch, or what the scorer raised or did instead.

        A response on which the process ends is tried once more, alone: the memory killer may have
        ended it. Responses before it whose verdicts were not sent yet are judged again.

        Raises:
            NeverAnswersError: there was no verdict on any of the first `FIRST` responses.
        """
        results: list[Score | Exception | None] = [None] * len(requests)
        tried: set[int] = set()
        ranges = [(0, len(requests))]
        while ranges:
            start, stop = ranges.pop()
            replies, failure = self._exchange(requests[start:stop])
            done = start + len(replies)
            results[start:done] = replies
            if failure is None:
                continue
            broken = min(max(start + self._mark()[1], done), stop - 1)
            ranges += [(broken + 1, stop)] if broken + 1 < stop else []
            if isinstance(failure, EndedError) and broken not in tried:
                tried.add(broken)
                ranges.append((broken, broken + 1))
            else:
                results[broken] = self._fail(failure)
            ranges += [(done, broken)] if done < broken else []
        return [result for result in results if result is not None]

    def close(self) -> None:
        """End the process, and what it started."""
        if self._child is None:
            return
        self._requests.close()
        self._socket.close()
        os.close(self._life)  # its guard ends it, and all that it started
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(GUARD_TIMEOUT_SECONDS)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)  # the guard may have been ended itself
        code, (status,) = self._child.wait(), STATUS.unpack_from(self._shared, MARK.size)
        self._ended = self._ended or _exit_text(
            code if status < 0 else os.waitstatus_to_exitcode(status)
        )
        self._child = None

    def _exchange(
        self, requests: Sequence[Request]
    ) -> tuple[list[Score | Exception], NoVerdictError | None]:
        """The verdicts on the first of the responses, and why there are no more if there are none.

        The process is ended if it does not answer all of them.
        """
        self._ready()
        self._batches += 1
        MARK.pack_into(self._shared, 0, monotonic(), 0)
        replies: list[Score | Exception] = []
        try:
            self._send((self._batches, list(requests)), self.seconds)
            while len(replies) < len(requests):
                replies += self._verdicts(self._reply(self._row_deadline), len(replies))
        except _TimeIsOverError:
            self.close()
            return replies, LateError(f"no verdict within {self.seconds:g} s")
        except (OSError, EOFError):  # a broken pipe
            self._wait_for_end()
            self.close()
            return replies, EndedError(f"the scorer ended its process ({self._ended})")
        return replies, None

    def _verdicts(self, reply: Any, place: int) -> Iterator[Score | Exception]:
        """The verdicts of a reply, which must be the next ones of this batch."""
        try:
            batch, first, verdicts = reply
            known = [_result(*verdict) for verdict in verdicts]
            self.taken = verdicts[-1][-1]
        except (TypeError, ValueError, IndexError):
            batch, first, known = -1, -1, []
        if (batch, first) != (self._batches, place):
            self._ended = STRAY_OUTPUT
            raise EOFError
        self._answered = True
        yield from known

    def _mark(self) -> tuple[float, int]:
        """When the scorer began the response that it has at hand, and its place in the batch."""
        began, place = MARK.unpack_from(self._shared)
        return began, place

    def _row_deadline(self) -> float:
        return self._mark()[0] + self.seconds

    def _send(self, value: Any, seconds: float) -> None:
        """Send a request.

        Raises:
            OSError: the process is gone.
            _TimeIsOverError: it does not read.
        """
        whole = int(seconds)
        limit = TIMEVAL.pack(whole, int((seconds - whole) * 1e6) or 1)
        self._socket.setsockopt(SOL_SOCKET, SO_SNDTIMEO, limit)
        try:
            self._requests.send(value)
        except BlockingIOError as error:
            raise _TimeIsOverError from error

    def _reply(self, deadline: Callable[[], float]) -> Any:
        """The next message of the process.

        Args:
            deadline: the time by `monotonic` to wait for; it may move while it is waited for.

        Raises:
            EOFError: the process is gone, or what it sent is not a message of ours.
            _TimeIsOverError: there was none in time.
        """
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            left = deadline() - monotonic()
            # Also if the time is over: this process may have been the slow one.
            if self._poll.poll(max(0.0, min(left, LOOK_SECONDS)) * 1000):
                piece = self._socket.recv(1 << 16)
                if not piece or searched > MAX_REPLY_BYTES:
                    raise EOFError
                self._received += piece
            elif left <= 0:
                raise _TimeIsOverError
            elif self._child is None or self._child.poll() is not None:
                raise EOFError
        line = self._received[:end]
        del self._received[: end + 1]
        try:
            return json.loads(line)
        except ValueError:
            self._ended = STRAY_OUTPUT
            raise EOFError from None

    def _wait_for_end(self) -> None:
        """It closes its end before it is gone: its exit code comes a moment later."""
        if self._child is not None and not self._ended:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(1)

    def _ready(self) -> None:
        """Start the process if there is none, or none that lives."""
        if self._child is not None and self._child.poll() is None:
            return
        self.close()
        self._ended, self._received = "", bytearray()
        life, self._life = os.pipe()
        self._socket, theirs = socketpair()
        self._requests = Connection(os.dup(self._socket.fileno()))
        with theirs, TemporaryFile() as shared:
            shared.truncate(SHARED_BYTES)
            self._shared = mmap.mmap(shared.fileno(), SHARED_BYTES)
            STATUS.pack_into(self._shared, MARK.size, -1)
            passed = [theirs.fileno(), life, shared.fileno()]
            self._child = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-c", _CHILD, *map(str, passed), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a scorer prints is no result of ours
                pass_fds=passed,
                start_new_session=True,  # so that what the scorer starts can be ended with it
            )
        os.close(life)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._load()

    def _load(self) -> None:
        deadline = monotonic() + LOADING
        try:
            self._send((self.name, self.options), LOADING)
            wrong = self._reply(lambda: deadline)
        except _TimeIsOverError:
            wrong = f"{self.name}: not imported within {LOADING:g} s."
        except (OSError, EOFError):  # a broken pipe
            self._wait_for_end()
            self.close()
            wrong = f"{self.name}: its process ended while it was imported ({self._ended})."
        if wrong:
            self.close()
            raise UsageError(wrong)

    def _fail(self, failure: NoVerdictError) -> NoVerdictError:
        """Count a response without a verdict; give up on a scorer that has never given one."""
        self._failures += 1
        if not self._answered and self._failures >= FIRST:
            raise NeverAnswersError(
                f"{self.name}: no verdict on the first {FIRST} responses it was given: {failure}. "
                "Try it by itself; if it only is slow, raise --seconds-per-row."
            )
        return failure


def _result(*verdict: Any) -> Score | Exception:
    """A verdict, or an exception, as `_child` sends them."""
    if len(verdict) == 3:
        name, message, _ = verdict
        raised: type[Exception] = OUR_ERRORS.get(name) or type(name, (Exception,), {})
        return raised(message)
    score, correct, pred, status, _ = verdict
    return Score(score, correct, pred, Status(status))


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    name = call_catching(signal.Signals, -code)
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
