"""`rewardkit check`: check every row of a verl parquet in bounded memory.

The search for duplicates keeps a digest of every prompt; the search for near-duplicates, which is
optional, keeps every question.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.arrow_types import plain_type
from rewardkit.errors import UsageError
from rewardkit.output import require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.preprocess.check_report import CheckReport, NearDuplicateCluster
from rewardkit.preprocess.contamination.near_duplicates import near_duplicates
from rewardkit.preprocess.contamination.overlap import EvalIndex, find_overlaps
from rewardkit.preprocess.dropped_rows import atomic_with_dropped, dropped_line, dropped_path
from rewardkit.preprocess.duplicates import same_gold
from rewardkit.preprocess.prompt_lengths import PromptLengths, TokenCounter, count_characters
from rewardkit.preprocess.row_checks import RULES, DataFinding, check_row, gold_rows, prompt_key
from rewardkit.preprocess.row_stats import unread_options_of
from rewardkit.preprocess.schema_check import schema_findings
from rewardkit.row import (
    AGENT_NAME,
    BATCH_ROWS,
    IMAGES,
    Row,
    open_parquet,
    python_rows,
    question_of,
)
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.isolated import learn_rule
from rewardkit.scorers.load import load_scorer

#: Maximum number of overlaps, of near misses and of near-duplicate clusters in a report; all are counted.
MAX_OVERLAPS = 200
MAX_CLUSTERS = 1000

#: Rules after which a row has no prompt or gold to check further.
UNREADABLE = frozenset({"empty_prompt", "bad_prompt", "bad_row", "empty_gold"})

#: The columns that the checks read; other columns are only copied to the output.
_CHECKED_COLUMNS = ("data_source", "prompt", "reward_model", "extra_info", "agent_name", "images")

_WriteBatch: TypeAlias = Callable[[pa.RecordBatch, list[list[DataFinding]]], int]


@dataclass(frozen=True, kw_only=True)
class OptionalChecks:
    """The checks that compare a row with more than itself, all of them optional.

    Attributes:
        against: evaluation items that no row may contain.
        missing_sets: evaluation sets without items, because they could not be read, and the reasons.
        threshold: share of an item's n-grams from which on a row contains the item, 0 to 1.
        near_duplicates: also look for near-duplicates; needs memory for every question.
        count_tokens: counts the tokens of a prompt; None counts characters.
        max_tokens: the run's `data.max_prompt_length`; longer prompts are findings.
        earlier_prompts: the files of the prompts that were checked before, by the prompt's digest;
            those of this file are added. None for a file that is checked alone.

    Raises:
        UsageError: `max_tokens` is set without `count_tokens`.
    """

    against: EvalIndex | None = None
    missing_sets: Mapping[str, str] = field(default_factory=dict)
    threshold: float = 0.5
    near_duplicates: bool = False
    count_tokens: TokenCounter | None = None
    max_tokens: int | None = None
    earlier_prompts: dict[bytes, str] | None = None

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.count_tokens is None:
            raise UsageError(
                "--max-prompt-length is a number of tokens. Name the model's tokenizer with "
                "--tokenizer."
            )


def check(
    path: Path,
    *,
    scorer: Scorer | None = None,
    scorer_name: str = "the given scorer",
    options: Mapping[str, Any] | None = None,
    respond: Callable[[str], str] | None = None,
    right_score: float | None = None,
    allow_duplicates: bool = False,
    extras: OptionalChecks = OptionalChecks(),
    drop_bad: Path | None = None,
    drop_overlap: Path | None = None,
    overwrite: bool = False,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> CheckReport:
    """Check a verl parquet: schema, contents, duplicates and the gold self-check.

    Args:
        path: any parquet that verl can read, also of other tools.
        scorer: scores all rows in place of each row's own scorer.
        scorer_name: name of that scorer in the report.
        options: options of each row's own scorer.
        respond: writes an answer in the form that `scorer` asks for, if it runs in another process.
        right_score: the lowest right score of a scorer in another process; None to learn it from the
            first golds (`scorers.reward_result`).
        allow_duplicates: do not report rows that repeat an earlier prompt.
        extras: checks for contamination, near-duplicates and lengths in tokens.
        drop_bad: write the rows without findings to this parquet, and the others with the reasons
            to `<drop_bad>.dropped.jsonl`.
        drop_overlap: the same, but drop only rows that contain an evaluation item.
        overwrite: replace existing files.
        jobs: number of processes for the self-check of large files. With more than one,
            `multiprocessing` requires an importable main module.
        progress: called with the number of rows of each finished batch.

    Raises:
        UsageError: the arguments exclude each other, an output does not end in .parquet, or no
            scorer of the rows has this option or takes its value.
        DataError: the file cannot be read, or a scorer in another process never answers.
        OutputError: `drop_bad` or `drop_overlap` cannot be written.
    """
    if drop_bad and drop_overlap:
        raise UsageError("--drop-bad drops overlaps, too: leave --drop-overlap out.")
    if options and scorer is None:
        load_scorer("auto", **options)
    require_suffix("--drop-bad", drop_bad, ".parquet")
    require_suffix("--drop-overlap", drop_overlap, ".parquet")
    out = drop_bad or drop_overlap
    rules = frozenset(RULES if drop_bad else {"overlap"})
    lengths = PromptLengths("tokens" if extras.count_tokens else "characters", extras.max_tokens)
    report = CheckReport(Path(path), missing_sets=extras.missing_sets, lengths=lengths)
    require_not_input(out, report.path)
    with open_parquet(report.path) as file:
        report.add_all(schema_findings(file.schema_arrow))
        names = file.schema_arrow.names
        aspects = _aspects(
            scorer_name if scorer else "", extras, names, duplicates=not allow_duplicates
        )
        report.stats.unread_options = unread_options_of(file.schema_arrow.metadata)
        if report.counts["missing"]:
            report.rows, report.checked = file.metadata.num_rows, ("schema",)
            report.not_checked = tuple(aspect for aspect, _, _ in aspects)
        else:
            report.checked, report.not_checked = _describe_aspects(aspects)
            if scorer is not None:
                scorer, rule = learn_rule(scorer, gold_rows(report.path), right_score)
                report.add_rule(rule)
            checker = _RowChecker(scorer, options or {}, respond, allow_duplicates, extras)
            with (
                suppress(_NoRowsLeftError),
                _open_output(out, file.schema_arrow, rules, overwrite=overwrite) as write_batch,
            ):
                _check_rows(file, report, checker, write_batch, jobs, progress)
                if out and not report.kept:
                    raise _NoRowsLeftError
            if out and report.kept == report.rows:
                dropped_path(out).unlink(missing_ok=True)
            _add_clusters(report, checker.questions)
            if not report.rows:
                report.add(DataFinding(None, "empty_file", "no rows"))
    return report


def _describe_aspects(
    aspects: Iterable[tuple[str, str, bool]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is checked and what is not, each with its note."""
    texts: tuple[list[str], list[str]] = (["schema"], [])
    for aspect, note, is_checked in aspects:
        texts[not is_checked].append(f"{aspect} ({note})" if note else aspect)
    return tuple(texts[0]), tuple(texts[1])


