"""Reader of the file of verl's `file` logger.

It has a line `{"step": N, "data": {...}}` per log call. The logger exists since 0.6 and overwrites its
file when a run resumes (`verl/utils/tracking.py`).
"""

import json
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar

from rewardkit.trainlog.files import LogReader

#: Bytes of a line; all metrics that a table may have take two MiB, and JSON takes up to twenty times
#: its size in memory.
MAX_LINE_BYTES = 8 << 20

#: Steps are smaller; no run has this many.
STEP_LIMIT = 10**12

#: Larger integers are not metrics; a float cannot hold ten times this one.
MAX_INTEGER = 10**307


@dataclass
class JsonlReader(LogReader):
    """Reader of such a file."""

    source: ClassVar[str] = "jsonl"
    limit: ClassVar[int] = MAX_LINE_BYTES

    def _read_line(self, line: bytes) -> None:
        where = f"line {self._lines.number:,}"
        if not line.strip():
            return
        if (record := parse_record(line)) is None:
            fields = "an integer 'step' of at most 12 digits and a 'data' object"
            self.builder.skip(where, f"not a JSON object with {fields}")
            return
        step, data = record
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
