"""Records what a reward returns: aggregates of every few seconds, and a few samples, as JSON lines.

`Recorder.add` only appends to a list. A thread adds the calls up and writes a line every
`INTERVAL_SECONDS`, or as soon as the calls pause, into a file of its process. A killed process
loses at most the calls since its last line. Whatever fails here, the reward goes on: calls that
cannot be recorded are counted.

The files have responses of the model, shortened; `samples=0` leaves them out.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.recorder.interval import END_CHARACTERS, Call, Interval
from rewardkit.recorder.record_file import RecordFile

#: Seconds between two lines of a process, until its file is large.
INTERVAL_SECONDS = 5.0

#: Seconds without a call after which a line is written early, so that an interval rarely holds
#: calls of two training steps.
PAUSE_SECONDS = 0.5

#: Samples of each data source in an interval.
SAMPLES = 4

#: Calls that wait for the thread before further ones are dropped.
MAX_WAITING_CALLS = 40_000

#: Calls that wait before the callers begin to help.
HELPED_CALLS = 10_000

#: Longest wait of a caller for another that helps, while no line is being written.
MAX_HELP_SECONDS = 0.005

#: Calls that are added up at once; a caller that helps takes about half a millisecond for them.
BATCH_CALLS = 256

_log = logging.getLogger("rewardkit")


class Recorder:
    """Records the calls of a reward in this process, into a file of a folder.

    Attributes:
        folder: the folder, which is created when the first line is written.
        samples: samples of each data source in an interval; 0 writes no response.
    """

    def __init__(
        self, folder: str, *, samples: int = SAMPLES, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder
        self.samples = samples
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Forget the calls and the file, as a forked process has to: they are its parent's."""
        self._calls: deque[Call] = deque()
        self._dropped = 0
        self._is_asleep = True
        self._is_writing = False
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._interval = Interval()
        self._file = RecordFile(self.folder, self._clock())
        self._is_failure_logged = False

    def add(
        self,
        result: Mapping[str, float | str],
        *,
        response: str,
        data_source: str,
        ground_truth: str,
        extra_info: Mapping[str, Any],
        seconds: float,
    ) -> None:
        """Record a call. Never raises, and never waits for the disk; takes a few microseconds.

        Args:
            result: the dictionary that verl gets; the numbers in it are averaged by key.
            response: the response; a few are written, shortened.
            data_source: the row's `data_source`.
            ground_truth: the gold answer, which stands for the prompt if the row has no index.
            extra_info: the row's other fields, of which `split`, `index` and `question` are read.
            seconds: how long the call took.
        """
        try:
            waiting = len(self._calls)
            if waiting >= MAX_WAITING_CALLS:
                self._dropped += 1
                return
            characters = len(response)
            if characters > 2 * END_CHARACTERS:
                response = f"{response[:END_CHARACTERS]}\n{response[-END_CHARACTERS:]}"
            self._calls.append(
                Call(
                    self._clock(),
                    dict(result),
                    response,
                    characters,
                    data_source,
                    ground_truth,
                    extra_info,
                    seconds,
                )
            )
            if self._is_asleep:
                self._awaken()
            elif waiting > HELPED_CALLS:
                self._help()
        except Exception:  # noqa: BLE001 - a result of a user's reward may raise anything
            self._dropped += 1

    def flush(self) -> None:
        """Write everything that was added so far; returns when it is in the file."""
        with self._lock:
            while self._aggregate():
                pass
            self._write(with_samples=True)

    def _help(self) -> None:
        """Add up some calls in the caller's thread, unless another thread is at it.

        If many calls wait, let that thread go on for a moment, but never wait for the disk.
        """
        is_behind = len(self._calls) > 2 * HELPED_CALLS and not self._is_writing
        if self._lock.acquire(timeout=MAX_HELP_SECONDS if is_behind else 0):
            try:
                self._aggregate()
            finally:
                self._lock.release()

    def _awaken(self) -> None:
        self._is_asleep = False
        if self._thread is None:
            with _starting:
                if self._thread is None:
                    thread = threading.Thread(
                        target=self._run, name="rewardkit-recorder", daemon=True
                    )
                    thread.start()
                    self._thread = thread
                    _flush_at_exit()
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            error = call_catching(self._record_until_idle)
            if isinstance(error, Exception):
                self._log_failure(error)
            self._is_asleep = True
            if self._calls:  # one that came just now has not seen that the thread sleeps
                self._wake.set()

    def _record_until_idle(self) -> None:
        while self._record_interval():
            pass

    def _record_interval(self) -> bool:
        """Add calls up until the interval ends or they pause; write it; return whether any came."""
        began = last = time.monotonic()
        while time.monotonic() < began + self._file.interval_factor * INTERVAL_SECONDS:
            self._wake.wait(PAUSE_SECONDS / 2)
            self._wake.clear()
            if self._aggregate_all():
                last = time.monotonic()
            elif time.monotonic() > last + PAUSE_SECONDS:
                break
        with self._lock:
            self._write(with_samples=self._file.are_samples_due)
        return last > began

    def _aggregate_all(self) -> bool:
        """Add the waiting calls to the interval; return whether there were any."""
        is_new = False
        while self._calls:
            with self._lock:
                is_new |= self._aggregate()
            if len(self._calls) > HELPED_CALLS:
                time.sleep(0.001)  # a caller that helps needs the lock
        return is_new

    def _aggregate(self) -> bool:
        """Add a batch of calls to the interval; return whether there were any."""
        calls = self._calls
        batch = [calls.popleft() for _ in range(min(len(calls), BATCH_CALLS))]
        usable = [call for call in map(_plain_call, batch) if call is not None]
        if usable:
            self._interval.add(usable)
        self._interval.unusable += len(batch) - len(usable)
        return bool(batch)

    def _write(self, *, with_samples: bool) -> None:
        """Write the interval; if that fails, it goes on and is written with the next."""
        interval, self._interval = self._interval, Interval()
        dropped, self._dropped = self._dropped, 0
        if not interval.sources and not dropped:
            return
        self._is_writing = True
        error = call_catching(self._append, interval, dropped, with_samples)
        self._is_writing = False
        if isinstance(error, Exception):
            self._interval, self._dropped = interval, self._dropped + dropped
            self._log_failure(error)

    def _append(self, interval: Interval, dropped: int, with_samples: bool) -> None:
        self._file.append(interval.record(self.samples if with_samples else 0), dropped)

    def _log_failure(self, error: Exception) -> None:
        if not self._is_failure_logged:
            self._is_failure_logged = True
            _log.error(
                "%s: rewards cannot be recorded: %s. The reward goes on, and so do further attempts; "
                "see to the folder and the disk.",
                self.folder,
                getattr(error, "strerror", None) or error,
            )


