"""What counts as a gold answer, for every scorer and every check.

Data files have golds as text, numbers, lists and NumPy arrays, and a missing gold as None, NaN or
the word that a library writes for it. `unwrap_gold` converts any value from verl to text.
`accept_gold` also rejects values that cannot be an answer. Those are errors in the data, and a
policy is never paid for repeating them.
"""

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import count
from typing import Any

from rewardkit.answers.number import read_number

#: The words that Python, NumPy, pandas and JSON write for a missing value, without `NaN` and `none`:
#: benchmarks have questions whose answer is one of these words.
MISSING = frozenset(
    {"", "nan", "None", "null", "NULL", "<NA>", "NaT", "[]", "{}", "[None]", "[nan]"}
)

#: Characters of a gold that is read as JSON or Python: a list of 100,000 answers. Parsed values take
#: thirty times the memory of their text.
MAX_LIST_CHARACTERS = 1 << 20

_PYTHON_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
#: A list of strings as Python or NumPy writes it: `['a', "b"]`, `['a' 'b']`.
_PYTHON_TEXTS = re.compile(rf"\s*\[\s*(?:(?:{_PYTHON_TEXT.pattern})\s*(?:,\s*)?)+\]\s*", re.DOTALL)
_ESCAPED = re.compile(r"\\(['\\])")
_LIST_OF_TEXTS = re.compile(r"\s*\[\s*[\"']")
_LIST_OF_NUMBERS = re.compile(r"[\[\]\s0-9,.eE+-]*")
_ALL_LETTERS = "ABCDEFGHIJ"
_LETTERS = re.compile(rf"[{_ALL_LETTERS}]+")
#: A number that an expression, a set or a sentence is hardly ever equal to.
_NO_VALUE = 7919
#: The characters that JSON reads in `\frac`, `\text` and similar if the backslash is not doubled.
_LOST_BACKSLASH = re.compile(r"[\b\f\t\r]")


def unwrap_gold(value: Any) -> str:
    """Return a gold of any type as text.

    Text is returned unchanged. A list, tuple or array with one item becomes that item, and one with
    several items becomes a JSON list of their strings. None, NaN and empty values become "".
    """
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy, pandas, torch
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        items = list(map(unwrap_gold, value))
        return items[0] if len(items) == 1 else json.dumps(items, ensure_ascii=False) * bool(items)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=_plain_value) * bool(value)
    text = str(value)
    return "" if text in MISSING or text == "NaN" else text  # str(Decimal("nan"))


def _plain_value(value: Any) -> Any:
    """Return a value inside an object for JSON: a NumPy array as a list, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def reading_fault(read: Callable[[str], object], error: type[ValueError], ground_truth: str) -> str:
    """Return why a function cannot read a ground truth, as its error says; "" if it can."""
    try:
        read(ground_truth)
    except error as fault:
        return str(fault)
    return ""


def alternatives(value: Any) -> tuple[str, ...]:
    """Return the alternatives of a gold of any type, each of which is right; () without one.

    A gold has alternatives if it is a list, or an object with a list under `target`, as in
    Search-R1, also as JSON or Python text. Empty strings and missing values are left out; the word
    `None` is an answer if it is one of several.
    """
    text = unwrap_gold(value)
    items = _read_alternatives(text) if text.lstrip()[:1] in ("[", "{") else [text]
    golds = tuple(dict.fromkeys(item.strip() for item in items))
    if len(golds) == 1:
        return () if golds[0] in MISSING else golds
    return tuple(item for item in golds if item not in ("", "nan", "null", "NULL", "<NA>"))


def _read_list(text: str) -> Any:
    """Return the value of JSON, with numbers as text, or of a list of strings as Python writes it.

    Raises:
        ValueError: it is neither.
    """
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        if not _PYTHON_TEXTS.fullmatch(text):
            raise ValueError(text) from None
        return [_ESCAPED.sub(r"\1", item[0][1:-1]) for item in _PYTHON_TEXT.finditer(text)]


def _read_alternatives(text: str) -> list[str]:
    if len(text) > MAX_LIST_CHARACTERS:
        return []
    try:
        value = _read_list(text)
    except ValueError:
        return [] if text.lstrip()[0] == "{" else [text]
    if isinstance(value, Mapping):
        value = value.get("target")
    if isinstance(value, str):
        return [value]
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def accept_gold(value: Any, *, several: bool = False) -> str:
    """Return the text of a gold for comparison with a response; "" if it cannot be an answer.

    A list of one item, written as JSON or Python, is its item. "" stands for a missing value, for
    an object, and for a list of several strings, because it is unclear whether one or all of them
    are required. A list of several numbers stays text, like an interval.

    Args:
        value: the gold, of any type; see `unwrap_gold`.
        several: accept a list of several strings: the letters of a multiple choice.
    """
    text = unwrap_gold(value)
    if text.lstrip()[:1] in ("[", "{"):
        single = _single_item(text)
        text = text if several and not single else single
    return "" if text.strip() in MISSING else text


def _single_item(text: str) -> str:
    if len(text) > MAX_LIST_CHARACTERS:
        return ""
    try:
        value = _read_list(text)
    except ValueError:
        return "" if _LIST_OF_TEXTS.match(text) else text
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return "" if _LOST_BACKSLASH.search(value) else value
    return text if value and _LIST_OF_NUMBERS.fullmatch(text) else ""


def another_answer(*golds: str) -> str:
    """Return an answer that differs from every gold: another letter, the next number, or else 7919.

    The first gold decides the kind. A number in the text of a gold is passed over: `{0}` equals 0
    for many scorers, and `5 or so` is 5.
    """
    letters = _ALL_LETTERS if _LETTERS.fullmatch(golds[0]) else ""
    for letter in letters:
        if letter not in golds:
            return letter
    value = read_number(golds[0])
    first = value + 1 if isinstance(value, Fraction) else Fraction(_NO_VALUE)
    values = {read_number(gold) for gold in golds}
    numbers = (first + n for n in count())
    return next(
        str(number)
        for number in numbers
        if number not in values and not any(str(number) in gold for gold in golds)
    )
