"""A reward of several parts, and perhaps of two scorers, as verl and commands call it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

from rewardkit.errors import UsageError, call_catching
from rewardkit.scorers import shaping
from rewardkit.scorers.base import (
    RECORD,
    VERL_KWARGS,
    Score,
    Scorer,
    Status,
    as_text,
    failure_result,
    record_result,
    recorded_result,
    to_verl,
    verl_score,
)
from rewardkit.scorers.opinion import VerlSample
from rewardkit.scorers.options import asks_server
from rewardkit.scorers.reward_result import LITERAL, RightRule
from rewardkit.scorers.second_opinion import KEYS, SecondOpinion

#: Computes the value of a part from the scorer's score and the response.
Value: TypeAlias = Callable[[Score, str], float]

#: The score of a response without an answer, on which parts are tried.
NO_SCORE = Score.wrong("", Status.NO_ANSWER)
#: Keys of the result that a part may not have: ours, and those that verl sets.
RESERVED = frozenset({*to_verl(NO_SCORE), *KEYS, "reward", "overlong", "overlong_reward"})


@dataclass(frozen=True)
class Part:
    """One part of a reward.

    Attributes:
        name: the key of its contribution in verl's log.
        weight: the factor of its value.
        value: `value(score, response) -> float`.
    """

    name: str
    weight: float
    value: Value

    def __post_init__(self) -> None:
        is_number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not is_number or not math.isfinite(self.weight):
            raise UsageError(f"part {self.name!r}: weight={self.weight!r}; give a number.")


@dataclass(frozen=True)
class Reward:
    """The weighted sum of several parts, which is itself a scorer.

    Attributes:
        scorer: judges the answer; `acc` and `pred` come from it.
        parts: the parts, in the order of their keys in verl's log.
        second: a second scorer, asked about what the first did not call correct; None for none.
        rule: which results of the scorer are right, unless it says so itself.
    """

    scorer: Scorer
    parts: tuple[Part, ...]
    second: SecondOpinion | None = None
    rule: RightRule = LITERAL

    def __post_init__(self) -> None:
        names = [part.name for part in self.parts]
        if not names:
            raise UsageError("a reward needs at least one part, such as correct: 1.0.")
        for name in names:
            if name in RESERVED or names.count(name) > 1:
                raise UsageError(f"part {name!r}: the name is in use; choose another.")

    @property
    def is_async(self) -> bool:
        """Whether verl should await `compute_score_async` instead of calling `compute_score`."""
        return self.second is not None and self.second.is_async

    @property
    def asks_server(self) -> bool:
        """Whether a score may wait for a model server."""
        return asks_server(self.scorer) or (self.second is not None and self.second.asks_server)

    def __call__(
        self,
        response: str,
        ground_truth: str,
        extra_info: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Score:
        """Return the scorer's score with the sum of the parts as its number."""
        base = self.rule.judge(self.scorer(response, ground_truth, extra_info, **options))
        if self.second is not None:
            base = self.second.revise(base, response, ground_truth, extra_info)
        values = {
            part.name: (part.weight, _finite_value(part, base, response)) for part in self.parts
        }
        return base._replace(score=shaping.weighted(values)[0])

    def compute_score(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """Score a sample for verl. Never raises.

        Args:
            data_source: the `data_source` of the row.
            solution_str: the response.
            ground_truth: the gold answer.
            extra_info: the row's other fields.
            kwargs: options of the scorer; `record` names a folder in which all parts are recorded.

        Returns:
            The same keys for every input: those of `base.verl_result`, with the weighted sum as
            `score`, and the contribution of each part. A part that fails contributes 0.0 and sets
            `error`.
        """
        if RECORD in kwargs:
            call = (data_source, solution_str, ground_truth, extra_info)
            return recorded_result(lambda rest: self.compute_score(*call, **rest), *call, kwargs)
        sample = _sample(data_source, solution_str, ground_truth, extra_info, kwargs)
        base = self.rule.judge(verl_score(self.scorer, *sample))
        metrics: Mapping[str, float] = {}
        if self.second is not None:
            base, metrics = self.second.revise_for_verl(base, _without_options(sample))
        return self._result(base, metrics, sample)

    async def compute_score_async(
        self,
        data_source: Any,
        solution_str: Any,
        ground_truth: Any,
        extra_info: Any = None,
        **kwargs: Any,
    ) -> dict[str, float | str]:
        """`compute_score`, which waits for the second scorer in verl's event loop."""
        started = perf_counter()
        folder = kwargs.pop(RECORD, None)
        sample = _sample(data_source, solution_str, ground_truth, extra_info, kwargs)
        # In a thread, as verl runs a reward that is not async: a rule may take its time.
        base = self.rule.judge(await asyncio.to_thread(verl_score, self.scorer, *sample))
        metrics: Mapping[str, float] = {}
        if self.second is not None:
            second = self.second.revise_for_verl_async(base, _without_options(sample))
            base, metrics = await second
        result = self._result(base, metrics, sample)
        seconds = perf_counter() - started
        record_result(folder, result, data_source, solution_str, ground_truth, extra_info, seconds)
        return result

    def _result(
        self, base: Score, metrics: Mapping[str, float], sample: VerlSample
    ) -> dict[str, float | str]:
        """Return the dictionary for verl of a score, with the parts."""
        fields, response = to_verl(base), as_text(sample.solution_str)
        values = {}
        for part in self.parts:
            value = call_catching(_finite_value, part, base, response)
            if isinstance(value, Exception):
                fields["error"] = failure_result(sample.data_source, value)["error"]
                value = 0.0
            values[part.name] = (part.weight, value)
        fields["score"], contributions = shaping.weighted(values)
        return {**fields, **metrics, **contributions}


def _sample(
    data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any, kwargs: dict[str, Any]
) -> VerlSample:
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info["data_source"] = as_text(data_source)  # `auto` reads it there
    return VerlSample(data_source, solution_str, ground_truth, info, kwargs)


def _without_options(sample: VerlSample) -> VerlSample:
    """Return a sample for the second scorer, whose options are not those of the call."""
    kwargs = {name: value for name, value in sample.kwargs.items() if name in VERL_KWARGS}
    return sample._replace(kwargs=kwargs)


def _finite_value(part: Part, base: Score, response: str) -> float:
    value = float(part.value(base, response))
    if not math.isfinite(value):  # one NaN would reach every weight of the policy
        raise ValueError(f"part {part.name!r} is {value}")
    return value
