"""A user's scorer that does next to nothing, so that what is around it is what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit import Score, Status


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - a scorer takes it
) -> Score:
    """Whether the response ends with the gold."""
    pred = response.rstrip(".\n ").rpartition(" ")[2]
    right = pred == ground_truth
    return Score(float(right), right, pred, Status.CORRECT if right else Status.WRONG)
