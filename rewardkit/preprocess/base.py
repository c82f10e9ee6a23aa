"""What a dataset is: a card, and a function from a raw row to a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Problem:
    """One raw row, understood.

    Attributes:
        question: as the dataset has it; the template puts the instruction around it.
        ground_truth: the gold answer the scorer compares with.
        answer: the dataset's own solution, "" if it has none.
        source_id: the dataset's own id of the row, "" if it has none.
    """

    question: str
    ground_truth: str
    answer: str = ""
    source_id: str = ""


@dataclass(frozen=True)
class Dropped:
    """A raw row that cannot become a verl row.

    Attributes:
        reason: why, in words; the report counts rows by it.
        detail: what is particular to this row.
    """

    reason: str
    detail: str = ""


ToProblem: TypeAlias = Callable[[Mapping[str, Any]], "Problem | Dropped"]


@dataclass(frozen=True)
class Dataset:
    """A dataset: `name` finds its card (hubs, splits, keys, template); `to_problem` reads a row.

    `to_problem` is given the card's columns; it may raise `TypeError` for a value of another type.
    """

    name: str
    to_problem: ToProblem
