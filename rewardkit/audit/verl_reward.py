"""verl's default reward as a scorer's file: what `rewardkit audit verl` attacks."""

from importlib.util import find_spec
from typing import Any

if find_spec("verl") is not None:
    import verl.utils.reward_score  # noqa: F401 - slow, so it belongs to loading and not to a call


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **kwargs: Any
) -> Any:
    """Score a response as verl does without a custom reward."""
    from verl.utils.reward_score import default_compute_score

    return default_compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)
