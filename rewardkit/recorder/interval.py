"""The aggregates of one interval of a process: numbers that add up across processes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from operator import mul
from typing import Any, NamedTuple
from zlib import crc32

from rewardkit.errors import call_catching
from rewardkit.recorder.text_measures import has_copied_question, has_several_answers

#: Different data sources of a process; the calls of others are counted under `other`.
MAX_DATA_SOURCES = 32

#: Numeric keys of a data source; others are left out.
MAX_KEYS = 64

#: Characters of a data source, of a key, and of an answer in a sample.
MAX_NAME_CHARACTERS = 200

#: Responses of an interval and a data source whose text is measured.
MEASURED_RESPONSES = 64

#: Pairs (group, answer) of an interval and a data source.
MAX_PAIRS = 256

#: Characters of each end of a response that are kept and measured.
END_CHARACTERS = 4_000

#: Characters of a sample's response: half of them from its start, half from its end.
SAMPLE_CHARACTERS = 4_000

#: Numbers beyond this have no square; they count as not finite.
LARGEST = 1e150

#: Seconds of a call beyond which its start is not believed.
LONGEST = 1e6

#: One more than the largest hash of a group.
HASHES = 1 << 32

OTHER = "other"

_PLAIN = frozenset({float, int, bool})


class Call(NamedTuple):
    """One call of a reward, as `Recorder.add` gets it, with its time.

    A response of more than twice `END_CHARACTERS` is only its two ends; `characters` is its length.
    """

    time: float
    result: Mapping[str, Any]
    response: str
    characters: int
    data_source: str
    ground_truth: str
    extra_info: Mapping[str, Any]
    seconds: float


@dataclass
class Total:
    """Count, sum, sum of squares, least and most of some numbers; totals of processes add up."""

    count: int = 0
    sum: float = 0.0
    squares: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def add(self, numbers: Sequence[float]) -> int:
        """Add finite numbers; return how many others there are."""
        usable = numbers if _PLAIN.issuperset(map(type, numbers)) else _finite_numbers(numbers)
        total = _total_of(usable)
        if total is None:
            usable = _finite_numbers(numbers)
            total = _total_of(usable)
        if total is not None:
            self.include(total)
        return len(numbers) - len(usable)

    def include(self, other: Total) -> None:
        """Add another total."""
        if other.count == 0:
            return
        is_first = self.count == 0
        self.least = other.least if is_first else min(self.least, other.least)
        self.most = other.most if is_first else max(self.most, other.most)
        self.count += other.count
        self.sum += other.sum
        self.squares += other.squares

    def as_list(self) -> list[float]:
        """Return the five numbers, for JSON."""
        return [self.count, self.sum, self.squares, float(self.least), float(self.most)]


@dataclass
class SourceInterval:
    """The calls of one data source, of training or of validation, in an interval."""

    count: int = 0
    values: dict[str, Total] = field(default_factory=dict)
    characters: Total = field(default_factory=Total)
    seconds: Total = field(default_factory=Total)
    not_finite: int = 0
    pair_limit: int = HASHES
    pairs: list[tuple[int, int]] = field(default_factory=list)
    reservoir: list[Call] = field(default_factory=list)

    def add(self, calls: Sequence[Call], keys: Iterable[str]) -> None:
        """Add calls whose results have the same keys."""
        columns = zip(*(call.result.values() for call in calls), strict=True)
        for key, column in zip(keys, columns, strict=True):
            self._add_column(key, column)
        self.characters.add([call.characters for call in calls])
        self.seconds.add([call.seconds for call in calls])
        self._add_to_reservoir(calls)
        self.count += len(calls)

    def _add_column(self, key: str, column: Sequence[Any]) -> None:
        if type(key) is not str:
            return
        total = self.values.get(key)
        if total is None:
            if not _is_number(column[0]) or len(self.values) >= MAX_KEYS:
                return
            total = self.values[key] = Total()
        self.not_finite += total.add(column)

    def _add_to_reservoir(self, calls: Sequence[Call]) -> None:
        """Keep a uniform sample of the interval's calls: algorithm R."""
        reservoir, draw, count = self.reservoir, random.random, self.count
        for call in calls:
            count += 1
            if len(reservoir) < MEASURED_RESPONSES:
                reservoir.append(call)
            elif (place := int(draw() * count)) < MEASURED_RESPONSES:
                reservoir[place] = call

    def add_pairs(self, data_source: str, calls: Iterable[Call]) -> None:
        """Add (group, answer) of the groups with the lowest hashes.

        Every process chooses the same groups, because the responses of one prompt may be scored in
        different processes.
        """
        seed = crc32(data_source.encode("utf-8", "surrogatepass"))
        for call in calls:
            group = _group_hash(seed, call)
            if group < self.pair_limit:
                self.pairs.append((group, hash_of(text_of(call.result.get("pred")))))
                if len(self.pairs) > 2 * MAX_PAIRS:
                    self.limit_pairs()

    def limit_pairs(self) -> None:
        """Drop the groups with the highest hashes until the pairs are within their limit."""
        if len(self.pairs) > MAX_PAIRS:
            self.pairs.sort()
            self.pair_limit = self.pairs[MAX_PAIRS][0]
            self.pairs = [pair for pair in self.pairs if pair[0] < self.pair_limit]


