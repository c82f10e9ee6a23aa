"""What a reward returned, and which of its scores is right: the only reading of both.

verl accepts a number, or a dictionary with `score`, and asks for nothing that says whether the answer
is right. Of a number, its managers `naive`, `dapo` and `gdpo` report the score itself as `acc`
(`experimental/reward_loop/reward_manager/naive.py` in 0.9.1), so an `acc` of 0.1 says nothing.
`RightRule` decides:

1. an `acc` or `correct` that is a boolean, 0 or 1 in every result of the trial states the verdict;
2. otherwise a score is right from the lowest score on that the gold's own answer gets in a form that
   the reward reads, if no wrong answer gets as much (`right_score.learn_right`);
3. otherwise there are scores, and no accuracy.

The same rule holds in `guard` and in every command that counts right answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.scorers.score import Score, Status, as_text

#: Maximum number of characters of a text in a result.
MAX_TEXT_LENGTH = 10_000

#: The keys that may state the verdict, the first one first.
VERDICT_KEYS = ("acc", "correct")

#: Two sums of the same parts, such as 0.8 + 0.1, may differ by less than this.
TOLERANCE = 1e-6

#: The status of an answer that is not right, by the key that is set in the result.
_STATUS_OF_FLAG = {
    "error": Status.FAILED,
    "timeout": Status.TIMEOUT,
    "no_answer": Status.NO_ANSWER,
}

#: The statuses that depend on what counts as right; the others say why there is no right answer.
_JUDGED = frozenset({Status.CORRECT, Status.WRONG, Status.SCORED})


class InvalidResultError(TypeError):
    """A reward returned something that is not a number or a dictionary with a score."""


class RewardResult(NamedTuple):
    """What a reward returned for one response.

    Attributes:
        score: the reward; it may be infinite or NaN.
        fields: its numbers and texts by name, with `score`; other values are left out.
        pred: the answer that the reward read, as text.
    """

    score: float
    fields: Mapping[str, float | str]
    pred: str = ""

    @classmethod
    def of(cls, value: Any) -> RewardResult:
        """Read a number or a dictionary, also with values of NumPy and torch.

        A boolean alone is the score and states the verdict.

        Raises:
            InvalidResultError: there is no score.
        """
        if not isinstance(value, Mapping):
            score = _number(value)
            if score is None:
                raise InvalidResultError(
                    f"the reward returned {type(value).__name__}, not a number or a dictionary"
                )
            is_bool = type(value).__name__ in {"bool", "bool_"}  # NumPy's is `bool` from 2.0 on
            return cls(score, {"score": score, "acc": score} if is_bool else {"score": score})
        fields: dict[str, float | str] = {}
        for key, item in value.items():
            if isinstance(item, str):
                fields[str(key)] = str(item[:MAX_TEXT_LENGTH])
            elif (number := _number(item)) is not None:
                fields[str(key)] = number
        score = fields.get("score")  # type: ignore[assignment] # a text is refused here
        if not isinstance(score, float):
            raise InvalidResultError(
                "the dictionary that the reward returned has no number `score`"
            )
        return cls(score, fields, as_text(value.get("pred"))[:MAX_TEXT_LENGTH])

    @property
    def verdict(self) -> bool | None:
        """What `acc` or `correct` states; None without one that is 0 or 1."""
        for key in VERDICT_KEYS:
            if (value := self.fields.get(key)) in (0.0, 1.0):
                return bool(value)
        return None

    def as_score(self) -> Score:
        """Return the result as a `Score`, whose `correct` is None if the result does not state it."""
        fields, pred, correct = self.fields, self.pred, self.verdict
        if correct:
            return Score.right(pred, self.score)
        flag = next((status for key, status in _STATUS_OF_FLAG.items() if fields.get(key)), None)
        if correct is None and flag is None:
            return Score(self.score, None, pred, Status.SCORED)
        return Score.wrong(pred, flag or Status.WRONG, self.score)


def _number(value: Any) -> float | None:
    """Return a Python, NumPy or torch number as a float; None for anything else."""
    if isinstance(value, str | bytes | bytearray) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


@dataclass(frozen=True)
class RightRule:
    """Which results of a reward are right.

    Attributes:
        least: the lowest right score; None if it is not known.
        takes_verdict: whether an `acc` or `correct` of 0 or 1 decides, before the score.
        reason: where `least` comes from, or why it is not known, as the end of a sentence; "" if the
            results themselves state their verdicts.
    """

    least: float | None = None
    takes_verdict: bool = True
    reason: str = ""

    def judge(self, score: Score) -> Score:
        """Return a score of `RewardResult.as_score` with its verdict."""
        if score.status not in _JUDGED or (self.takes_verdict and score.correct is not None):
            return score
        if self.least is None:
            return score._replace(correct=None, status=Status.SCORED)
        correct = score.score >= self.least - TOLERANCE
        return score._replace(correct=correct, status=Status.CORRECT if correct else Status.WRONG)

    @property
    def sentence(self) -> str:
        """What counts as right, for people; "" if the reward itself states it."""
        if self.least is not None:
            return f"right is a score of at least {self.least:g}: {self.reason}."
        if not self.reason:
            return ""
        return f"which score is right is not known: {self.reason}. Name it with --right-score."

    @property
    def is_known(self) -> bool:
        """Whether every result has a verdict by this rule, as far as the trial showed."""
        return self.least is not None or not self.reason


#: The rule of a reward that was not tried: only what it states is known.
UNTRIED = RightRule()


def rule_of_results(results: Iterable[RewardResult]) -> RightRule:
    """Return the rule for results whose reward is not at hand, such as those in verl's dumps."""
    results = list(results)
    if all(result.verdict is not None for result in results):
        return RightRule()
    scores = [result.score for result in results]
    reason = f"the scores are {min(scores):g} to {max(scores):g}, and not all have an acc of 0 or 1"
    return RightRule(None, False, reason)
