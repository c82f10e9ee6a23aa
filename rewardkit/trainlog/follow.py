"""Reads the log of a run in progress as it grows."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, UsageError, unreadable_file
from rewardkit.trainlog.console_reader import ConsoleReader
from rewardkit.trainlog.jsonl_reader import JsonlReader
from rewardkit.trainlog.read import CHUNK_BYTES, HEAD_BYTES, choose_reader
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes at the top of a file that identify it.
TOP_BYTES = 4096


@dataclass
class LogTail:
    """A console log or a file of verl's `file` logger that grows.

    If the file is overwritten, as the `file` logger does when a run resumes, it is read from the
    start again.

    Attributes:
        path: the file.
        rewrites: how often the file was overwritten.
        is_missing: whether the file did not exist at the last poll.
    """

    path: Path
    rewrites: int = 0
    is_missing: bool = False
    _reader: ConsoleReader | JsonlReader | None = None
    _at: int = 0
    _inode: int = 0
    _top: bytes = field(default=b"", repr=False)

    def poll(self) -> TrainingRun | None:
        """Return the run so far if the file has grown and has a step, else None.

        Raises:
            SourceError: the file cannot be read.
            DataError: the file is not a log.
            UsageError: the path is a folder.
        """
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; --follow takes a console log or a jsonl.")
        try:
            has_grown = self._read()
        except FileNotFoundError:
            self.is_missing = True
            return None
        except OSError as error:
            raise unreadable_file(self.path, error) from error
        if not has_grown or self._reader is None:
            return None
        try:
            return self._reader.run(self.path.stem, str(self.path))
        except DataError:  # it has no step yet
            return None

    def _read(self) -> bool:
        """Feed new bytes to the reader; return whether there were any."""
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            is_same = (
                status.st_ino == self._inode and status.st_size >= self._at and not self.is_missing
            )
            if self._reader and not (is_same and file.read(len(self._top)) == self._top):
                self._reader, self._at, self.rewrites = None, 0, self.rewrites + 1
            self._inode, self.is_missing = status.st_ino, False
            file.seek(0)
            if self._reader is None and not self._begin(file.read(HEAD_BYTES)):
                return False
            file.seek(self._at)
            start = self._at
            while self._reader and (data := file.read(CHUNK_BYTES)):
                self._reader.feed(data)
                self._at += len(data)
                self._top = (self._top + data)[:TOP_BYTES]
        return self._at > start

    def _begin(self, head: bytes) -> bool:
        """Choose a reader once the file has a complete line that is not blank."""
        self._top = b""
        if not head.strip() or (b"\n" not in head.lstrip() and len(head) < HEAD_BYTES):
            return False
        self._reader = choose_reader(head, self.path)
        return True
