"""`rewardkit prep`: source -> raw rows -> verl rows -> checks -> parquet and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, tee
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, TextIO, TypeAlias

from rewardkit import registry
from rewardkit.errors import DataError, UnknownNameError, UsageError
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.preprocess.base import Dataset, Dropped, Problem
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.card_dataset import dataset_of_card, has_system_message
from rewardkit.preprocess.conditions import parse_condition
from rewardkit.preprocess.dropped_rows import (
    atomic_with_dropped,
    dropped_line,
    dropped_path,
    full_rows,
    require_dropped_path,
)
from rewardkit.preprocess.duplicates import question_key, same_gold
from rewardkit.preprocess.file_rows import RawRow
from rewardkit.preprocess.load import card_of, load_dataset
from rewardkit.preprocess.prep_report import MAX_QUESTIONS, PrepReport, SplitReport
from rewardkit.preprocess.problem_filter import (
    Language,
    ProblemFilter,
    RepeatedProblems,
    find_repeated,
)
from rewardkit.preprocess.raw_rows import RawRows
from rewardkit.preprocess.set_names import read_set_name
from rewardkit.preprocess.source import Hub, find_source
from rewardkit.preprocess.split_job import PrepOptions, SplitJob
from rewardkit.preprocess.template import Template, load_template
from rewardkit.preprocess.turns import Turns, load_turns
from rewardkit.row import Row, batched, read_rows, write_rows


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
    tools: str | None = None,
    interaction: str | None = None,
    language: Language = "all",
    dedup: bool | None = None,
    repeat: int = 1,
    limit: int | None = None,
    shuffle: bool = False,
    seed: int = 0,
    options_seed: int | None = None,
    keep: Sequence[str] = (),
    where: Sequence[str] = (),
    overwrite: bool = False,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> PrepReport:
    """Write a dataset as verl parquet.

    Args:
        dataset: a registered name, also with a split (`aime2024`), the path of a plug-in
            (`my_dataset.py`, or `my_dataset.py:NAME`), or a `Dataset`.
        out: the parquet to write; with `split="all"`, a folder that gets one file per split.
        split: a split of the dataset's card, or `all`; None for `train` or the only split.
        source: a file or folder with the rows; None for the local cache, then the hub.
        hub: `huggingface` or `modelscope`.
        sample: use the packaged sample.
        template: a built-in prompt template or a file; None for the dataset's own.
        system: a system message.
        scorer: the scorer that rows name; None for the one that fits the template.
        tools: the tool of every row (`TOOLS`), with the instruction of verl's script for it unless
            `template` or `system` replaces a part.
        interaction: the interaction of every row (`INTERACTIONS`), likewise.
        language: keep only questions in `en` or `zh`.
        dedup: drop rows that repeat an earlier row's question, and all rows of a question with
            several golds; None for the dataset's default. Needs memory for every question.
        repeat: write every row this many times (avg@k on a small test set).
        limit: keep at most this many rows of each split, after shuffling.
        shuffle: put the rows in a random order that depends only on `seed`.
        seed: random seed of the shuffle.
        options_seed: random seed of the order of a question's options, for a dataset whose card
            shuffles them; None for 0.
        keep: columns of the raw rows (dotted paths) to write into `extra_info.columns`.
        where: conditions that raw rows must meet, such as `difficulty >= 5`; the others are dropped.
        overwrite: replace existing files.
        jobs: number of processes for large datasets. With more than one, `multiprocessing` requires
            an importable main module. A user's plug-in runs in this process.
        progress: called with the number of raw rows processed since the last call.

    Raises:
        UnknownNameError: unknown dataset, split, template, scorer, tool or interaction.
        UsageError: `out` does not end in .parquet, or options exclude each other.
        SourceError: the rows were not found.
        DataError: the rows cannot be read.
        OutputError: the output exists or cannot be written.
    """
    dataset, split = _dataset_and_split(dataset, split)
    card = card_of(dataset)
    if options_seed is not None and not card.shuffle_options:
        raise UsageError(f"{card.name} does not shuffle options: leave out --options-seed.")
    if options_seed and card.maps:
        dataset = dataset_of_card(card, options_seed)
    turns = load_turns(tools, interaction)
    prompt = _prompt_template(template, system, card, turns)
    options = PrepOptions(
        template=prompt,
        is_default_template=prompt.name == card.template and not template,
        turns=turns,
        scorer=_scorer_name(scorer, prompt, card),
        filter=ProblemFilter(language, dataset.dedup if dedup is None else dedup),
        repeat=repeat,
        limit=limit,
        shuffle_seed=seed if shuffle else None,
        options_seed=(options_seed or 0) if card.shuffle_options else None,
        keep=tuple(keep),
        where=tuple(map(parse_condition, where)),
        jobs=jobs,
    )
    outputs = _output_paths(Path(out), card, split, source)
    for path in outputs.values():
        require_absent(path, overwrite=overwrite)
        require_dropped_path(path, overwrite=overwrite)
    sources = {
        name: find_source(card, name, path=source, hub=hub, sample=sample) for name in outputs
    }
    for path in outputs.values():
        for file in (file for split_source in sources.values() for file in split_source.files):
            require_not_input(path, file)
            require_not_input(dropped_path(path), file)
    jobs_by_path = {
        path: SplitJob(dataset, card, name, sources[name], options)
        for name, path in outputs.items()
    }
    reports = _write_splits(jobs_by_path, progress, overwrite=overwrite)
    keys = ", ".join(dict.fromkeys(card.reward_key(name) for name in outputs))
    return PrepReport(dataset.name, keys, prompt.name, options.scorer, reports)


def _dataset_and_split(dataset: str | Dataset, split: str | None) -> tuple[Dataset, str | None]:
    """Load a dataset, whose name may have the split in it."""
    if isinstance(dataset, Dataset):
        return dataset, split
    name = read_set_name(dataset)
    if name.split and split not in (None, name.split):
        raise UsageError(f"{dataset} is the split {name.split!r}: leave out --split {split}.")
    return load_dataset(name.dataset), name.split or split


def preview(dataset: str | Dataset, n: int, **options: Any) -> list[Row]:
    """Return the first `n` rows that `prep` would write; options and errors are those of `prep`."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "preview.parquet"
        prep(dataset, out, limit=n, **options)
        return list(read_rows(out))


