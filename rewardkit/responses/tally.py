"""Counts of scores by prompt, and the figures computed from them.

Responses to one prompt are alike: they are one cluster of an interval, whatever their step. A *group* is
the responses to one prompt at one step, or in the file if it has no steps. With GRPO a group whose
responses all have the same score has no gradient.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

from rewardkit.responses.samples import Sample, SkippedRow
from rewardkit.scorers.base import Status
from rewardkit.statistics import clustered_interval

#: The keys under which a prompt is looked up; verl's dumps have `input`.
PROMPT_KEYS = ("input", "prompt", "question", "problem")

#: The keys that identify a row without a prompt.
INDEX_KEYS = ("uid", "index")


@dataclass(slots=True)
class PromptStepCounts:
    """The responses to one prompt in one step; `low` and `high` are their extreme scores."""

    n: int = 0
    correct: int = 0
    low: float = float("inf")
    high: float = float("-inf")

    def add(self, score: float, *, is_correct: bool | None) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(is_correct)
        self.low = min(self.low, score)
        self.high = max(self.high, score)


@dataclass(frozen=True, kw_only=True)
class GradientGroups:
    """Groups of two responses or more to one prompt in one step; all numbers are counts.

    Attributes:
        n: groups of two responses or more.
        without_gradient: groups whose responses have the same score.
        all_correct: those whose responses are all correct.
        none_correct: those whose responses are all wrong.
        responses: responses in the groups.
    """

    n: int = 0
    without_gradient: int = 0
    all_correct: int = 0
    none_correct: int = 0
    responses: int = 0

    @property
    def kinds_by_score(self) -> list[tuple[str, int]]:
        """The number of groups whose scores differ, and of those whose scores do not."""
        flat = self.without_gradient
        return [("scores differ", self.n - flat), ("same score", flat)]

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """The number of groups of each kind that occurs."""
        kinds = {
            "scores differ": self.n - self.without_gradient,
            "same score, all correct": self.all_correct,
            "same score, none correct": self.none_correct,
            "same score, some correct": self.without_gradient
            - self.all_correct
            - self.none_correct,
        }
        return [(kind, n) for kind, n in kinds.items() if n]


def count_groups(cells: Iterable[PromptStepCounts]) -> GradientGroups:
    """Count the cells with several responses."""
    groups = [cell for cell in cells if cell.n > 1]
    flat = [cell for cell in groups if cell.low == cell.high]
    return GradientGroups(
        n=len(groups),
        without_gradient=len(flat),
        all_correct=sum(cell.correct == cell.n for cell in flat),
        none_correct=sum(cell.correct == 0 for cell in flat),
        responses=sum(cell.n for cell in groups),
    )


def step_of(fields: Mapping[str, Any]) -> int | None:
    """Return the training step of a row; None if it has none."""
    step = fields.get("step")
    return int(step) if isinstance(step, (int, float)) and -1e300 < step < 1e300 else None


def prompt_text(sample: Sample) -> str:
    """Return the prompt as text; "" if the row does not have it."""
    for fields in (sample.fields, sample.extra_info):
        for key in PROMPT_KEYS:
            if value := fields.get(key):
                return value if isinstance(value, str) else _as_text(value)
    return ""


def prompt_group(sample: Sample, prompt: str) -> str:
    """Return a text that responses to one prompt share: the prompt, its index, or else the line.

    Every data source and split counts its rows from 0.
    """
    if prompt:
        return prompt
    identity = _first_value(sample, *INDEX_KEYS)
    if identity is None:
        return sample.where
    source, split = _first_value(sample, "data_source"), _first_value(sample, "split")
    return f"{source} {split} {type(identity).__name__} {identity}"


def _first_value(sample: Sample, *keys: str) -> Any:
    rows = (sample.fields, sample.extra_info)
    values = (row.get(key) for key in keys for row in rows)
    return next((value for value in values if value is not None), None)


def _as_text(prompt: Any) -> str:
    """Return a prompt as text; a chat as its messages, each with its role."""
    if isinstance(prompt, list) and all(isinstance(message, Mapping) for message in prompt):
        return "\n\n".join(f"{m.get('role', '')}: {m.get('content', '')}" for m in prompt)
    return json.dumps(prompt, default=str)


#: Maximum number of failed rows that a report lists; all are counted.
MAX_EXAMPLES = 20

#: Most prompts of a tally that are clusters of its interval each. More are counted in this number of
#: buckets, each of which has all responses to some prompts, in whatever process they are scored: the
#: variance over buckets estimates that over prompts within about 1 %, in bounded memory.
MAX_CLUSTERS = 4096

#: A cluster is one number: the responses above this bit, the correct ones below it.
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


def prompt_key(prompt: str) -> int:
    """Return a number for a prompt, the same in every process."""
    digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


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
    """Counts of scores, and of their prompts, which are the clusters of the interval.

    Attributes:
        prompts: responses and correct responses by `prompt_key`, or by bucket.
        has_buckets: whether there are more than `MAX_CLUSTERS` prompts, so that buckets are counted.
    """

    prompts: dict[int, int] = field(default_factory=dict)
    has_buckets: bool = False

    def count(self, status: str, correct: bool, prompt: int, n: int) -> None:
        """Count `n` scores with the same status, correctness and prompt, without their sum."""
        self.statuses[status] += n
        self.add_prompt(prompt, n, correct * n)

    def add_prompt(self, prompt: int, n: int, correct: int) -> None:
        """Count `n` scores of responses to a prompt, without their sum and statuses."""
        self.n += n
        self.correct += correct
        self._add_counts({prompt: _ONE_RESPONSE * n + correct})

    def merge(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.n += other.n
        self.correct += other.correct
        self.score_sum += other.score_sum
        self.statuses += other.statuses
        if other.has_buckets:
            self._use_buckets()
        self._add_counts(other.prompts)

    def _add_counts(self, prompts: Mapping[int, int]) -> None:
        for prompt, counts in prompts.items():
            key = prompt % MAX_CLUSTERS if self.has_buckets else prompt
            self.prompts[key] = self.prompts.get(key, 0) + counts
            if len(self.prompts) > MAX_CLUSTERS:
                self._use_buckets()

    def _use_buckets(self) -> None:
        prompts, self.prompts, self.has_buckets = self.prompts, {}, True
        self._add_counts(prompts)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of correct responses, clustered by prompt."""
        return clustered_interval(divmod(counts, _ONE_RESPONSE) for counts in self.prompts.values())

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
        between: number of scores between those of wrong and of right answers; see `RightRule`.
        tallies: the figures of the scored rows by `total` (one, named ""), `data_source` and `step`.
    """

    unscored: int = 0
    examples: list[SkippedRow] = field(default_factory=list)
    between: int = 0
    tallies: Tallies = field(default_factory=dict)

    @property
    def total(self) -> Tally:
        """The figures of all scored rows."""
        return self.tallies.get("total", {}).get("", Tally())

    def add(self, other: ScoreFigures) -> None:
        """Add the figures of other rows."""
        self.unscored += other.unscored
        self.between += other.between
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
        return {
            "unscored": self.unscored,
            "examples": self.examples,
            "between": self.between,
            "tallies": tallies,
        }

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
        examples = [SkippedRow(*row) for row in values["examples"]]
        return cls(values["unscored"], examples, values["between"], tallies)


def _tally(values: Mapping[str, Any]) -> Tally:
    prompts = {int(prompt): counts for prompt, counts in values["prompts"].items()}
    return Tally(**{**values, "statuses": Counter(values["statuses"]), "prompts": prompts})
