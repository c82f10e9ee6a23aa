"""A leaderboard: several runs on the same sets of questions, in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.estimators import pass_at_k
from rewardkit.evaluate.metrics import Answered
from rewardkit.evaluate.results import Results
from rewardkit.statistics import average_interval, mean_interval, paired_difference

#: A difference with a p of at least this may well be chance.
CHANCE = 0.05

#: The value of every question, from 0 to 1, by data source.
_Values: TypeAlias = dict[str, dict[bytes, float]]


@dataclass(frozen=True)
class Cell:
    """A run on one set of questions.

    Attributes:
        value: the figure, from 0 to 1.
        interval: of it, 95 %.
        questions: how many.
        n: the least and the most responses to one.
        mark: `best` in its column; `near` if the difference to the best may be chance (paired t
            over questions, p of 0.05 or more); else empty, as where runs answer other questions.
    """

    value: float
    interval: tuple[float, float]
    questions: int
    n: tuple[int, int]
    mark: str = ""


@dataclass(frozen=True)
class Row:
    """A run: its cells by data source, and their average if it has all of them."""

    run: Results
    cells: Mapping[str, Cell]
    average: tuple[float, tuple[float, float]] | None


@dataclass(frozen=True)
class Board:
    """Runs, the best average first.

    Attributes:
        figure: what the cells are: `mean@n`, `pass@K` or `maj@K`.
        columns: data sources, in the order they were met.
        rows: the runs.
        notes: what makes them less than comparable.
    """

    figure: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def rates(self) -> Iterator[tuple[Row, dict[str, dict[str, Any]]]]:
        """Every run with what its responses are like, by data source."""
        for row in self.rows:
            yield row, {source: _rates(row, source) for source in row.cells}

    def summary(self) -> dict[str, Any]:
        """The board as plain values."""
        return {
            "figure": self.figure,
            "data_sources": list(self.columns),
            "notes": list(self.notes),
            "runs": [_row_summary(row) for row in self.rows],
        }


def board(runs: Sequence[Results], figure: str = "mean@n") -> Board:
    """Put runs side by side.

    The average is over data sources, each with the same weight.

    Args:
        runs: at least one.
        figure: `mean@n`, `pass@K` or `maj@K`. A set with too few responses for it, or a scorer that
            names no answers to vote on, leaves its cell empty, and is noted.

    Raises:
        UsageError: no such figure.
        DataError: every cell would be empty.
    """
    kind, k = _parsed(figure)
    values: list[_Values] = []
    notes: list[str] = []
    for run in runs:
        found, lacking = _values(run, kind, k)
        values.append(found)
        notes += [f"{run.name}: {source or '(none)'}: {why}" for source, why in lacking.items()]
    columns = tuple(dict.fromkeys(source for found in values for source in found))
    if not columns:
        raise DataError(notes[0])
    marks = {source: _marks([found.get(source) for found in values]) for source in columns}
    rows = [
        _row(run, found, columns, {source: marks[source][place] for source in columns}, k)
        for place, (run, found) in enumerate(zip(runs, values, strict=True))
    ]
    rows.sort(key=lambda row: -row.average[0] if row.average else 1.0)
    notes += _notes(runs, values, columns)
    return Board(figure, columns, tuple(rows), tuple(notes))


def _parsed(figure: str) -> tuple[str, int]:
    """The kind of a figure, and its k; 1 for the mean."""
    kind, _, k = figure.partition("@")
    if figure == "mean@n":
        return kind, 1
    if kind not in ("pass", "maj") or not re.fullmatch("[1-9][0-9]{0,6}", k):
        raise UsageError(f"--figure {figure}: it is mean@n, pass@K or maj@K, as in pass@8.")
    return kind, int(k)


def _values(run: Results, kind: str, k: int) -> tuple[_Values, dict[str, str]]:
    """The value of every question by data source, and why a source has none."""
    found: _Values = {}
    lacking: dict[str, str] = {}
    for key, (source, answered) in run.questions.items():
        value = _value(answered, kind, k)
        if isinstance(value, str):
            lacking.setdefault(source, value)
        else:
            found.setdefault(source, {})[key] = value
    return {source: each for source, each in found.items() if source not in lacking}, lacking


def _value(answered: Answered, kind: str, k: int) -> float | str:
    """A question's value, from 0 to 1; or why it has none."""
    if kind == "mean":
        return answered.right / answered.n
    if k > answered.n:
        return f"a question has {answered.n} responses; {kind}@{k} needs {k}."
    if kind == "pass":
        return pass_at_k(answered.n, answered.right, k)
    if not answered.majority:
        return f"maj@{k}: the scorer does not name the answers that it calls right."
    if len(answered.majority) == answered.n:
        return answered.majority[k - 1]
    if k == answered.n:
        return answered.majority[-1]
    return f"maj@{k}: of {answered.n} responses only maj@{answered.n} is known."


