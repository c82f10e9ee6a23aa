"""Call a scorer on many responses: in threads if it waits for a model server, else in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from rewardkit.scorers.base import spec_of
from rewardkit.scorers.options import effective_settings

T = TypeVar("T")
R = TypeVar("R")


def call_each(scorer: Any, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Yield the result of `call(item)` for each item, in their order."""
    if not spec_of(scorer).asks_server:
        yield from map(call, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(int(effective_settings(scorer).get("concurrency", 1))) as threads:
        yield from threads.map(call, items)
