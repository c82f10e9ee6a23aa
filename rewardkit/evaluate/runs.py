"""Evaluated runs: read from result files, side by side in one table, and two by their difference."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.metrics import EvaluatedResponse, EvaluationMetrics, QuestionResult
from rewardkit.pages.model import Page
from rewardkit.responses.files import SkippedRow, expand_paths
from rewardkit.responses.samples import USUAL_NAMES, Sample, read_scores
from rewardkit.row import question_of
from rewardkit.scorers.base import Score
from rewardkit.statistics import Interval, PairedDifference, average_interval, paired_difference
from rewardkit.table import FractionBar, Table

#: From this p-value on, a difference may be chance.
CHANCE_P_VALUE = 0.05

#: Marks of a cell; see `RunCell`.
BEST, NEAR = "*", "~"
LEGEND = "*: best of its column; ~: the difference from it may be chance."

#: The metric of every question, from 0 to 1, by its key.
Values: TypeAlias = dict[bytes, float]


@dataclass
class RunResults:
    """The results of one run, from one file or several, without the texts.

    `questions` has data source and result of every question, by `question_key`; `origins` the number of
    responses by model and sampling, as JSON.
    """

    name: str
    files: list[Path] = field(default_factory=list)
    metrics: EvaluationMetrics = field(default_factory=EvaluationMetrics)
    questions: dict[bytes, tuple[str, QuestionResult]] = field(default_factory=dict)
    origins: Counter[str] = field(default_factory=Counter)

    def origin_list(self) -> list[dict[str, Any]]:
        """Return model, sampling and number of responses of each origin, the most frequent first."""
        return [{**json.loads(key), "responses": n} for key, n in self.origins.most_common()]

    def values(self, kind: str, k: int) -> dict[str, Values]:
        """Return a metric of every question by data source, of those that have it of all questions."""
        values: dict[str, Values] = {source: {} for source in self.metrics.sources}
        for key, (source, result) in self.questions.items():
            value = result.metric(kind, k)
            if value is None:
                values.pop(source, None)
            elif source in values:
                values[source][key] = value
        return values


def read_results(path: Path) -> Iterator[tuple[Sample, Score]]:
    """Yield the scored responses of a result file; raise `DataError` for a line that is none."""
    is_empty = True
    for each in read_scores([str(path)], USUAL_NAMES):
        if isinstance(each, SkippedRow):
            raise DataError(
                f"{each.where}: not a scored response ({each.reason}); name files that 'rewardkit "
                "eval run --out' or 'rewardkit score --out' wrote."
            )
        is_empty = False
        yield each
    if is_empty:
        raise DataError(f"{path}: the file has no results.")


def read_run(name: str, files: Sequence[Path]) -> RunResults:
    """Read the result files of a run; two of them must not answer the same question."""
    run = RunResults(name)
    for path in files:
        copies: Counter[bytes] = Counter()
        for key, responses in _questions(path, run.origins):
            copies[key] += 1  # a set may contain a question twice
            numbered_key = key + copies[key].to_bytes(4, "big")
            if numbered_key in run.questions:
                others = ", ".join(map(str, run.files))
                raise DataError(
                    f"{path} and {others} answer the same questions: name them as two runs."
                )
            run.questions[numbered_key] = responses[0].group[0], run.metrics.add(responses)
        run.files.append(path)
    return run


def _questions(
    path: Path, origins: Counter[str]
) -> Iterator[tuple[bytes, list[EvaluatedResponse]]]:
    """Yield the key and the responses of each question of a file, and count their origins."""
    pending: dict[int | bytes, tuple[bytes, list[EvaluatedResponse]]] = {}
    for sample, score in read_results(path):
        fields = sample.fields
        row, origin = fields.get("row"), {name: fields.get(name) for name in ("model", "sampling")}
        origins[json.dumps(origin, sort_keys=True)] += 1
        question = row if type(row) is int else question_key(sample)
        if question not in pending:
            if type(row) is int:  # responses to a row follow each other
                yield from pending.values()
                pending.clear()
            pending[question] = question_key(sample), []
        pending[question][1].append(EvaluatedResponse.of(sample, score))
    yield from pending.values()


def question_key(sample: Sample) -> bytes:
    """Return a key of data source, question and gold, which does not depend on the prompt."""
    prompt = sample.fields.get("prompt")
    prompt = prompt if isinstance(prompt, list) else sample.prompt
    question = question_of({"prompt": prompt, "extra_info": sample.extra_info})
    parts = (sample.source, question, sample.ground_truth)
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


class RunCell(NamedTuple):
    """The metric of a run on a data source, or the average of all, from 0 to 1.

    `mark` is "*" for the best of its column; "~" if the difference from it may be chance (paired t
    over questions, p of 0.05 or more); otherwise "", as where runs have other questions.
    """

    value: float
    interval: Interval
    mark: str = ""

    @property
    def text(self) -> str:
        """The value with its mark and its interval, in percent: `61.2* [58.0, 64.3]`."""
        low, high = self.interval
        return f"{100 * self.value:.1f}{self.mark} [{100 * low:.1f}, {100 * high:.1f}]"


class Comparison(NamedTuple):
    """Runs side by side, the best of the first column first.

    `columns` are the data sources in the order in which runs name them; before several of them None, for
    their average, in which each has the same weight. A run may lack a cell, and then its average, too.
    `notes` make the runs less comparable. `differences` are the second run minus the first on the
    questions that both have, by data source, and `all`, if there are two.
    """

    metric: str
    columns: tuple[str | None, ...]
    rows: tuple[tuple[RunResults, Mapping[str | None, RunCell]], ...]
    notes: tuple[str, ...]
    differences: Mapping[str, PairedDifference]

    def table(self) -> Table:
        """Return the table of runs and data sources."""
        names = ("average" if name is None else name or "(none)" for name in self.columns)
        rows = [[cells.get(column) for column in self.columns] for _, cells in self.rows]
        bars = (
            [FractionBar(c.text, c.value, *c.interval) if c else "" for c in cells]
            for cells in rows
        )
        return Table(
            ["run", *names],
            [(run.name, *own) for (run, _), own in zip(self.rows, bars, strict=True)],
            f"{self.metric} [95 %]",
            note="Percent, with the 95% interval over questions in brackets and as a line; "
            f"{LEGEND} Chance: a paired t-test over questions, not corrected for the number of runs.",
            bold=[
                (i, k)
                for i, own in enumerate(rows)
                for k, cell in enumerate(own, 1)
                if cell and cell.mark == BEST
            ],
        )

    def summary(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "metric": self.metric,
            "data_sources": [source for source in self.columns if source is not None],
            "notes": self.notes,
            "runs": [
                {
                    "name": run.name,
                    "files": [str(path) for path in run.files],
                    "of": run.origin_list(),
                    "average": cells[None]._asdict() if None in cells else None,
                    "by_data_source": {
                        c: cell._asdict() for c, cell in cells.items() if c is not None
                    },
                }
                for run, cells in self.rows
            ],
            "differences": {name: each._asdict() for name, each in self.differences.items()},
        }

    def page(self) -> Page:
        """Return the page of the comparison."""
        title = f"{self.metric} of {len(self.rows)} runs"
        return Page(title, (), (self.table(),), self.notes)


def compare_runs(runs: Sequence[RunResults], metric: str = "mean@n") -> Comparison:
    """Put runs side by side by `mean@n`, `pass@K` or `maj@K`.

    Two questions are the same if data source, question and gold are. The prompts and the number of
    responses may differ. The cell of a data source stays empty, with a note, if a question has too few
    responses, or if the scorer does not name the answers that maj@K counts.

    Raises:
        UsageError: the metric is unknown.
        DataError: all cells are empty.
    """
    kind, _, number = metric.partition("@")
    if metric != "mean@n" and not re.fullmatch("(pass|maj)@[1-9][0-9]{0,6}", metric):
        raise UsageError(f"--metric {metric}: use mean@n, pass@K or maj@K, such as pass@8.")
    k = 1 if metric == "mean@n" else int(number)
    values: list[dict[str, Values]] = []
    notes: list[str] = []
    for run in runs:
        values.append(run.values(kind, k))
        notes += [
            f"{run.name}: {source or '(none)'}: no {metric}: a question has too few responses for "
            "pass@K or not K for maj@K, or the scorer does not name the answers that it calls correct."
            for source in run.metrics.sources
            if source not in values[-1]
        ]
    sources = tuple(dict.fromkeys(source for by_source in values for source in by_source))
    if not sources:
        raise DataError(notes[0])
    marks = {source: _marks([own.get(source, {}) for own in values]) for source in sources}
    rows = []
    for i, (run, by_source) in enumerate(zip(runs, values, strict=True)):
        cells: dict[str | None, RunCell] = {}
        for source, own in by_source.items():
            numbers = list(own.values())
            interval = run.metrics.sources[source].interval(numbers, k)
            cells[source] = RunCell(fmean(numbers), interval, marks[source][i])
        if len(cells) == len(sources) > 1:
            means, intervals, _ = zip(*cells.values(), strict=True)
            cells[None] = RunCell(fmean(means), average_interval(means, intervals))
        rows.append((run, cells))
    columns = (*((None,) if len(sources) > 1 else ()), *sources)
    rows.sort(key=lambda row: -row[1][columns[0]].value if columns[0] in row[1] else 1.0)
    notes += _comparability_notes(runs, values, sources)
    differences = _differences(*values) if len(runs) == 2 else {}
    return Comparison(metric, columns, tuple(rows), tuple(notes), differences)


def _marks(values: Sequence[Values]) -> list[str]:
    """Return the mark of every run: "" if the runs have different questions."""
    runs = [own for own in values if own]
    if len(runs) < 2 or any(own.keys() != runs[0].keys() for own in runs):
        return [""] * len(values)
    best = max(runs, key=lambda own: sum(own.values()))
    marks = []
    for own in values:
        is_near = own and paired_difference([best[key] - own[key] for key in best]).p
        mark = NEAR if is_near and is_near >= CHANCE_P_VALUE else ""
        marks.append(BEST if own == best else mark)
    return marks


def _differences(a: dict[str, Values], b: dict[str, Values]) -> dict[str, PairedDifference]:
    every: list[float] = []
    differences = {}
    for source, own in a.items():
        other = b.get(source, {})
        if pairs := [other[key] - own[key] for key in own if key in other]:
            differences[source or "(none)"] = paired_difference(pairs)
            every += pairs
    return {"all": paired_difference(every), **differences} if every else {}


def _comparability_notes(
    runs: Sequence[RunResults], values: Sequence[dict[str, Values]], sources: Sequence[str]
) -> Iterator[str]:
    for source in sources:
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
    samplings = set()
    for run in runs:
        origins = run.origin_list()
        for origin in origins:  # a seed does not make it another sampling
            own = origin["sampling"] if isinstance(origin["sampling"], dict) else {}
            samplings.add(json.dumps({**own, "seed": None}))
        models = {str(origin["model"]) for origin in origins if origin["model"]}
        if len(models) > 1:
            yield f"{run.name}: its responses come from {len(models)} models."
        if note := run.metrics.total.unusable_note():
            yield f"{run.name}: {note}"
    if len(samplings) > 1:
        yield f"the runs use {len(samplings)} different samplings (see sampling in --json)."


def parse_runs(arguments: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Return name and files of the runs that a command line names.

    Each is a result file or a folder of them, or `NAME=PATH`. Without NAME a run is named after its file
    or folder, or after its path if two would have the same name.
    """
    runs = []
    for argument in arguments:
        name, _, path = argument.partition("=")
        runs.append(("", argument) if not path or Path(argument).exists() else (name, path))
    shorts = [name or Path(path).name.removesuffix(".jsonl") for name, path in runs]
    named: dict[str, list[Path]] = {}
    for short, (name, path) in zip(shorts, runs, strict=True):
        key = short if name or shorts.count(short) == 1 else path
        if key in named:
            raise UsageError(f"two runs are called {key}; name them as NAME=PATH.")
        named[key] = list(map(Path, expand_paths([path])))
    return list(named.items())
