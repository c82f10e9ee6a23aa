"""Comparison of runs with a first one: differences of their curves and of their settings."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import fsum, sqrt
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.statistics import student_t_quantile
from rewardkit.trainlog.summary import CurveSummary, RunSummary
from rewardkit.trainlog.topics import Better, elapsed_hours
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations

Align: TypeAlias = Literal["step", "hours"]

#: What a difference says: `higher` and `lower` for curves of which neither is better.
Verdict: TypeAlias = Literal["better", "worse", "higher", "lower", "unclear", "too_few"]

#: Fewest points of an interval, and fewest independent points that they must be worth.
MIN_POINTS, MIN_EFFECTIVE_POINTS = 8, 2.0

#: Larger differences have no interval: their squares are infinite.
MAX_DIFFERENCE = 1e150

#: Points in time at which runs aligned by time are compared.
MAX_TIMES = 200

#: Fewest common steps of a difference.
MIN_COMMON_STEPS = 2

#: Fraction of the run after which its end begins.
END_START = 0.8


@dataclass(frozen=True)
class MeanInterval:
    """A mean difference with its 95% interval; the ends are None if there are too few points."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval and 0 is outside it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, kw_only=True)
class CurveDifference:
    """The same curve of two runs at `n` steps or times: both means, and the other minus the base.

    `whole` is the difference over all of them, `end` over the last fifth.
    """

    title: str
    n: int
    base: float
    other: float
    whole: MeanInterval
    end: MeanInterval
    better: Better = ""

    @property
    def verdict(self) -> Verdict:
        """How the other run differs over all steps; `unclear` if the interval contains 0."""
        if self.whole.low is None:
            return "too_few"
        if not self.whole.excludes_zero:
            return "unclear"
        way: Literal["higher", "lower"] = "higher" if self.whole.mean > 0 else "lower"
        if not self.better:
            return way
        return "better" if way == self.better else "worse"


class ValuePair(NamedTuple):
    """What two runs have of the same name."""

    name: str
    base: Any
    other: Any


