"""`POST /score`: an object `{data_source, response, ground_truth, extra_info}`, or `{"items": [...]}`.

Bytes of anyone's in, items to judge out, or one refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardkit.reward_server.strict_json import as_list, as_object, as_text, read_json, refuse
from rewardkit.scorers.base import Score
from rewardkit.scorers.gold import unwrap_gold

#: What an item may have. A name that is none of these is refused: it would be left out silently.
FIELDS = ("data_source", "response", "ground_truth", "extra_info")

#: Characters of the name of a data source or scorer. Looking for what is like it takes longer for a
#: longer one: seconds for a body full.
MAX_NAME = 256


#: Characters of an extracted answer that are told: what nobody reads would wait in memory.
MAX_PRED = 4096


class Item(NamedTuple):
    """A response to judge; the fields are those of a verl row."""

    data_source: str
    response: str
    ground_truth: str
    extra_info: dict[str, Any]


class Asked(NamedTuple):
    """The items of a request, and whether it was one alone, not in a list."""

    items: list[Item]
    single: bool


class Verdict(NamedTuple):
    """The score of an item, and the reason if something else than the response is at fault.

    Attributes:
        score: the score; that of a wrong answer if the scorer failed.
        error: what went wrong and what to do, "" if nothing did.
    """

    score: Score
    error: str = ""


def read_score(body: bytes, limit: int) -> Asked:
    """The items of `POST /score`, `limit` at most.

    Raises:
        RefusedError: the body is none; the message names the place.
    """
    value = as_object(read_json(body), "the body")
    if "items" not in value:
        return Asked([item_of(value, "")], single=True)
    for name in value.keys() - {"items"}:
        refuse(f"{name!r} beside 'items': give it in each item.")
    items = as_list(value["items"], "items", limit)
    return Asked(
        [item_of(as_object(x, f"items[{i}]"), f"items[{i}].") for i, x in enumerate(items)], False
    )


def score_reply(verdicts: Sequence[Verdict], *, single: bool) -> dict[str, Any]:
    """The answer to `POST /score`: an object for an object, `{"items": [...]}` for a list."""
    told = [
        {
            "score": score.score,
            "correct": score.correct,
            "pred": score.pred[:MAX_PRED],
            "status": score.status.value,
            "error": error,
        }
        for score, error in verdicts
    ]
    return told[0] if single else {"items": told}


def item_of(value: dict[str, Any], where: str) -> Item:
    """An item; `where` it is begins the messages about it."""
    for name in value:
        if name not in FIELDS:
            refuse(f"{where}{name[:80]!a}: no such field; there are {', '.join(FIELDS)}.")
    for name in ("response", "ground_truth"):
        if name not in value:
            refuse(f"{where}{name}: is missing.")
    info = value.get("extra_info")
    info = {} if info is None else as_object(info, f"{where}extra_info")
    if "scorer" in info:
        info["scorer"] = _name(info["scorer"], f"{where}extra_info.scorer")
    return Item(
        _name(value.get("data_source"), f"{where}data_source"),
        as_text(value["response"], f"{where}response"),
        _gold(value["ground_truth"], f"{where}ground_truth"),
        info,
    )


def _name(value: Any, where: str) -> str:
    name = "" if value is None else as_text(value, where)
    if len(name) > MAX_NAME:
        refuse(f"{where}: has more than {MAX_NAME} characters.")
    return name


def _gold(value: Any, where: str) -> str:
    """A gold as text; data sets have numbers, lists of one answer and missing values, too."""
    if value is None or isinstance(value, list):
        return unwrap_gold(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if number else as_text(value, where)
