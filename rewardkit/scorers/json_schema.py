r"""JSON that is valid for the row's schema, and has the gold's values.

verl loads this file directly: `rewardkit path json_schema --verl` prints the override. It needs the package:
`pip install 'rewardkit[json-schema]'`. The ground truth is JSON text, `{"schema": {...}, "gold": ...}`, where
the schema may be JSON text itself (`schema_str` is another name of it) and the gold may be left out; or it is
the schema alone.

The last JSON object or list of a response is read, in a fence or not; a broken one is never skipped.
`rewardkit.structures.json_text` defines the limits. It is right if the schema permits it and the gold's
fields are equal: numbers by value, keys in any order. Fields that the gold does not name are free.

| reward | pays |
|---|---|
| `all` (default) | 1.0 for valid JSON with all values of the gold |
| `fraction` | the share of the gold's fields that are equal, if the JSON is valid |

JSON Schema's drafts 3 to 2020-12 are read, by `$schema`; `format` is not checked. A schema cannot be scored if
it permits everything, refers to another document, has `patternProperties` or `unevaluated...`, or a pattern
that is not regular or repeats a part with several ways, as `(a+)+` does. The same holds for YAML and XML
(`schema_type`): a response in these has no answer. A validation has a fixed number of steps, after which JSON
counts as wrong.
"""

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from rewardkit.errors import call_catching
from rewardkit.scorers.base import Score, ScorerSpec, Status
from rewardkit.scorers.gold import reading_fault
from rewardkit.structures.json_text import (
    UnreadableJSONError,
    are_equal,
    last_value,
    read_value,
    text_after_thought,
)
from rewardkit.structures.schema import (
    UnreadableSchemaError,
    is_valid,
    read_problem,
    require_package,
)


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
    *,
    reward: Literal["all", "fraction"] = "all",
) -> Score:
    """Judge a response by its JSON.

    Args:
        response: the model's text.
        ground_truth: the schema, and perhaps the gold, as JSON text.
        extra_info: not read.
        reward: what is paid; see above.

    Returns:
        The reward; `pred` has the JSON.

    Raises:
        MissingPackageError: jsonschema is not installed.
    """
    try:
        problem = read_problem(ground_truth)
    except UnreadableSchemaError:
        return Score.wrong("", Status.BAD_GROUND_TRUTH)
    try:
        last = last_value(text_after_thought(response), problem.starts)
    except UnreadableJSONError:
        return Score.wrong("", Status.UNPARSED_ANSWER)
    if last is None:
        return Score.wrong("", Status.NO_ANSWER)
    value, pred = last
    verdict = call_catching(is_valid, value, problem.validator)
    if isinstance(verdict, Exception):  # too many steps, or a number that the package cannot divide
        return Score.wrong(pred, Status.TOO_LONG)
    if not verdict:
        return Score.wrong(pred)
    if not problem.has_gold or are_equal(value, problem.gold, more_fields=True):
        return Score.right(pred)
    return Score.wrong(pred, score=_share(value, problem.gold) if reward == "fraction" else 0.0)


def _share(value: Any, gold: Any) -> float:
    if not isinstance(gold, dict) or not isinstance(value, dict) or not gold:
        return 0.0
    equal = (are_equal(value.get(key), item, more_fields=True) for key, item in gold.items())
    return sum(equal) / len(gold)


def respond(answer: str) -> str:
    """Return the shortest well-formed response with the gold of a ground truth."""
    try:
        row = read_value(answer)
    except UnreadableJSONError:
        return f"```json\n{answer}\n```"
    gold = row["gold"] if isinstance(row, dict) and "gold" in row else row
    return f"```json\n{json.dumps(gold, ensure_ascii=False)}\n```"


#: Returns why a ground truth cannot be scored; "" if it can.
explain_gold = partial(reading_fault, read_problem, UnreadableSchemaError)


def find_faults(
    ground_truth: str, _prompt: str, _solution: str, _options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the schema of a row."""
    if empty := next((text for text in ("{}", "[]") if score(text, ground_truth).correct), ""):
        yield "wrong_is_right", f"{empty} is valid: name the fields that are required, or a gold"


SPEC = ScorerSpec(
    score,
    __doc__,
    respond,
    explain_gold=explain_gold,
    check_options=require_package,
    find_faults=find_faults,
)

#: What verl calls.
compute_score = SPEC.compute_score
