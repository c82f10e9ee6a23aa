"""The figures of a report page: totals, accuracy by step, lengths, groups and changes of prompts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeAlias, TypeVar

from rewardkit.pages.charts import (
    HEIGHT_PIXELS,
    Bin,
    HistogramAxis,
    LineLayout,
    LinePoint,
    line_layout,
    make_bins,
    round_ticks,
    spread,
)
from rewardkit.responses.report.responses import ScoredResponse
from rewardkit.responses.samples import SkippedRow
from rewardkit.responses.tally import (
    GradientGroups,
    PromptStepCounts,
    ScoreCounts,
    Tally,
    count_groups,
)
from rewardkit.statistics import percentile_of_counts

#: Characters of a prompt that identify it in a list.
HEAD_CHARACTERS = 160

K = TypeVar("K")
_CellKey: TypeAlias = tuple[str, int | None, int]


@dataclass
class ResponseCounts(ScoreCounts):
    """Counts of scores, and the sum of the responses' lengths in characters."""

    length_sum: int = 0

    def add(self, response: ScoredResponse) -> None:
        """Count a response."""
        self.n += 1
        self.correct += bool(response.correct)
        self.score_sum += response.score
        self.length_sum += len(response.text)
        self.statuses[response.status.value] += 1


@dataclass(frozen=True)
class AccuracyEstimate:
    """An accuracy with its 95 % interval."""

    n: int
    correct: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The accuracy itself; 0.0 without responses."""
        return self.correct / self.n if self.n else 0.0


@dataclass
class ReportTotals:
    """The totals of all responses, in memory that grows with the prompts, not the responses.

    Attributes:
        total: counts of all responses.
        sources: counts by data source.
        steps: counts by step.
        cells: counts by data source, step and group of the prompt.
        heads: the beginning of each group's prompt.
        scores: responses by score, to three decimals.
        lengths: responses by length in characters, of correct and of other responses.
        unread: rows without a usable response by reason.
        first: the first row of each reason.
    """

    total: ResponseCounts = field(default_factory=ResponseCounts)
    sources: dict[str, ResponseCounts] = field(default_factory=dict)
    steps: dict[int, ResponseCounts] = field(default_factory=dict)
    cells: dict[_CellKey, PromptStepCounts] = field(default_factory=dict)
    heads: dict[int, str] = field(default_factory=dict)
    scores: Counter[float] = field(default_factory=Counter)
    lengths: dict[bool, Counter[int]] = field(
        default_factory=lambda: {True: Counter(), False: Counter()}
    )
    unread: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    @property
    def has_verdicts(self) -> bool:
        """Whether it is known of every response whether it is correct."""
        return self.total.accuracy is not None

    def skip(self, row: SkippedRow) -> None:
        """Count a row without a usable response."""
        self.unread[row.reason] += 1
        self.first.setdefault(row.reason, row.where)

    def add(self, response: ScoredResponse) -> None:
        """Count a response."""
        self.total.add(response)
        self.sources.setdefault(response.source, ResponseCounts()).add(response)
        if response.step is not None:
            self.steps.setdefault(response.step, ResponseCounts()).add(response)
        key = (response.source, response.step, response.group)
        cell = self.cells.setdefault(key, PromptStepCounts())
        cell.add(response.score, is_correct=response.correct)
        self.heads.setdefault(response.group, response.prompt[:HEAD_CHARACTERS])
        self.scores[round(response.score, 3)] += 1
        self.lengths[bool(response.correct)][len(response.text)] += 1

    def accuracies(self, key_of: Callable[[str, int | None], K]) -> dict[K, AccuracyEstimate]:
        """Return the accuracy of the responses with the same `key_of(source, step)`."""
        tallies: dict[K, Tally] = {}
        for (source, step, group), cell in self.cells.items():
            tally = tallies.setdefault(key_of(source, step), Tally())
            tally.add_prompt(group, cell.n, cell.correct)
        return {
            key: AccuracyEstimate(tally.n, tally.correct, *tally.interval)
            for key, tally in tallies.items()
        }


#: The percentiles that a box marks.
BOX_PERCENTILES = (5, 25, 50, 75, 95)

#: Place of the axis: the columns and half a label are above it.
BASE_PIXELS = HEIGHT_PIXELS + 8


@dataclass(frozen=True, kw_only=True)
class LengthColumn:
    """The responses of `low` to `high` characters: a bar of correct ones below a bar of the others."""

    low: int
    high: int
    correct: int
    other: int
    x: float
    width: float
    correct_height: float
    other_height: float


@dataclass(frozen=True)
class LengthBox:
    """The lengths at `BOX_PERCENTILES`, and their places in the chart."""

    name: str
    values: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class LengthHistogram:
    """A histogram of lengths by correctness.

    Attributes:
        columns: the columns from left to right.
        boxes: the percentiles of correct responses and of the others, if there are any.
        x_ticks: lengths below the axis and their places.
        y_ticks: numbers of responses left of the chart, and their places.
        has_overflow: whether the last column has all longer responses.
        base: pixel of the axis.
    """

    columns: tuple[LengthColumn, ...]
    boxes: tuple[LengthBox, ...]
    x_ticks: tuple[tuple[int, float], ...]
    y_ticks: tuple[tuple[int, float], ...]
    has_overflow: bool
    base: int = BASE_PIXELS


def length_histogram(counts: Mapping[bool, Counter[int]]) -> LengthHistogram | None:
    """Return the histogram of the lengths in `counts`, by correctness; None without responses."""
    bins = make_bins(counts[True] + counts[False])
    if not bins:
        return None
    width = bins[0].high - bins[0].low + 1
    axis = HistogramAxis(bins[0].low, bins[-1].low + width)
    to_scale = bins[-1].low if bins[-1].is_overflow else axis.stop
    highest = max(item.count for item in bins)
    return LengthHistogram(
        columns=tuple(_column(item, width, axis, highest, counts[True]) for item in bins),
        boxes=tuple(
            _box(name, counts[is_correct], axis)
            for name, is_correct in (("correct", True), ("incorrect", False))
            if counts[is_correct]
        ),
        x_ticks=tuple((value, axis.place(value)) for value in round_ticks(axis.start, to_scale)),
        y_ticks=tuple(
            (n, BASE_PIXELS - HEIGHT_PIXELS * n / highest)
            for n in round_ticks(0, highest + 1, most=6)
        ),
        has_overflow=bins[-1].is_overflow,
    )


def _column(
    item: Bin, width: int, axis: HistogramAxis, highest: int, correct_counts: Mapping[int, int]
) -> LengthColumn:
    correct = sum(n for value, n in correct_counts.items() if item.low <= value <= item.high)
    other, span = item.count - correct, axis.stop - axis.start
    return LengthColumn(
        low=item.low,
        high=item.high,
        correct=correct,
        other=other,
        x=100 * (item.low - axis.start) / span,
        width=100 * width / span,
        correct_height=HEIGHT_PIXELS * correct / highest,
        other_height=HEIGHT_PIXELS * other / highest,
    )


def _box(name: str, counts: Mapping[int, int], axis: HistogramAxis) -> LengthBox:
    values = tuple(percentile_of_counts(counts, percent) for percent in BOX_PERCENTILES)
    return LengthBox(name, values, tuple(axis.place(value) for value in values))


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


def accuracy_charts(totals: ReportTotals) -> list[LineLayout]:
    """Return charts of accuracy by step: of all responses, and of each of several data sources."""
    if len(totals.steps) < 2:
        return []
    charts = [_accuracy_chart("all", totals.accuracies(lambda _, step: step))]
    if 1 < len(totals.sources) <= MAX_CHARTS:
        both = totals.accuracies(lambda source, step: (source, step))
        for source in totals.sources:
            steps = {step: point for (name, step), point in both.items() if name == source}
            charts.append(_accuracy_chart(source or "(none)", steps))
    return [chart for chart in charts if chart and len(chart.dots) > 1]


def _accuracy_chart(
    name: str, accuracies: Mapping[int | None, AccuracyEstimate]
) -> LineLayout | None:
    points = sorted(
        LinePoint(step, accuracy.share, accuracy.low, accuracy.high)
        for step, accuracy in accuracies.items()
        if step is not None
    )
    return line_layout(f"Accuracy of {name}", points) if points else None


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
