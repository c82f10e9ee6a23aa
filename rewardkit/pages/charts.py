"""Layout of charts: round numbers on axes, bins of values, and lines of fractions by training step.

Horizontal positions are percentages of the width, so that labels keep their size on a narrow screen;
vertical positions are pixels.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import floor, log10
from typing import NamedTuple, TypeVar

from rewardkit.statistics import percentile_of_counts

T = TypeVar("T")

#: Number of labels that fit below a chart on a phone, by the characters of the longest one.
_LABELS_BY_LENGTH = {3: 8, 5: 6, 7: 5, 9: 4, 14: 3}

#: Bins at most, the overflow bin included.
MAX_BINS = 25

#: Percent of the rows that are in bins of one width at least; the others may be in an overflow bin.
SCALED_PERCENT = 99.5

#: Height of the plot of a line chart, and of the room above it for half a label.
LINE_HEIGHT_PIXELS = 160
TOP_PIXELS = 8

#: A line with more points gets a band instead of dots with intervals.
MAX_DOTS = 60


def round_steps() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50, 100, ..."""
    for power in count():
        yield from (step * 10**power for step in (1, 2, 5))


def round_ticks(start: int, stop: int) -> range:
    """Return round whole numbers from `start` up to, but not including, `stop`.

    They are few if their labels are long: none collides with its neighbour on a chart of 300 pixels.
    """
    longest = max(len(f"{start:,}"), len(f"{stop - 1:,}"))
    most = next((n for length, n in _LABELS_BY_LENGTH.items() if longest <= length), 2)
    step = next(step for step in round_steps() if (stop - 1) // step + -start // step < most)
    return range(-(-start // step) * step, stop, step)


def round_levels(lowest: float, highest: float, *, most: int = 5) -> list[float]:
    """Return about `most` round numbers, two at least, that enclose the lowest and the highest one."""
    rough = max(highest - lowest, 0.001) / most
    power = 10.0 ** floor(log10(rough))
    unit = next(step * power for step in (1, 2, 5, 10) if step * power >= rough)
    bottom = floor(lowest / unit + 1e-9) * unit
    n = max(1, -floor((bottom - highest) / unit + 1e-9))
    return [bottom + i * unit for i in range(n + 1)]


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of the items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


class Bin(NamedTuple):
    """Rows with values from `low` to `high`, both included."""

    low: int
    high: int
    rows: int


def make_bins(counts: Mapping[int, int], limit: int | None = None) -> list[Bin]:
    """Put values into at most `MAX_BINS` bins of one round width, every value into one of them.

    A few values far above the others share the last bin (`SCALED_PERCENT`).
    """
    counts = {value: n for value, n in counts.items() if n > 0}
    if not counts:
        return []
    low, end = min(counts), _last_value_to_scale(counts, limit)
    width = next(step for step in round_steps() if end // step - low // step + 1 < MAX_BINS)
    starts = range(low // width * width, end + 1, width)
    stop = starts[-1] + width
    rows_by_start: Counter[int] = Counter()
    for value, n in counts.items():
        rows_by_start[min(value // width * width, stop)] += n
    bins = [Bin(start, start + width - 1, rows_by_start[start]) for start in starts]
    if rows_by_start[stop]:
        bins.append(Bin(stop, max(counts), rows_by_start[stop]))
    return bins


def _last_value_to_scale(counts: Mapping[int, int], limit: int | None) -> int:
    """Return the greatest value, or a smaller one if only a few rows are above it."""
    low, high = min(counts), max(counts)
    if high - low < MAX_BINS:
        return high
    end = percentile_of_counts(counts, SCALED_PERCENT)
    if limit is not None and end < limit <= low + 2 * (end - low):
        end = min(limit, high)
    return end if high - low > 2 * (end - low) else high


class LinePoint(NamedTuple):
    """A fraction from 0 to 1 at a training step, with the ends of its interval."""

    step: int
    value: float
    low: float
    high: float


class LineDot(NamedTuple):
    """A point in the chart, and the ends of its interval."""

    point: LinePoint
    x: float
    y: float
    low_y: float
    high_y: float


@dataclass(frozen=True)
class LineLayout:
    """A line chart ready to be drawn; `line` and `band` are points for SVG, with x from 0 to 100.

    Ticks have their offset: steps below the axis, and percentages left of the chart, the lowest first.
    A line with few points `has_dots`, each with its interval, else the intervals are a band. `height` is
    in pixels, without the labels below the chart.
    """

    title: str
    dots: list[LineDot]
    x_ticks: list[tuple[int, float]]
    y_ticks: list[tuple[str, float]]
    line: str
    band: str
    has_dots: bool
    height: int = TOP_PIXELS + LINE_HEIGHT_PIXELS


def line_layout(title: str, points: Sequence[LinePoint]) -> LineLayout:
    """Lay out a line of at least one fraction by training step; the points are in their order."""
    first = points[0].step
    last = max(points[-1].step, first + 1)
    levels = round_levels(0.0, max(point.high for point in points))
    digits = 0 if levels[1] > 0.0099 else 1

    def x(step: int) -> float:
        return 100 * (step - first) / (last - first)

    def y(value: float) -> float:
        return TOP_PIXELS + LINE_HEIGHT_PIXELS * (levels[-1] - value) / levels[-1]

    dots = [LineDot(p, x(p.step), y(p.value), y(p.low), y(p.high)) for p in points]
    above = [f"{dot.x:.2f},{dot.high_y:.2f}" for dot in dots]
    below = [f"{dot.x:.2f},{dot.low_y:.2f}" for dot in reversed(dots)]
    return LineLayout(
        title,
        dots,
        [(step, x(step)) for step in round_ticks(first, last + 1)],
        [(f"{100 * level:.{digits}f}%", y(level)) for level in levels],
        " ".join(f"{dot.x:.2f},{dot.y:.2f}" for dot in dots),
        " ".join(above + below),
        len(dots) <= MAX_DOTS,
    )
