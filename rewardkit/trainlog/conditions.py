"""Conditions that rules are made of: each looks at a run and gives the evidence, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from rewardkit.trainlog.series import Series, finite, mean, part
from rewardkit.trainlog.topics import step_seconds
from rewardkit.trainlog.training_run import FIXED, FULL, TrainingRun

#: Steps at the end of a run whose mean is compared with a limit: one odd step is no finding.
LAST = 10

#: Points that a comparison of an earlier with a later part needs.
LONG = 15


@dataclass(frozen=True)
class Fact:
    """A number that supports a finding: which, at which step or over which, and its value."""

    what: str
    steps: tuple[int, int]
    value: float

    def __str__(self) -> str:
        first, last = self.steps
        at = f"step {first:,}" if first == last else f"steps {first:,}-{last:,}"
        return f"{self.what} {self.value:.4g} ({at})"


@dataclass(frozen=True)
class RuleEvidence:
    """Why a condition holds: its numbers, and the steps to look at.

    Attributes:
        facts: the numbers.
        steps: the first and the last.
        metrics: the curves to look at, where they are others than the rule's.
    """

    facts: tuple[Fact, ...]
    steps: tuple[int, int]
    metrics: tuple[str, ...] = ()


Condition: TypeAlias = Callable[[TrainingRun], RuleEvidence | None]


def mean_fact(what: str, points: Series) -> Fact:
    """The mean of some points, or the value of one."""
    return Fact(what, (points[0][0], points[-1][0]), mean(points))


def evidence_of(*facts: Fact | None, steps: tuple[int, int] | None = None) -> RuleEvidence:
    """Evidence of the facts that there are; of the steps of the first, if no others are said."""
    found = tuple(item for item in facts if item)
    return RuleEvidence(found, steps or found[0].steps)


def last_above(limit: float, *names: str, below: float | None = None) -> Condition:
    """The mean of a metric over the last steps is above a limit, and not above another one."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        last = series[-LAST:]
        if not last or not mean(last) > limit or (below is not None and mean(last) > below):
            return None
        name = logged_name(run, names)
        return evidence_of(mean_fact(name, last), _worst(name, series), steps=_span(series, limit))

    return holds


def often_above(limit: float, least: int, *names: str) -> Condition:
    """A metric is above a limit in several of the last steps."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        if sum(value > limit for _, value in series[-LAST:]) < least:
            return None
        name = logged_name(run, names)
        return evidence_of(
            mean_fact(name, series[-LAST:]), _worst(name, series), steps=_span(series, limit)
        )

    return holds


def last_outside(low: float, high: float, *names: str) -> Condition:
    """The mean of a metric over the last steps is outside of a range."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        last = finite(run.series(*names))[-LAST:]
        if not last or low <= mean(last) <= high:
            return None
        return evidence_of(mean_fact(logged_name(run, names), last))

    return holds


def at_limit(limit: float, kind: str, *keys: str, infer: bool = False) -> Condition:
    """A share of prompts or responses is cut, and the longest is as long as is allowed.

    0.9 measures `clip_ratio` against the longest of the batch, of which there always is one; so
    does whoever pads to it, in any release. So the longest must reach the limit that is configured,
    or with `infer` shows as a length that is often the longest. Where neither is known, a share of
    0.1 to 0.8 counts if the longest is the same in all of the last steps, or is not logged.
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        cut = finite(run.series(f"{kind}/clip_ratio"))
        last = cut[-LAST:]
        if not last or not mean(last) > limit:
            return None
        longest = finite(run.series(f"{kind}/max"))
        allowed = _configured(run, keys) or (_plateau(longest) if infer else None)
        if not _reached(longest[-LAST:], allowed, of_limit=run.era in {FIXED, FULL}):
            return None
        return evidence_of(
            mean_fact(f"{kind}/clip_ratio", last),
            _worst(f"{kind}/clip_ratio", cut),
            mean_fact(f"{kind}/max", longest[-LAST:]) if longest else None,
            steps=_span(cut, limit),
        )

    return holds


def not_a_number(*prefixes: str) -> Condition:
    """A metric of the training itself is NaN or infinite."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        bad = {
            metric: steps
            for metric in run.table
            if metric.startswith(prefixes)
            and (steps := [step for step, value in run.series(metric) if not isfinite(value)])
        }
        if not bad:
            return None
        facts = [
            Fact(
                f"number of steps with {metric} NaN or infinite", (steps[0], steps[-1]), len(steps)
            )
            for metric, steps in sorted(bad.items(), key=lambda item: item[1][0])[:4]
        ]
        first = min(steps[0] for steps in bad.values())
        last = max(steps[-1] for steps in bad.values())
        return RuleEvidence(tuple(facts), (first, last), tuple(bad))

    return holds


