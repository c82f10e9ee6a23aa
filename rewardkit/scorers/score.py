"""`Score`, the verdict on a response; what a reward returned; and which of its scores is right.

verl accepts a number, or a dictionary with `score`, and asks for nothing that says whether the answer
is right. Of a number, its managers `naive`, `dapo` and `gdpo` report the score itself as `acc`
(`experimental/reward_loop/reward_manager/naive.py` in 0.9.1), so an `acc` of 0.1 says nothing.
`RightRule` decides:

1. an `acc` or `correct` that is a boolean, or 0 or 1 and not just the score, states the verdict;
2. otherwise a score is right from the lowest score on that the gold's own answer gets in a form that
   the reward reads, if no wrong answer gets as much (`right_score.learn_right`);
3. otherwise there are scores, and no accuracy.

The same rule holds in `guard` and in every command that counts right answers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias


class Status(str, Enum):
    """Why a response got its score. A closed set."""

    CORRECT = "correct"
    WRONG = "wrong"
    NO_ANSWER = "no_answer"
    UNPARSED_ANSWER = "unparsed_answer"
    AMBIGUOUS_ANSWER = "ambiguous_answer"
    BAD_GROUND_TRUTH = "bad_ground_truth"
    TIMEOUT = "timeout"
    TOO_LONG = "too_long"
    #: The scorer raised, crashed or returned something that is not a score.
    FAILED = "failed"
    #: No scorer is registered for the row.
    UNKNOWN_DATA_SOURCE = "unknown_data_source"
    #: A reward of one's own gave a score, and which of its scores is right is not known.
    SCORED = "scored"


class Score(NamedTuple):
    """The verdict on one response.

    A named tuple, because one is created per sample and a dataclass costs three times as much.

    Attributes:
        score: the reward; its range depends on the scorer.
        correct: whether the answer is correct; None if it is not known (`RightRule`).
        pred: the extracted answer, "" if there is none.
        status: why the response got this score.
    """

    score: float
    correct: bool | None
    pred: str
    status: Status

    @classmethod
    def right(cls, pred: str, score: float = 1.0) -> "Score":
        """Return the score of a correct answer."""
        return _new(cls, (score, True, pred, _CORRECT))

    @classmethod
    def wrong(cls, pred: str = "", status: Status = Status.WRONG, score: float = 0.0) -> "Score":
        """Return the score of a response that is not correct, for the reason in `status`."""
        return _new(cls, (score, False, pred, status))


# Fast scorers take less than a microsecond; these two save a tenth of it.
_CORRECT = Status.CORRECT
_new = tuple.__new__

Scorer: TypeAlias = Callable[..., Score]


def as_text(value: Any) -> str:
    """Return a value from verl (text, `np.str_`, a number) as a plain `str`; None becomes ""."""
    return "" if value is None else str(value)


#: Maximum number of characters of a text in a result.
MAX_TEXT_LENGTH = 10_000

#: The keys that may state the verdict, the first one first.
VERDICT_KEYS = ("acc", "correct")

#: Two sums of the same parts, such as 0.8 + 0.1, may differ by less than this.
TOLERANCE = 1e-6

#: The status of an answer that is not right, by the key that is set in the result.
_STATUS_OF_FLAG = {"error": Status.FAILED, "timeout": Status.TIMEOUT, "no_answer": Status.NO_ANSWER}

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
        stated: whether the answer is right, as `acc` or `correct` states it; None if neither is 0 or 1.
        is_copy: whether that is a number which equals the score, and so may be no verdict.
    """

    score: float
    fields: Mapping[str, float | str]
    pred: str = ""
    stated: bool | None = None
    is_copy: bool = False

    @classmethod
    def of(cls, value: Any) -> "RewardResult":
        """Read a number or a dictionary, also with values of NumPy and torch.

        A boolean alone is the score and states the verdict.

        Raises:
            InvalidResultError: there is no score.
        """
        if not isinstance(value, Mapping):
            if _number(value) is None:
                raise InvalidResultError(
                    f"the reward returned {type(value).__name__}, not a number or a dictionary"
                )
            value = dict.fromkeys(("score", "acc") if _is_boolean(value) else ("score",), value)
        fields: dict[str, float | str] = {}
        for key, item in value.items():
            if isinstance(item, str):
                fields[str(key)] = str(item[:MAX_TEXT_LENGTH])
            elif (number := _number(item)) is not None:
                fields[str(key)] = number
        score = fields.get("score")
        if not isinstance(score, float):
            raise InvalidResultError(
                "the dictionary that the reward returned has no number `score`"
            )
        pred = as_text(value.get("pred"))[:MAX_TEXT_LENGTH]
        for key in VERDICT_KEYS:
            if fields.get(key) in (0.0, 1.0):
                is_copy = fields[key] == score and not _is_boolean(value.get(key))
                return cls(score, fields, pred, bool(fields[key]), is_copy)
        return cls(score, fields, pred)

    def as_score(self) -> Score:
        """Return the result as a `Score`; with the status `scored` it needs a `RightRule`.

        Its `correct` is then what a copy of the score states, or None.
        """
        if not self.stated and len(self.fields) > 1:
            for key, status in _STATUS_OF_FLAG.items():
                if self.fields.get(key):
                    return Score.wrong(self.pred, status, self.score)
        if self.stated is None or self.is_copy:
            return Score(self.score, self.stated, self.pred, Status.SCORED)
        status = Status.CORRECT if self.stated else Status.WRONG
        return Score(self.score, self.stated, self.pred, status)


