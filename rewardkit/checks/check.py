"""`rewardkit check`: check every row of verl parquets in bounded memory.

The search for duplicates keeps a digest of every prompt. verl loads the files of one list together
(`data.train_files`), and a prompt that is in two files is trained on twice, or is evaluated after it
was trained on: several files are checked alone, then for what they have in common.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.checks.duplicates import same_gold
from rewardkit.checks.overlap import EvalIndex, Overlap, find_overlaps
from rewardkit.checks.row_checks import (
    PROGRAM_ROWS,
    RULES,
    DataFinding,
    check_rows,
    gold_rows,
    prompt_key,
    runs_programs,
)
from rewardkit.checks.row_stats import PromptLengths, RowStats, TokenCounter, unread_options_of
from rewardkit.checks.schema import ConcatenationFault, concatenation_fault, schema_findings
from rewardkit.dropped_rows import atomic_with_dropped, dropped_line, dropped_path
from rewardkit.errors import DataError, SourceError, UsageError
from rewardkit.frames import takes_rows
from rewardkit.output import require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.registry import VERL_EVALUATES
from rewardkit.row import (
    AGENT_NAME,
    BATCH_ROWS,
    IMAGES,
    Row,
    open_parquet,
    plain_type,
    python_rows,
    question_of,
)
from rewardkit.scorers.base import NeverAnswersError, Scorer
from rewardkit.scorers.isolated import learn_rule
from rewardkit.scorers.load import load_scorer
from rewardkit.text import row_count

#: Maximum numbers in a report of overlaps and of near misses, and of findings of each rule; all are
#: counted.
MAX_OVERLAPS = 200
MAX_EXAMPLES = 10

#: Rules after which a row has no prompt or gold to compare.
_UNREADABLE = frozenset({"empty_prompt", "bad_prompt", "bad_row", "empty_gold"})

#: The columns that the checks read; other columns are only copied to the output.
_CHECKED_COLUMNS = ("data_source", "prompt", "reward_model", "extra_info", "agent_name", "images")

_CheckAlone: TypeAlias = Callable[[tuple[int, list[Row]]], list[list[DataFinding]]]
_WriteBatch: TypeAlias = Callable[[pa.RecordBatch, list[list[DataFinding]]], int]


@dataclass(frozen=True, kw_only=True)
class OptionalChecks:
    """The checks that compare a row with more than itself, all of them optional.

    Attributes:
        against: evaluation items that no row may contain.
        missing_sets: evaluation sets that could not be read, each with the reason.
        threshold: see `find_overlaps`.
        count_tokens: counts the tokens of a prompt; None counts characters.
        max_tokens: the run's `data.max_prompt_length`; longer prompts are findings.
        earlier_prompts: the files of prompts that were checked before, by the prompt's digest;
            those of this file are added. None for a file that is checked alone.
    """

    against: EvalIndex | None = None
    missing_sets: Mapping[str, str] = field(default_factory=dict)
    threshold: float = 0.5
    count_tokens: TokenCounter | None = None
    max_tokens: int | None = None
    earlier_prompts: dict[bytes, str] | None = None

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.count_tokens is None:
            raise UsageError(
                "--max-prompt-length is a number of tokens. Name the model's tokenizer with "
                "--tokenizer."
            )


@dataclass
class CheckReport:
    """What `check` reports of a file.

    Attributes:
        path: the file.
        rows: number of rows in the file.
        bad_rows: number of rows with a finding.
        checked: the aspects that were checked, in words.
        not_checked: the aspects that were not checked, each with the option that requests it.
        missing_sets: the evaluation sets of `all-eval` that could not be read, each with the reason.
        kept: number of rows written to the output, if there is one; no file is written for 0 rows.
        right: a sentence about which scores of a custom scorer are right; "" for other scorers.
        counts: number of findings by rule.
        examples: the first findings of each rule.
        stats: statistics of the readable rows.
        lengths: lengths of the prompts in tokens or characters.
        overlaps: the first evaluation items found in rows.
        near_misses: the first rows that are like an evaluation item, which are not findings.
        near_miss_count: number of all of these.
        pairs_by_set: number of pairs of a row and an item by evaluation set, and in it by rule.
        shared_prompts: number of rows whose prompt is in a file that was checked before, by file.
    """

    path: Path
    rows: int = 0
    bad_rows: int = 0
    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    missing_sets: Mapping[str, str] = field(default_factory=dict)
    kept: int = 0
    right: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[DataFinding] = field(default_factory=list)
    stats: RowStats = field(default_factory=RowStats)
    lengths: PromptLengths = field(default_factory=PromptLengths)
    overlaps: list[Overlap] = field(default_factory=list)
    near_misses: list[Overlap] = field(default_factory=list)
    near_miss_count: int = 0
    pairs_by_set: dict[str, Counter[str]] = field(default_factory=dict)
    shared_prompts: Counter[str] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Whether the file has no findings."""
        return not self.counts

    @property
    def exit_code(self) -> int:
        """1 if there are findings, otherwise 0."""
        return int(not self.ok)

    def add(self, *findings: DataFinding) -> None:
        """Count findings, and keep the first of each rule as examples."""
        for finding in findings:
            self.counts[finding.rule] += 1
            if self.counts[finding.rule] <= MAX_EXAMPLES:
                self.examples.append(finding)

    def missing_set_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the names of missing evaluation sets, and the reason that they have in common."""
        for reason in dict.fromkeys(self.missing_sets.values()):
            names = [name for name, why in self.missing_sets.items() if why == reason]
            yield ", ".join(names), reason

    def verdict(self) -> str:
        """Return the result in a few words."""
        if self.ok:
            return f"{row_count(self.rows)}, {'no findings' if self.stats.notes() else 'all good'}"
        if self.counts["missing"]:
            return f"{row_count(self.rows)}, not checked: columns that verl needs are missing"
        if not self.rows:
            return "the file has no rows"
        if not self.bad_rows:
            return f"{row_count(self.rows)} without findings, but the file has one"
        verb = "is" if self.bad_rows == 1 else "are"
        return f"{self.bad_rows:,} of {self.rows:,} rows {verb} bad"


@takes_rows
def check(
    path: Path | str,
    *,
    scorer: Scorer | None = None,
    scorer_name: str = "",
    options: Mapping[str, Any] | None = None,
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
        path: any parquet that verl can read, also of other tools, or rows of a notebook (`frames`).
        scorer: scores all rows in place of each row's own scorer.
        scorer_name: name of that scorer in the report, or `auto`: verl gets a reward of ours.
        options: options of each row's own scorer.
        right_score: the lowest right score of a scorer in another process; None to learn it from the
            first golds.
        allow_duplicates: do not report rows that repeat an earlier prompt.
        extras: checks for contamination and lengths in tokens.
        drop_bad: write the rows without findings to this parquet, and the others with the reasons
            to `<drop_bad>.dropped.jsonl`.
        drop_overlap: the same, but drop only rows that contain an evaluation item.
        overwrite: replace existing files.
        jobs: number of processes for large files; more than one needs an importable main module.
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
    report = CheckReport(Path(path), missing_sets=extras.missing_sets)
    report.lengths.counts = report.stats.prompt_chars
    if extras.count_tokens is not None:
        report.lengths = PromptLengths("tokens", extras.max_tokens)
    require_not_input(out, report.path)
    with open_parquet(report.path) as file:
        schema = file.schema_arrow
        report.add(*schema_findings(schema))
        report.stats.unread_options = unread_options_of(schema.metadata)
        name = (scorer_name or "the given scorer") if scorer else "each row's own scorer"
        checked, others = _aspects(name, extras, schema.names, allow_duplicates=allow_duplicates)
        report.checked, report.not_checked = ("schema", *checked), tuple(others)
        if report.counts["missing"]:
            report.rows, report.checked = file.metadata.num_rows, ("schema",)
            report.not_checked = tuple(each.partition(" (")[0] for each in (*checked, *others))
            return report
        if scorer is not None:
            scorer, rule = learn_rule(scorer, gold_rows(report.path), right_score)
            if rule.is_known:
                report.right = rule.sentence
            else:
                report.add(DataFinding(None, "unknown_right", rule.sentence))
        checker = _RowChecker(report, extras, scorer, allow_duplicates)
        pairs = _scorers_of(file)
        is_slow = _runs_programs(pairs, scorer)
        threads, size = (jobs, PROGRAM_ROWS) if is_slow else (1, BATCH_ROWS)
        check_alone = partial(check_rows, threads=threads, scorer=scorer, options=options)
        is_local = is_slow or not (scorer is None or importable_in_child(scorer))
        with (
            suppress(_NoRowsLeftError),
            _open_output(out, schema, rules, overwrite=overwrite) as write_batch,
        ):
            for batch, findings in checker.check_batches(
                file, check_alone, 1 if is_local else jobs, size
            ):
                report.kept += write_batch(batch, findings)
                progress(batch.num_rows)
            if out and not report.kept:
                raise _NoRowsLeftError
    if out and report.kept == report.rows:
        dropped_path(out).unlink(missing_ok=True)
    report.add(*_file_findings(report, Counter() if scorer or scorer_name else pairs))
    return report


def _scorers_of(file: pq.ParquetFile) -> Counter[tuple[Any, Any]]:
    """Return the number of rows by `data_source` and `extra_info.scorer`."""
    names = {file.schema.column(i).path for i in range(len(file.schema))}
    columns = sorted(names & {"data_source", "extra_info.scorer"})
    return Counter(
        (row["data_source"], (row.get("extra_info") or {}).get("scorer"))
        for batch in file.iter_batches(BATCH_ROWS, columns=columns)
        for row in batch.to_pylist()
    )


def _runs_programs(pairs: Iterable[tuple[Any, Any]], scorer: Scorer | None) -> bool:
    return any(runs_programs(*pair, scorer) for pair in pairs)


def _file_findings(
    report: CheckReport, pairs: Mapping[tuple[Any, Any], int]
) -> Iterator[DataFinding]:
    for message, sources in VERL_EVALUATES.items():
        # prep writes the rows of geometry3k, too, and names our scorer in them.
        rows = {
            pair: n for pair, n in pairs.items() if pair[0] in sources and pair[1] != "geometry3k"
        }
        if rows:
            names = ", ".join(sorted({source for source, _ in rows}))
            text = f"{sum(rows.values()):,} rows of {names}: {message}"
            yield DataFinding(None, "runs_answers", text)
    if not report.rows:
        yield DataFinding(None, "empty_file", "no rows")


def _aspects(
    scorer: str, extras: OptionalChecks, columns: Collection[str], *, allow_duplicates: bool
) -> tuple[list[str], list[str]]:
    """Return which aspects of rows are checked, and which are not, with how or with the option for it."""
    checked, others = ["prompts", "golds", f"gold self-check ({scorer})"], list[str]()
    if allow_duplicates:
        others.append("duplicates (--allow-duplicates)")
    else:
        checked.append("duplicates")
    if extras.against and extras.against.sources:
        checked.append(f"contamination ({', '.join(extras.against.sources)})")
    else:
        others.append("contamination (--against)")
    if extras.count_tokens is None:
        return checked, [*others, "prompt lengths in tokens (--tokenizer)"]
    if extras.max_tokens is None:
        others.append("prompt lengths (--max-prompt-length)")
    else:
        checked.append(f"prompt lengths (at most {extras.max_tokens:,} tokens)")
    beside = {IMAGES.name: "tokens of images", AGENT_NAME.name: "tokens of the tools' descriptions"}
    return checked, others + [aspect for column, aspect in beside.items() if column in columns]


@dataclass(frozen=True)
class _RowChecker:
    """Compares each row with other rows and evaluation items, and counts it in the report.

    `firsts` are the first rows with a prompt, by its digest: index, gold, and whether there are no
    findings.
    """

    report: CheckReport
    extras: OptionalChecks
    scorer: Scorer | None
    allow_duplicates: bool
    firsts: dict[bytes, tuple[int, str, bool]] = field(default_factory=dict)

    def check_batches(
        self, file: pq.ParquetFile, check_alone: _CheckAlone, jobs: int, size: int
    ) -> Iterator[tuple[pa.RecordBatch, list[list[DataFinding]]]]:
        """Yield the batches of a file, of `size` rows, with the findings of their rows."""
        columns = [name for name in file.schema_arrow.names if name in _CHECKED_COLUMNS]
        pending: deque[pa.RecordBatch] = deque()

        def batches() -> Iterator[tuple[int, list[Row]]]:
            start = 0
            for batch in file.iter_batches(size):
                pending.append(batch)
                yield start, batch.select(columns).to_pylist()
                start += batch.num_rows

        for (start, rows), findings in in_order(check_alone, batches(), jobs):
            for index, (row, own) in enumerate(zip(rows, findings, strict=True), start):
                if not any(finding.rule in _UNREADABLE for finding in own):
                    own.extend(self._compare(row, index, is_good=not own))
                self.report.bad_rows += bool(own)
                self.report.add(*own)
            self.report.rows += len(rows)
            yield pending.popleft(), findings

    def _compare(self, row: Row, index: int, *, is_good: bool) -> list[DataFinding]:
        """Count a readable row in the statistics, and return the findings beside other rows and problems."""
        report, extras, key = self.report, self.extras, prompt_key(row)
        findings = [] if self.allow_duplicates else self._repeats(row, index, key, is_good)
        report.stats.add(row, self.scorer)
        if extras.count_tokens is not None:
            length = extras.count_tokens(row["prompt"])
            report.lengths.counts[length] += 1
            if extras.max_tokens is not None and length > extras.max_tokens:
                message = f"{length:,} tokens, more than {extras.max_tokens:,}"
                findings.append(DataFinding(index, "long_prompt", message))
        if extras.against is not None:
            findings += self._overlaps(row, index, extras.against)
        if extras.earlier_prompts is not None:
            path = str(report.path)
            file = extras.earlier_prompts.setdefault(key, path)
            if file != path:
                report.shared_prompts[file] += 1
        return findings

    def _repeats(self, row: Row, index: int, key: bytes, is_good: bool) -> list[DataFinding]:
        """Return a finding if an earlier row has the same prompt.

        A row without findings takes the place of an earlier one with some: it is not dropped for it.
        """
        gold = str(row["reward_model"]["ground_truth"])
        first, first_gold, first_is_good = self.firsts.setdefault(key, (index, gold, is_good))
        if first == index:
            return []
        if is_good and not first_is_good:
            self.firsts[key] = index, gold, is_good
            return []
        if same_gold(gold, first_gold):
            return [DataFinding(index, "duplicate", f"same prompt and gold as row {first}")]
        message = (
            f"same prompt as row {first}, but gold {gold[:60]!r} instead of {first_gold[:60]!r}"
        )
        return [DataFinding(index, "conflicting_gold", message)]

    def _overlaps(self, row: Row, index: int, against: EvalIndex) -> Iterator[DataFinding]:
        report, threshold = self.report, self.extras.threshold
        for overlap in find_overlaps([question_of(row)], against, threshold, near_misses=True):
            is_near = overlap.rule == "near_miss"
            report.pairs_by_set.setdefault(overlap.source, Counter())[overlap.rule] += 1
            examples = report.near_misses if is_near else report.overlaps
            if len(examples) < MAX_OVERLAPS:
                examples.append(replace(overlap, row=index))
            if is_near:
                report.near_miss_count += 1
            else:
                yield DataFinding(index, "overlap", overlap.summary)


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
            reasons = [[finding for finding in own if finding.rule in rules] for own in findings]
            is_bad = pa.array(map(bool, reasons), pa.bool_())
            good = batch.filter(pc.invert(is_bad))
            writer.write_batch(good.cast(plain))
            bad_rows = python_rows(batch.filter(is_bad))
            for row, own in zip(bad_rows, filter(None, reasons), strict=True):
                reasons_of_row = [f"{finding.rule}: {finding.message}" for finding in own]
                lines.write(dropped_line(own[0].row or 0, reasons_of_row, row))
            return int(good.num_rows)

        yield write_batch


@dataclass
class FilesReport:
    """What `check` reports of several files."""

    reports: list[CheckReport] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
    concatenation: ConcatenationFault | None = None

    @property
    def ok(self) -> bool:
        """Whether all files could be read and none has findings."""
        return not self.unreadable and all(report.ok for report in self.reports)

    @property
    def exit_code(self) -> int:
        """That of `DataError` if a file cannot be read, 1 if a file has findings, otherwise 0."""
        return DataError.exit_code if self.unreadable else int(not self.ok)

    def verdict(self) -> str:
        """Return the result of all files in a few words."""
        good = sum(report.ok for report in self.reports)
        counts = {
            "good": good,
            "with findings": len(self.reports) - good,
            "unreadable": len(self.unreadable),
        }
        total = sum(counts.values())
        if good == total:
            has_notes = any(report.stats.notes() for report in self.reports)
            return f"{total} files, {'no findings' if has_notes else 'all good'}"
        return f"{total} files: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}"


def check_files(
    files: Sequence[Path], check_file: Callable[[Path, dict[bytes, str]], CheckReport]
) -> FilesReport:
    """Check files one after the other."""
    report, prompts = FilesReport(), dict[bytes, str]()
    for file in files:
        try:
            report.reports.append(check_file(file, prompts))
        except NeverAnswersError:
            raise
        except (DataError, SourceError) as error:
            report.unreadable[file] = str(error)
    report.concatenation = concatenation_fault([each.path for each in report.reports])
    return report
