"""A run in progress: what its log has got since it was last looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.trainlog.console_reader import ConsoleReader
from rewardkit.trainlog.jsonl_reader import JsonlReader
from rewardkit.trainlog.read import CHUNK, HEAD, choose_reader
from rewardkit.trainlog.training_run import TrainingRun

#: Bytes at the top of a file by which it is known to be the same.
TOP = 4096


@dataclass
class LogTail:
    """A console log or a file of verl's `file` logger that grows.

    A file that was begun anew, as the `file` logger does when a run is resumed, is read anew.

    Attributes:
        path: the file.
        begun: how often it was begun anew.
        missing: whether it was not there at the last look: not yet, or no longer.
    """

    path: Path
    begun: int = 0
    missing: bool = False
    _reader: ConsoleReader | JsonlReader | None = None
    _at: int = 0
    _inode: int = 0
    _top: bytes = field(default=b"", repr=False)

    def poll(self) -> TrainingRun | None:
        """The run as far as it goes if the file has grown and has a step; else None.

        Raises:
            SourceError: the file cannot be read.
            DataError: it is no log.
            UsageError: it is a folder.
        """
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; --follow takes a console log or a jsonl.")
        try:
            grown = self._read()
        except FileNotFoundError:
            self.missing = True
            return None
        except OSError as error:
            reason = error.strerror or error
            raise SourceError(f"{self.path}: cannot be read: {reason}.") from error
        if not grown or self._reader is None:
            return None
        try:
            return self._reader.run(self.path.stem, str(self.path))
        except DataError:  # no step yet
            return None

    def _read(self) -> bool:
        """Feed what is new to the reader; whether there is any."""
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            same = status.st_ino == self._inode and status.st_size >= self._at and not self.missing
            if self._reader and not (same and file.read(len(self._top)) == self._top):
                self._reader, self._at, self.begun = None, 0, self.begun + 1
            self._inode, self.missing = status.st_ino, False
            file.seek(0)
            if self._reader is None and not self._begin(file.read(HEAD)):
                return False
            file.seek(self._at)
            start = self._at
            while self._reader and (data := file.read(CHUNK)):
                self._reader.feed(data)
                self._at += len(data)
                self._top = (self._top + data)[:TOP]
        return self._at > start

    def _begin(self, head: bytes) -> bool:
        """Choose a reader once there is a whole line with something in it."""
        self._top = b""
        if not head.strip() or (b"\n" not in head.lstrip() and len(head) < HEAD):
            return False
        self._reader = choose_reader(head, self.path)
        return True
