"""Calls of a function from many threads, in few child processes.

A call costs two switches between processes, which take longer than most rewards. Calls that wait
for the same process are therefore sent together: the thread that has a process sends what waits,
hands out the replies and passes the process on to a thread that still waits. Calls behind one that
fails are sent again, by other threads. No thread is started.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from rewardkit.errors import call_catching
from rewardkit.isolate.batch_process import BatchProcess, Reply
from rewardkit.isolate.child_process import ChildTimeoutError

#: Seconds that a batch should take. Functions that take longer are called one by one.
BATCH_SECONDS = 0.002

#: Calls in a batch.
MAX_BATCH = 64

#: Processes that answer a fast function: while one answers, calls gather for its next batch.
FAST_PROCESSES = 1

#: Seconds after which a call that waits gets a process of its own, if there is or may be one more.
PATIENCE_SECONDS = 0.05

#: Weight of the latest batch in the average duration of a call.
_WEIGHT = 0.2

#: The reply to a call, or what was raised while its process was started.
Outcome: TypeAlias = "Reply | Exception"


class _Call:
    """A call that a thread waits for, until it has an outcome or a process to work with."""

    __slots__ = ("outcome", "process", "request", "wake")

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.wake = threading.Lock()
        self.wake.acquire()
        self.process: BatchProcess | None = None
        self.outcome: Outcome = TimeoutError("the call has no reply")


class SyncCalls:
    """Calls of one function in several processes, which start when they are needed."""

    def __init__(self, new_process: Callable[[], BatchProcess], workers: int) -> None:
        """Keep what is needed to start processes.

        Args:
            new_process: returns a process that is not started yet.
            workers: maximum number of processes. A process starts when a call has waited for
                `PATIENCE_SECONDS`; a fast function, whose calls are sent in batches, needs one.
        """
        self._new_process, self._workers = new_process, workers
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._idle: list[BatchProcess] = []
        self._processes: list[BatchProcess] = []
        self._to_close: list[BatchProcess] = []
        self._active = 0
        self._usual_seconds = BATCH_SECONDS  # of a call; until it is known, each is sent alone

    def start(self) -> None:
        """Start a process now.

        Raises:
            UsageError: the file does not load.
        """
        with self._lock:
            if not self._processes:
                self._processes.append(self._new_process())
                self._idle.append(self._processes[0])
        self._processes[0].start()

    def call(self, request: bytes) -> Outcome:
        """Return the outcome of a request. Never raises."""
        call = _Call(request)
        with self._lock:
            process = (
                None if self._active >= FAST_PROCESSES and self._is_fast else self._take_process()
            )
            if process is None:
                self._waiting.append(call)
        if process is None:
            process = self._wait(call)
        if process is not None:
            self._work(process, call)
        return call.outcome

    def close(self) -> None:
        """End all processes, each after the calls in it. Later calls start them again."""
        with self._lock:
            self._to_close = [each for each in self._processes if each not in self._idle]
            for process in self._idle:
                process.close()

    @property
    def _is_fast(self) -> bool:
        """Whether one process answers faster in batches than several do one by one."""
        return self._usual_seconds < BATCH_SECONDS

    def _take_process(self) -> BatchProcess | None:
        if not self._processes:
            self._processes.append(self._new_process())
            self._idle.append(self._processes[0])
        if not self._idle:
            return None
        self._active += 1
        return self._idle.pop()

    def _wait(self, call: _Call) -> BatchProcess | None:
        """Wait until a call has an outcome, and return None; or until it has a process."""
        try:
            while not call.wake.acquire(timeout=PATIENCE_SECONDS):
                with self._lock:
                    if call in self._waiting and self._has_idle_process():
                        self._waiting.remove(call)
                        return self._take_process()
        except BaseException:  # this thread is interrupted, and the others wait
            with self._lock:
                if call in self._waiting:
                    self._waiting.remove(call)
            if call.process is not None:
                self._pass_on(call.process, [], [])
            raise
        return call.process

    def _has_idle_process(self) -> bool:
        """Whether a process is idle; a new one is, if there may be one more."""
        # While a process starts, one more would only make that slower.
        has_started = all(process.greeting is not None for process in self._processes)
        if not self._idle and has_started and len(self._processes) < self._workers:
            self._processes.append(self._new_process())
            self._idle.append(self._processes[-1])
        return bool(self._idle)

    def _work(self, process: BatchProcess, call: _Call) -> None:
        """Answer a call and others that wait; then pass the process on."""
        batch = [call]
        with self._lock:
            room = min(MAX_BATCH, int(BATCH_SECONDS / max(self._usual_seconds, 1e-6)))
            while len(batch) < room and self._waiting:
                batch.append(self._waiting.popleft())
        outcomes: list[Outcome] = []
        try:
            outcomes = _outcomes(process, batch)
            for each, outcome in zip(batch, outcomes, strict=False):
                each.outcome = outcome
        finally:  # also if this thread is interrupted, because the others wait
            answered = max(1, len(outcomes))
            self._pass_on(process, outcomes, batch[answered:])
            for each in batch[1:answered]:
                each.wake.release()

    def _pass_on(
        self, process: BatchProcess, outcomes: list[Outcome], unanswered: list[_Call]
    ) -> None:
        """Give the process to a thread that waits, or keep it for the next call."""
        if process in self._to_close:
            self._to_close.remove(process)
            process.close()
        durations = [_seconds(process, each) for each in outcomes]
        with self._lock:
            if durations:
                mean = sum(durations) / len(durations)
                self._usual_seconds += _WEIGHT * (mean - self._usual_seconds)
            self._waiting.extendleft(reversed(unanswered))
            is_needed = self._waiting and not (self._is_fast and self._active > FAST_PROCESSES)
            if not is_needed:
                self._idle.append(process)
                self._active -= 1
                return
            successor = self._waiting.popleft()
            successor.process = process
        successor.wake.release()


def _outcomes(process: BatchProcess, batch: list[_Call]) -> list[Outcome]:
    """Return the outcomes of the first calls of a batch, up to one that failed."""
    requests = [call.request for call in batch]
    outcomes = call_catching(process.call_batch, requests, until_failure=True)
    if isinstance(outcomes, Exception):
        return [outcomes] * len(batch)
    return [*outcomes]


def _seconds(process: BatchProcess, outcome: Outcome) -> float:
    if isinstance(outcome, list):
        return float(outcome[0] * 1e-9)
    return process.seconds if isinstance(outcome, ChildTimeoutError) else 0.0
