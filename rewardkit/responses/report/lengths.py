"""The histogram of response lengths on a report page, by correctness.

Horizontal places are per cent of the chart's width, heights are pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rewardkit.pages.axis import round_ticks
from rewardkit.pages.histogram import HEIGHT_PIXELS, Bin, HistogramAxis, make_bins
from rewardkit.statistics import percentile_of_counts

#: The percentiles that a box marks.
BOX_PERCENTILES = (5, 25, 50, 75, 95)

#: Place of the axis: the columns and half a label are above it.
BASE_PIXELS = HEIGHT_PIXELS + 8


@dataclass(frozen=True, kw_only=True)
class LengthColumn:
    """The responses of `low` to `high` characters: a bar of correct ones below a bar of the others."""

    low: int
    high: int
    correct: int
    other: int
    x: float
    width: float
    correct_height: float
    other_height: float


@dataclass(frozen=True)
class LengthBox:
    """The lengths at `BOX_PERCENTILES`, and their places in the chart."""

    name: str
    values: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LengthHistogram:
    """A histogram of lengths by correctness.

    Attributes:
        columns: the columns from left to right.
        boxes: the percentiles of correct responses and of the others, if there are any.
        x_ticks: lengths below the axis and their places.
        y_ticks: numbers of responses left of the chart, and their places.
        has_overflow: whether the last column has all longer responses.
        base: pixel of the axis.
    """

    columns: tuple[LengthColumn, ...]
    boxes: tuple[LengthBox, ...]
    x_ticks: tuple[tuple[int, float], ...]
    y_ticks: tuple[tuple[int, float], ...]
    has_overflow: bool
    base: int = BASE_PIXELS


def length_histogram(counts: Mapping[bool, Counter[int]]) -> LengthHistogram | None:
    """Return the histogram of the lengths in `counts`, by correctness; None without responses."""
    bins = make_bins(counts[True] + counts[False])
    if not bins:
        return None
    width = bins[0].high - bins[0].low + 1
    axis = HistogramAxis(bins[0].low, bins[-1].low + width)
    to_scale = bins[-1].low if bins[-1].is_overflow else axis.stop
    highest = max(item.count for item in bins)
    return LengthHistogram(
        columns=tuple(_column(item, width, axis, highest, counts[True]) for item in bins),
        boxes=tuple(
            _box(name, counts[is_correct], axis)
            for name, is_correct in (("correct", True), ("incorrect", False))
            if counts[is_correct]
        ),
        x_ticks=tuple((value, axis.place(value)) for value in round_ticks(axis.start, to_scale)),
        y_ticks=tuple(
            (n, BASE_PIXELS - HEIGHT_PIXELS * n / highest)
            for n in round_ticks(0, highest + 1, most=6)
        ),
        has_overflow=bins[-1].is_overflow,
    )


def _column(
    item: Bin, width: int, axis: HistogramAxis, highest: int, correct_counts: Mapping[int, int]
) -> LengthColumn:
    correct = sum(n for value, n in correct_counts.items() if item.low <= value <= item.high)
    other, span = item.count - correct, axis.stop - axis.start
    return LengthColumn(
        low=item.low,
        high=item.high,
        correct=correct,
        other=other,
        x=100 * (item.low - axis.start) / span,
        width=100 * width / span,
        correct_height=HEIGHT_PIXELS * correct / highest,
        other_height=HEIGHT_PIXELS * other / highest,
    )


def _box(name: str, counts: Mapping[int, int], axis: HistogramAxis) -> LengthBox:
    values = tuple(percentile_of_counts(counts, percent) for percent in BOX_PERCENTILES)
    return LengthBox(name, values, tuple(axis.place(value) for value in values))
