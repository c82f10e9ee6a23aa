"""Reads what a reward returned, once or as it grows: lines of its recorder, or verl's rollout dumps.

A dump is a file `<step>.jsonl` in `trainer.rollout_data_dir`, with `input`, `output`, `gts`, `score`, in
newer releases `uid`, and what the reward returned besides; the default trainer of verl 0.9.1 leaves that
out. The lines of a recorder have times instead of steps (`recorder/writer.py`). Either way a line is one
response, added to the sums of its step, or of its second, so that memory depends on neither their number
nor their length.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from rewardkit.errors import DataError, SourceError, unreadable_file
from rewardkit.jsonl import MAX_LINE_BYTES, LongLine
from rewardkit.recorder.gold import stated_answer
from rewardkit.recorder.writer import LARGEST, MAX_NAME_CHARACTERS, PATTERN, cut, hash_of, record_of
from rewardkit.trainlog.jsonl_reader import LineFeed
from rewardkit.trainlog.training_run import ResponseSample, UnreadLine

#: Bytes per read.
CHUNK_BYTES = 4 << 20

#: Files of a folder: processes of a run with its restarts, or steps.
MAX_FILES = 20_000

#: Seconds of records that are added up, until there are too many such slots; then twice as many.
SLOT_SECONDS, MAX_SLOTS = 1.0, 8_192

#: Data sources of a slot, and numbers of one.
MAX_SOURCES, MAX_KEYS = 64, 256

#: Prompts of a second and a data source whose answers are compared.
MAX_GROUPS = 32

#: Responses of a folder that are kept; beyond this, half of them are left out, again and again.
MAX_SAMPLES = 8_192

#: Characters of a kept response: half of them from its start, half from its end.
MAX_RESPONSE_CHARACTERS = 4_000

#: Unreadable lines that are kept as examples.
MAX_EXAMPLES = 5

#: The latest plausible time, in seconds since 1970.
LATEST = 1e11

OTHER = "other"

_DUMP = re.compile(r"(\d{1,12})\.jsonl")

#: 0.9's trainer names a response `<group>_<session>_<index>`; in earlier releases `uid` is the group.
_SESSION = re.compile(r"(.+)_\d+_\d+")

#: Fields of a dump's line that are not parts of the reward.
_NOT_PARTS = frozenset({"step", "input", "output", "gts", "uid"})

_Key = TypeVar("_Key", str, int)


class Total(NamedTuple):
    """Count, sum, sum of squares, least and most of some numbers, and hashes of the answers beside them."""

    n: int
    sum: float
    squares: float
    least: float
    most: float
    answers: frozenset[int] = frozenset()

    def plus(self, other: Total) -> Total:
        """Return the total of both."""
        sums = self.n + other.n, self.sum + other.sum, self.squares + other.squares
        ends = min(self.least, other.least), max(self.most, other.most)
        return Total(*sums, *ends, self.answers | other.answers)


@dataclass
class Sums:
    """What a reward returned for one data source, of training or of validation.

    Attributes:
        n: number of responses.
        start: time of the first call; for a dump, its step as is `end`.
        end: time of the last call.
        totals: the numbers that it returned, and measures of the response.
        groups: the scores of each prompt, by its hash.
        group_limit: prompts with a hash from here on are left out.
        samples: responses with their text.
    """

    n: int = 0
    start: float = inf
    end: float = -inf
    totals: dict[str, Total] = field(default_factory=dict)
    groups: dict[int, Total] = field(default_factory=dict)
    group_limit: int = 1 << 32
    samples: list[ResponseSample] = field(default_factory=list)

    def include(self, other: Sums) -> None:
        """Add the sums of another process, slot or source."""
        self.n += other.n
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        _include(self.totals, other.totals, MAX_KEYS)
        groups = {key: one for key, one in other.groups.items() if key < self.group_limit}
        _include(self.groups, groups)
        if other.group_limit < self.group_limit:
            self.limit_groups(other.group_limit)
        self.samples += other.samples

    def limit_groups(self, limit: int | None = None) -> None:
        """Keep the prompts below a hash: by default the first of all, the same ones in every process."""
        if limit is None and len(self.groups) > MAX_GROUPS:
            limit = sorted(self.groups)[MAX_GROUPS]
        if limit is not None:
            self.group_limit = limit
            self.groups = {key: one for key, one in self.groups.items() if key < limit}

    @property
    def shared_groups(self) -> list[Total]:
        """The prompts with several responses."""
        return [group for group in self.groups.values() if group.n > 1]


def _include(mine: dict[_Key, Total], others: Mapping[_Key, Total], most: float = inf) -> None:
    for key, total in others.items():
        if key in mine:
            mine[key] = mine[key].plus(total)
        elif len(mine) < most:
            mine[key] = total


@dataclass
class Slot:
    """The responses of a step, or of a second or more: sums by data source and by whether of validation."""

    sources: dict[tuple[str, bool], Sums] = field(default_factory=dict)

    def include(self, source: str, is_validation: bool, sums: Sums) -> Sums:
        """Add sums to those of their data source, or to `other` if there are too many; return these."""
        key = source, is_validation
        if key not in self.sources and len(self.sources) >= MAX_SOURCES:
            key = OTHER, is_validation
        mine = self.sources.setdefault(key, Sums())
        mine.include(sums)
        return mine

    @property
    def start(self) -> float:
        """Time of the first call."""
        return min(sums.start for sums in self.sources.values())

    @property
    def end(self) -> float:
        """Time of the last call."""
        return max(sums.end for sums in self.sources.values())

    def count(self, *, is_validation: bool) -> int:
        """Return the number of responses of training or of validation."""
        return sum(sums.n for key, sums in self.sources.items() if key[1] is is_validation)


def merge_slots(slots: Iterable[tuple[int, Slot]]) -> dict[int, Slot]:
    """Return the slots with the same number as one, in the order of the numbers."""
    merged: dict[int, Slot] = {}
    for number, slot in sorted(slots, key=lambda item: item[0]):
        whole = merged.setdefault(number, Slot())
        for key, sums in slot.sources.items():
            whole.include(*key, sums)
    return merged


def has_records(folder: Path) -> bool:
    """Return whether a folder has files of records."""
    return any(folder.glob(PATTERN))


def has_dumps(folder: Path) -> bool:
    """Return whether a folder has dumps of verl."""
    return any(_DUMP.fullmatch(file.name) for file in folder.glob("*.jsonl"))


def read_rewards(folder: Path | str) -> RewardRecords:
    """Read the records or the dumps of a run.

    Raises:
        SourceError: the folder or a file of it cannot be read.
        DataError: the folder has neither.
    """
    records = RewardRecords(Path(folder))
    if not records.poll(is_last=True):
        first = "".join(f" {item.where}: {item.reason}." for item in records.examples[:1])
        if records.unread:
            raise DataError(f"{folder}: no response with a score in its .jsonl files.{first}")
        raise DataError(
            f"{folder}: the folder has no reward records ({PATTERN}) and no rollout dumps "
            "(<step>.jsonl). Give the reward reward_kwargs.record=FOLDER, or verl "
            "trainer.rollout_data_dir=FOLDER."
        )
    return records


@dataclass
class _File:
    """A file as far as it is read; `step` is that of a dump, `start` and `end` are times of calls."""

    path: Path
    inode: int
    step: int | None
    lines: LineFeed
    at: int = 0
    start: float = inf
    end: float = -inf


class RewardRecords:
    """What a reward returned in a run, in files that may grow; each poll reads only what is new.

    Attributes:
        folder: the folder of the files.
        since: records of earlier calls are left out, as a second run may record into the folder of a first.
        rewrites: how often a file was replaced or removed, so that all were read again.
        lost: calls that a recorder could not write.
        unread: lines that are unreadable; they are left out.
        examples: the first of them.
    """

    def __init__(self, folder: Path, since: float = 0.0) -> None:
        self.folder = folder
        self.since = since
        self.rewrites = 0
        self._begin()

    def _begin(self) -> None:
        self._files: dict[str, _File] = {}
        self._slots: dict[int, Slot] = {}
        self.width = SLOT_SECONDS
        self.sample_count, self.sample_share = 0, 1.0
        self.chooser = Random(0)  # noqa: S311 - not a secret
        self.lost = self.unread = 0
        self.examples: list[UnreadLine] = []

    @property
    def is_dumped(self) -> bool:
        """Whether the files are verl's dumps, whose slots have the step as their time."""
        return any(file.step is not None for file in self._files.values())

    @property
    def slots(self) -> list[Slot]:
        """The responses by step or time, in order."""
        since = 0.0 if self.is_dumped else self.since
        slots = [self._slots[number] for number in sorted(self._slots)]
        return [slot for slot in slots if slot.start >= since]

    @property
    def generations(self) -> list[float]:
        """When the run began and when it was started again.

        These are the starts of processes that began after all earlier ones had made their last call.
        """
        starts, end = [], -inf
        for file in sorted(self._files.values(), key=lambda file: (file.start, file.end)):
            if file.start > end and self.since <= file.start < inf:
                starts.append(file.start)
            end = max(end, file.end)
        return starts

    def poll(self, *, is_last: bool = False) -> bool:
        """Read what is new; return whether there is any response, and the files have grown.

        Args:
            is_last: also read a last line of a dump that has no end.

        Raises:
            SourceError: the folder or a file of it cannot be read.
        """
        try:
            if self._is_replaced():
                self._begin()
                self.rewrites += 1
            has_grown = sum([self._read_file(*each) for each in self._paths()]) > 0
        except OSError as error:
            if isinstance(error, SourceError):
                raise
            raise unreadable_file(self.folder, error) from error
        for file in self._files.values() if is_last else ():
            if file.step is not None:
                self._read_lines(file, file.lines.finish())
        return has_grown and bool(self._slots)

    def _is_replaced(self) -> bool:
        for file in self._files.values():
            try:
                status = file.path.stat()
            except FileNotFoundError:
                return True
            if status.st_ino != file.inode or status.st_size < file.at:
                return True
        return False

    def _paths(self) -> list[tuple[Path, int | None]]:
        if not self.folder.is_dir():
            problem = "not a folder" if self.folder.exists() else "no such folder"
            raise SourceError(f"{self.folder}: {problem}; name the folder of the records.")
        records = [(path, None) for path in sorted(self.folder.glob(PATTERN)) if path.is_file()]
        dumps = [(file, _DUMP.fullmatch(file.name)) for file in self.folder.iterdir()]
        steps = sorted((int(match[1]), file) for file, match in dumps if match)
        paths: list[tuple[Path, int | None]] = [*records] or [(file, step) for step, file in steps]
        if len(paths) > MAX_FILES:
            raise DataError(f"{self.folder}: more than {MAX_FILES:,} files; name another folder.")
        return paths

    def _read_file(self, path: Path, step: int | None) -> bool:
        known = self._files.get(path.name)
        if known and path.stat().st_size == known.at:
            return False
        with path.open("rb") as stream:
            inode = os.fstat(stream.fileno()).st_ino
            file = known or _File(path, inode, step, LineFeed(MAX_LINE_BYTES))
            self._files[path.name] = file
            before = file.at
            stream.seek(before)
            while data := stream.read(CHUNK_BYTES):
                file.at += len(data)
                self._read_lines(file, file.lines.feed(data))
        return file.at > before

    def _read_lines(self, file: _File, lines: Iterator[bytes | LongLine]) -> None:
        for line in lines:
            if isinstance(line, LongLine):
                reason = line.reason
            elif not line.strip():  # an empty one ends a line that a full disk cut
                continue
            else:
                reason = self._read_line(file, line)
            if reason:
                self.unread += 1
                if len(self.examples) < MAX_EXAMPLES:
                    where = f"{file.path.name}:{file.lines.number}"
                    self.examples.append(UnreadLine(where, reason))

    def _read_line(self, file: _File, line: bytes) -> str:
        """Add a response; return why it cannot be read, or ""."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return "not JSON"
        try:
            record = record if file.step is None else _record_of_dump(record, file.step)
            key, sums, lost = *_sums(record), _count(record.get("lost", 0))
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):
            if file.step is None:
                return "not a line of a recorder"
            return "not an object with a numeric 'score'"
        self.lost += lost
        file.start, file.end = min(file.start, sums.start), max(file.end, sums.end)
        self._add(key, sums, int(sums.end // self.width) if file.step is None else file.step)
        if file.step is None and len(self._slots) > MAX_SLOTS:
            self.width *= 2
            self._slots = merge_slots((number // 2, slot) for number, slot in self._slots.items())
        return ""

    def _add(self, key: tuple[str, bool], sums: Sums, number: int) -> None:
        if sums.samples and self.chooser.random() >= self.sample_share:
            sums.samples = []
        self.sample_count += len(sums.samples)
        mine = self._slots.setdefault(number, Slot()).include(*key, sums)
        if self.sample_count > MAX_SAMPLES:
            self._thin_samples()
        if len(mine.groups) >= 2 * MAX_GROUPS and not self.is_dumped:
            mine.limit_groups()

    def _thin_samples(self) -> None:
        self.sample_share /= 2
        self.sample_count = 0
        for sums in (sums for slot in self._slots.values() for sums in slot.sources.values()):
            sums.samples = [each for each in sums.samples if self.chooser.random() < 0.5]
            self.sample_count += len(sums.samples)


def _record_of_dump(row: Mapping[str, Any], step: int) -> dict[str, Any]:
    """Return the line of a dump as a recorder would write it, its step in place of the time."""
    text, prompt, uid = str(row.get("output", "")), str(row.get("input", "")), row.get("uid")
    session = _SESSION.fullmatch(str(uid))
    group = hash_of(prompt) if uid is None else session[1] if session else uid
    result = {str(key): value for key, value in row.items() if key not in _NOT_PARTS}
    if not isinstance(result.get("pred"), (str, int, float)):
        result["pred"] = stated_answer(text)
    info, gold = {"index": str(group)}, row.get("gts")
    source = row.get("data_source") or ""
    record = record_of(result, text, source, "" if gold is None else gold, info, has_text=True)
    return {**record, "time": step, "score": record["values"]["score"]}


def _sums(record: Mapping[str, Any]) -> tuple[tuple[str, bool], Sums]:
    """Return the data source of a record, and whether it is of validation, with the sums of one response.

    Raises:
        KeyError, TypeError, ValueError, OverflowError, AttributeError: it is not such a line.
    """
    time, seconds = _number(record["time"]), _number(record.get("seconds", 0.0))
    if not 0 <= time < LATEST:
        raise ValueError(f"{time!r} is not a time")
    values = {str(key): _number(value) for key, value in record["values"].items()}
    numbers = {**values, "response_characters": _count(record["characters"])}
    if "seconds" in record:
        numbers["seconds"] = seconds
    gold, score = record.get("gold"), values.get("score")
    if gold is not None:
        numbers["states_gold"] = bool(gold)
        if score is not None:
            numbers["score_with_gold" if gold else "score_without_gold"] = score
    source, samples = str(record["source"])[:MAX_NAME_CHARACTERS], []
    if (text := record.get("response")) is not None:
        sample = ResponseSample(
            step=0,
            response=cut(str(text), MAX_RESPONSE_CHARACTERS),
            score=float("nan") if score is None else score,
            pred=str(record.get("pred", ""))[:MAX_NAME_CHARACTERS],
            data_source=source,
            index=str(record.get("index", "")),
            gold=None if gold is None else bool(gold),
            parts=values,
        )
        samples.append(sample)
    prompt, answer = _count(record["prompt"]), _count(record["answer"])
    sums = Sums(
        n=1,
        start=time - seconds,
        end=time,
        totals={key: Total(1, x, x * x, x, x) for key, x in numbers.items()},
        groups={prompt: Total(1, 0.0, 0.0, score or 0.0, score or 0.0, frozenset([answer]))},
        samples=samples,
    )
    return (source, bool(record.get("validation"))), sums


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    if not isfinite(number) or abs(number) >= LARGEST:
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is not a count")
    return value
