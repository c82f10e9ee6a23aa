"""Calls of a function in child processes, from threads and event loops, each call with a deadline.

A call that takes too long, or that ends its process, costs its own outcome and no other: the process is
ended with everything it started, and a new one answers the other calls. The mark in shared memory tells
which call it was.

A call costs two switches between processes, which take longer than most functions. Calls that wait for
the same process are therefore sent together. A coroutine function has one process, which runs many
calls at a time.

A user's file is loaded in the child, whose watchdog ends it in time and leaves the stacks of its threads. The
message names the line of the file that was running.
"""

import importlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from signal import SIGPROF, Signals
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

from rewardkit import errors
from rewardkit.errors import SourceError, UsageError, call_catching
from rewardkit.isolate.child import LOAD_MARK
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError
from rewardkit.isolate.serve import Limits, Loaded

#: Seconds that a batch should take. Functions that take longer are called one by one.
BATCH_SECONDS = 0.002

#: Calls in a batch.
MAX_BATCH = 64

#: Seconds after which a call that waits gets a process of its own, if there may be one more; also
#: between two looks at the deadlines.
PATIENCE_SECONDS = 0.1

#: Timeout for a process to read a request, in seconds.
SEND_SECONDS = 60.0

#: Seconds beyond the timeout without any reply after which a process is ended. A child ends by itself when a
#: user's file has been loading for too long.
GRACE_SECONDS = 2.0

#: A call has failed when its process has ended this often. The kernel may have ended it the first time
#: because memory was short.
MAX_CRASHES = 2

#: Weight of the latest call in the average duration of a call.
_WEIGHT = 0.05

#: How a process ends that has used up its CPU time.
_CPU_LIMIT = Signals(SIGPROF).name


#: Default timeout for importing a user's file, which may import torch.
LOAD_TIMEOUT_SECONDS = Limits.load_seconds

#: Timeout for a child process to start, before it imports the file.
START_TIMEOUT_SECONDS = 60.0

#: `faulthandler` writes the stacks of at most this many threads.
MAX_THREADS = 100

_HEADING = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in .*$', re.MULTILINE)

#: Beginnings of the names of files that import a registered module.
_OWN_FILES = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<")


class CallError(Exception):
    """The function raised an exception of the type `name`, whose message is that of this one.

    `place` is `file.py:LINE` in the user's file; "" if it was not involved.
    """

    def __init__(self, name: str, message: str, place: str) -> None:
        super().__init__(message)
        self.name, self.place = name, place


class Reply(NamedTuple):
    """What the function returned, and how long it took."""

    nanoseconds: int
    value: Any


#: File and line of a frame of a stack.
_Frame: TypeAlias = tuple[str, str]

#: How a call ends: with a reply, a `CallError`, `ChildTimeoutError` or `ChildCrashError`, or with what
#: was raised when its process was started.
Outcome: TypeAlias = Reply | Exception


class _Call:
    """A call, and the function that takes its outcome."""

    __slots__ = ("crashes", "end", "request", "seconds", "since")

    def __init__(self, request: Any, seconds: float, end: Callable[[Outcome], object]) -> None:
        self.request, self.seconds, self.end = request, seconds, end
        self.since, self.crashes = monotonic(), 0  # `since` it waits, or was sent

    def blame(self, error: Exception) -> None:
        """Count the end of its process, which may be its outcome."""
        is_late = isinstance(error, ChildTimeoutError) or str(error) == _CPU_LIMIT
        self.crashes += MAX_CRASHES if is_late else 1
        if self.crashes >= MAX_CRASHES:
            self.end(ChildTimeoutError(*error.args) if is_late else error)