def _marks(values: Sequence[Mapping[bytes, float] | None]) -> list[str]:
    """`best`, `near` or "" for every run on one data source; none where the questions differ."""
    asked = [each for each in values if each]
    if len(asked) < 2 or any(each.keys() != asked[0].keys() for each in asked):
        return [""] * len(values)
    top = max(asked, key=lambda each: sum(each.values()))
    marks = []
    for each in values:
        if not each:
            marks.append("")
        elif each == top:
            marks.append("best")
        else:
            chance = paired_difference([top[key] - each[key] for key in top]).p >= CHANCE
            marks.append("near" if chance else "")
    return marks


def _row(
    run: Results,
    values: Mapping[str, Mapping[bytes, float]],
    columns: Sequence[str],
    marks: Mapping[str, str],
    k: int,
) -> Row:
    cells = {}
    for source in columns:
        if source in values:
            group, found = run.figures.sources[source], list(values[source].values())
            interval = mean_interval(found, len(group.characters) / k)
            cells[source] = Cell(fmean(found), interval, len(found), group.n, marks[source])
    average = _average(list(cells.values())) if len(cells) == len(columns) else None
    return Row(run, cells, average)


def _average(cells: Sequence[Cell]) -> tuple[float, tuple[float, float]]:
    values = [cell.value for cell in cells]
    return fmean(values), average_interval(values, [cell.interval for cell in cells])


def _notes(
    runs: Sequence[Results],
    values: Sequence[Mapping[str, Mapping[bytes, float]]],
    columns: Sequence[str],
) -> Iterator[str]:
    for source in columns:
        asked = [set(found[source]) for found in values if source in found]
        if any(each != asked[0] for each in asked):
            shared = len(set.intersection(*asked))
            sizes = ", ".join(f"{len(each):,}" for each in asked)
            yield f"{source}: not the same questions ({sizes}; {shared:,} in all runs): no marks."
        counts = {run.figures.sources[source].n for run in runs if source in run.figures.sources}
        if len(counts) > 1:
            told = ", ".join(str(least) for least, _ in sorted(counts))
            yield f"{source}: not the same number of responses to a question ({told})."
    samplings = {json.dumps(_sampling(key), sort_keys=True) for run in runs for key in run.keys}
    if len(samplings) > 1:
        yield f"{len(samplings)} ways of sampling (see sampling in --json)."
    for run in runs:
        if note := run.figures.total.unusable_note():
            yield f"{run.name}: {note}"
        if len(run.models()) > 1:
            yield f"{run.name}: responses of {len(run.models())} models."


def _sampling(key: str) -> Any:
    """How it was sampled; the seed makes no other way of it."""
    sampling = json.loads(key)["sampling"]
    return {k: v for k, v in sampling.items() if k != "seed"} if sampling else sampling


def _row_summary(row: Row) -> dict[str, Any]:
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


def _with_interval(value: float, interval: tuple[float, float]) -> dict[str, Any]:
    return {"value": value, "interval": list(interval)}


def _rates(row: Row, source: str) -> dict[str, Any]:
    """How many responses there are to a set, were cut, or had no answer, and how long they are."""
    cell, group = row.cells[source], row.run.figures.sources[source]
    return {
        "questions": cell.questions,
        "n": list(cell.n),
        "truncated": group.truncated_share,
        "no_answer": group.no_answer_share,
        "mean_tokens": fmean(group.tokens) if group.tokens else None,
    }


def runs_of(names: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """The runs that a command line names, each a result file or a folder of them.

    `NAME=PATH` calls a run so; else it is called as its file or folder, and by its path where two
    would be called the same.

    Raises:
        UsageError: nothing there, or two runs of one name.
    """
    found = []
    for text in names:
        name, _, place = text.partition("=")
        if not place or Path(text).exists():
            name, place = "", text
        found.append((name, Path(place)))
    short = [name or _short(path) for name, path in found]
    called = [
        each if short.count(each) == 1 or name else str(path)
        for each, (name, path) in zip(short, found, strict=True)
    ]
    if twice := next((each for each in called if called.count(each) > 1), None):
        raise UsageError(f"two runs are called {twice}; name them as NAME=PATH.")
    return [(name, _files(path)) for name, (_, path) in zip(called, found, strict=True)]


def _short(path: Path) -> str:
    return path.stem if path.suffix == ".jsonl" else path.name


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = path.glob("*.jsonl")
    files = sorted(each for each in found if each.is_file() and not each.name.startswith("."))
    if not files:
        raise UsageError(f"{path}: no result file, and no folder of them (.jsonl).")
    return files
