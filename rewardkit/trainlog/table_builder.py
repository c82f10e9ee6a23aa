"""Steps as they are read, put together into a run's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import isnan
from typing import Any

from rewardkit.errors import DataError
from rewardkit.redact import Redactor
from rewardkit.trainlog.training_run import MetricColumn, Restart, TrainingRun, UnreadLine

#: UnreadLine lines that are kept to be shown.
EXAMPLES = 5

#: Characters of such a line.
SHOWN = 120

#: Metrics that a table has at most; a log of free text must not fill memory with made-up names.
METRICS = 20_000

#: Values that a table has at most, about 1.5 GB: 100,000 steps of 160 metrics. A packed log of a few
#: MB may hold any number.
VALUES = 1 << 24

_VALIDATION = ("val/", "val-", "test_score/")


def is_validation(metric: str) -> bool:
    """Whether the metric is of a validation: it is logged of the step's model before training."""
    return metric.startswith(_VALIDATION)


@dataclass
class TableBuilder:
    """Rows by step. What is logged of one step in several places becomes one row.

    Where a step before the last is logged again with other values, or the program was started
    again, the run went on from an earlier point: the later attempt wins, and rows of the earlier
    one beyond that point are dropped.
    """

    rows: dict[int, dict[str, float]] = field(default_factory=dict)
    clock: dict[int, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    restarts: list[Restart] = field(default_factory=list)
    unread: int = 0
    examples: list[UnreadLine] = field(default_factory=list)
    _launched: bool = False
    _top: int = -1
    _names: set[str] = field(default_factory=set)
    _values: int = 0

    def add(
        self, step: int, metrics: Mapping[str, float], where: str, clock: float | None = None
    ) -> None:
        """Put metrics of a step into its row."""
        row = self.rows.get(step)
        again = step < self._top and row is not None and _differ(row, metrics)
        if again or (self._launched and step <= self._top):
            self._go_back(step, metrics, where)
        self._launched = False
        if not metrics.keys() <= self._names:
            metrics = self._known(metrics, where)
        earlier = self.rows.get(step, {})
        whole = {**earlier, **metrics}
        if not whole:  # there was no room for one of its metrics
            return
        if self._values + len(whole) - len(earlier) > VALUES:
            self.skip(where, f"more than {VALUES:,} values; this step is left out")
            return
        self._values += len(whole) - len(earlier)
        self.rows[step] = whole
        self._top = max(self._top, step)
        if clock is not None:
            self.clock[step] = clock

    def launch(self) -> None:
        """The program was started here: steps that follow are of a new attempt."""
        self._launched = True

    def skip(self, where: str, reason: str) -> None:
        """Count a line that could not be read."""
        self.unread += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(UnreadLine(where, Redactor().text(reason)[:SHOWN]))

    def run(self, *, name: str, path: str, source: str, era: str = "") -> TrainingRun:
        """The run.

        Raises:
            DataError: there is not one step.
        """
        if not self.rows:
            reason = f" First unreadable line: {self._first()}." if self.examples else ""
            raise DataError(
                f"{path}: no training step. verl's console log has lines that begin "
                f"'step:N - ', its file logger lines of JSON with 'step' and 'data'.{reason}"
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
            unread=self.unread,
            examples=tuple(self.examples),
        )

    def _known(self, metrics: Mapping[str, float], where: str) -> Mapping[str, float]:
        """Metrics that the table has a column for, or gets one."""
        new = [key for key in metrics if key not in self._names]
        room = METRICS - len(self._names)
        self._names.update(new[:room])
        if len(new) <= room:
            return metrics
        self.skip(where, f"more than {METRICS:,} different metrics; new ones are left out")
        return {key: value for key, value in metrics.items() if key in self._names}

    def _table(self, steps: Sequence[int]) -> dict[str, MetricColumn]:
        """The rows as columns. Neighbours with the same metrics, as most are, go together."""
        columns: dict[str, list[float | None]] = {}
        at = 0
        for names, group in groupby((self.rows[step] for step in steps), key=tuple):
            found = list(zip(*(row.values() for row in group), strict=True))
            for name, values in zip(names, found, strict=True):
                column = columns.setdefault(name, [None] * len(steps))
                column[at : at + len(values)] = values
            at += len(found[0])
        return {name: tuple(column) for name, column in columns.items()}

    def _go_back(self, step: int, metrics: Mapping[str, float], where: str) -> None:
        """Drop what an earlier attempt logged from here on.

        A validation before training is of the model that the step left: its row stays.
        """
        first = step + 1 if all(map(is_validation, metrics)) else step
        dropped = [old for old in self.rows if old >= first]
        for old in dropped:
            self._values -= len(self.rows.pop(old))
            self.clock.pop(old, None)
        self._top = max(self.rows, default=-1)
        self.restarts.append(Restart(step, where, len([old for old in dropped if old > step])))

    def _first(self) -> str:
        return f"{self.examples[0].where}: {self.examples[0].reason}"


def _differ(row: Mapping[str, float], metrics: Mapping[str, float]) -> bool:
    """Whether a metric that the row has is logged with another value."""
    both = ((row[key], value) for key, value in metrics.items() if key in row)
    return any(a != b and not (isnan(a) and isnan(b)) for a, b in both)
