"""`rewardkit prep`: source -> raw rows -> verl rows -> checks -> parquet, and a report."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, tee
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, TextIO, TypeAlias

from rewardkit import __version__, registry
from rewardkit.errors import DataError, UnknownNameError, UsageError, call_catching
from rewardkit.output import atomic, require_absent, require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card, read_card
from rewardkit.preprocess.duplicates import gold_key, question_key
from rewardkit.preprocess.quality import check_row, dropped_line, dropped_path
from rewardkit.preprocess.read import Raw, RawRows
from rewardkit.preprocess.report import MAX_QUESTIONS, PrepReport, SplitReport
from rewardkit.preprocess.select import (
    Language,
    Repeated,
    Selection,
    choose,
    language_fault,
    text_fault,
)
from rewardkit.preprocess.source import Hub, Source, find
from rewardkit.preprocess.template import Template, load_template
from rewardkit.preprocess.whole_rows import whole_rows
from rewardkit.row import BATCH_ROWS, Row, batched, build_row, read_rows, write_rows


def prep(
    dataset: str | Dataset,
    out: Path | str,
    *,
    split: str | None = None,
    source: Path | None = None,
    hub: Hub = "huggingface",
    sample: bool = False,
    template: str | None = None,
    system: str | None = None,
    scorer: str | None = None,
    language: Language = "all",
    dedup: bool | None = None,
    repeat: int = 1,
    limit: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> PrepReport:
    """Write a dataset as verl parquet.

    Args:
        dataset: its name in the registry, the path of a plug-in (`my_dataset.py`, or
            `my_dataset.py:NAME`), or a `Dataset`.
        out: the parquet to write; with `split="all"` a folder that gets one file per split.
        split: a split of the dataset's card, or `all`; None for `train` or the only one.
        source: a file or folder that holds the rows; else the local cache, else the hub.
        hub: `huggingface` or `modelscope`.
        sample: use the packaged sample.
        template: a built-in prompt template or a file; None for the dataset's own.
        system: a system message.
        scorer: the scorer that rows name; None for the one that fits the template.
        language: keep questions in `en` or `zh` only.
        dedup: drop rows that ask an earlier row's question, and all rows of a question with
            several golds; None for what the dataset says. Takes memory for every question.
        repeat: write every row so many times (avg@k on a small test set).
        limit: keep at most this many rows of each split, after shuffling.
        shuffle: put the rows in a random order that depends on `seed` only.
        seed: of the shuffle.
        overwrite: replace what exists.
        jobs: processes for large datasets; with more than one, the program's main module must be
            importable, as `multiprocessing` asks. A user's plug-in is run in this process.
        progress: called with the number of raw rows done since the last call.

    Raises:
        UnknownNameError: no such dataset, split, template or scorer.
        UsageError: `out` does not end in .parquet, or options exclude each other.
        SourceError: the rows were not found anywhere.
        DataError: the rows cannot be read.
        OutputError: the output exists or cannot be written.
    """
    chosen = load_dataset(dataset)
    card = card_of(chosen)
    prompt = load_template(template or card.template, system)
    how = _How(
        prompt,
        None if template else card.template,
        _scorer(scorer, prompt, card),
        Selection(language, chosen.dedup if dedup is None else dedup),
        repeat,
        limit,
        seed if shuffle else None,
        jobs,
    )
    outs = _outs(Path(out), card, split, source)
    for path in outs.values():
        require_absent(path, overwrite=overwrite)
        require_absent(dropped_path(path), overwrite=overwrite)
    found = {name: find(card, name, path=source, hub=hub, sample=sample) for name in outs}
    for path in outs.values():
        for file in (file for where in found.values() for file in where.files):
            require_not_input(path, file)
    reports = []
    with ExitStack() as stack:  # files get their names when all are written
        for name, path in outs.items():
            rejects = stack.enter_context(atomic(dropped_path(path), overwrite=overwrite))
            temporary = stack.enter_context(atomic(path, overwrite=overwrite))
            report = SplitReport(name, path, found[name].origin, found[name].files)
            job = _Job(chosen, card, name, found[name], how)
            _write(job, temporary, rejects, report, progress)
            reports.append(report)
    for report in reports:
        if not report.dropped:
            dropped_path(report.out).unlink()
    keys = ", ".join(dict.fromkeys(card.reward_key(name) for name in outs))
    return PrepReport(chosen.name, keys, prompt.name, how.scorer, tuple(reports))


def load_dataset(dataset: str | Dataset) -> Dataset:
    """A dataset by name or by the path of a plug-in; a `Dataset` is itself.

    Raises:
        UnknownNameError: no such name.
        UsageError: the file does not import, or has no dataset of that name.
    """
    if isinstance(dataset, Dataset):
        return dataset
    if registry.is_path(dataset) and ":" not in dataset:
        dataset = f"{dataset}:DATASET"
    loaded = registry.load("datasets", dataset)
    if not isinstance(loaded, Dataset):
        raise UsageError(f"{dataset} is {type(loaded).__name__}, not a rewardkit Dataset.")
    return loaded


def card_of(dataset: Dataset) -> Card:
    """A dataset's card: its own, as plug-ins have it, or the file in `data_cards/`."""
    return dataset.card or read_card(dataset.name)


