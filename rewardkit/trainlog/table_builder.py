"""Builds a run's table from the steps that a reader finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from rewardkit.errors import DataError
from rewardkit.redact import Redactor
from rewardkit.trainlog.training_run import MetricColumn, Restart, TrainingRun, UnreadLine

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


def is_validation(metric: str) -> bool:
    """Whether the metric is from a validation, which sees the step's model before its update."""
    return metric.startswith(_VALIDATION)


@dataclass
class TableBuilder:
    """Collects rows by step; several lines of one step become one row.

    If an earlier step is logged again with other values, or the program is started again, the run
    has restarted from an earlier point: the later attempt wins, and rows of the earlier attempt
    beyond that point are dropped.
    """

    rows: dict[int, dict[str, float]] = field(default_factory=dict)
    clock: dict[int, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    rewritten: set[int] = field(default_factory=set)
    unread: int = 0
    examples: list[UnreadLine] = field(default_factory=list)
    _launched: bool = False
    _top: int = -1
    _names: set[str] = field(default_factory=set)
    _values: int = 0

    def add(
        self, step: int, metrics: Mapping[str, float], where: str, clock: float | None = None
    ) -> None:
        """Add metrics to the row of their step."""
        row = self.rows.get(step)
        is_changed = row is not None and _differ(row, metrics)
        if (is_changed and step < self._top) or (self._launched and step <= self._top):
            self._drop_from(step, metrics, where)
        elif is_changed:
            self.rewritten.add(step)
        self._launched = False
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
        self._values += len(merged) - len(earlier)
        if self._values > MAX_VALUES:
            self._values -= len(merged) - len(earlier)
            self.skip(where, f"more than {MAX_VALUES:,} values; this step is left out")
            return
        self.rows[step] = merged
        self._top = max(self._top, step)
        if clock is not None:
            self.clock[step] = clock

    def mark_launch(self) -> None:
        """Note a start of the program: steps that follow belong to a new attempt."""
        self._launched = True

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
        return TrainingRun(
            name=name,
            path=path,
            source=source,
            era=era,
            steps=steps,
            table=self._table(steps),
            clock=tuple(self.clock.get(step) for step in steps) if self.clock else (),
            config=Redactor().tree(self.config),
            restarts=tuple(self.restarts),
            rewritten=len(self.rewritten),
            unread=self.unread,
            examples=tuple(self.examples),
        )

    def _table(self, steps: Sequence[int]) -> dict[str, MetricColumn]:
        columns: dict[str, list[float | None]] = {}
        for i, step in enumerate(steps):
            for name, value in self.rows[step].items():
                if name not in columns:
                    columns[name] = [None] * len(steps)
                columns[name][i] = value
        return {name: tuple(column) for name, column in columns.items()}

    def _drop_from(self, step: int, metrics: Mapping[str, float], where: str) -> None:
        """Drop the rows of an earlier attempt from this step on.

        A validation before training sees the model that the step left, so the step's row stays.
        """
        first = step + 1 if all(map(is_validation, metrics)) else step
        dropped = [old for old in self.rows if old >= first]
        for old in dropped:
            self._values -= len(self.rows.pop(old))
            self.clock.pop(old, None)
        self._top = max(self.rows, default=-1)
        self.restarts.append(Restart(step, where, len([old for old in dropped if old > step])))


def _differ(row: Mapping[str, float], metrics: Mapping[str, float]) -> bool:
    both = ((row[key], value) for key, value in metrics.items() if key in row)
    return any(a != b and not (isnan(a) and isnan(b)) for a, b in both)
