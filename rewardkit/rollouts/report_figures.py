"""What the figures of a report page show: counts, places of lines and bars, groups and changes.

Across, places are per cent of a picture's width; down, they are pixels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean
from typing import TypeVar

from rewardkit.page.histogram import HEIGHT, Axis, bins
from rewardkit.rollouts.report import Cell, Estimate, Sums, Tally

T = TypeVar("T")

#: Prompts shown of those that got better, and of those that got worse.
CHANGED = 10

#: Steps in a strip, steps in a table, data sources in a table.
STRIP, STEPS, SOURCES = 40, 200, 30

#: Data sources with a picture of their own.
PARTS = 6

#: Score values that have a bar each; more of them are put into as many bins.
SCORES = 12

#: Shares of the responses at the marks of a box.
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Groups:
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
class Column:
    """Responses with `low` to `high` characters: a bar of right ones, the others on top."""

    low: int
    high: int
    right: int
    other: int
    x: float
    width: float
    right_height: float
    other_height: float


@dataclass(frozen=True)
class Box:
    """Lengths at 5, 25, 50, 75 and 95 % of some responses, and where these are."""

    name: str
    values: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True)
class Lengths:
    """A histogram of lengths by correctness."""

    columns: tuple[Column, ...]
    boxes: tuple[Box, ...]
    ticks: tuple[tuple[int, float], ...]
    highest: int
    rest: bool


@dataclass(frozen=True)
class Course:
    """An accuracy by step: where its points are, of 100 by 100, and the top of the scale."""

    name: str
    steps: tuple[int, ...]
    points: tuple[Estimate, ...]
    x: tuple[float, ...]
    top: float

    def y(self, share: float) -> float:
        """Where a share is."""
        return 100 * (1 - share / self.top)

    @property
    def line(self) -> str:
        """The points of the line."""
        pairs = zip(self.x, self.points, strict=True)
        return " ".join(f"{x:.2f},{self.y(point.share):.2f}" for x, point in pairs)

    @property
    def band(self) -> str:
        """The outline of the interval."""
        pairs = list(zip(self.x, self.points, strict=True))
        above = [f"{x:.2f},{self.y(point.high):.2f}" for x, point in pairs]
        below = [f"{x:.2f},{self.y(point.low):.2f}" for x, point in reversed(pairs)]
        return " ".join(above + below)

    @property
    def ticks(self) -> list[tuple[int, float]]:
        """Steps named under the line."""
        return spread(list(zip(self.steps, self.x, strict=True)), 6)


@dataclass(frozen=True)
class Change:
    """A prompt's share of right responses in each step shown; None where it has none."""

    prompt: str
    change: float
    shares: tuple[float | None, ...]


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, evenly, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def groups(cells: Iterable[Cell]) -> Groups:
    """The groups among the cells: those with several responses."""
    cells = [cell for cell in cells if cell.n > 1]
    flat = [cell for cell in cells if cell.low == cell.high]
    return Groups(
        len(cells),
        len(flat),
        sum(cell.correct == cell.n for cell in flat),
        sum(cell.correct == 0 for cell in flat),
        sum(cell.n for cell in cells),
    )


def by_step(sums: Sums) -> list[tuple[int, Tally, Estimate, Groups]]:
    """What there is to say of each step, of at most `STEPS` of them."""
    accuracies = sums.accuracies(lambda _, step: step)
    cells: defaultdict[int | None, list[Cell]] = defaultdict(list)
    for (_, step, _), cell in sums.cells.items():
        cells[step].append(cell)
    return [
        (step, sums.steps[step], accuracies[step], groups(cells[step]))
        for step in spread(sorted(sums.steps), STEPS)
    ]


def by_source(sums: Sums) -> list[tuple[str, Tally, Estimate]]:
    """What there is to say of the largest data sources."""
    accuracies = sums.accuracies(lambda source, _: source)
    largest = sorted(sums.sources.items(), key=lambda item: -item[1].n)[:SOURCES]
    return [(source or "(none)", tally, accuracies[source]) for source, tally in largest]


