"""Calls of a user's function in a child process, in batches, each call with a deadline.

A call that takes too long, or that ends the process, costs its own reply and no other: the process
is ended with everything it started, and a new one answers the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from signal import SIGPROF, Signals
from typing import Any, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.isolate.loading import start_and_load

#: A reply: nanoseconds of the call and its JSON values; or how the call failed.
Reply: TypeAlias = "list[Any] | ChildTimeoutError | ChildCrashError"

#: How a process ended that used up its CPU time.
_CPU_LIMIT = Signals(SIGPROF).name


def start_user_process(
    module: str, request: Sequence[Any], name: str, seconds: float
) -> tuple[ChildProcess, Any]:
    """Start a child whose module calls `batch_child.load_and_report`; return it with its greeting.

    Raises:
        SourceError, UsageError: the file does not load; see `loading.start_and_load`.
    """
    process, (problem, greeting) = start_and_load(module, request, name, seconds)
    if problem:
        process.close()
        raise UsageError(problem)
    return process, greeting


class BatchProcess:
    """A child process whose module answers batches with `batch_child.serve_batches`.

    One caller at a time may use it.

    Attributes:
        greeting: what the process sent when it was started, such as a summary of the file it
            loaded; None before the first start.
        has_replied: whether a process of this object has ever answered a request.
    """

    def __init__(self, start: Callable[[], tuple[ChildProcess, Any]], seconds: float) -> None:
        """Keep what is needed to start the process, which the first call does.

        Args:
            start: starts the process and returns it with its greeting; see `loading.start_and_load`.
                What it raises is raised by the call that needs the process.
            seconds: timeout per call, in seconds of elapsed time.
        """
        self.seconds = seconds
        self.has_replied = False
        self._start, self._batches = start, 0
        self._process: ChildProcess | None = None
        self.greeting: Any = None

    def call_batch(
        self,
        requests: Sequence[Any],
        on_failure: Callable[[ChildTimeoutError | ChildCrashError], None] = lambda _: None,
        *,
        until_failure: bool = False,
    ) -> list[Reply]:
        """Return the reply to each request.

        A request on which the process ends is tried once more, alone: the kernel may have ended it
        because memory was short. Requests before it whose replies were not sent yet are answered
        again.

        Args:
            requests: values that can be pickled.
            on_failure: called when a request has failed; what it raises is raised here.
            until_failure: whether to return only the replies up to the first failure.
        """
        replies: list[Reply | None] = [None] * len(requests)
        retries: set[int] = set()
        ranges = [(0, len(requests))]
        while ranges:
            start, stop = ranges.pop()
            results, failure = self._exchange(requests[start:stop])
            next_place = start + len(results)
            replies[start:next_place] = results
            if failure is None:
                continue
            mark = self._process.mark[1] if self._process else 0
            failure_place = min(max(start + mark, next_place), stop - 1)
            ranges += [(failure_place + 1, stop)] if failure_place + 1 < stop else []
            if isinstance(failure, ChildCrashError) and failure_place not in retries:
                retries.add(failure_place)
                ranges.append((failure_place, failure_place + 1))
            else:
                on_failure(failure)
                replies[failure_place] = failure
                if until_failure:
                    ranges.clear()
            ranges += [(next_place, failure_place)] if next_place < failure_place else []
        return [reply for reply in replies if reply is not None]

    def start(self) -> ChildProcess:
        """Return the process; start it if it does not run."""
        if self._process is None or not self._process.is_alive:
            self.close()
            self._process, self.greeting = self._start()
        return self._process

    def close(self) -> None:
        """End the process, and everything it started. The next call starts it again."""
        if self._process is not None:
            self._process.close()

    def _exchange(
        self, requests: Sequence[Any]
    ) -> tuple[list[Reply], ChildTimeoutError | ChildCrashError | None]:
        """Return the first replies, and the failure that ended them, if any."""
        process = self.start()
        self._batches += 1
        process.reset_mark()
        replies: list[Reply] = []
        try:
            process.send((self._batches, list(requests)), self.seconds)
            while len(replies) < len(requests):
                message = process.receive(lambda: process.mark[0] + self.seconds)
                replies += self._read_replies(process, message, len(replies))
        except (ChildTimeoutError, ChildCrashError) as error:
            # A new error: a traceback would keep the process.
            is_timeout = isinstance(error, ChildTimeoutError) or str(error) == _CPU_LIMIT
            return replies, ChildTimeoutError() if is_timeout else ChildCrashError(str(error))
        except BaseException:  # such as Ctrl-C: half a request may have been sent
            process.close()
            raise
        return replies, None

    def _read_replies(self, process: ChildProcess, message: Any, place: int) -> list[Any]:
        """Return the replies of a message, which must be the next ones of this batch."""
        try:
            batch, first, replies = message
            is_complete = all(isinstance(reply[0], int) for reply in replies)
        except (TypeError, ValueError, IndexError, KeyError):
            batch, first, replies, is_complete = -1, -1, [], False
        if (batch, first) != (self._batches, place) or not is_complete or not replies:
            raise process.stray_output()
        self.has_replied = True
        return list(replies)
