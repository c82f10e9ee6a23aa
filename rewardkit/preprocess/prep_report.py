"""What `prep`, `mix` and `check` tell of what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.preprocess.base import Dropped
from rewardkit.preprocess.row_stats import RowStats

#: Questions that are remembered to report duplicates: some 60 MB.
MAX_QUESTIONS = 200_000

#: Dropped rows of each reason that a report shows.
EXAMPLES = 5


@dataclass
class SplitReport:
    """What became of one split.

    Attributes:
        split: its name.
        out: the parquet written.
        origin: where the rows came from: `sample`, `path`, `cache`, or the hub's name.
        files: the files they were read from.
        read: raw rows read, copies included.
        distinct: raw rows that copy no earlier one.
        dropped: distinct rows dropped, by reason; they are kept in `<out>.dropped.jsonl`.
        examples: the first dropped rows of each reason: reason, place and detail.
        duplicates: rows kept that ask the question of an earlier row, of the first
            `MAX_QUESTIONS` questions.
        conflicting: how many of those have another gold.
        written: rows written.
        stats: lengths and kinds of the rows written, each counted once.
    """

    split: str
    out: Path
    origin: str
    files: tuple[Path, ...]
    read: int = 0
    distinct: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, int, str]] = field(default_factory=list)
    duplicates: int = 0
    conflicting: int = 0
    written: int = 0
    stats: RowStats = field(default_factory=RowStats)

    def drop(self, why: Dropped, index: int) -> None:
        """Count a dropped row, and keep the first of each reason to be shown."""
        self.dropped[why.reason] += 1
        if self.dropped[why.reason] <= EXAMPLES:
            self.examples.append((why.reason, index, why.detail))

    def steps(self) -> Iterator[tuple[str, int]]:
        """How many rows are left after each step, from raw rows to rows written."""
        left = self.read
        yield "raw rows", left
        if self.distinct < self.read:
            left = self.distinct
            yield "copies left out", left
        for reason, count in self.dropped.items():
            left -= count
            yield f"dropped: {reason}", left
        if self.written != left:
            yield "written", self.written


@dataclass(frozen=True)
class PrepReport:
    """What `prep` did: the choices that made the rows, and a report per split."""

    dataset: str
    data_source: str
    template: str
    scorer: str
    splits: tuple[SplitReport, ...]


@dataclass
class MixPartReport:
    """What a mix took of one file.

    Attributes:
        path: the file.
        weight: as given.
        share: of the rows of the mix, as the weight asks.
        available: rows of the file.
        rows: how many rows of the mix are from it.
        times: how often its rows are there at most; above 1 only where rows are repeated.
        left_out: rows by field that our schema has no place for.
        changes: rows by what was written otherwise than the file has it.
    """

    path: Path
    weight: float
    share: float
    available: int
    rows: int
    times: int
    left_out: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)


@dataclass
class MixReport:
    """What `mix` did.

    Attributes:
        out: the parquet written.
        seed: of the choice and the order of its rows.
        parts: what was taken of each file.
        written: rows written.
        shared: questions that several of the files ask.
        conflicting: those of them that have more than one gold.
        stats: lengths and kinds of the rows written.
    """

    out: Path
    seed: int
    parts: tuple[MixPartReport, ...]
    written: int = 0
    shared: int = 0
    conflicting: int = 0
    stats: RowStats = field(default_factory=RowStats)
