"""Intervals, tests and percentiles, all two-sided and at 95 %: the one module that computes them.

scipy, over 100 MB installed, takes longer to import than most files take to compare.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, exp, floor, lgamma, log, log1p, sqrt
from statistics import NormalDist, fmean
from typing import NamedTuple, TypeAlias

Interval: TypeAlias = tuple[float, float]

#: Standard deviations on either side of the mean that hold 95 % of a normal distribution.
_Z = NormalDist().inv_cdf(0.975)


class PairedDifference(NamedTuple):
    """The mean of B minus A on the same questions, and the p-value of no difference.

    `interval` is None if all differences are equal, which leaves the spread unknown.
    """

    questions: int
    difference: float
    interval: Interval | None
    p: float


def wilson_interval(successes: float, trials: float) -> Interval:
    """Return Wilson's score interval of a fraction; (0, 1) without trials.

    It holds for fractions close to 0 and 1, too (Wilson 1927, J. Am. Stat. Assoc. 22). `successes`
    may be a fraction, as of an effective sample size.
    """
    if not trials:
        return 0.0, 1.0
    fraction = successes / trials
    middle = (successes + _Z**2 / 2) / (trials + _Z**2)
    half = _Z / (trials + _Z**2) * sqrt(successes * (trials - successes) / trials + _Z**2 / 4)
    return max(0.0, min(fraction, middle - half)), min(1.0, max(fraction, middle + half))


def clustered_interval(
    clusters: Iterable[tuple[float, float]], most: float | None = None
) -> Interval:
    """Return the interval of a fraction where responses come in clusters; (0, 1) without any.

    Responses to one prompt are alike: 8 of them say less than responses to 8 prompts. The variance
    of a ratio over clusters (Cochran, Sampling Techniques, section 6.3) gives the number of
    yes-or-no questions that would be as certain. Wilson's interval is taken at that number, reduced
    by the squared ratio of the normal to the t quantile (Korn and Graubard 1998, Survey Methodology
    24). If each cluster is all right or all wrong, it is `wilson_interval` over clusters.

    Args:
        clusters: (responses, correct responses) of each prompt; or (1, value) for a metric of each
            question, from 0 to 1.
        most: upper limit of the effective number; by default that of the responses. For a metric of
            k responses it is the number of disjoint sets of k.
    """
    pairs = list(clusters)
    size, n = len(pairs), sum(weight for weight, _ in pairs)
    if not n:
        return 0.0, 1.0
    fraction = sum(part for _, part in pairs) / n
    is_binary = all(part in (0, weight) for weight, part in pairs)
    is_even = fraction in (0, 1) or len({weight for weight, _ in pairs}) == 1
    if size < 2 or (is_binary and is_even):  # one cluster says nothing about others
        return wilson_interval(fraction * size, size)
    squares = sum((part - fraction * weight) ** 2 for weight, part in pairs) / n**2
    variance = squares * size / (size - 1)
    most = n if most is None else most
    effective = min(fraction * (1 - fraction) / variance, most) if variance else most
    effective = max(1.0, effective * (_Z / student_t_quantile(size - 1)) ** 2)
    return wilson_interval(fraction * effective, effective)


def average_interval(means: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the plain average of independent means, from the interval of each.

    The distances of the ends from their means add up in squares (MOVER: Zou and Donner 2008,
    Statistics in Medicine 27).
    """
    average, size = fmean(means), len(means)
    pairs = list(zip(means, intervals, strict=True))
    below = sqrt(sum((mean - low) ** 2 for mean, (low, _) in pairs)) / size
    above = sqrt(sum((high - mean) ** 2 for mean, (_, high) in pairs)) / size
    return average - below, average + above


def paired_difference(differences: Sequence[float]) -> PairedDifference:
    """Return mean, interval and p-value of B minus A for each question: Student's paired t.

    If all differences are equal, there is no spread to estimate: p is then that of the sign test,
    2 / 2^questions, and the interval is None.
    """
    size, mean = len(differences), fmean(differences)
    squares = sum((value - mean) ** 2 for value in differences)
    if squares <= 1e-24:
        p = min(1.0, 2.0 ** (1 - size)) if mean else 1.0
        return PairedDifference(size, mean, None, p)
    error = sqrt(squares / (size - 1) / size)
    half = student_t_quantile(size - 1) * error
    p = student_t_p_value(mean / error, size - 1)
    return PairedDifference(size, mean, (mean - half, mean + half), p)


def mcnemar_p_value(only_a: int, only_b: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947, Psychometrika 12).

    Args:
        only_a: samples that only scorer A calls correct.
        only_b: samples that only scorer B calls correct.
    """
    if abs(only_a - only_b) <= 1:
        return 1.0
    least = min(only_a, only_b)  # the sum of binomials is an incomplete beta function (DLMF 8.17.5)
    return min(1.0, 2 * _incomplete_beta(0.5, only_a + only_b - least, least + 1))


def student_t_p_value(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0 as `t` (DLMF 8.17)."""
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def student_t_quantile(degrees: float) -> float:
    """Return the 0.975 quantile of Student's t: 95 % of the distribution lies within ± this value.

    Between whole degrees, of at least 1, it interpolates by their inverse, as one reads a printed
    table: up to 19 % above the exact value under 2 degrees, 2 % under 3, and then less than 0.4 %.
    """
    low, high = floor(degrees), ceil(degrees)
    if low == high:
        return _whole_t_quantile(low)
    part = (1 / low - 1 / degrees) / (1 / low - 1 / high)
    return _whole_t_quantile(low) + part * (_whole_t_quantile(high) - _whole_t_quantile(low))


def percentile_of_counts(counts: Mapping[int, int], percent: float) -> int:
    """Return the least counted value that `percent` % of the values do not exceed; 0 without any.

    This is the nearest-rank definition: the result is always one of the values.
    """
    rank = -(-percent * sum(counts.values()) // 100)
    for value in sorted(counts):
        rank -= counts[value]
        if rank <= 0:
            return value
    return 0


@lru_cache(1 << 12)
def _whole_t_quantile(degrees: int) -> float:
    low, high = 0.0, 20.0  # 12.7 at one degree is the largest
    while high - low > 1e-12:
        middle = (low + high) / 2
        is_inside = student_t_p_value(middle, degrees) > 0.05
        low, high = (middle, high) if is_inside else (low, middle)
    return low


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function (DLMF 8.17.22, by Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value
