"""`rewardkit prep`: source -> raw rows -> problems -> verl rows -> checks -> parquet and a report."""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, product, tee
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Literal, TextIO, TypeAlias

from rewardkit import registry
from rewardkit.checks.duplicates import question_key, same_gold
from rewardkit.checks.row_checks import PROGRAM_ROWS, check_row, runs_programs
from rewardkit.checks.row_stats import RowStats
from rewardkit.dropped_rows import (
    atomic_with_dropped,
    dropped_line,
    dropped_path,
    require_dropped_path,
)
from rewardkit.errors import DataError, UnknownNameError, UsageError, call_catching
from rewardkit.frames import takes_rows
from rewardkit.output import require_absent, require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.preprocess.base import Dataset, Dropped, Problem, unmet
from rewardkit.preprocess.card import Card
from rewardkit.preprocess.card_dataset import dataset_of_card, has_system_message
from rewardkit.preprocess.column_map import Condition, parse_condition, top_level, value_at_path
from rewardkit.preprocess.load import card_of, load_dataset, read_set_name
from rewardkit.preprocess.source import Hub, RawRows, Source, find_source
from rewardkit.preprocess.template import Template, Turns, load_template, load_turns
from rewardkit.row import BATCH_ROWS, Row, batched, build_row, image_contents, read_rows, write_rows
from rewardkit.row_files import rows_at
from rewardkit.versions import VERSION

Language: TypeAlias = Literal["en", "zh", "all"]

#: Maximum number of questions kept to count duplicates, about 60 MB.
MAX_QUESTIONS = 200_000

#: Maximum number of dropped rows of each reason in a report; all are counted.
MAX_EXAMPLES = 5

#: Fields of a problem that a row has in `extra_info`, and options that the metadata have.
_COPIED = ("source_id", "question", "answer", "subject", "level", "kind", "options")
_SETTINGS = tuple("scorer language dedup repeat limit shuffle_seed options_seed keep".split())

#: Tells the languages apart: in DAPO-Math-17k formulae outweigh the words of many Chinese questions, and
#: no English question has a Han character.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


@dataclass
class SplitReport:
    """What `prep` did with one split.

    Attributes:
        origin: where the rows are from: `sample`, `path`, `cache`, or the hub's name.
        read, distinct: number of raw rows, and of those that are not a copy of an earlier one.
        dropped: number of distinct rows dropped, by reason; `<out>.dropped.jsonl` has them.
        examples: the first dropped rows of each reason: reason, index and detail.
        duplicates: number of rows written that repeat the question of an earlier row, among the
            first `MAX_QUESTIONS` questions; `conflicting` of those have another gold.
        system_messages: number of distinct raw rows whose system message is left out.
        unread_text: number of raw rows with text in a column that is not read and that no note about
            the first rows names.
        stats: statistics of the rows written, each counted once.
    """

    split: str
    out: Path
    origin: str
    files: tuple[Path, ...]
    read: int = 0
    distinct: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, int, str]] = field(default_factory=list)
    duplicates: int = 0
    conflicting: int = 0
    written: int = 0
    system_messages: int = 0
    unread_text: Counter[str] = field(default_factory=Counter)
    stats: RowStats = field(default_factory=RowStats)

    def drop(self, dropped: Dropped, index: int) -> None:
        """Count a dropped row, and keep it as an example if it is one of the first of its reason."""
        self.dropped[dropped.reason] += 1
        if self.dropped[dropped.reason] <= MAX_EXAMPLES:
            self.examples.append((dropped.reason, index, dropped.detail))

    def steps(self) -> Iterator[tuple[str, int]]:
        """Yield the number of rows left after each step, from raw rows to rows written."""
        yield "raw rows", self.read
        rows = self.distinct
        if rows < self.read:
            yield "copies removed", rows
        for reason, count in self.dropped.items():
            rows -= count
            yield f"dropped: {reason}", rows
        if self.written != rows:
            yield "written", self.written


@dataclass(frozen=True)
class PrepReport:
    """What `prep` did."""

    dataset: str
    data_source: str
    template: str
    scorer: str
    splits: tuple[SplitReport, ...]


