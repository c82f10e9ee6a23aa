"""When a curve turns: segmented regression with one breakpoint, and its interval.

The model is a line (or a constant) up to the breakpoint and a line with another slope after it,
joined there. The breakpoint is the one with the smallest sum of squares (Quandt 1958, JASA 53:873;
Hudson 1966, JASA 61:1097). Neighbouring steps of a run are correlated, so the noise is inflated by
(1 + r) / (1 - r) with r the correlation of neighbouring residuals (Bayley and Hammersley 1946, JRSS
Supplement 8:184). The interval has every breakpoint whose sum of squares is within the 95% point of
chi squared with one degree of freedom of the smallest (Hinkley 1971, JASA 66:736).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import copysign, sqrt

from rewardkit.trainlog.series import Series, finite, mean

#: Fewest points before a breakpoint, which are what the curve is compared with, and after it.
MIN_BEFORE, MIN_AFTER = 10, 4

#: A turn counts if its slope changes by this many standard errors; many, because the curve is
#: examined anew at every step.
TURN_ERRORS = 6.0

#: Points that are fitted; of a longer curve, means of neighbours.
MAX_POINTS = 300

#: 95% point of chi squared with one degree of freedom.
_CHI_SQUARED = 3.84

#: Largest correlation of neighbouring residuals that is corrected for; beyond it nothing is certain.
_MAX_CORRELATION = 0.9


@dataclass(frozen=True)
class ChangePoint:
    """The step at which a curve turns.

    Attributes:
        step: the last step before the turn.
        low: start of its 95% interval.
        high: end of the interval.
        errors: change of the slope in standard errors; positive if the curve turns upwards.
        before: slope before the turn, per point; 0 if the model is constant before it.
        after: slope after it.
    """

    step: int
    low: int
    high: int
    errors: float
    before: float
    after: float


def find_turn(series: Series, *, is_flat_before: bool = False) -> ChangePoint | None:
    """Return where the curve turns most clearly; None if it has too few points to tell.

    Args:
        series: the curve.
        is_flat_before: assume that the curve has no trend before the turn.
    """
    points = reduce_points(finite(series))
    n = len(points)
    if n < MIN_BEFORE + MIN_AFTER:
        return None
    values = [value for _, value in points]
    fits = _fits(values, is_flat_before)
    best = max(fits, key=lambda fit: fit.gain)
    rest = _residuals(values, best)
    squares = sum(value * value for value in rest)
    # Rounding must not make a perfect fit infinitely certain.
    floor = 1e-9 * (max(map(abs, values)) + 1e-12)
    variance = max(squares / (n - 4), floor * floor) * _inflation(rest)
    near = [fit.at for fit in fits if fit.gain >= best.gain - _CHI_SQUARED * variance]
    return ChangePoint(
        step=points[best.at][0],
        low=points[min(near)][0],
        high=points[max(near)][0],
        errors=copysign(sqrt(best.gain / variance), best.bend),
        before=best.slope,
        after=best.slope + best.bend,
    )


def find_rise(series: Series) -> ChangePoint | None:
    """Return where a curve that was constant begins to rise; None if it has too few points.

    The part after the curve has covered most of its rise is left out, because a share that is near
    1 rises no further.
    """
    points = reduce_points(finite(series))
    if len(points) < MIN_BEFORE + MIN_AFTER:
        return None
    smooth = [mean(points[max(i - 1, 0) : i + 2]) for i in range(len(points))]
    base = sorted(smooth[:MIN_BEFORE])[MIN_BEFORE // 2]
    level = base + 0.7 * (max(smooth[MIN_BEFORE:]) - base)
    end = next((i for i in range(MIN_BEFORE, len(points)) if smooth[i] >= level), len(points) - 1)
    return find_turn(points[: max(end + 2, MIN_BEFORE + MIN_AFTER)], is_flat_before=True)


def reduce_points(points: Series, most: int = MAX_POINTS) -> Sequence[tuple[int, float]]:
    """Return at most `most` points: the points themselves, or means of neighbours."""
    size = -(-len(points) // most)
    if size <= 1:
        return points
    blocks = [points[at : at + size] for at in range(0, len(points), size)]
    return [(block[-1][0], mean(block)) for block in blocks]


@dataclass(frozen=True)
class _Fit:
    """A breakpoint: its place, the sum of squares that it explains, and the line."""

    at: int
    gain: float
    bend: float
    slope: float
    level: float


def _fits(values: Sequence[float], is_flat_before: bool) -> list[_Fit]:
    """Fit every breakpoint in constant time each, from sums over the points after it."""
    n = len(values)
    total = sum(values)
    middle = (n - 1) / 2
    spread = n * (n * n - 1) / 12
    tilt = sum((i - middle) * value for i, value in enumerate(values))
    after = list(accumulate(reversed(values)))
    weighted = list(accumulate(i * values[i] for i in range(n - 1, -1, -1)))
    fits = []
    for k in range(MIN_BEFORE - 1, n - MIN_AFTER):
        m = n - 1 - k
        ones, squares = m * (m + 1) / 2, m * (m + 1) * (2 * m + 1) / 6
        product = weighted[m - 1] - k * after[m - 1]
        norm, inner = squares - ones * ones / n, product - ones * total / n
        along = k * ones + squares - middle * ones
        if not is_flat_before:
            norm, inner = norm - along * along / spread, inner - along * tilt / spread
        bend = inner / norm
        slope = 0.0 if is_flat_before else (tilt - bend * along) / spread
        level = (total - bend * ones) / n - slope * middle
        fits.append(_Fit(k, bend * inner, bend, slope, level))
    return fits


def _residuals(values: Sequence[float], fit: _Fit) -> list[float]:
    return [
        value - fit.level - fit.slope * i - fit.bend * max(i - fit.at, 0)
        for i, value in enumerate(values)
    ]


def _inflation(rest: Sequence[float]) -> float:
    """Return how much larger the variance of a mean is than that of independent points."""
    squares = sum(value * value for value in rest)
    products = sum(a * b for a, b in pairwise(rest))
    r = min(max(products / squares, 0.0), _MAX_CORRELATION) if squares else 0.0
    return (1 + r) / (1 - r)
