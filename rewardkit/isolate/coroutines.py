"""The event loop on which a coroutine function answers calls, in its child process."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any, NoReturn

from rewardkit.isolate.child import Channel

#: The mark while no call's code runs.
IDLE_MARK = -2

#: The call to which the code that runs now belongs.
_number: ContextVar[int] = ContextVar("number", default=IDLE_MARK)


def serve_coroutines(
    channel: Channel,
    call: Callable[[Any], Any],
    seconds: float,
    reply: Callable[[int, int, Any], list[Any]],
) -> NoReturn:
    """Answer calls of a coroutine function for as long as there is a caller, many at a time.

    After its seconds a call is cancelled, and the reply is its number alone.
    """
    loop = _MarkingLoop(channel)
    asyncio.set_event_loop(loop)  # for calls of `asyncio.get_event_loop` before the first call
    channel.set_mark(IDLE_MARK)
    batches: asyncio.Queue[list[tuple[int, Any]]] = asyncio.Queue()
    tasks: dict[int, asyncio.Task[None]] = {}  # a loop keeps only weak references to its tasks

    def receive() -> None:
        while True:
            loop.call_soon_threadsafe(batches.put_nowait, channel.receive())

    def time_out(number: int) -> None:
        channel.send([[number]])
        tasks.pop(number).cancel()

    async def answer(number: int, request: Any) -> None:
        _number.set(number)
        channel.set_mark(number)
        timer, start = loop.call_later(seconds, time_out, number), perf_counter_ns()
        try:
            result = await call(request)
        except BaseException as error:  # noqa: BLE001 - as a CancelledError of the reward's own
            result = error
        timer.cancel()
        if tasks.pop(number, None):
            channel.send([reply(number, perf_counter_ns() - start, result)])

    async def serve() -> NoReturn:
        while True:
            for number, request in await batches.get():
                tasks[number] = loop.create_task(answer(number, request))
                # Calls in progress go on before the next one begins, so that many calls at once
                # take longer together, and not each.
                await asyncio.sleep(0)

    threading.Thread(target=receive, daemon=True).start()
    loop.run_until_complete(serve())
    raise AssertionError  # `serve` never returns


class _MarkingLoop(asyncio.SelectorEventLoop):
    """A loop that sets the mark to a call while its code runs, and clears it while it waits."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    # Also the steps of every task, and `call_later`. mypy's stubs have variadic generics here.
    def call_soon(self, *args: Any, **context: Any) -> asyncio.Handle:  # type: ignore[override]
        return super().call_soon(self._run_marked, *args, **context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, *args: Any, **context: Any
    ) -> asyncio.Handle:
        return super().call_soon_threadsafe(self._run_marked, *args, **context)

    def call_at(  # type: ignore[override]
        self, when: float, *args: Any, **context: Any
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._run_marked, *args, **context)

    def _run_marked(self, callback: Callable[..., object], *args: Any) -> None:
        self._channel.set_mark(_number.get())
        try:
            callback(*args)
        except (SystemExit, KeyboardInterrupt):
            os._exit(1)  # it would end the loop; here, the mark tells whose call it was
        finally:
            self._channel.set_mark(IDLE_MARK)
