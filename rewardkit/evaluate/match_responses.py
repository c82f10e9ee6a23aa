"""Match responses from files to the rows of a parquet that they answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.questions import Question, read_questions
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.formats import ResponseRecord, read_response_records
from rewardkit.responses.matching import (
    PLACE_ALONE,
    Mismatch,
    TrainIndex,
    index_rows,
    try_match_row,
)
from rewardkit.responses.response_log import ResponseLog, open_response_log
from rewardkit.responses.samples import Sample, SkippedRow
from rewardkit.row import question_of

#: Skipped records that are kept as examples; all are counted.
MAX_EXAMPLES = 20


@dataclass
class MatchReport:
    """How many responses were matched to rows.

    Attributes:
        responses: number of matched responses.
        unconfirmed: how many of them were matched by their index or the number in `custom_id` alone,
            because they carry nothing that confirms it.
        unread: number of records that were skipped.
        examples: the first of these.
    """

    responses: int = 0
    unconfirmed: int = 0
    unread: int = 0
    examples: list[SkippedRow] = field(default_factory=list)

    def skip(self, record: SkippedRow) -> None:
        """Count a record whose responses are not used."""
        self.unread += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(record)


@dataclass(frozen=True, kw_only=True)
class _RowIndex:
    """The rows of a parquet by everything that a response may name.

    Attributes:
        questions: all rows, without their prompts.
        index: rows by question, place and id.
        ids: rows by `custom_id`.
        uses_numbers: whether these ids are row numbers instead of the rows' `source_id`.
    """

    questions: list[Question]
    index: TrainIndex
    ids: Mapping[str, int]
    uses_numbers: bool


def match_to_rows(names: Sequence[str], parquet: Path, path: Path) -> MatchReport:
    """Write the responses of files to a response log, each under the row that it answers.

    A response answers the row whose question (`extra_info.question`, or else the last message) is
    contained in the record's prompt, whitespace aside. Files of this command name the row by number
    and have the digest of its prompt. A batch is matched by `custom_id`; see `rows_by_custom_id`.
    Fields that both the record and its row have (prompt, question, id, gold) must agree.

    Args:
        names: files, folders and patterns; a file that is named twice is read once. See
            `responses.formats` for the formats.
        parquet: the questions.
        path: the log to write.

    Raises:
        DataError: no response matches a row, one contradicts its row, or a file cannot be read.
        UsageError: a name is not a regular file; the files are read twice.
    """
    files = [*{Path(name).resolve(): name for name in expand_paths(names)}.values()]
    for name in files:
        if not Path(name).is_file():
            raise UsageError(
                f"{name}: not a regular file. Save the responses to a file first, "
                "because they are read twice."
            )
    rows, report = _index_rows(parquet, files), MatchReport()
    with open_response_log(path, {}, overwrite=True) as (log, _):
        _match_all(read_response_records(files), rows, log, report)
    if not report.responses:
        why = f" {report.examples[0].where}: {report.examples[0].reason}." if report.unread else ""
        raise DataError(f"{', '.join(files)[:200]}: no response answers a row of {parquet}.{why}")
    return report


def _match_all(
    records: Iterable[ResponseRecord | SkippedRow],
    rows: _RowIndex,
    log: ResponseLog,
    report: MatchReport,
) -> None:
    samples: Counter[int] = Counter()
    variant: str | None = None
    for record in records:
        if isinstance(record, SkippedRow):
            report.skip(record)
            continue
        variant = record.variant if variant is None else variant
        if record.variant != variant:
            continue  # lm-eval writes each response once for every filter
        match = _match_record(record, rows)
        if isinstance(match, SkippedRow):
            report.skip(match)
            continue
        row, is_confirmed = match
        responses = [text._asdict() for text in record.texts]
        log.append(row, rows.questions[row].digest, samples[row], responses)
        samples[row] += len(responses)
        report.responses += len(responses)
        report.unconfirmed += 0 if is_confirmed else len(responses)


def _index_rows(parquet: Path, files: Sequence[str]) -> _RowIndex:
    ids = {
        record.custom_id: None
        for record in read_response_records(files)
        if isinstance(record, ResponseRecord)
    }
    ids.pop("", None)
    rows: list[Question] = []
    index = index_rows(_collect_rows(read_questions(parquet), rows), str(parquet))
    row_of_id = rows_by_custom_id(list(ids), rows) if ids else {}
    uses_numbers = any(rows[row].extra_info["source_id"] != id_ for id_, row in row_of_id.items())
    return _RowIndex(questions=rows, index=index, ids=row_of_id, uses_numbers=uses_numbers)


def _collect_rows(questions: Iterable[Question], rows: list[Question]) -> Iterator[dict[str, Any]]:
    """Yield each question as a row whose prompt is the bare question, with its last message.

    The questions are appended to `rows` without their texts.
    """
    for question in questions:
        fields = {
            "data_source": question.data_source,
            "extra_info": question.extra_info,
            "reward_model": {"ground_truth": question.ground_truth},
        }
        message = question.prompt[-1]["content"]
        yield {
            **fields,
            "prompt": question_of({**fields, "prompt": question.prompt}) or message,
            "message": message,
            "images": [sha256(image).hexdigest() for image in question.images],
        }
        info = {"source_id": str(question.extra_info.get("source_id") or "")}
        rows.append(question._replace(prompt=[], ground_truth="", extra_info=info, images=()))


def _match_record(record: ResponseRecord, rows: _RowIndex) -> tuple[int, bool] | SkippedRow:
    """Return the row that a record answers, and whether more than its place confirms it.

    Raises:
        DataError: the record contradicts the row.
    """
    if record.custom_id:
        return rows.ids[record.custom_id], not rows.uses_numbers
    if "prompt_sha256" in record.fields:
        row = _match_own_record(record, rows)
        return row if isinstance(row, SkippedRow) else (row, True)
    fields = record.fields.get("extra_info")
    info = dict(fields) if isinstance(fields, Mapping) else {}
    info.setdefault("data_source", record.fields.get("data_source") or "")
    match = try_match_row(
        rows.index, Sample(record.where, "", record.gold, info, {"input": record.prompt})
    )
    if match is None:
        return SkippedRow(record.where, "no row of the parquet has its question")
    if isinstance(match, Mismatch):
        if match.contradicts:
            raise DataError(f"{record.where} {match.reason}")
        return SkippedRow(record.where, f"it {match.reason}")
    return rows.index.prompts[match.place].row, match.way != PLACE_ALONE


def _match_own_record(record: ResponseRecord, rows: _RowIndex) -> int | SkippedRow:
    row = record.fields.get("row")
    if type(row) is not int or not 0 <= row < len(rows.questions):
        return SkippedRow(record.where, f"row {row} is not in the parquet")
    if record.fields["prompt_sha256"] != rows.questions[row].digest:
        raise DataError(
            f"{record.where} answers row {row}, but row {row} of the parquet has another prompt "
            f"({rows.index.name}). Name the parquet that the responses were generated from."
        )
    return row


def rows_by_custom_id(ids: Sequence[str], rows: Sequence[Question]) -> dict[str, int]:
    """Return the row of each `custom_id` of a batch: by `source_id`, or else by the number in it.

    Of two numbers the first is the row, as in `12-3`. Numbers count from 0 if one of them is 0, and
    from 1 if they range from 1 to the number of rows; any other range is ambiguous.

    Raises:
        DataError: the ids do not identify rows.
    """
    by_source: dict[str, int] = {}
    for question in rows:
        by_source.setdefault(str(question.extra_info.get("source_id") or ""), question.row)
    if len(by_source) == len(rows) and all(custom_id in by_source for custom_id in ids):
        return {custom_id: by_source[custom_id] for custom_id in ids}
    numbers = {
        custom_id: [int(digits) for digits in re.findall(r"\d{1,15}", custom_id)]
        for custom_id in ids
    }
    for custom_id, in_id in numbers.items():
        if len(in_id) not in (1, 2):
            raise DataError(f"custom_id {custom_id!r} is neither a source_id nor a row number.")
    row_numbers = [in_id[0] for in_id in numbers.values()]
    first, last = min(row_numbers), max(row_numbers)
    start = 0 if first == 0 else 1
    if last - start >= len(rows) or (start == 1 and (first, last) != (1, len(rows))):
        raise DataError(
            f"custom_id numbers {first:,} to {last:,} of {len(rows):,} rows: it is unclear whether "
            "they count from 0 or 1. Use the rows' source_id as custom_id."
        )
    return {custom_id: in_id[0] - start for custom_id, in_id in numbers.items()}