@dataclass(frozen=True, kw_only=True)
class RunComparison:
    """A run compared with the first one, at the same `step` or after the same `hours`.

    `not_finite` has the numbers of steps at which a curve is NaN or infinite, `settings` the keys that both
    runs have with different values, and `keys_only_in` how many keys only one of them has.
    """

    base: str
    other: str
    align: Align
    differences: list[CurveDifference]
    not_finite: list[ValuePair]
    settings: list[ValuePair]
    keys_only_in: dict[str, int]

    def summary(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        names = ("base", "other")
        return {
            **asdict(self),
            "not_finite": [dict(zip(("title", *names), it, strict=True)) for it in self.not_finite],
            "settings": [dict(zip(("key", *names), it, strict=True)) for it in self.settings],
        }


def compare_runs(runs: Sequence[RunSummary], align: Align = "step") -> list[RunComparison]:
    """Compare every run with the first.

    Raises:
        UsageError: there is only one run, or `align` is `hours` and a run logs no times.
        DataError: two runs have fewer than two common steps.
    """
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more: rewardkit logs compare A B.")
    return [_compare(runs[0], other, align) for other in runs[1:]]


def correlated_mean_interval(differences: Sequence[float]) -> MeanInterval:
    """Return the mean, with a 95% interval if there are enough points.

    Neighbouring steps are correlated. So `n` of them are worth `n * (1 - r) / (1 + r)` independent
    points, where `r` is the correlation of neighbours, corrected for its bias `(1 + 3 r) / n`
    (Kendall 1954). The interval is Student's t with that many points. A difference that only grows
    or only falls is worth about one point and has no interval.
    """
    n = len(differences)
    mean = fsum(difference / n for difference in differences)
    if n < MIN_POINTS or max(map(abs, differences)) > MAX_DIFFERENCE:
        return MeanInterval(mean)
    deviations = [value - mean for value in differences]
    spread = fsum(value * value for value in deviations)
    if spread <= (1e-9 * mean) ** 2 * n:  # all differences are equal
        return MeanInterval(mean, mean, mean)
    correlation = fsum(a * b for a, b in pairwise(deviations)) / spread
    correlation = min(max(correlation + (1 + 3 * correlation) / n, 0.0), 1.0)
    effective = n * (1 - correlation) / (1 + correlation)
    if effective < MIN_EFFECTIVE_POINTS:
        return MeanInterval(mean)
    reach = student_t_quantile(effective - 1) * sqrt(spread / n / (effective - 1))
    return MeanInterval(mean, mean - reach, mean + reach)


def _compare(first: RunSummary, second: RunSummary, align: Align) -> RunComparison:
    base, other = first.run, second.run
    times = [_times(run) for run in (base, other)] if align == "hours" else []
    differences, not_finite = [], []
    for title, *curves in _common_curves(first, second):
        if any(curve.missing for curve in curves):
            not_finite.append(ValuePair(title, *(curve.missing for curve in curves)))
        if times:
            pairs = _at_same_times(
                *(
                    [(at[step], value) for step, value in curve.numbers]
                    for curve, at in zip(curves, times, strict=True)
                )
            )
        else:
            values = dict(curves[1].numbers)
            pairs = [(value, values[step]) for step, value in curves[0].numbers if step in values]
        if len(pairs) >= MIN_COMMON_STEPS:
            changes = [b - a for a, b in pairs]
            differences.append(
                CurveDifference(
                    title=title,
                    n=len(pairs),
                    base=fmean(a for a, _ in pairs),
                    other=fmean(b for _, b in pairs),
                    whole=correlated_mean_interval(changes),
                    end=correlated_mean_interval(changes[int(len(changes) * END_START) :]),
                    better=curves[0].better,
                )
            )
    if not differences:
        raise DataError(f"{base.path} and {other.path} have no curve with two common steps.")
    one, two = base.config, other.config
    settings = [ValuePair(key, one[key], two[key]) for key in sorted(one.keys() & two.keys())]
    return RunComparison(
        base=base.name,
        other=other.name,
        align=align,
        differences=differences,
        not_finite=not_finite,
        settings=[it for it in settings if _setting(it.base) != _setting(it.other)],
        keys_only_in={"base": len(one.keys() - two.keys()), "other": len(two.keys() - one.keys())},
    )


def _common_curves(
    first: RunSummary, second: RunSummary
) -> Iterator[tuple[str, CurveSummary, CurveSummary]]:
    """Yield the curves that both runs have, with their title."""
    titles = translations("topics", first.lang)
    validation = translations("tables", first.lang)["validation"]
    for ours, theirs in ((first.curves, second.curves), (first.validations, second.validations)):
        others = {curve.id: curve for curve in theirs}
        for curve in ours:
            if curve.id in others:
                title = titles[curve.id] if ours is first.curves else f"{validation} {curve.id}"
                yield title, curve, others[curve.id]


def _at_same_times(*curves: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the values of two curves after the same times, of which each has its last value."""
    if not all(curves):
        return []
    start, end = max(points[0][0] for points in curves), min(points[-1][0] for points in curves)
    if end <= start:
        return []
    n = min(MAX_TIMES, *map(len, curves))
    moments = [start + (end - start) * i / max(n - 1, 1) for i in range(n)]
    first, second = (
        [
            points[max(bisect_right(points, moment, key=itemgetter(0)) - 1, 0)][1]
            for moment in moments
        ]
        for points in curves
    )
    return list(zip(first, second, strict=True))


def _times(run: TrainingRun) -> dict[int, float]:
    hours = elapsed_hours(run)
    if hours is None:
        raise UsageError(f"{run.path}: the log has no times; use --x step.")
    return dict(zip(run.steps, hours, strict=True))


def _setting(setting: Any) -> object:
    """Return a setting so that `1e-6` and 0.000001, and `True` and true, are equal."""
    text = str(setting).lower()
    try:
        return float(text)
    except ValueError:
        return "null" if text == "none" else text
