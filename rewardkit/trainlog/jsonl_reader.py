"""Lines of JSON that arrive in pieces, and the file of verl's `file` logger.

That file has a line `{"step": N, "data": {...}}` per log call. The logger exists since 0.6 and overwrites
its file when a run resumes (`verl/utils/tracking.py`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import nan
from typing import Any

from rewardkit.jsonl import LongLine
from rewardkit.trainlog.training_run import TableBuilder, TrainingRun

#: Bytes of a line; all metrics that a table may have take two MiB, and JSON takes up to twenty times
#: its size in memory.
MAX_LINE_BYTES = 8 << 20

#: Steps are smaller; no run has this many.
STEP_LIMIT = 10**12

#: Larger integers are not metrics; a float cannot hold ten times this one.
MAX_INTEGER = 10**307


@dataclass
class LineFeed:
    """Splits pieces of a file into lines; of a too long one, only its size is kept.

    Attributes:
        limit: bytes of a line.
        number: lines so far.
    """

    limit: int
    number: int = 0
    _rest: bytes = b""
    _dropped: int = 0

    def feed(self, data: bytes) -> Iterator[bytes | LongLine]:
        """Yield the lines that end in a piece; the rest waits for the next one."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.number += 1
            size, self._dropped = self._dropped + len(line), 0
            yield LongLine(size, self.limit) if size > self.limit else line
        if self._dropped or len(self._rest) > self.limit:
            self._dropped, self._rest = self._dropped + len(self._rest), b""

    def finish(self) -> Iterator[bytes | LongLine]:
        """Yield a last line that has no end."""
        if self._rest or self._dropped:
            yield from self.feed(b"\n")


@dataclass
class JsonlReader:
    """Reader of such a file, fed in pieces."""

    builder: TableBuilder = field(default_factory=TableBuilder)
    _lines: LineFeed = field(default_factory=lambda: LineFeed(MAX_LINE_BYTES))

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the file."""
        self._read(self._lines.feed(data))

    def finish(self, name: str, path: str) -> TrainingRun:
        """Read an incomplete last line, and return the run.

        Raises:
            DataError: the file has no step.
        """
        self._read(self._lines.finish())
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        return self.builder.run(name=name, path=path, source="jsonl")

    def _read(self, lines: Iterator[bytes | LongLine]) -> None:
        for line in lines:
            where = f"line {self._lines.number:,}"
            if isinstance(line, LongLine):
                self.builder.skip(where, line.reason)
                continue
            if not line.strip():
                continue
            step, data = parse_record(line) or (-1, {})
            if step < 0:
                fields = "an integer 'step' of at most 12 digits and a 'data' object"
                self.builder.skip(where, f"not a JSON object with {fields}")
                continue
            # The logger writes NaN and infinity as null.
            numbers = {key: nan if value is None else value for key, value in data.items()}
            metrics = {key: v for key, v in numbers.items() if isinstance(v, (int, float))}
            if any(isinstance(v, int) and abs(v) > MAX_INTEGER for v in metrics.values()):
                self.builder.skip(where, "a number that is too large")
            elif metrics:
                self.builder.add(step, metrics, where)


def parse_record(line: bytes) -> tuple[int, dict[str, Any]] | None:
    """Return step and data of a line; None if the line has another format."""
    try:
        record = json.loads(line)
        step, data = record["step"], record["data"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    if type(step) is not int or not 0 <= step < STEP_LIMIT or not isinstance(data, dict):
        return None
    return step, data
