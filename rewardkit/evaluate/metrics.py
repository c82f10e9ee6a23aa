"""Metrics of scored responses, with 95 % intervals over questions.

- `mean@n`: the mean over questions of the fraction of correct responses.
- `pass@k`: `pass_at_k` (Chen et al. 2021), for every k up to n.
- `maj@k`: `majority_at_k`: ties are shared, responses without an answer do not vote.

Intervals (`statistics.clustered_interval`) treat questions as the random draw, because responses to
one question are alike.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import comb
from statistics import fmean
from typing import Any, NamedTuple

from rewardkit.answers.parsing.typography import canonical_spelling
from rewardkit.model_client.completions import TRUNCATED, UNUSABLE, parse_token_count
from rewardkit.responses.figures import count_no_answer
from rewardkit.responses.samples import Sample
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import Interval, clustered_interval, percentile_of_counts

#: Up to this many responses, maj@k is computed for every k.
MAX_RESPONSES_FOR_EVERY_K = 64


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


def majority_at_k(votes: Sequence[tuple[int, float]], blank: int = 0) -> list[float]:
    """Return the chance that the most frequent answer of k responses is correct, for k from 1 to n.

    This is exact: every choice of k of the n responses counts once. Answers that tie for the most
    votes win with the same chance. Responses without an answer do not vote; if none of the k has
    one, the answer is wrong.

    Args:
        votes: for each distinct answer, the number of responses that give it and the fraction of
            them that is correct, which is usually 0 or 1.
        blank: number of responses without an answer.

    Returns:
        The chance for each k; with more than `MAX_RESPONSES_FOR_EVERY_K` responses, only for k = n.
    """
    n = blank + sum(times for times, _ in votes)
    if n > MAX_RESPONSES_FOR_EVERY_K:
        most = max((times for times, _ in votes), default=0)
        tied = [fraction for times, fraction in votes if times == most]
        return [sum(tied) / len(tied) if tied else 0.0]
    ways = [0.0] * (n + 1)
    for index, (times, fraction) in enumerate(votes):
        others = [m for other, (m, _) in enumerate(votes) if other != index]
        for own in range(1, times + 1 if fraction else 0):
            _add_wins(ways, fraction * comb(times, own), own, others, blank)
    return [ways[k] / comb(n, k) for k in range(1, n + 1)]


def _add_wins(
    ways: list[float], weight: float, own: int, others: Sequence[int], blank: int
) -> None:
    """Add to `ways[k]` the choices of k in which an answer has `own` votes and none has more.

    For each number of ties there is a polynomial in the total votes of the other answers; each of
    these answers multiplies it by the ways to give it fewer votes, or equally many.
    """
    size = len(ways) - own
    low = blank + sum(m for m in others if m < own)  # these never reach `own`: any choice counts
    tied = {0: [comb(low, x) for x in range(size)]}
    for m in others:
        if m < own:
            continue
        result: dict[int, list[int]] = {}
        for ties, counts in tied.items():
            for votes in range(own + 1):
                sums = result.setdefault(ties + (votes == own), [0] * size)
                chance = comb(m, votes)
                for x, count in enumerate(counts[: max(size - votes, 0)]):
                    sums[x + votes] += count * chance
        tied = result
    for ties, counts in tied.items():
        for x, count in enumerate(counts):
            ways[own + x] += weight * count / (ties + 1)


class EvaluatedResponse(NamedTuple):
    """A scored response without its text.

    Attributes:
        group: data source, subject and level; "" for each that the row does not have.
        correct: whether the answer is correct.
        score: the reward.
        vote: the normalised answer, by which votes are counted; "" without an answer.
        status: status of the score.
        finish: its `finish_reason`; "" if unknown.
        characters: length of the response.
        tokens: length of the response in tokens; None if unknown.
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
    def of(cls, sample: Sample, score: Score) -> EvaluatedResponse:
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
    """The responses to a question: their number, the number of correct ones, and their maj@k.

    `majority` has maj@k as `majority_at_k` returns it. It is empty if a response is correct
    and the scorer does not say which answer it gives.
    """

    n: int
    correct: int
    majority: array[float]

    @classmethod
    def of(cls, responses: Sequence[EvaluatedResponse]) -> QuestionResult:
        """Return the result of a question from all its responses, of which there is at least one."""
        votes: dict[str, list[bool]] = {}
        for response in responses:
            votes.setdefault(response.vote, []).append(response.correct)
        blank = votes.pop("", [])
        pairs = [(len(flags), sum(flags) / len(flags)) for flags in votes.values()]
        majority = [] if any(blank) else majority_at_k(pairs, len(blank))
        correct = sum(response.correct for response in responses)
        return cls(len(responses), correct, array("d", majority))

    def metric(self, kind: str, k: int) -> float | str:
        """Return `mean`, `pass` or `maj` of k, from 0 to 1, or the reason why there is none."""
        if kind == "mean":
            return self.correct / self.n
        if k > self.n:
            return f"a question has {self.n} responses; {kind}@{k} needs {k}."
        if kind == "pass":
            return pass_at_k(self.n, self.correct, k)
        if not self.majority:
            return f"maj@{k}: the scorer does not name the answers that it calls correct."
        if len(self.majority) == self.n or k == self.n:
            return self.majority[k - self.n - 1]
        return f"maj@{k}: of {self.n} responses only maj@{self.n} is known."


