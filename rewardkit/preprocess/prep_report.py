"""The report of `rewardkit prep`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.preprocess.base import Dropped
from rewardkit.preprocess.row_stats import RowStats

#: Maximum number of questions kept to count duplicates, about 60 MB.
MAX_QUESTIONS = 200_000

#: Maximum number of dropped rows of each reason in a report; all are counted.
MAX_EXAMPLES = 5


@dataclass
class SplitReport:
    """What `prep` did with one split.

    Attributes:
        split: name of the split.
        out: the parquet.
        origin: where the rows are from: `sample`, `path`, `cache`, or the hub's name.
        files: the files that were read.
        read: number of raw rows, copies included.
        distinct: number of raw rows that are not a copy of an earlier one.
        dropped: number of distinct rows dropped, by reason; `<out>.dropped.jsonl` has them.
        examples: the first dropped rows of each reason: reason, place and detail.
        duplicates: number of rows written that repeat the question of an earlier row, among the
            first `MAX_QUESTIONS` questions.
        conflicting: number of those with another gold.
        written: number of rows written.
        system_messages: number of distinct raw rows whose system message is left out.
        unread_text: number of raw rows with text in a column that is not read and that no note about
            the first rows names.
        stats: statistics of the rows written, each counted once.
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
    system_messages: int = 0
    unread_text: Counter[str] = field(default_factory=Counter)
    stats: RowStats = field(default_factory=RowStats)

    def drop(self, dropped: Dropped, index: int) -> None:
        """Count a dropped row, and keep it as an example if it is one of the first of its reason."""
        self.dropped[dropped.reason] += 1
        if self.dropped[dropped.reason] <= MAX_EXAMPLES:
            self.examples.append((dropped.reason, index, dropped.detail))

    def steps(self) -> Iterator[tuple[str, int]]:
        """Yield the number of rows left after each step, from raw rows to rows written."""
        rows = self.read
        yield "raw rows", rows
        if self.distinct < self.read:
            rows = self.distinct
            yield "copies removed", rows
        for reason, count in self.dropped.items():
            rows -= count
            yield f"dropped: {reason}", rows
        if self.written != rows:
            yield "written", self.written


@dataclass(frozen=True)
class PrepReport:
    """What `prep` did.

    Attributes:
        dataset: name of the dataset.
        data_source: verl's reward key of the rows; several are separated by commas.
        template: name or path of the prompt template.
        scorer: name of the scorer in the rows.
        splits: the report of each split.
    """

    dataset: str
    data_source: str
    template: str
    scorer: str
    splits: tuple[SplitReport, ...]
