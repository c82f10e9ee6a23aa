"""The definition of a dataset: a card, and a function that turns a raw row into a problem."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rewardkit.preprocess.card import Card


@dataclass(frozen=True)
class Problem:
    """The problem in one raw row.

    Attributes:
        question: the question as in the dataset; the template adds the instruction.
        ground_truth: the gold answer that the scorer compares with.
        answer: the dataset's own solution; "" if it has none.
        source_id: the dataset's own id of the row; "" if it has none.
        subject: the subject in the dataset's words; "" if unknown.
        level: the difficulty in the dataset's words; "" if unknown.
        kind: kind of choice question: `single`, `multiple` or `true_false`; "" for an open one.
        options: texts of the options of a choice question, A first.
        images: contents of the image files, in the order of the `<image>` marks in the question;
            None in a dataset without pictures.
        prompt: the dataset's own user message, instruction included. It replaces the card's default
            template, but not a template that the user chose. "" if the dataset has questions only.
        columns: further values of the row, for `extra_info.columns`.
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
    columns: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Dropped:
    """A raw row that cannot become a verl row.

    Attributes:
        reason: why the row is dropped; the report counts rows by reason.
        detail: the values of this row that led to it.
    """

    reason: str
    detail: str = ""


ToProblem: TypeAlias = Callable[[Mapping[str, Any]], "Problem | Dropped"]


@dataclass(frozen=True)
class Dataset:
    """A dataset: how to read a raw row, and what holds for all rows.

    Attributes:
        name: the name of the card in `data_cards/`.
        to_problem: returns the problem in a raw row, which has the columns that the card names. It
            may raise `TypeError` for a value of an unexpected type.
        repeats: columns (dotted paths) that are equal in a raw row and its copies. Copies are
            counted and skipped before their other columns are read.
        dedup: whether `prep` drops rows that repeat an earlier row's question by default.
        card: the card of a plug-in, in place of a file in `data_cards/`.
        unread_options: columns of the raw rows that by their names have options and are not read.
        noted_columns: columns of a user's file of which a note tells already whether they are read:
            text in others that are not read is counted; None to count nothing.
    """

    name: str
    to_problem: ToProblem
    repeats: tuple[str, ...] = ()
    dedup: bool = False
    card: Card | None = None
    unread_options: tuple[str, ...] = ()
    noted_columns: frozenset[str] | None = None
