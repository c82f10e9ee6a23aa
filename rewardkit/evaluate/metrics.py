"""Metrics of scored responses, with 95 % intervals over questions.

- `mean@n`: the mean over questions of the fraction of correct responses.
- `pass@k`: `pass_at_k` (Chen et al. 2021), for every k up to n.
- `maj@n`: whether the most frequent answer is correct: ties are shared, responses without an answer
  do not vote. Of fewer than n responses it is not computed.

Intervals (`statistics.clustered_interval`) treat questions as the random draw, because responses to
one question are alike.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean
from typing import Any, NamedTuple

from rewardkit.answers.parsing.tokens import canonical_spelling
from rewardkit.model_client.completions import TRUNCATED, UNUSABLE, parse_token_count
from rewardkit.responses.figures import StatusCounts
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import Interval, clustered_interval, percentile_of_counts


@lru_cache(1 << 18)  # many questions share few pairs of counts
def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the chance that at least one of k of the n responses, without replacement, is correct.

    Its mean over questions is the unbiased pass@k of Chen et al. 2021 (Evaluating Large Language
    Models Trained on Code, section 2.1): 1 - C(n - correct, k) / C(n, k), here as a product of
    numbers from 0 to 1, which neither overflows nor cancels.
    """
    wrong = n - correct
    if wrong < k:
        return 1.0
    none = 1.0
    for i in range(wrong + 1, n + 1):
        none *= 1 - k / i
    return 1 - none


class EvaluatedResponse(NamedTuple):
    """A scored response without its text.

    `group` is data source, subject and level, each "" if the row does not have it; `vote` the normalised
    answer, by which votes are counted, and "" without one.
    """

    group: tuple[str, str, str]
    correct: bool
    score: float
    vote: str
    status: str
    finish: str
    characters: int
    tokens: int | None

    @classmethod
    def of(cls, sample: Sample, score: Score) -> "EvaluatedResponse":
        """Return what metrics need of a scored response."""
        names = (sample.extra_info.get("subject"), sample.extra_info.get("level"))
        subject, level = ("" if name is None else str(name) for name in names)
        has_answer = score.status is not Status.NO_ANSWER
        return cls(
            group=(sample.source, subject, level),
            correct=bool(score.correct),
            score=score.score,
            vote=canonical_spelling(score.pred) if has_answer else "",
            status=score.status.value,
            finish=str(sample.fields.get("finish_reason") or ""),
            characters=len(sample.response),
            tokens=parse_token_count(sample.fields.get("tokens")),
        )


class QuestionResult(NamedTuple):
    """The responses to a question: their number, the number of correct ones, and their maj@n.

    `majority` is None if a response is correct and the scorer does not say which answer it gives.
    """

    n: int
    correct: int
    majority: float | None

    @classmethod
    def of(cls, responses: Sequence[EvaluatedResponse]) -> "QuestionResult":
        """Return the result of a question from all its responses, of which there is at least one."""
        votes: dict[str, list[bool]] = {}
        for response in responses:
            votes.setdefault(response.vote, []).append(response.correct)
        blank = votes.pop("", [])
        most = max(map(len, votes.values()), default=0)
        tied = [sum(flags) / most for flags in votes.values() if len(flags) == most]
        majority = None if any(blank) else fmean(tied or [0.0])
        return cls(len(responses), sum(response.correct for response in responses), majority)

    def metric(self, kind: str, k: int) -> float | None:
        """Return `mean`, `pass` or `maj` of k, from 0 to 1; None if it is not known."""
        if kind == "mean":
            return self.correct / self.n
        if kind == "maj":
            return self.majority if k == self.n else None
        return pass_at_k(self.n, self.correct, k) if k <= self.n else None


