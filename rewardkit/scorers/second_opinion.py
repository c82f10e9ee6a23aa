"""A second scorer, asked about what the first one did not call correct: rules first, then a judge.

The second scorer's *yes* is the only thing that changes a verdict. It is never asked about a correct
answer, about a response without an answer, or where the data or the configuration is at fault.
TinyV (arXiv:2505.14625) asks a small model about the responses that rules reject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rewardkit.scorers.base import Score, Scorer, Status, as_text
from rewardkit.scorers.call import call_scorer, failed_score
from rewardkit.scorers.opinion import Opinion, VerlSample, ask, ask_async, is_async
from rewardkit.scorers.options import asks_server
from rewardkit.scorers.reward_result import LITERAL, RightRule

#: About which responses the second scorer is asked.
Ask: TypeAlias = Literal["wrong", "undecided", "never"]
ASKS: tuple[Ask, ...] = ("wrong", "undecided", "never")

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
#: The statuses of a second scorer that failed; `timeout` stays apart.
_FAILED = frozenset({Status.FAILED, Status.BAD_GROUND_TRUTH, Status.UNKNOWN_DATA_SOURCE})

#: The number of a judge that had no budget left, which is not a no.
OVER_BUDGET = "judge_over_budget"

#: The numbers that verl gets of every sample of a reward with a second scorer.
KEYS = ("rule_decided", "second_asked", "second_changed", "second_contradicted")


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
        return is_async(self.scorer)

    @property
    def asks_server(self) -> bool:
        """Whether the second scorer waits for a model server."""
        return self.ask != "never" and asks_server(self.scorer)

    def is_asked(self, first: Score, response: str) -> bool:
        """Return whether the second scorer is asked about a response."""
        return first.status in _ASKED[self.ask] and not response.isspace() and response != ""

    def revise(
        self, first: Score, response: str, ground_truth: str, extra_info: Mapping[str, Any] | None
    ) -> Score:
        """Return the score of a response for a command, which takes no numbers of the second."""
        if not self.is_asked(first, response):
            return first
        scores: list[Score] = []
        for scorer in filter(None, (self.scorer, self.confirm)):
            result = call_scorer(scorer, response, ground_truth, extra_info)
            score = failed_score(result) if isinstance(result, Exception) else result
            scores.append(self.rule.judge(score))
            if not scores[-1].correct:
                break
        return _revised(first, scores)

    def revise_for_verl(self, first: Score, sample: VerlSample) -> Opinion:
        """Return the score of a response and the numbers for verl. Never raises."""
        opinions: list[Opinion] = []
        while (scorer := self._next(first, sample, opinions)) is not None:
            opinions.append(self._judge(ask(scorer, sample)))
        return self._conclusion(first, opinions)

    async def revise_for_verl_async(self, first: Score, sample: VerlSample) -> Opinion:
        """`revise_for_verl`, which waits in the caller's event loop."""
        opinions: list[Opinion] = []
        while (scorer := self._next(first, sample, opinions)) is not None:
            opinions.append(self._judge(await ask_async(scorer, sample)))
        return self._conclusion(first, opinions)

    def _judge(self, opinion: Opinion) -> Opinion:
        return opinion._replace(score=self.rule.judge(opinion.score))

    def _next(self, first: Score, sample: VerlSample, opinions: list[Opinion]) -> Scorer | None:
        """Return the scorer to ask after these opinions; None if there is nothing to ask."""
        if not opinions:
            return self.scorer if self.is_asked(first, as_text(sample.solution_str)) else None
        return self.confirm if len(opinions) == 1 and opinions[0].score.correct else None

    def _conclusion(self, first: Score, opinions: list[Opinion]) -> Opinion:
        scores = [opinion.score for opinion in opinions]
        score = _revised(first, scores) if scores else first
        total = _total([opinion.metrics for opinion in opinions])
        shares = (
            not scores and first.status in _DECIDED,
            bool(scores),
            bool(score.correct and not first.correct),
            len(scores) == 2 and scores[1].status is Status.WRONG and not total.get(OVER_BUDGET),
        )
        metrics = {name: total.get(name, value) for name, value in self.blank.items()}
        return Opinion(score, {**metrics, **dict(zip(KEYS, map(float, shares), strict=True))})


def _revised(first: Score, seconds: list[Score]) -> Score:
    """Return the first score as the opinions of the second scorer change it.

    A failure of the second keeps the first's number and sets `error` or `timeout`.
    """
    last = seconds[-1]
    if last.status in _FAILED:
        return first._replace(status=Status.FAILED)
    if last.status is Status.TIMEOUT:
        return first._replace(status=Status.TIMEOUT)
    if not last.correct:
        return first._replace(status=Status.WRONG)
    return Score.right(first.pred or seconds[0].pred, seconds[0].score)


def _total(metrics: list[Mapping[str, float]]) -> dict[str, float]:
    """Return the numbers of one or two questions: time and cost are added, of others the larger."""
    total: dict[str, float] = {}
    for name, value in (pair for each in metrics for pair in each.items()):
        is_amount = name.endswith(("seconds", "tokens", "cost"))
        before = total.get(name, 0.0)
        total[name] = before + value if is_amount else max(before, value)
    return total
