"""`POST /score`: an object `{data_source, response, ground_truth, extra_info}`, or `{"items": [...]}`.

The bytes of a request become items to score, or the request is refused with one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardkit.reward_server.strict_json import (
    read_json,
    refuse,
    require,
    require_list,
)
from rewardkit.scorers.base import Score
from rewardkit.scorers.gold import unwrap_gold

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
