"""The event loop of a guarded coroutine function, in its child process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any

from rewardkit.errors import ScorerExitedError, call_catching_async
from rewardkit.isolate.child import Channel

#: The mark while no call's code runs.
IDLE_MARK = -2

#: The reply of a call that took too long.
TIMEOUT = "timeout"

#: The call to which the code that runs now belongs.
_number: ContextVar[int] = ContextVar("number", default=IDLE_MARK)


def serve_coroutines(
    channel: Channel,
    call: Callable[[Any], Coroutine[Any, Any, Any]],
    seconds: float,
    reply_of: Callable[[Any], list[Any]],
) -> None:
    """Answer calls for as long as there is a caller, many at a time.

    Args:
        channel: the connection to the caller.
        call: a coroutine function of a request.
        seconds: timeout per call, after which it is cancelled.
        reply_of: returns the JSON values of a reply for a result or an exception.
    """
    loop = _MarkingLoop(channel)
    asyncio.set_event_loop(loop)  # for calls of `asyncio.get_event_loop` before the first call
    channel.set_mark(IDLE_MARK)

    async def answer(number: int, request: Any) -> None:
        _number.set(number)
        channel.set_mark(number)
        task, start, is_answered = asyncio.current_task(), perf_counter_ns(), False

        def send(reply: list[Any]) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                channel.send([number, perf_counter_ns() - start, *reply])

        def time_out() -> None:
            send([TIMEOUT])
            if task:
                task.cancel()

        timer = loop.call_later(seconds, time_out)
        try:
            result = await call_catching_async(call, request)
        except BaseException as error:  # noqa: BLE001 - as a CancelledError of the reward's own
            result = ScorerExitedError(f"it raises {type(error).__name__}")
        timer.cancel()
        send(reply_of(result))

    loop.run_until_complete(_serve(channel, answer))


async def _serve(channel: Channel, answer: Callable[[int, Any], Coroutine[Any, Any, None]]) -> None:
    loop = asyncio.get_running_loop()
    requests: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()  # a loop keeps only weak references to its tasks

    def receive() -> None:
        while True:
            loop.call_soon_threadsafe(requests.put_nowait, channel.receive())

    threading.Thread(target=receive, daemon=True).start()
    while True:
        task = loop.create_task(answer(*await requests.get()))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        # Calls in progress go on before the next one begins, so that many calls at once take longer
        # together, and not each.
        await asyncio.sleep(0)


class _MarkingLoop(asyncio.SelectorEventLoop):
    """A loop that sets the mark to a call while its code runs, and clears it while it waits."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    # typeshed has variadic generics here, as of Python 3.11.
    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, **context: Any
    ) -> asyncio.Handle:
        """See `asyncio`; also the steps of every task."""
        return super().call_soon(self._run_marked, callback, *args, **context)

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, **context: Any
    ) -> asyncio.Handle:
        """See `asyncio`."""
        return super().call_soon_threadsafe(self._run_marked, callback, *args, **context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, **context: Any
    ) -> asyncio.TimerHandle:
        """See `asyncio`; `call_later` calls it."""
        return super().call_at(when, self._run_marked, callback, *args, **context)

    def _run_marked(self, callback: Callable[..., object], *args: Any) -> None:
        self._channel.set_mark(_number.get())
        try:
            callback(*args)
        except (SystemExit, KeyboardInterrupt):
            os._exit(1)  # it would end the loop; here, the mark tells whose call it was
        finally:
            self._channel.set_mark(IDLE_MARK)
