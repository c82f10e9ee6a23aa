r"""Geometry3k: the answer counts 0.9 and the form 0.1, as in verl.

verl loads this file as it stands: `rewardkit path geometry3k --verl` prints the override.

| part | weight | earned by |
|---|---|---|
| answer | `1 - format_weight` | what the scorer `math` counts as right |
| form | `format_weight`, 0.1 | `<think>` first, then `</think>`, then a closed `\boxed{}` |

The form is verl's (`verl/utils/reward_score/geo3k.py`), to the letter, but found in linear time.
The answer is not: verl leaves it to mathruler, which reads the last box wherever it stands. Here
one in the thought is no answer, one that is missing may be replaced by "The answer is ...", and
golds such as "2:3", "- 8" and "not enough information" are compared by what they say.

Where the prompt's template itself opens the thought, as Qwen3's and DeepSeek-R1's do, no response
begins with `<think>` and none earns the form: set `format_weight` to 0.

`correct` and `acc` are the answer's alone, so that accuracy is not mixed with form in verl's charts.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from rewardkit.scorers.base import Score, verl_result
from rewardkit.scorers.math import score as math_score
from rewardkit.scorers.options import Range, invalid_value_error

#: What a well-formed response has, in this order; it begins with the first.
_MARKS = ("<think>", "</think>", r"\boxed{", "}")


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    format_weight: Annotated[float, Range(0, 1)] = 0.1,
) -> Score:
    """Judge a response by its answer and, to a small part, by its form.

    Args:
        response: the model's text.
        ground_truth: the gold answer.
        extra_info: the row's other fields; `math` gets them.
        format_weight: the part of the score, from 0 to 1, that the form alone earns.

    Returns:
        `(1 - format_weight) * answer + format_weight * form`, both 1.0 or 0.0.
    """
    if not 0 <= format_weight <= 1:
        raise invalid_value_error(score, "format_weight", format_weight)
    result = math_score(response, ground_truth, extra_info)
    form = format_weight if well_formed(response) else 0.0
    return result._replace(score=(1.0 - format_weight) * result.score + form)


def compute_score(
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any = None,
    **kwargs: Any,
) -> dict[str, float | str]:
    """The function verl calls: `score` as the dictionary verl logs."""
    return verl_result(score, data_source, solution_str, ground_truth, extra_info, kwargs)


def respond(answer: str) -> str:
    """The shortest well-formed response that gives `answer`."""
    return rf"<think></think>\boxed{{{answer}}}"


def well_formed(response: str) -> bool:
    r"""Whether a response begins with `<think>`, and `</think>`, `\boxed{` and `}` follow in turn.

    The nearest of each will do: if the marks follow each other at all, they follow the nearest.
    """
    at = 0
    for mark in _MARKS:
        found = response.find(mark, at)
        if found < 0 or (at == 0 and found > 0):
            return False
        at = found + len(mark)
    return True