def _aspects(
    scorer: str, extras: OptionalChecks, columns: Collection[str], *, duplicates: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield the aspects of rows: name, note (how it is checked or requested), whether checked."""
    yield "prompts", "", True
    yield "golds", "", True
    yield "gold self-check", scorer or "each row's own scorer", True
    yield "duplicates", "" if duplicates else "--allow-duplicates", duplicates
    sets = dict.fromkeys(item.source for item in extras.against.items) if extras.against else ()
    yield "contamination", ", ".join(sets) or "--against", bool(sets)
    yield "near-duplicates", "" if extras.near_duplicates else "--near", extras.near_duplicates
    if extras.count_tokens is None:
        yield "prompt lengths in tokens", "--tokenizer", False
        return
    limit = (
        "--max-prompt-length"
        if extras.max_tokens is None
        else f"at most {extras.max_tokens:,} tokens"
    )
    yield "prompt lengths", limit, extras.max_tokens is not None
    if IMAGES.name in columns:
        yield "tokens of pictures", "", False
    if AGENT_NAME.name in columns:
        yield "tokens of the tools' descriptions", "", False


class _FirstRow(NamedTuple):
    """The first row with a prompt: its place, its gold, and whether it has no findings."""

    place: int
    gold: str
    is_good: bool


@dataclass(frozen=True)
class _RowChecker:
    """The options of the row checks, and what was read of earlier rows.

    Attributes:
        prompts: the first row with each prompt, by the digest of the prompt.
        questions: place, question and gold of each row, for the search for near-duplicates.
    """

    scorer: Scorer | None
    options: Mapping[str, Any]
    respond: Callable[[str], str] | None
    allow_duplicates: bool
    extras: OptionalChecks
    prompts: dict[bytes, _FirstRow] = field(default_factory=dict)
    questions: list[tuple[int, str, str]] = field(default_factory=list)

    def add_comparisons(
        self, row: Row, findings: list[DataFinding], report: CheckReport
    ) -> list[DataFinding]:
        """Return a row's findings with those of comparing it to other rows and items."""
        if not any(finding.rule in UNREADABLE for finding in findings):
            if not self.allow_duplicates:
                findings += self._find_repeat(row, report.rows, is_good=not findings)
            findings += self._measure(row, report)
            findings += self._find_overlaps(row, report)
            self._count_shared_prompt(row, report)
        return findings

    def _find_repeat(self, row: Row, index: int, *, is_good: bool) -> list[DataFinding]:
        """Return a finding if an earlier row has the same prompt.

        A row without findings takes the place of an earlier one with some: it is not dropped for it.
        """
        gold, key = str(row["reward_model"]["ground_truth"]), prompt_key(row)
        first = self.prompts.get(key)
        if first is None or (is_good and not first.is_good):
            self.prompts[key] = _FirstRow(index, gold, is_good)
            return []
        if same_gold(gold, first.gold):
            message = f"same prompt and gold as row {first.place}"
            return [DataFinding(index, "duplicate", message)]
        message = f"same prompt as row {first.place}, but gold {gold[:60]!r} instead of {first.gold[:60]!r}"
        return [DataFinding(index, "conflicting_gold", message)]

    def _count_shared_prompt(self, row: Row, report: CheckReport) -> None:
        if self.extras.earlier_prompts is not None:
            path = str(report.path)
            file = self.extras.earlier_prompts.setdefault(prompt_key(row), path)
            if file != path:
                report.shared_prompts[file] += 1

    def can_use_processes(self) -> bool:
        """Return whether another process can import the scorer."""
        return self.scorer is None or importable_in_child(self.scorer)

    def _measure(self, row: Row, report: CheckReport) -> Iterator[DataFinding]:
        """Count a readable row in the statistics, and yield a finding if its prompt is too long."""
        report.stats.add(row, self.scorer)
        length = (self.extras.count_tokens or count_characters)(row["prompt"])
        report.lengths.counts[length] += 1
        limit = self.extras.max_tokens
        if limit is not None and length > limit:
            yield DataFinding(report.rows, "long_prompt", f"{length:,} tokens, more than {limit:,}")
        if self.extras.near_duplicates:
            gold = str(row["reward_model"]["ground_truth"])
            self.questions.append((report.rows, question_of(row), gold))

    def _find_overlaps(self, row: Row, report: CheckReport) -> Iterator[DataFinding]:
        if self.extras.against is None:
            return
        texts, index = [question_of(row)], self.extras.against
        for overlap in find_overlaps(texts, index, self.extras.threshold, near_misses=True):
            is_near = overlap.rule == "near_miss"
            report.pairs_by_set.setdefault(overlap.source, Counter())[overlap.rule] += 1
            examples = report.near_misses if is_near else report.overlaps
            if len(examples) < MAX_OVERLAPS:
                examples.append(replace(overlap, row=report.rows))
            if is_near:
                report.near_miss_count += 1
            else:
                yield DataFinding(report.rows, "overlap", overlap.summary)


def _check_rows(
    file: pq.ParquetFile,
    report: CheckReport,
    checker: _RowChecker,
    write_batch: _WriteBatch,
    jobs: int,
    progress: Callable[[int], object],
) -> None:
    columns = [name for name in file.schema_arrow.names if name in _CHECKED_COLUMNS]
    pending: deque[pa.RecordBatch] = deque()

    def batches() -> Iterator[tuple[int, list[Row]]]:
        start = 0
        for batch in file.iter_batches(BATCH_ROWS):
            pending.append(batch)
            yield start, batch.select(columns).to_pylist()
            start += batch.num_rows

    work = partial(_check_batch, checker.scorer, checker.options, checker.respond)
    jobs = jobs if checker.can_use_processes() else 1
    for (_, rows), findings in in_order(work, batches(), jobs):
        for place, row in enumerate(rows):
            findings[place] = checker.add_comparisons(row, findings[place], report)
            report.add_row(findings[place])
        report.kept += write_batch(pending.popleft(), findings)
        progress(len(rows))
    if checker.scorer is None:
        report.add_evaluated_sources()


def _check_batch(
    scorer: Scorer | None,
    options: Mapping[str, Any],
    respond: Callable[[str], str] | None,
    batch: tuple[int, list[Row]],
) -> list[list[DataFinding]]:
    """Return the findings of each row of a batch, in this process or another."""
    start, rows = batch
    return [check_row(row, start + i, scorer, options, respond) for i, row in enumerate(rows)]


def _add_clusters(report: CheckReport, questions: list[tuple[int, str, str]]) -> None:
    """Add the near-duplicates to the report, those with conflicting golds first."""
    groups = near_duplicates([question for _, question, _ in questions])
    clusters = []
    for group in groups:
        rows = tuple(questions[place] for place in group)
        is_conflicting = not all(same_gold(gold, rows[0][2]) for _, _, gold in rows)
        clusters.append(NearDuplicateCluster(rows, is_conflicting))
    clusters.sort(key=lambda cluster: not cluster.conflicting)
    report.clusters = clusters[:MAX_CLUSTERS]
    report.cluster_rows = sum(map(len, groups)), len(groups)


class _NoRowsLeftError(Exception):
    """No row is left to write: the output is not written, and an existing file stays."""


@contextmanager
def _open_output(
    out: Path | None, schema: pa.Schema, rules: frozenset[str], *, overwrite: bool
) -> Iterator[_WriteBatch]:
    """Provide a function that writes a checked batch and returns the number of rows in `out`.

    Rows that break one of the rules go to `OUT.dropped.jsonl`. Large strings and lists are written
    as plain ones.
    """
    if out is None:
        yield lambda *_: 0
        return
    plain = pa.schema([(item.name, plain_type(item.type)) for item in schema], schema.metadata)
    with (
        atomic_with_dropped(out, overwrite=overwrite) as (out_path, rejects),
        rejects.open("w") as lines,
        pq.ParquetWriter(out_path, plain, compression="zstd") as writer,
    ):

        def write_batch(batch: pa.RecordBatch, findings: list[list[DataFinding]]) -> int:
            reasons = [
                [finding for finding in row_findings if finding.rule in rules]
                for row_findings in findings
            ]
            is_bad = pa.array([bool(row_reasons) for row_reasons in reasons])
            good = batch.filter(pc.invert(is_bad))
            writer.write_batch(good.cast(plain))
            bad_rows = python_rows(batch.filter(is_bad))
            for row, row_reasons in zip(bad_rows, filter(None, reasons), strict=True):
                texts = [f"{finding.rule}: {finding.message}" for finding in row_reasons]
                lines.write(dropped_line(row_reasons[0].row or 0, texts, row))
            return int(good.num_rows)

        yield write_batch
