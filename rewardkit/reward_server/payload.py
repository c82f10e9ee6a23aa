"""`POST /score`: an object `{data_source, response, ground_truth, extra_info}`, or `{"items": [...]}`.

The bytes of a request become items to score, or the request is refused with one message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, NoReturn, TypeVar

from rewardkit.scorers.base import Score
from rewardkit.scorers.gold import unwrap_gold

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


#: The fields of an item. Others are refused, because they would be ignored silently.
FIELDS = ("data_source", "response", "ground_truth", "extra_info")

#: Longest name of a data source or scorer, in characters. The search for similar names takes
#: seconds for a name as long as a body.
MAX_NAME_CHARS = 256

#: Longest extracted answer in a reply, in characters.
MAX_PRED_CHARS = 4096


class RequestItem(NamedTuple):
    """A response to score; the fields are those of a verl row."""

    data_source: str
    response: str
    ground_truth: str
    extra_info: dict[str, Any]


class ScoreRequest(NamedTuple):
    """The items of a request.

    Attributes:
        items: the items.
        is_single: whether the request was one object and not a list.
    """

    items: list[RequestItem]
    is_single: bool


class ItemResult(NamedTuple):
    """The score of an item.

    Attributes:
        score: the score; that of a wrong answer if the scorer failed.
        error: the fault in the data or the scorer and what to do about it, "" if there is none.
    """

    score: Score
    error: str = ""


def read_score(body: bytes, max_items: int) -> ScoreRequest:
    """Return the items of `POST /score`.

    Raises:
        RequestError: the body is invalid; the message names the place.
    """
    value = require(dict, read_json(body), "the body")
    if "items" not in value:
        return ScoreRequest([read_item(value, "")], is_single=True)
    for name in value.keys() - {"items"}:
        refuse(f"{name!r} beside 'items': give it in each item.")
    items = [
        read_item(require(dict, item, f"items[{i}]"), f"items[{i}].")
        for i, item in enumerate(require_list(value["items"], "items", max_items))
    ]
    return ScoreRequest(items, is_single=False)


def score_reply(results: Sequence[ItemResult], *, is_single: bool) -> dict[str, Any]:
    """Return the answer to `POST /score`: an object for an object, `{"items": [...]}` for a list."""
    items = [
        {
            "score": score.score,
            "correct": score.correct,
            "pred": score.pred[:MAX_PRED_CHARS],
            "status": score.status.value,
            "error": error,
        }
        for score, error in results
    ]
    return items[0] if is_single else {"items": items}


def read_item(value: dict[str, Any], place: str) -> RequestItem:
    """Return the item in a JSON object; `place` begins the messages about it."""
    for name in value:
        if name not in FIELDS:
            refuse(f"{place}{name[:80]!a}: unknown field; the fields are {', '.join(FIELDS)}.")
    for name in ("response", "ground_truth"):
        if name not in value:
            refuse(f"{place}{name}: is missing.")
    info = value.get("extra_info")
    info = {} if info is None else require(dict, info, f"{place}extra_info")
    if "scorer" in info:
        info["scorer"] = _name(info["scorer"], f"{place}extra_info.scorer")
    return RequestItem(
        _name(value.get("data_source"), f"{place}data_source"),
        require(str, value["response"], f"{place}response"),
        _gold(value["ground_truth"], f"{place}ground_truth"),
        info,
    )


def _name(value: Any, place: str) -> str:
    name = "" if value is None else require(str, value, place)
    if len(name) > MAX_NAME_CHARS:
        refuse(f"{place}: has more than {MAX_NAME_CHARS} characters.")
    return name


def _gold(value: Any, place: str) -> str:
    """Return a gold as text; datasets also have numbers, lists of one answer and missing values."""
    if value is None or isinstance(value, list):
        return unwrap_gold(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if is_number else require(str, value, place)
