"""`rewardkit prep`: source -> raw rows -> verl rows -> checks -> parquet, and a report."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from rewardkit import __version__, registry
from rewardkit.errors import DataError, UnknownNameError, UsageError
from rewardkit.output import atomic, refuse_existing
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card, read_card
from rewardkit.preprocess.quality import check_row, dropped_line, dropped_path
from rewardkit.preprocess.source import Hub, Raw, Source, find, read
from rewardkit.preprocess.template import Template, load_template
from rewardkit.row import Row, build_row, read_rows, write_rows


@dataclass
class SplitReport:
    """What became of one split.

    Attributes:
        split: its name.
        out: the parquet written.
        origin: where the rows came from: `sample`, `path`, `cache`, or the hub's name.
        files: the files they were read from.
        read: raw rows read.
        written: rows written.
        dropped: rows dropped, by reason; they are kept in `<out>.dropped.jsonl`.
    """

    split: str
    out: Path
    origin: str
    files: tuple[Path, ...]
    read: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class PrepReport:
    """What `prep` did: the choices that made the rows, and a report per split."""

    dataset: str
    data_source: str
    template: str
    scorer: str
    splits: tuple[SplitReport, ...]


def prep(
    dataset: str,
    out: Path | str,
    *,
    split: str = "train",
    source: Path | None = None,
    hub: Hub = "huggingface",
    sample: bool = False,
    template: str | None = None,
    system: str | None = None,
    scorer: str | None = None,
    limit: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> PrepReport:
    """Write a dataset as verl parquet.

    Args:
        dataset: its name in the registry.
        out: the parquet to write; with `split="all"` a folder that gets one file per split.
        split: a split of the dataset's card, or `all`.
        source: a file or folder that holds the rows; else the local cache, else the hub.
        hub: `huggingface` or `modelscope`.
        sample: use the packaged sample.
        template: a built-in prompt template or a file; None for the dataset's own.
        system: a system message.
        scorer: the scorer that rows name; None for the one that fits the template.
        limit: keep at most this many rows of each split, after shuffling.
        shuffle: put the rows in a random order that depends on `seed` only.
        seed: of the shuffle.
        overwrite: replace what exists.
        progress: called with 1 for every row.

    Raises:
        UnknownNameError: no such dataset, split, template or scorer.
        SourceError: the rows were not found anywhere.
        DataError: the rows cannot be read.
        OutputError: the output exists or cannot be written.
    """
    take = _Take(limit, seed if shuffle else None)
    chosen: Dataset = registry.load("datasets", dataset)
    card = read_card(chosen.name)
    prompt = load_template(template or card.template, system)
    scorer = _scorer(scorer, prompt, card)
    if split == "all" and source is not None and not Path(source).is_dir():
        raise UsageError("--split all reads a folder with a file per split; give --split a name.")
    outs = _outs(Path(out), card, split)
    for path in outs.values():
        refuse_existing(path, overwrite=overwrite)
    found = {name: find(card, name, path=source, hub=hub, sample=sample) for name in outs}
    reports = tuple(
        _write(
            _Job(chosen, card, name, found[name], prompt, scorer, take, progress), path, overwrite
        )
        for name, path in outs.items()
    )
    return PrepReport(chosen.name, card.data_source, prompt.name, scorer, reports)


def preview(
    dataset: str,
    n: int,
    *,
    split: str = "train",
    source: Path | None = None,
    hub: Hub = "huggingface",
    sample: bool = False,
    template: str | None = None,
    system: str | None = None,
) -> list[Row]:
    """The first `n` rows that `prep` would write; see there for the arguments and errors."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "preview.parquet"
        prep(
            dataset,
            out,
            split=split,
            source=source,
            hub=hub,
            sample=sample,
            template=template,
            system=system,
            limit=n,
        )
        return list(read_rows(out))


@dataclass(frozen=True)
class _Take:
    """Which rows are taken and in which order: all, as they come, where both are None."""

    limit: int | None
    shuffle_seed: int | None

    def order(self, raws: Iterable[Raw]) -> Iterable[tuple[int, Raw]]:
        numbered = enumerate(raws)
        if self.shuffle_seed is None:
            return numbered
        shuffled = list(numbered)
        random.Random(self.shuffle_seed).shuffle(shuffled)  # noqa: S311 - an order, not a secret
        return shuffled


