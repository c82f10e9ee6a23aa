"""A training run as a table, and how a reader builds it: one row per step, one column per metric."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan
from typing import Any, TypeAlias

from rewardkit.errors import DataError
from rewardkit.redact import Redactor

#: A metric's value in every row; None where the run did not log it. NaN is a value.
MetricColumn: TypeAlias = tuple[float | None, ...]

#: Releases that write such a log; "" if the source does not tell.
FIXED = "verl 0.1-0.4 (fixed decimals)"
FULL = "verl 0.5-0.8"
V1 = "verl 0.9"

#: Unreadable lines that are kept as examples.
MAX_EXAMPLES = 5

#: Characters of an example.
EXAMPLE_CHARACTERS = 120

#: Metrics of a table; a log of free text must not fill memory with made-up names.
MAX_METRICS = 20_000

#: Values of a table, about 1.5 GB: 100,000 steps of 160 metrics. A compressed log of a few MB may
#: hold any number.
MAX_VALUES = 1 << 24

_VALIDATION = ("val/", "val-", "test_score/")


@dataclass(frozen=True)
class Restart:
    """A restart from an earlier step, at a line or record; later rows of the earlier attempt are dropped."""

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
        name: short name; the path if another run that is shown has the same name.
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

    def rows(self) -> Iterator[dict[str, float]]:
        """Yield the steps in order, each with its logged metrics."""
        for i, step in enumerate(self.steps):
            values = {key: column[i] for key, column in self.table.items()}
            yield {"step": step} | {key: y for key, y in values.items() if y is not None}

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Ranges of missing steps between the first and the last: (first missing, last missing)."""
        usual = stride(self.steps)
        return tuple((a + 1, b - 1) for a, b in pairwise(self.steps) if b - a > usual)


def stride(steps: Sequence[int]) -> int:
    """Return the usual distance of neighbouring steps; a run may log only every tenth step."""
    gaps = sorted(b - a for a, b in pairwise(steps))
    return gaps[len(gaps) // 2] if gaps else 1


@dataclass
class TableBuilder:
    """Collects rows by step; several lines of one step become one row.

    If an earlier step is logged again with other values, or the program is started again, the run
    has restarted from an earlier point: the later attempt wins, and rows of the earlier attempt
    beyond that point are dropped. A reader sets `is_launched` where the program starts.
    """

    rows: dict[int, dict[str, float]] = field(default_factory=dict)
    clock: dict[int, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    rewritten: set[int] = field(default_factory=set)
    unread: int = 0
    examples: list[UnreadLine] = field(default_factory=list)
    is_launched: bool = False
    _top: int = -1
    _names: set[str] = field(default_factory=set)
    _values: int = 0

    def add(
        self, step: int, metrics: Mapping[str, float], where: str, clock: float | None = None
    ) -> None:
        """Add metrics to the row of their step."""
        row = self.rows.get(step, {})
        is_changed = any(
            row[key] != value and not (isnan(row[key]) and isnan(value))
            for key, value in metrics.items()
            if key in row
        )
        if (is_changed and step < self._top) or (self.is_launched and step <= self._top):
            self._drop_from(step, metrics, where)
        elif is_changed:
            self.rewritten.add(step)
        self.is_launched = False
        new = [key for key in metrics if key not in self._names]
        room = MAX_METRICS - len(self._names)
        self._names.update(new[:room])
        if len(new) > room:
            self.skip(where, f"more than {MAX_METRICS:,} different metrics; new ones are left out")
            metrics = {key: value for key, value in metrics.items() if key in self._names}
        earlier = self.rows.get(step, {})
        merged = {**earlier, **metrics}
        if not merged:  # all of its metrics are over the limit
            return
        size = self._values + len(merged) - len(earlier)
        if size > MAX_VALUES:
            self.skip(where, f"more than {MAX_VALUES:,} values; this step is left out")
            return
        self.rows[step], self._values = merged, size
        self._top = max(self._top, step)
        if clock is not None:
            self.clock[step] = clock

    def skip(self, where: str, reason: str) -> None:
        """Count an unreadable line."""
        self.unread += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(UnreadLine(where, Redactor().text(reason)[:EXAMPLE_CHARACTERS]))

    def run(self, *, name: str, path: str, source: str, era: str = "") -> TrainingRun:
        """Return the run.

        Raises:
            DataError: no step was added.
        """
        if not self.rows:
            lines = (f" First unreadable line: {it.where}: {it.reason}." for it in self.examples)
            raise DataError(
                f"{path}: no training step. verl's console log has lines that start with "
                f"'step:N - ', its file logger writes JSON lines with 'step' and 'data'.{next(lines, '')}"
            )
        steps = tuple(sorted(self.rows))
        columns: dict[str, list[float | None]] = {}
        for i, step in enumerate(steps):
            for metric, value in self.rows[step].items():
                if metric not in columns:
                    columns[metric] = [None] * len(steps)
                columns[metric][i] = value
        return TrainingRun(
            name=name,
            path=path,
            source=source,
            era=era,
            steps=steps,
            table={name: tuple(column) for name, column in columns.items()},
            clock=tuple(self.clock.get(step) for step in steps) if self.clock else (),
            config=Redactor().tree(self.config),
            restarts=tuple(self.restarts),
            rewritten=len(self.rewritten),
            unread=self.unread,
            examples=tuple(self.examples),
        )

    def _drop_from(self, step: int, metrics: Mapping[str, float], where: str) -> None:
        """Drop the rows of an earlier attempt from this step on.

        A validation before training sees the model that the step left, so the step's row stays.
        """
        first = step + all(metric.startswith(_VALIDATION) for metric in metrics)
        dropped = [old for old in self.rows if old >= first]
        for old in dropped:
            self._values -= len(self.rows.pop(old))
            self.clock.pop(old, None)
        self._top = max(self.rows, default=-1)
        self.restarts.append(Restart(step, where, len([old for old in dropped if old > step])))
