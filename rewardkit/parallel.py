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

from rewardkit.errors import DataError

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

#: So many pools, one after the other, may break before a batch is done.
DEATHS = 3


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[T], R], batches: Iterable[T], jobs: int, alone: int = ALONE
) -> Iterator[tuple[T, R]]:
    """Each batch with what `work` makes of it, in order.

    The first `alone` batches are done here. If there are more and `jobs` is more than one, the
    rest is done in so many processes, which are started afresh: `work`, the batches and the
    results must pickle. What `work` raises is raised here. If a process is ended from outside,
    what it worked on is tried again.

    Raises:
        DataError: processes are ended again and again.
    """
    left = iter(batches)
    for batch in left if jobs == 1 else islice(left, alone):
        yield batch, work(batch)
    first = next(left, None)
    if first is not None:
        yield from _spread(work, chain([first], left), jobs)


def _spread(work: Callable[[T], R], batches: Iterator[T], jobs: int) -> Iterator[tuple[T, R]]:
    """A pool until something dies in it, then another one."""
    waiting: deque[T] = deque()
    more, deaths = True, 0
    others = set(multiprocessing.active_children())
    while more or waiting:
        with ProcessPoolExecutor(jobs, _SPAWN, end_with, (os.getpid(),)) as pool:
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
                    deaths = 0
                    yield waiting.popleft(), result
            except BrokenProcessPool as error:
                deaths += 1
                if deaths == DEATHS:
                    raise DataError(
                        "a process that worked for this command was ended from outside, "
                        f"{DEATHS} times: by the memory killer? Use fewer --jobs."
                    ) from error
            except BaseException:  # also Ctrl-C: a batch may take minutes, and nobody waits for it
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def end_with(parent: int) -> None:
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
