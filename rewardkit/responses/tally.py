"""Counts of scores, and the figures computed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

from rewardkit.responses.records import SkippedRow
from rewardkit.scorers.base import Status
from rewardkit.statistics import clustered_interval

#: Maximum number of failed rows that a report lists; all are counted.
MAX_EXAMPLES = 20

#: Prompts are hashed into this many buckets. All responses to one prompt are in one bucket, in
#: whatever process they are scored. The variance over buckets estimates that over prompts (the
#: interval's width differs by a few per cent), in memory that does not grow with the prompts.
PROMPT_BUCKETS = 256

#: A bucket is one number: the responses above this bit, the correct ones below it.
_ONE_RESPONSE = 1 << 32


def count_no_answer(statuses: Mapping[str, int]) -> int:
    """Return the number of responses with the status `no_answer`, as verl charts it.

    An answer that cannot be read, or that is ambiguous, is an answer and has another status.
    """
    return statuses.get(Status.NO_ANSWER.value, 0)


def bad_gold_note(bad: int, n: int) -> str:
    """Return a sentence about the golds of n responses that cannot be scored, or ""."""
    if not bad:
        return ""
    return (
        f"{bad:,} of {n:,} golds cannot be scored (bad_ground_truth), which says nothing about their "
        "responses: fix the golds, or name another --scorer or --gold-key."
    )


def prompt_bucket(prompt: str) -> int:
    """Return the bucket of a prompt."""
    return crc32(prompt.encode("utf-8", "surrogatepass")) % PROMPT_BUCKETS


@dataclass
class ScoreCounts:
    """Counts of scores.

    Attributes:
        n: scores.
        correct: scores of correct responses.
        score_sum: their sum.
        statuses: scores by status.
    """

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def no_answer(self) -> int:
        """The number of responses without an answer."""
        return count_no_answer(self.statuses)

    @property
    def accuracy(self) -> float | None:
        """The share of correct responses; None if it is not known of each whether it is correct."""
        return None if self.statuses[Status.SCORED.value] else self.correct / max(self.n, 1)

    @property
    def bad_golds(self) -> int:
        """The number of responses whose gold cannot be scored."""
        return self.statuses.get(Status.BAD_GROUND_TRUTH.value, 0)


@dataclass
class Tally(ScoreCounts):
    """Counts of scores, and of the buckets that their prompts are in (`groups`)."""

    groups: dict[int, int] = field(default_factory=dict)

    def count(self, status: str, correct: bool, bucket: int, n: int) -> None:
        """Count `n` scores with the same status, correctness and bucket, without their sum."""
        self.n += n
        self.statuses[status] += n
        self.correct += correct * n
        self.groups[bucket] = self.groups.get(bucket, 0) + (_ONE_RESPONSE + correct) * n

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.n += other.n
        self.correct += other.correct
        self.score_sum += other.score_sum
        self.statuses += other.statuses
        for bucket, counts in other.groups.items():
            self.groups[bucket] = self.groups.get(bucket, 0) + counts

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of correct responses, over prompts."""
        return clustered_interval(divmod(counts, _ONE_RESPONSE) for counts in self.groups.values())

    def summary(self) -> dict[str, Any]:
        """Count, means (0.0 without scores), the accuracy's interval, and statuses.

        Accuracy and interval are None if it is not known which score is right.
        """
        n = max(self.n, 1)
        return {
            "n": self.n,
            "mean_score": self.score_sum / n,
            "accuracy": self.accuracy,
            "interval": None if self.accuracy is None else self.interval,
            "no_answer": self.no_answer / n,
            "statuses": dict(self.statuses.most_common()),
        }


#: Tallies by the name of a group, within `total` (one, named ""), `data_source` and `step`.
Tallies: TypeAlias = dict[str, dict[str, Tally]]


@dataclass
class ScoreFigures:
    """The figures of scored rows, and the rows that could not be scored.

    Attributes:
        unscored: number of rows that could not be scored.
        examples: the first of these.
        tallies: the figures of the scored rows by `total` (one, named ""), `data_source` and `step`.
    """

    unscored: int = 0
    examples: list[SkippedRow] = field(default_factory=list)
    tallies: Tallies = field(default_factory=dict)

    @property
    def total(self) -> Tally:
        """The figures of all scored rows."""
        return self.tallies.get("total", {}).get("", Tally())

    def add(self, other: ScoreFigures) -> None:
        """Add the figures of other rows."""
        self.unscored += other.unscored
        self.examples += other.examples[: MAX_EXAMPLES - len(self.examples)]
        for group, named in other.tallies.items():
            for name, tally in named.items():
                self.tallies.setdefault(group, {}).setdefault(name, Tally()).merge(tally)

    def as_values(self) -> dict[str, Any]:
        """Return the figures as values that JSON has."""
        tallies = {
            group: {name: vars(tally) for name, tally in named.items()}
            for group, named in self.tallies.items()
        }
        return {"unscored": self.unscored, "examples": self.examples, "tallies": tallies}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ScoreFigures:
        """Return the figures that `as_values` described, from JSON.

        Raises:
            KeyError, TypeError, AttributeError, ValueError: the values do not describe figures.
        """
        tallies = {
            group: {name: _tally(tally) for name, tally in named.items()}
            for group, named in values["tallies"].items()
        }
        return cls(values["unscored"], [SkippedRow(*row) for row in values["examples"]], tallies)


def _tally(values: Mapping[str, Any]) -> Tally:
    groups = {int(bucket): counts for bucket, counts in values["groups"].items()}
    return Tally(**{**values, "statuses": Counter(values["statuses"]), "groups": groups})
