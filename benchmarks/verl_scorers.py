"""verl's own scorers with the signature verl calls rewards by, to be audited by path.

The conversions are those of `verl.utils.reward_score.default_compute_score`. It needs verl, and for
`geo3k` mathruler.
"""

# ruff: noqa: ARG001 - the signature is verl's

from __future__ import annotations

from typing import Any

import verl.utils.reward_score  # noqa: F401 - slow: part of loading, not of the first call


def gsm8k(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    from verl.utils.reward_score import gsm8k as theirs

    return float(theirs.compute_score(solution_str, ground_truth))


def gsm8k_flexible(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import gsm8k as theirs

    return float(theirs.compute_score(solution_str, ground_truth, method="flexible"))


def math_dapo(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> dict[str, Any]:
    from verl.utils.reward_score import math_dapo as theirs

    return dict(theirs.compute_score(solution_str, ground_truth))


def math_reward(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import math_reward as theirs

    return float(theirs.compute_score(solution_str, ground_truth))


def prime_math(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import prime_math as theirs

    return float(theirs.compute_score(solution_str, ground_truth)[0])


def geo3k(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    from verl.utils.reward_score import geo3k as theirs

    return float(theirs.compute_score(solution_str, ground_truth))
