"""Reads a run in progress as it grows: its log, the records of its reward, or both."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, UsageError, unreadable_file
from rewardkit.trainlog.console_reader import ConsoleReader
from rewardkit.trainlog.jsonl_reader import JsonlReader
from rewardkit.trainlog.read import CHUNK_BYTES, HEAD_BYTES, choose_reader
from rewardkit.trainlog.reward_files import RewardRecords, has_dumps, has_records
from rewardkit.trainlog.rewards import join_rewards, recorded_run
from rewardkit.trainlog.run_folder import own_records, run_logs
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
            if not self._read() or self._reader is None:
                return None
        except FileNotFoundError:
            self.is_missing = True
            return None
        except OSError as error:
            raise unreadable_file(self.path, error) from error
        try:
            return self._reader.run(self.path.stem, str(self.path))
        except DataError:  # it has no step yet
            return None

    def _read(self) -> bool:
        """Feed new bytes to the reader; return whether there were any."""
        with self.path.open("rb") as file:
            status, head = os.fstat(file.fileno()), file.read(HEAD_BYTES)
            is_same = status.st_ino == self._inode and status.st_size >= self._at
            if self._reader and (self.is_missing or not (is_same and head.startswith(self._top))):
                self._reader, self._at, self.rewrites = None, 0, self.rewrites + 1
            self._inode, self.is_missing = status.st_ino, False
            if self._reader is None:
                # The first line that is not blank tells the kind of the file.
                if not head.strip() or (b"\n" not in head.lstrip() and len(head) < HEAD_BYTES):
                    return False
                self._reader, self._top = choose_reader(head, self.path), b""
            file.seek(self._at)
            start = self._at
            while data := file.read(CHUNK_BYTES):
                self._reader.feed(data)
                self._at += len(data)
            self._top = (
                self._top if len(self._top) == TOP_BYTES else head[: min(self._at, TOP_BYTES)]
            )
        return self._at > start


@dataclass
class RunTail:
    """A run in progress that grows: its log, the records of its reward, or both.

    Attributes:
        path: its log, the folder that `rewardkit train` wrote, or a folder of records or dumps.
        rewards: the folder of its records, if `path` is its log.
        samples_per_step: responses of a training step, see `recorded_run`.
    """

    path: Path
    rewards: Path | None = None
    samples_per_step: int | None = None
    _log: LogTail | None = None
    _records: RewardRecords | None = None
    _run: TrainingRun | None = field(default=None, repr=False)
    _is_recorded: bool = False

    @property
    def rewrites(self) -> int:
        """How often the log or a file of records was replaced."""
        return sum(tail.rewrites for tail in (self._log, self._records) if tail)

    @property
    def is_missing(self) -> bool:
        """Whether nothing existed at the last poll."""
        return self._log.is_missing if self._log else not self.path.exists()

    def poll(self) -> TrainingRun | None:
        """Return the run so far if it has grown and has a step, else None.

        Raises:
            RewardkitError: as `LogTail.poll` and `RewardRecords.poll`.
        """
        self._find()
        log = self._log.poll() if self._log else None
        has_grown = self._records is not None and self._records.poll()
        self._run, self._is_recorded = log or self._run, self._is_recorded or has_grown
        if log is None and not has_grown:
            return None
        try:
            if self._records and self._is_recorded and self._log is None:
                return recorded_run(self._records, self.path.stem, self.samples_per_step)
            if self._records and self._is_recorded and self._run:
                return join_rewards(self._run, self._records, self.samples_per_step)
        except DataError:  # no step has ended, or a run's own records cannot be aligned to its log
            if self.rewards:
                raise
        return self._run

    def _find(self) -> None:
        logs = run_logs(self.path)
        if self._records is None and not self.rewards:
            self._records = own_records(self.path, self._run.config if self._run else {})
        folder = self.rewards or self.path
        may_be_there = self._records is None and (self.rewards or not logs)
        if may_be_there and (has_records(folder) or has_dumps(folder)):
            self._records = RewardRecords(folder)
        is_folder_of_records = self._records is not None and self._records.folder == self.path
        if self._log is None and self.path.exists() and (logs or not is_folder_of_records):
            self._log = LogTail(logs[0] if logs else self.path)
