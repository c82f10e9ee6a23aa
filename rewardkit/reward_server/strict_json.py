"""Strict JSON from anyone who sends some: what cannot be read is refused, and the place is named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

#: Digits of the longest number: `int()` takes quadratic time on older Pythons.
MAX_DIGITS = 300

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class RefusedError(Exception):
    """A request that is not answered with scores.

    Attributes:
        status: HTTP's, 4xx.
        headers: of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


def read_json(body: bytes) -> Any:
    """A JSON value as RFC 8259 has it, strictly.

    Raises:
        RefusedError: 400; no UTF-8, no JSON, a name twice in an object, a number that is not finite
            or has too many digits, half a surrogate pair, or too deep a nesting.
    """
    try:
        text = body.decode("utf-8")
        value = _DECODER.decode(text)
        if _ESCAPED_SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(400, f"the body is no UTF-8 (byte {error.start}).") from error
    except UnicodeEncodeError as error:
        raise RefusedError(400, "a text has half a surrogate pair (\\ud800 to \\udfff).") from error
    except RecursionError as error:
        raise RefusedError(400, "the body is nested too deeply.") from error
    except ValueError as error:
        raise RefusedError(400, f"the body is no JSON: {error}.") from error
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the name {name[:80]!a} is given twice in an object")
        made[name] = value
    return made


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"the number {text[:20]} is out of range")
    return number


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_constant
)


def as_text(value: Any, where: str) -> str:
    """The value, if it is a text; `where` it is, is told if not."""
    if not isinstance(value, str):
        refuse(f"{where}: is {_kind(value)}, not a text.")
    return value


def as_object(value: Any, where: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if not isinstance(value, dict):
        refuse(f"{where}: is {_kind(value)}, not an object.")
    return value


def as_list(value: Any, where: str, limit: int) -> list[Any]:
    """The value, if it is a list of at most `limit` items."""
    if not isinstance(value, list):
        refuse(f"{where}: is {_kind(value)}, not a list.")
    if len(value) > limit:
        raise RefusedError(
            413, f"{where}: has {len(value):,} items, more than {limit:,}: send them in parts."
        )
    return value


def _kind(value: Any) -> str:
    """What JSON calls a value."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return "a text"
    return (
        "a list"
        if isinstance(value, list)
        else "an object"
        if isinstance(value, dict)
        else "a number"
    )


def refuse(message: str) -> NoReturn:
    """Refuse what is JSON, but not what was asked for."""
    raise RefusedError(422, message)
