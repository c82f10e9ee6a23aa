r"""Geometry3k: the answer counts 0.9 and the format 0.1, as in verl.

verl loads this file directly: `rewardkit path geometry3k --verl` prints the override.

| part | weight | earned by |
|---|---|---|
| answer | `1 - format_weight` | what the scorer `math` counts as correct |
| format | `format_weight`, 0.1 | `<think>` first, then `</think>`, then a closed `\boxed{}` |

The format is exactly verl's (`verl/utils/reward_score/geo3k.py`), but matched in linear time. The
answer is not: verl uses mathruler, which reads the last box anywhere. Here a box inside the thought
is not an answer, "The answer is ..." can replace a missing box, and golds such as "2:3", "- 8" and
"not enough information" are compared by their meaning.

If the chat template opens the thought itself, as Qwen3's and DeepSeek-R1's do, no response begins
with `<think>` and none gets the score for the format: set `format_weight` to 0.

`correct` and `acc` depend on the answer alone, so verl's charts of accuracy do not include the
format.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from rewardkit.scorers.base import Score, ScorerSpec
from rewardkit.scorers.math import score as math_score
from rewardkit.scorers.options import Range, invalid_value_error

#: The marks of a well-formed response, in order; it begins with the first.
_MARKS = ("<think>", "</think>", r"\boxed{", "}")


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    format_weight: Annotated[float, Range(0, 1)] = 0.1,
) -> Score:
    """Judge a response by its answer and, to a small part, by its format.

    Returns:
        `(1 - format_weight) * answer + format_weight * format`, both 1.0 or 0.0.
    """
    if not 0 <= format_weight <= 1:
        raise invalid_value_error(score, "format_weight", format_weight)
    result = math_score(response, ground_truth, extra_info)
    format_score = format_weight if is_well_formed(response) else 0.0
    return result._replace(score=(1.0 - format_weight) * result.score + format_score)


def respond(answer: str) -> str:
    """Return the shortest well-formed response with this answer."""
    return rf"<think></think>\boxed{{{answer}}}"


def is_well_formed(response: str) -> bool:
    r"""Return whether a response is `<think>`, then `</think>`, `\boxed{` and `}` in this order.

    The search takes the nearest of each: if the marks occur in order at all, the nearest ones do.
    """
    if not response.startswith(_MARKS[0]):
        return False
    end = 0
    for mark in _MARKS:
        start = response.find(mark, end)
        if start < 0:
            return False
        end = start + len(mark)
    return True


SPEC = ScorerSpec(score, __doc__, respond)

#: What verl calls.
compute_score = SPEC.compute_score
