"""Accuracy against training steps: a chart for each data source, as a page that fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor, log10
from pathlib import Path
from typing import TypeAlias

from jinja2 import Environment

from rewardkit.errors import DataError
from rewardkit.evaluate.run import Report
from rewardkit.output import atomic
from rewardkit.pages.environment import environment
from rewardkit.pages.text import brief

#: Points by data source and step.
Curves: TypeAlias = dict[str, dict[int, "Point"]]

#: Of a chart, in pixels: the whole, and the room for labels at the left, below and elsewhere.
WIDTH, HEIGHT = 640, 240
LEFT, BELOW, MARGIN = 48, 24, 10

#: Lines across a chart, about.
TICKS = 5


@dataclass(frozen=True)
class Point:
    """A checkpoint on one data source.

    Attributes:
        step: of training.
        value: mean@n, from 0 to 1.
        interval: of it, 95 %.
        questions: how many.
        n: the least responses to one.
        truncated: the share of responses that were cut; None if that is not known.
        no_answer: the share without an answer.
        unusable: responses that the server did not give, which count as wrong.
    """

    step: int
    value: float
    interval: tuple[float, float]
    questions: int
    n: int
    truncated: float | None
    no_answer: float
    unusable: int = 0


@dataclass(frozen=True)
class Drawn:
    """A point in pixels: where it is, and the ends of its interval."""

    of: Point
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """A curve ready to be drawn; labels of each axis come with their pixel."""

    source: str
    points: tuple[Drawn, ...]
    across: tuple[tuple[str, float], ...]
    up: tuple[tuple[str, float], ...]

    @property
    def line(self) -> str:
        """The curve as SVG's `points`."""
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


def points(step: int, reports: Mapping[str, Report]) -> Iterator[tuple[str, Point]]:
    """What the reports of a step add to the curves, by data source."""
    for report in reports.values():
        for source, group in report.figures.sources.items():
            shares = group.truncated_share, group.no_answer_share
            figures = (*group.mean(), len(group.questions), group.n[0], *shares)
            yield source, Point(step, *figures, unusable=sum(group.unusable.values()))


def read_curves(folder: Path) -> Curves:
    """The points of `curve.json`, from an earlier run; none if there is none.

    Raises:
        DataError: it is none of ours.
    """
    path = folder / "curve.json"
    if not path.is_file():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(source): {
                int(each["step"]): Point(**{**each, "interval": tuple(each["interval"])})
                for each in found
            }
            for source, found in read.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: not as --watch writes it; move it away ({error}).") from error


def write_curves(curves: Curves, title: str, folder: Path) -> None:
    """Write `curve.json` and `curve.html` into a folder, over those of before.

    Args:
        curves: points by data source and step.
        title: of the page.
        folder: that exists.

    Raises:
        OutputError: one cannot be written.
    """
    template = _environment().get_template("curve.html.j2")
    ordered = {source: [found[step] for step in sorted(found)] for source, found in curves.items()}
    charts = [chart(source, found) for source, found in ordered.items()]
    page = template.render(title=title, charts=charts, width=WIDTH, height=HEIGHT, left=LEFT)
    values = {source: [vars(point) for point in found] for source, found in ordered.items()}
    data = json.dumps(values, indent=1)
    for name, text in (("curve.json", f"{data}\n"), ("curve.html", page)):
        with atomic(folder / name, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def chart(source: str, found: Sequence[Point]) -> Chart:
    """A curve in pixels.

    Args:
        source: what it is called.
        found: at least one point, in the order of steps.
    """
    steps = [point.step for point in found]
    first, last = steps[0], max(steps[-1], steps[0] + 1)
    lowest = min(point.interval[0] for point in found)
    highest = max(point.interval[1] for point in found)
    unit = _unit(highest - lowest)
    bottom = floor(lowest / unit + 1e-9) * unit
    lines = max(1, -floor((bottom - highest) / unit + 1e-9))
    top = bottom + lines * unit

    def at(step: float) -> float:
        return LEFT + (WIDTH - LEFT - MARGIN) * (step - first) / (last - first)

    def up(value: float) -> float:
        return MARGIN + (HEIGHT - BELOW - MARGIN) * (top - value) / (top - bottom)

    drawn = (Drawn(each, at(each.step), up(each.value), *map(up, each.interval)) for each in found)
    digits = 0 if unit >= 0.01 else 1
    across = dict.fromkeys(steps[:: -(-len(steps) // 10)])
    return Chart(
        source,
        tuple(drawn),
        tuple((f"{step:,}", at(step)) for step in across),
        tuple(
            (f"{100 * (bottom + i * unit):.{digits}f} %", up(bottom + i * unit))
            for i in range(lines + 1)
        ),
    )


def _unit(span: float) -> float:
    """A round distance between lines, for about `TICKS` of them."""
    rough = max(span, 0.001) / TICKS
    power = 10.0 ** floor(log10(rough))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= rough))


@cache
def _environment() -> Environment:
    made = environment("rewardkit.evaluate.watch")
    made.filters |= {"brief": brief}
    return made
