"""Several runs on the same sets of questions, in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.estimators import pass_at_k
from rewardkit.evaluate.metrics import QuestionResult
from rewardkit.evaluate.results import RunResults, result_files
from rewardkit.pages.text import join_names
from rewardkit.statistics import Interval, average_interval, mean_interval, paired_difference

#: From this p-value on, a difference may be chance.
CHANCE_P_VALUE = 0.05

#: The metric of every question, from 0 to 1, by data source and question key.
_Values: TypeAlias = dict[str, dict[bytes, float]]


@dataclass(frozen=True)
class LeaderboardCell:
    """The metric of a run on a data source.

    Attributes:
        value: from 0 to 1.
        interval: 95 % interval of the value.
        questions: number of questions.
        n: smallest and largest number of responses to a question.
        mark: `best` of its column; `near` if the difference to the best may be chance (paired t
            over questions, p of 0.05 or more); otherwise "", as where runs have other questions.
    """

    value: float
    interval: Interval
    _: KW_ONLY
    questions: int
    n: tuple[int, int]
    mark: str = ""


@dataclass(frozen=True)
class LeaderboardRow:
    """A run: its cells by data source, and their average with interval if no cell is missing."""

    run: RunResults
    cells: Mapping[str, LeaderboardCell]
    average: tuple[float, Interval] | None


@dataclass(frozen=True)
class BestRun:
    """The run with the best metric, its interval, and the runs that may be as good."""

    name: str
    value: float
    interval: Interval
    near: tuple[str, ...]

    def sentence(self) -> str:
        """Return the run and those near it in a sentence."""
        low, high = self.interval
        best = f"Best: {self.name}, {self.value:.1%} ({100 * low:.1f} to {100 * high:.1f})"
        if not self.near:
            return f"{best}; the others differ by more than chance."
        return f"{best}; {join_names(self.near)} may be as good."


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """Runs, the best average first.

    Attributes:
        metric: metric of the cells: `mean@n`, `pass@K` or `maj@K`.
        columns: data sources in the order in which runs name them.
        rows: the runs.
        notes: differences that make the runs less comparable.
    """

    metric: str
    columns: tuple[str, ...]
    rows: tuple[LeaderboardRow, ...]
    notes: tuple[str, ...]

    def rates(self) -> Iterator[tuple[LeaderboardRow, dict[str, dict[str, Any]]]]:
        """Yield every row with counts, rates and lengths of its responses by data source."""
        for row in self.rows:
            yield row, {source: _rates(row, source) for source in row.cells}

    def best(self) -> BestRun | None:
        """Return the first run with those near it; None if the runs cannot be compared.

        With one data source, a run is near if its difference to the best, question by question, may
        be chance; with several, if its average is within the interval of the best average.
        """
        first, *others = self.rows
        if len(self.columns) == 1:
            cells = {row.run.name: row.cells.get(self.columns[0]) for row in self.rows}
            cell = cells[first.run.name]
            if not cell or cell.mark != "best":
                return None
            marked = [name for name, other in cells.items() if other and other.mark]
            near = [name for name in marked if name != first.run.name]
            return BestRun(first.run.name, cell.value, cell.interval, tuple(near))
        is_marked = all(
            any(row.cells[source].mark == "best" for row in self.rows if source in row.cells)
            for source in self.columns
        )
        if not others or not first.average or not is_marked:
            return None
        value, (low, high) = first.average
        near = [r.run.name for r in others if r.average and low <= r.average[0] <= high]
        return BestRun(first.run.name, value, (low, high), tuple(near))

    def summary(self) -> dict[str, Any]:
        """Return the leaderboard as plain values."""
        best = self.best()
        return {
            "figure": self.metric,
            "best": vars(best) if best else None,
            "data_sources": list(self.columns),
            "notes": list(self.notes),
            "runs": [_row_summary(row) for row in self.rows],
        }


def build_leaderboard(runs: Sequence[RunResults], metric: str = "mean@n") -> Leaderboard:
    """Put runs side by side; the average weights every data source equally.

    Args:
        runs: at least one run.
        metric: `mean@n`, `pass@K` or `maj@K`. The cell of a data source stays empty, with a note,
            if a question has too few responses, or if the scorer does not name the answers that
            maj@K counts.

    Raises:
        UsageError: the metric is unknown.
        DataError: all cells are empty.
    """
    kind, k = _parse_metric(metric)
    values: list[_Values] = []
    notes: list[str] = []
    for run in runs:
        by_source, reasons = _metric_values(run, kind, k)
        values.append(by_source)
        notes += [f"{run.name}: {source or '(none)'}: {why}" for source, why in reasons.items()]
    columns = tuple(dict.fromkeys(source for by_source in values for source in by_source))
    if not columns:
        raise DataError(notes[0])
    marks = {
        source: _column_marks([by_source.get(source) for by_source in values]) for source in columns
    }
    rows = [
        _leaderboard_row(
            run, by_source, columns, {source: marks[source][place] for source in columns}, k
        )
        for place, (run, by_source) in enumerate(zip(runs, values, strict=True))
    ]
    rows.sort(key=lambda row: -row.average[0] if row.average else 1.0)
    notes += _comparability_notes(runs, values, columns)
    return Leaderboard(metric=metric, columns=columns, rows=tuple(rows), notes=tuple(notes))


def _parse_metric(metric: str) -> tuple[str, int]:
    """Return the kind of a metric and its k, which is 1 for the mean."""
    kind, _, k = metric.partition("@")
    if metric == "mean@n":
        return kind, 1
    if kind not in ("pass", "maj") or not re.fullmatch("[1-9][0-9]{0,6}", k):
        raise UsageError(f"--figure {metric}: use mean@n, pass@K or maj@K, such as pass@8.")
    return kind, int(k)


def _metric_values(run: RunResults, kind: str, k: int) -> tuple[_Values, dict[str, str]]:
    """Return the metric of every question by data source, and why a data source has none."""
    values: _Values = {}
    reasons: dict[str, str] = {}
    for key, (source, result) in run.questions.items():
        value = _question_value(result, kind, k)
        if isinstance(value, str):
            reasons.setdefault(source, value)
        else:
            values.setdefault(source, {})[key] = value
    return {name: of_name for name, of_name in values.items() if name not in reasons}, reasons


def _question_value(result: QuestionResult, kind: str, k: int) -> float | str:
    """Return the metric of a question, from 0 to 1, or the reason why it has none."""
    if kind == "mean":
        return result.correct / result.n
    if k > result.n:
        return f"a question has {result.n} responses; {kind}@{k} needs {k}."
    if kind == "pass":
        return pass_at_k(result.n, result.correct, k)
    if not result.majority:
        return f"maj@{k}: the scorer does not name the answers that it calls correct."
    if len(result.majority) == result.n:
        return result.majority[k - 1]
    if k == result.n:
        return result.majority[-1]
    return f"maj@{k}: of {result.n} responses only maj@{result.n} is known."


def _column_marks(values: Sequence[Mapping[bytes, float] | None]) -> list[str]:
    """Return `best`, `near` or "" for every run; all "" if the runs have different questions."""
    runs = [run for run in values if run]
    if len(runs) < 2 or any(run.keys() != runs[0].keys() for run in runs):
        return [""] * len(values)
    best = max(runs, key=lambda run: sum(run.values()))
    marks = []
    for run in values:
        if not run:
            marks.append("")
        elif run == best:
            marks.append("best")
        else:
            p = paired_difference([best[key] - run[key] for key in best]).p
            marks.append("near" if p >= CHANCE_P_VALUE else "")
    return marks


def _leaderboard_row(
    run: RunResults,
    values: Mapping[str, Mapping[bytes, float]],
    columns: Sequence[str],
    marks: Mapping[str, str],
    k: int,
) -> LeaderboardRow:
    cells = {}
    for source in columns:
        if source in values:
            group, of_source = run.metrics.sources[source], list(values[source].values())
            cells[source] = LeaderboardCell(
                fmean(of_source),
                mean_interval(of_source, len(group.characters) / k),
                questions=len(of_source),
                n=group.n,
                mark=marks[source],
            )
    average = _average(list(cells.values())) if len(cells) == len(columns) else None
    return LeaderboardRow(run, cells, average)


def _average(cells: Sequence[LeaderboardCell]) -> tuple[float, Interval]:
    values = [cell.value for cell in cells]
    return fmean(values), average_interval(values, [cell.interval for cell in cells])


def _comparability_notes(
    runs: Sequence[RunResults],
    values: Sequence[Mapping[str, Mapping[bytes, float]]],
    columns: Sequence[str],
) -> Iterator[str]:
    for source in columns:
        questions = [set(by_source[source]) for by_source in values if source in by_source]
        if any(keys != questions[0] for keys in questions):
            shared = len(set.intersection(*questions))
            sizes = ", ".join(f"{len(keys):,}" for keys in questions)
            yield (
                f"{source}: the runs have different questions ({sizes}; {shared:,} in all runs), "
                "so no run is marked."
            )
        counts = {run.metrics.sources[source].n for run in runs if source in run.metrics.sources}
        if len(counts) > 1:
            numbers = ", ".join(str(least) for least, _ in sorted(counts))
            yield f"{source}: the runs have different numbers of responses per question ({numbers})."
    samplings = {json.dumps(_sampling_of(key), sort_keys=True) for run in runs for key in run.keys}
    if len(samplings) > 1:
        yield f"the runs use {len(samplings)} different samplings (see sampling in --json)."
    for run in runs:
        if note := run.metrics.total.unusable_note():
            yield f"{run.name}: {note}"
        if len(run.models()) > 1:
            yield f"{run.name}: its responses come from {len(run.models())} models."


def _sampling_of(key: str) -> Any:
    """Return the sampling of a `sampling_key` without its seed, which does not make it another."""
    sampling = json.loads(key)["sampling"]
    return {k: v for k, v in sampling.items() if k != "seed"} if sampling else sampling


def _row_summary(row: LeaderboardRow) -> dict[str, Any]:
    return {
        "name": row.run.name,
        "files": [str(path) for path in row.run.files],
        "of": [{**json.loads(key), "responses": n} for key, n in row.run.keys.most_common()],
        "average": _with_interval(*row.average) if row.average else None,
        "by_data_source": {
            source: {
                **_with_interval(cell.value, cell.interval),
                "mark": cell.mark,
                **_rates(row, source),
            }
            for source, cell in row.cells.items()
        },
    }


def _with_interval(value: float, interval: Interval) -> dict[str, Any]:
    return {"value": value, "interval": list(interval)}


def _rates(row: LeaderboardRow, source: str) -> dict[str, Any]:
    """Return counts of questions and responses, shares without an answer, and the mean length."""
    cell, group = row.cells[source], row.run.metrics.sources[source]
    return {
        "questions": cell.questions,
        "n": list(cell.n),
        "truncated": group.truncated_share,
        "no_answer": group.no_answer_share,
        "mean_tokens": fmean(group.tokens) if group.tokens else None,
    }


def parse_runs(arguments: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Return name and files of the runs that a command line names.

    Args:
        arguments: each a result file or a folder of them, or `NAME=PATH`. Without NAME a run is
            named after its file or folder, or after its path if two would have the same name.

    Raises:
        SourceError: a path does not exist.
        UsageError: a folder has no result file, or two runs have the same name.
    """
    named = []
    for argument in arguments:
        name, _, path = argument.partition("=")
        if not path or Path(argument).exists():
            name, path = "", argument
        named.append((name, Path(path)))
    short_names = [name or _short_name(path) for name, path in named]
    names = [
        short if short_names.count(short) == 1 or name else str(path)
        for short, (name, path) in zip(short_names, named, strict=True)
    ]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two runs are called {duplicate}; name them as NAME=PATH.")
    return [(name, result_files(path)) for name, (_, path) in zip(names, named, strict=True)]


def _short_name(path: Path) -> str:
    return path.stem if path.suffix == ".jsonl" else path.name
