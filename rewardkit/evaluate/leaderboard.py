"""Several runs on the same questions: in one table, or two by their difference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.metrics import MetricGroup, QuestionResult, pass_at_k
from rewardkit.evaluate.results import RunResults, read_results, result_files
from rewardkit.pages.text import join_names
from rewardkit.statistics import (
    Interval,
    PairedDifference,
    average_interval,
    mean_interval,
    paired_difference,
)

#: From this p-value on, a difference may be chance.
CHANCE_P_VALUE = 0.05

#: The metric of every question, from 0 to 1, by its key; and these by data source.
_Values: TypeAlias = dict[bytes, float]
_ValuesBySource: TypeAlias = dict[str, _Values]


class LeaderboardCell(NamedTuple):
    """The metric of a run on a data source.

    Attributes:
        value: from 0 to 1.
        interval: 95 % interval of the value.
        mark: `best` of its column; `near` if the difference to the best may be chance (paired t
            over questions, p of 0.05 or more); otherwise "", as where runs have other questions.
        rates: counts of questions and responses, shares without an answer, and the mean length.
    """

    value: float
    interval: Interval
    mark: str
    rates: dict[str, Any]


class LeaderboardRow(NamedTuple):
    """A run: its cells by data source, and their average with interval if no cell is missing."""

    run: RunResults
    cells: Mapping[str, LeaderboardCell]
    average: tuple[float, Interval] | None


class BestRun(NamedTuple):
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


class Leaderboard(NamedTuple):
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

    def marks(self, source: str) -> dict[str, str]:
        """Return the marks of a data source by the run's name."""
        return {row.run.name: row.cells[source].mark for row in self.rows if source in row.cells}

    def best(self) -> BestRun | None:
        """Return the first run with those near it; None if the runs cannot be compared.

        With one data source, a run is near if its difference to the best, question by question, may
        be chance; with several, if its average is within the interval of the best average.
        """
        first, *others = self.rows
        if not first.average or not all("best" in self.marks(s).values() for s in self.columns):
            return None
        if len(self.columns) == 1:
            value, interval, *_ = first.cells[self.columns[0]]
            near = [n for n, mark in self.marks(self.columns[0]).items() if mark]
            near.remove(first.run.name)
        else:
            value, interval = first.average
            low, high = interval
            near = [r.run.name for r in others if r.average and low <= r.average[0] <= high]
        return BestRun(first.run.name, value, interval, tuple(near))

    def summary(self) -> dict[str, Any]:
        """Return the leaderboard as plain values."""
        best = self.best()
        return {
            "figure": self.metric,
            "best": best._asdict() if best else None,
            "data_sources": list(self.columns),
            "notes": list(self.notes),
            "runs": [
                {
                    "name": run.name,
                    "files": [str(path) for path in run.files],
                    "of": run.origins(),
                    "average": dict(zip(("value", "interval"), average, strict=True))
                    if average
                    else None,
                    "by_data_source": {
                        source: {
                            "value": value,
                            "interval": list(interval),
                            "mark": mark,
                            **rates,
                        }
                        for source, (value, interval, mark, rates) in cells.items()
                    },
                }
                for run, cells, average in self.rows
            ],
        }


