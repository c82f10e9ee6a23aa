"""Conditions of rules: each inspects a run and returns its evidence, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeAlias

from rewardkit.trainlog.series import Onset, Series, fall_step, finite, mean, part
from rewardkit.trainlog.topics import step_seconds
from rewardkit.trainlog.training_run import FIXED, FULL, TrainingRun
from rewardkit.trainlog.translations import translations, with_note

#: Steps at the end of a run whose mean is compared with a limit, so that one odd step does not count.
LAST_STEPS = 10

#: Fewest points of a curve whose earlier part is compared with a later one.
MIN_POINTS = 15


@dataclass(frozen=True)
class Fact:
    """A number that supports a finding.

    Attributes:
        what: description of the number.
        steps: first and last step that it covers.
        value: the number.
        is_share: whether it is a share from 0 to 1, which is written as a percentage.
    """

    what: str
    steps: tuple[int, int]
    value: float
    is_share: bool = False

    def text(self, lang: str = "en") -> str:
        """Return the fact in words: `actor/entropy 0.31 (steps 20-29)`."""
        value = f"{self.value:.0%}" if self.is_share else f"{self.value:.4g}"
        what, span = _described(self.what, lang), span_text(self.steps, lang)
        return with_note(f"{what} {value}", span, lang)


def _described(what: str, lang: str) -> str:
    """Return the description of a fact in a language; metrics keep their names."""
    english = translations("facts", "en")
    for name, translated in translations("facts", lang).items():
        before, _, after = english[name].partition("{name}")
        if what.startswith(before) and what.endswith(after):
            return translated.format(name=what[len(before) : len(what) - len(after)])
    return what


@dataclass(frozen=True)
class RuleEvidence:
    """Evidence that a condition holds.

    Attributes:
        facts: numbers that show it.
        steps: first and last step to look at.
        metrics: metrics to look at, if they differ from the rule's.
        onset: where it began, if the condition looks for that.
        phrase: what the responses after the onset have in common, if it is a phrase.
    """

    facts: tuple[Fact, ...]
    steps: tuple[int, int]
    metrics: tuple[str, ...] = ()
    onset: Onset | None = None
    phrase: str = ""


def span_text(steps: tuple[int, int], lang: str) -> str:
    """Return a range of steps in words: `step 7` or `steps 20-29`."""
    first, last = steps
    words = translations("tables", lang)
    return words["at_step" if first == last else "at_steps"].format(first=first, last=last)


@dataclass(frozen=True)
class NotEnoughData:
    """Why a condition could not be judged: a key of `hacking` in `translations.yaml`, and its values."""

    reason: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, lang: str = "en") -> str:
        """Return the reason in words."""
        return translations("hacking", lang)[self.reason].format(**self.values)


Condition: TypeAlias = Callable[[TrainingRun], RuleEvidence | None]

#: A condition that may lack the data to be judged.
OnsetCondition: TypeAlias = Callable[[TrainingRun], RuleEvidence | NotEnoughData | None]


def mean_fact(what: str, points: Series) -> Fact:
    """Return the mean of points as a fact."""
    return Fact(what, (points[0][0], points[-1][0]), mean(points))


def evidence_of(*facts: Fact | None, steps: tuple[int, int] | None = None) -> RuleEvidence:
    """Return the evidence of facts, leaving out None; `steps` are by default those of the first."""
    present = tuple(item for item in facts if item)
    return RuleEvidence(present, steps or present[0].steps)


def last_above(limit: float, *names: str, below: float | None = None) -> Condition:
    """The mean of a metric over the last steps is above `limit` and not above `below`."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        last = series[-LAST_STEPS:]
        if not last or not mean(last) > limit or (below is not None and mean(last) > below):
            return None
        name = logged_name(run, names)
        return evidence_of(
            mean_fact(name, last), _highest(name, series), steps=_steps_above(series, limit)
        )

    return holds


def often_above(limit: float, least: int, *names: str) -> Condition:
    """A metric is above a limit in at least `least` of the last steps."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        if sum(value > limit for _, value in series[-LAST_STEPS:]) < least:
            return None
        name = logged_name(run, names)
        return evidence_of(
            mean_fact(name, series[-LAST_STEPS:]),
            _highest(name, series),
            steps=_steps_above(series, limit),
        )

    return holds


def last_outside(low: float, high: float, *names: str) -> Condition:
    """The mean of a metric over the last steps is outside a range."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        last = finite(run.series(*names))[-LAST_STEPS:]
        if not last or low <= mean(last) <= high:
            return None
        return evidence_of(mean_fact(logged_name(run, names), last))

    return holds


