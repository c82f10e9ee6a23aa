"""What `select` keeps, and what it tells of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from rewardkit.responses.records import SkippedRow

#: Lines that could not be read or joined and are kept to be shown; all are counted.
EXAMPLES = 3


@dataclass(frozen=True)
class PassRateFilter:
    """Which rows are kept.

    Attributes:
        low: the lowest pass rate.
        high: the highest; both are kept.
        min_samples: responses that a pass rate takes.
        unseen: keep rows that have fewer.
    """

    low: float
    high: float
    min_samples: int = 1
    unseen: bool = False

    def fault(self, rate: PassRate) -> str:
        """Why a row is dropped, "" if it is kept."""
        if rate.n < self.min_samples:
            few = f"fewer than {self.min_samples} responses" if rate.n else "no responses"
            return "" if self.unseen else few
        if rate.share < self.low:
            return f"pass rate below {self.low:g}"
        return f"pass rate above {self.high:g}" if rate.share > self.high else ""


@dataclass
class PassRate:
    """Responses to one prompt: how many, how many right, the worst and the best of them."""

    n: int = 0
    right: float = 0.0
    worst: float = inf
    best: float = -inf

    def add(self, right: float) -> None:
        """Count a response."""
        self.n += 1
        self.right += right
        self.worst, self.best = min(self.worst, right), max(self.best, right)

    @property
    def share(self) -> float:
        """The pass rate; 0.0 without responses."""
        return self.right / self.n if self.n else 0.0

    @property
    def percent(self) -> int:
        """The pass rate in whole per cent; 0 and 100 are never and always, and nothing else."""
        if self.share in (0.0, 1.0):
            return int(100 * self.share)
        return min(max(round(100 * self.share), 1), 99)


@dataclass
class SelectReport:
    """What `select` did.

    Attributes:
        scored: the file or files of scored responses.
        train: the file of training rows.
        out: the parquet written.
        wanted: which rows were to be kept.
        responses: scored responses that joined a row, by how they did.
        unjoined: those that joined none.
        unread: lines without a verdict.
        examples: the first that did not join or could not be read, with the reason.
        rows: rows of the training file.
        written: how many of them were kept.
        dropped: the others by reason.
        unseen: rows without responses.
        few: rows that have some, but fewer than asked for.
        percents: rows by pass rate in per cent, of those that have enough responses.
        groups: rows that have two responses or more.
        alike: rows of those whose responses are all alike: no variance, no advantage.
    """

    scored: str
    train: Path
    out: Path
    wanted: PassRateFilter
    responses: Counter[str] = field(default_factory=Counter)
    unjoined: int = 0
    unread: int = 0
    examples: list[str] = field(default_factory=list)
    rows: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    unseen: int = 0
    few: int = 0
    percents: Counter[int] = field(default_factory=Counter)
    groups: int = 0
    alike: int = 0

    def skip(self, line: SkippedRow) -> None:
        """Keep an example of a line that does not count."""
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{line.where}: {line.reason}")

    def add_row(self, rate: PassRate, fault: str) -> None:
        """Count a row of the training file."""
        self.rows += 1
        self.unseen += not rate.n
        self.groups += rate.n > 1
        self.alike += rate.n > 1 and rate.worst == rate.best
        if rate.n and rate.n < self.wanted.min_samples:
            self.few += 1
        elif rate.n:
            self.percents[rate.percent] += 1
        if fault:
            self.dropped[fault] += 1

    def bands(self) -> dict[str, int]:
        """Rows by pass rate, in tenths, with never and always apart."""
        counts = {"never": 0, "below 10%": 0}
        counts |= {f"{low}% to {low + 9}%": 0 for low in range(10, 100, 10)} | {"always": 0}
        names = list(counts)
        for percent, rows in self.percents.items():
            band = -1 if percent == 100 else percent // 10 + 1 if percent else 0
            counts[names[band]] += rows
        return counts

    def summary(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        share = self.alike / self.groups if self.groups else None
        return {**vars(self), "bands": self.bands(), "zero_variance_share": share}
