"""Call a scorer on many responses: in threads if it waits for a model server, else in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from rewardkit.scorers.options import asks_server, inner_function

T = TypeVar("T")
R = TypeVar("R")


def call_each(scorer: Any, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield the result of `call(item)` for each item, in their order.

    Args:
        scorer: the scorer that `call` calls. One that waits for a model server is called in as many
            threads as its option `concurrency` says, and then all items are read at once.
        call: scores one item.
        items: the items.
    """
    if not asks_server(scorer):
        yield from map(call, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_threads(scorer)) as threads:
        yield from threads.map(call, items)


def _threads(scorer: Any) -> int:
    """Return the value of a scorer's option `concurrency`."""
    defaults = inner_function(scorer).__kwdefaults__ or {}
    bound = scorer.keywords if isinstance(scorer, partial) else {}
    return int({**defaults, **bound}.get("concurrency", 1))