@dataclass(frozen=True, kw_only=True)
class SplitJob:
    """One split on its way from raw rows to verl rows; `prep` describes the options.

    It is pickled to worker processes.
    """

    dataset: Dataset
    card: Card
    split: str
    source: Source
    template: Template
    is_default_template: bool
    scorer: str
    turns: Turns | None
    language: Language
    dedup: bool
    repeat: int
    limit: int | None
    shuffle_seed: int | None
    options_seed: int | None
    keep: tuple[str, ...]
    where: tuple[Condition, ...]
    jobs: int

    def raw_rows(self) -> RawRows:
        """Return the raw rows of the split, without copies."""
        paths = (*self.keep, *(condition.column for condition in self.where))
        others = tuple(dict.fromkeys(map(top_level, paths)))
        layouts = [tuple(dict.fromkeys(layout + others)) for layout in self.card.columns]
        return RawRows(self.source.files, layouts, self.dataset.repeats, self.dataset.noted_columns)

    def problem(self, raw: Row) -> Problem | Dropped:
        """Return the problem in a raw row, or the reason to drop it."""
        if raw and all(value is None for value in raw.values()):
            return Dropped("empty row, or a row that does not fit the header")
        if dropped := unmet(self.where, raw):
            return dropped
        problem = call_catching(self.dataset.to_problem, raw)
        if isinstance(problem, TypeError):  # a null or a number where the dataset has text
            return Dropped("unexpected type", str(problem))
        kind = type(problem).__name__
        if isinstance(problem, Exception):
            return Dropped("unreadable row", f"{kind}: {problem}")
        if isinstance(problem, Dropped):
            return problem
        if not isinstance(problem, Problem):
            raise UsageError(
                f"{self.dataset.name}: to_problem returned {kind}, not a Problem or Dropped."
            )
        if fault := _text_fault(problem):
            return Dropped(fault)
        language = "zh" if _HAN.search(problem.question) else "en"
        fits = self.language in ("all", language)
        return problem if fits else Dropped(f"language is {language}")

    def checked_rows(self, batch: Sequence[tuple[int, Row, Dropped | None]]) -> list[Row | Dropped]:
        """Return the verl rows of a batch, in this process or another, or the reasons to drop them.

        The batch has the index of each raw row, the row, and the reason to drop it if it is known.
        """
        if not self.runs_programs:
            return [dropped or self._checked_row(raw, index) for index, raw, dropped in batch]
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(
                pool.map(lambda item: item[2] or self._checked_row(item[1], item[0]), batch)
            )

    @property
    def runs_programs(self) -> bool:
        """Whether the check of a row runs programs: the jobs are threads, which wait for them."""
        return runs_programs(self.card.reward_key(self.split), self.scorer)

    def _checked_row(self, raw: Row, index: int) -> Row | Dropped:
        problem = self.problem(raw)
        if isinstance(problem, Dropped):
            return problem
        prompt = self.template.messages(problem.question)
        if problem.prompt and self.is_default_template:
            prompt[-1] = {"role": "user", "content": problem.prompt}
        columns = {path: value_at_path(raw, path) for path in self.keep} | {**problem.columns}
        row = build_row(
            data_source=self.card.reward_key(self.split),
            prompt=prompt,
            ability=self.card.ability,
            ground_truth=problem.ground_truth,
            images=problem.images,
            index=index,
            split=self.split,
            scorer=self.scorer,
            columns=json.dumps(columns, ensure_ascii=False, default=str) if columns else "",
            **{name: getattr(problem, name) for name in _COPIED},
        )
        row = self.turns.add_to(row) if self.turns else row
        findings = check_row(row, index)
        return Dropped(findings[0].rule, findings[0].message) if findings else row

    def metadata(self) -> dict[str, Any]:
        """Return how the file was made, for the metadata of the parquet."""
        return {
            "rewardkit": VERSION,
            "dataset": self.card.name,
            "split": self.split,
            "origin": self.source.origin,
            "revision": self.source.revision,
            "template": self.template.text,
            "system": self.template.system,
            **{name: getattr(self, name) for name in _SETTINGS},
            "where": list(map(str, self.where)),
            "unread_options": list(self.dataset.unread_options),
            **({self.turns.option: self.turns.name} if self.turns else {}),
        }


