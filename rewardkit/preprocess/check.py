"""`rewardkit check`: every row of a verl parquet, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.output import atomic
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

_CONCAT = "verl cannot concatenate it with other files"

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
    allow_duplicates: bool = False,
    drop_bad: Path | None = None,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _: None,
) -> CheckReport:
    """Check a verl parquet: schema, contents, duplicates and the gold self-check.

    Args:
        path: any parquet verl would read, ours or not.
        scorer: judges instead of each row's own scorer.
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
    with open_parquet(report.path) as file:
        for finding in check_schema(file.schema_arrow):
            report.add(finding)
        if not report.counts["missing"]:
            with _sink(drop_bad, file.schema_arrow, overwrite=overwrite) as keep:
                _check_rows(file, report, scorer, keep, progress, allow_duplicates)
    return report


def check_schema(schema: pa.Schema) -> Iterator[Finding]:
    """Where a file's schema would not load in verl, or not beside other files.

    `datasets.concatenate_datasets` raises on a field that is typed differently in two files
    (measured on datasets 3.6 and 5.2). Fields that only one file has, or that are all null in one,
    are filled with None.
    """
    ours = dict(_leaves(SCHEMA))
    present = dict(_leaves(schema))
    for column in REQUIRED:
        if column not in present:
            yield Finding(None, "missing", f"no column {column}; verl reads it from every row")
    for column, kind in present.items():
        wanted = ours.get(column, kind)
        if kind != wanted and not pa.types.is_null(kind):
            yield Finding(None, "schema", f"{column} is {kind}, not {wanted}: {_CONCAT}")
        elif "large_" in str(kind):
            yield Finding(None, "schema", f"{column} is {kind}: {_CONCAT}")


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


def _check_rows(
    file: pq.ParquetFile,
    report: CheckReport,
    scorer: Scorer | None,
    keep: Keep,
    progress: Callable[[int], object],
    allow_duplicates: bool,
) -> None:
    seen: dict[bytes, tuple[int, str]] = {}
    for batch in file.iter_batches(BATCH_ROWS):
        rows = batch.to_pylist()
        found: list[list[Finding]] = []
        for row in rows:
            findings = check_row(row, report.rows, scorer)
            if not findings and not allow_duplicates:
                findings = list(_repeats(row, report.rows, seen))
            report.add_row(findings)
            found.append(findings)
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
    """Takes checked batches: good rows go to `out`, the others to `<out>.dropped.jsonl`."""
    if out is None:
        yield lambda *_: None
        return
    with (
        atomic(dropped_path(out), overwrite=overwrite) as rejects,
        atomic(out, overwrite=overwrite) as out_path,
        rejects.open("w") as lines,
        pq.ParquetWriter(out_path, schema, compression="zstd") as writer,
    ):

        def keep(batch: pa.RecordBatch, rows: list[Row], found: list[list[Finding]]) -> None:
            writer.write_batch(batch.filter(pa.array([not findings for findings in found])))
            for row, findings in zip(rows, found, strict=True):
                if findings:
                    reasons = [f"{f.rule}: {f.message}" for f in findings]
                    lines.write(dropped_line(findings[0].row or 0, reasons, row))

        yield keep