@dataclass(frozen=True)
class _Job:
    """One split on its way from raw rows to verl rows."""

    dataset: Dataset
    card: Card
    split: str
    source: Source
    template: Template
    scorer: str
    take: _Take
    progress: Callable[[int], object]

    def to_row(self, raw: Raw, index: int) -> Row | Dropped:
        try:
            problem = self.dataset.to_problem(raw)
        except TypeError as error:  # a null or a number where the dataset has text
            return Dropped("unexpected type", str(error))
        if isinstance(problem, Dropped):
            return problem
        if fault := _text_fault(problem):
            return Dropped(fault)
        row = self.build(problem, index)
        findings = check_row(row, index)
        return Dropped(findings[0].rule, findings[0].message) if findings else row

    def build(self, problem: Problem, index: int) -> Row:
        return build_row(
            data_source=self.card.data_source,
            prompt=self.template.messages(problem.question),
            ability=self.card.ability,
            ground_truth=problem.ground_truth,
            index=index,
            split=self.split,
            source_id=problem.source_id,
            question=problem.question,
            answer=problem.answer,
            scorer=self.scorer,
        )

    def metadata(self) -> dict[str, Any]:
        """What the parquet's own metadata says of how it was made."""
        return {
            "rewardkit": __version__,
            "dataset": self.card.name,
            "split": self.split,
            "origin": self.source.origin,
            "revision": self.source.revision,
            "template": self.template.text,
            "system": self.template.system,
            "scorer": self.scorer,
            "limit": self.take.limit,
            "shuffle_seed": self.take.shuffle_seed,
        }


def _write(job: _Job, out: Path, overwrite: bool) -> SplitReport:
    report = SplitReport(job.split, out, job.source.origin, job.source.files)
    rejects = dropped_path(out)
    with atomic(rejects, overwrite=overwrite) as temporary, temporary.open("w") as lines:
        rows = islice(_rows(job, report, lines), job.take.limit)
        report.written = write_rows(rows, out, job.metadata(), overwrite=overwrite)
    if not report.dropped:
        rejects.unlink()
    return report


def _rows(job: _Job, report: SplitReport, lines: TextIO) -> Iterator[Row]:
    for index, raw in job.take.order(read(job.source, job.card.columns)):
        report.read += 1
        row = job.to_row(raw, index)
        if isinstance(row, Dropped):
            report.dropped[row.reason] += 1
            lines.write(dropped_line(index, [f"{row.reason}: {row.detail}"], raw))
        else:
            yield row
        job.progress(1)
    if sum(report.dropped.values()) == report.read:
        raise DataError(_nothing_left(report))


def _nothing_left(report: SplitReport) -> str:
    reasons = ", ".join(f"{reason} ({n})" for reason, n in report.dropped.most_common(3))
    files = ", ".join(str(file) for file in report.files)
    return f"{files}: " + (f"every row was dropped: {reasons}." if reasons else "no rows.")


def _outs(out: Path, card: Card, split: str) -> dict[str, Path]:
    if split == "all":
        return {name: out / f"{name}.parquet" for name in card.splits}
    if split not in card.splits:
        raise UnknownNameError(
            f"{card.name} has no split {split!r}. It has {', '.join(card.splits)}; or use 'all'."
        )
    return {split: out}


def _scorer(asked: str | None, template: Template, card: Card) -> str:
    name = asked or template.scorer or (card.scorer if template.name == "none" else None)
    if name is None:
        raise UsageError(
            f"{template.name}: does not say what form the answer takes ('####', '\\boxed' or "
            "'Answer:'); add --scorer NAME."
        )
    registry.target("scorers", name)
    return name


def _text_fault(problem: Problem) -> str:
    """What keeps a problem out of a parquet of strings, "" if nothing does."""
    texts = (problem.question, problem.ground_truth, problem.answer, problem.source_id)
    if not all(isinstance(text, str) for text in texts):
        return "unexpected type"
    if not problem.question.strip():
        return "the question is empty"
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return "text is not valid Unicode"
    return ""
