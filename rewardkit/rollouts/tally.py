"""Scores summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.rollouts.statistics import wilson
from rewardkit.scorers.base import Score, Status

#: Statuses of responses in which no answer was found that could be judged.
UNREAD = (Status.NO_ANSWER, Status.UNPARSED_ANSWER, Status.TOO_LONG)


@dataclass
class Tally:
    """Scores summed up."""

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    def add(self, score: Score) -> None:
        """Count one score."""
        self.n += 1
        self.score_sum += score.score
        self.statuses[score.status.value] += 1
        self.correct += score.correct

    def merge(self, other: Tally) -> None:
        """Add another tally's scores."""
        self.n += other.n
        self.correct += other.correct
        self.score_sum += other.score_sum
        self.statuses += other.statuses

    def summary(self) -> dict[str, Any]:
        """Count, means (0.0 of nothing), the accuracy's interval, and statuses."""
        n = max(self.n, 1)
        return {
            "n": self.n,
            "mean_score": self.score_sum / n,
            "accuracy": self.correct / n,
            "interval": wilson(self.correct, self.n),
            "unread": sum(self.statuses[status.value] for status in UNREAD) / n,
            "statuses": dict(self.statuses.most_common()),
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Tally:
        """The tally that `vars` of one, through JSON, was."""
        return cls(**{**values, "statuses": Counter(values["statuses"])})
