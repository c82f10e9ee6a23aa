"""The scorer of each row: the one in `extra_info.scorer`, or the one of its `data_source`.

Give verl this file when a run mixes datasets. A row can only name a registered scorer, never a
file: the parquet decides how a row is scored, but not which code runs. A row without a known scorer
counts as wrong and sets `error`; `rewardkit check` finds such rows before training.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rewardkit.errors import call_catching
from rewardkit.scorers.base import Score, ScorerSpec, options_for, verl_result
from rewardkit.scorers.load import own_options, scorer_for


def score(
    response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, **options: Any
) -> Score:
    """Judge a response with the scorer of its row.

    Raises:
        UnknownNameError: the row has no known scorer.
        UsageError: no scorer accepts the value of an option.
    """
    info = extra_info or {}
    scorer = scorer_for(info.get("data_source"), info)
    accepted = options_for(scorer, own_options(scorer, options)) if options else {}
    return scorer(response, ground_truth, extra_info, **accepted)


def compute_score(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None, **kwargs: Any
) -> dict[str, float | str]:
    """Score a sample with the scorer of its row and return the dictionary that verl logs."""
    info = {**extra_info} if isinstance(extra_info, Mapping) else {}
    scorer = call_catching(scorer_for, data_source, info)
    if isinstance(scorer, Exception):
        scorer = partial(_raise, scorer)
    elif kwargs:
        kwargs = own_options(scorer, kwargs)
    info["data_source"] = data_source
    return verl_result(scorer, data_source, solution_str, ground_truth, info, kwargs)


def _raise(error: Exception, *_sample: Any, **_options: Any) -> Score:
    raise error


SPEC = ScorerSpec(score, __doc__)
