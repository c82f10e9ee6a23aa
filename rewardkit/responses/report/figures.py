"""What the figures of a report page show: sums, courses by step, groups and changes."""

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

#: Prompts shown of those that got better, and of those that got worse.
CHANGED = 10

#: Places in a strip, steps in a table, data sources in a table.
STRIP, STEPS, SOURCES = 40, 200, 30

#: Data sources with a picture of their own.
PARTS = 6

#: Score values that have a bar each; more of them are put into as many bins.
SCORES = 12


@dataclass(frozen=True)
class GradientGroups:
    """Prompts with several responses in a step, and those of them that give no gradient."""

    n: int = 0
    flat: int = 0
    all_right: int = 0
    none_right: int = 0
    responses: int = 0

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """All groups by what their scores are; only kinds that there are."""
        kinds = {
            "scores differ": self.n - self.flat,
            "same score, all right": self.all_right,
            "same score, none right": self.none_right,
            "same score, some right": self.flat - self.all_right - self.none_right,
        }
        return [(kind, n) for kind, n in kinds.items() if n]


@dataclass(frozen=True)
class PromptChange:
    """A prompt's share of right responses at each place of a strip; None where it has none."""

    prompt: str
    change: float
    shares: tuple[float | None, ...]


def count_groups(cells: Iterable[PromptStepCounts]) -> GradientGroups:
    """The groups among the cells: those with several responses."""
    cells = [cell for cell in cells if cell.n > 1]
    flat = [cell for cell in cells if cell.low == cell.high]
    return GradientGroups(
        len(cells),
        len(flat),
        sum(cell.correct == cell.n for cell in flat),
        sum(cell.correct == 0 for cell in flat),
        sum(cell.n for cell in cells),
    )


def by_step(
    sums: ReportTotals,
) -> list[tuple[int, ResponseCounts, AccuracyEstimate, GradientGroups]]:
    """What there is to say of each step, of at most `STEPS` of them."""
    accuracies = sums.accuracies(lambda _, step: step)
    cells: defaultdict[int | None, list[PromptStepCounts]] = defaultdict(list)
    for (_, step, _), cell in sums.cells.items():
        cells[step].append(cell)
    return [
        (step, sums.steps[step], accuracies[step], count_groups(cells[step]))
        for step in spread(sorted(sums.steps), STEPS)
    ]


def by_source(sums: ReportTotals) -> list[tuple[str, ResponseCounts, AccuracyEstimate]]:
    """What there is to say of the largest data sources."""
    accuracies = sums.accuracies(lambda source, _: source)
    largest = sorted(sums.sources.items(), key=lambda item: -item[1].n)[:SOURCES]
    return [(source or "(none)", tally, accuracies[source]) for source, tally in largest]


def statuses(tally: ResponseCounts) -> list[tuple[str, int]]:
    """Responses by status."""
    return [(status.replace("_", " "), n) for status, n in tally.statuses.most_common()]


def scores(counts: Mapping[float, int]) -> list[tuple[str, int]]:
    """Responses by score: by value, or by bins of one width where there are many values."""
    if len(counts) <= SCORES:
        return [(f"{value:g}", counts[value]) for value in sorted(counts)]
    low, width = min(counts), (max(counts) - min(counts)) / SCORES
    filled: Counter[int] = Counter()
    for value, n in counts.items():
        filled[min(int((value - low) / width), SCORES - 1)] += n
    ends = [low + width * i for i in range(SCORES + 1)]
    return [(f"{ends[i]:.3g} to {ends[i + 1]:.3g}", filled[i]) for i in range(SCORES)]


def courses(sums: ReportTotals) -> list[LineChart]:
    """Accuracy by step: of everything, and of each data source if there are several."""
    if len(sums.steps) < 2:
        return []
    charts = [_course("all", sums.accuracies(lambda _, step: step))]
    if 1 < len(sums.sources) <= PARTS:
        both = sums.accuracies(lambda source, step: (source, step))
        for source in sums.sources:
            own = {step: point for (name, step), point in both.items() if name == source}
            charts.append(_course(source or "(none)", own))
    return [chart for chart in charts if len(chart.points) > 1]


def _course(name: str, accuracies: Mapping[int | None, AccuracyEstimate]) -> LineChart:
    points = (
        LinePoint(step, it.share, it.low, it.high)
        for step, it in accuracies.items()
        if step is not None
    )
    ordered = sorted(points, key=lambda point: point.step)
    return LineChart(f"Accuracy of {name}", tuple(ordered), from_zero=True)


def changes(sums: ReportTotals) -> tuple[list[str], list[PromptChange], list[PromptChange]]:
    """Steps, and the prompts that got better and worse from the first half of them to the second.

    Many steps share a place with their neighbours.
    """
    spans = _spans(sorted(sums.steps))
    shares: defaultdict[bytes, dict[int, float]] = defaultdict(dict)
    for (_, step, group), cell in sums.cells.items():
        if step is not None:
            shares[group][step] = cell.correct / cell.n
    moved = [(_moved(own), group) for group, own in shares.items() if len(own) > 1]
    moved.sort(key=lambda pair: pair[0])
    lowest, highest = moved[:CHANGED], moved[: -CHANGED - 1 : -1]
    return (
        [str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans],
        [PromptChange(sums.heads[g], by, _strip(shares[g], spans)) for by, g in highest if by > 0],
        [PromptChange(sums.heads[g], by, _strip(shares[g], spans)) for by, g in lowest if by < 0],
    )


def _spans(steps: Sequence[int]) -> list[Sequence[int]]:
    size = -(-len(steps) // STRIP)
    return [steps[i : i + size] for i in range(0, len(steps), size)]


def _strip(own: Mapping[int, float], spans: Iterable[Sequence[int]]) -> tuple[float | None, ...]:
    found = ([own[step] for step in span if step in own] for span in spans)
    return tuple(fmean(values) if values else None for values in found)


def _moved(own: Mapping[int, float]) -> float:
    shares = [own[step] for step in sorted(own)]
    half = len(shares) // 2
    return fmean(shares[-half:]) - fmean(shares[:half])
