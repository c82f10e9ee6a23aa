"""The definition of a dataset: a card, and a function that turns a raw row into a problem."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rewardkit.preprocess.card import Card
from rewardkit.preprocess.column_map import Condition, value_at_path


@dataclass(frozen=True)
class Problem:
    """The problem in one raw row; a field that the dataset does not have stays empty.

    Attributes:
        question: the question as in the dataset; the template adds the instruction.
        answer: the dataset's own solution.
        kind: kind of choice question: `single`, `multiple` or `true_false`.
        options: the options of a choice question, A first.
        images: contents of the image files, in the order of the `<image>` marks in the question;
            None in a dataset without images.
        prompt: the dataset's own user message, instruction included. It replaces the card's default
            template, but not a template that the user chose.
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
    """A raw row that cannot become a verl row: a reason, by which rows are counted, and the values."""

    reason: str
    detail: str = ""


def unmet(conditions: Iterable[Condition], raw: Mapping[str, Any]) -> Dropped | None:
    """Return the reason to drop a raw row if it does not meet a condition."""
    for condition in conditions:
        if not condition.holds(raw):
            value = value_at_path(raw, condition.column)
            return Dropped(f"not {condition}", f"{condition.column} is {value!r}"[:80])
    return None


ToProblem: TypeAlias = Callable[[Mapping[str, Any]], "Problem | Dropped"]


@dataclass(frozen=True)
class Dataset:
    """A dataset: how to read a raw row, and what holds for all rows.

    Attributes:
        name: the name of the card in `data_cards/`.
        to_problem: returns the problem in a raw row, which has the columns that the card names. It
            may raise `TypeError` for a value of an unexpected type.
        repeats, dedup, card: as in `Card`; a plug-in may have its card here in place of a file.
        unread_options: columns that by their names have options and are not read.
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
