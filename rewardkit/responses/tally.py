"""Scores summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import clustered_interval

#: Into so many groups the prompts fall. Responses to one prompt are in one group, whoever scores
#: them and when; the share's variance over the groups is that over prompts but for chance (a few
#: per cent of the interval's width), in memory that does not grow with the number of prompts.
GROUPS = 256

#: A group's responses are counted above this, those that are right below.
_ONE = 1 << 32


def count_no_answer(statuses: Mapping[Any, int]) -> int:
    """How many responses have no answer: the status `no_answer`, and no other.

    It is what verl charts under that name. An answer that cannot be read, or that says several
    things, is an answer: those have statuses of their own.
    """
    return sum(n for status, n in statuses.items() if status == Status.NO_ANSWER)


def group_place(group: str) -> int:
    """The group that a prompt falls into."""
    return crc32(group.encode("utf-8", "surrogatepass")) % GROUPS


@dataclass
class Tally:
    """Scores summed up; `groups` are those of prompts, responses and right ones in one number."""

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    groups: dict[int, int] = field(default_factory=dict)

    def add(self, score: Score, group: str = "") -> None:
        """Count one score, of a response to the prompt with that name."""
        self.count(score.status.value, bool(score.correct), group_place(group), 1)
        self.score_sum += score.score

    def count(self, status: str, correct: bool, place: int, n: int) -> None:
        """Count `n` scores that have the status, the verdict and the group of prompts in common."""
        self.n += n
        self.statuses[status] += n
        self.correct += correct * n
        self.groups[place] = self.groups.get(place, 0) + (_ONE + correct) * n

    def merge(self, other: Tally) -> None:
        """Add another tally's scores."""
        self.n += other.n
        self.correct += other.correct
        self.score_sum += other.score_sum
        self.statuses += other.statuses
        for place, counts in other.groups.items():
            self.groups[place] = self.groups.get(place, 0) + counts

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of right ones, over prompts."""
        return clustered_interval(divmod(counts, _ONE) for counts in self.groups.values())

    def summary(self) -> dict[str, Any]:
        """Count, means (0.0 of nothing), the accuracy's interval, and statuses."""
        n = max(self.n, 1)
        return {
            "n": self.n,
            "mean_score": self.score_sum / n,
            "accuracy": self.correct / n,
            "interval": self.interval,
            "no_answer": count_no_answer(self.statuses) / n,
            "statuses": dict(self.statuses.most_common()),
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Tally:
        """The tally that `vars` of one, through JSON, was."""
        groups = {int(place): counts for place, counts in values["groups"].items()}
        return cls(**{**values, "statuses": Counter(values["statuses"]), "groups": groups})
