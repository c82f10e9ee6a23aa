"""Scored responses summed up: what the figures of `rewardkit report` count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from rewardkit.responses.records import SkippedRow
from rewardkit.responses.tally import ScoreCounts
from rewardkit.scorers.base import Status
from rewardkit.statistics import clustered_interval

#: Characters of a prompt that name it in a list.
HEAD = 160

K = TypeVar("K")
_Key: TypeAlias = tuple[str, int | None, bytes]


@dataclass(frozen=True)
class ScoredResponse:
    """A scored response.

    Attributes:
        where: file:line.
        group: the same for all responses to one prompt.
        is_math: judged by the scorer `math`, which can be asked why.
    """

    where: str
    prompt: str
    text: str
    gold: str
    pred: str
    status: Status
    score: float
    correct: bool
    source: str
    step: int | None
    group: bytes
    is_math: bool


@dataclass(slots=True)
class PromptStepCounts:
    """The responses to one prompt in one step."""

    n: int = 0
    correct: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, response: ScoredResponse) -> None:
        """Count one response."""
        self.n += 1
        self.correct += response.correct
        self.low = min(self.low, response.score)
        self.high = max(self.high, response.score)


@dataclass
class ResponseCounts(ScoreCounts):
    """Counts of scores, and the sum of the responses' lengths in characters."""

    length_sum: int = 0

    def add(self, response: ScoredResponse) -> None:
        """Count one response."""
        self.n += 1
        self.correct += response.correct
        self.score_sum += response.score
        self.length_sum += len(response.text)
        self.statuses[response.status.value] += 1


@dataclass
class ReportTotals:
    """All responses summed up; memory grows with the number of prompts, not of responses."""

    total: ResponseCounts = field(default_factory=ResponseCounts)
    sources: dict[str, ResponseCounts] = field(default_factory=dict)
    steps: dict[int, ResponseCounts] = field(default_factory=dict)
    cells: dict[_Key, PromptStepCounts] = field(default_factory=dict)
    heads: dict[bytes, str] = field(default_factory=dict)
    scores: Counter[float] = field(default_factory=Counter)
    lengths: dict[bool, Counter[int]] = field(
        default_factory=lambda: {True: Counter(), False: Counter()}
    )
    unread: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def skip(self, line: SkippedRow) -> None:
        """Count a line that holds no response, and keep where each reason was first met."""
        self.unread[line.reason] += 1
        self.first.setdefault(line.reason, line.where)

    def add(self, response: ScoredResponse) -> None:
        """Count one response."""
        self.total.add(response)
        self.sources.setdefault(response.source, ResponseCounts()).add(response)
        if response.step is not None:
            self.steps.setdefault(response.step, ResponseCounts()).add(response)
        key = (response.source, response.step, response.group)
        self.cells.setdefault(key, PromptStepCounts()).add(response)
        self.heads.setdefault(response.group, response.prompt[:HEAD])
        self.scores[round(response.score, 3)] += 1
        self.lengths[response.correct][len(response.text)] += 1

    def accuracies(self, by: Callable[[str, int | None], K]) -> dict[K, AccuracyEstimate]:
        """Accuracy by whatever `by(source, step)` gives."""
        found: dict[K, dict[tuple[str, bytes], tuple[int, int]]] = {}
        for (source, step, group), cell in self.cells.items():
            prompts = found.setdefault(by(source, step), {})
            n, correct = prompts.get((source, group), (0, 0))
            prompts[source, group] = n + cell.n, correct + cell.correct
        return {key: estimate_accuracy(prompts.values()) for key, prompts in found.items()}


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy with its 95 % interval."""

    n: int
    correct: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The accuracy itself."""
        return self.correct / self.n if self.n else 0.0


def estimate_accuracy(prompts: Iterable[tuple[int, int]]) -> AccuracyEstimate:
    """The accuracy of (responses, right ones) per prompt, with its interval over prompts."""
    prompts = list(prompts)
    n, correct = (sum(column) for column in zip(*prompts, strict=True)) if prompts else (0, 0)
    return AccuracyEstimate(n, correct, *clustered_interval(prompts))
