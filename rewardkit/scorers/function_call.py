r"""Function calls: names and arguments, against those of the gold.

verl loads this file directly: `rewardkit path function_call --verl` prints the override. The ground truth is
text in one of these forms:

| form | of |
|---|---|
| `[{"name": "f", "arguments": {"a": 1}}]`, also in an object `function` and with arguments as JSON text | xlam-function-calling-60k, OpenAI |
| `{"name": "f", "parameters": {"a": 1}}`, one a line, with or without `<tool_call>` around them | ToolRL |
| `[{"f": {"a": [1, 2], "b": ["", "x"]}}]`: the values that each argument may have, `""` for one that may be left out | BFCL |

`rewardkit.structures.calls` defines the forms of a response. All calls of the gold have to be there and no
other: arguments are equal by type and value, numbers by value (`1` is `1.0`, and neither is `"1"` nor
`true`). Where the gold lists values, as BFCL does, texts are compared without case, blanks and
the signs `,./-_*^'"`, except in numbers. Calls in a thought do not count.

| reward | pays |
|---|---|
| `all` (default) | 1.0 for all calls of the gold and no other |
| `fraction` | the share of right parts: a name is a part, and each argument; missing and further ones count as wrong |

A gold without calls cannot be scored: a response that does nothing would be right.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.structures.calls import (
    BEGIN,
    END,
    Call,
    UnreadableCallError,
    call_of,
    calls_of,
    read_calls,
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


class _Match(NamedTuple):
    """The right parts of a call, and all parts of the call and the gold."""

    right: int
    parts: int


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
    *,
    reward: Literal["all", "fraction"] = "all",
    order: bool = False,
) -> Score:
    """Judge a response by its function calls.

    Args:
        response: the model's text.
        ground_truth: the calls that are right; see above.
        extra_info: not read.
        reward: what is paid; see above.
        order: whether the calls must be in the order of the gold.

    Returns:
        The reward; `pred` has the calls as JSON.
    """
    try:
        golds = read_golds(ground_truth)
    except UnreadableCallError:
        return Score.wrong("", Status.BAD_GROUND_TRUTH)
    try:
        calls = read_calls(response)
    except UnreadableCallError:
        return Score.wrong("", Status.UNPARSED_ANSWER)
    if not calls:
        return Score.wrong("", Status.NO_ANSWER)
    pred = _as_json(calls)
    rows = [[_match(call, gold) for call in calls[:MAX_CALLS]] for gold in golds]
    if len(calls) == len(golds) and (
        all(_is_right(row[index]) for index, row in enumerate(rows)) if order else _pairs_all(rows)
    ):
        return Score.right(pred)
    value = _fraction(rows, calls, golds, order=order) if reward == "fraction" else 0.0
    return Score.wrong(pred, Status.WRONG, value)


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


def _match(call: Call, gold: GoldCall) -> _Match:
    if call.name != gold.name:
        return _Match(0, 1)
    right, parts = 1, 1 + len(call.arguments.keys() | gold.arguments.keys())
    for name, value in gold.arguments.items():
        if name not in call.arguments:
            parts -= gold.lists_values and "" in value
        elif gold.lists_values:
            right += _is_allowed(call.arguments[name], value)
        else:
            right += are_equal(call.arguments[name], value)
    return _Match(right, parts)


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


def _is_right(match: _Match) -> bool:
    return 0 < match.right == match.parts


def _pairs_all(rows: list[list[_Match]]) -> bool:
    """Return whether every gold has a right call of its own (Kuhn's algorithm)."""
    gold_of: dict[int, int] = {}

    def has_pair(gold: int, tried: set[int]) -> bool:
        for call, match in enumerate(rows[gold]):
            if call not in tried and _is_right(match):
                tried.add(call)
                if call not in gold_of or has_pair(gold_of[call], tried):
                    gold_of[call] = gold
                    return True
        return False

    return all(has_pair(gold, set()) for gold in range(len(rows)))


def _fraction(
    rows: list[list[_Match]], calls: list[Call], golds: tuple[GoldCall, ...], *, order: bool
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


def _as_json(calls: list[Call]) -> str:
    values = [call._asdict() for call in calls]
    text = json.dumps(values, ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be logged


def respond(answer: str) -> str:
    """Return the shortest well-formed response with the calls of a gold."""
    try:
        golds = read_golds(answer)
    except UnreadableCallError:
        return f"{BEGIN}\n{answer}\n{END}"
    blocks = [_as_json([Call(gold.name, _example(gold))])[1:-1] for gold in golds]
    return "\n".join(f"{BEGIN}\n{block}\n{END}" for block in blocks)


def _example(gold: GoldCall) -> dict[str, Any]:
    """Return the arguments of a gold, each with the first of its values."""
    if not gold.lists_values:
        return gold.arguments
    return _first_values(gold.arguments)


def _first_values(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _first(items[0]) for name, items in fields.items() if items and "" not in items}


def _first(value: Any) -> Any:
    if isinstance(value, list):
        return [_first(item) for item in value]
    is_choice = isinstance(value, dict) and all(isinstance(v, list) for v in value.values())
    return _first_values(value) if is_choice else value


def explain_gold(ground_truth: str) -> str:
    """Return why a ground truth cannot be scored; "" if it can."""
    try:
        read_golds(ground_truth)
    except UnreadableCallError as error:
        return str(error)
    return ""


def find_faults(
    ground_truth: str, _prompt: str, _solution: str, _options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the calls of a row."""
    if reason := explain_gold(ground_truth):
        yield "bad_gold", reason
    elif not score(respond(ground_truth), ground_truth).correct:
        yield "gold_is_wrong", "an argument has no value that is right"


SPEC = ScorerSpec(score, __doc__, respond, explain_gold=explain_gold, find_faults=find_faults)

#: What verl calls.
compute_score = SPEC.compute_score
