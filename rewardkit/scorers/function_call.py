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
`true`). The values of Qwen3-Coder's XML calls have the types in `extra_info.tools`, or those of the gold.
Where the gold lists values, as BFCL does, texts are compared without case, blanks and
the signs `,./-_*^'"`, except in numbers. Calls in a thought do not count.

| reward | pays |
|---|---|
| `all` (default) | 1.0 for all calls of the gold and no other |
| `fraction` | the share of right parts: a name is a part, and each argument; missing and further ones count as wrong |

A gold without calls cannot be scored: a response that does nothing would be right.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import reading_fault
from rewardkit.structures.calls import (
    BEGIN,
    END,
    Call,
    UnreadableCallError,
    read_calls,
    types_of,
)
from rewardkit.structures.gold_calls import (
    MAX_CALLS,
    GoldCall,
    fraction,
    is_right,
    match,
    pairs_all,
    read_golds,
)


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    reward: Literal["all", "fraction"] = "all",
    order: bool = False,
) -> Score:
    """Judge a response by its function calls.

    Args:
        response: the model's text.
        ground_truth: the calls that are right; see above.
        extra_info: `tools` may have the schemas of the tools, for calls whose values have no type.
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
        calls = read_calls(response, types_of((extra_info or {}).get("tools")))
    except UnreadableCallError:
        return Score.wrong("", Status.UNPARSED_ANSWER)
    if not calls:
        return Score.wrong("", Status.NO_ANSWER)
    pred = _as_json(calls)
    rows = [[match(call, gold) for call in calls[:MAX_CALLS]] for gold in golds]
    if len(calls) == len(golds) and (
        all(is_right(row[index]) for index, row in enumerate(rows)) if order else pairs_all(rows)
    ):
        return Score.right(pred)
    value = fraction(rows, calls, golds, order=order) if reward == "fraction" else 0.0
    return Score.wrong(pred, Status.WRONG, value)


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


#: Returns why a ground truth cannot be scored; "" if it can.
explain_gold = partial(reading_fault, read_golds, UnreadableCallError)


def find_faults(
    ground_truth: str, _prompt: str, _solution: str, _options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the calls of a row."""
    if not score(respond(ground_truth), ground_truth).correct:
        yield "gold_is_wrong", "an argument has no value that is right"


SPEC = ScorerSpec(score, __doc__, respond, explain_gold=explain_gold, find_faults=find_faults)

#: What verl calls.
compute_score = SPEC.compute_score