def at_limit(limit: float, kind: str, *keys: str, infer: bool = False) -> Condition:
    """Too many prompts or responses are cut, and the longest one reaches the length limit.

    0.9, and any trainer that pads to the longest of the batch, measures `clip_ratio` against that
    longest one, so the ratio is never 0. Therefore the longest must reach the configured limit or,
    with `infer`, a length that is often the longest. If neither is known, the ratio of verl 0.1 to
    0.8 counts if the longest is the same in all of the last steps, or is not logged.
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        cut = finite(run.series(f"{kind}/clip_ratio"))
        last = cut[-LAST_STEPS:]
        if not last or not mean(last) > limit:
            return None
        longest = finite(run.series(f"{kind}/max"))
        allowed = _configured(run, keys) or (_frequent_maximum(longest) if infer else None)
        if not _reaches_limit(
            longest[-LAST_STEPS:], allowed, is_relative_to_limit=run.era in {FIXED, FULL}
        ):
            return None
        return evidence_of(
            mean_fact(f"{kind}/clip_ratio", last),
            _highest(f"{kind}/clip_ratio", cut),
            mean_fact(f"{kind}/max", longest[-LAST_STEPS:]) if longest else None,
            steps=_steps_above(cut, limit),
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


def never_differs(
    low: tuple[str, ...], high: tuple[str, ...], mean: tuple[str, ...], first: int, most: int
) -> Condition:
    """All responses get the same score from the first step on.

    In all of at least `first` steps, or in the first `most` steps. A log without the lowest and the
    highest score is judged by the mean, unless it is rounded to three decimals: it hardly stays the
    same unless all scores do.
    """

    def holds(run: TrainingRun) -> RuleEvidence | None:
        has_range = bool(run.series(*low) and run.series(*high))
        if not has_range and run.era == FIXED:
            return None
        lows = dict(finite(run.series(*(low if has_range else mean))))
        highs = dict(finite(run.series(*high))) if has_range else lows
        steps = [step for step in run.steps if step in lows and step in highs]
        same: list[tuple[int, float]] = []
        for step in steps:
            if lows[step] != highs[step] or (same and same[0][1] != lows[step]):
                break
            same.append((step, lows[step]))
        if len(same) < first or (len(same) < len(steps) and len(same) < most):
            return None
        names = (low, high) if has_range else (mean,)
        return evidence_of(*(mean_fact(logged_name(run, name), same) for name in names))

    return holds


def both_zero(low: str, high: str, least: int) -> Condition:
    """The lowest and the highest value are exactly 0 in several steps, which train nothing."""

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
    """A metric ends below a share of its initial value, and below a limit."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        series = finite(run.series(*names))
        if len(series) < MIN_POINTS:
            return None
        begin, end = part(series, 0, 0.1), series[-LAST_STEPS:]
        if not (mean(end) < share * mean(begin) and mean(end) < limit):
            return None
        name = logged_name(run, names)
        steps = (fall_step(series, min(share * mean(begin), limit)), series[-1][0])
        return evidence_of(mean_fact(name, begin), mean_fact(name, end), steps=steps)

    return holds


def time_share(limit: float, *names: str) -> Condition:
    """A phase takes more than a share of the time of the last steps."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        phase, whole = dict(finite(run.series(*names))), dict(finite(step_seconds(run)))
        shares = [(s, phase[s] / whole[s]) for s in run.steps if s in phase and whole.get(s)]
        last = shares[-LAST_STEPS:]
        if not last or mean(last) <= limit:
            return None
        name = logged_name(run, names)
        return evidence_of(
            mean_fact(f"{name} as a share of the step", last),
            mean_fact(name, [(step, phase[step]) for step, _ in last]),
        )

    return holds


def imbalanced(limit: float) -> Condition:
    """After balancing, the workers' numbers of tokens still differ by more than a share of the mean."""

    def holds(run: TrainingRun) -> RuleEvidence | None:
        names = ("balanced_max", "balanced_min", "mean")
        high, low, mid = (dict(finite(run.series(f"global_seqlen/{name}"))) for name in names)
        spread = [(s, (high[s] - low[s]) / mid[s]) for s in high if s in low and mid.get(s)]
        last = spread[-LAST_STEPS:]
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


def _reaches_limit(longest: Series, allowed: float | None, *, is_relative_to_limit: bool) -> bool:
    values = [value for _, value in longest]
    if not values:
        return is_relative_to_limit
    if allowed is None:
        return is_relative_to_limit and len(set(values)) == 1
    return 2 * sum(value >= allowed for value in values) >= len(values)


def _frequent_maximum(longest: Series) -> float | None:
    values = [value for _, value in longest]
    top = max(values, default=0.0)
    return top if values.count(top) >= max(3, len(values) / 4) else None


def logged_name(run: TrainingRun, names: Iterable[str]) -> str:
    """Return the first of these metrics that the run has, else the first name."""
    return next((name for name in names if name in run.table), next(iter(names)))


def _highest(name: str, series: Series) -> Fact | None:
    """The highest point, unless the curve has only one point."""
    step, value = max(series, key=lambda point: point[1])
    return Fact(f"highest {name}", (step, step), value) if len(series) > 1 else None


def _steps_above(series: Series, limit: float) -> tuple[int, int]:
    above = [step for step, value in series if value > limit]
    return above[0], above[-1]
