"""Charts and findings of runs as one HTML page that works without a network.

`page.js` draws the charts from data in the page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

from rewardkit.pages.html import render, script_json, write_pieces
from rewardkit.table import Badge, Level
from rewardkit.text import brief, printable
from rewardkit.trainlog.conditions import span_text
from rewardkit.trainlog.phrases import examples_of
from rewardkit.trainlog.run_comparison import CurveDifference, RunComparison, Verdict, compare_runs
from rewardkit.trainlog.series import Series, finite, mean
from rewardkit.trainlog.summary import RunSummary
from rewardkit.trainlog.tables import MAX_SETTINGS, difference_cells, format_duration, format_number
from rewardkit.trainlog.topics import TOPICS, Better, elapsed_hours
from rewardkit.trainlog.translations import translations, with_note

#: Points of all metrics that can be added on the page; further metrics are left out.
MAX_OTHER_POINTS = 2_000_000

#: Points of a drawn curve; a longer curve is drawn as means of neighbours.
MAX_CURVE_POINTS = 2000

#: Fewest points of a curve that is smoothed; shorter ones, such as validations, are drawn as logged.
MIN_SMOOTHED_POINTS = 40

#: Distinguishable with any colour vision (Okabe and Ito), and on light and dark paper.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#7f7f7f")

_LEVELS: dict[Verdict, Level] = {"better": "good", "worse": "error", "too_few": "neutral"}


def write_page(
    summaries: Sequence[RunSummary],
    out: Path,
    *,
    x: str = "step",
    window: int | None = None,
    compare: bool = False,
    overwrite: bool = False,
) -> None:
    """Write the page of one run or several, drawn over each other.

    Args:
        summaries: those of one or more runs, in the language of the page.
        out: file of the page.
        x: initial horizontal axis, `step` or `hours`.
        window: initial smoothing window in points; None for one that suits the length of the curves.
        compare: add the differences of every run from the first.
        overwrite: replace an existing file.

    Raises:
        OutputError: `out` cannot be written, or exists and `overwrite` is False.
        UsageError, DataError: with `compare`, as in `compare_runs`.
    """
    lang, runs = summaries[0].lang, [summary.run for summary in summaries]
    words, names = translations("page", lang), [run.name for run in runs]
    comparisons = compare_runs(summaries, "hours" if x == "hours" else "step") if compare else []
    comparison_words = translations("comparison", lang)
    if compare:
        heading = comparison_words["heading"].format(base=names[0], other=", ".join(names[1:]))
        badges = verdict_badges(comparisons, lang)
    else:
        counts = Counter(it.rule.severity for one in summaries for it in one.diagnosis.findings)
        heading = ", ".join(names)
        badges = [Badge(words[f"{name}s"].format(n=n), name) for name, n in sorted(counts.items())]
        badges = badges or [Badge(words["no_findings"], "good")]
    charts = list(_charts(summaries))
    others, points = [], 0
    for metric in sorted({metric for run in runs for metric in run.table}):
        chart = _chart(metric, [run.series(metric) for run in runs])
        points += sum(len(curve["steps"]) for curve in chart["curves"])
        if points <= MAX_OTHER_POINTS:
            others.append(chart)
    if window is None:  # a fiftieth of the longest curve, an odd number
        longest = max((len(it["steps"]) for chart in charts for it in chart["curves"]), default=0)
        window = longest // 50 * 2 + 1 if longest >= MIN_SMOOTHED_POINTS else 1
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(runs))]
    data = {
        "charts": charts,
        "others": others,
        "runs": [
            {
                "name": brief(run.name, 60),
                "colour": colour,
                "ends": [run.steps[0], run.steps[-1]],
                "hours": (hours := elapsed_hours(run))
                and {"steps": run.steps, "at": [round(hour, 4) for hour in hours]},
            }
            for run, colour in zip(runs, colours, strict=True)
        ],
        "smoothed": MIN_SMOOTHED_POINTS,
        "words": words,
        "window": window,
        "x": x,
    }
    pieces = render(
        "trainlog/page.html.j2",
        title=f"{words['title']}{words['colon']}{', '.join(names)}",
        heading=heading,
        badges=badges,
        comparisons=comparisons,
        comparison_words=comparison_words,
        max_settings=MAX_SETTINGS,
        levels=_LEVELS,
        difference_cells=difference_cells,
        bar=_bar,
        best_point=best_point,
        format_number=format_number,
        lang=lang,
        script=Path(__file__).with_name("page.js").read_text(encoding="utf-8"),
        words=words,
        summaries=list(zip(summaries, colours, strict=True)),
        several=len(runs) > 1,
        format_duration=format_duration,
        span_text=span_text,
        with_note=with_note,
        hacking_words=translations("hacking", lang),
        examples_of=examples_of,
        data=script_json(data),
    )
    write_pieces(pieces, out, overwrite=overwrite)


def verdict_badges(comparisons: Sequence[RunComparison], lang: str) -> list[Badge]:
    """Return how many curves are better, worse or without an interval, or that none differs."""
    words = translations("comparison", lang)
    counts = Counter(item.verdict for one in comparisons for item in one.differences)
    badges = [
        Badge(words[f"count_{name}"].format(n=counts[name], total=counts.total()), level)
        for name, level in _LEVELS.items()
        if counts[name]
    ]
    return badges or [Badge(words["unclear"], "neutral")]


def best_point(points: Series, better: Better) -> tuple[int, float] | None:
    """Return the first of the best points; None without a finite point or without a direction."""
    sign = 1 if better == "higher" else -1
    numbers = finite(points) if better else []
    return max(numbers, key=lambda point: sign * point[1], default=None)


def _charts(summaries: Sequence[RunSummary]) -> Iterator[dict[str, Any]]:
    """Yield the charts that people look at first: the reward, validations, its records, and the rest."""
    lang = summaries[0].lang
    validation, best = (
        translations("tables", lang)["validation"],
        translations("page", lang)["best"],
    )
    order = [topic.id for topic in TOPICS]
    curves = [(summary.curves, summary.validations, summary.rewards) for summary in summaries]
    for kind, ids in ((0, order[:1]), (1, None), (2, None), (0, order[1:])):
        own = [{curve.id: curve for curve in of_run[kind]} for of_run in curves]
        for name in ids or dict.fromkeys(name for by_id in own for name in by_id):
            same = [by_id.get(name) for by_id in own]
            if not any(same):
                continue
            one = max(filter(None, same), key=lambda curve: len(curve.title))
            points = [curve.points if curve else () for curve in same]
            if kind == 1:
                marks, title = (
                    _marks(summaries, (), "validation_flat"),
                    f"{validation}: {one.title}",
                )
                yield _chart(title, points, marks, one.better, best)
            else:
                yield _chart(one.title, points, _marks(summaries, one.metrics))


def _chart(
    title: str,
    curves: Sequence[Series],
    marks: Iterable[dict[str, Any]] = (),
    better: Better = "",
    best: str = "",
) -> dict[str, Any]:
    """Return a chart as values for the script; NaN and infinity become null.

    A long curve is drawn as means of neighbours.
    """
    values = []
    for run, points in enumerate(curves):
        size = -(-len(points) // MAX_CURVE_POINTS) or 1
        near = [points[at : at + size] for at in range(0, len(points), size)]
        drawn = [(it[-1][0], mean(it) if len(finite(it)) == len(it) else nan) for it in near]
        curve = {
            "run": run,
            "steps": [step for step, _ in drawn],
            "values": [float(f"{y:.5g}") if isfinite(y) else None for _, y in drawn],
        }
        if (top := best_point(drawn, better)) and len(drawn) > 1:
            curve["best"] = top[0]
            curve["best_text"] = best.format(step=f"{top[0]:,}", value=format_number(top[1]))
        if drawn:
            values.append(curve)
    return {"title": printable(title), "curves": values, "marks": list(marks)}


def _marks(
    summaries: Sequence[RunSummary], metrics: Sequence[str], rule: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the steps that the findings on some metrics, or of a rule, point to."""
    for run, summary in enumerate(summaries):
        for finding in summary.diagnosis.findings:
            shown = finding.evidence.metrics or finding.rule.metrics
            if set(metrics) & set(shown) or finding.rule.id == rule:
                ends = dict(zip(("first", "last"), finding.evidence.steps, strict=True))
                label = finding.rule.title[summary.lang]
                yield {"run": run, **ends, "severity": finding.rule.severity, "label": label}


def _bar(item: CurveDifference) -> dict[str, float]:
    """Return the mean of a difference and the ends of its interval in percent of a bar; 50 is 0."""
    mean, low, high = vars(item.whole).values()
    ends = {
        "mean": mean,
        "low": mean if low is None else low,
        "high": mean if high is None else high,
    }
    reach = max(map(abs, ends.values())) or 1.0
    return {name: 50 + 46 * end / reach for name, end in ends.items()}
