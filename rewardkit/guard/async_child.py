"""The event loop of a guarded coroutine function, in its child process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from functools import partial
from time import perf_counter_ns
from typing import Any

from rewardkit.errors import call_catching_async
from rewardkit.isolate.child import Channel

#: The mark while no call's code runs.
IDLE_MARK = -2

#: The reply of a call that took too long.
TIMEOUT = "timeout"

#: The call to which the code that runs now belongs.
_number: ContextVar[int] = ContextVar("number", default=IDLE_MARK)


def serve_coroutines(
    channel: Channel,
    function: Callable[..., Coroutine[Any, Any, Any]],
    options: Mapping[str, Any],
    seconds: float,
    reply_of: Callable[[Any], list[Any]],
) -> None:
    """Answer calls for as long as there is a caller, many at a time.

    Args:
        channel: the connection to the caller.
        function: the coroutine function.
        options: keyword arguments that a call may replace.
        seconds: timeout per call, after which it is cancelled.
        reply_of: returns the JSON values of a reply for a result or an exception.
    """

    async def answer(number: int, request: dict[str, Any]) -> None:
        _number.set(number)
        start = perf_counter_ns()
        call = asyncio.ensure_future(call_catching_async(function, **{**options, **request}))
        await asyncio.wait({call}, timeout=seconds)
        is_finished = call.done()
        reply = reply_of(call.result()) if is_finished else [TIMEOUT]
        call.cancel()
        channel.send([number, perf_counter_ns() - start, *reply])

    asyncio.run(_serve(channel, answer))


async def _serve(
    channel: Channel, answer: Callable[[int, dict[str, Any]], Coroutine[Any, Any, None]]
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(partial(_new_task, channel))
    tasks: set[asyncio.Task[None]] = set()

    def begin(number: int, request: dict[str, Any]) -> None:
        task = loop.create_task(answer(number, request))
        tasks.add(task)  # a loop keeps only weak references to its tasks
        task.add_done_callback(tasks.discard)

    def receive() -> None:
        while True:
            loop.call_soon_threadsafe(begin, *channel.receive())

    channel.set_mark(IDLE_MARK)
    threading.Thread(target=receive, daemon=True).start()
    await asyncio.Event().wait()


def _new_task(
    channel: Channel,
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Any],
    **options: Any,
) -> asyncio.Task[Any]:
    """Return a task whose steps set the mark, also if the user's function creates it."""

    async def run() -> Any:
        return await _MarkedSteps(channel, coroutine)

    return asyncio.Task(run(), loop=loop, **options)


class _MarkedSteps:
    """A coroutine that sets the mark to its call while its code runs, and clears it while it waits."""

    def __init__(self, channel: Channel, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._channel, self._coroutine = channel, coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        while True:
            self._channel.set_mark(_number.get())
            try:
                awaitable = step()
            except StopIteration as stop:
                return stop.value
            finally:
                self._channel.set_mark(IDLE_MARK)
            try:
                step = partial(self._coroutine.send, (yield awaitable))
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the coroutine decides what it catches
                step = partial(self._coroutine.throw, error)
