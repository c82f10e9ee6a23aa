"""Work on batches in other processes, results in order, a bounded number on the way."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Batches that are worked on in this process first: starting others takes as long.
ALONE = 16

#: Batches on their way, for each process.
AHEAD = 3


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(work: Callable[[T], R], batches: Iterable[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Each batch with what `work` makes of it, in order.

    The first `ALONE` batches are done here. If there are more and `jobs` is more than one, the
    rest is done in so many processes, which are started afresh: `work`, the batches and the
    results must pickle. What `work` raises is raised here.
    """
    left = iter(batches)
    for batch in islice(left, ALONE) if jobs > 1 else left:
        yield batch, work(batch)
    first = next(left, None)
    if first is not None:
        yield from _spread(work, chain([first], left), jobs)


def _spread(work: Callable[[T], R], batches: Iterator[T], jobs: int) -> Iterator[tuple[T, R]]:
    context = multiprocessing.get_context("spawn")
    waiting: deque[tuple[T, Future[R]]] = deque()
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            for batch in batches:
                waiting.append((batch, pool.submit(work, batch)))
                if len(waiting) >= AHEAD * jobs:
                    done, result = waiting.popleft()
                    yield done, result.result()
            for done, result in waiting:
                yield done, result.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def travels(*functions: Callable[..., object]) -> bool:
    """Whether functions can be found by name in another process: not those of a user's file."""
    named = [f.func if isinstance(f, partial) else f for f in functions]
    modules = [str(getattr(function, "__module__", "")) for function in named]
    return not any(m == "__main__" or m.startswith("rewardkit_user_") for m in modules)
