"""The totals of scored responses, from which the figures of `rewardkit report` are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from rewardkit.responses.records import SkippedRow
from rewardkit.responses.report.scored_responses import ScoredResponse
from rewardkit.responses.tally import ScoreCounts
from rewardkit.statistics import clustered_interval

#: Characters of a prompt that identify it in a list.
HEAD_CHARACTERS = 160

K = TypeVar("K")
_CellKey: TypeAlias = tuple[str, int | None, bytes]


@dataclass(slots=True)
class PromptStepCounts:
    """The responses to one prompt in one step; `low` and `high` are their extreme scores."""

    n: int = 0
    correct: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, response: ScoredResponse) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(response.correct)
        self.low = min(self.low, response.score)
        self.high = max(self.high, response.score)


@dataclass
class ResponseCounts(ScoreCounts):
    """Counts of scores, and the sum of the responses' lengths in characters."""

    length_sum: int = 0

    def add(self, response: ScoredResponse) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(response.correct)
        self.score_sum += response.score
        self.length_sum += len(response.text)
        self.statuses[response.status.value] += 1


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy with its 95 % interval."""

    n: int
    correct: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The accuracy itself; 0.0 without responses."""
        return self.correct / self.n if self.n else 0.0


@dataclass
class ReportTotals:
    """The totals of all responses, in memory that grows with the prompts, not the responses.

    Attributes:
        total: counts of all responses.
        sources: counts by data source.
        steps: counts by step.
        cells: counts by data source, step and group of the prompt.
        heads: the beginning of each group's prompt.
        scores: responses by score, to three decimals.
        lengths: responses by length in characters, of correct and of other responses.
        unread: rows without a usable response by reason.
        first: the first row of each reason.
    """

    total: ResponseCounts = field(default_factory=ResponseCounts)
    sources: dict[str, ResponseCounts] = field(default_factory=dict)
    steps: dict[int, ResponseCounts] = field(default_factory=dict)
    cells: dict[_CellKey, PromptStepCounts] = field(default_factory=dict)
    heads: dict[bytes, str] = field(default_factory=dict)
    scores: Counter[float] = field(default_factory=Counter)
    lengths: dict[bool, Counter[int]] = field(
        default_factory=lambda: {True: Counter(), False: Counter()}
    )
    unread: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    @property
    def has_verdicts(self) -> bool:
        """Whether it is known of every response whether it is correct."""
        return self.total.accuracy is not None

    def skip(self, row: SkippedRow) -> None:
        """Count a row without a usable response."""
        self.unread[row.reason] += 1
        self.first.setdefault(row.reason, row.where)

    def add(self, response: ScoredResponse) -> None:
        """Count a response."""
        self.total.add(response)
        self.sources.setdefault(response.source, ResponseCounts()).add(response)
        if response.step is not None:
            self.steps.setdefault(response.step, ResponseCounts()).add(response)
        key = (response.source, response.step, response.group)
        self.cells.setdefault(key, PromptStepCounts()).add(response)
        self.heads.setdefault(response.group, response.prompt[:HEAD_CHARACTERS])
        self.scores[round(response.score, 3)] += 1
        self.lengths[bool(response.correct)][len(response.text)] += 1

    def accuracies(self, key_of: Callable[[str, int | None], K]) -> dict[K, AccuracyEstimate]:
        """Return the accuracy of the responses with the same `key_of(source, step)`."""
        counts: dict[K, dict[tuple[str, bytes], tuple[int, int]]] = {}
        for (source, step, group), cell in self.cells.items():
            prompts = counts.setdefault(key_of(source, step), {})
            n, correct = prompts.get((source, group), (0, 0))
            prompts[source, group] = n + cell.n, correct + cell.correct
        return {key: estimate_accuracy(prompts.values()) for key, prompts in counts.items()}


def estimate_accuracy(prompts: Iterable[tuple[int, int]]) -> AccuracyEstimate:
    """Return the accuracy with its interval, from (responses, correct responses) of each prompt."""
    prompts = list(prompts)
    n, correct = (sum(column) for column in zip(*prompts, strict=True)) if prompts else (0, 0)
    return AccuracyEstimate(n, correct, *clustered_interval(prompts))
