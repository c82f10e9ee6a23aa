"""Robust statistics of a noisy curve, and its sparkline."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from statistics import median
from typing import TypeAlias

Series: TypeAlias = Sequence[tuple[int, float]]

#: A change counts if it exceeds this many standard errors.
CHANGE_ERRORS = 4.0


def finite(series: Series) -> list[tuple[int, float]]:
    """Return the points that are neither NaN nor infinite."""
    return [(step, value) for step, value in series if isfinite(value)]


def mean(series: Series) -> float:
    """Return the mean value of at least one point; infinite if the values are huge."""
    return sum(value for _, value in series) / len(series)


def part(series: Series, start: float, end: float) -> list[tuple[int, float]]:
    """Return the points between two fractions of the curve, at least one if there are any."""
    n = len(series)
    first = min(int(n * start), max(n - 1, 0))
    return list(series[first : max(int(n * end + 0.5), first + 1)])


def noise(series: Series) -> float:
    """Return the standard deviation of points around their curve.

    It is estimated from the distance of each point to the line between its neighbours, which
    excludes a trend, and from the median of these distances, which excludes a jump.
    """
    values = [value for _, value in series]
    triples = zip(values, values[1:], values[2:], strict=False)
    bends = [abs(a - 2 * b + c) for a, b, c in triples]
    # The bend of three values of a normal distribution has sqrt(6) times its standard deviation, and
    # the median of its absolute value is 0.6745 times that.
    return median(bends) / (0.6745 * sqrt(6)) if bends else 0.0


def change(
    series: Series,
    first: tuple[float, float],
    last: tuple[float, float],
    errors: float = CHANGE_ERRORS,
) -> float:
    """Return the change from the mean of one part to that of a later one; 0 if it is within noise."""
    early, late = part(series, *first), part(series, *last)
    if not early or not late:
        return 0.0
    difference = mean(late) - mean(early)
    error = errors * noise(series) * sqrt(1 / len(early) + 1 / len(late))
    rounding = 1e-9 * max(abs(value) for _, value in series)
    return difference if abs(difference) > error + rounding else 0.0


def trend(series: Series) -> float | None:
    """Return the change from the first fifth of the points to the last; 0 if it is within noise.

    It is None for fewer than five points, which are too few to tell a trend from noise.
    """
    points = finite(series)
    return change(points, (0.0, 0.2), (0.8, 1.0)) if len(points) >= 5 else None


def fall_step(series: Series, level: float) -> int:
    """Return the step from which on a curve stays below a level; the last step if it ends above."""
    medians = _medians(series)
    low = next((i for i in range(len(series), 0, -1) if medians[i - 1] >= level), 0)
    return series[min(low, len(series) - 1)][0]


def sparkline(series: Series, width: int = 24, marks: str = "▁▂▃▄▅▆▇█") -> str:
    """Draw the curve in a line of text; × marks parts without a finite value."""
    cells = [part(series, i / width, (i + 1) / width) for i in range(min(width, len(series)))]
    if len(series) < width:
        cells = [[point] for point in series]
    means = [mean(points) if (points := finite(cell)) else inf for cell in cells]
    finite_means = [value for value in means if isfinite(value)]
    low, high = min(finite_means, default=0.0), max(finite_means, default=0.0)
    span = high / 2 - low / 2  # halves, so that the span is finite
    top = len(marks) - 1
    return "".join(
        marks[round(top * (value / 2 - low / 2) / span) if span else 0] if isfinite(value) else "×"
        for value in means
    )


#: Steps before an onset that a curve is compared with, and steps at its end.
BEFORE, AFTER = 10, 5

#: A line through `BEFORE` points is flat if its slope is within this many standard errors of 0.
FLAT_ERRORS = 4.0


@dataclass(frozen=True)
class Onset:
    """The step at which something begins: the last before it, and an interval around it."""

    step: int
    low: int
    high: int


def flat_start(series: Series) -> int | None:
    """Return the number of points up to the end of the first flat part of a curve; None without one."""
    spread = noise(series) * sqrt(12 / (BEFORE**3 - BEFORE))
    middle = (BEFORE - 1) / 2
    for end in range(BEFORE, len(series) + 1):
        values = [value for _, value in series[end - BEFORE : end]]
        slope = sum((i - middle) * value for i, value in enumerate(values))
        slope *= 12 / (BEFORE**3 - BEFORE)
        rounding = 1e-9 * max(map(abs, values))
        if abs(slope) <= FLAT_ERRORS * spread + rounding:
            return end
    return None


def date_rise(series: Series, begin: int = BEFORE) -> Onset:
    """Return where a curve leaves the level of the points before `begin` for that at its end.

    The onset is the last point at which the curve, as medians of five, has a fifth of its change; the
    interval goes from the last at which it has none, within noise, to the first with half of it.
    """
    base, end = mean(series[begin - BEFORE : begin]), mean(series[-AFTER:])
    sign = 1 if end >= base else -1
    rest = [(step, sign * (value - base)) for step, value in series]
    rise = sign * (end - base)
    low, step, high = (
        _last_below(rest, level) for level in (min(noise(series), rise / 5), rise / 5, rise / 2)
    )
    return Onset(step, low, max(step, high))


def _last_below(series: Series, level: float) -> int:
    below = (i for i, value in enumerate(_medians(series)) if value <= level)
    return series[max(below, default=0)][0]


def _medians(series: Series) -> list[float]:
    """Return the median of each five neighbours, so that a single point neither hides nor makes a turn."""
    return [median(value for _, value in series[max(i - 2, 0) : i + 3]) for i in range(len(series))]
