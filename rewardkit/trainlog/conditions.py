"""Conditions of rules: each looks at a run and returns its evidence, or None.

The first argument is the run; `rules.yaml` has the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, TypeAlias

from rewardkit.trainlog.series import (
    CHANGE_ERRORS,
    Onset,
    Series,
    change,
    fall_step,
    finite,
    mean,
    noise,
    part,
    trend,
)
from rewardkit.trainlog.topics import REWARD, step_seconds, validations
from rewardkit.trainlog.training_run import FIXED, FULL, TrainingRun
from rewardkit.trainlog.translations import translations, with_note

#: Steps at the end of a run whose mean is compared with a limit, so that one odd step does not count.
LAST_STEPS = 10

#: Fewest points of a curve whose earlier part is compared with a later one.
MIN_POINTS = 15

#: Compared parts of a run: its middle third and its last tenth.
MIDDLE, END = (0.33, 0.67), (0.9, 1.0)

#: A reward has risen if it is this many standard errors above the first part; few, because most of a
#: run's gain may lie within that part.
RISE_ERRORS = 2.0

#: Kinds of facts that are fractions, which are written as percentages.
_FRACTIONS = frozenset({"phrase", "answer", "among", "others"})


@dataclass(frozen=True)
class Fact:
    """A number that supports a finding, over a range of steps.

    `kind` is what it says of the metric or other name, a key of `facts` in `translations.yaml`.
    """

    name: str
    steps: tuple[int, int]
    value: float
    kind: str = "mean"

    def what(self, lang: str = "en") -> str:
        """Return the description of the number; metrics keep their names."""
        return translations("facts", lang)[self.kind].format(name=self.name)

    def text(self, lang: str = "en") -> str:
        """Return the fact in words: `actor/entropy 0.31 (steps 20-29)`."""
        value = f"{self.value:.0%}" if self.kind in _FRACTIONS else f"{self.value:.4g}"
        return with_note(f"{self.what(lang)} {value}", span_text(self.steps, lang), lang)


@dataclass(frozen=True)
class RuleEvidence:
    """Evidence that a condition holds: facts, and the steps and metrics (by default the rule's) to look at.

    A condition that looks for an onset says where it began, and the phrase that the responses after it share.
    """

    facts: tuple[Fact, ...]
    steps: tuple[int, int]
    metrics: tuple[str, ...] = ()
    onset: Onset | None = None
    phrase: str = ""

    @property
    def onset_values(self) -> dict[str, Any] | None:
        """The onset as plain values for JSON."""
        onset = self.onset
        return {"step": onset.step, "interval": [onset.low, onset.high]} if onset else None

    def text(self, lang: str) -> str:
        """Return the onset in words: `step 57 (55-60)`; "" if there is none."""
        words = translations("hacking", lang)
        return words["interval"].format(**vars(self.onset)) if self.onset else ""


@dataclass(frozen=True)
class NotEnoughData:
    """Why a condition could not be judged: a key of `hacking` in `translations.yaml`, and its values."""

    reason: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, lang: str = "en") -> str:
        """Return the reason in words."""
        return translations("hacking", lang)[self.reason].format(**self.values)


def lacking(reason: str, n: int, least: int) -> NotEnoughData | None:
    """Return that `n` of what a reason names are too few to judge, if they are."""
    return NotEnoughData(reason, {"n": n, "least": least}) if n < least else None


#: What a condition says; those on an onset may lack the data to be judged.
Judgement: TypeAlias = RuleEvidence | NotEnoughData | None


def span_text(steps: tuple[int, int], lang: str) -> str:
    """Return a range of steps in words: `step 7` or `steps 20-29`."""
    first, last = steps
    words = translations("tables", lang)
    return words["at_step" if first == last else "at_steps"].format(first=first, last=last)


def curve(run: TrainingRun, names: Iterable[str]) -> tuple[str, list[tuple[int, float]]]:
    """Return the first of these metrics that the run has, else the first, and its finite points."""
    names = tuple(names)
    return next((name for name in names if name in run.table), names[0]), finite(run.series(*names))


def mean_fact(name: str, points: Series, kind: str = "mean") -> Fact:
    """Return the mean of points as a fact."""
    return Fact(name, (points[0][0], points[-1][0]), mean(points), kind)


def last_outside(
    run: TrainingRun, low: float, high: float, *names: str, below: float = inf, times: int = 0
) -> RuleEvidence | None:
    """The mean of a metric over the last steps is outside a range, and not above `below`.

    With `times`, it counts at how many of these steps the metric is above `high`.
    """
    name, series = curve(run, names)
    last = series[-LAST_STEPS:]
    if not last or mean(last) > below:
        return None
    if sum(y > high for _, y in last) >= times if times else mean(last) > high:
        return _above(name, series, high)
    return _evidence(mean_fact(name, last)) if mean(last) < low else None


def at_limit(
    run: TrainingRun, limit: float, kind: str, *keys: str, infer: bool = False
) -> RuleEvidence | None:
    """Too many prompts or responses are cut, and the longest one reaches the length limit.

    0.9, and any trainer that pads to the longest of the batch, measures `clip_ratio` against that
    longest one, so the ratio is never 0. Therefore the longest must reach the configured limit or,
    with `infer`, a length that is often the longest. If neither is known, the ratio of verl 0.1 to
    0.8 counts if the longest is the same in all of the last steps, or is not logged.
    """
    (name, series), (_, longest) = (curve(run, [f"{kind}/{it}"]) for it in ("clip_ratio", "max"))
    if not series or not mean(series[-LAST_STEPS:]) > limit:
        return None
    lengths, last = [length for _, length in longest], longest[-LAST_STEPS:]
    allowed: float | None
    try:
        allowed = float(run.setting(*keys))
    except (TypeError, ValueError):
        top = max(lengths, default=0.0)
        allowed = top if infer and lengths.count(top) >= max(3, len(lengths) / 4) else None
    if last and allowed is not None:
        is_reached = 2 * sum(length >= allowed for _, length in last) >= len(last)
    else:
        is_reached = run.era in {FIXED, FULL} and len({length for _, length in last}) <= 1
    if not is_reached:
        return None
    return _above(name, series, limit, *([mean_fact(f"{kind}/max", last)] if last else []))


def not_a_number(run: TrainingRun, *prefixes: str) -> RuleEvidence | None:
    """A metric of the training itself is NaN or infinite."""
    bad = {
        metric: steps
        for metric in run.table
        if metric.startswith(prefixes)
        and (steps := [step for step, value in run.series(metric) if not isfinite(value)])
    }
    if not bad:
        return None
    facts = [
        Fact(metric, (steps[0], steps[-1]), len(steps), "not_a_number")
        for metric, steps in sorted(bad.items(), key=lambda item: item[1][0])
    ]
    span = facts[0].steps[0], max(fact.steps[1] for fact in facts)
    return RuleEvidence(tuple(facts[:4]), span, tuple(bad))


def never_differs(
    run: TrainingRun,
    low: Sequence[str],
    high: Sequence[str],
    middle: Sequence[str],
    *,
    first: int,
    most: int,
) -> RuleEvidence | None:
    """All responses get the same score from the first step on.

    In all of at least `first` steps, or in the first `most` steps. A log without the lowest and the
    highest score is judged by the mean, unless it is rounded to three decimals: it hardly stays the
    same unless all scores do.
    """
    has_range = bool(run.series(*low) and run.series(*high))
    if not has_range and run.era == FIXED:
        return None
    curves = [curve(run, names) for names in ((low, high) if has_range else (middle,))]
    lows, highs = dict(curves[0][1]), dict(curves[-1][1])
    steps = [step for step in run.steps if step in lows and step in highs]
    same: list[tuple[int, float]] = []
    for step in steps:
        if lows[step] != highs[step] or (same and same[0][1] != lows[step]):
            break
        same.append((step, lows[step]))
    if len(same) < first or (len(same) < len(steps) and len(same) < most):
        return None
    return _evidence(*(mean_fact(name, same) for name, _ in curves))


def both_zero(run: TrainingRun, low: str, high: str, least: int) -> RuleEvidence | None:
    """The lowest and the highest value are exactly 0 in several steps, which train nothing."""
    lows, highs = dict(run.series(low)), dict(run.series(high))
    # A mean of 0.000 with three decimals may be anything below half a thousandth.
    steps = [] if run.era == FIXED else [s for s in lows if lows[s] == highs.get(s) == 0]
    if len(steps) < least:
        return None
    return _evidence(Fact(f"{low} = {high} = 0", (steps[0], steps[-1]), len(steps), "steps"))


def falls_to(run: TrainingRun, fraction: float, limit: float, *names: str) -> RuleEvidence | None:
    """A metric ends below a fraction of its initial value, and below a limit."""
    name, series = curve(run, names)
    if len(series) < MIN_POINTS:
        return None
    begin, end = part(series, 0, 0.1), series[-LAST_STEPS:]
    level = min(fraction * mean(begin), limit)
    if not mean(end) < level:
        return None
    steps = fall_step(series, level), series[-1][0]
    return _evidence(mean_fact(name, begin), mean_fact(name, end), steps=steps)


def takes_time(run: TrainingRun, limit: float, *names: str) -> RuleEvidence | None:
    """A phase takes more than a fraction of the time of the last steps."""
    (name, series), whole = curve(run, names), dict(finite(step_seconds(run)))
    last = [(step, seconds) for step, seconds in series if whole.get(step)][-LAST_STEPS:]
    fractions = [(step, seconds / whole[step]) for step, seconds in last]
    if not fractions or mean(fractions) <= limit:
        return None
    return _evidence(mean_fact(name, fractions, "share"), mean_fact(name, last))


def imbalanced(run: TrainingRun, limit: float) -> RuleEvidence | None:
    """After balancing, the workers' numbers of tokens still differ by more than a fraction of the mean."""
    names = [f"global_seqlen/{name}" for name in ("balanced_max", "balanced_min", "mean")]
    high, low, middle = (dict(finite(run.series(name))) for name in names)
    spread = [(s, (high[s] - low[s]) / middle[s]) for s in high if s in low and middle.get(s)]
    last = spread[-LAST_STEPS:]
    if not last or mean(last) <= limit:
        return None
    at = last[-1][0]
    ends = Fact(names[0], (at, at), high[at]), Fact(names[1], (at, at), low[at])
    return _evidence(mean_fact("", last, "balance"), *ends)


def grows_without_reward(
    run: TrainingRun, factor: float, least: float, *names: str, first: float, beyond: float = 0.0
) -> RuleEvidence | None:
    """A metric grows by a factor while the reward does not rise.

    Its last tenth is at least `least` and `factor` times the middle third; or at least `beyond` and
    twice the `first` fraction of the steps, which finds steady growth too.
    """
    curves = [curve(run, names), curve(run, REWARD.names)]
    (_, series), (_, reward) = curves
    if min(len(series), len(reward)) < 2 * MIN_POINTS:
        return None
    spans = (MIDDLE, factor, least, CHANGE_ERRORS), ((0.0, first), 2.0, beyond, RISE_ERRORS)
    for span, times, low, errors in spans:
        has_grown = _has_grown(series, span, times) and mean(part(series, *END)) >= low
        if has_grown and not change(reward, span, END, errors) > 0:
            return _changes(curves, span)
    return None


def grow_together(run: TrainingRun, **factors: float) -> RuleEvidence | None:
    """Several metrics grow, each by its factor, since the first fifth or the middle third."""
    curves = [curve(run, [name]) for name in factors]
    if any(len(series) < 2 * MIN_POINTS for _, series in curves):
        return None
    for span in (MIDDLE, (0.0, 0.2)):
        if all(_has_grown(series, span, factors[name]) for name, series in curves):
            return _changes(curves, span, begins_late=True)
    return None


def loses_gain(run: TrainingRun, fraction: float) -> RuleEvidence | None:
    """The reward loses a fraction of its gain, or ends below its start.

    The loss exceeds the noise and a tenth of the range of scores (0.05 if that is not logged).
    """
    name, reward = curve(run, REWARD.names)
    if len(reward) < 2 * MIN_POINTS:
        return None
    tenths = [part(reward, i / 10, (i + 1) / 10) for i in range(10)]
    begin, peak, end = tenths[0], max(tenths, key=mean), tenths[-1]
    # The noise of means of twentieths includes the correlation of neighbouring points within them.
    slow = noise([(i, mean(part(reward, i / 20, (i + 1) / 20))) for i in range(20)])
    error = max(noise(reward) * (2 / len(end)) ** 0.5, slow)
    fell = mean(peak) - mean(end)
    gained = max(mean(peak) - mean(begin), 8 * error)
    scores = "critic/rewards", "critic/score", "score"
    lows, highs = (
        [score for _, score in curve(run, [f"{it}/{end}" for it in scores])[1]]
        for end in ("min", "max")
    )
    span = max(highs) - min(lows) if lows and highs else 0.5
    if not fell > max(fraction * gained, 6 * error, 0.1 * span):
        return None
    steps = fall_step(reward, mean(peak) - fell / 4), end[-1][0]
    return _evidence(*(mean_fact(name, points) for points in (begin, peak, end)), steps=steps)


def rises_without_validation(
    run: TrainingRun, gain: float, fraction: float, ceiling: float
) -> RuleEvidence | None:
    """The training reward rises, but the validation of no data source does.

    Sources with too few validations, and those above `ceiling` from the start, do not count.
    """
    name, reward = curve(run, REWARD.names)
    rise = (trend(reward) or 0.0) if len(reward) >= MIN_POINTS else 0.0
    sources = {
        source: points
        for source, series in validations(run).items()
        if source != "loss" and len(points := finite(series)) >= 6 and points[0][1] < ceiling
    }
    if rise < gain or not sources:
        return None
    facts = [mean_fact(name, part(reward, *span)) for span in ((0, 0.2), (0.8, 1))]
    for source, points in sources.items():
        early, late = part(points, 0, 0.34), part(points, 0.66, 1)
        if mean(late) - mean(early) > fraction * rise:
            return None
        facts += [mean_fact(source, points, "validation") for points in (early, late)]
    return _evidence(*facts[:8], steps=(reward[0][0], reward[-1][0]))


def _evidence(*facts: Fact, steps: tuple[int, int] | None = None) -> RuleEvidence:
    return RuleEvidence(facts, steps or facts[0].steps)


def _above(name: str, series: Series, limit: float, *more: Fact) -> RuleEvidence:
    """Return the mean over the last steps, the highest of several points, and the steps above a limit."""
    step, value = max(series, key=lambda point: point[1])
    highest = [Fact(name, (step, step), value, "highest")] if len(series) > 1 else []
    above = [step for step, value in series if value > limit]
    last = mean_fact(name, series[-LAST_STEPS:])
    return _evidence(last, *highest, *more, steps=(above[0], above[-1]))


def _changes(
    curves: Sequence[tuple[str, Series]], span: tuple[float, float], *, begins_late: bool = False
) -> RuleEvidence:
    """Return the means of curves over an early part of the run and over its end."""
    facts = [mean_fact(name, part(points, *at)) for name, points in curves for at in (span, END)]
    begin = facts[1].steps[0] if begins_late else facts[0].steps[1]
    return _evidence(*facts, steps=(begin, facts[1].steps[1]))


def _has_grown(series: Series, span: tuple[float, float], factor: float) -> bool:
    early, late = part(series, *span), part(series, *END)
    return change(series, span, END) > 0 and mean(late) >= factor * mean(early)
