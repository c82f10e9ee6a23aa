"""A scorer's opinion of a sample of verl: its score, and the numbers that its file adds.

The file of a scorer that asks a server has a function for verl that is a coroutine function where
verl awaits rewards, and that returns numbers beside the score, such as tokens. Of all other scorers
the score is all that there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from rewardkit.errors import call_catching, call_catching_async
from rewardkit.scorers.base import Score, Scorer, failed_verl_score, verl_score, wrong_score
from rewardkit.scorers.call import call_verl_function, require_score
from rewardkit.scorers.options import asks_server, inner_function
from rewardkit.scorers.reward_result import RewardResult


class Opinion(NamedTuple):
    """The score of a scorer, and the numbers that its file adds for verl."""

    score: Score
    metrics: Mapping[str, float]


class VerlSample(NamedTuple):
    """What verl passes to a reward."""

    data_source: Any
    solution_str: Any
    ground_truth: Any
    extra_info: Any
    kwargs: Mapping[str, Any]


def blank_metrics(scorer: Scorer) -> dict[str, float]:
    """Return the numbers that a scorer's file adds for verl: its `blank_metrics(options)`."""
    blank = _namespace(scorer).get("blank_metrics")
    return dict(blank(_bound_options(scorer))) if blank else {}


def _namespace(scorer: Scorer) -> Mapping[str, Any]:
    namespace: Mapping[str, Any] = getattr(inner_function(scorer), "__globals__", {})
    return namespace


def _verl_function(scorer: Scorer) -> Callable[..., Any] | None:
    """Return the function for verl of a scorer that waits: of its file if it asks a server, or its own.

    Of other scorers, the function for verl says no more than their score.
    """
    function = inner_function(scorer)
    if iscoroutinefunction(function):
        is_verl_function = any(part.func is call_verl_function for part in _partials(scorer))
        return function if is_verl_function else None
    entry: Callable[..., Any] | None = _namespace(scorer).get("compute_score")
    is_own = _namespace(scorer).get("score") is function
    return entry if asks_server(scorer) and is_own else None


def _partials(scorer: Any) -> list[partial[Any]]:
    """Return the layers of bound arguments around a scorer's function, the outermost first."""
    layers = []
    while isinstance(scorer, partial):
        layers.append(scorer)
        scorer = scorer.args[0] if scorer.func is call_verl_function else scorer.func
    return layers


def _bound_options(scorer: Scorer) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for layer in reversed(_partials(scorer)):
        options.update(layer.keywords)
    return options


def is_async(scorer: Scorer) -> bool:
    """Return whether the function for verl of a scorer is a coroutine function."""
    return iscoroutinefunction(_verl_function(scorer))


def ask(scorer: Scorer, sample: VerlSample) -> Opinion:
    """Return a scorer's opinion of a sample. Never raises."""
    function = _verl_function(scorer)
    if function is None or iscoroutinefunction(function):
        return Opinion(verl_score(scorer, *sample), {})
    return _opinion(call_catching(function, **_arguments(scorer, sample)), scorer, sample)


async def ask_async(scorer: Scorer, sample: VerlSample) -> Opinion:
    """`ask`, which waits in the caller's event loop; a scorer that computes runs in a thread."""
    function = _verl_function(scorer)
    if function is None or not iscoroutinefunction(function):
        return await asyncio.to_thread(ask, scorer, sample)
    result = await call_catching_async(function, **_arguments(scorer, sample))
    return _opinion(result, scorer, sample)


def _arguments(scorer: Scorer, sample: VerlSample) -> dict[str, Any]:
    """Return the arguments of a function for verl; a scorer that asks a server gets verl's address."""
    fields = dict(zip(VerlSample._fields[:4], sample[:4], strict=True))
    kwargs = sample.kwargs if asks_server(scorer) else {}
    return {**fields, **_bound_options(scorer), **kwargs}


def _opinion(result: Any, scorer: Scorer, sample: VerlSample) -> Opinion:
    """Return the opinion in the result of a function for verl, or of the exception that it raised."""
    score = result if isinstance(result, Exception) else call_catching(_read_result, result)
    if isinstance(score, Exception):
        return Opinion(failed_verl_score(sample.data_source, score, wrong_score(scorer)), {})
    pairs = result.items() if isinstance(result, Mapping) else ()
    return Opinion(score, {k: float(v) for k, v in pairs if type(v) in (int, float)})


def _read_result(result: Any) -> Score:
    return require_score(RewardResult.of(result).as_score())