def preview(dataset: str | Dataset, n: int, **options: Any) -> list[Row]:
    """The first `n` rows that `prep` would write; see there for the options and errors."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "preview.parquet"
        prep(dataset, out, limit=n, **options)
        return list(read_rows(out))


#: A raw row's place, the row, and why it is dropped if that is known already.
Taken: TypeAlias = "tuple[int, Raw, Dropped | None]"


@dataclass(frozen=True)
class _How:
    """The choices that turn problems into rows.

    `own_template` is the name of the card's template where the user asked for no other.
    """

    template: Template
    own_template: str | None
    scorer: str
    select: Selection
    repeat: int
    limit: int | None
    shuffle_seed: int | None
    jobs: int

    def batch_rows(self) -> int:
        return min(self.limit or BATCH_ROWS, BATCH_ROWS)

    def order(self, rows: Iterable[tuple[int, Raw]]) -> Iterable[tuple[int, Raw]]:
        if self.shuffle_seed is None:
            return rows
        shuffled = list(rows)
        random.Random(self.shuffle_seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret
        return shuffled

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        """The dataset's own prompt where the user asked for no other, else the template's."""
        messages = self.template.messages(problem.question)
        if problem.prompt and self.own_template:
            messages[-1] = {"role": "user", "content": problem.prompt}
        return messages


@dataclass(frozen=True)
class _Job:
    """One split on its way from raw rows to verl rows."""

    dataset: Dataset
    card: Card
    split: str
    source: Source
    how: _How

    def raw_rows(self) -> RawRows:
        return RawRows(self.source.files, self.card.columns, self.dataset.repeats)

    def problem(self, raw: Raw) -> Problem | Dropped:
        problem = call_catching(self.dataset.to_problem, raw)
        if isinstance(problem, TypeError):  # a null or a number where the dataset has text
            return Dropped("unexpected type", str(problem))
        if isinstance(problem, Exception):
            return Dropped("unreadable row", f"{type(problem).__name__}: {problem}")
        if isinstance(problem, Dropped):
            return problem
        if not isinstance(problem, Problem):
            kind = type(problem).__name__
            raise UsageError(
                f"{self.dataset.name}: to_problem returned {kind}, not a Problem or Dropped."
            )
        fault = text_fault(problem) or language_fault(problem.question, self.how.select.language)
        return Dropped(fault) if fault else problem

    def row(self, raw: Raw, index: int) -> Row | Dropped:
        problem = self.problem(raw)
        if isinstance(problem, Dropped):
            return problem
        row = self.build(problem, index)
        findings = check_row(row, index)
        return Dropped(findings[0].rule, findings[0].message) if findings else row

    def build(self, problem: Problem, index: int) -> Row:
        return build_row(
            data_source=self.card.reward_key(self.split),
            prompt=self.how.messages(problem),
            ability=self.card.ability,
            ground_truth=problem.ground_truth,
            index=index,
            split=self.split,
            source_id=problem.source_id,
            question=problem.question,
            answer=problem.answer,
            scorer=self.how.scorer,
            subject=problem.subject,
            level=problem.level,
            kind=problem.kind,
            options=problem.options,
            images=problem.images,
        )

    def metadata(self) -> dict[str, Any]:
        """What the parquet's own metadata says of how it was made."""
        return {
            "rewardkit": __version__,
            "dataset": self.card.name,
            "split": self.split,
            "origin": self.source.origin,
            "revision": self.source.revision,
            "template": self.how.template.text,
            "system": self.how.template.system,
            "scorer": self.how.scorer,
            "language": self.how.select.language,
            "dedup": self.how.select.dedup,
            "repeat": self.how.repeat,
            "limit": self.how.limit,
            "shuffle_seed": self.how.shuffle_seed,
        }


def _write(
    job: _Job, out: Path, rejects: Path, report: SplitReport, progress: Callable[[int], object]
) -> None:
    """Write the rows of a split, and those dropped as the source has them, to temporaries of ours."""
    with TemporaryFile("w+", dir=out.parent) as reasons, rejects.open("w") as lines:
        rows = islice(_rows(job, report, reasons, progress), job.how.limit)
        repeated = (row for row in rows for _ in range(job.how.repeat))
        report.written = write_rows(repeated, out, job.metadata(), overwrite=True)
        lines.writelines(_dropped_lines(job, reasons))


