"""Metrics of scored responses, with 95 % intervals over questions.

- `mean@n`: the mean over questions of the share of correct responses.
- `pass@k`: `pass_at_k` (Chen et al. 2021), for every k up to n.
- `maj@k`: `majority_at_k`: ties are shared, responses without an answer do not vote.
- `verl_best@N`: verl's `best@N/mean`, drawn with replacement; biased low, for comparison with its
  logs.

Intervals (`statistics.mean_interval`) treat questions as the random draw, because responses to one
question are alike.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import comb
from statistics import fmean
from typing import Any, NamedTuple

from rewardkit.evaluate.evaluated_responses import EvaluatedResponse
from rewardkit.model_client.completions import REFUSED, TRUNCATED, UNUSABLE
from rewardkit.responses.tally import count_no_answer
from rewardkit.scorers.base import Status
from rewardkit.statistics import Interval, mean_interval, percentile

#: Up to this many responses, maj@k is computed for every k.
MAX_RESPONSES_FOR_EVERY_K = 64


@lru_cache(1 << 18)  # many questions share few pairs of counts
def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the chance that at least one of k of the n responses, without replacement, is correct.

    Its mean over questions is the unbiased pass@k of Chen et al. 2021 (Evaluating Large Language
    Models Trained on Code, section 2.1): 1 - C(n - correct, k) / C(n, k), here as a product of
    numbers from 0 to 1, which neither overflows nor cancels.

    Args:
        n: number of responses.
        correct: number of correct ones.
        k: from 1 to n.
    """
    wrong = n - correct
    if wrong < k:
        return 1.0
    none = 1.0
    for i in range(wrong + 1, n + 1):
        none *= 1 - k / i
    return 1 - none


def verl_best_at_n(n: int, correct: int, size: int) -> float:
    """Return the expectation of verl's `best@N/mean` for scores of 0 or 1.

    verl takes the best of N responses drawn with replacement, 1,000 times (`bootstrap_metric`,
    verl/trainer/ppo/metric_utils.py, 0.9.1). It is biased low against pass@N, because one response
    may be drawn twice.

    Args:
        n: number of responses.
        correct: number of correct ones.
        size: N.
    """
    return 1 - (1 - correct / n) ** size


def majority_at_k(votes: Sequence[tuple[int, float]], blank: int = 0) -> list[float]:
    """Return the chance that the most frequent answer of k responses is correct, for k from 1 to n.

    This is exact: every choice of k of the n responses counts once. Answers that tie for the most
    votes win with the same chance. Responses without an answer do not vote; if none of the k has
    one, the answer is wrong.

    Args:
        votes: for each distinct answer, the number of responses that give it and the share of them
            that is correct, which is usually 0 or 1.
        blank: number of responses without an answer.

    Returns:
        The chance for each k; with more than `MAX_RESPONSES_FOR_EVERY_K` responses, only for k = n.
    """
    n = blank + sum(times for times, _ in votes)
    if n > MAX_RESPONSES_FOR_EVERY_K:
        return [_correct_share_of_majority(votes)]
    ways = [0.0] * (n + 1)
    for place, (times, share) in enumerate(votes):
        if share:
            others = [m for other, (m, _) in enumerate(votes) if other != place]
            for got in range(1, times + 1):
                _add_wins(ways, share * comb(times, got), got, others, blank)
    return [ways[k] / comb(n, k) for k in range(1, n + 1)]


def _correct_share_of_majority(votes: Sequence[tuple[int, float]]) -> float:
    """Return the share of correct votes for the most frequent answer; ties are averaged."""
    most = max((times for times, _ in votes), default=0)
    tied = [share for times, share in votes if times == most]
    return sum(tied) / len(tied) if tied else 0.0


def _add_wins(
    ways: list[float], weight: float, got: int, others: Sequence[int], blank: int
) -> None:
    """Add to `ways[k]` the choices of k in which an answer has `got` votes and none has more.

    For each number of ties there is a polynomial in the total votes of the other answers; each of
    these answers multiplies it by the ways to give it fewer votes, or equally many.
    """
    low = blank + sum(m for m in others if m < got)  # these never reach `got`, so any choice counts
    size = len(ways) - got
    tied = {0: [comb(low, x) for x in range(size)]}
    for m in others:
        if m >= got:
            tied = _with_answer(tied, m, got, size)
    for ties, counts in tied.items():
        for x, count in enumerate(counts):
            ways[got + x] += weight * count / (ties + 1)


