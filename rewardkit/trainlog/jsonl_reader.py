"""Reader of the file of verl's `file` logger: a line `{"step": N, "data": {...}}` per log call.

The logger exists since 0.6 and overwrites its file when a run resumes (`verl/utils/tracking.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import nan
from typing import Any

from rewardkit.jsonl import LongLine
from rewardkit.trainlog.table_builder import TableBuilder
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes of a line; all metrics that a table may have take two MiB, and JSON takes up to twenty times
#: its size in memory.
MAX_LINE_BYTES = 8 << 20

#: Steps are smaller; no run has this many.
STEP_LIMIT = 10**12

#: Larger integers are not metrics; a float cannot hold ten times this one.
MAX_INTEGER = 10**307


@dataclass
class JsonlReader:
    """Reader of such a file, fed in pieces."""

    builder: TableBuilder = field(default_factory=TableBuilder)
    _rest: bytes = b""
    _line: int = 0
    _dropped: int = 0

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the file."""
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
        if len(self._rest) > MAX_LINE_BYTES:
            self._dropped, self._rest = len(self._rest), b""

    def finish(self, name: str, path: str) -> TrainingRun:
        """Read an incomplete last line, and return the run.

        Raises:
            DataError: the file has no step.
        """
        if self._dropped:
            self._skip_long()
        if self._rest.strip():
            rest, self._rest = self._rest, b""
            self._take(rest)
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        return self.builder.run(name=name, path=path, source="jsonl")

    def _skip_long(self) -> None:
        self._line += 1
        self.builder.skip(f"line {self._line:,}", LongLine(self._dropped, MAX_LINE_BYTES).reason)
        self._dropped = 0

    def _take(self, line: bytes) -> None:
        if len(line) > MAX_LINE_BYTES:
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
                where,
                "not a JSON object with an integer 'step' of at most 12 digits and a 'data' object",
            )
            return
        step, data = record
        if any(isinstance(value, int) and abs(value) > MAX_INTEGER for value in data.values()):
            self.builder.skip(where, "a number that is too large")
            return
        metrics = {key: value for key, raw in data.items() if (value := _number(raw)) is not None}
        if metrics:
            self.builder.add(step, metrics, where)


def parse_record(line: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return step and data of a line; None if the line has another format."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    step, data = record.get("step"), record.get("data")
    if type(step) is not int or not 0 <= step < STEP_LIMIT or not isinstance(data, dict):
        return None
    return step, data


def _number(value: Any) -> float | None:
    """Return a metric's value, None for other types. The logger writes NaN and infinity as null."""
    if value is None:
        return nan
    return value if isinstance(value, (int, float)) else None
