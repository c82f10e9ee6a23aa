"""A user's scorer that does almost nothing, to measure the code around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit import Score, Status


def score(
    response: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001 - part of the signature
) -> Score:
    """Compare the last word of the response with the gold."""
    pred = response.rstrip(".\n ").rpartition(" ")[2]
    right = pred == ground_truth
    return Score(float(right), right, pred, Status.CORRECT if right else Status.WRONG)