def _with_answer(tied: dict[int, list[int]], m: int, got: int, size: int) -> dict[int, list[int]]:
    chances = [comb(m, a) for a in range(got + 1)]
    result: dict[int, list[int]] = {}
    for ties, counts in tied.items():
        fewer = result.setdefault(ties, [0] * size)
        same = result.setdefault(ties + 1, [0] * size)
        for x, count in enumerate(counts):
            if not count:
                continue
            for a, chance in enumerate(chances[:-1]):
                if x + a < size:
                    fewer[x + a] += count * chance
            if x + got < size:
                same[x + got] += count * chances[-1]
    return {ties: counts for ties, counts in result.items() if any(counts)}


class QuestionResult(NamedTuple):
    """The responses to a question: their number, the number of correct ones, and their maj@k.

    `majority` has maj@k as `majority_at_k` returns it. It is empty if a response is correct
    and the scorer does not say which answer it gives.
    """

    n: int
    correct: int
    majority: array[float]


@dataclass
class MetricGroup:
    """Running totals of the questions of one kind.

    Attributes:
        questions: the result of each question.
        statuses: number of responses by status.
        finishes: number of responses by `finish_reason`.
        truncated_correct: responses that were truncated and are correct nevertheless.
        score: sum of the rewards.
        characters: length of each response.
        tokens: length in tokens of each response for which it is known.
    """

    questions: list[QuestionResult] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    finishes: Counter[str] = field(default_factory=Counter)
    truncated_correct: int = 0
    score: float = 0.0
    characters: array[int] = field(default_factory=lambda: array("q"))
    tokens: array[int] = field(default_factory=lambda: array("q"))

    def add(self, result: QuestionResult, responses: Iterable[EvaluatedResponse]) -> None:
        """Add a question with its responses."""
        self.questions.append(result)
        for response in responses:
            self.statuses[response.status] += 1
            self.finishes[response.finish] += 1
            self.truncated_correct += response.correct and response.finish == TRUNCATED
            self.score += response.score
            self.characters.append(response.characters)
            if response.tokens is not None:
                self.tokens.append(response.tokens)

    @property
    def n(self) -> tuple[int, int]:
        """The smallest and the largest number of responses to a question."""
        counts = [result.n for result in self.questions]
        return min(counts), max(counts)

    @property
    def truncated_share(self) -> float | None:
        """Share of responses that were truncated; None if no response has a finish_reason."""
        responses = len(self.characters)
        return None if self.finishes[""] == responses else self.finishes[TRUNCATED] / responses

    @property
    def no_answer_share(self) -> float:
        """Share of responses without an answer, as `rewardkit score` counts them."""
        return count_no_answer(self.statuses) / len(self.characters)

    @property
    def bad_golds(self) -> int:
        """Number of responses whose gold cannot be scored."""
        return self.statuses[Status.BAD_GROUND_TRUTH.value]

    @property
    def unusable(self) -> dict[str, int]:
        """Number of unusable responses, which count as wrong, by `finish_reason`."""
        counts = [(finish, n) for finish, n in self.finishes.items() if finish in UNUSABLE]
        return dict(sorted(counts, key=lambda item: (-item[1], item[0])))

    def unusable_note(self) -> str:
        """Return a sentence about the unusable responses, or ""."""
        if not (counts := self.unusable):
            return ""
        reasons = ", ".join(f"{finish} {n:,}" for finish, n in counts.items())
        n, responses = sum(counts.values()), len(self.characters)
        return f"no usable response for {n:,} of {responses:,} ({reasons}); they count as wrong."

    def mean(self) -> tuple[float, Interval]:
        """Return mean@n with its interval; the group has at least one question."""
        values = [result.correct / result.n for result in self.questions]
        return fmean(values), mean_interval(values, len(self.characters))

    def summary(self) -> dict[str, Any]:
        """Return the metrics as plain values; one with an interval is `value` and `interval`."""
        responses = len(self.characters)
        if not responses:
            return {"questions": 0, "responses": 0}
        n = self.n[0]
        return {
            "questions": len(self.questions),
            "responses": responses,
            "n": list(self.n),
            "mean": self.metric_at(lambda result: result.correct / result.n),
            "mean_score": self.score / responses,
            "pass@k": self._every_k(
                n, lambda k: lambda result: pass_at_k(result.n, result.correct, k)
            ),
            "maj@k": self._majorities(n),
            "verl_best@N": {
                str(k): fmean(verl_best_at_n(item.n, item.correct, k) for item in self.questions)
                for k in _verl_sizes(n)
            },
            "truncated": {**self._share(self.finishes[TRUNCATED]), "right": self.truncated_correct},
            "finish_reason_unknown": self.finishes[""],
            "no_answer": self._share(count_no_answer(self.statuses)),
            "refused": self.finishes[REFUSED],
            "unusable": self.unusable,
            "failed": self.statuses[Status.FAILED.value],
            "statuses": dict(self.statuses.most_common()),
            "characters": _length_summary(self.characters),
            "tokens": _length_summary(self.tokens),
        }

    def metric_at(self, value: Callable[[QuestionResult], float], k: int = 1) -> dict[str, Any]:
        """Return the mean of a metric of k responses with its interval.

        n responses hold n / k independent draws of k.
        """
        values = [value(result) for result in self.questions]
        interval = mean_interval(values, len(self.characters) / k)
        return {"value": fmean(values), "interval": interval}

    def _every_k(
        self, n: int, of_k: Callable[[int], Callable[[QuestionResult], float]]
    ) -> dict[str, dict[str, Any]]:
        return {str(k): self.metric_at(of_k(k), k) for k in range(1, n + 1)}

    def _majorities(self, n: int) -> dict[str, dict[str, Any]]:
        """Return maj@k for every k that all questions have, or else for all responses of each.

        The result is empty if the scorer calls responses correct without naming their answer.
        """
        if not all(result.majority for result in self.questions):
            return {}
        if all(len(result.majority) >= n for result in self.questions):
            return self._every_k(n, lambda k: lambda result: result.majority[k - 1])
        return {str(n): self.metric_at(lambda result: result.majority[-1], n)}

    def _share(self, part: int) -> dict[str, Any]:
        return {"n": part, "share": part / len(self.characters)}


