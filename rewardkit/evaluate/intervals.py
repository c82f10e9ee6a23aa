"""Intervals and a test where the question, not the response, is what was drawn by chance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, lgamma, log, log1p, sqrt
from statistics import fmean
from typing import NamedTuple

from rewardkit.responses.statistics import wilson

#: Standard deviations on either side that hold 95 % of a normal distribution.
_Z = 1.959963984540054


class Paired(NamedTuple):
    """The mean of differences, question by question.

    Attributes:
        questions: how many.
        difference: the mean; above 0, B is better.
        interval: of the mean, 95 %; None where no two questions differ in their difference, which
            says nothing about the spread.
        p: how likely a mean so far from 0 is, on either side, if there is no difference.
    """

    questions: int
    difference: float
    interval: tuple[float, float] | None
    p: float


def of_mean(values: Sequence[float], most: float) -> tuple[float, float]:
    """The 95 % interval of the mean of one value from 0 to 1 for each question.

    The values' variance over questions says how many independent yes-or-no questions would be as
    sure; Wilson's interval is taken at that number, reduced by the ratio of the quantiles of t and
    normal distribution (Korn and Graubard 1998, Survey Methodology 24: intervals for proportions
    from clustered samples). Where every value is 0 or 1, it is Wilson's own.

    Args:
        values: of each question; all of 0 to 1 if there is none.
        most: the number of responses, or of draws of k that they hold: the questions are never
            worth more.
    """
    size = float(len(values))
    if size < 2:  # one question: nothing is known of others
        return wilson(sum(values), size)
    mean = fmean(values)
    if all(value in (0.0, 1.0) for value in values):
        return wilson(sum(values), size)
    spread = sum((value - mean) ** 2 for value in values) / (size - 1) / size
    effective = min(mean * (1 - mean) / spread, most) if spread else most
    effective = max(1.0, effective * (_Z / t_quantile(len(values) - 1)) ** 2)
    return wilson(mean * effective, effective)


def paired(differences: Sequence[float]) -> Paired:
    """Mean, interval and test of differences: Student's paired t over questions.

    Where all differ by the same amount there is no spread to go by: the p is then the sign test's,
    2 / 2^questions, and there is no interval.

    Args:
        differences: B's value less A's for each question, at least one.
    """
    size, mean = len(differences), fmean(differences)
    squares = sum((d - mean) ** 2 for d in differences)
    if squares <= 1e-24:
        return Paired(size, mean, None, min(1.0, 2.0 ** (1 - size)) if mean else 1.0)
    error = sqrt(squares / (size - 1) / size)
    half = t_quantile(size - 1) * error
    return Paired(size, mean, (mean - half, mean + half), two_sided(mean / error, size - 1))


def two_sided(t: float, freedom: int) -> float:
    """How likely Student's t is as far from 0 as this, on either side."""
    return _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@cache
def t_quantile(freedom: int) -> float:
    """What Student's t stays below, on either side of 0, in 95 % of cases."""
    low, high = 0.0, 20.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > 0.05 else (low, middle)
    return low


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value
