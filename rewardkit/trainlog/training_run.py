"""A training run as a table: one row per step, one column per metric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

#: A metric's value in every row; None where the run did not log it. NaN is a value.
MetricColumn: TypeAlias = tuple[float | None, ...]

#: Releases that write such a log; "" if the source does not tell.
FIXED = "verl 0.1-0.4 (fixed decimals)"
FULL = "verl 0.5-0.8"
V1 = "verl 0.9"


@dataclass(frozen=True)
class Restart:
    """A restart of a run from an earlier step.

    Attributes:
        step: first step that is logged again.
        where: line, file or record of the restart.
        dropped: number of later rows of the earlier attempt; they are not in the table.
    """

    step: int
    where: str
    dropped: int


@dataclass(frozen=True)
class UnreadLine:
    """A line that is unreadable at least in part: where it is, and why."""

    where: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ResponseSample:
    """A response that was kept, as it was scored.

    Attributes:
        step: step of the run's table to which it belongs.
        response: its text; of a long one, both ends.
        score: its score.
        pred: its extracted answer; "" if it has none.
        data_source: data source of its prompt.
        index: its prompt, as far as the data name it.
        gold: whether it states the gold; None if that cannot be said.
        parts: the other numbers of its result by name: `acc`, `timeout`, parts of the reward.
    """

    step: int
    response: str
    score: float
    pred: str = ""
    data_source: str = ""
    index: str = ""
    gold: bool | None = None
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """A training run.

    Attributes:
        name: short name, unique among runs that are shown together.
        path: path of the log.
        source: kind of the log: `console`, `jsonl`, `tensorboard` or `rollouts`.
        era: releases that write such a log; "" if the source does not tell.
        steps: step numbers, ascending.
        table: values by metric, one for each of `steps`.
        clock: seconds since the epoch at each of `steps`, if the source has them.
        config: values by dotted key, as far as the log holds the configuration.
        restarts: in chronological order.
        rewritten: number of steps that were logged twice in a row with different values.
        unread: number of unreadable lines.
        examples: the first of them.
        samples: responses of the training, by step, from records or dumps.
    """

    name: str
    path: str
    source: str
    era: str
    steps: tuple[int, ...]
    table: Mapping[str, MetricColumn]
    clock: MetricColumn = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    restarts: tuple[Restart, ...] = ()
    rewritten: int = 0
    unread: int = 0
    examples: tuple[UnreadLine, ...] = ()
    samples: tuple[ResponseSample, ...] = ()

    def column(self, *names: str) -> MetricColumn:
        """Return the values of the first of these metrics that the run has; empty if it has none."""
        return next((self.table[name] for name in names if name in self.table), ())

    def series(self, *names: str) -> list[tuple[int, float]]:
        """Return (step, value) wherever the first of these metrics has a value."""
        pairs = zip(self.steps, self.column(*names), strict=False)
        return [(step, value) for step, value in pairs if value is not None]

    def setting(self, *keys: str) -> Any:
        """Return the value of the first of these configuration keys that is set, else None."""
        values = (self.config.get(key) for key in keys)
        return next((value for value in values if value is not None), None)

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Ranges of missing steps between the first and the last: (first missing, last missing)."""
        usual = stride(self.steps)
        return tuple((a + 1, b - 1) for a, b in pairwise(self.steps) if b - a > usual)


def stride(steps: Sequence[int]) -> int:
    """Return the usual distance of neighbouring steps; a run may log only every tenth step."""
    gaps = sorted(b - a for a, b in pairwise(steps))
    return gaps[len(gaps) // 2] if gaps else 1
