"""The figures of a report page: counts, accuracy by step, groups and changes of prompts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from rewardkit.pages.line_chart import spread
from rewardkit.pages.model import LineChart, LinePoint
from rewardkit.responses.report.totals import (
    AccuracyEstimate,
    PromptStepCounts,
    ReportTotals,
    ResponseCounts,
)

#: Prompts in the list of those that improved, and in that of those that got worse.
MAX_CHANGES = 10

#: Cells of a strip, steps in a table, and data sources in a table.
MAX_STRIP_CELLS, MAX_STEPS, MAX_SOURCES = 40, 200, 30

#: Most data sources that have a chart each.
MAX_CHARTS = 6

#: Most bars of scores: one for each value, or bins of equal width if there are more values.
MAX_SCORE_BARS = 12


@dataclass(frozen=True, kw_only=True)
class GradientGroups:
    """Groups of responses to one prompt in one step; all numbers are counts.

    Attributes:
        n: groups of two responses or more.
        flat: groups whose responses have the same score: they have no gradient.
        all_correct: flat groups whose responses are all correct.
        none_correct: flat groups whose responses are all wrong.
        responses: responses in the groups.
    """

    n: int = 0
    flat: int = 0
    all_correct: int = 0
    none_correct: int = 0
    responses: int = 0

    @property
    def kinds_by_score(self) -> list[tuple[str, int]]:
        """The number of groups whose scores differ, and of those whose scores do not."""
        return [("scores differ", self.n - self.flat), ("same score", self.flat)]

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """The number of groups of each kind that occurs."""
        kinds = {
            "scores differ": self.n - self.flat,
            "same score, all correct": self.all_correct,
            "same score, none correct": self.none_correct,
            "same score, some correct": self.flat - self.all_correct - self.none_correct,
        }
        return [(kind, n) for kind, n in kinds.items() if n]


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


def count_groups(cells: Iterable[PromptStepCounts]) -> GradientGroups:
    """Count the cells with several responses."""
    groups = [cell for cell in cells if cell.n > 1]
    flat = [cell for cell in groups if cell.low == cell.high]
    return GradientGroups(
        n=len(groups),
        flat=len(flat),
        all_correct=sum(cell.correct == cell.n for cell in flat),
        none_correct=sum(cell.correct == 0 for cell in flat),
        responses=sum(cell.n for cell in groups),
    )


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
    shares: defaultdict[bytes, dict[int, float]] = defaultdict(dict)
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
