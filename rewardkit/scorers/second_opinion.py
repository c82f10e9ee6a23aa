"""A second scorer, asked about what the first one did not call correct: rules first, then a judge.

The second scorer's *yes* is the only thing that changes a verdict. It is never asked about a correct
answer, about a response without an answer, or where the data or the configuration is at fault.
TinyV (arXiv:2505.14625) asks a small model about the responses that rules reject.

The file of a scorer that asks a server has a function for verl that is a coroutine function where
verl awaits rewards, and that returns numbers beside the score, such as tokens. Of all other scorers
the score is all that there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Literal, NamedTuple, TypeAlias

from rewardkit.errors import call_catching, call_catching_async
from rewardkit.scorers.base import (
    Score,
    Scorer,
    Status,
    as_text,
    failed_verl_score,
    spec_of,
    verl_score,
)
from rewardkit.scorers.call import require_score
from rewardkit.scorers.options import bound_options, inner_function, is_verl_function
from rewardkit.scorers.reward_result import LITERAL, RewardResult, RightRule

#: About which responses the second scorer is asked.
Ask: TypeAlias = Literal["wrong", "undecided", "never"]

#: What rules could not read. TIMEOUT is that of a rule, such as Math-Verify's.
_UNDECIDED = frozenset(
    {Status.UNPARSED_ANSWER, Status.AMBIGUOUS_ANSWER, Status.TOO_LONG, Status.TIMEOUT}
)
_ASKED: Mapping[Ask, frozenset[Status]] = {
    "wrong": _UNDECIDED | {Status.WRONG},
    "undecided": _UNDECIDED,
    "never": frozenset(),
}
#: The statuses that are verdicts of rules.
_DECIDED = frozenset({Status.CORRECT, Status.WRONG, Status.NO_ANSWER})
#: The status of a sample whose second scorer failed; any other one that is not correct is a no.
_FAILURES = {
    Status.TIMEOUT: Status.TIMEOUT,
    Status.FAILED: Status.FAILED,
    Status.BAD_GROUND_TRUTH: Status.FAILED,
    Status.UNKNOWN_DATA_SOURCE: Status.FAILED,
}

#: The number of a judge that had no budget left, which is not a no.
OVER_BUDGET = "judge_over_budget"

#: The numbers that verl gets of every sample of a reward with a second scorer.
METRICS = ("rule_decided", "second_asked", "second_changed", "second_contradicted")


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


@dataclass(frozen=True)
class SecondOpinion:
    """A second scorer, and when it is asked.

    Attributes:
        scorer: the second scorer, with its options bound.
        ask: `undecided`: about what the first could not read; `wrong`: also about what it calls
            wrong; `never`.
        confirm: asked after its yes, which counts only if this one says yes too; None for no one.
        blank: the numbers that its file adds for verl, for a sample that it is not asked about.
        rule: which of its results are right, unless it says so itself.
    """

    scorer: Scorer
    ask: Ask = "undecided"
    confirm: Scorer | None = None
    blank: Mapping[str, float] = field(default_factory=dict)
    rule: RightRule = LITERAL

    @property
    def is_async(self) -> bool:
        """Whether the second scorer's function for verl is a coroutine function."""
        return iscoroutinefunction(_verl_function(self.scorer))

    @property
    def asks_server(self) -> bool:
        """Whether the second scorer waits for a model server."""
        return self.ask != "never" and spec_of(self.scorer).asks_server

    def revise(self, first: Score, sample: VerlSample) -> Opinion:
        """Return the score of a response and the numbers for verl. Never raises."""
        opinions: list[Opinion] = []
        while (scorer := self._next(first, sample, opinions)) is not None:
            opinions.append(self._judge(_ask(scorer, sample)))
        return self._conclusion(first, opinions)

    async def revise_async(self, first: Score, sample: VerlSample) -> Opinion:
        """`revise`, which waits in the caller's event loop."""
        opinions: list[Opinion] = []
        while (scorer := self._next(first, sample, opinions)) is not None:
            opinions.append(self._judge(await _ask_async(scorer, sample)))
        return self._conclusion(first, opinions)

    def _judge(self, opinion: Opinion) -> Opinion:
        return opinion._replace(score=self.rule.judge(opinion.score))

    def _next(self, first: Score, sample: VerlSample, opinions: list[Opinion]) -> Scorer | None:
        """Return the scorer to ask after these opinions; None if there is nothing to ask."""
        if not opinions:
            has_text = as_text(sample.solution_str).strip() != ""
            return self.scorer if has_text and first.status in _ASKED[self.ask] else None
        return self.confirm if len(opinions) == 1 and opinions[0].score.correct else None

    def _conclusion(self, first: Score, opinions: list[Opinion]) -> Opinion:
        """Return the first score as the opinions change it.

        A failure of the second scorer keeps the first's number and sets `error` or `timeout`.
        """
        scores = [opinion.score for opinion in opinions]
        score = first
        if scores and scores[-1].correct:
            score = Score.right(first.pred or scores[0].pred, scores[0].score)
        elif scores:
            score = first._replace(status=_FAILURES.get(scores[-1].status, Status.WRONG))
        total: dict[str, float] = {}
        for name, value in (pair for opinion in opinions for pair in opinion.metrics.items()):
            # Time and cost of two questions are added, of other numbers the larger one counts.
            is_amount = name.endswith(("seconds", "tokens", "cost"))
            before = total.get(name, 0.0)
            total[name] = before + value if is_amount else max(before, value)
        shares = (
            not scores and first.status in _DECIDED,
            bool(scores),
            bool(score.correct and not first.correct),
            len(scores) == 2 and scores[1].status is Status.WRONG and not total.get(OVER_BUDGET),
        )
        metrics = {name: total.get(name, value) for name, value in self.blank.items()}
        return Opinion(score, {**metrics, **dict(zip(METRICS, map(float, shares), strict=True))})


