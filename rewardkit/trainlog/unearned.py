"""How much of a score's rise is not explained by more responses that state the gold, and since when.

Where a reward pays for right answers, its mean goes with the share of responses that state the gold.
What a right answer is worth is measured on the run's own first steps, in two ways: by how much the score
of responses with the gold exceeds that of the others, and by the score for each share of gold, which
also holds where the comparison of text misses right answers. What the score gains beyond both is paid for
something else. A form that must be learned first raises the score too, but it does not raise that of
responses without the gold, and it has no flat part before.
"""

from collections.abc import Sequence
from math import hypot, sqrt
from typing import NamedTuple

from rewardkit.trainlog.conditions import NotEnoughData, lacking
from rewardkit.trainlog.series import AFTER, BEFORE, Onset, date_rise, flat_start, mean, noise
from rewardkit.trainlog.training_run import TrainingRun

#: Share of the range of scores that must not be explained, and its distance from 0 in standard errors;
#: many, because every step is looked at.
LEAST, ERRORS = 0.1, 5.0

#: Fall of the share of gold after which no flat part is needed.
FALL = 0.05

#: Responses with the gold, and without it, of which a mean score is taken.
MIN_RESPONSES = 8


class Scores(NamedTuple):
    """Scores of some responses."""

    n: float
    mean: float
    variance: float


class GoldStep(NamedTuple):
    """A step, or several: mean score, share with the gold, scores with it and without it."""

    step: int
    score: float
    share: float
    stating: Scores
    others: Scores

    @property
    def n(self) -> float:
        """Number of responses."""
        return self.stating.n + self.others.n


def gold_steps(run: TrainingRun, prefix: str) -> list[GoldStep]:
    """Return the steps of a data source at which responses were compared with the gold."""
    kinds = [
        f"score_{kind}_gold/{what}" for kind in ("with", "without") for what in ("mean", "std")
    ]
    names = "count", "score/mean", "states_gold/mean", *kinds
    count, score, share, *values = (dict(run.series(f"{prefix}{name}")) for name in names)
    steps = []
    for step in share.keys() & score.keys():
        mean, std, other_mean, other_std = (column.get(step, 0.0) for column in values)
        stating = count.get(step, 1.0) * share[step]
        others = count.get(step, 1.0) * (1 - share[step])
        scores = Scores(stating, mean, std * std), Scores(others, other_mean, other_std**2)
        steps.append(GoldStep(step, score[step], share[step], *scores))
    return sorted(steps)


def unearned_rise(
    steps: Sequence[GoldStep], lowest: float, highest: float
) -> Onset | NotEnoughData | None:
    """Return since when the score rises by more than the gold explains.

    Args:
        steps: the steps of a data source.
        lowest: lowest score of the run.
        highest: highest score.
    """
    if missing := lacking("steps", len(steps), BEFORE + AFTER):
        return missing
    start = _together(steps[:BEFORE])
    worth, error = start.stating.mean - start.others.mean, _error(start.stating, start.others)
    if min(start.stating.n, start.others.n) < MIN_RESPONSES or not worth > 3 * error:
        return NotEnoughData("gold")
    rate = (start.score - lowest) / start.share
    prices = (worth, error), (rate, rate * sqrt((1 - start.share) / start.stating.n))
    least_gain = LEAST * (highest - lowest)
    curves = [[(one.step, one.score - price * one.share) for one in steps] for price, _ in prices]
    for begin, must_fall in ((flat_start(curves[0]) or len(steps), False), (BEFORE, True)):
        for end in range(begin + AFTER, len(steps) + 1):
            parts = [curve[:end] for curve in curves]
            gains = [mean(part[-AFTER:]) - mean(part[begin - BEFORE : begin]) for part in parts]
            if min(gains) < least_gain:
                continue
            early, late = (
                _together(steps[begin - BEFORE : begin]),
                _together(steps[end - AFTER : end]),
            )
            rise = late.share - early.share
            fall = max(
                FALL, ERRORS * noise([(it.step, it.share) for it in steps[:end]]) / sqrt(AFTER)
            )
            is_clear = all(
                gain > ERRORS * hypot(noise(part) * sqrt(1 / BEFORE + 1 / AFTER), error * rise)
                for gain, part, (_, error) in zip(gains, parts, prices, strict=True)
            )
            is_paid = _is_more_paid(steps[begin:end], early.others, least_gain)
            if is_clear and is_paid and (-rise >= fall or not must_fall):
                return date_rise(parts[gains.index(min(gains))], begin)
    return None


def _is_more_paid(steps: Sequence[GoldStep], early: Scores, least: float) -> bool:
    """Return whether the last responses without the gold, enough of them, score higher than early ones."""
    ends = (_together(steps[-n:]).others for n in range(AFTER, len(steps) + 1))
    late = next((scores for scores in ends if scores.n >= MIN_RESPONSES), None)
    if late is None:
        return False
    error = sqrt(sum(it.variance / it.n for it in (early, late) if it.n))
    return late.mean - early.mean >= max(least, 3 * error)


def _together(steps: Sequence[GoldStep]) -> GoldStep:
    stating, others = (
        _pool([getattr(one, kind) for one in steps]) for kind in ("stating", "others")
    )
    count = sum(one.n for one in steps)
    score = sum(one.n * one.score for one in steps) / count
    return GoldStep(steps[-1].step, score, stating.n / count, stating, others)


def _pool(groups: Sequence[Scores]) -> Scores:
    n = sum(it.n for it in groups)
    if n <= 0:
        return Scores(0.0, 0.0, 0.0)
    middle = sum(it.n * it.mean for it in groups) / n
    squares = sum(it.n * (it.variance + (it.mean - middle) ** 2) for it in groups)
    return Scores(n, middle, squares / n)


def _error(*groups: Scores) -> float:
    return sqrt(sum(it.variance / max(it.n, 1.0) for it in groups))
