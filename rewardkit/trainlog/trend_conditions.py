"""Conditions of rules that compare an earlier part of a run with a later one."""

from __future__ import annotations

from rewardkit.trainlog.conditions import (
    MIN_POINTS,
    Condition,
    RuleEvidence,
    evidence_of,
    logged_name,
    mean_fact,
)
from rewardkit.trainlog.series import (
    CHANGE_ERRORS,
    Series,
    change,
    fall_step,
    finite,
    mean,
    noise,
    part,
    trend,
)
from rewardkit.trainlog.topics import REWARD, validations
from rewardkit.trainlog.training_run import TrainingRun

#: Compared parts of a run: its middle third and its last tenth.
MIDDLE, END = (0.33, 0.67), (0.9, 1.0)

#: A reward has risen if it is this many standard errors above the first part; few, because most of a
#: run's gain may lie within that part.
RISE_ERRORS = 2.0


def grows_without_reward(
    factor: float, least: float, *names: str, first: float, beyond: float = 0.0
) -> Condition:
    """A metric grows by a factor while the reward does not rise.

    Its last tenth is at least `least` and `factor` times the middle third; or at least `beyond` and
    twice the `first` share of the steps, which finds steady growth too.
    """
    spans = ((MIDDLE, factor, least, CHANGE_ERRORS), ((0.0, first), 2.0, beyond, RISE_ERRORS))

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series, reward = finite(run.series(*names)), finite(run.series(*REWARD.names))
        if len(series) < 2 * MIN_POINTS or len(reward) < 2 * MIN_POINTS:
            return None
        name, rewards = logged_name(run, names), logged_name(run, REWARD.names)
        end = part(series, *END)
        for span, times, low, errors in spans:
            early = part(series, *span)
            has_grown = mean(end) >= max(times * mean(early), low) and change(series, span, END) > 0
            if has_grown and not change(reward, span, END, errors) > 0:
                return evidence_of(
                    mean_fact(name, early),
                    mean_fact(name, end),
                    mean_fact(rewards, part(reward, *span)),
                    mean_fact(rewards, part(reward, *END)),
                    steps=(early[-1][0], end[-1][0]),
                )
        return None

    return holds


def grow_together(first: tuple[str, float], second: tuple[str, float]) -> Condition:
    """Two metrics grow, each by its factor, since the first fifth or the middle third."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        both = [(name, finite(run.series(name)), factor) for name, factor in (first, second)]
        if any(len(series) < 2 * MIN_POINTS for _, series, _ in both):
            return None
        for span in (MIDDLE, (0.0, 0.2)):
            if all(_has_grown(series, span, factor) for _, series, factor in both):
                facts = [
                    mean_fact(name, part(series, *at))
                    for name, series, _ in both
                    for at in (span, END)
                ]
                return evidence_of(*facts, steps=facts[1].steps)
        return None

    return holds


def loses_gain(share: float) -> Condition:
    """The reward loses a share of its gain, or ends below its start.

    The loss exceeds the noise and a tenth of the range of scores (0.05 if that is not logged).
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        reward = finite(run.series(*REWARD.names))
        if len(reward) < 2 * MIN_POINTS:
            return None
        tenths = [part(reward, i / 10, (i + 1) / 10) for i in range(10)]
        peak = max(tenths, key=mean)
        begin, end = tenths[0], tenths[-1]
        error = max(noise(reward) * (2 / len(end)) ** 0.5, _slow_noise(reward))
        fell = mean(peak) - mean(end)
        gained = max(mean(peak) - mean(begin), 8 * error)
        if not fell > max(share * gained, 6 * error, 0.1 * _range(run)) or not fell:
            return None
        name = logged_name(run, REWARD.names)
        return evidence_of(
            mean_fact(name, begin),
            mean_fact(name, peak),
            mean_fact(name, end),
            steps=(fall_step(reward, mean(peak) - fell / 4), end[-1][0]),
        )

    return holds


def rises_without_validation(gain: float, share: float, ceiling: float) -> Condition:
    """The training reward rises, but the validation of no data source does.

    Sources with too few validations, and those above `ceiling` from the start, do not count.
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        reward = finite(run.series(*REWARD.names))
        rise = (trend(reward) or 0.0) if len(reward) >= MIN_POINTS else 0.0
        sources = {
            name: points
            for name, series in validations(run).items()
            if name != "loss" and len(points := finite(series)) >= 6
        }
        sources = {name: points for name, points in sources.items() if points[0][1] < ceiling}
        if rise < gain or not sources:
            return None
        facts = [
            mean_fact(logged_name(run, REWARD.names), part(reward, 0, 0.2)),
            mean_fact(logged_name(run, REWARD.names), part(reward, 0.8, 1)),
        ]
        for name, points in sources.items():
            early, late = part(points, 0, 0.34), part(points, 0.66, 1)
            if mean(late) - mean(early) > share * rise:
                return None
            facts += (mean_fact(f"validation {name}", early), mean_fact(f"validation {name}", late))
        return evidence_of(*facts[:8], steps=(reward[0][0], reward[-1][0]))

    return holds


def _has_grown(series: Series, span: tuple[float, float], factor: float) -> bool:
    early, late = part(series, *span), part(series, *END)
    return change(series, span, END) > 0 and mean(late) >= factor * mean(early)


def _slow_noise(series: Series) -> float:
    """How far two tenths of a curve differ by chance if neighbouring points are correlated.

    Computed from the means of twentieths, whose noise includes the correlation within them.
    """
    means = [(i, mean(part(series, i / 20, (i + 1) / 20))) for i in range(20)]
    return noise(means)


def _range(run: TrainingRun) -> float:
    """Range from the lowest to the highest score of the run; 0.5 if they are not logged."""
    low = [y for _, y in finite(run.series("critic/rewards/min", "critic/score/min", "score/min"))]
    high = [y for _, y in finite(run.series("critic/rewards/max", "critic/score/max", "score/max"))]
    return max(high) - min(low) if low and high else 0.5
