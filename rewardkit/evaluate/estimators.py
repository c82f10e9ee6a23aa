"""Estimates of pass@k, best@N and maj@k from the n responses to one question."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

#: Up to this many responses, maj@k is computed for every k.
MAX_RESPONSES_FOR_EVERY_K = 64


@lru_cache(1 << 18)  # many questions share few pairs of counts
def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the chance that at least one of k of the n responses, without replacement, is correct.

    Its mean over questions is the unbiased pass@k of Chen et al. 2021 (Evaluating Large Language
    Models Trained on Code, section 2.1): 1 - C(n - correct, k) / C(n, k), here as a product of
    numbers from 0 to 1, which neither overflows nor cancels.

    Args:
        n: number of responses.
        correct: number of correct ones.
        k: from 1 to n.
    """
    wrong = n - correct
    if wrong < k:
        return 1.0
    none = 1.0
    for i in range(wrong + 1, n + 1):
        none *= 1 - k / i
    return 1 - none


def verl_best_at_n(n: int, correct: int, size: int) -> float:
    """Return the expectation of verl's `best@N/mean` for scores of 0 or 1.

    verl takes the best of N responses drawn with replacement, 1,000 times (`bootstrap_metric`,
    verl/trainer/ppo/metric_utils.py, 0.9.1). It is biased low against pass@N, because one response
    may be drawn twice.

    Args:
        n: number of responses.
        correct: number of correct ones.
        size: N.
    """
    return 1 - (1 - correct / n) ** size


def majority_at_k(votes: Sequence[tuple[int, float]], blank: int = 0) -> list[float]:
    """Return the chance that the most frequent answer of k responses is correct, for k from 1 to n.

    This is exact: every choice of k of the n responses counts once. Answers that tie for the most
    votes win with the same chance. Responses without an answer do not vote; if none of the k has
    one, the answer is wrong.

    Args:
        votes: for each distinct answer, the number of responses that give it and the share of them
            that is correct, which is usually 0 or 1.
        blank: number of responses without an answer.

    Returns:
        The chance for each k; with more than `MAX_RESPONSES_FOR_EVERY_K` responses, only for k = n.
    """
    n = blank + sum(times for times, _ in votes)
    if n > MAX_RESPONSES_FOR_EVERY_K:
        return [_correct_share_of_majority(votes)]
    ways = [0.0] * (n + 1)
    for place, (times, share) in enumerate(votes):
        if share:
            others = [m for other, (m, _) in enumerate(votes) if other != place]
            for got in range(1, times + 1):
                _add_wins(ways, share * comb(times, got), got, others, blank)
    return [ways[k] / comb(n, k) for k in range(1, n + 1)]


def _correct_share_of_majority(votes: Sequence[tuple[int, float]]) -> float:
    """Return the share of correct votes for the most frequent answer; ties are averaged."""
    most = max((times for times, _ in votes), default=0)
    tied = [share for times, share in votes if times == most]
    return sum(tied) / len(tied) if tied else 0.0


def _add_wins(
    ways: list[float], weight: float, got: int, others: Sequence[int], blank: int
) -> None:
    """Add to `ways[k]` the choices of k in which an answer has `got` votes and none has more.

    For each number of ties there is a polynomial in the total votes of the other answers; each of
    these answers multiplies it by the ways to give it fewer votes, or equally many.
    """
    low = blank + sum(m for m in others if m < got)  # these never reach `got`, so any choice counts
    size = len(ways) - got
    tied = {0: [comb(low, x) for x in range(size)]}
    for m in others:
        if m >= got:
            tied = _with_answer(tied, m, got, size)
    for ties, counts in tied.items():
        for x, count in enumerate(counts):
            ways[got + x] += weight * count / (ties + 1)


def _with_answer(tied: dict[int, list[int]], m: int, got: int, size: int) -> dict[int, list[int]]:
    chances = [comb(m, a) for a in range(got + 1)]
    result: dict[int, list[int]] = {}
    for ties, counts in tied.items():
        fewer = result.setdefault(ties, [0] * size)
        same = result.setdefault(ties + 1, [0] * size)
        for x, count in enumerate(counts):
            if not count:
                continue
            for a, chance in enumerate(chances[:-1]):
                if x + a < size:
                    fewer[x + a] += count * chance
            if x + got < size:
                same[x + got] += count * chances[-1]
    return {ties: counts for ties, counts in result.items() if any(counts)}
