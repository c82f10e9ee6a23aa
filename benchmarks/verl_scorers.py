"""verl's own scorers with the signature of a custom reward, to be audited by path.

The conversions are those of `verl.utils.reward_score.default_compute_score`. The module needs verl, and
`geo3k` needs mathruler.
"""

# ruff: noqa: ARG001 - the signature is verl's

from __future__ import annotations

from typing import Any

import verl.utils.reward_score  # noqa: F401 - slow, so it belongs to loading and not to the first call


def gsm8k(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    from verl.utils.reward_score import gsm8k as verl_scorer

    return float(verl_scorer.compute_score(solution_str, ground_truth))


def gsm8k_flexible(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import gsm8k as verl_scorer

    return float(verl_scorer.compute_score(solution_str, ground_truth, method="flexible"))


def math_dapo(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> dict[str, Any]:
    from verl.utils.reward_score import math_dapo as verl_scorer

    return dict(verl_scorer.compute_score(solution_str, ground_truth))


def math_reward(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import math_reward as verl_scorer

    return float(verl_scorer.compute_score(solution_str, ground_truth))


def prime_math(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None
) -> float:
    from verl.utils.reward_score import prime_math as verl_scorer

    return float(verl_scorer.compute_score(solution_str, ground_truth)[0])


def geo3k(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
    from verl.utils.reward_score import geo3k as verl_scorer

    return float(verl_scorer.compute_score(solution_str, ground_truth))
