"""Files of a run: its logs in a folder, files that grow, and readers of lines that arrive in pieces."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any, ClassVar

from rewardkit.errors import DataError
from rewardkit.jsonl import LongLine
from rewardkit.trainlog.training_run import TableBuilder, TrainingRun

#: Bytes per read.
CHUNK_BYTES = 1 << 16

#: Bytes at the top of a file that identify it.
TOP_BYTES = 4096

#: Logs that `rewardkit train` writes into the folder of a run, the one to read first: a run's own
#: output, a rehearsal's, and the metrics of verl's `file` logger, which lack the configuration.
RUN_LOGS = ("console.log", "verl.log", "metrics.jsonl")

#: Suffixes of other files that may be logs.
LOG_SUFFIXES = frozenset({".log", ".jsonl", ".txt"})

#: Files or folders that a message names.
MAX_NAMES = 3

#: Bytes of a line of the jsonl; all metrics that a table may have take two MiB, and JSON takes up to
#: twenty times its size in memory.
MAX_LINE_BYTES = 8 << 20

#: Steps are smaller; no run has this many.
STEP_LIMIT = 10**12

#: Larger integers are not metrics; a float cannot hold ten times this one.
MAX_INTEGER = 10**307


@dataclass
class LineFeed:
    """Splits pieces of a file into lines of at most `limit` bytes; of a longer one, only its size is kept."""

    limit: int
    number: int = 0
    _rest: list[bytes] = field(default_factory=list)
    _dropped: int = 0

    def feed(self, data: bytes, words: Sequence[bytes] = ()) -> Iterator[bytes | LongLine]:
        """Yield the lines that end in a piece; the rest waits for the next one.

        None of them is yielded if no line of the piece has one of some words.
        """
        top, newline, rest = data.rpartition(b"\n")
        body = b""
        if newline:
            body, self._rest = b"".join([*self._rest, top]), []
        if words and not self._dropped and not any(word in body for word in words):
            self.number += body.count(b"\n") + len(newline)
        else:
            for line in body.split(b"\n") if newline else ():
                self.number += 1
                if self._dropped or len(line) > self.limit:
                    size, self._dropped = self._dropped + len(line), 0
                    yield LongLine(size, self.limit)
                else:
                    yield line
        self._rest.append(rest)
        size = sum(map(len, self._rest))
        if self._dropped or size > self.limit:
            self._dropped, self._rest = self._dropped + size, []

    def finish(self) -> Iterator[bytes | LongLine]:
        """Yield a last line that has no end."""
        if any(self._rest) or self._dropped:
            yield from self.feed(b"\n")


@dataclass
class LogReader(ABC):
    """A reader of one kind of log, fed in pieces."""

    source: ClassVar[str]
    limit: ClassVar[int]

    builder: TableBuilder = field(default_factory=TableBuilder)

    def __post_init__(self) -> None:
        self._lines = LineFeed(self.limit)
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the log; an incomplete last line waits for the next call."""
        self._read_lines(self._lines.feed(data))

    def finish(self, name: str, path: str) -> TrainingRun:
        """Read an incomplete last line as far as possible, and return the run.

        Raises:
            DataError: the log has no step.
        """
        self._is_cut = True
        self._read_lines(self._lines.finish())
        self._end()
        return self.run(name, path)

    def run(self, name: str, path: str) -> TrainingRun:
        """Return the run as far as it has been read."""
        return self.builder.run(name=name, path=path, source=self.source)

    def _read_lines(self, lines: Iterable[bytes | LongLine]) -> None:
        for line in lines:
            if isinstance(line, LongLine):
                self.builder.skip(f"line {self._lines.number:,}", line.reason)
            else:
                self._read_line(line)

    def _end(self) -> None:  # noqa: B027 - most readers have nothing to end
        """Read what only the end of the log completes."""

    @abstractmethod
    def _read_line(self, line: bytes) -> None:
        """Read a line without its end; the file ends in it if `_is_cut`."""


@dataclass
class JsonlReader(LogReader):
    """Reader of the file of verl's `file` logger: a line `{"step": N, "data": {...}}` per log call.

    The logger exists since 0.6 and overwrites its file when a run resumes (`verl/utils/tracking.py`).
    """

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


@dataclass
class GrowingFile:
    """A file that another process writes, as far as it is read."""

    path: Path
    size: int = 0
    _inode: int = 0
    _top: bytes = field(default=b"", repr=False)

    def read(self) -> Iterator[bytes]:
        """Yield what is new, in pieces."""
        with self.path.open("rb") as stream:
            self._inode = os.fstat(stream.fileno()).st_ino
            stream.seek(self.size)
            while data := stream.read(CHUNK_BYTES):
                self.size += len(data)
                self._top += data[: TOP_BYTES - len(self._top)]
                yield data

    def is_replaced(self) -> bool:
        """Return whether the file is another one than before: removed, cut or written anew."""
        try:
            status = self.path.stat()
            if status.st_size == self.size and status.st_ino == self._inode:
                return False
            with self.path.open("rb") as stream:
                is_same = stream.read(len(self._top)) == self._top
        except FileNotFoundError:
            return True
        return status.st_ino != self._inode or status.st_size < self.size or not is_same


def run_logs(folder: Path) -> list[Path]:
    """Return the logs that `rewardkit train` wrote into a folder, the one to read first."""
    files = [folder / name for name in RUN_LOGS]
    return [file for file in files if file.is_file() and file.stat().st_size]


def only_log(folder: Path) -> Path:
    """Return the one file of a folder that may be a log.

    Raises:
        DataError: the folder has none, or several.
    """
    files = sorted(file for file in folder.iterdir() if file.suffix in LOG_SUFFIXES)
    if len(files) == 1:
        return files[0]
    if files:
        raise DataError(
            f"{folder}: the folder has {len(files):,} files that may be logs; name one of them: "
            f"{_names(files)}."
        )
    hint = ""
    if (folder / "manifest.json").is_file():
        hint = " The run has not started, or writes its log elsewhere: pass the log of its job."
    elif runs := {file.parent for name in RUN_LOGS for file in folder.glob(f"*/{name}")}:
        hint = f" Name a run's folder in it: {_names(sorted(runs))}."
    raise DataError(
        f"{folder}: the folder has no training log ({', '.join(RUN_LOGS)}), no rollout dumps "
        f"(<step>.jsonl), no records of a reward and no TensorBoard event files.{hint}"
    )


def _names(paths: list[Path]) -> str:
    names = [path.name for path in paths[:MAX_NAMES]]
    return ", ".join(names) + (", ..." if len(paths) > MAX_NAMES else "")