class RunDifference(NamedTuple):
    """The comparison of two runs.

    Attributes:
        a, b: the results of both.
        means: mean@n of A and of B on the shared questions, by data source; "" for all.
        differences: B minus A, by the same names.
    """

    a: RunResults
    b: RunResults
    means: Mapping[str, tuple[float, float]]
    differences: Mapping[str, PairedDifference]

    def unshared_questions(self) -> tuple[int, int]:
        """Return the number of questions that only A has, and that only B has."""
        a, b = self.a.questions.keys(), self.b.questions.keys()
        return len(a - b), len(b - a)

    def summary(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        only_a, only_b = self.unshared_questions()
        rows = {
            name: {"mean_a": a, "mean_b": b, **self.differences[name]._asdict()}
            for name, (a, b) in self.means.items()
        }
        sides = {
            letter: {
                "file": side.name,
                "questions": len(side.questions),
                "n": side.n,
                "of": side.origins(),
            }
            for letter, side in (("a", self.a), ("b", self.b))
        }
        return {
            "method": "paired t over questions",
            **sides,
            "only_a": only_a,
            "only_b": only_b,
            "total": rows.pop(""),
            "by_data_source": rows,
        }


def compare_results(a: Path, b: Path) -> RunDifference:
    """Compare run B with run A, each a result file or a folder of them.

    Two questions are the same if data source, question and gold are. The prompts and the number of
    responses may differ.

    Raises:
        SourceError, UsageError: a path does not exist, or it is a folder without results.
        DataError: a file cannot be read, or the runs have no question in common.
    """
    sides = read_results(str(a), result_files(a)), read_results(str(b), result_files(b))
    values = [_metric_values(side, "mean", 1)[0] for side in sides]
    means, differences = {}, {}
    pairs: dict[str, list[tuple[float, float]]] = {"": []}
    for source, of_a in values[0].items():
        of_b = values[1].get(source, {})
        if shared := [(of_a[key], of_b[key]) for key in of_a if key in of_b]:
            pairs[source or "(none)"] = shared
            pairs[""] += shared
    if not pairs[""]:
        raise DataError(f"{a} and {b} have no question in common.")
    for name, group in pairs.items():
        means[name] = fmean(x for x, _ in group), fmean(y for _, y in group)
        differences[name] = paired_difference([y - x for x, y in group])
    return RunDifference(*sides, means, differences)


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
    kind, _, number = metric.partition("@")
    if metric != "mean@n" and not re.fullmatch("(pass|maj)@[1-9][0-9]{0,6}", metric):
        raise UsageError(f"--figure {metric}: use mean@n, pass@K or maj@K, such as pass@8.")
    k = 1 if metric == "mean@n" else int(number)
    values: list[_ValuesBySource] = []
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
    rows = []
    for place, (run, by_source) in enumerate(zip(runs, values, strict=True)):
        cells = {}
        for source in columns:
            if of_source := list(by_source.get(source, {}).values()):
                group = run.metrics.sources[source]
                interval = mean_interval(of_source, len(group.characters) / k)
                rates = _rates(group, len(of_source))
                cells[source] = LeaderboardCell(
                    fmean(of_source), interval, marks[source][place], rates
                )
        average = None
        if len(cells) == len(columns):
            means = [cell.value for cell in cells.values()]
            intervals = [cell.interval for cell in cells.values()]
            average = fmean(means), average_interval(means, intervals)
        rows.append(LeaderboardRow(run, cells, average))
    rows.sort(key=lambda row: -row.average[0] if row.average else 1.0)
    notes += _comparability_notes(runs, values, columns)
    return Leaderboard(metric, columns, tuple(rows), tuple(notes))


def _rates(group: MetricGroup, questions: int) -> dict[str, Any]:
    return {
        "questions": questions,
        "n": list(group.n),
        "truncated": group.truncated_share,
        "no_answer": group.no_answer_share,
        "mean_tokens": fmean(group.tokens) if group.tokens else None,
    }


def _metric_values(run: RunResults, kind: str, k: int) -> tuple[_ValuesBySource, dict[str, str]]:
    """Return the metric of every question by data source, and why a data source has none."""
    values: _ValuesBySource = {}
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
    if len(result.majority) == result.n or k == result.n:
        return result.majority[k - result.n - 1]
    return f"maj@{k}: of {result.n} responses only maj@{result.n} is known."


def _column_marks(values: Sequence[_Values | None]) -> list[str]:
    """Return `best`, `near` or "" for every run; all "" if the runs have different questions."""
    runs = [run for run in values if run]
    if len(runs) < 2 or any(run.keys() != runs[0].keys() for run in runs):
        return [""] * len(values)
    best = max(runs, key=lambda run: sum(run.values()))
    marks = []
    for run in values:
        is_near = run and paired_difference([best[key] - run[key] for key in best]).p
        mark = "near" if is_near and is_near >= CHANCE_P_VALUE else ""
        marks.append("best" if run == best else mark)
    return marks


def _comparability_notes(
    runs: Sequence[RunResults], values: Sequence[_ValuesBySource], columns: Sequence[str]
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
    # A seed does not make it another sampling.
    samplings = {
        json.dumps({k: v for k, v in (origin["sampling"] or {}).items() if k != "seed"})
        for run in runs
        for origin in run.origins()
    }
    if len(samplings) > 1:
        yield f"the runs use {len(samplings)} different samplings (see sampling in --json)."
    for run in runs:
        if note := run.metrics.total.unusable_note():
            yield f"{run.name}: {note}"
        models = {str(origin["model"]) for origin in run.origins() if origin["model"]}
        if len(models) > 1:
            yield f"{run.name}: its responses come from {len(models)} models."


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
        name, _, text = argument.partition("=")
        if not text or Path(argument).exists():
            name, text = "", argument
        path = Path(text)
        short = name or (path.stem if path.suffix == ".jsonl" else path.name)
        named.append((name, short, path))
    shorts = [short for _, short, _ in named]
    names = [
        short if shorts.count(short) == 1 or name else str(path) for name, short, path in named
    ]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two runs are called {duplicate}; name them as NAME=PATH.")
    return [(name, result_files(path)) for name, (_, _, path) in zip(names, named, strict=True)]