@takes_rows
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
        tools: the tool of every row (`TURNS`), with the instruction of verl's script for it unless
            `template` or `system` replaces a part.
        interaction: the interaction of every row, likewise.
        language: keep only questions in `en` or `zh`.
        dedup: drop rows that repeat an earlier row's question, and all rows of a question with
            several golds; None for the dataset's default. Needs memory for every question.
        repeat: write every row this many times (avg@k on a small test set).
        limit: keep at most this many rows of each split, after shuffling.
        shuffle: put the rows in a random order that depends only on `seed`.
        seed: random seed of the shuffle.
        options_seed: random seed of the order of a question's options, where the card shuffles them.
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
    if not isinstance(dataset, Dataset):
        name = read_set_name(dataset)
        if name.split and split not in (None, name.split):
            raise UsageError(f"{dataset} is the split {name.split!r}: leave out --split {split}.")
        dataset, split = load_dataset(name.dataset), name.split or split
    card = card_of(dataset)
    if options_seed is not None and not card.shuffle_options:
        raise UsageError(f"{card.name} does not shuffle options: leave out --options-seed.")
    if options_seed and card.maps:
        dataset = dataset_of_card(card, options_seed)
    turns = load_turns(tools, interaction)
    prompt = _prompt_template(template, system, card, turns)
    new_job = partial(
        SplitJob,
        dataset=dataset,
        card=card,
        template=prompt,
        is_default_template=prompt.name == card.template and not template,
        turns=turns,
        scorer=_scorer_name(scorer, prompt, card),
        language=language,
        dedup=dataset.dedup if dedup is None else dedup,
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
    split_jobs = [
        new_job(split=name, source=find_source(card, name, path=source, hub=hub, sample=sample))
        for name in outputs
    ]
    files = [file for each in split_jobs for file in each.source.files]
    for path, file in product(outputs.values(), files):
        require_not_input(path, file)
        require_not_input(dropped_path(path), file)
    reports = []
    with ExitStack() as stack:  # either all files get their names or none does
        for each, path in zip(split_jobs, outputs.values(), strict=True):
            temporary, rejects = stack.enter_context(atomic_with_dropped(path, overwrite=overwrite))
            report = SplitReport(each.split, path, each.source.origin, each.source.files)
            report.stats.unread_options = dataset.unread_options
            _write(each, temporary, rejects, report, progress)
            reports.append(report)
    for report in reports:
        if not report.dropped:
            dropped_path(report.out).unlink()
    keys = ", ".join(dict.fromkeys(map(card.reward_key, outputs)))
    return PrepReport(dataset.name, keys, prompt.name, split_jobs[0].scorer, tuple(reports))


def preview(dataset: str | Dataset, n: int, **options: Any) -> list[Row]:
    """Return the first `n` rows that `prep` would write; options and errors are those of `prep`."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "preview.parquet"
        prep(dataset, out, limit=n, **options)
        return list(read_rows(out))


def _write(
    job: SplitJob, out: Path, rejects: Path, report: SplitReport, progress: Callable[[int], object]
) -> None:
    """Write the rows of a split to `out`, and the dropped rows of its source to `rejects`, in order."""
    with TemporaryFile("w+", dir=out.parent) as reasons, rejects.open("w") as lines:
        most = None if job.limit is None else min(job.limit, sys.maxsize)
        rows = islice(_rows(job, report, reasons, progress), most)
        repeated = (row for row in rows for _ in range(job.repeat))
        report.written = write_rows(repeated, out, job.metadata(), overwrite=True)
        reasons.seek(0)
        entries: Iterable[tuple[int, str]] = map(json.loads, reasons)
        if job.shuffle_seed is not None:
            entries = sorted(entries)
        entries, dropped = tee(entries)
        full = rows_at(job.source.files, (index for index, _ in dropped))
        for (index, reason), (_, raw) in zip(entries, full, strict=True):
            lines.write(dropped_line(index, [reason], raw))


def _rows(
    job: SplitJob, report: SplitReport, reasons: TextIO, progress: Callable[[int], object]
) -> Iterator[Row]:
    """Yield the rows to write; count all rows in the report, and note why others are dropped."""
    raws = job.raw_rows()
    report.unread_text = raws.unread_text
    repeated: Mapping[int, Dropped] = {}
    if job.dedup:  # a separate pass over the source
        problems = ((index, job.problem(raw)) for index, raw in raws)
        repeated = find_repeated(
            (i, problem) for i, problem in problems if isinstance(problem, Problem)
        )
    ordered: Iterable[tuple[int, Row]] = raws
    if job.shuffle_seed is not None:
        ordered = list(raws)
        random.Random(job.shuffle_seed).shuffle(ordered)  # noqa: S311 - an order, not a secret
    candidates = ((index, raw, repeated.get(index)) for index, raw in ordered)
    golds: dict[bytes, str] = {}
    is_slow = job.runs_programs
    jobs = job.jobs if importable_in_child(job.dataset.to_problem) and not is_slow else 1
    most = PROGRAM_ROWS if is_slow else BATCH_ROWS
    batches = batched(candidates, min(job.limit or most, most))
    built = in_order(job.checked_rows, batches, jobs)
    pairs = (pair for batch, rows in built for pair in zip(batch, rows, strict=True))
    for (index, raw, _), row in pairs:
        report.distinct += 1
        report.system_messages += has_system_message(raw, job.card)
        read = index + 1 if job.shuffle_seed is None else raws.read
        progress(read - report.read)
        report.read = read
        if isinstance(row, Dropped):
            report.drop(row, index)
            reason = ": ".join(filter(None, (row.reason, row.detail)))
            reasons.write(json.dumps((index, reason)) + "\n")
            continue
        report.stats.add(row)
        key = question_key(row["extra_info"]["question"], image_contents(row))
        gold = row["reward_model"]["ground_truth"]
        if key in golds:
            report.duplicates += 1
            report.conflicting += not same_gold(golds[key], gold)
        elif len(golds) < MAX_QUESTIONS:
            golds[key] = gold
        yield row
    report.read = raws.read
    if report.dropped.total() == report.distinct:
        details = {reason: detail for reason, _, detail in reversed(report.examples)}
        drops = "; ".join(
            f"{reason} ({n:,}; the first: {details[reason] or 'no details'})"
            for reason, n in report.dropped.most_common(3)
        )
        fault = f"every row was dropped: {drops}." if drops else "no rows."
        raise DataError(f"{', '.join(map(str, report.files))}: {fault}")


def _text_fault(problem: Problem) -> str:
    if not isinstance(problem.options, (tuple, list)):
        return "options are not a list"
    names = "question ground_truth answer source_id subject level".split()
    strings = [*(getattr(problem, name) for name in names), *problem.options]
    if not all(isinstance(text, str) for text in strings):
        return "unexpected type"
    if not all(isinstance(image, bytes) for image in problem.images or ()):
        return "an image is not bytes"
    if not problem.question.strip():
        return "the question is empty"
    try:
        "".join(strings).encode()
    except UnicodeEncodeError:
        return "text is not valid Unicode"
    return ""


def find_repeated(problems: Iterable[tuple[int, Problem]]) -> dict[int, Dropped]:
    """Return the problems to drop, by index, so that each question remains once and with one gold.

    If the golds of a question differ, all its problems are dropped, because none is known to be
    right.
    """
    groups: dict[bytes, list[tuple[int, str]]] = {}
    for index, problem in problems:
        key = question_key(problem.question, problem.images or ())
        groups.setdefault(key, []).append((index, problem.ground_truth))
    dropped: dict[int, Dropped] = {}
    for (first, first_gold), *others in groups.values():
        golds = dict.fromkeys(gold for _, gold in others if not same_gold(gold, first_gold))
        reason = Dropped("duplicate question", f"as row {first}")
        if golds:
            quoted = " and ".join(repr(gold[:60]) for gold in (first_gold, *golds))
            detail = f"row {first} has the same question; golds {quoted}"
            dropped[first] = reason = Dropped("conflicting golds", detail)
        dropped.update((index, reason) for index, _ in others)
    return dropped


def _output_paths(out: Path, card: Card, split: str | None, source: Path | None) -> dict[str, Path]:
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
