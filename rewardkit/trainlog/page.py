"""Charts and findings of runs as one HTML page that works without a network.

`page.js` draws the charts from data in the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rewardkit.pages.html import render, script_json, write_pieces
from rewardkit.pages.model import Badge
from rewardkit.pages.text import brief, clean
from rewardkit.trainlog.charts import (
    COLOURS,
    MIN_SMOOTHED_POINTS,
    MetricChart,
    best_point,
    default_window,
    elapsed_hours,
    metric_charts,
    topic_charts,
)
from rewardkit.trainlog.comparison_view import verdict_badges, view_comparison
from rewardkit.trainlog.conditions import span_text
from rewardkit.trainlog.hacking_examples import examples_of
from rewardkit.trainlog.rules import LogFinding, check_onsets
from rewardkit.trainlog.run_comparison import compare_runs
from rewardkit.trainlog.series import Series
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.tables import check_text, format_duration, format_number, onset_text
from rewardkit.trainlog.topics import Better, better_validation, reward_metrics
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations, with_note

#: Points of all metrics that can be added on the page; further metrics are left out.
MAX_OTHER_POINTS = 2_000_000

#: Characters of an example response on each side of its phrase.
MAX_EXAMPLE_CHARACTERS = 2_000


def write_page(
    runs: Sequence[TrainingRun],
    findings: Sequence[Sequence[LogFinding]],
    out: Path,
    *,
    lang: str = "en",
    x: str = "step",
    window: int | None = None,
    compare: bool = False,
    overwrite: bool = False,
) -> None:
    """Write the page of one run or several, drawn over each other.

    Args:
        runs: one or more.
        findings: findings of each run.
        out: file of the page.
        lang: `en` or `zh`.
        x: initial horizontal axis, `step` or `hours`; the reader can change it, and the window.
        window: smoothing window in points; None for one that suits the length of the curves.
        compare: add the differences of every run from the first.
        overwrite: replace an existing file.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
        UsageError, DataError: with `compare`, as in `compare_runs`.
    """
    words = translations("page", lang)
    comparisons = compare_runs(runs, "hours" if x == "hours" else "step", lang) if compare else []
    badges = verdict_badges(comparisons, lang) if compare else _finding_badges(findings, words)
    charts = topic_charts(runs, findings, lang)
    window = default_window(charts) if window is None else window
    pieces = render(
        "trainlog/page.html.j2",
        title=f"{words['title']}{words['colon']}{', '.join(run.name for run in runs)}",
        heading=_heading(runs, compare=compare, lang=lang),
        badges=badges,
        views=[view_comparison(comparison, lang) for comparison in comparisons],
        better_validation=better_validation,
        best_point=best_point,
        format_number=format_number,
        lang=lang,
        script=Path(__file__).with_name("page.js").read_text(encoding="utf-8"),
        words=words,
        summaries=[summarize(run, lang) for run in runs],
        findings=[finding for run_findings in findings for finding in run_findings],
        several=len(runs) > 1,
        colours=COLOURS,
        format_duration=format_duration,
        span_text=span_text,
        with_note=with_note,
        **_hacking_values(runs, findings, lang),
        data=script_json({**_chart_data(runs, charts, words), "window": window, "x": x}),
    )
    write_pieces(pieces, out, overwrite=overwrite)


def _chart_data(
    runs: Sequence[TrainingRun], charts: Sequence[MetricChart], words: Mapping[str, str]
) -> dict[str, Any]:
    others = _within_point_limit(metric_charts(runs))
    return {
        "charts": [_chart_values(chart, words) for chart in charts],
        "others": [_chart_values(chart, words) for chart in others],
        "runs": [
            {
                "name": brief(run.name, 60),
                "colour": COLOURS[i % len(COLOURS)],
                "ends": [run.steps[0], run.steps[-1]],
                "hours": _hours_by_step(run),
            }
            for i, run in enumerate(runs)
        ],
        "smoothed": MIN_SMOOTHED_POINTS,
        "words": words,
    }


def _hacking_values(
    runs: Sequence[TrainingRun], findings: Sequence[Sequence[LogFinding]], lang: str
) -> dict[str, Any]:
    return {
        "hacking_words": translations("hacking", lang),
        "checks": [
            (run.name, check) for run in runs if reward_metrics(run) for check in check_onsets(run)
        ],
        "comparisons": [
            (finding, *examples_of(run, finding.evidence))
            for run, run_findings in zip(runs, findings, strict=True)
            for finding in run_findings
            if finding.evidence.onset and run.samples
        ],
        "check_text": check_text,
        "onset_text": onset_text,
        "example_text": _example_text,
    }


def _example_text(text: str) -> str:
    cut = len(text) - MAX_EXAMPLE_CHARACTERS
    return clean(text) if cut <= 0 else f"{clean(text[:MAX_EXAMPLE_CHARACTERS])} …"


def _heading(runs: Sequence[TrainingRun], *, compare: bool, lang: str) -> str:
    if not compare:
        return ", ".join(run.name for run in runs)
    others = ", ".join(run.name for run in runs[1:])
    words = translations("comparison", lang)
    return words["heading"].format(base=runs[0].name, other=others)


def _finding_badges(
    findings: Sequence[Sequence[LogFinding]], words: Mapping[str, str]
) -> list[Badge]:
    severities = [finding.rule.severity for items in findings for finding in items]
    badges = [
        Badge(words[f"{severity}s"].format(n=severities.count(severity)), severity)
        for severity in ("error", "warning")
        if severity in severities
    ]
    return badges or [Badge(words["no_findings"], "good")]


def _chart_values(chart: MetricChart, words: Mapping[str, str]) -> dict[str, Any]:
    """Return a chart as values for the script; NaN and infinity become null."""
    return {
        "title": clean(chart.title),
        "curves": [
            {
                "run": curve.run,
                "steps": [step for step, _ in curve.points],
                "values": [float(f"{y:.5g}") if isfinite(y) else None for _, y in curve.points],
                **_best_values(curve.points, chart.better, words),
            }
            for curve in chart.curves
        ],
        "marks": [vars(mark) for mark in chart.marks],
    }


def _best_values(points: Series, better: Better, words: Mapping[str, str]) -> dict[str, Any]:
    best = best_point(points, better)
    if not best or len(points) < 2:
        return {}
    step, value = best
    text = words["best"].format(step=f"{step:,}", value=format_number(value))
    return {"best": step, "best_text": text}


def _within_point_limit(all_charts: Sequence[MetricChart]) -> list[MetricChart]:
    charts, total = [], 0
    for chart in all_charts:
        total += sum(len(curve.points) for curve in chart.curves)
        if total <= MAX_OTHER_POINTS:
            charts.append(chart)
    return charts


def _hours_by_step(run: TrainingRun) -> dict[str, list[float]] | None:
    hours = elapsed_hours(run)
    if hours is None:
        return None
    return {"steps": list(map(float, run.steps)), "at": [round(hour, 4) for hour in hours]}
