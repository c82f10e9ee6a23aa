"""Histograms: values into bins, and where each line of the picture goes.

Across, places are per cent of the picture's width, so that its texts keep their size on a narrow
screen; down, they are pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from rewardkit.pages.model import Histogram

#: Bins at most.
BINS = 40

#: One row in so many may lie beyond the axis, if showing it there would squeeze the others.
STRAGGLERS = 200

#: Pixels: how high the highest bar is, and the line of a mark's label above it.
HEIGHT = 150
LABEL = 16


@dataclass(frozen=True)
class Bin:
    """Rows with values from `low` to `high`; `rest` if these are the stragglers."""

    low: int
    high: int
    count: int
    rest: bool = False


@dataclass(frozen=True)
class Axis:
    """Values from `start` up to, but not including, `stop`."""

    start: int
    stop: int

    def place(self, value: int) -> float:
        """Where a value is, in per cent: the middle of the room it takes."""
        place = (2 * (value - self.start) + 1) / (2 * (self.stop - self.start))
        return 100 * min(max(place, 0.0), 1.0)


@dataclass(frozen=True)
class Mark:
    """A line across the picture with a label; `end` if the label goes to the left of it."""

    label: str
    x: float
    y: int
    end: bool
    limit: bool


@dataclass(frozen=True)
class Bar:
    """A bin as a box."""

    of: Bin
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class Picture:
    """A histogram ready to be drawn: `top` and `base` are where the highest bar and all bars end.

    `over` counts the rows above the limit.
    """

    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    across: tuple[tuple[int, float], ...]
    up: tuple[tuple[int, float], ...]
    top: int
    base: int
    total: int
    over: int


def bins(counts: Mapping[int, int], limit: int | None = None) -> tuple[Bin, ...]:
    """The values in at most `BINS` bins of one round width, and every value in one of them.

    A few values far above the others (`STRAGGLERS`) share a last bin.
    """
    counts = {value: n for value, n in counts.items() if n > 0}
    if not counts:
        return ()
    low, end = min(counts), _end(counts, limit)
    width = next(step for step in _round_steps() if end // step - low // step + 1 < BINS)
    starts = range(low // width * width, end + 1, width)
    filled: Counter[int] = Counter()
    for value, n in counts.items():
        filled[min(value // width * width, starts[-1] + width)] += n
    closed = (Bin(start, start + width - 1, filled[start]) for start in starts)
    stop = starts[-1] + width
    rest = (Bin(stop, max(counts), filled[stop], rest=True),) if filled[stop] else ()
    return *closed, *rest


def picture(histogram: Histogram) -> Picture | None:
    """The histogram's picture; None if it has no rows."""
    found = bins(histogram.counts, histogram.limit)
    if not found:
        return None
    axis = _axis(found, histogram.limit)
    marks = tuple(_marks(histogram, axis))
    top = LABEL * len(marks) + 8
    highest = max(item.count for item in found)
    step = next(step for step in _round_steps() if 5 * step >= highest)
    return Picture(
        tuple(_bar(item, found[0], axis, top, highest) for item in found),
        marks,
        tuple((value, axis.place(value)) for value in _ticks(found, axis)),
        tuple((n, top + HEIGHT * (1 - n / highest)) for n in range(0, highest + 1, step)),
        top,
        top + HEIGHT,
        sum(item.count for item in found),
        _over(histogram),
    )


def _end(counts: Mapping[int, int], limit: int | None) -> int:
    """The last value on the axis: the greatest, unless only stragglers make it go that far."""
    low, high = min(counts), max(counts)
    if high - low < BINS:
        return high
    spare = sum(counts.values()) // STRAGGLERS
    end = high
    for value in sorted(counts, reverse=True):
        end = value
        spare -= counts[value]
        if spare < 0:
            break
    if limit is not None and end < limit <= low + 2 * (end - low):
        end = min(limit, high)
    return end if high - low > 2 * (end - low) else high


def _axis(found: tuple[Bin, ...], limit: int | None) -> Axis:
    """From the first bin to the last, or to a limit that is not far away."""
    first, last = found[0], found[-1]
    width = first.high - first.low + 1
    stop = last.low + width
    near = stop + (stop - first.low) // 2
    if limit is not None and not last.rest and stop <= limit < near:
        stop = limit + width
    return Axis(first.low, stop)


def _bar(item: Bin, first: Bin, axis: Axis, top: int, highest: int) -> Bar:
    span = axis.stop - axis.start
    height = HEIGHT * item.count / highest
    return Bar(
        item,
        100 * (item.low - axis.start) / span,
        100 * (first.high - first.low + 1) / span,
        top + HEIGHT - height,
        height,
    )


def _marks(histogram: Histogram, axis: Axis) -> Iterator[Mark]:
    """The marks, and the limit if it is on the axis; each has a line for its label."""
    marks = [(name, value, False) for name, value in histogram.marks]
    if histogram.limit is not None and axis.start <= histogram.limit < axis.stop:
        marks.append(("limit", histogram.limit, True))
    for i, (name, value, limit) in enumerate(marks):
        x = axis.place(value)
        yield Mark(f"{name} {value:,}", x, LABEL * (i + 1), x > 60, limit)


def _ticks(found: tuple[Bin, ...], axis: Axis) -> range:
    """Up to six round values that are drawn to scale."""
    stop = found[-1].low if found[-1].rest else axis.stop
    step = next(step for step in _round_steps() if 5 * step >= stop - axis.start)
    return range(-(-axis.start // step) * step, stop, step)


def _over(histogram: Histogram) -> int:
    limit = histogram.limit
    if limit is None:
        return 0
    return sum(n for value, n in histogram.counts.items() if value > limit)


def _round_steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 25, 50, 100, 200, 250, ..."""
    yield from (1, 2, 5)
    for power in count():
        yield from (step * 10**power for step in (10, 20, 25, 50))
