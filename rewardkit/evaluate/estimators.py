"""What n responses to one question say about k: estimates for one question, of plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

#: Up to so many responses the majority's chances are computed for every k.
ALL_MAJORITIES = 64


@lru_cache(1 << 18)  # questions are many, and their counts few
def pass_at_k(n: int, right: int, k: int) -> float:
    """The chance that at least one of k responses, drawn of n without replacement, is right.

    Its mean over questions is the unbiased pass@k of Chen et al. 2021 (Evaluating Large Language
    Models Trained on Code, section 2.1): 1 - C(n - right, k) / C(n, k), here as a product of
    numbers from 0 to 1, which neither overflows nor cancels.

    Args:
        n: responses.
        right: those that are right.
        k: from 1 to n.
    """
    wrong = n - right
    if wrong < k:
        return 1.0
    none = 1.0
    for i in range(wrong + 1, n + 1):
        none *= 1 - k / i
    return 1 - none


def best_at_n(n: int, right: int, size: int) -> float:
    """What verl's `best@N/mean` is of a score of 0 or 1: the best of N drawn of n with replacement.

    verl draws 1,000 times (`bootstrap_metric`, verl/trainer/ppo/metric_utils.py, 0.9.1); this is
    what it draws around. Biased low against pass@N: one response may be drawn twice.
    """
    return 1 - (1 - right / n) ** size


def majority(votes: Sequence[tuple[int, float]], blank: int = 0) -> list[float]:
    """How often the most frequent answer of k responses is right, for k from 1 to n.

    The k are drawn without replacement, exactly: every choice of k counts once. Where answers tie
    for the most votes, each of them wins with the same chance. Responses without an answer have no
    vote; if all k are such, the answer is wrong.

    Args:
        votes: of each different answer its number of responses, and the share of them (0 or 1, as
            a rule) that is right.
        blank: responses without an answer.

    Returns:
        The chance for each k; beyond `ALL_MAJORITIES` responses only the last, for k = n.
    """
    n = blank + sum(times for times, _ in votes)
    if n > ALL_MAJORITIES:
        return [_winner(votes)]
    ways = [0.0] * (n + 1)
    for place, (times, share) in enumerate(votes):
        if share:
            others = [m for other, (m, _) in enumerate(votes) if other != place]
            for got in range(1, times + 1):
                _add_wins(ways, share * comb(times, got), got, others, blank)
    return [ways[k] / comb(n, k) for k in range(1, n + 1)]


def _winner(votes: Sequence[tuple[int, float]]) -> float:
    """Whether the most frequent of all answers is right; the mean of those that tie."""
    most = max((times for times, _ in votes), default=0)
    tied = [share for times, share in votes if times == most]
    return sum(tied) / len(tied) if tied else 0.0


def _add_wins(
    ways: list[float], weight: float, got: int, others: Sequence[int], blank: int
) -> None:
    """Add to `ways[k]` the choices of k where an answer has `got` votes and none has more.

    A polynomial in the number of votes that the others have together, one for each number of
    answers that tie; each answer multiplies it by the ways to give it fewer votes, or as many.
    """
    low = blank + sum(m for m in others if m < got)  # these cannot reach it: no rule for them
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
