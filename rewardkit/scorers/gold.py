"""What counts as a gold answer, for every scorer and every check.

Data files hold golds as text, numbers, lists and NumPy arrays, and a missing one as None, NaN or
the word that a library writes for it. `unwrap_gold` makes text of whatever verl hands over;
`accept_gold` also refuses what cannot be an answer, which is an error of the data: a policy is
never paid for repeating it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rewardkit.scorers.options import inner_function

#: What Python, NumPy, pandas and JSON write where there is no value. `NaN` and `none` are left
#: out: benchmarks have questions of which these words are the answer.
MISSING = frozenset(
    {"", "nan", "None", "null", "NULL", "<NA>", "NaT", "[]", "{}", "[None]", "[nan]"}
)

_PYTHON_ITEM = re.compile(r"\s*\[\s*'((?:[^'\\]|\\.)*)'\s*\]\s*", re.DOTALL)
_ESCAPED = re.compile(r"\\(['\\])")
_TEXTS = re.compile(r"\s*\[\s*[\"']")
_NUMBERS = re.compile(r"[\[\]\s0-9,.eE+-]*")
#: What JSON makes of `\frac`, `\text` and their like where the backslash was not doubled.
_LOST_BACKSLASH = re.compile(r"[\b\f\t\r]")


def unwrap_gold(value: Any) -> str:
    """The text of a gold of any type.

    Text stays as it is. A list, a tuple or an array with one item becomes that item, and one with
    several becomes a JSON list of their texts. None, NaN and what is empty become "".
    """
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "tolist"):  # of NumPy, pandas and torch
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        items = list(map(unwrap_gold, value))
        return items[0] if len(items) == 1 else json.dumps(items, ensure_ascii=False) * bool(items)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str) * bool(value)
    text = str(value)
    return "" if text in MISSING or text == "NaN" else text  # a Decimal is written so


def accept_gold(value: Any, *, several: bool = False) -> str:
    """The text of a gold that a response can be compared with; "" if there cannot be any.

    A one-item list that is written as JSON or Python is its item. "" stands for a missing value,
    for an object and for a list of several texts, of which nobody knows whether one or all are
    asked for. A list of several numbers is text, as an interval is.

    Args:
        value: of any type; see `unwrap_gold`.
        several: whether a list of several texts is a gold, too: the letters of a choice.
    """
    text = unwrap_gold(value)
    if text.lstrip()[:1] in ("[", "{"):
        single = _single_item(text)
        text = text if several and not single else single
    return "" if text.strip() in MISSING else text


def explain_bad_gold(value: Any, scorer: Any) -> str:
    """Why a scorer cannot score a gold, as the end of a sentence; "" if nothing is known of it.

    What is particular to a scorer is told by `explain_gold(gold)` beside it, if there is one.
    """
    text = unwrap_gold(value)
    if text.strip() in MISSING:
        return ": it is a missing value" if text.strip() else ": it is empty"
    if text.lstrip()[:1] in ("[", "{") and not accept_gold(text):
        kind = "an object" if text.lstrip()[0] == "{" else "a list of several answers"
        return f": it is {kind}; write one answer as text"
    explain = getattr(inner_function(scorer), "__globals__", {}).get("explain_gold")
    reason: str = explain(accept_gold(text)) if explain else ""
    return f": {reason}" if reason else ""


def _single_item(text: str) -> str:
    """The item of a one-item list; "" for an object or texts; anything else as it is."""
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        if single := _PYTHON_ITEM.fullmatch(text):
            return _ESCAPED.sub(r"\1", single[1])
        return "" if _TEXTS.match(text) else text
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return "" if _LOST_BACKSLASH.search(value) else value
    return text if value and _NUMBERS.fullmatch(text) else ""
