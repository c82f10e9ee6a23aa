"""A few robust figures of a noisy curve."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, sqrt
from statistics import median
from typing import TypeAlias

Series: TypeAlias = Sequence[tuple[int, float]]

#: A change counts if it is this many standard errors.
ERRORS = 4.0


def finite(series: Series) -> list[tuple[int, float]]:
    """The points that are numbers."""
    return [(step, value) for step, value in series if isfinite(value)]


def mean(series: Series) -> float:
    """The mean value of some points, of which there is one at least; infinite if they are huge."""
    return sum(value for _, value in series) / len(series)


def part(series: Series, start: float, end: float) -> list[tuple[int, float]]:
    """The points from one share of the way to another, one at least if there is any."""
    n = len(series)
    first = min(int(n * start), max(n - 1, 0))
    return list(series[first : max(int(n * end + 0.5), first + 1)])


def noise(series: Series) -> float:
    """How far a point lies from its curve, as a standard deviation.

    From how far each point lies off the line between its neighbours, so that a trend is no noise;
    by the median of that, so that a jump is none either.
    """
    values = [value for _, value in series]
    triples = zip(values, values[1:], values[2:], strict=False)
    bends = [abs(a - 2 * b + c) for a, b, c in triples]
    # A bend of three values of one normal distribution has sqrt(6) of its standard deviation, and
    # the median of its amount is 0.6745 of that.
    return median(bends) / (0.6745 * sqrt(6)) if bends else 0.0


def change(
    series: Series,
    first: tuple[float, float],
    last: tuple[float, float],
    errors: float = ERRORS,
) -> float:
    """From the mean of one part to that of a later one; 0 if it is no more than noise."""
    early, late = part(series, *first), part(series, *last)
    if not early or not late:
        return 0.0
    difference = mean(late) - mean(early)
    error = errors * noise(series) * sqrt(1 / len(early) + 1 / len(late))
    rounding = 1e-9 * max(abs(value) for _, value in series)
    return difference if abs(difference) > error + rounding else 0.0


def trend(series: Series) -> float:
    """From the first fifth of the points to the last; 0 if it is no more than noise."""
    found = finite(series)
    return change(found, (0.0, 0.2), (0.8, 1.0)) if len(found) >= 5 else 0.0


def sparkline(series: Series, width: int = 24, marks: str = "▁▂▃▄▅▆▇█") -> str:
    """The curve in a line of text; × where it is no number."""
    if not series:
        return ""
    cells = [part(series, i / width, (i + 1) / width) for i in range(min(width, len(series)))]
    if len(series) < width:
        cells = [[point] for point in series]
    means = [mean(known) if (known := finite(cell)) else inf for cell in cells]
    known_means = [value for value in means if isfinite(value)]
    low, high = min(known_means, default=0.0), max(known_means, default=0.0)
    span = high / 2 - low / 2  # halves, so that it is finite
    top = len(marks) - 1
    return "".join(
        marks[round(top * (value / 2 - low / 2) / span) if span else 0] if isfinite(value) else "×"
        for value in means
    )
