r"""Final answers of any kind: the last `\boxed{}`, or else the last `Answer:` line.

Numbers are compared as numbers, exactly (`1,000.00` is 1000, `\$18` is 18, `\frac12` is 0.5); all
other answers as text, without spaces and TeX decoration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.answers.equal import equal
from rewardkit.answers.extract import last_answer_line, last_boxed
from rewardkit.answers.number import AMBIGUOUS, read_number
from rewardkit.scorers.base import Score, Status, verl_result


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - every scorer has this signature
) -> Score:
    """Judge a response by its boxed answer or its `Answer:` line: 1.0 if right, 0.0 if not."""
    pred = last_boxed(response)
    if pred is None:
        pred = last_answer_line(response)
    if not ground_truth.strip():
        return Score(0.0, False, pred or "", Status.BAD_GROUND_TRUTH)
    if not pred:
        return Score(0.0, False, "", Status.NO_ANSWER)
    if equal(pred, ground_truth):
        return Score(1.0, True, pred, Status.CORRECT)
    ambiguous = read_number(pred) is AMBIGUOUS and read_number(ground_truth) is not AMBIGUOUS
    return Score(0.0, False, pred, Status.AMBIGUOUS_ANSWER if ambiguous else Status.WRONG)


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
    return rf"\boxed{{{answer}}}"
