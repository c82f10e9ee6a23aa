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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from rewardkit.errors import DataError, SourceError, unreadable_file
from rewardkit.jsonl import MAX_LINE_BYTES, LongLine
from rewardkit.recorder.gold import stated_answer, states_gold
from rewardkit.recorder.writer import LARGEST, MAX_NAME_CHARACTERS, PATTERN
from rewardkit.trainlog.text_measures import has_copied_question, has_several_answers
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


class Response(NamedTuple):
    """A line: one response with what the reward returned; `text` is None if it was not written."""

    time: float
    seconds: float | None
    source: str
    is_validation: bool
    values: Mapping[str, float]
    characters: float
    prompt: int
    answer: int
    gold: bool | None
    text: str | None = None
    question: str = ""
    pred: str = ""
    prompt_id: str = ""


@dataclass
class Total:
    """Count, sum, sum of squares, least and most of some numbers."""

    count: int = 0
    sum: float = 0.0
    squares: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, number: float) -> None:
        """Add a number."""
        self.include(Total(1, number, number * number, number, number))

    def include(self, other: Total) -> None:
        """Add another total."""
        self.count += other.count
        self.sum += other.sum
        self.squares += other.squares
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)


@dataclass
class Group:
    """The responses to a prompt: how many, their least and most score, and hashes of their answers."""

    count: int = 0
    least: float = float("inf")
    most: float = float("-inf")
    answers: set[int] = field(default_factory=set)

    def include(self, other: Group) -> None:
        """Add responses to the same prompt."""
        self.count += other.count
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.answers |= other.answers


@dataclass
class Sums:
    """What a reward returned for one data source, of training or of validation."""

    count: int = 0
    totals: dict[str, Total] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)
    group_limit: int = 1 << 32
    samples: list[ResponseSample] = field(default_factory=list)

    def add(self, response: Response) -> None:
        """Add a response."""
        self.count += 1
        numbers = {**response.values, "response_characters": response.characters}
        if response.seconds is not None:
            numbers["seconds"] = response.seconds
        score = response.values.get("score")
        if response.gold is not None:
            numbers["states_gold"] = response.gold
            if score is not None:
                numbers["score_with_gold" if response.gold else "score_without_gold"] = score
        if response.text is not None:
            numbers["several_boxes"] = has_several_answers(response.text)
            if response.question:
                numbers["copied_prompt"] = has_copied_question(response.text, response.question)
        for key, number in numbers.items():
            total = self.totals.get(key)
            if total is None:
                if len(self.totals) >= MAX_KEYS:
                    continue
                total = self.totals[key] = Total()
            total.add(number)
        if response.prompt < self.group_limit:
            score = 0.0 if score is None else score
            one = Group(1, score, score, {response.answer})
            self.groups.setdefault(response.prompt, Group()).include(one)

    def include(self, other: Sums) -> None:
        """Add the sums of another process or slot."""
        self.count += other.count
        for key, total in other.totals.items():
            if key in self.totals or len(self.totals) < MAX_KEYS:
                self.totals.setdefault(key, Total()).include(total)
        for prompt, group in other.groups.items():
            self.groups.setdefault(prompt, Group()).include(group)
        self.group_limit = min(self.group_limit, other.group_limit)
        self.groups = {p: group for p, group in self.groups.items() if p < self.group_limit}
        self.samples += other.samples

    def limit_groups(self, most: int = MAX_GROUPS) -> None:
        """Keep the prompts with the lowest hashes, which are the same in every process."""
        if len(self.groups) > most:
            self.group_limit = sorted(self.groups)[most]
            self.groups = {p: group for p, group in self.groups.items() if p < self.group_limit}

    @property
    def shared_groups(self) -> list[Group]:
        """The prompts with several responses."""
        return [group for group in self.groups.values() if group.count > 1]


