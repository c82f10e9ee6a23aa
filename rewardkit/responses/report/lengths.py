"""The histogram of lengths on a report page, by correctness.

Across, places are per cent of the picture's width; down, they are pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from rewardkit.pages.histogram import HEIGHT_PIXELS, Bin, HistogramAxis, make_bins
from rewardkit.pages.line_chart import spread

#: Shares of the responses at the marks of a box.
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Column:
    """Responses with `low` to `high` characters: a bar of right ones, the others on top."""

    low: int
    high: int
    right: int
    other: int
    x: float
    width: float
    right_height: float
    other_height: float


@dataclass(frozen=True)
class Box:
    """Lengths at 5, 25, 50, 75 and 95 % of some responses, and where these are."""

    name: str
    values: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True)
class Lengths:
    """A histogram of lengths by correctness."""

    columns: tuple[Column, ...]
    boxes: tuple[Box, ...]
    ticks: tuple[tuple[int, float], ...]
    highest: int
    rest: bool


def lengths(counts: Mapping[bool, Counter[int]]) -> Lengths | None:
    """The histogram of lengths; None of nothing."""
    bins = make_bins(counts[True] + counts[False])
    if not bins:
        return None
    width = bins[0].high - bins[0].low + 1
    axis = HistogramAxis(bins[0].low, bins[-1].low + width)
    highest = max(item.count for item in bins)
    columns = tuple(_column(item, width, axis, highest, counts[True]) for item in bins)
    boxes = (_box(name, counts[key], axis) for name, key in (("right", True), ("not", False)))
    ticks = spread([(item.low, axis.place(item.low)) for item in bins], 6)
    return Lengths(
        columns, tuple(box for box in boxes if box), tuple(ticks), highest, bins[-1].is_overflow
    )


def _column(
    item: Bin, width: int, axis: HistogramAxis, highest: int, right_ones: Mapping[int, int]
) -> Column:
    right = sum(n for value, n in right_ones.items() if item.low <= value <= item.high)
    other, span = item.count - right, axis.stop - axis.start
    x, heights = 100 * (item.low - axis.start) / span, (right, other)
    right_height, other_height = (HEIGHT_PIXELS * n / highest for n in heights)
    return Column(
        item.low, item.high, right, other, x, 100 * width / span, right_height, other_height
    )


def _box(name: str, counts: Mapping[int, int], axis: HistogramAxis) -> Box | None:
    if not counts:
        return None
    values = sorted(counts)
    below = list(accumulate(counts[value] for value in values))
    marks = tuple(
        next(v for v, n in zip(values, below, strict=True) if n >= share * below[-1])
        for share in _BOX
    )
    return Box(name, marks, tuple(axis.place(value) for value in marks))
