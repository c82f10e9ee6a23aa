"""The charts of one run or several, as data for the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from rewardkit.trainlog.rules import LogFinding
from rewardkit.trainlog.series import Series, finite
from rewardkit.trainlog.topics import (
    TOPICS,
    Better,
    better_validation,
    reward_metrics,
    step_seconds,
    topic_title,
    validations,
)
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations

#: Points of a drawn curve; a longer curve is drawn as means of neighbours.
MAX_CURVE_POINTS = 2000

#: Fewest points of a curve that is smoothed; shorter ones, such as validations, are drawn as logged.
MIN_SMOOTHED_POINTS = 40

#: Distinguishable with any colour vision (Okabe and Ito), and on light and dark paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f")


@dataclass(frozen=True)
class ChartCurve:
    """A run's curve in a chart; the curve is interrupted where a value is NaN."""

    run: int
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class FindingMark:
    """Steps of a run that a finding points to."""

    run: int
    first: int
    last: int
    severity: str
    label: str


@dataclass(frozen=True)
class MetricChart:
    """One metric or topic, with a curve for each run that has it.

    `better` is set for validations: their best point is marked.
    """

    title: str
    curves: tuple[ChartCurve, ...]
    marks: tuple[FindingMark, ...]
    better: Better = ""


def topic_charts(
    runs: Sequence[TrainingRun], findings: Sequence[Sequence[LogFinding]], lang: str = "en"
) -> list[MetricChart]:
    """Return the charts that people look at first: validations, parts of the reward, and topics."""
    charts = [
        MetricChart(
            topic_title(topic, runs, lang), curves, tuple(_marks(findings, topic.names, lang))
        )
        for topic in TOPICS
        if (curves := _curves(run.series(*topic.names) for run in runs))
    ]
    series = [validations(run) for run in runs]
    names = dict.fromkeys(name for by_source in series for name in by_source)
    flat = tuple(_marks(findings, (), lang, rule="validation_flat"))
    words = translations("tables", lang)
    validation_charts = [
        MetricChart(
            f"{words['validation']}: {name}",
            _curves(by_source.get(name, ()) for by_source in series),
            flat,
            better_validation(name),
        )
        for name in names
    ]
    metrics = dict.fromkeys(name for run in runs for name in reward_metrics(run))
    reward_charts = [
        MetricChart(
            name, _curves(run.series(name) for run in runs), tuple(_marks(findings, (name,), lang))
        )
        for name in metrics
    ]
    return [*charts[:1], *validation_charts, *reward_charts, *charts[1:]]


def metric_charts(runs: Sequence[TrainingRun]) -> list[MetricChart]:
    """Return a chart for every metric, sorted by name."""
    names = sorted({metric for run in runs for metric in run.table})
    return [MetricChart(name, _curves(run.series(name) for run in runs), ()) for name in names]


def elapsed_hours(run: TrainingRun) -> list[float] | None:
    """Return when each step ended, in hours from the start; None if the run logs no times.

    The time stamps of the steps count, else the sum of their durations.
    """
    if run.clock and all(time is not None for time in run.clock):
        times = [time for time in run.clock if time is not None]
        return [(time - times[0]) / 3600 for time in times]
    seconds = dict(step_seconds(run))
    if not seconds:
        return None
    total, ends = 0.0, []
    for step in run.steps:
        duration = seconds.get(step, 0.0)
        total += duration if isfinite(duration) else 0.0
        ends.append(total / 3600)
    return ends


def best_point(points: Series, better: Better) -> tuple[int, float] | None:
    """Return the first of the best points; None without a finite point or without a direction."""
    numbers = finite(points)
    if not numbers or not better:
        return None
    sign = 1 if better == "higher" else -1
    return max(numbers, key=lambda point: sign * point[1])


def default_window(charts: Iterable[MetricChart]) -> int:
    """Return the default smoothing window: a fiftieth of the longest curve, an odd number."""
    longest = max((len(curve.points) for chart in charts for curve in chart.curves), default=0)
    return longest // 50 * 2 + 1 if longest >= MIN_SMOOTHED_POINTS else 1


def _curves(series: Iterable[Series]) -> tuple[ChartCurve, ...]:
    return tuple(ChartCurve(i, tuple(_reduce(points))) for i, points in enumerate(series) if points)


def _reduce(points: Series) -> Iterator[tuple[int, float]]:
    size = -(-len(points) // MAX_CURVE_POINTS)
    for at in range(0, len(points), size):
        near = points[at : at + size]
        values = [value for _, value in near if isfinite(value)]
        mean = sum(values) / len(values) if len(values) == len(near) else float("nan")
        yield near[-1][0], mean


def _marks(
    findings: Sequence[Sequence[LogFinding]], names: Sequence[str], lang: str, rule: str = ""
) -> Iterator[FindingMark]:
    for run, run_findings in enumerate(findings):
        for finding in run_findings:
            if (
                set(names) & set(finding.evidence.metrics or finding.rule.metrics)
                or finding.rule.id == rule
            ):
                first, last = finding.evidence.steps
                label = finding.rule.title[lang]
                yield FindingMark(run, first, last, finding.rule.severity, label)
