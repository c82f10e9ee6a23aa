"""A run in progress: what its log has got since it was last looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.trainlog.console import Console
from rewardkit.trainlog.jsonl import Jsonl
from rewardkit.trainlog.model import Run
from rewardkit.trainlog.read import CHUNK, HEAD, reader_of


@dataclass
class Tail:
    """A console log or a file of verl's `file` logger that grows.

    A file that was begun anew, as the `file` logger does when a run is resumed, is read anew.
    """

    path: Path
    _reader: Console | Jsonl | None = None
    _at: int = 0
    _inode: int = field(default=0)

    def poll(self) -> Run | None:
        """The run as far as it goes if the file has grown and has a step; else None.

        Raises:
            SourceError: the file cannot be read.
            UsageError: it is a folder.
        """
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; --follow takes a console log or a jsonl.")
        try:
            grown = self._read()
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
            if status.st_size < self._at or status.st_ino != self._inode:
                self._reader, self._at, self._inode = None, 0, status.st_ino
            if self._reader is None and status.st_size:
                self._reader = reader_of(file.read(HEAD), self.path)
            file.seek(self._at)
            start = self._at
            while self._reader and (data := file.read(CHUNK)):
                self._reader.feed(data)
                self._at += len(data)
        return self._at > start
