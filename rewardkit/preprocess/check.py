"""`rewardkit check`: every row of a verl parquet, in bounded memory.

Duplicates take a digest of every prompt; near-duplicates, where they are asked for, every question.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.errors import UsageError
from rewardkit.output import atomic, require_not_input, require_suffix
from rewardkit.parallel import importable_in_child, in_order
from rewardkit.preprocess.check_report import CheckReport, NearDuplicateCluster
from rewardkit.preprocess.contamination.near_duplicates import near_duplicates
from rewardkit.preprocess.contamination.overlap import EvalIndex, find_overlaps
from rewardkit.preprocess.dropped_rows import dropped_line, dropped_path
from rewardkit.preprocess.duplicates import gold_key
from rewardkit.preprocess.prompt_lengths import PromptLengths, TokenCounter, count_characters
from rewardkit.preprocess.row_checks import RULES, DataFinding, check_row, prompt_key
from rewardkit.preprocess.schema_check import plain_type, schema_findings
from rewardkit.row import BATCH_ROWS, IMAGES, Row, open_parquet, python_rows, question_of
from rewardkit.scorers.base import Scorer
from rewardkit.scorers.load import load_scorer

#: Overlaps and clusters that are kept to be shown.
OVERLAPS = 200
CLUSTERS = 1000

#: Rules after which a row has no prompt or gold to look at.
UNREADABLE = frozenset({"empty_prompt", "bad_prompt", "bad_row", "empty_gold"})

#: The columns a row is judged by; others are carried along unread.
_READ = ("data_source", "prompt", "reward_model", "extra_info", "images")

Keep: TypeAlias = Callable[[pa.RecordBatch, list[list[DataFinding]]], int]


@dataclass(frozen=True)
class OptionalChecks:
    """The checks beyond a row by itself, all of them optional.

    Attributes:
        against: evaluation items that no row may hold.
        threshold: the share of an item's n-grams that a row must have to hold it.
        near: also look for near-duplicates; takes memory for every question.
        measure: counts a prompt's tokens; None for characters.
        limit: what `data.max_prompt_length` is to be, in tokens; rows over it are findings.

    Raises:
        UsageError: there is a limit, and nothing to count tokens with.
    """

    against: EvalIndex | None = None
    threshold: float = 0.5
    near: bool = False
    measure: TokenCounter | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.measure is None:
            raise UsageError(
                "--max-prompt-length is a number of tokens: name the model's tokenizer with "
                "--tokenizer."
            )


def check(
    path: Path,
    *,
    scorer: Scorer | None = None,
    scorer_name: str = "the one given",
    options: Mapping[str, Any] | None = None,
    respond: Callable[[str], str] | None = None,
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
        path: any parquet verl would read, ours or not.
        scorer: judges instead of each row's own scorer.
        scorer_name: what the report calls that scorer.
        options: of each row's own scorer.
        respond: writes an answer as `scorer` asks for it, where that runs in another process.
        allow_duplicates: do not report rows whose prompt occurred before.
        extras: contamination, near-duplicates, lengths in tokens.
        drop_bad: write the good rows here, and the others with their reasons to
            `<drop_bad>.dropped.jsonl`.
        drop_overlap: the same, but only rows that hold an evaluation item are left out.
        overwrite: replace what exists.
        jobs: processes for the self-check of large files; with more than one, the program's main
            module must be importable, as `multiprocessing` asks. A scorer from a user's file is
            run in this process.
        progress: called with the number of rows done after every batch.

    Raises:
        UsageError: the arguments exclude each other, an output does not end in .parquet, or no row's
            scorer has such an option, or takes its value.
        DataError: the file cannot be read, or a scorer in another process never answers.
        OutputError: `drop_bad` or `drop_overlap` cannot be written.
    """
    if drop_bad and drop_overlap:
        raise UsageError("--drop-bad and --drop-overlap exclude each other: the first does both.")
    if options and scorer is None:
        load_scorer("auto", **options)
    require_suffix("--drop-bad", drop_bad, ".parquet")
    require_suffix("--drop-overlap", drop_overlap, ".parquet")
    out = drop_bad or drop_overlap
    rules = frozenset(RULES) if drop_bad else frozenset({"overlap"})
    unit = "tokens" if extras.measure else "characters"
    report = CheckReport(Path(path), lengths=PromptLengths(unit, extras.limit))
    require_not_input(out, report.path)
    with open_parquet(report.path) as file:
        for finding in schema_findings(file.schema_arrow):
            report.add(finding)
        name = scorer_name if scorer else "each row's own scorer"
        pictures = IMAGES.name in file.schema_arrow.names
        aspects = _aspects(name, extras, pictures=pictures, duplicates=not allow_duplicates)
        if report.counts["missing"]:
            report.rows = file.metadata.num_rows
            report.checked = ("schema",)
            report.not_checked = tuple(aspect for aspect, _, _ in aspects)
        else:
            report.checked, report.not_checked = _described(aspects)
            judge = _Judge(scorer, options or {}, respond, allow_duplicates, extras)
            with (
                suppress(_NothingLeftError),
                _sink(out, file.schema_arrow, rules, overwrite=overwrite) as keep,
            ):
                _check_rows(file, report, judge, keep, jobs, progress)
                if out and not report.kept:
                    raise _NothingLeftError
            if out and report.kept == report.rows:
                dropped_path(out).unlink(missing_ok=True)
            _near(report, judge.asked)
            if not report.rows:
                report.add(DataFinding(None, "empty_file", "no rows"))
    return report


