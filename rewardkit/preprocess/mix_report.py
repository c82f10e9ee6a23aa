"""The report of `rewardkit mix`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rewardkit.preprocess.row_stats import RowStats


@dataclass
class MixPartReport:
    """What a mix contains of one file.

    Attributes:
        path: the file.
        weight: the weight from the command; the number of the file's rows if no file has a weight.
        share: share of the mix that the weight asks for, 0 to 1.
        available: number of rows in the file.
        rows: number of rows of the mix that are from the file.
        times: maximum number of times that the mix has one of its rows; above 1 only if rows are
            repeated.
        left_out: number of rows with a field that our schema does not have, by field.
        changes: number of rows with a value that was changed, by change.
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
        out: the parquet.
        seed: random seed of the choice and order of its rows.
        parts: what the mix contains of each file.
        written: number of rows written.
        shared: number of questions that are in several of the files.
        conflicting: number of those with several golds.
        stats: statistics of the rows written.
    """

    out: Path
    seed: int
    parts: tuple[MixPartReport, ...]
    written: int = 0
    shared: int = 0
    conflicting: int = 0
    stats: RowStats = field(default_factory=RowStats)