@dataclass
class MetricGroup:
    """Running totals of the questions of one kind.

    Attributes:
        questions: the result of each question.
        statuses: number of responses by status.
        finishes: number of responses by `finish_reason`.
        truncated_correct: responses that were truncated and are correct nevertheless.
        score: sum of the rewards.
        characters: number of responses by length in characters.
        tokens: number of responses by length in tokens, of those for which it is known.
    """

    questions: list[QuestionResult] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
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
    def no_answer(self) -> int:
        """Number of responses without an answer, as `rewardkit score` counts them."""
        return count_no_answer(self.statuses)

    @property
    def bad_golds(self) -> int:
        """Number of responses whose gold cannot be scored."""
        return self.statuses[Status.BAD_GROUND_TRUTH.value]

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
            "maj@k": {str(k): each for k in every_k if (each := self._metric("maj", k))},
            "truncated": {
                **self._part(self.finishes[TRUNCATED]),
                "right": self.truncated_correct,
            },
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
        known = [value for value in values if not isinstance(value, str)]
        if len(known) < len(values):
            return {}
        return {"value": fmean(known), "interval": self.interval(known, k)}

    def _part(self, n: int) -> dict[str, Any]:
        return {"n": n, "share": n / self.responses}


@dataclass
class EvaluationMetrics:
    """Metrics of an evaluation.

    Attributes:
        total: all questions.
        sources: questions by data source.
        details: those of rows that have one, `by_subject` and `by_level`, by data source and name.
    """

    total: MetricGroup = field(default_factory=MetricGroup)
    sources: dict[str, MetricGroup] = field(default_factory=dict)
    details: dict[str, dict[str, dict[str, MetricGroup]]] = field(
        default_factory=lambda: {"by_subject": {}, "by_level": {}}
    )

    def summary(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
        details = {
            kind: {
                source: {name: group.summary() for name, group in sorted(named.items())}
                for source, named in groups.items()
            }
            for kind, groups in self.details.items()
        }
        sources = {name: group.summary() for name, group in self.sources.items()}
        return {"total": self.total.summary(), "by_data_source": sources, **details}

    def add(self, responses: Sequence[EvaluatedResponse]) -> QuestionResult:
        """Add a question by all its responses, and return its result."""
        result = QuestionResult.of(responses)
        source, *names = responses[0].group
        groups = [self.total, self.sources.setdefault(source, MetricGroup())]
        for detail, name in zip(self.details.values(), names, strict=True):
            if name:
                groups.append(detail.setdefault(source, {}).setdefault(name, MetricGroup()))
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
