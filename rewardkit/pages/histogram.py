"""Layout of histograms: values in bins, and the place of every line and label.

Horizontal places are percentages of the chart's width, so that labels keep their size on a narrow
screen; vertical places are pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rewardkit.pages.axis import round_steps, round_ticks
from rewardkit.pages.model import Histogram

#: Bins at most, the overflow bin included.
MAX_BINS = 40

#: At most one row in this many goes to the overflow bin, to leave room for the other bins.
ROWS_PER_OVERFLOW_ROW = 200

#: Height of the highest bar, and of the line of a marker's label above it.
HEIGHT_PIXELS = 150
LABEL_PIXELS = 16


@dataclass(frozen=True)
class Bin:
    """Rows with values from `low` to `high`, both included.

    `is_overflow` marks the last bin of a few values far above the others: it is not to scale.
    """

    low: int
    high: int
    count: int
    is_overflow: bool = False


@dataclass(frozen=True)
class HistogramAxis:
    """Values from `start` up to, but not including, `stop`."""

    start: int
    stop: int

    def place(self, value: int) -> float:
        """Return the middle of a value's interval on the axis, in percent of the width."""
        place = (2 * (value - self.start) + 1) / (2 * (self.stop - self.start))
        return 100 * min(max(place, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Marker:
    """A vertical line with a label, which stands left of the line if `label_is_left`."""

    label: str
    x: float
    y: int
    label_is_left: bool
    is_limit: bool


@dataclass(frozen=True, kw_only=True)
class HistogramBar:
    """A bin as a rectangle."""

    bin: Bin
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, kw_only=True)
class HistogramLayout:
    """A histogram ready to be drawn.

    Attributes:
        bars: a rectangle for each bin.
        markers: lines with labels, such as percentiles.
        x_ticks: values below the axis, with their places.
        y_ticks: counts left of the chart, with their places.
        top: pixel of the top of the highest bar.
        base: pixel of the bottom of all bars.
        total: number of rows.
        over_limit: number of rows above the limit.
    """

    bars: tuple[HistogramBar, ...]
    markers: tuple[Marker, ...]
    x_ticks: tuple[tuple[int, float], ...]
    y_ticks: tuple[tuple[int, float], ...]
    top: int
    base: int
    total: int
    over_limit: int


def make_bins(counts: Mapping[int, int], limit: int | None = None) -> tuple[Bin, ...]:
    """Put values into at most `MAX_BINS` bins of one round width, every value into one of them.

    A few values far above the others share an overflow bin (`ROWS_PER_OVERFLOW_ROW`).
    """
    counts = {value: n for value, n in counts.items() if n > 0}
    if not counts:
        return ()
    low, end = min(counts), _last_value_to_scale(counts, limit)
    width = next(step for step in round_steps() if end // step - low // step + 1 < MAX_BINS)
    starts = range(low // width * width, end + 1, width)
    rows_by_start: Counter[int] = Counter()
    for value, n in counts.items():
        rows_by_start[min(value // width * width, starts[-1] + width)] += n
    bins = (Bin(start, start + width - 1, rows_by_start[start]) for start in starts)
    stop = starts[-1] + width
    if not rows_by_start[stop]:
        return tuple(bins)
    return *bins, Bin(stop, max(counts), rows_by_start[stop], is_overflow=True)


def histogram_layout(histogram: Histogram) -> HistogramLayout | None:
    """Lay out a histogram; None if it has no rows."""
    bins = make_bins(histogram.counts, histogram.limit)
    if not bins:
        return None
    axis = _axis(bins, histogram.limit)
    markers = tuple(_markers(histogram, axis))
    top = LABEL_PIXELS * len(markers) + 8
    highest = max(item.count for item in bins)
    return HistogramLayout(
        bars=tuple(_bar(item, bins[0], axis, top, highest) for item in bins),
        markers=markers,
        x_ticks=tuple((value, axis.place(value)) for value in _x_ticks(bins, axis)),
        y_ticks=tuple(
            (n, top + HEIGHT_PIXELS * (1 - n / highest))
            for n in round_ticks(0, highest + 1, most=6)
        ),
        top=top,
        base=top + HEIGHT_PIXELS,
        total=sum(item.count for item in bins),
        over_limit=_rows_over_limit(histogram),
    )


def _last_value_to_scale(counts: Mapping[int, int], limit: int | None) -> int:
    """Return the greatest value, or a smaller one if only a few rows are above it."""
    low, high = min(counts), max(counts)
    if high - low < MAX_BINS:
        return high
    spare = sum(counts.values()) // ROWS_PER_OVERFLOW_ROW
    end = high
    for value in sorted(counts, reverse=True):
        end = value
        spare -= counts[value]
        if spare < 0:
            break
    if limit is not None and end < limit <= low + 2 * (end - low):
        end = min(limit, high)
    return end if high - low > 2 * (end - low) else high


def _axis(bins: tuple[Bin, ...], limit: int | None) -> HistogramAxis:
    """From the first bin to the last, or to a limit that is not far away."""
    first, last = bins[0], bins[-1]
    width = first.high - first.low + 1
    stop = last.low + width
    near = stop + (stop - first.low) // 2
    if limit is not None and not last.is_overflow and stop <= limit < near:
        stop = limit + width
    return HistogramAxis(first.low, stop)


def _bar(item: Bin, first: Bin, axis: HistogramAxis, top: int, highest: int) -> HistogramBar:
    span = axis.stop - axis.start
    height = HEIGHT_PIXELS * item.count / highest
    return HistogramBar(
        bin=item,
        x=100 * (item.low - axis.start) / span,
        width=100 * (first.high - first.low + 1) / span,
        y=top + HEIGHT_PIXELS - height,
        height=height,
    )


def _markers(histogram: Histogram, axis: HistogramAxis) -> Iterator[Marker]:
    """Yield the marks, and the limit if it is on the axis; each has its own line for the label."""
    marks = [(name, value, False) for name, value in histogram.marks]
    if histogram.limit is not None and axis.start <= histogram.limit < axis.stop:
        marks.append(("limit", histogram.limit, True))
    for i, (name, value, is_limit) in enumerate(marks):
        x = axis.place(value)
        yield Marker(
            label=f"{name} {value:,}",
            x=x,
            y=LABEL_PIXELS * (i + 1),
            label_is_left=x > 60,
            is_limit=is_limit,
        )


def _x_ticks(bins: tuple[Bin, ...], axis: HistogramAxis) -> range:
    """Return up to six round values that are drawn to scale."""
    return round_ticks(axis.start, bins[-1].low if bins[-1].is_overflow else axis.stop)


def _rows_over_limit(histogram: Histogram) -> int:
    limit = histogram.limit
    if limit is None:
        return 0
    return sum(n for value, n in histogram.counts.items() if value > limit)