#: A raw row's place, the row, and the reason to drop it if one is known already.
_Candidate: TypeAlias = "tuple[int, RawRow, Dropped | None]"


def _write_splits(
    jobs: Mapping[Path, SplitJob], progress: Callable[[int], object], *, overwrite: bool
) -> tuple[SplitReport, ...]:
    """Write the parquet of each job; either all files get their names or none does."""
    reports = []
    with ExitStack() as stack:
        for path, job in jobs.items():
            temporary, rejects = stack.enter_context(atomic_with_dropped(path, overwrite=overwrite))
            report = SplitReport(job.split, path, job.source.origin, job.source.files)
            report.stats.unread_options = job.dataset.unread_options
            _write(job, temporary, rejects, report, progress)
            reports.append(report)
    for report in reports:
        if not report.dropped:
            dropped_path(report.out).unlink()
    return tuple(reports)


def _write(
    job: SplitJob, out: Path, rejects: Path, report: SplitReport, progress: Callable[[int], object]
) -> None:
    """Write the rows of a split to `out`, and the dropped rows of its source to `rejects`."""
    with TemporaryFile("w+", dir=out.parent) as reasons, rejects.open("w") as lines:
        most = None if job.options.limit is None else min(job.options.limit, sys.maxsize)
        rows = islice(_rows(job, report, reasons, progress), most)
        repeated = (row for row in rows for _ in range(job.options.repeat))
        report.written = write_rows(repeated, out, job.metadata(), overwrite=True)
        lines.writelines(_dropped_lines(job, reasons))


def _dropped_lines(job: SplitJob, reasons: TextIO) -> Iterator[str]:
    """Return the lines of `OUT.dropped.jsonl`, in the order of the source."""
    reasons.seek(0)
    entries: Iterable[tuple[int, str]] = map(json.loads, reasons)
    if job.options.shuffle_seed is not None:
        entries = sorted(entries)
    entries, places = tee(entries)
    rows = full_rows(job.source.files, (index for index, _ in places))
    for (index, reason), row in zip(entries, rows, strict=True):
        yield dropped_line(index, [reason], row)


