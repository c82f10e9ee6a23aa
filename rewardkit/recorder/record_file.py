"""The file of records of one process: JSON lines that are only appended.

The first line has `FORMAT` as a key. Each further line is an interval, or the samples of one.
Intervals lengthen as a file grows: they double whenever `BYTES_PER_DOUBLING` more have been written,
and so do the intervals between samples. A file of weeks has a few hundred megabytes at most.
"""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Key of a file's first line; its value is the version.
FORMAT = "rewardkit_rewards"

#: Files of records in a folder.
PATTERN = "rewards-*.jsonl"

#: Bytes of intervals, and bytes of samples, after which their distance doubles.
BYTES_PER_DOUBLING = 32 << 20

#: Doublings after which a file no longer grows.
MAX_DOUBLINGS = 12


def has_records(folder: Path) -> bool:
    """Return whether a folder has files of records."""
    return any(folder.glob(PATTERN))


class RecordFile:
    """A file that one process appends to; created with the first line."""

    def __init__(self, folder: str, start: float) -> None:
        self._folder = folder
        self._start = start
        self._descriptor = -1
        self._needs_newline = False
        self._interval_bytes = 0
        self._sample_bytes = 0
        self._intervals_without_samples = 0

    @property
    def interval_factor(self) -> int:
        """How much longer intervals are than at first."""
        return 1 << self._interval_bytes // BYTES_PER_DOUBLING

    @property
    def are_samples_due(self) -> bool:
        """Whether the next interval should have samples."""
        return self._intervals_without_samples + 1 >= 1 << self._sample_bytes // BYTES_PER_DOUBLING

    def append(self, record: dict[str, Any], dropped: int) -> None:
        """Append an interval, and its samples in a line of their own.

        Raises:
            OSError: it cannot be written; nothing of it counts, and it can be appended again.
        """
        if self._interval_bytes > MAX_DOUBLINGS * BYTES_PER_DOUBLING:
            return
        samples = [
            {"data_source": part["data_source"], "validation": part["validation"], **sample}
            for part in record["sources"]
            for sample in part.pop("samples")
        ]
        self._open()
        self._interval_bytes += self._write({**record, "dropped": dropped})
        self._intervals_without_samples += 1
        if samples:
            self._intervals_without_samples = 0
            with suppress(OSError):  # the interval is written, and must not be appended again
                self._sample_bytes += self._write({"samples": samples})

    def _open(self) -> None:
        if self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0:
            self.close()  # the folder was deleted
        if self._descriptor >= 0:
            return
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        host = re.sub(r"[^\w.-]", "_", os.uname().nodename, flags=re.ASCII)[:100]
        name = f"rewards-{host}-{os.getpid()}-{self._start:.0f}-{os.urandom(4).hex()}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(folder / name, flags, 0o644)
        self._needs_newline = False
        try:
            self._write({FORMAT: 1, "host": host, "pid": os.getpid(), "start": self._start})
        except OSError:  # a file without its first line would be unreadable
            self.close()
            (folder / name).unlink()
            raise

    def close(self) -> None:
        """Close the file; the next line goes into a new one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: dict[str, Any]) -> int:
        """Write a line with one call, so that a killed process leaves at most a torn last line."""
        text = json.dumps(line, separators=(",", ":"), allow_nan=False).encode()
        data = b"\n" * self._needs_newline + text + b"\n"
        written = os.write(self._descriptor, data)
        self._needs_newline = written < len(data)
        if written < len(data) - 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written
