"""Accuracy against training steps: a chart for each data source, as a page that fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rewardkit.errors import DataError
from rewardkit.evaluate.run import Report
from rewardkit.output import atomic
from rewardkit.pages.html import write_html
from rewardkit.pages.model import LineChart, LinePoint, Page, Table, TableRow

#: Points by data source and step.
Curves: TypeAlias = dict[str, dict[int, "Point"]]

#: Columns of the table under a chart.
HEADERS = (
    "step",
    "mean@n",
    "95%",
    "questions",
    "n",
    "truncated",
    "no answer",
    "no usable response",
)


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
    ordered = {source: [found[step] for step in sorted(found)] for source, found in curves.items()}
    values = {source: [vars(point) for point in found] for source, found in ordered.items()}
    with atomic(folder / "curve.json", overwrite=True) as temporary:
        temporary.write_text(f"{json.dumps(values, indent=1)}\n", encoding="utf-8", newline="\n")
    charts = (curve_chart(source, found) for source, found in ordered.items())
    write_html(Page(title, (), tuple(charts)), folder / "curve.html", overwrite=True)


def curve_chart(source: str, found: Sequence[Point]) -> LineChart:
    """Return the chart of a data source, with a table of its checkpoints.

    Args:
        source: name of the data source.
        found: its points in the order of their steps.
    """
    return LineChart(
        source or "(none)",
        tuple(LinePoint(point.step, point.value, *point.interval) for point in found),
        Table("", HEADERS, tuple(TableRow(_cells(point)) for point in found)),
        note="mean@n of each checkpoint, with its 95% interval over questions.",
    )


def _cells(point: Point) -> tuple[str, ...]:
    low, high = point.interval
    return (
        f"{point.step:,}",
        f"{point.value:.1%}",
        f"{100 * low:.1f} to {high:.1%}",
        f"{point.questions:,}",
        str(point.n),
        "unknown" if point.truncated is None else f"{point.truncated:.1%}",
        f"{point.no_answer:.1%}",
        f"{point.unusable:,}",
    )
