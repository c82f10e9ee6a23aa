"""Layout of line charts: a share by training step, with its interval.

Horizontal places are percentages of the chart's width, vertical places pixels, as in `histogram`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from rewardkit.pages.axis import round_levels, round_ticks
from rewardkit.pages.model import LineChart, LinePoint

T = TypeVar("T")

#: Height of the plot, and of the room above it for half a label.
HEIGHT_PIXELS = 160
TOP_PIXELS = 8

#: A line with more points gets a band instead of dots with intervals.
MAX_DOTS = 60


@dataclass(frozen=True)
class LineDot:
    """A point in the chart, and the ends of its interval."""

    point: LinePoint
    x: float
    y: float
    low_y: float
    high_y: float


@dataclass(frozen=True, kw_only=True)
class LineLayout:
    """A line chart ready to be drawn.

    Attributes:
        dots: all points in order.
        x_ticks: steps below the axis, with their places.
        y_ticks: percentages left of the chart, with their places, the lowest first.
        height: pixels of the whole chart without the labels below it.
        has_dots: whether each point gets a dot and its interval, else the line gets a band.
    """

    dots: tuple[LineDot, ...]
    x_ticks: tuple[tuple[int, float], ...]
    y_ticks: tuple[tuple[str, float], ...]
    height: int
    has_dots: bool

    @property
    def line(self) -> str:
        """Points of the line for SVG, with x from 0 to 100."""
        return " ".join(f"{dot.x:.2f},{dot.y:.2f}" for dot in self.dots)

    @property
    def band(self) -> str:
        """Outline of the intervals for SVG, with x from 0 to 100."""
        above = [f"{dot.x:.2f},{dot.high_y:.2f}" for dot in self.dots]
        below = [f"{dot.x:.2f},{dot.low_y:.2f}" for dot in reversed(self.dots)]
        return " ".join(above + below)


def line_layout(chart: LineChart) -> LineLayout | None:
    """Lay out a line chart; None if it has no points."""
    if not chart.points:
        return None
    first = chart.points[0].step
    last = max(chart.points[-1].step, first + 1)
    lowest = 0.0 if chart.from_zero else min(point.low for point in chart.points)
    highest = max(point.high for point in chart.points)
    levels = round_levels(lowest, highest)
    bottom, top = levels[0], levels[-1]

    def x(step: int) -> float:
        return 100 * (step - first) / (last - first)

    def y(value: float) -> float:
        return TOP_PIXELS + HEIGHT_PIXELS * (top - value) / (top - bottom)

    digits = 0 if levels[1] - bottom > 0.0099 else 1
    dots = tuple(
        LineDot(point, x(point.step), y(point.value), y(point.low), y(point.high))
        for point in chart.points
    )
    return LineLayout(
        dots=dots,
        x_ticks=tuple((step, x(step)) for step in round_ticks(first, last + 1)),
        y_ticks=tuple((f"{100 * level:.{digits}f}%", y(level)) for level in levels),
        height=TOP_PIXELS + HEIGHT_PIXELS,
        has_dots=len(chart.points) <= MAX_DOTS,
    )


def spread(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of the items, evenly spaced, with the first and the last."""
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]
