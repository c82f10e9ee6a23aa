"""Reads the records of a run: all files of a folder, once or as they grow."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

from rewardkit.errors import DataError, SourceError, unreadable_file
from rewardkit.recorder.record_file import FORMAT, PATTERN
from rewardkit.recorder.slots import (
    MAX_SAMPLES,
    MAX_SLOTS,
    SLOT_SECONDS,
    RewardSample,
    Slot,
    count_of,
    parse_samples,
    parse_slot,
)

#: Bytes per read.
CHUNK_BYTES = 4 << 20

#: Longest line; a recorder writes up to about 2 MB.
MAX_LINE_BYTES = 16 << 20

#: Samples of a folder, about 80 MB; beyond this, half of them are left out, again and again.
MAX_ALL_SAMPLES = 20_000

#: Files of a folder: processes of a run, with its restarts.
MAX_FILES = 20_000


@dataclass(frozen=True)
class RewardRecords:
    """The records of a run: what the processes of its reward recorded.

    Attributes:
        folder: the folder of the files.
        processes: number of files with calls.
        slots: what all processes recorded, in order of time.
        generations: when the run began and when it was started again: the starts of processes that
            began after all earlier ones had made their last call.
        dropped: calls that recorders could not keep up with.
        unusable: calls whose result was not a dictionary of names.
        torn: files that end in half a line, as a killed process leaves them.
        unread: lines that are unreadable; they are left out.
    """

    folder: str
    processes: int
    slots: tuple[Slot, ...]
    generations: tuple[float, ...]
    dropped: int = 0
    unusable: int = 0
    torn: int = 0
    unread: int = 0


def read_rewards(folder: Path | str) -> RewardRecords:
    """Read the records of a run.

    Raises:
        SourceError: the folder or a file of it cannot be read.
        DataError: the folder has no records, or a file that is not one of a recorder.
    """
    records = RewardTail(Path(folder)).poll()
    if records is None:
        raise DataError(
            f"{folder}: the folder has no reward records ({PATTERN}). Give the reward "
            "reward_kwargs.record=FOLDER and score at least one response."
        )
    return records


@dataclass
class RewardTail:
    """A folder of records that grows; each poll reads only what is new.

    Attributes:
        folder: the folder.
        rewrites: how often a file was replaced or removed, so that all were read again.
    """

    folder: Path
    rewrites: int = 0
    _reader: _FolderReader | None = None

    def poll(self) -> RewardRecords | None:
        """Return the records so far if there are any and they have grown, else None.

        Raises:
            SourceError: the folder or a file of it cannot be read.
            DataError: a file of the folder is not one of a recorder.
        """
        try:
            if self._reader is not None and self._reader.is_replaced():
                self._reader, self.rewrites = None, self.rewrites + 1
            self._reader = self._reader or _FolderReader(self.folder)
            has_grown = self._reader.read()
        except OSError as error:
            if isinstance(error, SourceError):
                raise
            raise unreadable_file(self.folder, error) from error
        return self._reader.records() if has_grown else None


@dataclass
class _File:
    """A file of records as far as it is read."""

    path: Path
    inode: int
    at: int = 0
    rest: bytes = b""
    is_in_long_line: bool = False
    start: float = 0.0
    end: float = 0.0


class _FolderReader:
    """Adds up the lines of all files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, _File] = {}
        self.slots: dict[int, Slot] = {}
        self.width = SLOT_SECONDS
        self.samples = 0
        self.sample_share = 1.0
        self.chooser = random.Random(0)  # noqa: S311 - not a secret
        self.dropped = self.unusable = self.unread = 0

    def is_replaced(self) -> bool:
        """Whether a file was removed, or is not the one that was read."""
        for file in self.files.values():
            try:
                status = file.path.stat()
            except FileNotFoundError:
                return True
            if status.st_ino != file.inode or status.st_size < file.at:
                return True
        return False

    def read(self) -> bool:
        """Read what is new; return whether there was any."""
        if not self.folder.is_dir():
            problem = "not a folder" if self.folder.exists() else "no such folder"
            raise SourceError(f"{self.folder}: {problem}; name the folder of the records.")
        paths = sorted(path for path in self.folder.glob(PATTERN) if path.is_file())
        if len(paths) > MAX_FILES:
            raise DataError(f"{self.folder}: more than {MAX_FILES:,} files; name another folder.")
        return sum([self._read_file(path) for path in paths]) > 0

    def _read_file(self, path: Path) -> bool:
        with path.open("rb") as stream:
            file = self.files.setdefault(path.name, _File(path, os.fstat(stream.fileno()).st_ino))
            before = file.at
            stream.seek(before)
            while data := stream.read(CHUNK_BYTES):
                file.at += len(data)
                self._feed(file, data)
        return file.at > before

    def _feed(self, file: _File, data: bytes) -> None:
        """Read the whole lines of a piece of a file; the rest waits for the next piece."""
        *lines, rest = (file.rest + data).split(b"\n")
        for line in lines:
            if file.is_in_long_line:
                file.is_in_long_line = False
            elif line:  # an empty one ends a line that a full disk cut
                self._read_line(file, line)
        if len(rest) > MAX_LINE_BYTES:
            self.unread += not file.is_in_long_line
            file.is_in_long_line, rest = True, b""
        file.rest = rest

    def _read_line(self, file: _File, line: bytes) -> None:
        try:
            record = json.loads(line)
            if not file.start:
                file.start = float(record["start"]) if record[FORMAT] == 1 else 0.0
            elif "samples" in record:
                for sample in parse_samples(record):
                    self._add_sample(sample)
            else:
                counts = count_of(record["dropped"]), count_of(record["unusable"])
                self._add_slot(file, parse_slot(record))
                self.dropped += counts[0]
                self.unusable += counts[1]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):
            self.unread += 1
        if not file.start:
            raise DataError(
                f"{file.path}: not a file of reward records of this release; move it elsewhere."
            )

    def _add_slot(self, file: _File, slot: Slot) -> None:
        file.end = max(file.end, slot.end)
        number = int((slot.start + slot.end) / 2 // self.width)
        mine = self.slots.setdefault(number, Slot(slot.start, slot.end))
        mine.include(slot)
        while len(self.slots) > MAX_SLOTS:
            self._double_width()

    def _add_sample(self, sample: RewardSample) -> None:
        slot = self.slots.get(int(sample.time // self.width)) or self._nearest_slot(sample.time)
        if slot is None or self.chooser.random() > self.sample_share:
            return
        totals = slot.source(sample.data_source, sample.is_validation)
        before = len(totals.samples)
        totals.add_samples([sample], MAX_SAMPLES)
        self.samples += len(totals.samples) - before
        if self.samples > MAX_ALL_SAMPLES:
            self._thin_samples()

    def _thin_samples(self) -> None:
        """Leave out half of the samples, and half of those to come."""
        self.sample_share /= 2
        self.samples = 0
        for slot in self.slots.values():
            for totals in slot.sources.values():
                totals.samples = [each for each in totals.samples if self.chooser.random() < 0.5]
                self.samples += len(totals.samples)

    def _nearest_slot(self, time: float) -> Slot | None:
        """Return the slot of the interval that the sample is from, which may be a longer one."""
        numbers = (int(time // self.width) + step for step in (-1, 1, -2, 2))
        return next((self.slots[number] for number in numbers if number in self.slots), None)

    def _double_width(self) -> None:
        self.width *= 2
        slots, self.slots = self.slots, {}
        for number, slot in slots.items():
            mine = self.slots.setdefault(number // 2, Slot(slot.start, slot.end))
            mine.include(slot)

    def records(self) -> RewardRecords | None:
        """Return the records so far; None if there is none."""
        active = sorted((file.start, file.end) for file in self.files.values() if file.end)
        if not active:
            return None
        return RewardRecords(
            folder=str(self.folder),
            processes=len(active),
            slots=tuple(slot for _, slot in sorted(self.slots.items())),
            generations=_generations(active),
            dropped=self.dropped,
            unusable=self.unusable,
            torn=sum(bool(file.rest) for file in self.files.values()),
            unread=self.unread,
        )


def _generations(processes: list[tuple[float, float]]) -> tuple[float, ...]:
    """Return the start of each group of processes that overlap in time."""
    starts, end = [], float("-inf")
    for start, last in processes:
        if start > end:
            starts.append(start)
        end = max(end, last)
    return tuple(starts)
