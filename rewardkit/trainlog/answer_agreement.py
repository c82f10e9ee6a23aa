"""Whether the answers of a group agree as much as their score implies, and since when they do not.

Right answers to a prompt are equal, so answers agree more where a score rises that is earned. How
much more is fitted on the run's own steps, before it is known whether and when the run is hacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import TypeAlias

from rewardkit.trainlog.change_point import (
    MIN_AFTER,
    MIN_BEFORE,
    TURN_ERRORS,
    ChangePoint,
    find_rise,
)
from rewardkit.trainlog.conditions import NotEnoughData
from rewardkit.trainlog.reward_curves import LEVEL_ERRORS, LEVEL_POINTS, gain_since, points_before
from rewardkit.trainlog.series import finite, mean, noise
from rewardkit.trainlog.training_run import TrainingRun

#: Steps, each with its score and its share of distinct answers.
Pairs: TypeAlias = Sequence[tuple[int, float, float]]

#: Change of the share of distinct answers with the score. A right answer that replaces a wrong one
#: removes at most one; if wrong answers agree too, it removes fewer.
STEEPEST, FLATTEST = -1.0, -0.3

#: A run is also judged as it was when it had this share of its steps, and again, and again.
_SHORTER = 0.8


def agreed_score(run: TrainingRun, prefix: str) -> str:
    """Return the curve that says how many answers are right: `acc`, or a score without parts."""
    name = f"{prefix}acc/mean"
    return name if name in run.table else f"{prefix}score/mean"


def agreement_turn(pairs: Pairs, sign: int, least: float) -> ChangePoint | NotEnoughData | None:
    """Return since when distinct answers are above what the score explains, or below with `sign` -1.

    The relation is fitted on the first half of the run. Of a run that turned before its middle,
    that half has the turn in it, so the run is judged as it was at earlier steps too; what it left
    then must still be so at its end.

    Args:
        pairs: the steps.
        sign: 1 if answers agree less than the score implies, -1 if they agree more.
        least: smallest change that counts, of the distinct answers and of the score.
    """
    results = [_turn(pairs, end, sign, least) for end in _ends(len(pairs))]
    turn = next((it for it in results if isinstance(it, ChangePoint)), None)
    return turn or results[0]


def _ends(n: int) -> Iterator[int]:
    """Yield the numbers of steps at which a run is judged: all, and fewer and fewer."""
    while n >= MIN_BEFORE + LEVEL_POINTS:
        yield n
        n = int(n * _SHORTER)


def _turn(pairs: Pairs, end: int, sign: int, least: float) -> ChangePoint | NotEnoughData | None:
    line = _fit(pairs[: max(end // 2, MIN_BEFORE)])
    if sign > 0 and line.errors > -LEVEL_ERRORS:
        return NotEnoughData("agreement")
    # The relation is not quite a line: a higher score than before explains the steepest fall.
    rest = _unexplained(pairs, line, line.slope if sign > 0 else STEEPEST)
    turn = find_rise([(step, sign * value) for step, value in rest[:end]])
    if turn is None or turn.errors < TURN_ERRORS:
        return None
    score = [(step, value) for step, value, _ in pairs]
    before, level = points_before(rest, turn.low), mean(points_before(score, turn.low))
    for at in (end, len(pairs)):
        late = rest[at - MIN_AFTER : at]
        error = noise(rest[:end]) * sqrt(1 / len(before) + 1 / len(late))
        if sign > 0:  # the slope of few steps is uncertain, and so is what a higher score implies
            error = hypot(error, line.error * (mean(score[at - MIN_AFTER : at]) - level))
        if sign * (mean(late) - mean(before)) < max(least, LEVEL_ERRORS * error):
            return None
    has_risen = all(gain_since(part, turn.low) > least for part in (score, score[:end]))
    return turn if sign < 0 or has_risen else None


@dataclass(frozen=True)
class _Line:
    """How the share of distinct answers goes with the score: a line through earlier steps.

    Attributes:
        score: mean score of these steps.
        highest: highest score.
        distinct: mean share of distinct answers.
        slope: slope of the line.
        errors: slope in standard errors; about 0 where answers are free text or not extracted.
        error: standard error of the slope.
    """

    score: float
    highest: float
    distinct: float
    slope: float
    errors: float
    error: float


def _fit(pairs: Pairs) -> _Line:
    """Fit the line through points (step, score, distinct answers)."""
    n = len(pairs)
    x_mean, y_mean = (sum(pair[i] for pair in pairs) / n for i in (1, 2))
    xx = sum((x - x_mean) ** 2 for _, x, _ in pairs)
    xy = sum((x - x_mean) * (y - y_mean) for _, x, y in pairs)
    yy = sum((y - y_mean) ** 2 for _, _, y in pairs)
    slope = xy / xx if xx else 0.0
    rest = max(yy - slope * xy, 1e-12 * n) / max(n - 2, 1)
    error = sqrt(rest / xx) if xx else inf
    errors = slope / error
    slope = min(max(slope, STEEPEST), FLATTEST)
    return _Line(x_mean, max(x for _, x, _ in pairs), y_mean, slope, errors, error)


def _unexplained(pairs: Pairs, line: _Line, slope_beyond: float) -> list[tuple[int, float]]:
    """Return the share of distinct answers that the line leaves unexplained, by step.

    Above the scores through which it was fitted, the line goes on with `slope_beyond`.
    """
    return [
        (
            step,
            y
            - line.distinct
            - line.slope * (min(x, line.highest) - line.score)
            - slope_beyond * max(x - line.highest, 0.0),
        )
        for step, x, y in pairs
    ]


def has_learned(run: TrainingRun, prefix: str, step: int) -> bool | None:
    """Return whether answers agree more since a step, by half of what the rise of the score implies.

    None if distinct answers are not recorded, or did not go with the score before the step.
    """
    pairs = agreement_pairs(run, prefix)
    known = [pair for pair in pairs if pair[0] <= step]
    if len(known) < MIN_BEFORE or (line := _fit(known)).errors > -LEVEL_ERRORS:
        return None
    gain = gain_since([(at, x) for at, x, _ in pairs], step)
    distinct = [(at, y) for at, _, y in pairs]
    fall = mean(points_before(distinct, step)) - mean(distinct[-LEVEL_POINTS:])
    return not gain > 0 or fall >= -line.slope * gain / 2


def agreement_pairs(run: TrainingRun, prefix: str) -> Pairs:
    """Return (step, score, share of distinct answers) of the steps that have both."""
    score = dict(finite(run.series(agreed_score(run, prefix))))
    distinct = finite(run.series(f"{prefix}distinct_answers/mean"))
    return [(step, score[step], value) for step, value in distinct if step in score]
