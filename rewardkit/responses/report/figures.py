"""The figures of a report page: counts, accuracy by step, groups and changes of prompts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rewardkit.pages.line_chart import spread
from rewardkit.pages.model import LineChart, LinePoint
from rewardkit.responses.prompt_groups import GradientGroups, PromptStepCounts, count_groups
from rewardkit.responses.report.totals import AccuracyEstimate, ReportTotals, ResponseCounts

#: Prompts in the list of those that improved, and in that of those that got worse.
MAX_CHANGES = 10

#: Cells of a strip, steps in a table, and data sources in a table.
MAX_STRIP_CELLS, MAX_STEPS, MAX_SOURCES = 40, 200, 30

#: Most data sources that have a chart each.
MAX_CHARTS = 6

#: Most bars of scores: one for each value, or bins of equal width if there are more values.
MAX_SCORE_BARS = 12


@dataclass(frozen=True)
class PromptChange:
    """How the accuracy on a prompt changed.

    Attributes:
        prompt: the beginning of the prompt.
        change: mean accuracy of the second half of the steps minus that of the first.
        shares: accuracy in each cell of the strip; None without responses.
    """

    prompt: str
    change: float
    shares: tuple[float | None, ...]


def by_step(
    totals: ReportTotals,
) -> list[tuple[int, ResponseCounts, AccuracyEstimate, GradientGroups]]:
    """Counts, accuracy and groups of each step, for at most `MAX_STEPS` of them."""
    accuracies = totals.accuracies(lambda _, step: step)
    cells: defaultdict[int | None, list[PromptStepCounts]] = defaultdict(list)
    for (_, step, _), cell in totals.cells.items():
        cells[step].append(cell)
    return [
        (step, totals.steps[step], accuracies[step], count_groups(cells[step]))
        for step in spread(sorted(totals.steps), MAX_STEPS)
    ]


def by_source(totals: ReportTotals) -> list[tuple[str, ResponseCounts, AccuracyEstimate]]:
    """Return counts and accuracy of the largest data sources."""
    accuracies = totals.accuracies(lambda source, _: source)
    largest = sorted(totals.sources.items(), key=lambda item: -item[1].n)[:MAX_SOURCES]
    return [(source or "(none)", tally, accuracies[source]) for source, tally in largest]


def statuses(tally: ResponseCounts) -> list[tuple[str, int]]:
    """Return responses by status."""
    return [(status.replace("_", " "), n) for status, n in tally.statuses.most_common()]


def scores(counts: Mapping[float, int]) -> list[tuple[str, int]]:
    """Return responses by score, or by bins of equal width if there are many scores."""
    if len(counts) <= MAX_SCORE_BARS:
        return [(f"{value:g}", counts[value]) for value in sorted(counts)]
    low, width = min(counts), (max(counts) - min(counts)) / MAX_SCORE_BARS
    bins: Counter[int] = Counter()
    for value, n in counts.items():
        bins[min(int((value - low) / width), MAX_SCORE_BARS - 1)] += n
    ends = [low + width * i for i in range(MAX_SCORE_BARS + 1)]
    return [(f"{ends[i]:.3g} to {ends[i + 1]:.3g}", bins[i]) for i in range(MAX_SCORE_BARS)]


def accuracy_charts(totals: ReportTotals) -> list[LineChart]:
    """Return charts of accuracy by step: of all responses, and of each of several data sources."""
    if len(totals.steps) < 2:
        return []
    charts = [_accuracy_chart("all", totals.accuracies(lambda _, step: step))]
    if 1 < len(totals.sources) <= MAX_CHARTS:
        both = totals.accuracies(lambda source, step: (source, step))
        for source in totals.sources:
            steps = {step: point for (name, step), point in both.items() if name == source}
            charts.append(_accuracy_chart(source or "(none)", steps))
    return [chart for chart in charts if len(chart.points) > 1]


def _accuracy_chart(name: str, accuracies: Mapping[int | None, AccuracyEstimate]) -> LineChart:
    points = (
        LinePoint(step, accuracy.share, accuracy.low, accuracy.high)
        for step, accuracy in accuracies.items()
        if step is not None
    )
    ordered = sorted(points, key=lambda point: point.step)
    return LineChart(f"Accuracy of {name}", tuple(ordered), from_zero=True)


def changes(totals: ReportTotals) -> tuple[list[str], list[PromptChange], list[PromptChange]]:
    """Return the cells of a strip, the prompts that improved most, and those that got worse most.

    A prompt is measured by its mean accuracy in the second half of the steps minus that in the
    first. A cell has several steps if there are more than `MAX_STRIP_CELLS`.
    """
    spans = _spans(sorted(totals.steps))
    shares: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for (_, step, group), cell in totals.cells.items():
        if step is not None:
            shares[group][step] = cell.correct / cell.n
    ranking = [(_change(by_step), group) for group, by_step in shares.items() if len(by_step) > 1]
    ranking.sort(key=lambda pair: pair[0])
    lowest, highest = ranking[:MAX_CHANGES], ranking[: -MAX_CHANGES - 1 : -1]
    return (
        [str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans],
        [
            PromptChange(totals.heads[g], by, _strip(shares[g], spans))
            for by, g in highest
            if by > 0
        ],
        [PromptChange(totals.heads[g], by, _strip(shares[g], spans)) for by, g in lowest if by < 0],
    )


def _spans(steps: Sequence[int]) -> list[Sequence[int]]:
    size = -(-len(steps) // MAX_STRIP_CELLS)
    return [steps[i : i + size] for i in range(0, len(steps), size)]


def _strip(shares: Mapping[int, float], spans: Iterable[Sequence[int]]) -> tuple[float | None, ...]:
    cells = ([shares[step] for step in span if step in shares] for span in spans)
    return tuple(fmean(values) if values else None for values in cells)


def _change(by_step: Mapping[int, float]) -> float:
    shares = [by_step[step] for step in sorted(by_step)]
    half = len(shares) // 2
    return fmean(shares[-half:]) - fmean(shares[:half])
