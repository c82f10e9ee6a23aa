"""Work on batches in several processes: results in order, and a bounded number of batches in memory."""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from rewardkit.errors import DataError

T = TypeVar("T")
R = TypeVar("R")

_SPAWN = multiprocessing.get_context("spawn")
_PDEATHSIG = 1
_KILL = 9
_END: Any = object()

#: Batches that are done in this process first, because starting others takes as long.
INLINE_BATCHES = 16

#: Batches that wait or are worked on, for each process.
QUEUED_PER_WORKER = 3

#: Pools that may crash one after the other before a batch is done.
MAX_POOL_CRASHES = 3


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    work: Callable[[T], R], batches: Iterable[T], jobs: int, inline_batches: int = INLINE_BATCHES
) -> Iterator[tuple[T, R]]:
    """Yield each batch with the result of `work`, in order.

    The first batches run in this process. If there are more and `jobs` is more than one, the rest
    runs in `jobs` new processes, so `work`, the batches and the results must pickle. An exception
    of `work` is raised here. If a process is killed from outside, its batch is tried again.

    Args:
        work: the function of a batch.
        batches: the batches.
        jobs: the number of processes.
        inline_batches: batches that run in this process first.

    Raises:
        DataError: processes were killed `MAX_POOL_CRASHES` times in a row.
    """
    iterator = iter(batches)
    for batch in iterator if jobs == 1 else islice(iterator, inline_batches):
        yield batch, work(batch)
    first = next(iterator, None)
    if first is not None:
        yield from _in_pools(work, chain([first], iterator), jobs)


def _in_pools(work: Callable[[T], R], batches: Iterator[T], jobs: int) -> Iterator[tuple[T, R]]:
    queue: deque[T] = deque()
    has_more, crashes = True, 0
    other_children = set(multiprocessing.active_children())
    while has_more or queue:
        with ProcessPoolExecutor(jobs, _SPAWN, end_with, (os.getpid(),)) as pool:
            futures: deque[Future[R]] = deque()
            try:
                futures += [_submit(pool, work, batch) for batch in queue]
                while True:
                    while has_more and len(queue) < QUEUED_PER_WORKER * jobs:
                        batch = next(batches, _END)
                        has_more = batch is not _END
                        if has_more:
                            queue.append(batch)
                            futures.append(_submit(pool, work, batch))
                    if not queue:
                        break
                    result = futures[0].result()
                    futures.popleft()
                    crashes = 0
                    yield queue.popleft(), result
            except BrokenProcessPool as error:
                crashes += 1
                if crashes == MAX_POOL_CRASHES:
                    raise DataError(
                        f"a worker process was killed from outside {MAX_POOL_CRASHES} times, "
                        "perhaps because memory ran out. Use fewer --jobs."
                    ) from error
            except BaseException:  # also Ctrl-C: a batch may take minutes, and nobody waits for it
                for process in set(multiprocessing.active_children()) - other_children:
                    process.terminate()
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, work: Callable[[T], R], batch: T) -> Future[R]:
    """Submit a batch; a process that this starts leaves Ctrl-C to this process.

    It inherits the blocked signal, as no handler would: while it imports modules, Ctrl-C would
    print its traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(work, batch)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent is killed, so that no orphan waits forever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PDEATHSIG, _KILL)
        if os.getppid() != parent:
            os._exit(1)


def importable_in_child(*functions: Callable[..., object]) -> bool:
    """Return whether another process can import the functions by name, unlike a user's file's."""
    plain = [f.func if isinstance(f, partial) else f for f in functions]
    modules = [str(getattr(function, "__module__", "")) for function in plain]
    return not any(m == "__main__" or m.startswith("rewardkit_user_") for m in modules)
