"""Whether two answers are equal: a ladder of rungs, cheapest first.

Rung 1: the same text once spacing and TeX's decoration are taken off. Rung 2: both state one
number and the numbers are exactly equal. What neither rung settles is different: expressions are
compared as text only.
"""

from __future__ import annotations

import re
from typing import Final

from rewardkit.answers.number import AMBIGUOUS, read_number

#: Longest answer, in characters, that is compared.
MAX_CHARS: Final = 4096

_DECORATION = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])|\\[,;:! ]|[\s$]")
_FRAC = re.compile(r"\\[dtc]frac(?![A-Za-z])")


def equal(pred: str, gold: str) -> bool:
    """Whether `pred` and `gold` state the same answer. Symmetric and reflexive."""
    if pred == gold:
        return True
    if len(pred) > MAX_CHARS or len(gold) > MAX_CHARS:
        return False
    if plain_text(pred) == plain_text(gold):
        return True
    value = read_number(pred)
    return value is not None and value is not AMBIGUOUS and value == read_number(gold)


def plain_text(text: str) -> str:
    """The text without spaces and without TeX that does not change what it says."""
    text = _FRAC.sub(r"\\frac", _DECORATION.sub("", text))
    return text.removesuffix(".").casefold()
