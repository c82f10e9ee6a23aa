"""The file verl's `file` logger writes: a line `{"step": N, "data": {...}}` for each log call.

It exists from 0.6 on and is begun anew when a run is resumed (`verl/utils/tracking.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import nan
from typing import Any

from rewardkit.lines import LongLine
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes of a line at most: as many metrics as a table may have take two MiB, and JSON takes up to
#: twenty times its size in memory.
LONGEST = 8 << 20

#: Steps are below; no run has as many.
STEPS = 10**12

#: An integer above is no metric, and a float cannot hold ten times that.
HIGHEST = 10**307


@dataclass
class JsonlReader:
    """Such a file, fed in pieces."""

    builder: TableBuilder = field(default_factory=TableBuilder)
    _rest: bytes = b""
    _line: int = 0
    _dropped: int = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        if self._dropped:
            end = data.find(b"\n")
            self._dropped += len(data) if end < 0 else end
            if end < 0:
                return
            self._skip_long()
            data = data[end + 1 :]
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        if len(self._rest) > LONGEST:
            self._dropped, self._rest = len(self._rest), b""

    def finish(self, name: str, path: str) -> TrainingRun:
        """The run that the file tells of.

        Raises:
            DataError: there is not one step.
        """
        if self._dropped:
            self._skip_long()
        if self._rest.strip():
            rest, self._rest = self._rest, b""
            self._take(rest)
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """The run as far as it has been read."""
        return self.builder.run(name=name, path=path, source="jsonl")

    def _skip_long(self) -> None:
        self._line += 1
        self.builder.skip(f"line {self._line:,}", LongLine(self._dropped, LONGEST).reason)
        self._dropped = 0

    def _take(self, line: bytes) -> None:
        if len(line) > LONGEST:
            self._dropped = len(line)
            self._skip_long()
            return
        self._line += 1
        if not line.strip():
            return
        where = f"line {self._line:,}"
        record = parse_record(line)
        if record is None:
            self.builder.skip(
                where, "no JSON object with a whole 'step' of at most 12 digits and a 'data' object"
            )
            return
        step, data = record
        if any(isinstance(value, int) and abs(value) > HIGHEST for value in data.values()):
            self.builder.skip(where, "a number that is too large")
            return
        found = {key: value for key, raw in data.items() if (value := _number(raw)) is not None}
        if found:
            self.builder.add(step, found, where)


def parse_record(line: bytes) -> tuple[int, dict[str, Any]] | None:
    """Step and data of a line; None if it is not of this kind."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    step, data = record.get("step"), record.get("data")
    if type(step) is not int or not 0 <= step < STEPS or not isinstance(data, dict):
        return None
    return step, data


def _number(value: Any) -> float | None:
    """A metric's value. The logger writes NaN and infinity as null; what is no number is left."""
    if value is None:
        return nan
    return value if isinstance(value, (int, float)) else None
