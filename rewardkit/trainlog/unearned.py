"""How much of a score's rise is not explained by more responses that state the gold, and since when.

Where a reward pays for right answers, its mean goes with the share of responses that state the gold.
What a right answer is worth is measured on the run's own first steps, in two ways: by how much the score
of responses with the gold exceeds that of the others, and by the score for each share of gold, which
also holds where the comparison of text misses right answers. What the score gains beyond both is paid for
something else. A form that must be learned first raises the score too, but it does not raise that of
responses without the gold, and it has no flat part before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, sqrt

from rewardkit.trainlog.conditions import NotEnoughData
from rewardkit.trainlog.series import (
    AFTER,
    BEFORE,
    Onset,
    date_rise,
    flat_start,
    mean,
    noise,
)
from rewardkit.trainlog.training_run import TrainingRun

#: Share of the range of scores that must not be explained, and its distance from 0 in standard errors;
#: many, because every step is looked at.
LEAST, ERRORS = 0.1, 5.0

#: Fall of the share of gold after which no flat part is needed.
FALL = 0.05

#: Responses with the gold, and without it, of which a mean score is taken.
MIN_RESPONSES = 8


@dataclass(frozen=True)
class GoldStep:
    """A step: responses, mean score, share with the gold, mean and spread of the score with it and without."""

    step: int
    count: float
    score: float
    share: float
    with_gold: tuple[float, float]
    without: tuple[float, float]


@dataclass(frozen=True)
class _Level:
    """Means over some steps; numbers of responses and variances of the score with the gold and without."""

    score: float
    share: float
    counts: tuple[float, float]
    means: tuple[float, float]
    variances: tuple[float, float]


def gold_steps(run: TrainingRun, prefix: str) -> list[GoldStep]:
    """Return the steps of a data source at which responses were compared with the gold."""

    def column(name: str) -> dict[int, float]:
        return dict(run.series(f"{prefix}{name}"))

    count, score, share = column("count"), column("score/mean"), column("states_gold/mean")
    spreads = [
        (column(f"score_{kind}_gold/mean"), column(f"score_{kind}_gold/std"))
        for kind in ("with", "without")
    ]
    return [
        GoldStep(
            step, count.get(step, 1.0), score[step], share[step],
            *((means.get(step, 0.0), stds.get(step, 0.0)) for means, stds in spreads),
        )
        for step in share
        if step in score
    ]  # fmt: skip


def unearned_rise(
    steps: Sequence[GoldStep], lowest: float, highest: float
) -> Onset | NotEnoughData | None:
    """Return since when the score rises by more than the gold explains.

    Args:
        steps: the steps of a data source.
        lowest: lowest score of the run.
        highest: highest score.
    """
    least = BEFORE + AFTER
    if len(steps) < least:
        return NotEnoughData("steps", {"n": len(steps), "least": least})
    start = _level(steps[:BEFORE])
    worth = start.means[0] - start.means[1]
    error = _error(start)
    if min(start.counts) < MIN_RESPONSES or not worth > 3 * error:
        return NotEnoughData("gold")
    rate = (start.score - lowest) / start.share
    prices = ((worth, error), (rate, rate * sqrt((1 - start.share) / start.counts[0])))
    least_gain = LEAST * (highest - lowest)
    curves = [[(one.step, one.score - price * one.share) for one in steps] for price, _ in prices]
    for begin, must_fall in ((flat_start(curves[0]) or len(steps), False), (BEFORE, True)):
        for end in range(begin + AFTER, len(steps) + 1):
            parts = [curve[:end] for curve in curves]
            gains = [mean(part[-AFTER:]) - mean(part[begin - BEFORE : begin]) for part in parts]
            if min(gains) < least_gain:
                continue
            early, late = _level(steps[begin - BEFORE : begin]), _level(steps[end - AFTER : end])
            shares = [(one.step, one.share) for one in steps[:end]]
            fall = max(FALL, ERRORS * noise(shares) / sqrt(AFTER))
            has_fallen = early.share - late.share >= fall
            spreads = [
                hypot(
                    noise(part) * sqrt(1 / BEFORE + 1 / AFTER), error * (late.share - early.share)
                )
                for part, (_, error) in zip(parts, prices, strict=True)
            ]
            is_clear = all(g > ERRORS * s for g, s in zip(gains, spreads, strict=True))
            is_more_paid = _is_more_paid(steps[begin:end], early, least_gain)
            if is_clear and is_more_paid and (has_fallen or not must_fall):
                return date_rise(parts[gains.index(min(gains))], begin)
    return None


def _is_more_paid(steps: Sequence[GoldStep], early: _Level, least: float) -> bool:
    ends = (_level(steps[-n:]) for n in range(AFTER, len(steps) + 1))
    late = next((level for level in ends if level.counts[1] >= MIN_RESPONSES), None)
    if late is None:
        return False
    error = sqrt(sum(it.variances[1] / it.counts[1] for it in (early, late) if it.counts[1]))
    return late.means[1] - early.means[1] >= max(least, 3 * error)


def _level(steps: Sequence[GoldStep]) -> _Level:
    counts = sum(one.count for one in steps)
    kinds = [
        [(one.count * one.share, *one.with_gold) for one in steps],
        [(one.count * (1 - one.share), *one.without) for one in steps],
    ]
    moments = [_moments(kind) for kind in kinds]
    return _Level(
        score=sum(one.count * one.score for one in steps) / counts,
        share=moments[0][0] / counts,
        counts=(moments[0][0], moments[1][0]),
        means=(moments[0][1], moments[1][1]),
        variances=(moments[0][2], moments[1][2]),
    )


def _moments(parts: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    n = sum(count for count, _, _ in parts)
    if n <= 0:
        return 0.0, 0.0, 0.0
    middle = sum(count * average for count, average, _ in parts) / n
    squares = sum(count * (std * std + (average - middle) ** 2) for count, average, std in parts)
    return n, middle, squares / n


def _error(level: _Level) -> float:
    return sqrt(sum(v / max(n, 1.0) for v, n in zip(level.variances, level.counts, strict=True)))