def _is_boolean(value: Any) -> bool:
    """Whether a value is a boolean of Python, NumPy (`bool` from 2.0 on) or torch."""
    name = type(value).__name__
    is_tensor = name == "Tensor" and str(getattr(value, "dtype", "")) == "torch.bool"
    return is_tensor or name in ("bool", "bool_")


def _number(value: Any) -> float | None:
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
        takes_verdict: whether an `acc` or `correct` that states the verdict decides, before the score.
        reason: where `least` comes from, or why it is not known, as the end of a sentence; "" if the
            results themselves state their verdicts.
        takes_copies: whether an `acc` of 0 or 1 decides also where it only repeats the score.
        most: the highest score that a verdict is given to: a little more than any gold got, because more
            is paid for something that was not tried. None for no limit.
        sources: the data sources of the golds that were tried; empty for all.
    """

    least: float | None = None
    takes_verdict: bool = True
    reason: str = ""
    takes_copies: bool = False
    most: float | None = None
    sources: frozenset[str] = frozenset()

    def judge(self, score: Score, source: str = "") -> Score:
        """Return a score of `RewardResult.as_score`, to a row of a data source, with its verdict."""
        if score.status not in _JUDGED:
            return score
        takes = self.takes_copies if score.status is Status.SCORED else self.takes_verdict
        correct = score.correct if takes else None
        is_seen = not self.sources or source in self.sources
        is_seen &= self.most is None or score.score <= self.most + TOLERANCE
        if correct is None and self.least is not None and is_seen:
            correct = score.score >= self.least - TOLERANCE
        if correct is None:
            return score._replace(correct=None, status=Status.SCORED)
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

    def doubt(self, scored: int, total: int) -> str:
        """Return a sentence about scores that the trial did not show; "" if there are none."""
        if not scored or self.most is None:
            return ""
        return (
            f"{scored:,} of {total:,} responses have a score of more than {self.most:g}, which no gold "
            "got, or a data source of which no gold was tried: which score is right is not known. Name "
            "it with --right-score."
        )


#: The rule of a reward that was not tried: any `acc` or `correct` of 0 or 1 decides.
LITERAL = RightRule(takes_copies=True)


def rule_of_results(results: Iterable[RewardResult]) -> RightRule:
    """Return the rule for results whose reward is not at hand, such as those in verl's dumps."""
    results = list(results)
    if all(result.stated is not None for result in results):
        return LITERAL
    scores = [result.score for result in results]
    reason = f"the scores are {min(scores):g} to {max(scores):g}, and not all have an acc of 0 or 1"
    return RightRule(None, False, reason)
