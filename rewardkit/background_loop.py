"""One event loop per process, in a thread of its own, for work that waits.

verl calls rewards from executor threads and from event loops, and may use several loops in one
process. Connections and child processes belong to one loop, so that all callers share this one.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

#: Name of the thread in which the loop runs.
_THREAD = "rewardkit-loop"


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine on the background loop and return its future.

    A thread waits for it with `.result()`, a coroutine with `await asyncio.wrap_future(...)`. Never
    wait with `.result()` on the background loop itself.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _background_loop())


def is_background_thread() -> bool:
    """Return whether this is the thread of the background loop, which must never wait."""
    return threading.current_thread().name == _THREAD


def _background_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this process; start it on first use."""
    with _starting:
        if not _loops:
            # Ray installs uvloop, which makes watched sockets non-blocking.
            loop = asyncio.SelectorEventLoop()
            threading.Thread(target=loop.run_forever, name=_THREAD, daemon=True).start()
            _loops.append(loop)
        return _loops[0]


def _reset() -> None:
    """Forget the loop in a forked process, which does not have its thread."""
    global _starting  # noqa: PLW0603 - the lock may have been held when the process forked
    _starting = threading.Lock()
    _loops.clear()


_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
os.register_at_fork(after_in_child=_reset)