@dataclass
class EvaluationMetrics:
    """Metrics of an evaluation, by data source, subject and level.

    Attributes:
        total: all questions.
        sources: questions by data source.
        subjects: questions by data source, then subject; only rows that have one.
        levels: questions by data source, then level; only rows that have one.
    """

    total: MetricGroup = field(default_factory=MetricGroup)
    sources: dict[str, MetricGroup] = field(default_factory=dict)
    subjects: dict[str, dict[str, MetricGroup]] = field(default_factory=dict)
    levels: dict[str, dict[str, MetricGroup]] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return all metrics as plain values."""
        return {
            "total": self.total.summary(),
            "by_data_source": {name: group.summary() for name, group in self.sources.items()},
            "by_subject": _summarize_nested(self.subjects),
            "by_level": _summarize_nested(self.levels),
        }

    def add(self, responses: Sequence[EvaluatedResponse]) -> None:
        """Add a question by all its responses."""
        result = question_result(responses)
        source, subject, level = responses[0].group
        groups = [self.total, self.sources.setdefault(source, MetricGroup())]
        for by_source, name in ((self.subjects, subject), (self.levels, level)):
            if name:
                groups.append(by_source.setdefault(source, {}).setdefault(name, MetricGroup()))
        for group in groups:
            group.add(result, responses)


def compute_metrics(responses: Iterable[EvaluatedResponse]) -> EvaluationMetrics:
    """Return the metrics of scored responses; those to one question follow each other."""
    metrics = EvaluationMetrics()
    for _, of_question in groupby(responses, lambda response: response.question):
        metrics.add(list(of_question))
    return metrics


def question_result(responses: Sequence[EvaluatedResponse]) -> QuestionResult:
    """Return the result of a question from all its responses, of which there is at least one."""
    votes: dict[str, list[bool]] = {}
    for response in responses:
        votes.setdefault(response.vote, []).append(response.correct)
    without_answer = votes.pop("", [])
    shares = [
        (len(correct_flags), sum(correct_flags) / len(correct_flags))
        for correct_flags in votes.values()
    ]
    correct = sum(response.correct for response in responses)
    majority = [] if any(without_answer) else majority_at_k(shares, len(without_answer))
    return QuestionResult(len(responses), correct, array("d", majority))


def _verl_sizes(n: int) -> list[int]:
    """Return the N of verl's validation metrics: powers of 2 below n, and n."""
    return [*(1 << i for i in range(1, n.bit_length()) if 1 << i < n), *([n] if n > 1 else [])]


def _length_summary(lengths: array[int]) -> dict[str, Any]:
    if not lengths:
        return {"known": 0}
    ordered = sorted(lengths)
    percentiles = {f"p{percent}": percentile(ordered, percent) for percent in (50, 95)}
    return {"known": len(ordered), "mean": fmean(ordered), **percentiles, "max": ordered[-1]}


def _summarize_nested(groups: dict[str, dict[str, MetricGroup]]) -> dict[str, dict[str, Any]]:
    return {
        source: {name: group.summary() for name, group in sorted(named.items())}
        for source, named in groups.items()
    }