def _dropped_lines(job: _Job, reasons: TextIO) -> Iterator[str]:
    """The lines of `OUT.dropped.jsonl`, in the order of the source."""
    reasons.seek(0)
    noted: Iterable[tuple[int, str]] = map(json.loads, reasons)
    if job.how.shuffle_seed is not None:
        noted = sorted(noted)
    by_place, places = tee(noted)
    rows = whole_rows(job.source.files, (index for index, _ in places))
    for (index, reason), row in zip(by_place, rows, strict=True):
        yield dropped_line(index, [reason], row)


def _rows(
    job: _Job, report: SplitReport, reasons: TextIO, progress: Callable[[int], object]
) -> Iterator[Row]:
    raws = job.raw_rows()
    repeated = _repeated(job, raws)
    seen = _Questions()
    taken = ((index, raw, repeated.get(index)) for index, raw in job.how.order(raws))
    jobs = job.how.jobs if importable_in_child(job.dataset.to_problem) else 1
    built = in_order(partial(_build, job), batched(taken, job.how.batch_rows()), jobs)
    for index, row in (
        (i, row) for batch, rows in built for (i, _, _), row in zip(batch, rows, strict=True)
    ):
        report.distinct += 1
        read = index + 1 if job.how.shuffle_seed is None else raws.read
        progress(read - report.read)
        report.read = read
        if isinstance(row, Dropped):
            report.drop(row, index)
            reasons.write(json.dumps((index, f"{row.reason}: {row.detail}")) + "\n")
        else:
            report.stats.add(row)
            seen.note(row, report)
            yield row
    report.read = raws.read
    if sum(report.dropped.values()) == report.distinct:
        raise DataError(_nothing_left(report))


@dataclass(frozen=True)
class _Questions:
    """The questions kept so far, each with its gold, to report those that come again."""

    golds: dict[bytes, str] = field(default_factory=dict)

    def note(self, row: Row, report: SplitReport) -> None:
        images = (image["bytes"] for image in row.get("images") or ())
        key = question_key(row["extra_info"]["question"], images)
        gold = row["reward_model"]["ground_truth"]
        first = self.golds.get(key)
        if first is not None:
            report.duplicates += 1
            report.conflicting += gold_key(first) != gold_key(gold)
        elif len(self.golds) < MAX_QUESTIONS:
            self.golds[key] = gold


def _build(job: _Job, batch: list[Taken]) -> list[Row | Dropped]:
    """The rows of a batch, in whatever process."""
    return [dropped or job.row(raw, index) for index, raw, dropped in batch]


def _repeated(job: _Job, raws: RawRows) -> Repeated:
    """The rows that ask an earlier row's question; a pass over the source of its own."""
    if not job.how.select.dedup:
        return {}
    problems = ((index, job.problem(raw)) for index, raw in raws)
    return choose((index, found) for index, found in problems if isinstance(found, Problem))


def _nothing_left(report: SplitReport) -> str:
    details = {reason: detail for reason, _, detail in reversed(report.examples)}
    reasons = "; ".join(
        f"{reason} ({n:,}; the first: {details[reason] or 'no more is known'})"
        for reason, n in report.dropped.most_common(3)
    )
    files = ", ".join(str(file) for file in report.files)
    return f"{files}: " + (f"every row was dropped: {reasons}." if reasons else "no rows.")


def _outs(out: Path, card: Card, split: str | None, source: Path | None) -> dict[str, Path]:
    if split == "all":
        if source is not None and not Path(source).is_dir():
            raise UsageError(
                "--split all reads a folder with a file per split; give --split a name."
            )
        return {name: out / f"{name}.parquet" for name in card.splits}
    split = split or card.default_split()
    names = ", ".join(card.splits)
    if split is None:
        raise UsageError(f"{card.name} has several splits: --split {names}, or all.")
    if split not in card.splits:
        raise UnknownNameError(f"{card.name} has no split {split!r}. It has {names}; or use 'all'.")
    require_suffix("--out", out, ".parquet")
    return {split: out}


def _scorer(asked: str | None, template: Template, card: Card) -> str:
    silent = template.name == "none" and template.scorer is None
    fits = silent or template.name == card.template or template.asks_for(card.scorer)
    name = asked or (card.scorer if fits else template.scorer)
    if name is None:
        raise UsageError(
            f"{template.name}: does not say what form the answer takes ('####', '\\boxed' or "
            "'Answer:'); add --scorer NAME."
        )
    registry.target("scorers", name)
    return name
