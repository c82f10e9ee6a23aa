"""`rewardkit check`: every row of a verl parquet, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.output import atomic, refuse_input
from rewardkit.preprocess.quality import (
    Finding,
    check_row,
    dropped_line,
    dropped_path,
    prompt_key,
)
from rewardkit.row import BATCH_ROWS, SCHEMA, Row, open_parquet
from rewardkit.scorers.base import Scorer

#: Findings of each rule that are kept to be shown; all are counted.
EXAMPLES = 10

#: What verl reads of every row; a file without one of them is not checked further.
REQUIRED = ("data_source", "prompt[].content", "prompt[].role", "reward_model.ground_truth")

_CONCAT = "which verl cannot concatenate with files that have"

#: The columns a row is judged by; others are carried along unread.
_READ = ("data_source", "prompt", "reward_model", "extra_info", "images")

Keep: TypeAlias = Callable[[pa.RecordBatch, list[Row], list[list[Finding]]], None]


@dataclass
class CheckReport:
    """What `check` found.

    Attributes:
        path: the file checked.
        rows: how many rows it has.
        bad_rows: how many of them have a finding.
        counts: findings by rule.
        examples: the first findings of each rule.
    """

    path: Path
    rows: int = 0
    bad_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.counts

    def add(self, finding: Finding) -> None:
        """Count a finding and keep it if few of its kind were seen."""
        self.counts[finding.rule] += 1
        if self.counts[finding.rule] <= EXAMPLES:
            self.examples.append(finding)

    def add_row(self, findings: list[Finding]) -> None:
        """Count a row and what was found in it."""
        self.rows += 1
        self.bad_rows += bool(findings)
        for finding in findings:
            self.add(finding)


def check(
    path: Path,
    *,
    scorer: Scorer | None = None,
    options: Mapping[str, Any] | None = None,
    allow_duplicates: bool = False,
    drop_bad: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CheckReport:
    """Check a verl parquet: schema, contents, duplicates and the gold self-check.

    Args:
        path: any parquet verl would read, ours or not.
        scorer: judges instead of each row's own scorer.
        options: of each row's own scorer.
        allow_duplicates: do not report rows whose prompt occurred before.
        drop_bad: write the good rows here, and the others with their reasons to
            `<drop_bad>.dropped.jsonl`.
        overwrite: replace `drop_bad` if it exists.
        progress: called with the number of rows done after every batch.

    Raises:
        DataError: the file cannot be read.
        OutputError: `drop_bad` cannot be written.
    """
    report = CheckReport(Path(path))
    refuse_input(drop_bad, report.path)
    with open_parquet(report.path) as file:
        for finding in check_schema(file.schema_arrow):
            report.add(finding)
        if not report.counts["missing"]:
            with _sink(drop_bad, file.schema_arrow, overwrite=overwrite) as keep:
                judge = _Judge(scorer, options or {}, allow_duplicates)
                _check_rows(file, report, judge, keep, progress)
            if not report.rows:
                report.add(Finding(None, "empty_file", "no rows"))
    return report


def check_schema(schema: pa.Schema) -> Iterator[Finding]:
    """Where a file's schema would not load in verl, or not beside other files.

    `datasets.concatenate_datasets` raises on a field that is typed differently in two files
    (measured on datasets 3.6 and 5.2). Fields that only one file has, or that are all null in one,
    are filled with None.
    """
    ours = dict(_leaves(SCHEMA))
    present = list(_leaves(schema))
    for column in REQUIRED:
        if not any(
            name == column or name.startswith((f"{column}.", f"{column}[")) for name, _ in present
        ):
            yield Finding(None, "missing", f"no column {column}; verl reads it from every row")
    for column, count in Counter(name for name, _ in present).items():
        if count > 1:
            yield Finding(None, "schema", f"{column} is there {count} times")
    for column, kind in present:
        wanted = ours.get(column, kind)
        if "large_" in str(kind) or not _loads_as(kind, wanted):
            yield Finding(None, "schema", f"{column} is {kind}, {_CONCAT} {_plain_type(wanted)}")


def _loads_as(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether `datasets` takes the one for the other: nulls, and dictionaries of the type, pass."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(kind == wanted or pa.types.is_null(kind))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with `string` and `list` for their large forms, as verl's other files have it."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([(field.name, _plain_type(field.type)) for field in fields])
    return kind


def _leaves(
    schema: pa.Schema | pa.StructType, prefix: str = ""
) -> Iterator[tuple[str, pa.DataType]]:
    """Every field by its dotted path: structs are entered, lists of structs too."""
    for i in range(len(schema) if isinstance(schema, pa.Schema) else schema.num_fields):
        item = schema.field(i)
        path, kind = f"{prefix}{item.name}", item.type
        if pa.types.is_large_list(kind):
            yield path, kind
        elif pa.types.is_struct(kind):
            yield from _leaves(kind, f"{path}.")
        elif pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            yield from _leaves(kind.value_type, f"{path}[].")
        else:
            yield path, kind


@dataclass(frozen=True)
class _Judge:
    """How rows are judged, and the prompts seen so far."""

    scorer: Scorer | None
    options: Mapping[str, Any]
    allow_duplicates: bool
    seen: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def findings(self, row: Row, index: int) -> list[Finding]:
        found = check_row(row, index, self.scorer, self.options)
        if not found and not self.allow_duplicates:
            found = list(_repeats(row, index, self.seen))
        return found


def _check_rows(
    file: pq.ParquetFile,
    report: CheckReport,
    judge: _Judge,
    keep: Keep,
    progress: Callable[[int], object],
) -> None:
    columns = [name for name in file.schema_arrow.names if name in _READ]
    for batch in file.iter_batches(BATCH_ROWS):
        rows = batch.select(columns).to_pylist()
        found = []
        for row in rows:
            found.append(judge.findings(row, report.rows))
            report.add_row(found[-1])
        keep(batch, rows, found)
        progress(len(rows))


def _repeats(row: Row, index: int, seen: dict[bytes, tuple[int, str]]) -> Iterator[Finding]:
    gold = str(row["reward_model"]["ground_truth"])
    first, first_gold = seen.setdefault(prompt_key(row), (index, gold))
    if first != index and gold == first_gold:
        yield Finding(index, "duplicate", f"same prompt and gold as row {first}")
    elif first != index:
        message = (
            f"same prompt as row {first}, but gold {gold[:60]!r} and there {first_gold[:60]!r}"
        )
        yield Finding(index, "conflicting_gold", message)


@contextmanager
def _sink(out: Path | None, schema: pa.Schema, *, overwrite: bool) -> Iterator[Keep]:
    """Takes checked batches: good rows go to `out`, the others to `<out>.dropped.jsonl`.

    Large strings and lists become plain ones on the way.
    """
    if out is None:
        yield lambda *_: None
        return
    plain = pa.schema([(item.name, _plain_type(item.type)) for item in schema], schema.metadata)
    with (
        atomic(dropped_path(out), overwrite=overwrite) as rejects,
        atomic(out, overwrite=overwrite) as out_path,
        rejects.open("w") as lines,
        pq.ParquetWriter(out_path, plain, compression="zstd") as writer,
    ):

        def keep(batch: pa.RecordBatch, rows: list[Row], found: list[list[Finding]]) -> None:
            good = batch.filter(pa.array([not findings for findings in found]))
            writer.write_batch(good.cast(plain))
            for row, findings in zip(rows, found, strict=True):
                if findings:
                    reasons = [f"{f.rule}: {f.message}" for f in findings]
                    lines.write(dropped_line(findings[0].row or 0, reasons, row))

        yield keep
