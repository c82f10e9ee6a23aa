"""Work on batches in other processes, results in order, a bounded number on the way."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_SPAWN: Final = multiprocessing.get_context("spawn")
_PDEATHSIG: Final = 1
_KILL: Final = 9
_END: Any = object()

#: Batches that are worked on in this process first: starting others takes as long.
ALONE = 16

#: Batches on their way, for each process.
AHEAD = 3


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[T], R],
    batches: Iterable[T],
    jobs: int,
    rescue: Callable[[T, Callable[[T], R | None]], R] | None = None,
) -> Iterator[tuple[T, R]]:
    """Each batch with what `work` makes of it, in order.

    The first `ALONE` batches are done here. If there are more and `jobs` is more than one, the
    rest is done in so many processes, which are started afresh: `work`, the batches and the
    results must pickle. What `work` raises is raised here. A batch in whose process something
    died is given to `rescue`, with a function that tries it, or a part of it, in a process of its
    own and gives None if that dies too; with a `rescue` nothing is done here but with one job.
    """
    left = iter(batches)
    alone = left if jobs == 1 else islice(left, 0 if rescue else ALONE)
    for batch in alone:
        yield batch, work(batch)
    first = next(left, None)
    if first is not None:
        yield from _spread(work, chain([first], left), jobs, rescue)


def _spread(
    work: Callable[[T], R],
    batches: Iterator[T],
    jobs: int,
    rescue: Callable[[T, Callable[[T], R | None]], R] | None,
) -> Iterator[tuple[T, R]]:
    """A pool until something dies in it, then another one."""
    waiting: deque[T] = deque()
    more = True
    while more or waiting:
        with ProcessPoolExecutor(jobs, _SPAWN, _end_with, (os.getpid(),)) as pool:
            futures = deque(pool.submit(work, batch) for batch in waiting)
            try:
                while True:
                    while more and len(waiting) < AHEAD * jobs:
                        batch = next(batches, _END)
                        more = batch is not _END
                        if more:
                            waiting.append(batch)
                            futures.append(pool.submit(work, batch))
                    if not waiting:
                        break
                    result = futures[0].result()
                    futures.popleft()
                    yield waiting.popleft(), result
            except BrokenProcessPool:
                if rescue is None:
                    raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        if waiting and rescue is not None:
            batch = waiting.popleft()
            yield batch, rescue(batch, partial(_apart, work))


def _apart(work: Callable[[T], R], batch: T) -> R | None:
    """What `work` makes of a batch in a process of its own, None if that dies."""
    with ProcessPoolExecutor(1, _SPAWN, _end_with, (os.getpid(),)) as pool:
        try:
            return pool.submit(work, batch).result()
        except BrokenProcessPool:
            return None


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent is killed: no orphan waits for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, _KILL)
        if os.getppid() != parent:
            os._exit(1)


def travels(*functions: Callable[..., object]) -> bool:
    """Whether functions can be found by name in another process: not those of a user's file."""
    named = [f.func if isinstance(f, partial) else f for f in functions]
    modules = [str(getattr(function, "__module__", "")) for function in named]
    return not any(m == "__main__" or m.startswith("rewardkit_user_") for m in modules)
