"""Records of all processes, added up in slots of time."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from rewardkit.recorder.interval import HASHES, OTHER, Total

#: Seconds of a slot, until there are too many.
SLOT_SECONDS = 5.0

#: Slots; beyond this their length doubles.
MAX_SLOTS = 20_000

#: Data sources, and keys of one, that a reader distinguishes.
MAX_SOURCES = 64
MAX_KEYS = 256

#: Samples of a slot and a data source.
MAX_SAMPLES = 4

#: Pairs (group, answer) of a slot and a data source.
MAX_PAIRS = 2_048

#: The latest plausible time, in seconds since 1970.
LATEST = 1e11


@dataclass(frozen=True)
class RewardSample:
    """A response that a recorder chose at random, with its reward.

    Attributes:
        time: seconds since 1970.
        step: step of training, or number of the window.
        data_source: the row's data source.
        is_validation: whether the row is not from the training split.
        index: the row's index, else its ground truth.
        response: the response; a long one has a note in place of its middle.
        score: the score, if there is one.
        parts: every number of the result, `score` included.
        pred: the answer.
    """

    time: float
    step: int
    data_source: str
    is_validation: bool
    index: str
    response: str
    score: float | None
    parts: Mapping[str, float]
    pred: str


@dataclass
class SourceTotals:
    """What several processes recorded of one data source, of training or of validation."""

    count: int = 0
    values: dict[str, Total] = field(default_factory=dict)
    characters: Total = field(default_factory=Total)
    seconds: Total = field(default_factory=Total)
    several_boxes: Total = field(default_factory=Total)
    copied_prompt: Total = field(default_factory=Total)
    pair_limit: int = HASHES
    pairs: array[int] = field(default_factory=lambda: array("Q"))
    samples: list[RewardSample] = field(default_factory=list)

    def include(self, other: SourceTotals, *, max_samples: int, max_pairs: int) -> None:
        """Add the totals of another process or slot."""
        self.count += other.count
        for key, total in other.values.items():
            if key in self.values or len(self.values) < MAX_KEYS:
                self.values.setdefault(key, Total()).include(total)
        for mine, theirs in (
            (self.characters, other.characters),
            (self.seconds, other.seconds),
            (self.several_boxes, other.several_boxes),
            (self.copied_prompt, other.copied_prompt),
        ):
            mine.include(theirs)
        self.add_samples(other.samples, max_samples)
        self.pair_limit = min(self.pair_limit, other.pair_limit)
        self.pairs += other.pairs
        if len(self.pairs) > max_pairs:
            ordered = sorted(self.pairs)
            self.pair_limit = min(self.pair_limit, ordered[max_pairs] >> 32)
            self.pairs = array("Q", (p for p in ordered if p >> 32 < self.pair_limit))

    def add_samples(self, samples: Iterable[RewardSample], limit: int) -> None:
        """Add samples; of too many, some are chosen at random, always the same ones."""
        self.samples += samples
        if len(self.samples) > limit:
            chooser = random.Random(self.count)  # noqa: S311 - not a secret
            self.samples = chooser.sample(self.samples, limit)

    def distinct_answers(self) -> float | None:
        """Return the mean over groups of distinct answers by responses; None without a group."""
        groups: dict[int, list[int]] = {}
        for pair in self.pairs:
            if pair >> 32 < self.pair_limit:
                groups.setdefault(pair >> 32, []).append(pair & (HASHES - 1))
        shares = [len({*answers}) / len(answers) for answers in groups.values() if len(answers) > 1]
        return sum(shares) / len(shares) if shares else None


@dataclass
class Slot:
    """A few seconds of all processes.

    Attributes:
        start: time of the first call.
        end: time of the last call.
        sources: totals by data source and by whether its rows are of validation.
    """

    start: float
    end: float
    sources: dict[tuple[str, bool], SourceTotals] = field(default_factory=dict)

    def include(self, other: Slot, *, max_samples: int = MAX_SAMPLES) -> None:
        """Add another slot."""
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        for key, totals in other.sources.items():
            mine = self.source(*key)
            mine.include(totals, max_samples=max_samples, max_pairs=MAX_PAIRS)

    def source(self, data_source: str, is_validation: bool) -> SourceTotals:
        """Return the totals of a data source, or those of `other` if there are too many."""
        key = data_source, is_validation
        if key not in self.sources and len(self.sources) >= MAX_SOURCES:
            key = OTHER, is_validation
        return self.sources.setdefault(key, SourceTotals())

    def count(self, *, is_validation: bool) -> int:
        """Return the number of calls, of training or of validation."""
        return sum(totals.count for key, totals in self.sources.items() if key[1] is is_validation)


def parse_slot(record: Mapping[str, Any]) -> Slot:
    """Return the slot in a line of a file.

    Raises:
        KeyError, TypeError, ValueError: the line is not an interval that a recorder wrote.
    """
    slot = Slot(_time(record["start"]), _time(record["end"]))
    for part in record["sources"]:
        pairs = bytes.fromhex(part["pairs"])
        totals = SourceTotals(
            count=count_of(part["count"]),
            values={str(key): _total(numbers) for key, numbers in part["values"].items()},
            characters=_total(part["characters"]),
            seconds=_total(part["seconds"]),
            several_boxes=_share(part["several_boxes"]),
            copied_prompt=_share(part["copied_prompt"]),
            pair_limit=count_of(part["pair_limit"]),
            pairs=array("Q", _words(pairs)),
        )
        key = str(part["data_source"]), bool(part["validation"])
        slot.sources[key] = totals
    return slot


def parse_samples(record: Mapping[str, Any]) -> list[RewardSample]:
    """Return the samples in a line of a file.

    Raises:
        KeyError, TypeError, ValueError: the line does not have samples that a recorder wrote.
    """
    return [
        RewardSample(
            time=_time(sample["time"]),
            step=0,
            data_source=str(sample["data_source"]),
            is_validation=bool(sample["validation"]),
            index=str(sample["index"]),
            response=str(sample["response"]),
            score=parts.get("score"),
            parts=parts,
            pred=str(sample["pred"]),
        )
        for sample in record["samples"]
        for parts in [{str(key): _number(value) for key, value in sample["values"].items()}]
    ]


def _words(data: bytes) -> Iterator[int]:
    return (int.from_bytes(data[i : i + 8], "big") for i in range(0, len(data) - 7, 8))


def _total(numbers: Sequence[Any]) -> Total:
    count, *rest = numbers
    total, squares, least, most = map(_number, rest)
    return Total(count_of(count), total, squares, least, most)


def _share(numbers: Sequence[Any]) -> Total:
    count, yes = map(count_of, numbers)
    return Total(count, yes, yes, 0.0, 1.0)


def count_of(value: Any) -> int:
    """Return a count of a file.

    Raises:
        ValueError: it is not one.
    """
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is not a count")
    return value


def _number(value: Any) -> float:
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{value!r} is not finite")
    return number


def _time(value: Any) -> float:
    time = _number(value)
    if not 0 < time < LATEST:
        raise ValueError(f"{value!r} is not a time")
    return time
