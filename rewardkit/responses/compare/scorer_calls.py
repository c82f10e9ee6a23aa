"""What a scorer says of one sample, and how two of them differ."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from time import perf_counter_ns
from typing import Any

from rewardkit.answers.number import read_number
from rewardkit.answers.reading.typography import spelling
from rewardkit.preprocess.stats import answer_kind
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Scorer, Status
from rewardkit.scorers.call import NoVerdictError, call_scorer_or_stop, one_line
from rewardkit.scorers.isolated import IsolatedScorer
from rewardkit.statistics import percentile

#: What verl's `math_dapo` gives as the pred of a response without an answer.
INVALID = "[INVALID]"

#: Characters of a pred that are looked at to tell how it differs from another.
LOOKED_AT = 500


@dataclass(frozen=True)
class CallResult:
    """A `Score` in plain values, or what was raised instead of one.

    Attributes:
        correct: None if the scorer raised.
        score: the reward, 0.0 if it raised.
        pred: the answer it read, "" if none, or if it does not say.
        status: its status; of a function with verl's signature, which has none, `correct` or
            `wrong`; of an exception `raised` and its name, or `ended its process` or `took too
            long`.
        error: the exception's message.
    """

    correct: bool | None
    score: float
    pred: str
    status: str
    error: str = ""

    def summary(self) -> dict[str, Any]:
        """The verdict for JSON."""
        if self.correct is None:
            return {"status": self.status, "error": self.error}
        fields = ("correct", "score", "pred", "status")
        return {name: getattr(self, name) for name in fields}


@dataclass
class ScorerCalls:
    """What one scorer did.

    Attributes:
        name: of the scorer, with its options.
        score_sum: over the samples that both judged.
        raised: exceptions by name.
        first: where each kind of exception was first met, and its message.
        nanoseconds: of every call.
    """

    name: str
    score_sum: float = 0.0
    raised: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    nanoseconds: array[int] = field(default_factory=lambda: array("q"))

    def judge(self, scorer: Scorer, sample: Sample) -> CallResult:
        """The scorer's verdict, timed."""
        start = perf_counter_ns()
        said = call_on_sample(scorer, sample)
        taken = (
            scorer.last_call_ns if isinstance(scorer, IsolatedScorer) else perf_counter_ns() - start
        )
        self.nanoseconds.append(taken)
        if said.correct is None:
            self.raised[said.status] += 1
            self.first.setdefault(said.status, f"{sample.where}: {said.error}")
        return said

    def speed(self) -> dict[str, float]:
        """Microseconds per call and calls per second; the first call, which imports, left out."""
        times = sorted(self.nanoseconds[1:] or self.nanoseconds) or [0]
        return {
            "median_us": median(times) / 1e3,
            "p99_us": percentile(times, 99) / 1e3,
            "calls_per_second": len(times) / max(sum(times), 1) * 1e9,
        }


@dataclass(frozen=True)
class DisagreementCause:
    """What samples have in common that two scorers judge differently."""

    status_a: str
    status_b: str
    gold_kind: str
    preds: str


def call_on_sample(scorer: Scorer, sample: Sample) -> CallResult:
    """What the scorer says of the sample. Nothing that it raises is raised here."""
    # a copy: what one scorer does to extra_info must not reach the other
    info = dict(sample.extra_info)
    result = call_scorer_or_stop(scorer, sample.response, sample.ground_truth, info)
    if isinstance(result, Exception):
        name = type(result).__name__
        status = result.description if isinstance(result, NoVerdictError) else f"raised {name}"
        return CallResult(None, 0.0, "", status, one_line(result)[:LOOKED_AT])
    return CallResult(result.correct, result.score, result.pred, result.status.value)


def disagreement_cause(sample: Sample, a: CallResult, b: CallResult) -> DisagreementCause:
    """By what a sample is grouped that two scorers judge differently."""
    return DisagreementCause(
        a.status, b.status, answer_kind(sample.ground_truth), describe_difference(a, b)
    )


def describe_difference(a: CallResult, b: CallResult) -> str:
    """In what the answers differ that the two scorers read."""
    if a.correct is None or b.correct is None:
        return f"{'A' if a.correct is None else 'B'} gave no verdict"
    pred_a, pred_b = _pred(a), _pred(b)
    if not pred_a or not pred_b:
        return "no pred" if pred_a == pred_b else f"only {'A' if pred_a else 'B'} has a pred"
    if pred_a == pred_b:
        return "same pred"
    return _between(pred_a[:LOOKED_AT], pred_b[:LOOKED_AT])


def _pred(said: CallResult) -> str:
    """The answer that was read; where there is none, some scorers say so in its place."""
    none = said.status == Status.NO_ANSWER.value or said.pred == INVALID
    return "" if none else said.pred


def _between(a: str, b: str) -> str:
    number_a, number_b = read_number(a), read_number(b)
    a, b = spelling(a).casefold(), spelling(b).casefold()
    if a == b:
        return "same pred, spelled differently"
    if isinstance(number_a, Fraction) and isinstance(number_b, Fraction):
        return "same number, written differently" if number_a == number_b else "different numbers"
    if a in b:
        return "A's pred is part of B's"
    return "B's pred is part of A's" if b in a else "different preds"
