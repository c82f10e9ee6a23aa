"""How much work one comparison may be: counted in nodes, so that it is the same on every machine.

Static limits bound an answer's tree; this bounds what comparing two trees multiplies it by: points,
items against items, cells against cells.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from rewardkit.answers.reading.tokens import UnreadableError
from rewardkit.answers.reading.tree import Node, walk

#: Most nodes that one comparison evaluates: about eight milliseconds.
MAX_STEPS: Final = 10_000
#: What a function counts for.
FUNCTION: Final = 6
#: What a node evaluated in 50 digits counts for.
PRECISE: Final = 8

_left = threading.local()
T = TypeVar("T")


class TooMuchWorkError(UnreadableError):
    """Comparing two answers would take more than `MAX_STEPS`."""


def bounded(compare: Callable[[Node, Node], T], pred: Node, gold: Node) -> T:
    """`compare(pred, gold)`, with `MAX_STEPS` to spend.

    Raises:
        TooMuchWorkError: it was not enough.
    """
    _left.steps = MAX_STEPS
    try:
        return compare(pred, gold)
    finally:
        _left.steps = None


def spend(*nodes: Node, times: int = 1) -> None:
    """Take the nodes' size, `times` times, from what is left; does nothing outside `bounded`."""
    left = getattr(_left, "steps", None)
    if left is None:
        return
    size = sum(1 if part[0] != "fn" else FUNCTION for node in nodes for part in walk(node))
    _left.steps = left - times * size
    if _left.steps < 0:
        raise TooMuchWorkError("too much to compare")
