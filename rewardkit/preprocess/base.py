"""What a dataset is: a card, and a function from a raw row to a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rewardkit.preprocess.card import Card


@dataclass(frozen=True)
class Problem:
    """One raw row, understood.

    Attributes:
        question: as the dataset has it; the template puts the instruction around it.
        ground_truth: the gold answer the scorer compares with.
        answer: the dataset's own solution, "" if it has none.
        source_id: the dataset's own id of the row, "" if it has none.
        subject: what it is about, in the dataset's words, "" if it does not say.
        level: how hard it is, in the dataset's words, "" if it does not say.
        kind: of question: `single`, `multiple` or `true_false`; "" for an open one.
        options: texts of the options of a choice question, A first.
        images: the pictures' files, in the order of the `<image>` marks in the question; None in
            a dataset without pictures.
        prompt: the dataset's own user message, template included; it replaces the card's default
            template, never one the user asked for. "" if the dataset has questions only.
    """

    question: str
    ground_truth: str
    answer: str = ""
    source_id: str = ""
    subject: str = ""
    level: str = ""
    kind: str = ""
    options: tuple[str, ...] = ()
    images: tuple[bytes, ...] | None = None
    prompt: str = ""


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
    """A dataset: how a raw row is read, and what is known of the whole.

    Attributes:
        name: finds its card in `data_cards/`.
        to_problem: reads a raw row, of which it is given the card's columns; it may raise
            `TypeError` for a value of another type.
        repeats: columns (dotted paths) that are equal in a raw row and a copy of it. Copies are
            counted and skipped before anything else is read of them.
        dedup: whether rows that ask an earlier row's question are dropped unless told otherwise.
        card: instead of a file in `data_cards/`, for a plug-in.
    """

    name: str
    to_problem: ToProblem
    repeats: tuple[str, ...] = ()
    dedup: bool = False
    card: Card | None = None
