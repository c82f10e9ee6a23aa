"""What a scorer returns for a sample, how long it takes, and how the results of two differ."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from time import perf_counter_ns
from typing import Any

from rewardkit.answers.number import read_number
from rewardkit.answers.parsing.typography import canonical_spelling
from rewardkit.preprocess.row_stats import answer_kind
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Scorer, Status
from rewardkit.scorers.call import NO_VERDICT, NoVerdictError, call_scorer_or_stop, error_line
from rewardkit.scorers.isolated import IsolatedScorer
from rewardkit.statistics import percentile

#: The pred of a response without an answer, in verl's `math_dapo`.
INVALID_PRED = "[INVALID]"

#: Characters of a pred that are compared with another, and of an error message.
MAX_COMPARED_CHARACTERS = 500


@dataclass(frozen=True)
class CallResult:
    """The fields of a `Score`, or the error in its place.

    Attributes:
        correct: None if the scorer failed.
        score: the reward; 0.0 if the scorer failed.
        pred: the answer that the scorer read; "" if it read none or does not return it.
        status: the score's status. A function with verl's signature has `correct` or `wrong`. A
            scorer that failed has `raised` and the name of the exception, or what it did instead
            (`ended its process`, `took too long`).
        error: the message of the error.
    """

    correct: bool | None
    score: float
    pred: str
    status: str
    error: str = ""

    def summary(self) -> dict[str, Any]:
        """Return the result for JSON."""
        if self.correct is None:
            return {"status": self.status, "error": self.error}
        fields = ("correct", "score", "pred", "status")
        return {name: getattr(self, name) for name in fields}


@dataclass
class ScorerCalls:
    """The calls of one scorer.

    Attributes:
        name: the scorer's name with its options.
        score_sum: sum of the scores of the samples that both scorers scored.
        raised: number of failures by status.
        first: place and message of the first failure of each status.
        bad_golds: number of samples whose gold the scorer cannot score.
        nanoseconds: duration of each call.
    """

    name: str
    score_sum: float = 0.0
    raised: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    bad_golds: int = 0
    nanoseconds: array[int] = field(default_factory=lambda: array("q"))

    def call(self, scorer: Scorer, sample: Sample) -> CallResult:
        """Call the scorer on a sample, and record the duration and the failure."""
        start = perf_counter_ns()
        result = call_on_sample(scorer, sample)
        duration = perf_counter_ns() - start
        if isinstance(scorer, IsolatedScorer):  # without the time for messages
            duration = scorer.last_call_ns
        self.nanoseconds.append(duration)
        self.bad_golds += result.status == Status.BAD_GROUND_TRUTH.value
        if result.correct is None:
            self.raised[result.status] += 1
            self.first.setdefault(result.status, f"{sample.where}: {result.error}")
        return result

    def speed(self) -> dict[str, float]:
        """Microseconds per call and calls per second, without the first call, which imports."""
        times = sorted(self.nanoseconds[1:] or self.nanoseconds) or [0]
        return {
            "median_us": median(times) / 1e3,
            "p99_us": percentile(times, 99) / 1e3,
            "calls_per_second": len(times) / max(sum(times), 1) * 1e9,
        }


@dataclass(frozen=True)
class DisagreementCause:
    """The properties by which samples are grouped on which two scorers disagree."""

    status_a: str
    status_b: str
    gold_kind: str
    preds: str


def call_on_sample(scorer: Scorer, sample: Sample) -> CallResult:
    """Call a scorer on a sample; an exception of the scorer is a result.

    Raises:
        NeverAnswersError: an isolated scorer failed on all of its first responses.
    """
    # a copy: a scorer that changes extra_info must not affect the other scorer
    info = dict(sample.extra_info)
    result = call_scorer_or_stop(scorer, sample.response, sample.ground_truth, info)
    if isinstance(result, Exception):
        name = type(result).__name__
        status = result.description if isinstance(result, NoVerdictError) else f"raised {name}"
        return CallResult(None, 0.0, "", status, error_line(result)[:MAX_COMPARED_CHARACTERS])
    if result.correct is None:
        return CallResult(None, result.score, result.pred, "has no verdict", NO_VERDICT)
    return CallResult(result.correct, result.score, result.pred, result.status.value)


def disagreement_cause(sample: Sample, a: CallResult, b: CallResult) -> DisagreementCause:
    """Return the cause under which a sample is grouped."""
    kind = answer_kind(sample.ground_truth)
    return DisagreementCause(a.status, b.status, kind, describe_difference(a, b))


def describe_difference(a: CallResult, b: CallResult) -> str:
    """How the answers differ that the two scorers read."""
    if a.correct is None or b.correct is None:
        return f"{'A' if a.correct is None else 'B'} failed"
    pred_a, pred_b = _answer(a), _answer(b)
    if not pred_a or not pred_b:
        return "no pred" if pred_a == pred_b else f"only {'A' if pred_a else 'B'} has a pred"
    if pred_a == pred_b:
        return "same pred"
    return _describe(pred_a[:MAX_COMPARED_CHARACTERS], pred_b[:MAX_COMPARED_CHARACTERS])


def _answer(result: CallResult) -> str:
    """Return the pred, unless it is what some scorers return for a response without an answer."""
    has_none = result.status == Status.NO_ANSWER.value or result.pred == INVALID_PRED
    return "" if has_none else result.pred


def _describe(a: str, b: str) -> str:
    number_a, number_b = read_number(a), read_number(b)
    a, b = canonical_spelling(a).casefold(), canonical_spelling(b).casefold()
    if a == b:
        return "same pred, spelled differently"
    if isinstance(number_a, Fraction) and isinstance(number_b, Fraction):
        return "same number, written differently" if number_a == number_b else "different numbers"
    if a in b:
        return "A's pred is part of B's"
    return "B's pred is part of A's" if b in a else "different preds"
