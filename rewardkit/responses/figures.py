"""Counts of scores, and the figures computed from them.

Responses to one prompt are alike: they are one cluster of an interval, whatever their step. A *group* is
the responses to one prompt at one step, or in the file if it has no steps. With GRPO a group whose
responses all have the same score has no gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardkit.responses.files import SkippedRow
from rewardkit.scorers.base import Score, Status
from rewardkit.statistics import Interval, clustered_interval

#: Rows without a score that a report lists; all are counted.
MAX_EXAMPLES = 20

#: Most prompts of a tally that are clusters of its interval each. More are counted in this number of
#: buckets, each with all responses to some prompts: the variance over buckets estimates that over
#: prompts within about 1 %, in bounded memory.
MAX_CLUSTERS = 4096

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

    Attributes:
        n: all such groups.
        without_gradient: those whose responses have the same score.
        all_correct: those of these whose responses are all correct.
        none_correct: those of these whose responses are all wrong.
        responses: responses in all groups.
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


def prompt_key(prompt: str) -> int:
    """Return a number for a prompt, the same in every process."""
    digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass
class Tally:
    """Counts of scores.

    Attributes:
        n: scores.
        correct: scores of correct responses.
        score_sum: their sum.
        characters: length of all responses.
        statuses: scores by status.
        clusters: responses and correct responses by `prompt_key`, or by bucket.
        has_buckets: whether there are more than `MAX_CLUSTERS` prompts, so that buckets are counted.
    """

    n: int = 0
    correct: int = 0
    score_sum: float = 0.0
    characters: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    clusters: dict[int, int] = field(default_factory=dict)
    has_buckets: bool = False

    def add(self, score: Score, characters: int, prompt: int) -> None:
        """Count a score of a response of a length to a prompt."""
        correct = bool(score.correct)
        self.n += 1
        self.correct += correct
        self.score_sum += score.score
        self.characters += characters
        self.statuses[score.status.value] += 1
        self._add_clusters({prompt: _ONE_RESPONSE + correct})

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.n += other.n
        self.correct += other.correct
        self.score_sum += other.score_sum
        self.characters += other.characters
        self.statuses.update(other.statuses)
        self._add_clusters(other.clusters, buckets=other.has_buckets)

    def _add_clusters(self, clusters: Mapping[int, int], *, buckets: bool = False) -> None:
        for prompt, counts in clusters.items():
            key = prompt % MAX_CLUSTERS if self.has_buckets else prompt
            self.clusters[key] = self.clusters.get(key, 0) + counts
        if not self.has_buckets and (buckets or len(self.clusters) > MAX_CLUSTERS):
            prompts, self.clusters, self.has_buckets = self.clusters, {}, True
            self._add_clusters(prompts)

    @property
    def accuracy(self) -> float | None:
        """The fraction of correct responses; None if it is not known of each whether it is correct."""
        return None if self.statuses[Status.SCORED.value] else self.correct / max(self.n, 1)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the fraction of correct responses, clustered by prompt."""
        return clustered_interval(divmod(each, _ONE_RESPONSE) for each in self.clusters.values())

    @property
    def no_answer(self) -> int:
        """The number of responses without an answer."""
        return count_no_answer(self.statuses)

    @property
    def bad_golds(self) -> int:
        """The number of responses whose gold cannot be scored."""
        return self.statuses[Status.BAD_GROUND_TRUTH.value]

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


@dataclass
class ScoreFigures:
    """The figures of scored rows, and the rows that could not be scored.

    Attributes:
        unscored: number of rows that could not be scored.
        examples: the first of these.
        between: number of scores between those of wrong and of right answers; see `RightRule`.
        total: the figures of all scored rows.
        sources: those of each data source.
        steps: those of each training step, by its text.
    """

    unscored: int = 0
    examples: list[SkippedRow] = field(default_factory=list)
    between: int = 0
    total: Tally = field(default_factory=Tally)
    sources: dict[str, Tally] = field(default_factory=dict)
    steps: dict[str, Tally] = field(default_factory=dict)

    def add_tally(self, source: str, step: str | None, tally: Tally) -> None:
        """Add the scores of rows of one data source and one step."""
        self.total.merge(tally)
        self.sources.setdefault(source, Tally()).merge(tally)
        if step is not None:
            self.steps.setdefault(step, Tally()).merge(tally)

    def add(self, other: ScoreFigures) -> None:
        """Add the figures of other rows."""
        self.unscored += other.unscored
        self.between += other.between
        self.examples += other.examples[: MAX_EXAMPLES - len(self.examples)]
        self.total.merge(other.total)
        for own, others in ((self.sources, other.sources), (self.steps, other.steps)):
            for name, tally in others.items():
                own.setdefault(name, Tally()).merge(tally)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ScoreFigures:
        """Return the figures that `json_value` returned, from JSON."""
        figures = cls(values["unscored"], [SkippedRow(*row) for row in values["examples"]])
        figures.between, figures.total = values["between"], _tally(values["total"])
        figures.sources = {name: _tally(tally) for name, tally in values["sources"].items()}
        figures.steps = {name: _tally(tally) for name, tally in values["steps"].items()}
        return figures


def _tally(values: Mapping[str, Any]) -> Tally:
    clusters = {int(prompt): counts for prompt, counts in values["clusters"].items()}
    return Tally(**{**values, "statuses": Counter(values["statuses"]), "clusters": clusters})
