"""Charts and findings of runs as one HTML page that works without a network.

`page.js` draws the charts from data in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rewardkit.pages.html import render, script_json, write_pieces
from rewardkit.pages.text import brief, clean
from rewardkit.trainlog.charts import (
    COLOURS,
    MIN_SMOOTHED_POINTS,
    MetricChart,
    default_window,
    elapsed_hours,
    metric_charts,
    topic_charts,
)
from rewardkit.trainlog.conditions import span_text
from rewardkit.trainlog.hacking_examples import examples_of
from rewardkit.trainlog.rules import LogFinding, check_onsets
from rewardkit.trainlog.summary import summarize
from rewardkit.trainlog.tables import check_text, format_duration, format_number, onset_text
from rewardkit.trainlog.topics import reward_metrics
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.trainlog.translations import translations

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
        overwrite: replace an existing file.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
    """
    first, words = topic_charts(runs, findings, lang), translations("page", lang)
    script = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
    data = {
        "charts": [_chart_values(chart) for chart in first],
        "others": [_chart_values(chart) for chart in _within_point_limit(metric_charts(runs))],
        "runs": [
            {
                "name": brief(run.name, 60),
                "colour": COLOURS[i % len(COLOURS)],
                "ends": [run.steps[0], run.steps[-1]],
                "hours": _hours_by_step(run),
            }
            for i, run in enumerate(runs)
        ],
        "window": default_window(first) if window is None else window,
        "smoothed": MIN_SMOOTHED_POINTS,
        "x": x,
        "words": words,
    }
    names = ", ".join(run.name for run in runs)
    pieces = render(
        "trainlog/page.html.j2",
        title=f"{words['title']}: {names}",
        names=names,
        lang=lang,
        script=script,
        words=words,
        summaries=[summarize(run, lang) for run in runs],
        findings=[finding for run_findings in findings for finding in run_findings],
        several=len(runs) > 1,
        colours=COLOURS,
        format_duration=format_duration,
        span_text=span_text,
        **_hacking_values(runs, findings, lang),
        data=script_json(data),
    )
    write_pieces(pieces, out, overwrite=overwrite)


def _hacking_values(
    runs: Sequence[TrainingRun], findings: Sequence[Sequence[LogFinding]], lang: str
) -> dict[str, Any]:
    """Return the values of the section on the onset of reward hacking."""
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
        "format_number": format_number,
    }


def _example_text(text: str) -> str:
    """Return the text of an example, at most `MAX_EXAMPLE_CHARACTERS` of it."""
    cut = len(text) - MAX_EXAMPLE_CHARACTERS
    return clean(text) if cut <= 0 else f"{clean(text[:MAX_EXAMPLE_CHARACTERS])} …"


def _chart_values(chart: MetricChart) -> dict[str, Any]:
    """Return a chart as values for the script; NaN and infinity become null."""
    return {
        "title": clean(chart.title),
        "curves": [
            {
                "run": curve.run,
                "steps": [step for step, _ in curve.points],
                "values": [float(f"{y:.5g}") if isfinite(y) else None for _, y in curve.points],
            }
            for curve in chart.curves
        ],
        "marks": [vars(mark) for mark in chart.marks],
    }


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