def never_differs(low: tuple[str, ...], high: tuple[str, ...], first: int, most: int) -> Condition:
    """All responses get one and the same score from the first step on.

    For all of at least `first` steps, or for the first `most`.
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        lows, highs = dict(finite(run.series(*low))), dict(finite(run.series(*high)))
        steps = [step for step in run.steps if step in lows and step in highs]
        same: list[tuple[int, float]] = []
        for step in steps:
            if lows[step] != highs[step] or (same and same[0][1] != lows[step]):
                break
            same.append((step, lows[step]))
        if len(same) < first or (len(same) < len(steps) and len(same) < most):
            return None
        return evidence_of(
            mean_fact(logged_name(run, low), same), mean_fact(logged_name(run, high), same)
        )

    return holds


def both_zero(low: str, high: str, least: int) -> Condition:
    """Lowest and highest of a batch are exactly 0 in several steps: it trained nothing."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        lows, highs = dict(run.series(low)), dict(run.series(high))
        # A mean of 0.000 with three decimals may be anything below half a thousandth.
        steps = [] if run.era == FIXED else [s for s in lows if lows[s] == highs.get(s) == 0]
        if len(steps) < least:
            return None
        span = (steps[0], steps[-1])
        return RuleEvidence(
            (Fact(f"number of steps with {low} = {high} = 0", span, len(steps)),), span
        )

    return holds


def falls_to(share: float, limit: float, *names: str) -> Condition:
    """A metric ends below a share of where it began, and below a limit."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        if len(series) < LONG:
            return None
        begin, end = part(series, 0, 0.1), series[-LAST:]
        if not (mean(end) < share * mean(begin) and mean(end) < limit):
            return None
        name = logged_name(run, names)
        low = [point for point in series if point[1] < share * mean(begin)]
        steps = (low[0][0], series[-1][0]) if low else None
        return evidence_of(mean_fact(name, begin), mean_fact(name, end), steps=steps)

    return holds


def time_share(limit: float, *names: str) -> Condition:
    """A part takes more than a share of the time of the last steps."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        spent, whole = dict(finite(run.series(*names))), dict(finite(step_seconds(run)))
        shares = [(s, spent[s] / whole[s]) for s in run.steps if s in spent and whole.get(s)]
        last = shares[-LAST:]
        if not last or mean(last) <= limit:
            return None
        name = logged_name(run, names)
        return evidence_of(
            mean_fact(f"{name} as a share of the step", last),
            mean_fact(name, [(step, spent[step]) for step, _ in last]),
        )

    return holds


def imbalanced(limit: float) -> Condition:
    """After balancing, the fullest worker has clearly more tokens than the emptiest."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        names = ("balanced_max", "balanced_min", "mean")
        high, low, mid = (dict(finite(run.series(f"global_seqlen/{name}"))) for name in names)
        spread = [(s, (high[s] - low[s]) / mid[s]) for s in high if s in low and mid.get(s)]
        last = spread[-LAST:]
        if not last or mean(last) <= limit:
            return None
        at = last[-1][0]
        return evidence_of(
            mean_fact("(balanced_max - balanced_min) / mean of global_seqlen", last),
            Fact("global_seqlen/balanced_max", (at, at), high[at]),
            Fact("global_seqlen/balanced_min", (at, at), low[at]),
        )

    return holds


def _configured(run: TrainingRun, keys: Iterable[str]) -> float | None:
    try:
        return float(run.setting(*keys))
    except (TypeError, ValueError):
        return None


def _reached(longest: Series, allowed: float | None, *, of_limit: bool) -> bool:
    """Whether most of the last steps' longest are as long as is allowed."""
    values = [value for _, value in longest]
    if not values:
        return of_limit
    if allowed is None:
        return of_limit and len(set(values)) == 1
    return 2 * sum(value >= allowed for value in values) >= len(values)


def _plateau(longest: Series) -> float | None:
    """A value that is the highest of all again and again."""
    values = [value for _, value in longest]
    top = max(values, default=0.0)
    return top if values.count(top) >= max(3, len(values) / 4) else None


def logged_name(run: TrainingRun, names: Iterable[str]) -> str:
    """The first of these metrics that the run has, else the first."""
    return next((name for name in names if name in run.table), next(iter(names)))


def _worst(name: str, series: Series) -> Fact | None:
    """The highest point, where the mean of the last ones does not say it all."""
    step, value = max(series, key=lambda point: point[1])
    return Fact(f"highest {name}", (step, step), value) if len(series) > 1 else None


def _span(series: Series, limit: float) -> tuple[int, int]:
    """From the first step above the limit to the last."""
    above = [step for step, value in series if value > limit]
    return above[0], above[-1]
