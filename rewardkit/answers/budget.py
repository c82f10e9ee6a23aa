"""A budget of steps for one comparison: evaluated nodes, so that it is the same on every machine.

Static limits bound the tree of an answer. The budget bounds the work that comparing two trees
multiplies: sample points, items against items, cells against cells.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from rewardkit.answers.parsing.tokens import UnreadableError
from rewardkit.answers.parsing.tree import Node, subtrees

#: Most nodes that one comparison evaluates, which takes about eight milliseconds.
MAX_STEPS: Final = 10_000
#: Steps of a function's value.
FUNCTION_STEPS: Final = 6
#: Steps of a node that is evaluated in 50 digits.
PRECISE_STEPS: Final = 8

_budget = threading.local()
T = TypeVar("T")


class TooMuchWorkError(UnreadableError):
    """Comparing two answers would take more than `MAX_STEPS`."""


def run_with_budget(compare: Callable[[Node, Node], T], pred: Node, gold: Node) -> T:
    """Return `compare(pred, gold)`, which may take `MAX_STEPS` steps.

    Raises:
        TooMuchWorkError: the comparison needs more steps.
    """
    _budget.steps_left = MAX_STEPS
    try:
        return compare(pred, gold)
    finally:
        _budget.steps_left = None


def charge_steps(*nodes: Node, times: int = 1) -> None:
    """Charge the size of trees, `times` times, to the budget; do nothing outside `run_with_budget`.

    Raises:
        TooMuchWorkError: the budget is spent.
    """
    left = getattr(_budget, "steps_left", None)
    if left is None:
        return
    size = sum(
        1 if part[0] != "fn" else FUNCTION_STEPS for node in nodes for part in subtrees(node)
    )
    _budget.steps_left = left - times * size
    if _budget.steps_left < 0:
        raise TooMuchWorkError("the comparison takes too many steps")