def blank_metrics(scorer: Scorer) -> dict[str, float]:
    """Return the numbers that a scorer's file adds for verl: its `blank_metrics(options)`."""
    blank = spec_of(scorer).blank_metrics
    return dict(blank(bound_options(scorer))) if blank else {}


def _verl_function(scorer: Scorer) -> Callable[..., Any] | None:
    """Return the function for verl of a scorer that waits: of its file if it asks a server, or its own.

    Of other scorers, the function for verl says no more than their score.
    """
    function = inner_function(scorer)
    if iscoroutinefunction(function):
        return function if is_verl_function(scorer) else None
    spec = spec_of(scorer)
    return spec.verl_function if spec.asks_server else None


def _ask(scorer: Scorer, sample: VerlSample) -> Opinion:
    function = _verl_function(scorer)
    if function is None or iscoroutinefunction(function):
        return Opinion(verl_score(scorer, *sample), {})
    return _opinion(call_catching(function, **_arguments(scorer, sample)), scorer, sample)


async def _ask_async(scorer: Scorer, sample: VerlSample) -> Opinion:
    """`_ask`, which waits in the caller's event loop; a scorer that computes runs in a thread."""
    function = _verl_function(scorer)
    if function is None or not iscoroutinefunction(function):
        return await asyncio.to_thread(_ask, scorer, sample)
    result = await call_catching_async(function, **_arguments(scorer, sample))
    return _opinion(result, scorer, sample)


def _arguments(scorer: Scorer, sample: VerlSample) -> dict[str, Any]:
    """Return the arguments of a function for verl; a scorer that asks a server gets verl's address."""
    fields, kwargs = sample._asdict(), sample.kwargs if spec_of(scorer).asks_server else {}
    del fields["kwargs"]
    return {**fields, **bound_options(scorer), **kwargs}


def _opinion(result: Any, scorer: Scorer, sample: VerlSample) -> Opinion:
    """Return the opinion in the result of a function for verl, or of the exception that it raised."""
    score = result
    if not isinstance(result, Exception):
        score = call_catching(lambda: require_score(RewardResult.of(result).as_score()))
    if isinstance(score, Exception):
        return Opinion(
            failed_verl_score(sample.data_source, score, spec_of(scorer).wrong_score), {}
        )
    pairs = result.items() if isinstance(result, Mapping) else ()
    return Opinion(score, {k: float(v) for k, v in pairs if type(v) in (int, float)})
