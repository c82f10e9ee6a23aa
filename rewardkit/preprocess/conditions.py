"""Conditions on the columns of raw rows: `difficulty >= 5`, `source = olympiads|aops_forum`.

Two values compare as numbers if both are numbers; `4/8`, a pass rate as some sets write it, is one.
Otherwise only `=` and `!=` apply, and compare texts; a list is equal to a value that it contains.
A null and an empty text are equal to `null`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.preprocess.value_path import value_at_path

_CONDITION = re.compile(r"([^<>=!]+?)\s*(<=|>=|!=|==?|<|>)(?![<>=])\s*(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18}|/[0-9]{1,9})?")

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A condition on one column.

    Attributes:
        column: the column, or a dotted path into it.
        sign: `=`, `!=`, `<`, `<=`, `>` or `>=`.
        values: the values of which one must hold (`=`) or none may (`!=`); one for the other signs.
    """

    column: str
    sign: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {'|'.join(self.values)}"

    def holds(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a raw row meets the condition; a null meets only `!=` and `= null`."""
        value = value_at_path(raw, self.column)
        items = value if isinstance(value, (list, tuple)) else [value]
        if self.sign in _ORDER:
            number, limit = _number(value), _number(self.values[0])
            return number is not None and bool(_ORDER[self.sign](number, limit))
        is_equal = any(_are_equal(item, each) for item in items for each in self.values)
        return is_equal == (self.sign == "=")


def parse_condition(text: str) -> Condition:
    """Return the condition that a text describes.

    Raises:
        UsageError: the text is not `COLUMN SIGN VALUE`, or an order is asked of a text.
    """
    match = _CONDITION.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{text!r} is not a condition. Write COLUMN SIGN VALUE, as in 'difficulty >= 5' or "
            "'source = olympiads|amc_aime'."
        )
    column, sign, value = match[1].strip(), match[2].replace("==", "="), match[3].strip()
    if sign in _ORDER and _number(value) is None:
        raise UsageError(f"{text!r}: {value!r} is not a number, so use = or != with it.")
    values = (value,) if sign in _ORDER else tuple(each.strip() for each in value.split("|"))
    return Condition(column, sign, values)


def conditions_of_card(texts: Iterable[str], where: str) -> tuple[Condition, ...]:
    """Return the conditions in a card.

    Args:
        texts: the conditions as the card writes them.
        where: the card, for messages.

    Raises:
        DataError: a text is not a condition.
    """
    try:
        return tuple(map(parse_condition, texts))
    except UsageError as error:
        raise DataError(f"{where}: where: {error}") from error


def _are_equal(value: Any, text: str) -> bool:
    if value is None or value == "":
        return text in ("", "null")
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    number, other = _number(value), _number(text)
    if number is not None and other is not None:
        return number == other
    return str(value).strip() == text


def _number(value: Any) -> Fraction | None:
    """Return a value as an exact number; None if it is not one."""
    if isinstance(value, bool):
        return None
    text = str(value).strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return None
