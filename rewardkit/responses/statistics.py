"""How sure a share is, and whether two scorers differ by more than chance.

`math` and `statistics` have what the two formulas take: scipy (over 100 MB installed) would start
slower than most files are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, lgamma, log, sqrt
from statistics import NormalDist

#: Standard deviations on either side that hold 95 % of a normal distribution.
_Z = NormalDist().inv_cdf(0.975)


def wilson(part: float, whole: float) -> tuple[float, float]:
    """The 95 % Wilson interval of a share; all of 0 to 1 if nothing was counted.

    It stays within 0 and 1 and is right for shares close to them, where the usual ± is not.
    """
    if not whole:
        return 0.0, 1.0
    share = part / whole
    middle = (part + _Z**2 / 2) / (whole + _Z**2)
    half = _Z / (whole + _Z**2) * sqrt(part * (whole - part) / whole + _Z**2 / 4)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def clustered(prompts: Iterable[tuple[int, int]]) -> tuple[float, float]:
    """The 95 % interval of the share of right responses, of (responses, right ones) per prompt.

    Responses to one prompt are alike, so 8 of them say less than responses to 8 prompts: Wilson's
    interval is taken at the number of independent responses that would vary as the prompts do
    (the variance of a ratio over clusters: Cochran, Sampling Techniques, 6.3). Where each prompt
    has one response it is `wilson`.
    """
    prompts = list(prompts)
    n, correct = (sum(column) for column in zip(*prompts, strict=True)) if prompts else (0, 0)
    if n <= len(prompts):
        return wilson(correct, n)
    share, size = correct / n, float(len(prompts))
    if len(prompts) > 1 and 0 < share < 1:
        spread = sum((right - share * each) ** 2 for each, right in prompts) / n**2
        variance = spread * size / (size - 1)
        size = min(share * (1 - share) / variance, n) if variance else n
    size = max(size, 1.0)
    return wilson(share * size, size)


def mcnemar(only_a: int, only_b: int) -> float:
    """McNemar's exact test: how likely verdicts are so one-sided if neither scorer is laxer.

    Of samples that only one scorer calls right, each is then A's with a chance of one half: the
    two-sided binomial p. The terms start from `lgamma`: nine digits are right where a million
    samples differ, and whole numbers of as many bits would take minutes.
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
