"""The scorer each row asks for: the one `extra_info.scorer` names, else its `data_source`'s.

Give verl this file when a run mixes datasets. A row can only name a registered scorer, never a
file: the parquet decides how a row is judged, not what code runs. A row that no scorer is known
for counts as wrong with the `error` flag; `rewardkit check` finds it before training.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rewardkit import registry
from rewardkit.errors import UnknownNameError, call_catching
from rewardkit.scorers.base import (
    VERL_KWARGS,
    Score,
    Scorer,
    as_text,
    failure_result,
    options_for,
    verl_result,
)
from rewardkit.scorers.call import as_scorer
from rewardkit.scorers.load import passed_on


def score(
    response: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None, **options: Any
) -> Score:
    """Judge a response with the scorer of its row.

    Args:
        response: the model's text.
        ground_truth: the gold answer.
        extra_info: the row's; `scorer`, or else `data_source`, says which scorer judges.
        options: passed on to that scorer, without those that only other scorers take.

    Raises:
        UnknownNameError: the row names no known scorer.
        UsageError: no scorer takes the value of an option.
    """
    info = extra_info or {}
    chosen = scorer_for(info.get("data_source"), info)
    own = options_for(chosen, passed_on(chosen, options)) if options else {}
    return chosen(response, ground_truth, extra_info, **own)


def compute_score(
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any = None,
    **kwargs: Any,
) -> dict[str, float | str]:
    """The function verl calls: the chosen scorer's `score` as the dictionary verl logs."""
    info = {**extra_info} if isinstance(extra_info, Mapping) else {}
    chosen = call_catching(scorer_for, data_source, info)
    if isinstance(chosen, Exception):
        return failure_result(data_source, chosen)
    info["data_source"] = data_source
    given = {name: value for name, value in kwargs.items() if name not in VERL_KWARGS}
    own = passed_on(chosen, given) if given else given
    return verl_result(chosen, data_source, solution_str, ground_truth, info, own)


def scorer_for(data_source: Any, extra_info: Mapping[str, Any]) -> Scorer:
    """The scorer of a row.

    Raises:
        UnknownNameError: neither `extra_info.scorer` nor `data_source` is known; the message
            tells the known names and how to add one.
    """
    name = as_text(extra_info.get("scorer"))
    return _named(name) if name else _of_data_source(as_text(data_source))


@cache
def _named(name: str) -> Scorer:
    if name == "auto" or registry.is_path(name):
        raise UnknownNameError(f"extra_info.scorer is {name!r}: a row names a registered scorer.")
    return as_scorer(registry.load("scorers", name))


@cache
def _of_data_source(data_source: str) -> Scorer:
    names = registry.known("data_sources")
    if data_source not in names:
        raise UnknownNameError(
            f"no scorer is known for data_source {data_source!r}."
            f"{registry.did_you_mean(data_source, names)} Known: {', '.join(sorted(names))}. "
            "Name a scorer in extra_info.scorer, give the command or the server one instead of "
            "'auto', or register the data_source as "
            "an entry point of the group 'rewardkit.data_sources'."
        )
    return as_scorer(registry.load("data_sources", data_source))
