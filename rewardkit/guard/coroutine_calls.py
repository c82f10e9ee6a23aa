"""Calls of a coroutine function in a child process whose event loop runs many at a time.

It belongs to the background loop. A call that waits for too long is cancelled in the child. One that
blocks the child's loop, or that ends the process, is known from the mark in shared memory: it costs
its own reply, and the others are sent to a new process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import Any

from rewardkit import background_loop
from rewardkit.errors import call_catching_async
from rewardkit.guard.async_child import TIMEOUT
from rewardkit.guard.sync_calls import Outcome
from rewardkit.isolate.child_process import ChildCrashError, ChildProcess, ChildTimeoutError

#: Seconds between two looks at the mark.
WATCH_SECONDS = 0.2

#: Seconds beyond the timeout without any reply after which the process counts as blocked.
GRACE_SECONDS = 2.0

#: A call without an outcome after this many times its timeout and a minute ends in any case.
LAST_RESORT = 4

#: A call is given up when the process has ended this often while it ran.
MAX_CRASHES = 2


@dataclass(eq=False)
class _Call:
    """A call in flight: its request, its future, when it was sent, and how often it crashed."""

    number: int
    request: bytes
    future: asyncio.Future[Outcome]
    sent_at: float = 0.0
    crashes: int = 0

    def settle(self, outcome: Outcome) -> None:
        """Set the outcome, unless the caller has given up."""
        if not self.future.done():
            self.future.set_result(outcome)


class CoroutineCalls:
    """Calls of one coroutine function in one process, which starts when it is needed."""

    def __init__(self, start: Callable[[], tuple[ChildProcess, Any]], seconds: float) -> None:
        """Keep what is needed to start the process.

        Args:
            start: starts the process; see `loading.start_and_load`.
            seconds: timeout per call, in seconds of elapsed time.
        """
        self._start, self._seconds = start, seconds
        self._process: ChildProcess | None = None
        self._descriptor = -1
        self._starting: asyncio.Task[ChildProcess] | None = None
        self._replied_at = 0.0
        self._numbers = count(1)
        self._calls: dict[int, _Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the process now, on the background loop.

        Raises:
            UsageError: the file does not load.
        """
        await self._running_process()

    async def call(self, request: bytes) -> Outcome:
        """Return the outcome of a request, on the background loop. Never raises."""
        call = _Call(next(self._numbers), request, asyncio.get_running_loop().create_future())
        self._calls[call.number] = call
        try:
            await self._send(call)
            await asyncio.wait({call.future}, timeout=LAST_RESORT * (self._seconds + 60.0))
            call.settle(ChildTimeoutError())
            return call.future.result()
        finally:
            del self._calls[call.number]

    def close(self) -> None:
        """End the process, in any thread. Calls in flight are sent to a new one."""
        if self._process is not None:
            background_loop.submit(self._restart(self._process, ()))

    async def _send(self, call: _Call) -> None:
        process = await call_catching_async(self._running_process)
        if isinstance(process, Exception):  # the file does not load
            call.settle(process)
            return
        call.sent_at = monotonic()
        try:
            process.send((call.number, call.request), self._seconds)
        except ChildTimeoutError:
            await self._restart(process, [self._calls.get(process.mark[1], call)])
        except ChildCrashError:
            await self._handle_end(process)

    async def _running_process(self) -> ChildProcess:
        """Return the process; all calls that wait for it share one start, and its failure."""
        if self._process is not None:
            return self._process
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_process())
        return await asyncio.shield(self._starting)

    async def _start_process(self) -> ChildProcess:
        loop = asyncio.get_running_loop()
        try:
            process, _ = await loop.run_in_executor(None, self._start)
        finally:
            self._starting = None
        self._process, self._descriptor = process, process.fileno()
        loop.add_reader(self._descriptor, self._read, process)
        self._keep(self._watch(process))
        return process

    def _keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; a loop keeps only weak references to its tasks."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _read(self, process: ChildProcess) -> None:
        self._replied_at = monotonic()
        try:
            for number, *reply in process.receive_all():
                if number in self._calls:
                    is_late = reply[-1] == TIMEOUT
                    self._calls[number].settle(ChildTimeoutError() if is_late else reply)
        except (ChildCrashError, TypeError, ValueError, IndexError):
            self._stop_reading()
            self._keep(self._handle_end(process))

    async def _watch(self, process: ChildProcess) -> None:
        """End a process whose loop is blocked, by code of a call or so that no reply arrives."""
        while process is self._process:
            await asyncio.sleep(WATCH_SECONDS)
            start, number = process.mark
            blocking = self._calls.get(number)
            now = monotonic()
            latest = now - self._seconds - GRACE_SECONDS
            if blocking and now - start > self._seconds:
                await self._restart(process, [blocking])
            elif self._replied_at < latest:
                late = [call for call in self._calls.values() if 0 < call.sent_at < latest]
                if late:
                    await self._restart(process, late)

    async def _handle_end(self, process: ChildProcess) -> None:
        """Count the crash for the call that ran; for all, if the mark does not tell."""
        if process is not self._process:
            return
        error = ChildCrashError(process.close())
        culprit = self._calls.get(process.mark[1])
        for call in [culprit] if culprit else [*self._calls.values()]:
            call.crashes += 1
            if call.crashes >= MAX_CRASHES:
                call.settle(error)
        await self._restart(process, ())

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)

    async def _restart(self, process: ChildProcess, late: Iterable[_Call]) -> None:
        """End a process; the late calls have timed out, the others are sent to a new one."""
        if process is not self._process:
            return
        self._process = None
        self._stop_reading()
        process.close()
        for call in late:
            call.settle(ChildTimeoutError())
        unanswered = [call for call in self._calls.values() if call.sent_at]
        await asyncio.gather(*(self._send(call) for call in unanswered if not call.future.done()))