class Interval:
    """The aggregates since the last line that was written."""

    def __init__(self) -> None:
        self.start = float("inf")
        self.end = float("-inf")
        self.unusable = 0
        self.sources: dict[tuple[str, bool], SourceInterval] = {}

    def add(self, calls: Sequence[Call]) -> None:
        """Add calls, grouped so that each key is one column of numbers."""
        groups: defaultdict[Any, list[Call]] = defaultdict(list)
        for call in calls:
            split = call.extra_info.get("split") if call.extra_info else None
            is_validation = isinstance(split, str) and split != "train"
            groups[call.data_source, is_validation, tuple(call.result)].append(call)
        for (data_source, is_validation, keys), members in groups.items():
            source = self._source(data_source, is_validation)
            source.add(members, keys)
            source.add_pairs(data_source, members)
        # A duration that cannot be one, such as infinity, must not make the interval unreadable.
        starts = (c.time - c.seconds if 0 <= c.seconds < LONGEST else c.time for c in calls)
        self.start = min(self.start, *starts)
        self.end = max(self.end, *(call.time for call in calls))

    def _source(self, data_source: str, is_validation: bool) -> SourceInterval:
        key = data_source[:MAX_NAME_CHARACTERS], bool(is_validation)
        if key not in self.sources and len(self.sources) >= MAX_DATA_SOURCES:
            key = OTHER, bool(is_validation)
        return self.sources.setdefault(key, SourceInterval())

    def record(self, samples: int) -> dict[str, Any]:
        """Return the interval as a JSON object, with up to `samples` samples of each source."""
        sources = [
            {
                "data_source": _printable(name),
                "validation": is_validation,
                **_source_record(source, samples),
            }
            for (name, is_validation), source in self.sources.items()
        ]
        return {"start": self.start, "end": self.end, "unusable": self.unusable, "sources": sources}


def _source_record(source: SourceInterval, samples: int) -> dict[str, Any]:
    source.limit_pairs()
    several = [has_several_answers(call.response) for call in source.reservoir]
    questions = [(call.response, _question(call)) for call in source.reservoir]
    copied = [has_copied_question(text, question) for text, question in questions if question]
    chosen = random.sample(source.reservoir, min(samples, len(source.reservoir)))
    return {
        "count": source.count,
        "values": {_printable(key): total.as_list() for key, total in source.values.items()},
        "characters": source.characters.as_list(),
        "seconds": source.seconds.as_list(),
        "not_finite": source.not_finite,
        "several_boxes": [len(several), sum(several)],
        "copied_prompt": [len(copied), sum(copied)],
        "pair_limit": source.pair_limit,
        "pairs": "".join(f"{group:08x}{answer:08x}" for group, answer in source.pairs),
        "samples": [_sample(call) for call in chosen],
    }


def _sample(call: Call) -> dict[str, Any]:
    numbers = {
        _printable(key): finite_number(value)
        for key, value in list(call.result.items())[:MAX_KEYS]
        if isinstance(key, str)
    }
    return {
        "time": call.time,
        "index": _printable(text_of(_index(call))),
        "response": _printable(_shorten(call.response, call.characters)),
        "pred": _printable(text_of(call.result.get("pred"))),
        "values": {key: number for key, number in numbers.items() if number is not None},
    }


def _shorten(response: str, characters: int) -> str:
    """Return a response, or its start and its end with a note about what is left out."""
    left_out = characters - SAMPLE_CHARACTERS
    if left_out <= 0:
        return response
    half = SAMPLE_CHARACTERS // 2
    return f"{response[:half]}\n[... {left_out:,} characters left out ...]\n{response[-half:]}"


def finite_number(value: Any) -> float | None:
    """Return a value as a number that has a square, else None."""
    number = call_catching(float, value) if _is_number(value) else None
    return number if isinstance(number, float) and abs(number) < LARGEST else None


def text_of(value: Any) -> str:
    """Return an answer or an index as text, up to a limit; "" for None."""
    if type(value) is str:
        return value[:MAX_NAME_CHARACTERS]
    text = "" if value is None else call_catching(str, value)
    return text[:MAX_NAME_CHARACTERS] if isinstance(text, str) else ""


def hash_of(text: str, seed: int = 0) -> int:
    """Return a hash of a text below 2^32, the same in every process."""
    return _mix(crc32(text.encode("utf-8", "surrogatepass"), seed))


def _mix(number: int) -> int:
    """Spread neighbouring numbers, so that the lowest hashes are a fair choice."""
    number = (number ^ number >> 16) * 0x45D9F3B & 0xFFFFFFFF
    number = (number ^ number >> 16) * 0x45D9F3B & 0xFFFFFFFF
    return number ^ number >> 16


def _is_number(value: Any) -> bool:
    return hasattr(type(value), "__float__") and not isinstance(value, str)


def _total_of(numbers: Sequence[float]) -> Total | None:
    """Return the total of Python's own numbers; None if there is none, or it is not finite."""
    if not numbers:
        return None
    least, most = min(numbers), max(numbers)
    if not (least > -LARGEST and most < LARGEST):
        return None
    total, squares = sum(numbers), sum(map(mul, numbers, numbers))
    # A NaN may hide from min and max, but not from the sum.
    return Total(len(numbers), total, squares, least, most) if isfinite(total) else None


def _finite_numbers(numbers: Sequence[Any]) -> list[float]:
    return [number for number in map(finite_number, numbers) if number is not None]


def _group_hash(seed: int, call: Call) -> int:
    index = _index(call)
    if type(index) is int:  # of most rows
        return _mix((index ^ seed) & 0xFFFFFFFF)
    return hash_of(text_of(index), seed)


def _index(call: Call) -> Any:
    """Return the row's index, else its ground truth, which stands for the prompt."""
    index = call.extra_info.get("index") if call.extra_info else None
    return call.ground_truth if index is None else index


def _question(call: Call) -> str:
    question = call.extra_info.get("question") if call.extra_info else None
    return question if isinstance(question, str) else ""


def _printable(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode()
