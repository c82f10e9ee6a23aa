"""The calls of a gold, and how well the calls of a response match them."""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from rewardkit.structures.calls import (
    BEGIN,
    END,
    Call,
    UnreadableCallError,
    call_of,
    calls_of,
    readings,
)
from rewardkit.structures.json_text import UnreadableJSONError, are_equal, read_value, read_values

#: Calls of a gold, and of a response that are compared.
MAX_CALLS = 32

#: What BFCL leaves out of texts, except a sign and a point of a number.
_IGNORED = re.compile(r"[ ,/_*^'\"]|(?<=\w)-|-(?!\d)|(?<!\d)\.|\.(?!\d)")


class GoldCall(NamedTuple):
    """A call of the gold; `lists_values` says whether its arguments are lists of values that are right."""

    name: str
    arguments: dict[str, Any]
    lists_values: bool = False


class Match(NamedTuple):
    """The right parts of a call, and all parts of the call and the gold."""

    right: int
    parts: int


@lru_cache(maxsize=1024)
def read_golds(text: str) -> tuple[GoldCall, ...]:
    """Return the calls of a ground truth, 1 to 32.

    Raises:
        UnreadableCallError: it has no calls, too many, or another form.
    """
    text = text.rpartition(BEGIN)[2].partition(END)[0]
    try:
        values = read_values(text)
    except UnreadableJSONError:
        return tuple(GoldCall(*call) for call in _few(calls_of(text)))
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    return tuple(call for value in _few(values) for call in _golds_in(value))


def _few(calls: list[Any]) -> list[Any]:
    if not 0 < len(calls) <= MAX_CALLS:
        raise UnreadableCallError(f"a gold has 1 to {MAX_CALLS} calls, this one {len(calls)}")
    return calls


def _golds_in(value: Any) -> list[GoldCall]:
    """Return the calls in an item of a gold, which verl's columns may have as JSON text."""
    if isinstance(value, str):
        try:
            value = read_value(value)
        except UnreadableJSONError:
            return [GoldCall(*call) for call in calls_of(value)]
    if isinstance(value, dict) and len(value) == 1:
        [(name, arguments)] = value.items()
        if isinstance(arguments, dict) and all(isinstance(v, list) for v in arguments.values()):
            return [GoldCall(name, arguments, lists_values=True)]
    return [GoldCall(*call_of(value))]


def match(call: Call, gold: GoldCall) -> Match:
    """Return which parts of a call are those of a gold: its name and its arguments."""
    if call.name != gold.name:
        return Match(0, 1)
    right, parts = 1, 1 + len(call.arguments.keys() | gold.arguments.keys())
    for name, value in gold.arguments.items():
        if name not in call.arguments:
            parts -= gold.lists_values and "" in value
        elif gold.lists_values:
            right += any(_is_allowed(each, value) for each in readings(call.arguments[name]))
        else:
            right += any(are_equal(each, value) for each in readings(call.arguments[name]))
    return Match(right, parts)


def _is_allowed(value: Any, allowed: list[Any]) -> bool:
    return any(_fits(value, each) for each in allowed)


def _fits(value: Any, gold: Any) -> bool:
    """Return whether a value fits one of BFCL's: in an object each field lists its own values."""
    if isinstance(gold, str):
        is_short = isinstance(value, str) and len(value) <= 2 * len(gold) + 100
        return is_short and _plain(value) == _plain(gold)
    if isinstance(gold, list) and isinstance(value, list):
        return len(value) == len(gold) and all(map(_fits, value, gold))
    if isinstance(gold, dict) and all(isinstance(item, list) for item in gold.values()):
        return isinstance(value, dict) and (
            value.keys() <= gold.keys()
            and all(
                _is_allowed(value[name], items) if name in value else "" in items
                for name, items in gold.items()
            )
        )
    return are_equal(value, gold)


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower()


def is_right(match: Match) -> bool:
    """Return whether all parts of a call are right."""
    return 0 < match.right == match.parts


def pairs_all(rows: list[list[Match]]) -> bool:
    """Return whether every gold has a right call of its own (Kuhn's algorithm)."""
    gold_of: dict[int, int] = {}

    def has_pair(gold: int, tried: set[int]) -> bool:
        for call, match in enumerate(rows[gold]):
            if call not in tried and is_right(match):
                tried.add(call)
                if call not in gold_of or has_pair(gold_of[call], tried):
                    gold_of[call] = gold
                    return True
        return False

    return all(has_pair(gold, set()) for gold in range(len(rows)))


def fraction(
    rows: list[list[Match]], calls: list[Call], golds: tuple[GoldCall, ...], *, order: bool
) -> float:
    """Return the share of right parts; each gold takes the best call that is left."""
    free, right, parts = set(range(len(calls))), 0, 0
    for index, (row, gold) in enumerate(zip(rows, golds, strict=True)):
        places = [place for place in ([index] if order else sorted(free)) if place < len(row)]
        best = max(places, key=lambda place: row[place].right / row[place].parts, default=None)
        if best is None or not row[best].right:
            parts += 1 + sum(
                not (gold.lists_values and "" in item) for item in gold.arguments.values()
            )
        else:
            free.discard(best)
            right, parts = right + row[best].right, parts + row[best].parts
    return right / (parts + sum(1 + len(calls[place].arguments) for place in free))
