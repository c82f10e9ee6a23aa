"""Reads a run in progress: its log, the records of its reward, or both, as they grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.errors import DataError
from rewardkit.recorder.read import RewardRecords, RewardTail
from rewardkit.recorder.record_file import has_records
from rewardkit.trainlog.follow import LogTail
from rewardkit.trainlog.rewards import join_rewards, recorded_run, records_since
from rewardkit.trainlog.run_folder import run_logs, run_records
from rewardkit.trainlog.training_run import TrainingRun


@dataclass
class RunTail:
    """A run that grows.

    Attributes:
        path: its log, the folder that `rewardkit train` wrote, or a folder of records.
        rewards: the folder of its records, if `path` is its log.
        samples_per_step: responses of a training step, see `recorded_run`.
        is_missing: whether nothing existed at the last poll.
    """

    path: Path
    rewards: Path | None = None
    samples_per_step: int | None = None
    is_missing: bool = False
    _log: LogTail | None = None
    _records: RewardTail | None = None
    _since: float = 0.0
    _run: TrainingRun | None = field(default=None, repr=False)
    _recorded: RewardRecords | None = field(default=None, repr=False)

    @property
    def rewrites(self) -> int:
        """How often the log or a file of records was replaced."""
        return sum(tail.rewrites for tail in (self._log, self._records) if tail)

    def poll(self) -> TrainingRun | None:
        """Return the run so far if it has grown and has a step, else None.

        Raises:
            RewardkitError: as `LogTail.poll` and `RewardTail.poll`.
        """
        self._find()
        log = self._log.poll() if self._log else None
        self.is_missing = self._log.is_missing if self._log else not self.path.exists()
        records = self._records.poll() if self._records else None
        self._run, self._recorded = log or self._run, records or self._recorded
        if log is None and records is None:
            return None
        if self._log is None:
            return self._table_of(self._recorded) if self._recorded else None
        if self._run is None or self._recorded is None:
            return self._run
        try:
            recorded = records_since(self._recorded, self._since)
            return join_rewards(self._run, recorded, self.samples_per_step).run
        except DataError:
            if self.rewards:
                raise
            return self._run  # the run's own folder has records that cannot be aligned to its log

    def _find(self) -> None:
        """Choose what to read as soon as it exists."""
        logs = run_logs(self.path)
        if self._records is None and self.rewards is None and (own := run_records(self.path)):
            self._records, self._since = RewardTail(own.folder), own.since
        folder = self.rewards or self.path
        if self._records is None and folder.is_dir() and has_records(folder):
            self._records = RewardTail(folder)
        is_folder_of_records = self._records is not None and self._records.folder == self.path
        if self._log is None and self.path.exists() and (logs or not is_folder_of_records):
            self._log = LogTail(logs[0] if logs else self.path)

    def _table_of(self, records: RewardRecords) -> TrainingRun | None:
        try:
            return recorded_run(records, self.path.stem, self.samples_per_step).run
        except DataError:  # no step has ended yet
            return None
