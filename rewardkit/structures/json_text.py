"""JSON in a response, found in one pass and read within limits.

A value is refused if a key is repeated, a number is not finite or has more than 400 digits, or it is nested
more than 32 deep: Python's reader accepts all of these, and readers differ in what they make of them.
"""

import json
import re
from math import isfinite
from typing import Any

#: Characters that are read, at the end of a response; nesting; digits of a number; openings that fail.
MAX_CHARS, MAX_DEPTH, MAX_DIGITS, MAX_FAILURES = 50_000, 32, 400, 500

#: What may be the start of an object or a list, so that brackets in prose cost nothing.
_START = re.compile(r"""\{\s*["}]|\[\s*["{\[\]0-9tfn-]""")
_SEPARATORS = re.compile(r"[\s;,]*")
_REFUSED = object()


class UnreadableJSONError(ValueError):
    """A text is not JSON, or not within the limits."""


def _integer(text: str) -> Any:
    return int(text) if len(text) <= MAX_DIGITS else _REFUSED


def _float(text: str) -> Any:
    value = float(text)
    return value if isfinite(value) else _REFUSED


def _object(pairs: list[tuple[str, Any]]) -> Any:
    values = dict(pairs)
    return values if len(values) == len(pairs) else _REFUSED


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=lambda _: _REFUSED,
)


def text_after_thought(text: str) -> str:
    """Return the end of a response after its thought, unchanged; "" if the thought never ends."""
    rest = text.rpartition("</think>")[2]
    return "" if "<think>" in rest else rest[-MAX_CHARS:]


def read_values(text: str) -> list[Any]:
    """Return the JSON values of which a text consists, with blanks, commas or semicolons between them.

    Raises:
        UnreadableJSONError: there is something else, or a value is refused.
    """
    values, place = [], _skip(text, 0)
    if len(text) > MAX_CHARS:
        raise UnreadableJSONError(f"more than {MAX_CHARS:,} characters are not read")
    while place < len(text):
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise UnreadableJSONError("it is not JSON") from error
        values.append(_accept(value))
        place = _skip(text, end)
    return values


def read_value(text: str) -> Any:
    """Return the one JSON value of a text; see `read_values`."""
    values = read_values(text)
    if len(values) != 1:
        raise UnreadableJSONError("it is not one JSON value")
    return values[0]


def last_value(text: str, starts: str = "{[") -> tuple[Any, str] | None:
    """Return the last object or list in a text and its own text; None without one.

    What the reader has consumed is not read again, so the search takes linear time, and a part of broken
    JSON is never a value.

    Args:
        text: the text; its last 50,000 characters are read.
        starts: the first characters of the values that are wanted; others are passed over.

    Raises:
        UnreadableJSONError: the last value is broken or refused.
    """
    text, place, failures = text[-MAX_CHARS:], 0, 0
    last: tuple[Any, str] | None = None
    while match := _START.search(text, place):
        start, value = match.start(), _REFUSED
        try:
            value, place = _DECODER.raw_decode(text, start)
        except RecursionError as error:
            raise UnreadableJSONError("it is nested too deep") from error
        except json.JSONDecodeError as error:
            place, failures = max(error.pos, start + 1), failures + 1
        if failures > MAX_FAILURES:
            raise UnreadableJSONError("too many brackets do not begin JSON")
        if text[start] in starts:
            last = value, text[start:place]
    return last and (_accept(last[0]), last[1])


def _skip(text: str, place: int) -> int:
    match = _SEPARATORS.match(text, place)
    return match.end() if match else place


def _accept(value: Any) -> Any:
    """Return a value within the limits; a refused one raises `UnreadableJSONError`."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if any(item is _REFUSED for item in level):
            break
        level = [inner for item in level for inner in _items(item)]
        if not level:
            return value
    raise UnreadableJSONError(
        "it is broken, nested too deep, repeats a key or has an unreadable number"
    )


def _items(value: Any) -> Any:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def are_equal(value: Any, gold: Any, *, more_fields: bool = False) -> bool:
    """Return whether a JSON value equals a gold: numbers by value, keys in any order.

    Args:
        value: the value of a response.
        gold: the value that is right.
        more_fields: allow fields in objects that the gold does not have.
    """
    if type(gold) is dict:
        return (
            type(value) is dict
            and (more_fields or len(value) == len(gold))
            and all(
                key in value and are_equal(value[key], item, more_fields=more_fields)
                for key, item in gold.items()
            )
        )
    if type(gold) is list:
        return (
            type(value) is list
            and len(value) == len(gold)
            and all(
                are_equal(mine, item, more_fields=more_fields)
                for mine, item in zip(value, gold, strict=True)
            )
        )
    if type(gold) in (int, float):
        return type(value) in (int, float) and bool(value == gold)
    return type(value) is type(gold) and bool(value == gold)