def _rows(
    job: SplitJob, report: SplitReport, reasons: TextIO, progress: Callable[[int], object]
) -> Iterator[Row]:
    """Yield the rows to write; count all rows in the report, and note why others are dropped."""
    raws = job.raw_rows()
    report.unread_text = raws.unread_text
    repeated = _repeated_problems(job, raws)
    questions = _QuestionGolds()
    candidates = ((index, raw, repeated.get(index)) for index, raw in job.options.order(raws))
    jobs = job.options.jobs if importable_in_child(job.dataset.to_problem) else 1
    batches = batched(candidates, job.options.batch_rows())
    for index, raw, row in (
        (index, raw, row)
        for batch, rows in in_order(partial(_build_batch, job), batches, jobs)
        for (index, raw, _), row in zip(batch, rows, strict=True)
    ):
        report.distinct += 1
        report.system_messages += has_system_message(raw, job.card)
        read = index + 1 if job.options.shuffle_seed is None else raws.read
        progress(read - report.read)
        report.read = read
        if isinstance(row, Dropped):
            report.drop(row, index)
            reason = ": ".join(filter(None, (row.reason, row.detail)))
            reasons.write(json.dumps((index, reason)) + "\n")
        else:
            report.stats.add(row)
            questions.count_repeats(row, report)
            yield row
    report.read = raws.read
    if sum(report.dropped.values()) == report.distinct:
        raise DataError(_no_rows_message(report))


@dataclass(frozen=True)
class _QuestionGolds:
    """The questions of the rows so far, each with its gold."""

    golds: dict[bytes, str] = field(default_factory=dict)

    def count_repeats(self, row: Row, report: SplitReport) -> None:
        """Count a row that repeats an earlier row's question."""
        images = (image["bytes"] for image in row.get("images") or ())
        key = question_key(row["extra_info"]["question"], images)
        gold = row["reward_model"]["ground_truth"]
        first = self.golds.get(key)
        if first is not None:
            report.duplicates += 1
            report.conflicting += not same_gold(first, gold)
        elif len(self.golds) < MAX_QUESTIONS:
            self.golds[key] = gold


def _build_batch(job: SplitJob, batch: list[_Candidate]) -> list[Row | Dropped]:
    """Build the rows of a batch, in this process or another."""
    return [dropped or job.checked_row(raw, index) for index, raw, dropped in batch]


def _repeated_problems(job: SplitJob, raws: RawRows) -> RepeatedProblems:
    """Return the rows that `dedup` drops, in a separate pass over the source."""
    if not job.options.filter.dedup:
        return {}
    problems = ((index, job.problem(raw)) for index, raw in raws)
    return find_repeated(
        (index, problem) for index, problem in problems if isinstance(problem, Problem)
    )


def _no_rows_message(report: SplitReport) -> str:
    details = {reason: detail for reason, _, detail in reversed(report.examples)}
    reasons = "; ".join(
        f"{reason} ({n:,}; the first: {details[reason] or 'no details'})"
        for reason, n in report.dropped.most_common(3)
    )
    files = ", ".join(str(file) for file in report.files)
    return f"{files}: " + (f"every row was dropped: {reasons}." if reasons else "no rows.")


def _output_paths(out: Path, card: Card, split: str | None, source: Path | None) -> dict[str, Path]:
    """Return the parquet of each split to write."""
    if split == "all":
        if source is not None and not Path(source).is_dir():
            raise UsageError(
                "--split all reads a folder with one file per split. Give --source a folder, or "
                "--split a name."
            )
        return {name: out / f"{name}.parquet" for name in card.splits}
    split = split or card.default_split()
    names = ", ".join(card.splits)
    if split is None:
        raise UsageError(f"{card.name} has several splits. Choose one: --split {names}, or all.")
    if split not in card.splits:
        near = registry.did_you_mean(split, card.splits)
        raise UnknownNameError(
            f"{card.name} has no split {split!r}.{near} It has {names}; or use 'all'."
        )
    require_suffix("--out", out, ".parquet")
    return {split: out}


def _prompt_template(
    name: str | None, system: str | None, card: Card, turns: Turns | None
) -> Template:
    """Return the user's template, or else that of verl's script for the tool, or the card's."""
    own = turns.template if turns else None
    if own is None:
        return load_template(name or card.template, system)
    system = own.system if system is None else system
    return load_template(name, system) if name else replace(own, system=system)


def _scorer_name(choice: str | None, template: Template, card: Card) -> str:
    """Return the name of the scorer in the rows: the user's, the card's or the template's."""
    asks_for_no_form = template.name == "none" and template.scorer is None
    fits_card = asks_for_no_form or template.name == card.template or template.asks_for(card.scorer)
    name = choice or (card.scorer if fits_card else template.scorer)
    if name is None:
        raise UsageError(
            f"{template.name}: the template names no form of answer ('####', '\\boxed' or "
            "'Answer:'). Add --scorer NAME."
        )
    registry.target("scorers", name)
    return name
