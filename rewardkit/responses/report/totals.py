"""The totals of scored responses, from which the figures of `rewardkit report` are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from rewardkit.responses.prompt_groups import PromptStepCounts
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.report.scored_responses import ScoredResponse
from rewardkit.responses.tally import ScoreCounts, Tally

#: Characters of a prompt that identify it in a list.
HEAD_CHARACTERS = 160

K = TypeVar("K")
_CellKey: TypeAlias = tuple[str, int | None, int]


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
    heads: dict[int, str] = field(default_factory=dict)
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
        cell = self.cells.setdefault(key, PromptStepCounts())
        cell.add(response.score, is_correct=response.correct)
        self.heads.setdefault(response.group, response.prompt[:HEAD_CHARACTERS])
        self.scores[round(response.score, 3)] += 1
        self.lengths[bool(response.correct)][len(response.text)] += 1

    def accuracies(self, key_of: Callable[[str, int | None], K]) -> dict[K, AccuracyEstimate]:
        """Return the accuracy of the responses with the same `key_of(source, step)`."""
        tallies: dict[K, Tally] = {}
        for (source, step, group), cell in self.cells.items():
            tally = tallies.setdefault(key_of(source, step), Tally())
            tally.add_prompt(group, cell.n, cell.correct)
        return {
            key: AccuracyEstimate(tally.n, tally.correct, *tally.interval)
            for key, tally in tallies.items()
        }