def recorder_of(folder: str) -> Recorder:
    """Return the recorder of a folder in this process; made on the first call."""
    recorder = _recorders.get(folder)
    if recorder is None:
        with _starting:
            recorder = _recorders.setdefault(folder, Recorder(folder))
    return recorder


def flush_all() -> None:
    """Write what every recorder of this process holds. Called when the process ends."""
    for recorder in list(_recorders.values()):
        call_catching(recorder.flush)


def _plain_call(call: Call) -> Call | None:
    """Return a call with the types that it should have; None if that is impossible."""
    is_plain = (
        type(call.response) is str
        and type(call.data_source) is str
        and type(call.seconds) is float
        and type(call.extra_info) is dict
    )
    if is_plain:
        return call
    plain = call_catching(_to_plain_call, call)
    return None if isinstance(plain, Exception) else plain


def _to_plain_call(call: Call) -> Call:
    info = call.extra_info
    return call._replace(
        response=str(call.response),
        data_source=str(call.data_source),
        seconds=float(call.seconds),
        extra_info=dict(info) if isinstance(info, Mapping) else {},
    )


def _flush_at_exit() -> None:
    """Register `flush_all` for the end of this process; children of `multiprocessing` skip atexit."""
    if not _registered:
        atexit.register(flush_all)
    if os.getpid() not in _registered and "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize

        Finalize(None, flush_all, exitpriority=0)
    _registered.add(os.getpid())


def _reset_all() -> None:
    global _starting  # noqa: PLW0603 - the lock may have been held when the process forked
    _starting = threading.Lock()
    for recorder in _recorders.values():
        recorder.reset()


_starting = threading.Lock()
_recorders: dict[str, Recorder] = {}
_registered: set[int] = set()
os.register_at_fork(after_in_child=_reset_all)
