"""Reads what a reward returned, once or as it grows: lines of its recorder, or verl's rollout dumps.

A dump is a file `<step>.jsonl` in `trainer.rollout_data_dir`, with `input`, `output`, `gts`, `score`, in
newer releases `uid`, and what the reward returned besides; the default trainer of verl 0.9.1 leaves that
out. The lines of a recorder have times instead of steps (`recorder/writer.py`). Either way a line is one
response, and becomes a row of numbers; the texts of some responses are samples.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError, SourceError, unreadable_file
from rewardkit.jsonl import MAX_LINE_BYTES, LongLine
from rewardkit.recorder.gold import stated_answer
from rewardkit.recorder.writer import LARGEST, MAX_NAME_CHARACTERS, PATTERN, cut, hash_of, record_of
from rewardkit.trainlog.files import GrowingFile, LineFeed
from rewardkit.trainlog.training_run import MAX_EXAMPLES, ResponseSample, UnreadLine

if TYPE_CHECKING:
    import pyarrow as pa

#: Files of a folder: processes of a run with its restarts, or steps.
MAX_FILES = 20_000

#: Numbers in memory, of 8 bytes each; with more, every second response is left out, again and again.
MAX_NUMBERS = 1 << 25

#: Data sources, and numbers of a result; those of more are called `other`, or left out.
MAX_SOURCES, MAX_KEYS = 64, 128

#: Responses of a folder whose texts are samples; beyond this, half of them are left out, again and again.
MAX_SAMPLES = 8_192

#: Characters of a sample: half of them from its start, half from its end.
MAX_RESPONSE_CHARACTERS = 4_000

#: The latest plausible time, in seconds since 1970.
LATEST = 1e11

OTHER = "other"

#: What is known of each row besides the numbers of its result. `time` is when the call ended, or the step.
FIELDS = ("time", "start", "source", "validation", "prompt", "answer")

#: Before the name of a number of the result, so that it is not a field.
VALUE = "value:"

_DUMP = re.compile(r"(\d{1,12})\.jsonl")

#: 0.9's trainer names a response `<group>_<session>_<index>`; in earlier releases `uid` is the group.
_SESSION = re.compile(r"(.+)_\d+_\d+")

#: Fields of a dump's line that are not parts of the reward.
_NOT_PARTS = frozenset({"step", "input", "output", "gts", "uid"})


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
class _RecordFile:
    """A file as far as it is read; `step` is that of a dump, `start` and `end` are times of calls."""

    data: GrowingFile
    step: int | None
    lines: LineFeed
    start: float = inf
    end: float = -inf


class RewardRecords:
    """What a reward returned in a run, in files that may grow; each poll reads only what is new.

    Records of calls before `since` are left out: a second run may record into the folder of a first.
    `rewrites` counts how often files were replaced or removed, so that all were read again. `columns` has
    the numbers by name (see `FIELDS`), NaN where a response has none; each row stands for `weight`
    responses. `samples` are rows with the texts of their response. `unread` lines are left out.
    """

    def __init__(self, folder: Path, since: float = 0.0) -> None:
        self.folder = folder
        self.since = since
        self.rewrites = 0
        self._begin()

    def _begin(self) -> None:
        self._files: dict[str, _RecordFile] = {}
        self.columns = {name: array("d") for name in (*FIELDS, f"{VALUE}score")}
        self.sources: list[str] = []
        self.samples: list[tuple[int, ResponseSample]] = []
        self.weight, self._calls, self._sampled = 1, 0, 1.0
        self._random = Random(0)  # noqa: S311 - not a secret
        self.unread = 0
        self.examples: list[UnreadLine] = []

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.columns["time"])

    @property
    def is_dumped(self) -> bool:
        """Whether the files are verl's dumps, whose rows have the step as their time."""
        return any(file.step is not None for file in self._files.values())

    @property
    def starts(self) -> list[float]:
        """When the run began and when it was started again.

        These are the starts of processes that began after all earlier ones had made their last call.
        """
        starts, end = [], -inf
        for file in sorted(self._files.values(), key=lambda file: (file.start, file.end)):
            if end < file.start < inf:
                starts.append(file.start)
            end = max(end, file.end)
        return starts

    def table(self, steps: array[int]) -> pa.Table:
        """Return the rows with the step of each as a table; a row with the step -1 is left out."""
        import pyarrow as pa
        import pyarrow.compute as pc

        arrays: dict[str, array[Any]] = {"step": steps, **self.columns}
        columns = {}
        for name, column in arrays.items():
            kind = pa.float64() if column.typecode == "d" else pa.int64()
            values = pa.Array.from_buffers(kind, self.count, [None, pa.py_buffer(column.tobytes())])
            columns[name] = pc.if_else(pc.is_nan(values), None, values)
        return pa.table(columns).filter(pc.field("step") >= 0)

    def poll(self, *, is_last: bool = False) -> bool:
        """Read what is new; return whether there is any response, and the files have grown.

        Args:
            is_last: also read a last line of a dump that has no end.

        Raises:
            SourceError: the folder or a file of it cannot be read.
        """
        try:
            if any(file.data.is_replaced() for file in self._files.values()):
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
        return has_grown and self.count > 0

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
        file = self._files.get(path.name)
        if file is None:
            file = _RecordFile(GrowingFile(path), step, LineFeed(MAX_LINE_BYTES))
            self._files[path.name] = file
        elif path.stat().st_size == file.data.size:
            return False
        before = file.data.size
        for data in file.data.read():
            self._read_lines(file, file.lines.feed(data))
        return file.data.size > before

    def _read_lines(self, file: _RecordFile, lines: Iterator[bytes | LongLine]) -> None:
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
                    where = f"{file.data.path.name}:{file.lines.number}"
                    self.examples.append(UnreadLine(where, reason))

    def _read_line(self, file: _RecordFile, line: bytes) -> str:
        """Add a response; return why it cannot be read, or ""."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return "not JSON"
        try:
            record = record if file.step is None else _record_of_dump(record, file.step)
            source, row, sample = _row_of(record)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):
            if file.step is None:
                return "not a line of a recorder"
            return "not an object with a numeric 'score'"
        if file.step is None and row["start"] < self.since:
            return ""
        file.start, file.end = min(file.start, row["start"]), max(file.end, row["time"])
        self._calls += 1
        if (self._calls - 1) % self.weight == 0:
            self._add(source, row, sample)
        return ""

    def _add(self, source: str, row: dict[str, float], sample: ResponseSample | None) -> None:
        if source not in self.sources:
            source = source if len(self.sources) < MAX_SOURCES else OTHER
            self.sources += [source] * (source not in self.sources)
        row["source"] = self.sources.index(source)
        if sample and self._random.random() < self._sampled:
            self.samples.append((self.count, sample))
        room = len(FIELDS) + MAX_KEYS - len(self.columns)
        for name in [name for name in row if name not in self.columns][:room]:
            self.columns[name] = array("d", [nan]) * self.count
        for name, column in self.columns.items():
            column.append(row.get(name, nan))
        if len(self.samples) > MAX_SAMPLES:
            self._sampled /= 2
            self.samples = [each for each in self.samples if self._random.random() < 0.5]
        if self.count * len(self.columns) > MAX_NUMBERS:
            self.columns = {name: column[::2] for name, column in self.columns.items()}
            self.weight *= 2
            self.samples = [(row // 2, sample) for row, sample in self.samples]


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


def _row_of(record: Mapping[str, Any]) -> tuple[str, dict[str, float], ResponseSample | None]:
    """Return the data source of a record, its numbers, and its texts if it has them.

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
    source = str(record["source"])[:MAX_NAME_CHARACTERS]
    row: dict[str, float] = {
        "time": time,
        "start": time - seconds,
        "validation": bool(record.get("validation")),
        "prompt": _count(record["prompt"]),
        "answer": _count(record["answer"]),
    }
    row |= {f"{VALUE}{key}": number for key, number in numbers.items()}
    if (text := record.get("response")) is None or score is None or row["validation"]:
        return source, row, None
    sample = ResponseSample(
        step=0,
        response=cut(str(text), MAX_RESPONSE_CHARACTERS),
        score=score,
        pred=str(record.get("pred", ""))[:MAX_NAME_CHARACTERS],
        data_source=source,
        index=str(record.get("index", "")),
        gold=None if gold is None else bool(gold),
        parts=values,
    )
    return source, row, sample


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) else float("nan")
    if not isfinite(number) or abs(number) >= LARGEST:
        raise ValueError(f"{value!r} is not a finite number")
    return number


def _count(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is not a count")
    return value