def _described(
    aspects: Iterable[tuple[str, str, bool]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is checked and what is not, each with how it is done or asked for."""
    texts: tuple[list[str], list[str]] = (["schema"], [])
    for aspect, note, is_checked in aspects:
        texts[not is_checked].append(f"{aspect} ({note})" if note else aspect)
    return tuple(texts[0]), tuple(texts[1])


def _aspects(
    scorer: str, extras: OptionalChecks, *, pictures: bool, duplicates: bool
) -> Iterator[tuple[str, str, bool]]:
    """What rows can be checked for: a name, how it is done or asked for, and whether it is done."""
    yield "prompts", "", True
    yield "golds", "", True
    yield "gold self-check", scorer, True
    yield "duplicates", "" if duplicates else "--allow-duplicates", duplicates
    sets = dict.fromkeys(item.source for item in extras.against.items) if extras.against else ()
    yield "contamination", ", ".join(sets) or "--against", bool(sets)
    yield "near-duplicates", "" if extras.near else "--near", extras.near
    if extras.measure is None:
        yield "prompt lengths in tokens", "--tokenizer", False
        return
    limit = "--max-prompt-length" if extras.limit is None else f"at most {extras.limit:,} tokens"
    yield "prompt lengths", limit, extras.limit is not None
    if pictures:
        yield "tokens of pictures", "", False


@dataclass(frozen=True)
class _Judge:
    """How rows are judged, and the prompts seen so far."""

    scorer: Scorer | None
    options: Mapping[str, Any]
    respond: Callable[[str], str] | None
    allow_duplicates: bool
    extras: OptionalChecks
    seen: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    asked: list[tuple[int, str, str]] = field(default_factory=list)

    def beside(self, row: Row, found: list[DataFinding], report: CheckReport) -> list[DataFinding]:
        """What was found in a row by itself, and what is wrong with it beside the others."""
        if not found and not self.allow_duplicates:
            found = list(_repeats(row, report.rows, self.seen))
        if not any(f.rule in UNREADABLE for f in found):
            found += self.look_at(row, report)
            found += self.overlaps(row, report)
        return found

    def importable_in_child(self) -> bool:
        return self.scorer is None or importable_in_child(self.scorer)

    def look_at(self, row: Row, report: CheckReport) -> Iterator[DataFinding]:
        """Count what a row with a prompt and a gold is like; its prompt may be too long."""
        report.stats.add(row)
        length = (self.extras.measure or count_characters)(row["prompt"])
        report.lengths.counts[length] += 1
        limit = self.extras.limit
        if limit is not None and length > limit:
            yield DataFinding(report.rows, "long_prompt", f"{length:,} tokens, more than {limit:,}")
        if self.extras.near:
            gold = str(row["reward_model"]["ground_truth"])
            self.asked.append((report.rows, question_of(row), gold))

    def overlaps(self, row: Row, report: CheckReport) -> Iterator[DataFinding]:
        if self.extras.against is None:
            return
        texts = [question_of(row)]
        for overlap in find_overlaps(texts, self.extras.against, self.extras.threshold):
            if len(report.overlaps) < OVERLAPS:
                report.overlaps.append(replace(overlap, row=report.rows))
            message = f"{overlap.coverage:.0%} of {overlap.source} {overlap.item}"
            yield DataFinding(report.rows, "overlap", message)


def _check_rows(
    file: pq.ParquetFile,
    report: CheckReport,
    judge: _Judge,
    keep: Keep,
    jobs: int,
    progress: Callable[[int], object],
) -> None:
    columns = [name for name in file.schema_arrow.names if name in _READ]
    waiting: deque[pa.RecordBatch] = deque()

    def batches() -> Iterator[tuple[int, list[Row]]]:
        start = 0
        for batch in file.iter_batches(BATCH_ROWS):
            waiting.append(batch)
            yield start, batch.select(columns).to_pylist()
            start += batch.num_rows

    work = partial(_by_themselves, judge.scorer, judge.options, judge.respond)
    for (_, rows), found in in_order(work, batches(), jobs if judge.importable_in_child() else 1):
        for place, row in enumerate(rows):
            found[place] = judge.beside(row, found[place], report)
            report.add_row(found[place])
        report.kept += keep(waiting.popleft(), found)
        progress(len(rows))


def _by_themselves(
    scorer: Scorer | None,
    options: Mapping[str, Any],
    respond: Callable[[str], str] | None,
    batch: tuple[int, list[Row]],
) -> list[list[DataFinding]]:
    """The findings of each row of a batch, in whatever process."""
    start, rows = batch
    return [check_row(row, start + i, scorer, options, respond) for i, row in enumerate(rows)]


def _near(report: CheckReport, asked: list[tuple[int, str, str]]) -> None:
    """Near-duplicates among the questions: those of conflicting golds first."""
    found = near_duplicates([question for _, question, _ in asked])
    clusters = []
    for places in found:
        rows = tuple(asked[place] for place in places)
        clusters.append(
            NearDuplicateCluster(rows, len({gold_key(gold) for _, _, gold in rows}) > 1)
        )
    clusters.sort(key=lambda cluster: not cluster.conflicting)
    report.clusters = clusters[:CLUSTERS]
    report.cluster_rows = sum(map(len, found)), len(found)


def _repeats(row: Row, index: int, seen: dict[bytes, tuple[int, str]]) -> Iterator[DataFinding]:
    gold = str(row["reward_model"]["ground_truth"])
    first, first_gold = seen.setdefault(prompt_key(row), (index, gold))
    if first != index and gold_key(gold) == gold_key(first_gold):
        yield DataFinding(index, "duplicate", f"same prompt and gold as row {first}")
    elif first != index:
        message = (
            f"same prompt as row {first}, but gold {gold[:60]!r} and there {first_gold[:60]!r}"
        )
        yield DataFinding(index, "conflicting_gold", message)


class _NothingLeftError(Exception):
    """No row is good: nothing is written, and what was there stays."""


@contextmanager
def _sink(
    out: Path | None, schema: pa.Schema, rules: frozenset[str], *, overwrite: bool
) -> Iterator[Keep]:
    """Takes checked batches: rows that break none of the rules go to `out`, others beside it.

    Large strings and lists become plain ones on the way.
    """
    if out is None:
        yield lambda *_: 0
        return
    plain = pa.schema([(item.name, plain_type(item.type)) for item in schema], schema.metadata)
    with (
        atomic(dropped_path(out), overwrite=overwrite) as rejects,
        atomic(out, overwrite=overwrite) as out_path,
        rejects.open("w") as lines,
        pq.ParquetWriter(out_path, plain, compression="zstd") as writer,
    ):

        def keep(batch: pa.RecordBatch, found: list[list[DataFinding]]) -> int:
            found = [[f for f in findings if f.rule in rules] for findings in found]
            is_bad = pa.array([bool(findings) for findings in found])
            good = batch.filter(pc.invert(is_bad))
            writer.write_batch(good.cast(plain))
            bad_rows = python_rows(batch.filter(is_bad))
            for row, findings in zip(bad_rows, filter(None, found), strict=True):
                reasons = [f"{f.rule}: {f.message}" for f in findings]
                lines.write(dropped_line(findings[0].row or 0, reasons, row))
            return int(good.num_rows)

        yield keep