@dataclass
class MetricGroup(StatusCounts):
    """Running totals of the questions of one kind.

    `finishes` are responses by `finish_reason`; `truncated_correct` those that were truncated and are
    correct nevertheless; `characters` and `tokens` responses by length.
    """

    questions: list[QuestionResult] = field(default_factory=list)
    finishes: Counter[str] = field(default_factory=Counter)
    truncated_correct: int = 0
    score: float = 0.0
    characters: Counter[int] = field(default_factory=Counter)
    tokens: Counter[int] = field(default_factory=Counter)

    def add(self, result: QuestionResult, responses: Sequence[EvaluatedResponse]) -> None:
        """Add a question with its responses."""
        self.questions.append(result)
        for response in responses:
            self.statuses[response.status] += 1
            self.finishes[response.finish] += 1
            self.truncated_correct += response.correct and response.finish == TRUNCATED
            self.score += response.score
            self.characters[response.characters] += 1
            if response.tokens is not None:
                self.tokens[response.tokens] += 1

    @property
    def responses(self) -> int:
        """The number of responses."""
        return self.finishes.total()

    @property
    def n(self) -> tuple[int, int]:
        """The smallest and the largest number of responses to a question."""
        counts = [result.n for result in self.questions]
        return min(counts), max(counts)

    @property
    def unusable(self) -> dict[str, int]:
        """Number of unusable responses, which count as wrong, by `finish_reason`."""
        return {name: n for name, n in self.finishes.most_common() if name in UNUSABLE}

    def unusable_note(self) -> str:
        """Return a sentence about the unusable responses, or ""."""
        if not (counts := self.unusable):
            return ""
        reasons = ", ".join(f"{finish} {n:,}" for finish, n in sorted(counts.items()))
        n = sum(counts.values())
        return (
            f"no usable response for {n:,} of {self.responses:,} ({reasons}); they count as wrong."
        )

    def interval(self, values: Sequence[float], k: int = 1) -> Interval:
        """Return the interval of the mean of a metric of k responses, one value per question.

        n responses hold n / k independent draws of k.
        """
        return clustered_interval(((1, value) for value in values), self.responses / k)

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain values; one with an interval is `value` and `interval`."""
        if not self.questions:
            return {"questions": 0, "responses": 0}
        every_k = range(1, self.n[0] + 1)
        return {
            "questions": len(self.questions),
            "responses": self.responses,
            "n": list(self.n),
            "mean": self._metric("mean", 1),
            "mean_score": self.score / self.responses,
            "pass@k": {str(k): self._metric("pass", k) for k in every_k},
            "maj@k": {str(k): each for k in self.n[:1] if (each := self._metric("maj", k))},
            "truncated": {**self._part(self.finishes[TRUNCATED]), "right": self.truncated_correct},
            "finish_reason_unknown": self.finishes[""],
            "no_answer": self._part(self.no_answer),
            "unusable": self.unusable,
            "statuses": dict(self.statuses.most_common()),
            "characters": length_summary(self.characters),
            "tokens": length_summary(self.tokens),
        }

    def _metric(self, kind: str, k: int) -> dict[str, Any]:
        """Return a metric and its interval; nothing if it is not known of every question."""
        values = [result.metric(kind, k) for result in self.questions]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return {}
        return {"value": fmean(known), "interval": self.interval(known, k)}

    def _part(self, n: int) -> dict[str, Any]:
        return {"n": n, "share": n / self.responses}


@dataclass
class EvaluationMetrics:
    """Metrics of all questions, by data source, and by those of its subjects and levels that it names."""

    total: MetricGroup = field(default_factory=MetricGroup)
    sources: dict[str, MetricGroup] = field(default_factory=dict)
    details: dict[tuple[str, str, str], MetricGroup] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
        details: dict[str, dict[str, Any]] = {"by_subject": {}, "by_level": {}}
        for (kind, source, name), group in sorted(self.details.items(), key=lambda item: item[0]):
            details[kind].setdefault(source, {})[name] = group.summary()
        sources = {name: group.summary() for name, group in self.sources.items()}
        return {"total": self.total.summary(), "by_data_source": sources, **details}

    def add(self, responses: Sequence[EvaluatedResponse]) -> QuestionResult:
        """Add a question by all its responses, and return its result."""
        result = QuestionResult.of(responses)
        source, subject, level = responses[0].group
        groups = [self.total, self.sources.setdefault(source, MetricGroup())]
        keys = ("by_subject", source, subject), ("by_level", source, level)
        groups += [self.details.setdefault(key, MetricGroup()) for key in keys if key[-1]]
        for group in groups:
            group.add(result, responses)
        return result


def length_summary(lengths: Mapping[int, int]) -> dict[str, Any]:
    """Return number, mean, percentiles and maximum of lengths that are counted."""
    if not lengths:
        return {"known": 0}
    n = sum(lengths.values())
    mean = sum(length * times for length, times in lengths.items()) / n
    percentiles = {f"p{percent}": percentile_of_counts(lengths, percent) for percent in (50, 95)}
    return {"known": n, "mean": mean, **percentiles, "max": max(lengths)}
