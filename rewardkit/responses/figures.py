"""Counts of scores, and the figures computed from them.

Responses to one prompt are alike: they are one cluster of an interval, whatever their step. A *group* is
the responses to one prompt at one step, or in the file if it has no steps. With GRPO a group whose
responses all have the same score has no gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardkit.responses.files import SkippedRow
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import Interval, clustered_interval

#: Rows without a score that a report lists; all are counted.
MAX_EXAMPLES = 20

#: Clusters of an interval; prompts beyond this number share them, so that memory is bounded.
MAX_CLUSTERS = 1 << 16

#: A cluster is one number: the responses above this bit, the correct ones below it.
_ONE_RESPONSE = 1 << 32


@dataclass(slots=True)
class Cell:
    """The responses to one prompt, perhaps in one step; `low` and `high` are their extreme scores."""

    n: int = 0
    correct: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, score: Score) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(score.correct)
        self.low, self.high = min(self.low, score.score), max(self.high, score.score)

    @property
    def rate(self) -> float:
        """The fraction of correct responses; 0.0 without responses."""
        return self.correct / self.n if self.n else 0.0


class GradientGroups(NamedTuple):
    """Numbers of groups of two responses or more, and of the responses in them.

    `without_gradient` are those whose responses have the same score; of these `all_correct` and
    `none_correct`.
    """

    n: int = 0
    without_gradient: int = 0
    all_correct: int = 0
    none_correct: int = 0
    responses: int = 0

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> GradientGroups:
        """Count the cells with several responses."""
        groups = [cell for cell in cells if cell.n > 1]
        flat = [cell for cell in groups if cell.low == cell.high]
        all_correct = sum(cell.correct == cell.n for cell in flat)
        none_correct = sum(cell.correct == 0 for cell in flat)
        responses = sum(cell.n for cell in groups)
        return cls(len(groups), len(flat), all_correct, none_correct, responses)

    def kinds(self, *, has_verdicts: bool) -> list[tuple[str, int]]:
        """Return the number of groups of each kind; without verdicts only the scores are known."""
        flat, mixed = self.without_gradient, self.n - self.without_gradient
        if not has_verdicts:
            return [("scores differ", mixed), ("same score", flat)]
        kinds = {
            "scores differ": mixed,
            "same score, all correct": self.all_correct,
            "same score, none correct": self.none_correct,
            "same score, some correct": flat - self.all_correct - self.none_correct,
        }
        return [(kind, n) for kind, n in kinds.items() if n]


@dataclass
class StatusCounts:
    """Numbers of responses by status."""

    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def no_answer(self) -> int:
        """The number of responses with the status `no_answer`, as verl charts it.

        An answer that cannot be read, or that is ambiguous, is an answer and has another status.
        """
        return self.statuses[Status.NO_ANSWER.value]

    @property
    def bad_golds(self) -> int:
        """The number of responses whose gold cannot be scored."""
        return self.statuses[Status.BAD_GROUND_TRUTH.value]


def bad_gold_notes(bad: int, n: int) -> list[str]:
    """Return a sentence about the golds of n responses that cannot be scored, if there are any."""
    sentence = (
        f"{bad:,} of {n:,} golds cannot be scored (bad_ground_truth), which says nothing about their "
        "responses: fix the golds, or name another --scorer or --gold-key."
    )
    return [sentence] if bad else []


def prompt_key(prompt: str) -> int:
    """Return a number for a prompt, the same in every process."""
    digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass
class Tally(StatusCounts):
    """Counts of scores; `clusters` has the responses and the correct ones by `prompt_key`."""

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    characters: int = 0
    clusters: Counter[int] = field(default_factory=Counter)

    def add(self, score: Score, characters: int, prompt: int) -> None:
        """Count a score of a response of a length to a prompt."""
        correct = bool(score.correct)
        self.n += 1
        self.correct += correct
        self.score_sum += score.score
        self.characters += characters
        self.statuses[score.status.value] += 1
        self.clusters[prompt % MAX_CLUSTERS] += _ONE_RESPONSE + correct

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            else:
                setattr(self, name, getattr(self, name) + value)

    @property
    def accuracy(self) -> float | None:
        """The fraction of correct responses; None if it is not known of each whether it is correct."""
        return None if self.statuses[Status.SCORED.value] else self.correct / max(self.n, 1)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the fraction of correct responses, clustered by prompt."""
        return clustered_interval(divmod(each, _ONE_RESPONSE) for each in self.clusters.values())

    def summary(self) -> dict[str, Any]:
        """Return count, means (0.0 without scores), the accuracy with its interval, and statuses."""
        n = max(self.n, 1)
        return {
            "n": self.n,
            "mean_score": self.score_sum / n,
            "accuracy": self.accuracy,
            "interval": None if self.accuracy is None else self.interval,
            "no_answer": self.no_answer / n,
            "statuses": dict(self.statuses.most_common()),
        }


@dataclass
class ScoreFigures:
    """The figures of scored rows, and the rows that could not be scored.

    Attributes:
        unscored: number of rows that could not be scored.
        examples: the first of these.
        tallies: the figures of the scored rows of each data source and step.
    """

    unscored: int = 0
    examples: list[SkippedRow] = field(default_factory=list)
    tallies: dict[tuple[str, str | None], Tally] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """The number of scored rows."""
        return sum(tally.n for tally in self.tallies.values())

    def merged(self, group: Callable[[str, str | None], str | None]) -> dict[str, Tally]:
        """Return the tallies of the groups that a function of data source and step names."""
        groups: dict[str, Tally] = {}
        for key, tally in self.tallies.items():
            if (name := group(*key)) is not None:
                groups.setdefault(name, Tally()).merge(tally)
        return groups

    def add(self, other: ScoreFigures) -> None:
        """Add the figures of other rows."""
        self.unscored += other.unscored
        self.examples += other.examples[: MAX_EXAMPLES - len(self.examples)]
        for key, tally in other.tallies.items():
            self.tallies.setdefault(key, Tally()).merge(tally)

    def values(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {**vars(self), "tallies": [[*key, vars(t)] for key, t in self.tallies.items()]}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ScoreFigures:
        """Return the figures whose `values` were written as JSON."""
        figures = cls(values["unscored"], [SkippedRow(*row) for row in values["examples"]])
        for source, step, tally in values["tallies"]:
            clusters = Counter({int(prompt): n for prompt, n in tally["clusters"].items()})
            counts = {**tally, "statuses": Counter(tally["statuses"]), "clusters": clusters}
            figures.tallies[source, step] = Tally(**counts)
        return figures
