"""Intervals, tests and percentiles: the one module of the package that computes them.

`math` and the standard library's `statistics` have all that the formulas need; scipy, over 100 MB
installed, takes longer to import than most files take to compare. All intervals are two-sided and
hold 95 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import ceil, exp, floor, lgamma, log, log1p, sqrt
from statistics import NormalDist, fmean
from typing import NamedTuple, TypeAlias

Interval: TypeAlias = tuple[float, float]

#: Standard deviations on either side of the mean that hold 95 % of a normal distribution.
_Z = NormalDist().inv_cdf(0.975)


class PairedDifference(NamedTuple):
    """The mean difference between two runs on the same questions.

    Attributes:
        questions: number of questions.
        difference: the mean of B minus A; above 0, B is better.
        interval: the 95 % interval of the mean; None if all differences are equal, which leaves the
            spread unknown.
        p: the two-sided p-value of the hypothesis that A and B do not differ.
    """

    questions: int
    difference: float
    interval: Interval | None
    p: float


def wilson_interval(successes: float, trials: float) -> Interval:
    """Return Wilson's score interval of a share; (0, 1) without trials.

    It stays within 0 and 1 and holds for shares close to them, where share ± 2 errors does not
    (Wilson 1927, J. Am. Stat. Assoc. 22).

    Args:
        successes: from 0 to `trials`; a fraction is allowed, as of an effective sample size.
        trials: at least 0.
    """
    if not trials:
        return 0.0, 1.0
    share = successes / trials
    middle = (successes + _Z**2 / 2) / (trials + _Z**2)
    half = _Z / (trials + _Z**2) * sqrt(successes * (trials - successes) / trials + _Z**2 / 4)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def clustered_interval(clusters: Iterable[tuple[int, int]]) -> Interval:
    """Return the interval of the share of correct responses, where a prompt has several.

    Responses to one prompt are alike: 8 of them say less than responses to 8 prompts. The variance
    of a ratio over clusters (Cochran, Sampling Techniques, section 6.3) gives the number of
    independent responses that would vary as much, and Wilson's interval is taken at that number.
    With one response per prompt it is `wilson_interval`.

    Args:
        clusters: (responses, correct responses) of each prompt.
    """
    clusters = list(clusters)
    n, correct = (sum(column) for column in zip(*clusters, strict=True)) if clusters else (0, 0)
    if n <= len(clusters):
        return wilson_interval(correct, n)
    share, effective = correct / n, float(len(clusters))
    if len(clusters) > 1 and 0 < share < 1:
        squares = sum((correct - share * size) ** 2 for size, correct in clusters) / n**2
        variance = squares * effective / (effective - 1)
        effective = min(share * (1 - share) / variance, n) if variance else n
    effective = max(effective, 1.0)
    return wilson_interval(share * effective, effective)


def mean_interval(values: Sequence[float], max_effective: float) -> Interval:
    """Return the interval of the mean of one value from 0 to 1 per question; (0, 1) without any.

    The variance of the values over questions gives the number of independent yes-or-no questions
    that would be as certain. Wilson's interval is taken at that number, reduced by the squared ratio
    of the normal to the t quantile (Korn and Graubard 1998, Survey Methodology 24: intervals of
    proportions from clustered samples). If every value is 0 or 1, it is `wilson_interval`.

    Args:
        values: one per question.
        max_effective: upper limit of the effective number of questions: the number of responses, or
            of disjoint sets of k responses for a metric of k.
    """
    size = float(len(values))
    if size < 2:  # one question says nothing about others
        return wilson_interval(sum(values), size)
    mean = fmean(values)
    if all(value in (0.0, 1.0) for value in values):
        return wilson_interval(sum(values), size)
    variance = sum((value - mean) ** 2 for value in values) / (size - 1) / size
    effective = min(mean * (1 - mean) / variance, max_effective) if variance else max_effective
    effective = max(1.0, effective * (_Z / student_t_quantile(len(values) - 1)) ** 2)
    return wilson_interval(mean * effective, effective)


def average_interval(means: Sequence[float], intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the plain average of independent means, from the interval of each.

    The distances of the lower ends from their means add up in squares, and so do those of the upper
    ends (MOVER: Zou and Donner 2008, Statistics in Medicine 27).
    """
    average, size = fmean(means), len(means)
    pairs = list(zip(means, intervals, strict=True))
    below = sqrt(sum((mean - low) ** 2 for mean, (low, _) in pairs)) / size
    above = sqrt(sum((high - mean) ** 2 for mean, (_, high) in pairs)) / size
    return average - below, average + above


def paired_difference(differences: Sequence[float]) -> PairedDifference:
    """Return mean, interval and p-value of differences: Student's paired t over questions.

    If all differences are equal, there is no spread to estimate: p is then that of the sign test,
    2 / 2^questions, and the interval is None.

    Args:
        differences: B's value minus A's for each question, at least one.
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
    """Return the two-sided p-value of McNemar's exact test.

    If neither scorer is laxer, each sample that only one of them calls correct is A's with a chance
    of one half (McNemar 1947, Psychometrika 12). The binomial terms start from `lgamma`, which
    keeps nine digits where a million samples differ; integers of a million bits would take minutes.

    Args:
        only_a: samples that only scorer A calls correct.
        only_b: samples that only scorer B calls correct.
    """
    if abs(only_a - only_b) <= 1:
        return 1.0
    n, k = only_a + only_b, min(only_a, only_b)
    term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))
    tail = 0.0
    for i in range(k, -1, -1):
        tail += term
        if term <= tail * 1e-17:
            break
        term *= i / (n - i + 1)
    return min(1.0, 2 * tail)


def student_t_p_value(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at least as far from 0 as `t` (DLMF 8.17)."""
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def student_t_quantile(degrees: float) -> float:
    """Return the 0.975 quantile of Student's t: 95 % of the distribution lies within ± this value.

    Between whole degrees it interpolates by their inverse, as one reads a printed table. That is
    never below the exact value; it is up to 19 % above it under 2 degrees, 2 % under 3, and less
    than 0.4 % from there on.

    Args:
        degrees: degrees of freedom, at least 1.
    """
    low, high = floor(degrees), ceil(degrees)
    if low == high:
        return _whole_t_quantile(low)
    share = (1 / low - 1 / degrees) / (1 / low - 1 / high)
    return _whole_t_quantile(low) + share * (_whole_t_quantile(high) - _whole_t_quantile(low))


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest value that at least `percent` % of the values do not exceed.

    This is the nearest-rank definition: the result is always one of the values.

    Args:
        ordered: values in ascending order, at least one.
        percent: from 1 to 100; 100 is the largest value.
    """
    return ordered[_nearest_rank(len(ordered), percent) - 1]


def percentile_of_counts(counts: Mapping[int, int], percent: int) -> int:
    """Return `percentile` of values that are counted; 0 without any.

    Args:
        counts: how often each value occurs.
        percent: from 1 to 100.
    """
    rank = _nearest_rank(sum(counts.values()), percent)
    for value in sorted(counts):
        rank -= counts[value]
        if rank <= 0:
            return value
    return 0


def _nearest_rank(size: int, percent: int) -> int:
    return -(-percent * size // 100)


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
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value