class _Worker:
    """A process, and the calls that it has not answered, by number."""

    def __init__(self, process: ChildProcess) -> None:
        self.process = process
        self.calls: dict[int, _Call] = {}
        self.replied_at = monotonic()
        self._numbers = count(1)

    def send(self, calls: Iterable[_Call]) -> None:
        """Send calls to the process, in any thread."""
        batch = dict(zip(self._numbers, calls, strict=False))
        for call in batch.values():
            call.since = monotonic()
        self.calls |= batch
        requests = [(number, call.request) for number, call in batch.items()]
        if requests:
            with suppress(ChildTimeoutError, ChildCrashError):  # which the other thread notices
                self.process.send(requests, SEND_SECONDS)

    def settle(self, replies: Any) -> list[float]:
        """Give calls their outcomes; return how many seconds they took."""
        durations = []
        try:
            for number, *reply in replies:
                outcome: Outcome = ChildTimeoutError()
                if reply:
                    durations.append(reply[0] * 1e-9)
                    outcome = Reply(*reply) if len(reply) == 2 else CallError(*reply[1:])
                if call := self.calls.pop(number, None):
                    call.end(outcome)
        except (TypeError, ValueError):
            raise self.process.stray_output() from None
        return durations

    def running_calls(self) -> list[_Call]:
        """Return the call that runs, or ran when the process ended; all if that is not known."""
        call = self.calls.get(self.process.mark[1])
        return [call] if call else [*self.calls.values()]

    def late_calls(self) -> list[_Call]:
        """Return the calls for which the process has to be ended."""
        now, (start, number) = monotonic(), self.process.mark
        call = self.calls.get(number)
        if call and now - start > call.seconds and self.process.mark == (start, number):
            return [call]  # the second look: the first may have been while the mark was written
        if now - self.replied_at < GRACE_SECONDS:
            return []
        calls = [*self.calls.values()]
        replied_at = self.replied_at
        return [c for c in calls if now - max(replied_at, c.since) > c.seconds + GRACE_SECONDS]