@dataclass
class Slot:
    """The responses of a step, or of a second or more.

    Attributes:
        start: time of the first call; for a dump, its step as is `end`.
        end: time of the last call.
        sources: sums by data source and by whether its rows are of validation.
    """

    start: float
    end: float
    sources: dict[tuple[str, bool], Sums] = field(default_factory=dict)

    def sums(self, source: str, is_validation: bool) -> Sums:
        """Return the sums of a data source, or those of `other` if there are too many."""
        key = source, is_validation
        if key not in self.sources and len(self.sources) >= MAX_SOURCES:
            key = OTHER, is_validation
        return self.sources.setdefault(key, Sums())

    def include(self, other: Slot) -> None:
        """Add another slot."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        for key, sums in other.sources.items():
            self.sums(*key).include(sums)

    def count(self, *, is_validation: bool) -> int:
        """Return the number of responses of training or of validation."""
        return sum(sums.count for key, sums in self.sources.items() if key[1] is is_validation)


@dataclass(frozen=True)
class RewardRecords:
    """What a reward returned in a run.

    Attributes:
        folder: the folder of the files.
        is_dumped: whether they are verl's dumps, so that `steps` has the step of each slot.
        processes: number of files with responses.
        slots: in order of time.
        steps: the step of each slot of a dump.
        generations: when the run began and when it was started again: the starts of processes that
            began after all earlier ones had made their last call.
        lost: calls that a recorder could not write.
        unread: lines that are unreadable; they are left out.
        examples: the first of them.
    """

    folder: str
    is_dumped: bool
    processes: int
    slots: tuple[Slot, ...]
    steps: tuple[int, ...] = ()
    generations: tuple[float, ...] = ()
    lost: int = 0
    unread: int = 0
    examples: tuple[UnreadLine, ...] = ()


def has_records(folder: Path) -> bool:
    """Return whether a folder has files of records."""
    return any(folder.glob(PATTERN))


def has_dumps(folder: Path) -> bool:
    """Return whether a folder has dumps of verl."""
    return any(_DUMP.fullmatch(file.name) for file in folder.iterdir())


def read_rewards(folder: Path | str) -> RewardRecords:
    """Read the records or the dumps of a run.

    Raises:
        SourceError: the folder or a file of it cannot be read.
        DataError: the folder has neither.
    """
    tail = RewardTail(Path(folder))
    records = tail.poll(is_last=True)
    if records is None:
        first = "".join(f" {item.where}: {item.reason}." for item in tail.examples[:1])
        if tail.unread:
            raise DataError(f"{folder}: no response with a score in its .jsonl files.{first}")
        raise DataError(
            f"{folder}: the folder has no reward records ({PATTERN}) and no rollout dumps "
            "(<step>.jsonl). Give the reward reward_kwargs.record=FOLDER, or verl "
            "trainer.rollout_data_dir=FOLDER."
        )
    return records


@dataclass
class _File:
    """A file as far as it is read; `step` is that of a dump."""

    path: Path
    inode: int
    step: int | None
    at: int = 0
    line: int = 0
    rest: bytes = b""
    dropped: int = 0
    start: float = 0.0
    end: float = 0.0


class RewardTail:
    """A folder that grows; each poll reads only what is new.

    Attributes:
        folder: the folder.
        rewrites: how often a file was replaced or removed, so that all were read again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rewrites = 0
        self._begin()

    def _begin(self) -> None:
        self.files: dict[str, _File] = {}
        self.slots: dict[int, Slot] = {}
        self.width = SLOT_SECONDS
        self.sample_count, self.sample_share = 0, 1.0
        self.chooser = Random(0)  # noqa: S311 - not a secret
        self.lost = self.unread = 0
        self.examples: list[UnreadLine] = []

    def poll(self, *, is_last: bool = False) -> RewardRecords | None:
        """Return what was recorded so far if there is any and it has grown, else None.

        Args:
            is_last: also read a last line of a dump that has no end.

        Raises:
            SourceError: the folder or a file of it cannot be read.
        """
        try:
            if self.files and self._is_replaced():
                self._begin()
                self.rewrites += 1
            has_grown = sum([self._read_file(*each) for each in self._paths()]) > 0
        except OSError as error:
            if isinstance(error, SourceError):
                raise
            raise unreadable_file(self.folder, error) from error
        for file in self.files.values():
            if is_last and file.step is not None and (file.rest or file.dropped):
                self._feed(file, b"\n")
        return self._records() if has_grown else None

    def _is_replaced(self) -> bool:
        for file in self.files.values():
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
        known = self.files.get(path.name)
        if known and path.stat().st_size == known.at:
            return False
        with path.open("rb") as stream:
            file = known or _File(path, os.fstat(stream.fileno()).st_ino, step)
            self.files[path.name] = file
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
            file.line += 1
            if file.dropped or len(line) > MAX_LINE_BYTES:
                size, file.dropped = file.dropped + len(line), 0
                self._skip(file, LongLine(size, MAX_LINE_BYTES).reason)
            elif line.strip():  # an empty one ends a line that a full disk cut
                self._read_line(file, line)
        if file.dropped or len(rest) > MAX_LINE_BYTES:
            file.dropped, rest = file.dropped + len(rest), b""
        file.rest = rest

    def _skip(self, file: _File, reason: str) -> None:
        self.unread += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(UnreadLine(f"{file.path.name}:{file.line}", reason))

    def _read_line(self, file: _File, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self._skip(file, "not JSON")
            return
        if isinstance(record, dict) and "rewardkit_rewards" in record:
            raise DataError(
                f"{file.path}: recorded by an earlier development version of rewardkit, which this "
                "one does not read; record the run again, or read verl's dumps."
            )
        try:
            parse = _recorded if file.step is None else _dumped
            response = parse(record)
            lost = _count(record.get("lost", 0))
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):
            self._skip(file, "not an object with a numeric 'score'" if file.step is not None
                       else "not a line of a recorder")  # fmt: skip
            return
        self.lost += lost
        self._add(file, response)

    def _add(self, file: _File, response: Response) -> None:
        start = response.time - (response.seconds or 0.0)
        file.start = min(file.start or start, start)
        file.end = max(file.end, response.time, 1.0)
        step = file.step
        number = int(response.time // self.width) if step is None else step
        slot = self.slots.get(number)
        if slot is None:
            first, last = (start, response.time) if step is None else (step, step)
            slot = self.slots[number] = Slot(first, last)
        elif step is None:
            slot.start, slot.end = min(slot.start, start), max(slot.end, response.time)
        sums = slot.sums(response.source, response.is_validation)
        sums.add(response)
        if step is None:
            if len(sums.groups) >= 2 * MAX_GROUPS:
                sums.limit_groups()
            if len(self.slots) > MAX_SLOTS:
                self._double_width()
        if response.text is not None and self.chooser.random() < self.sample_share:
            sums.samples.append(_sample(response))
            self.sample_count += 1
            if self.sample_count > MAX_SAMPLES:
                self._thin_samples()

    def _thin_samples(self) -> None:
        self.sample_share /= 2
        self.sample_count = 0
        for slot in self.slots.values():
            for sums in slot.sources.values():
                sums.samples = [each for each in sums.samples if self.chooser.random() < 0.5]
                self.sample_count += len(sums.samples)

    def _double_width(self) -> None:
        self.width *= 2
        slots, self.slots = self.slots, {}
        for number, slot in slots.items():
            mine = self.slots.setdefault(number // 2, Slot(slot.start, slot.end))
            mine.include(slot)
            for sums in mine.sources.values():
                sums.limit_groups()

    def _records(self) -> RewardRecords | None:
        active = sorted((file.start, file.end) for file in self.files.values() if file.end)
        if not active:
            return None
        numbers = sorted(self.slots)
        is_dumped = any(file.step is not None for file in self.files.values())
        return RewardRecords(
            folder=str(self.folder),
            is_dumped=is_dumped,
            processes=len(active),
            slots=tuple(self.slots[number] for number in numbers),
            steps=tuple(numbers) if is_dumped else (),
            generations=() if is_dumped else tuple(_generations(active)),
            lost=self.lost,
            unread=self.unread,
            examples=tuple(self.examples),
        )


def _generations(processes: list[tuple[float, float]]) -> Iterator[float]:
    end = float("-inf")
    for start, last in processes:
        if start > end:
            yield start
        end = max(end, last)


def _recorded(record: Mapping[str, Any]) -> Response:
    """Return the response in a line of a recorder.

    Raises:
        KeyError, TypeError, ValueError, OverflowError, AttributeError: it is not such a line.
    """
    time, text = _number(record["time"]), record.get("response")
    if not 0 < time < LATEST:
        raise ValueError(f"{time!r} is not a time")
    gold = record.get("gold")
    return Response(
        time=time,
        seconds=_number(record["seconds"]),
        source=str(record["source"])[:MAX_NAME_CHARACTERS],
        is_validation=bool(record.get("validation")),
        values={str(key): _number(value) for key, value in record["values"].items()},
        characters=_count(record["characters"]),
        prompt=_count(record["prompt"]) % (1 << 32),
        answer=_count(record["answer"]),
        gold=None if gold is None else bool(gold),
        text=None if text is None else str(text),
        question=str(record.get("question", "")),
        pred=str(record.get("pred", ""))[:MAX_NAME_CHARACTERS],
        prompt_id=str(record.get("index", "")),
    )


def _dumped(row: Mapping[str, Any]) -> Response:
    """Return the response in a line of a dump.

    Raises:
        KeyError, TypeError, ValueError, OverflowError, AttributeError: it has no numeric score.
    """
    text, prompt = str(row.get("output", "")), str(row.get("input", ""))
    uid = row.get("uid")
    session = None if uid is None else _SESSION.fullmatch(str(uid))
    group = prompt if uid is None else session[1] if session else str(uid)
    pred = str(
        row["pred"] if isinstance(row.get("pred"), (str, int, float)) else stated_answer(text)
    )
    gold = row.get("gts")
    parts = {
        str(key): float(value)
        for key, value in row.items()
        if key not in _NOT_PARTS and isinstance(value, (int, float)) and abs(value) < LARGEST
    }
    return Response(
        time=0.0,
        seconds=None,
        source=str(row.get("data_source") or "")[:MAX_NAME_CHARACTERS],
        is_validation=False,
        values={**parts, "score": _number(row["score"])},
        characters=len(text),
        prompt=crc32(group.encode("utf-8", "surrogatepass")),
        answer=crc32(pred[:MAX_NAME_CHARACTERS].encode("utf-8", "surrogatepass")),
        gold=None if gold is None else states_gold(text, gold),
        text=text,
        question=prompt,
        pred=pred[:MAX_NAME_CHARACTERS],
        prompt_id=group[:MAX_NAME_CHARACTERS],
    )


def _sample(response: Response) -> ResponseSample:
    """Return a response as it is kept; its step is set when it is known."""
    text, half = response.text or "", MAX_RESPONSE_CHARACTERS // 2
    if (left_out := len(text) - MAX_RESPONSE_CHARACTERS) > 0:
        text = f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"
    return ResponseSample(
        step=0,
        response=text,
        score=response.values.get("score", float("nan")),
        pred=response.pred,
        data_source=response.source,
        index=response.prompt_id,
        gold=response.gold,
        parts=response.values,
    )


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    if not isfinite(number) or abs(number) >= LARGEST:
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is not a count")
    return value
