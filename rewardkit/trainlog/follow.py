"""Reads a run in progress as it grows: its log, the records of its reward, or both."""

from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError, UsageError, unreadable_file
from rewardkit.trainlog.files import GrowingFile, LogReader, run_logs
from rewardkit.trainlog.read import HEAD_BYTES, choose_reader
from rewardkit.trainlog.reward_files import RewardRecords, has_dumps, has_records
from rewardkit.trainlog.rewards import join_rewards, own_records, recorded_run
from rewardkit.trainlog.training_run import TrainingRun


class LogTail:
    """A console log or a file of verl's `file` logger that grows.

    If the file is overwritten, as the `file` logger does when a run resumes, it is read from the
    start again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rewrites = 0
        self.is_missing = False
        self._begin()

    def _begin(self) -> None:
        self._file = GrowingFile(self.path)
        self._reader: LogReader | None = None
        self._head = b""

    def poll(self) -> TrainingRun | None:
        """Return the run so far if the file has grown and has a step, else None.

        Raises:
            SourceError: the file cannot be read.
            DataError: the file is not a log.
            UsageError: the path is a folder.
        """
        if self.path.is_dir():
            raise UsageError(f"{self.path} is a folder; --follow takes a console log or a jsonl.")
        self.is_missing = not self.path.exists()
        if self.is_missing:
            return None
        try:
            if self._file.size and self._file.is_replaced():
                self.rewrites += 1
                self._begin()
            size = self._file.size
            for data in self._file.read():
                self._feed(data)
        except FileNotFoundError:  # it was removed just now
            self.is_missing = True
            return None
        except OSError as error:
            raise unreadable_file(self.path, error) from error
        if self._reader is None or self._file.size == size:
            return None
        try:
            return self._reader.run(self.path.stem, str(self.path))
        except DataError:  # it has no step yet
            return None

    def _feed(self, data: bytes) -> None:
        if self._reader is None:
            # The first line that is not blank tells the kind of the file.
            self._head = data = self._head + data
            if b"\n" not in data.lstrip() and len(data) < HEAD_BYTES:
                return
            self._reader, self._head = choose_reader(data, self.path), b""
        self._reader.feed(data)


@dataclass
class RunTail:
    """A run in progress that grows: its log, the records of its reward, or both.

    `path` is its log, the folder that `rewardkit train` wrote, or a folder of records or dumps; beside a
    log, `rewards` is the folder of its records.
    """

    path: Path
    rewards: Path | None = None
    samples_per_step: int | None = None
    _log: LogTail | None = None
    _records: RewardRecords | None = None
    _run: TrainingRun | None = field(default=None, repr=False)

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
        self._look()
        log, records = self._log.poll() if self._log else None, self._records
        has_grown = records is not None and records.poll()
        self._run = log or self._run
        if log is None and not has_grown:
            return None
        try:
            if records and records.count and self._log is None:
                return recorded_run(records, self.path.stem, self.samples_per_step)
            if records and records.count and self._run:
                return join_rewards(self._run, records, self.samples_per_step)
        except DataError:  # no step has ended, or a run's own records cannot be aligned to its log
            if self.rewards:
                raise
        return self._run

    def _look(self) -> None:
        """Look for the log and the records, which may begin to exist later."""
        logs = run_logs(self.path)
        if self._records is None and not self.rewards:
            self._records = own_records(self.path, self._run.config if self._run else {})
        folder = self.rewards or self.path
        may_exist = self._records is None and (self.rewards or not logs)
        if may_exist and (has_records(folder) or has_dumps(folder)):
            self._records = RewardRecords(folder)
        is_folder_of_records = self._records is not None and self._records.folder == self.path
        if self._log is None and self.path.exists() and (logs or not is_folder_of_records):
            self._log = LogTail(logs[0] if logs else self.path)
