"""The learning curve of a watched run: `curve.json`, and a page with a chart per data source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TypeAlias

from rewardkit.errors import DataError
from rewardkit.evaluate.evaluation import EvaluationReport
from rewardkit.output import atomic
from rewardkit.pages.html import write_html
from rewardkit.pages.model import LineChart, LinePoint, Page, Table, TableRow

#: Points by data source and step.
Curves: TypeAlias = dict[str, dict[int, "CurvePoint"]]

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
class CurvePoint:
    """The result of a checkpoint on a data source.

    Attributes:
        step: training step.
        value: mean@n, from 0 to 1.
        interval: 95 % interval of the value.
        questions: number of questions.
        n: smallest number of responses to a question.
        truncated: share of responses that were truncated; None if unknown.
        no_answer: share of responses without an answer.
        unusable: number of unusable responses, which count as wrong.
    """

    step: int
    value: float
    interval: tuple[float, float]
    _: KW_ONLY
    questions: int
    n: int
    truncated: float | None
    no_answer: float
    unusable: int = 0


def curve_points(
    step: int, reports: Mapping[str, EvaluationReport]
) -> Iterator[tuple[str, CurvePoint]]:
    """Yield the points of a step with their data sources."""
    for report in reports.values():
        for source, group in report.metrics.sources.items():
            yield (
                source,
                CurvePoint(
                    step,
                    *group.mean(),
                    questions=len(group.questions),
                    n=group.n[0],
                    truncated=group.truncated_share,
                    no_answer=group.no_answer_share,
                    unusable=sum(group.unusable.values()),
                ),
            )


def read_curves(folder: Path) -> Curves:
    """Return the points of an earlier run's `curve.json`; empty if the file does not exist.

    Raises:
        DataError: the file has another format.
    """
    path = folder / "curve.json"
    if not path.is_file():
        return {}
    try:
        curves = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(source): {
                int(point["step"]): CurvePoint(**{**point, "interval": tuple(point["interval"])})
                for point in points
            }
            for source, points in curves.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{path}: 'rewardkit eval watch' did not write this file ({error}). Move it away."
        ) from error


def write_curves(curves: Curves, title: str, folder: Path) -> None:
    """Write `curve.json` and `curve.html`, replacing earlier ones.

    Args:
        curves: points by data source and step.
        title: title of the page.
        folder: an existing folder.

    Raises:
        OutputError: a file cannot be written.
    """
    ordered = {
        source: [points[step] for step in sorted(points)] for source, points in curves.items()
    }
    values = {source: [vars(point) for point in points] for source, points in ordered.items()}
    with atomic(folder / "curve.json", overwrite=True) as temporary:
        temporary.write_text(f"{json.dumps(values, indent=1)}\n", encoding="utf-8", newline="\n")
    charts = (curve_chart(source, points) for source, points in ordered.items())
    write_html(Page(title, (), tuple(charts)), folder / "curve.html", overwrite=True)


def curve_chart(source: str, points: Sequence[CurvePoint]) -> LineChart:
    """Return the chart of a data source, with a table of its checkpoints.

    Args:
        source: name of the data source.
        points: its points in the order of their steps.
    """
    return LineChart(
        source or "(none)",
        tuple(LinePoint(point.step, point.value, *point.interval) for point in points),
        Table("", HEADERS, tuple(TableRow(_cells(point)) for point in points)),
        note="mean@n of each checkpoint, with its 95% interval over questions.",
    )


def _cells(point: CurvePoint) -> tuple[str, ...]:
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
