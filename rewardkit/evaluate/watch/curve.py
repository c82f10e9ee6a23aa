"""The learning curve of a watched run: `curve.json`, and a page with a chart per data source."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from rewardkit.errors import DataError
from rewardkit.evaluate.evaluation import EvaluationReport
from rewardkit.output import atomic
from rewardkit.pages.html import write_html
from rewardkit.pages.model import LineChart, LinePoint, Page, Table, TableRow
from rewardkit.pages.text import join_names
from rewardkit.statistics import Interval, average_interval

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
    write_html(_curve_page(ordered, title), folder / "curve.html", overwrite=True)


@dataclass(frozen=True)
class BestCheckpoint:
    """The checkpoint with the best mean over all data sources; the earliest if several are equal.

    Attributes:
        step: training step.
        value: its mean, from 0 to 1.
        interval: 95 % interval of the mean.
        near: steps of the other checkpoints whose mean is within this interval.
        checkpoints: number of checkpoints that were compared.
        data_sources: number of data sources.
    """

    step: int
    value: float
    interval: Interval
    near: tuple[int, ...]
    checkpoints: int
    data_sources: int

    def sentence(self) -> str:
        """Return the checkpoint and those near it in a sentence."""
        low, high = self.interval
        average = (
            f" on average of {self.data_sources} data sources" if self.data_sources > 1 else ""
        )
        result = f"{self.value:.1%} ({100 * low:.1f} to {100 * high:.1f}){average}"
        if self.checkpoints == 1:
            return f"Step {self.step:,}, the only checkpoint: {result}"
        if not self.near:
            return f"Best: step {self.step:,}, {result}; no other step is within its interval."
        names = join_names([f"{step:,}" for step in self.near])
        near = f"steps {names} are" if len(self.near) > 1 else f"step {names} is"
        return f"Best: step {self.step:,}, {result}; {near} within its interval."


def best_checkpoint(curves: Mapping[str, Sequence[CurvePoint]]) -> BestCheckpoint | None:
    """Return the best of the steps that have a point in every data source; None without one."""
    by_source = [{point.step: point for point in points} for points in curves.values()]
    common = set.intersection(*map(set, by_source)) if by_source else set()
    means = {step: fmean(points[step].value for points in by_source) for step in sorted(common)}
    if not means:
        return None
    step = max(means, key=means.__getitem__)
    points = [by_step[step] for by_step in by_source]
    low, high = points[0].interval
    if len(points) > 1:
        low, high = average_interval([p.value for p in points], [p.interval for p in points])
    near = tuple(s for s, mean in means.items() if s != step and low <= mean <= high)
    return BestCheckpoint(step, means[step], (low, high), near, len(means), len(points))


def _curve_page(curves: Mapping[str, Sequence[CurvePoint]], title: str) -> Page:
    best = best_checkpoint(curves)
    verdict = best.sentence() if best else title
    last = max((points[-1].step for points in curves.values() if points), default=0)
    facts = (
        ("run", title),
        ("checkpoints", f"{len({p.step for points in curves.values() for p in points}):,}"),
        ("last step", f"{last:,}"),
        *((source or "(none)", _best_text(points)) for source, points in curves.items()),
    )
    charts = (curve_chart(source, points) for source, points in curves.items())
    return Page(verdict, facts, tuple(charts))


def _best(points: Sequence[CurvePoint]) -> CurvePoint:
    return max(points, key=lambda point: point.value)


def _best_text(points: Sequence[CurvePoint]) -> str:
    best = _best(points)
    return f"best {best.value:.1%} at step {best.step:,}"


def curve_chart(source: str, points: Sequence[CurvePoint]) -> LineChart:
    """Return the chart of a data source, with a table of its checkpoints.

    Args:
        source: name of the data source.
        points: its points in the order of their steps.
    """
    best = _best(points)
    low, high = best.interval
    near = sum(low <= point.value <= high for point in points) - 1
    others = "Another checkpoint is" if near == 1 else f"{near} other checkpoints are"
    chance = f" {others} within this interval: the order may be chance." if near else ""
    return LineChart(
        source or "(none)",
        tuple(LinePoint(point.step, point.value, *point.interval) for point in points),
        Table("", HEADERS, tuple(_row(point, is_best=point is best) for point in points)),
        note="mean@n of each checkpoint, with its 95% interval over questions. Best: step "
        f"{best.step:,} with {best.value:.1%} ({100 * low:.1f} to {high:.1%}).{chance}",
        best_step=best.step if len(points) > 1 else None,
    )


def _row(point: CurvePoint, *, is_best: bool) -> TableRow:
    return TableRow(_cells(point), bold=(0, 1, 2) if is_best else ())


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