def statuses(tally: Tally) -> list[tuple[str, int]]:
    """Responses by status."""
    return [(status.value.replace("_", " "), n) for status, n in tally.statuses.most_common()]


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


def lengths(counts: Mapping[bool, Counter[int]]) -> Lengths | None:
    """The histogram of lengths; None of nothing."""
    found = bins(counts[True] + counts[False])
    if not found:
        return None
    width = found[0].high - found[0].low + 1
    axis = Axis(found[0].low, found[-1].low + width)
    highest = max(item.count for item in found)
    columns = []
    for item in found:
        right = sum(n for v, n in counts[True].items() if item.low <= v <= item.high)
        other = item.count - right
        x = 100 * (item.low - axis.start) / (axis.stop - axis.start)
        share = 100 * width / (axis.stop - axis.start)
        heights = (HEIGHT * right / highest, HEIGHT * other / highest)
        columns.append(Column(item.low, item.high, right, other, x, share, *heights))
    boxes = (_box(name, counts[key], axis) for name, key in (("right", True), ("not", False)))
    ticks = spread([(item.low, axis.place(item.low)) for item in found], 6)
    return Lengths(
        tuple(columns), tuple(box for box in boxes if box), tuple(ticks), highest, found[-1].rest
    )


def _box(name: str, counts: Mapping[int, int], axis: Axis) -> Box | None:
    if not counts:
        return None
    values = sorted(counts)
    below = list(accumulate(counts[value] for value in values))
    marks = tuple(
        next(v for v, n in zip(values, below, strict=True) if n >= share * below[-1])
        for share in _BOX
    )
    return Box(name, marks, tuple(axis.place(value) for value in marks))


def courses(sums: Sums) -> list[Course]:
    """Accuracy by step: of everything, and of each data source if there are several."""
    if len(sums.steps) < 2:
        return []
    found = [_course("all", sums.accuracies(lambda _, step: step))]
    if 1 < len(sums.sources) <= PARTS:
        both = sums.accuracies(lambda source, step: (source, step))
        for source in sums.sources:
            own = {step: point for (name, step), point in both.items() if name == source}
            found.append(_course(source or "(none)", own))
    return [course for course in found if len(course.steps) > 1]


def _course(name: str, accuracies: Mapping[int | None, Estimate]) -> Course:
    steps = tuple(sorted(step for step in accuracies if step is not None))
    points = tuple(accuracies[step] for step in steps)
    span = steps[-1] - steps[0] if len(steps) > 1 else 1
    x = tuple(100 * (step - steps[0]) / span for step in steps)
    highest = max((point.high for point in points), default=1.0)
    top = next(top for top in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if top >= min(highest, 1.0))
    return Course(name, steps, points, x, top)


def changes(sums: Sums) -> tuple[list[int], list[Change], list[Change]]:
    """Steps, and the prompts that got better and worse from the first half of them to the second."""
    steps = spread(sorted(sums.steps), STRIP)
    shares: defaultdict[bytes, dict[int, float]] = defaultdict(dict)
    for (_, step, group), cell in sums.cells.items():
        if step is not None:
            shares[group][step] = cell.correct / cell.n
    moved = []
    for group, own in shares.items():
        if len(own) > 1 and (by := _moved([own[step] for step in sorted(own)])):
            moved.append((by, group))
    moved.sort(key=lambda pair: pair[0])
    strip = {
        group: Change(sums.heads[group], by, tuple(shares[group].get(step) for step in steps))
        for by, group in moved[:CHANGED] + moved[-CHANGED:]
    }
    worse = [strip[group] for by, group in moved[:CHANGED] if by < 0]
    better = [strip[group] for by, group in moved[: -CHANGED - 1 : -1] if by > 0]
    return steps, better, worse


def _moved(shares: Sequence[float]) -> float:
    half = len(shares) // 2
    return fmean(shares[-half:]) - fmean(shares[:half])