class IsolatedFunction:
    """A function in child processes, which start when they are needed. Any thread may call it.

    A call for which no process can be started has the reason as its outcome, see `start`.

    Attributes:
        arguments: arguments of the loader in processes that start from now on.
        greeting: what its loader returned beside it; None before a process has been started.
        is_async: whether it is a coroutine function; False before a process has been started.
        usual_seconds: the duration of a call; until it is known, each is sent alone.
    """

    def __init__(
        self,
        load: Callable[..., Loaded],
        arguments: Sequence[Any],
        name: str,
        limits: Limits,
        *,
        environment: Mapping[str, str] | None = None,
        is_quiet: bool = False,
    ) -> None:
        """Prepare the processes, in which `load`, a function of a module, gets the arguments.

        `name` is `file.py:attribute` or a registered name, for messages; `is_quiet` discards what the
        file prints, and `environment` is added to that of this process.
        """
        self.arguments, self._load, self._name, self._limits = arguments, load, name, limits
        self._environment, self._is_quiet = environment, is_quiet
        self.greeting: Any = None
        self.is_async = False
        self._reset()

    def _reset(self) -> None:
        self._pid, self._lock = os.getpid(), threading.RLock()
        self._waiting: deque[_Call] = deque()
        self._workers: list[_Worker] = []
        self._is_starting, self._closings = False, 0
        self.usual_seconds = BATCH_SECONDS

    def start(self) -> None:
        """Start a process now.

        Raises:
            RewardkitError: the file does not exist or load in time, or what the loader raises.
        """
        worker = _Worker(self.start_process())
        self._workers.append(worker)
        self._start_thread(partial(self._serve, worker))

    def start_process(self) -> ChildProcess:
        """Start a process that has loaded the function; see `start`."""
        file, limits = self._name.partition(":")[0], self._limits
        if file.endswith(".py") and not Path(file).is_file():
            raise SourceError(f"{file}: no such file.")
        process = ChildProcess(
            "rewardkit.isolate.serve", environment=self._environment, is_quiet=self._is_quiet
        )
        start_deadline = monotonic() + START_TIMEOUT_SECONDS

        def deadline() -> float:
            start, number = process.mark
            load_deadline = start + limits.load_seconds + GRACE_SECONDS
            return load_deadline if number == LOAD_MARK else start_deadline

        try:
            request = self._load, self.arguments, self._name, limits
            problem, reply, is_async = process.exchange(request, START_TIMEOUT_SECONDS, deadline)
        except (ChildTimeoutError, ChildCrashError) as error:
            hint = "; REWARDKIT_DEBUG=1 shows its output" if self._is_quiet else ""
            message = f"{self._name}: its process ended while it was imported ({error}){hint}."
            if isinstance(error, ChildTimeoutError) or process.stacks:
                message = timeout_message(process.stacks, self._name, limits.load_seconds)
            raise UsageError(message) from None
        if problem:
            process.close()
            raise getattr(errors, problem)(reply)
        self.greeting, self.is_async = reply, is_async
        return process

    def call(self, request: Any, seconds: float | None = None) -> Outcome:
        """Return the outcome of a request that can be pickled, within its own timeout. Never raises."""
        return self.call_all([request], seconds)[0]

    def call_all(self, requests: Sequence[Any], seconds: float | None = None) -> list[Outcome]:
        """Return the outcome of each request; see `call`."""
        outcomes: dict[int, Outcome] = {}
        done = threading.Lock()

        def end(index: int, outcome: Outcome) -> None:
            outcomes[index] = outcome
            if len(outcomes) == len(requests):
                done.release()

        seconds = seconds or self._limits.seconds
        calls = [_Call(request, seconds, partial(end, i)) for i, request in enumerate(requests)]
        try:
            if calls:
                done.acquire()
                self._submit(calls)
                done.acquire()
        finally:  # also if this thread is interrupted
            for call in calls:
                call.crashes = MAX_CRASHES
        return [outcomes[index] for index in range(len(calls))]

    async def call_async(self, request: Any) -> Outcome:
        """Return the outcome of a request on any event loop. Never raises."""
        from asyncio import Future, get_running_loop

        loop = get_running_loop()
        future: Future[Outcome] = loop.create_future()

        def set_outcome(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def end(outcome: Outcome) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(set_outcome, outcome)

        call = _Call(request, self._limits.seconds, end)
        self._submit([call])
        try:
            return await future
        finally:
            call.crashes = MAX_CRASHES

    def close(self) -> None:
        """End all processes. Calls in progress, and later ones, start them again."""
        if self._pid == os.getpid():
            with self._lock:
                self._closings += 1
            for worker in [*self._workers]:
                worker.process.close()

    def _submit(self, calls: Iterable[_Call]) -> None:
        if self._pid != os.getpid():  # a fork does not have the processes and threads of its parent
            self._reset()
        with self._lock:
            self._waiting.extend(calls)
            self._send_waiting()

    def _send_waiting(self) -> None:
        """Send the calls that wait to processes that take them, and start one if there is none.

        One process answers a fast function, and calls gather for it, unless they wait for too long.
        """
        with self._lock:
            is_fast = self.usual_seconds < BATCH_SECONDS and not self._has_late_call()
            for worker in self._workers[:1] if is_fast else self._workers:
                while self._waiting and (not worker.calls or self.is_async):
                    if worker.calls and not worker.process.is_writable():
                        break
                    worker.send(self._next_calls())
            if self._waiting and not self._workers:
                self._start_worker()

    def _next_calls(self) -> list[_Call]:
        room = MAX_BATCH if self.is_async else int(BATCH_SECONDS / max(self.usual_seconds, 1e-6))
        calls: list[_Call] = []
        while self._waiting and len(calls) < max(1, min(room, MAX_BATCH)):
            if calls and (calls[-1].crashes or self._waiting[0].crashes):
                break  # a call whose process has ended is sent alone: another may be to blame
            call = self._waiting.popleft()
            if call.crashes < MAX_CRASHES:
                calls.append(call)
        return calls

    def _has_late_call(self) -> bool:
        return bool(self._waiting) and monotonic() - self._waiting[0].since > PATIENCE_SECONDS

    def _put_back(self, calls: dict[int, _Call]) -> None:
        """Let calls without an outcome wait for a process again."""
        with self._lock:
            again = [call for call in calls.values() if call.crashes < MAX_CRASHES]
            self._waiting.extendleft(reversed(again))
            calls.clear()

    def _start_worker(self) -> None:
        if not self._is_starting:
            self._is_starting = True
            self._start_thread(self._run)

    def _start_thread(self, work: Callable[[int], None]) -> None:
        threading.Thread(target=work, args=[self._closings], daemon=True).start()

    def _run(self, closings: int) -> None:
        """Start a process and take its replies, in a thread of its own."""
        started = call_catching(self.start_process)
        with self._lock:
            self._is_starting = False
            if isinstance(started, Exception):
                while self._waiting:
                    self._waiting.popleft().end(started)
                return
            worker = _Worker(started)
            self._workers.append(worker)
        self._serve(worker, closings)

    def _serve(self, worker: _Worker, closings: int) -> None:
        """Take the replies of a process until it has ended, in a thread of its own."""
        try:
            while not (late := worker.late_calls()):
                self._send_waiting()
                self._take_replies(worker)
            error: Exception = worker.process.time_out()
        except ChildCrashError as crash:
            # Its traceback would keep this frame, and the descriptors of the process, alive.
            late, error = worker.running_calls(), crash.with_traceback(None)
        worker.process.close()
        with self._lock:
            self._workers.remove(worker)
            for call in late if self._closings == closings else ():
                call.blame(error)
            self._put_back(worker.calls)
            self._send_waiting()

    def _take_replies(self, worker: _Worker) -> None:
        """Settle the calls whose replies arrive within a while."""
        has_reply = worker.process.has_reply(PATIENCE_SECONDS)
        for message in worker.process.receive_all() if has_reply else ():
            worker.replied_at = monotonic()
            if isinstance(message, str):  # how a fork of the process has ended
                for call in worker.running_calls():
                    call.blame(ChildCrashError(message))
                self._put_back(worker.calls)
                continue
            for seconds in worker.settle(message):
                self.usual_seconds += _WEIGHT * (seconds - self.usual_seconds)
        most = 1 if self.is_async else self._limits.workers
        with self._lock:  # a fast function needs one more only while a call of it takes long
            is_slow = self.usual_seconds > BATCH_SECONDS or not has_reply
            if is_slow and self._has_late_call() and len(self._workers) < most:
                self._start_worker()


def timeout_message(stacks: str, name: str, seconds: float) -> str:
    """Return why a file or registered name did not load in time, with the line in its stacks."""
    file = name.partition(":")[0]
    text = _HEADING.split(stacks)[-1] if _HEADING.search(stacks) else ""
    threads = _THREAD.split(text)
    # The main thread is the last one, unless there are too many.
    frames = _FRAME.findall(threads[-1]) if len(threads) <= MAX_THREADS else []
    frame = _user_frame(frames, file)
    advice = "Fix the file, or raise --load-seconds if it is only slow."
    if frame is None:
        return f"{name}: not imported within {seconds:g} s. {advice}"
    (own, line), (innermost, inner_line) = frame, frames[0]
    path = file if file.endswith(".py") else own
    inner = "" if frames[0] == frame else f" (in {innermost}:{inner_line})"
    return f"{path}:{line}: the import stood at this line{inner} after {seconds:g} s. {advice}"


def place_in_stacks(error: ChildTimeoutError, name: str) -> str:
    """Return `, at file.py:LINE`, where a call of `file.py:attribute` stood that took too long, or ""."""
    file = name.partition(":")[0]
    line = line_in_stacks(str(error), file) if file.endswith(".py") else ""
    return f", at {file}:{line}" if line else ""


def line_in_stacks(stacks: str, file: str) -> str:
    """Return the innermost line of a file in stacks that `faulthandler` wrote; "" without one."""
    return (_user_frame(_FRAME.findall(stacks), file) or ("", ""))[1]


def _user_frame(frames: Sequence[_Frame], file: str) -> _Frame | None:
    """Return the innermost frame of a user's file; of a registered module, if `file` is its name."""
    if file.endswith(".py"):
        path = os.path.abspath(file)  # noqa: PTH100 - removes `..`, too
    else:
        files = (frame[0] for frame in reversed(frames))
        path = next((each for each in files if not each.startswith(_OWN_FILES)), "")
    name = path.encode("ascii", "backslashreplace").decode()  # as `faulthandler` writes it
    return next((frame for frame in frames if os.path.normpath(frame[0]) == name), None)
