"""Strict JSON from untrusted clients: an invalid body is refused with a message that names the place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

#: Longest number, in digits: `int()` takes quadratic time on older Pythons.
MAX_DIGITS = 300

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class RequestError(Exception):
    """A request that is refused.

    Attributes:
        status: the HTTP status, 4xx.
        headers: headers of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


def read_json(body: bytes) -> Any:
    """Return a JSON value, read strictly by RFC 8259.

    Raises:
        RequestError: 400; the body is not UTF-8 or not JSON, has a name twice in an object, a
            number that is not finite or has too many digits, half a surrogate pair, or is nested
            too deeply.
    """
    try:
        text = body.decode("utf-8")
        value = _DECODER.decode(text)
        if _ESCAPED_SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8 (byte {error.start})."
    except UnicodeEncodeError:
        message = "a text has half a surrogate pair (\\ud800 to \\udfff)."
    except RecursionError:
        message = "the body is nested too deeply."
    except ValueError as error:
        message = f"the body is not JSON: {error}."
    else:
        return value
    raise RequestError(400, message)


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, field in pairs:
        if name in value:
            raise ValueError(f"the name {name[:80]!a} is repeated in an object")
        value[name] = field
    return value


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
    raise ValueError(f"{text} is not a number in JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_without_repeats,
    parse_int=_int,
    parse_float=_float,
    parse_constant=_constant,
)


def require(kind: type[T], value: Any, place: str) -> T:
    """Return a value that must be of a type; `place` begins the message if it is not."""
    if not isinstance(value, kind):
        refuse(f"{place}: is {_kind(value)}, not {_KINDS[kind]}.")
    return value


def require_list(value: Any, place: str, max_items: int) -> list[Any]:
    """Return a value that must be a list of at most `max_items` items."""
    if len(require(list, value, place)) > max_items:
        raise RequestError(
            413, f"{place}: has {len(value):,} items, more than {max_items:,}: send them in parts."
        )
    items: list[Any] = value
    return items


def _kind(value: Any) -> str:
    """Return the JSON type of a value, or the value if it is null, true or false."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _KINDS.get(type(value), "a number")


_KINDS: dict[Any, str] = {str: "a text", list: "a list", dict: "an object"}


def refuse(message: str) -> NoReturn:
    """Refuse a body that is JSON of another shape than the endpoint takes."""
    raise RequestError(422, message)
