"""`--responses`: which row of the parquet each response of a file answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.questions import Question, questions
from rewardkit.responses.chunks import expand_paths
from rewardkit.responses.formats import ResponseRecord, read_response_records
from rewardkit.responses.matching.match import PLACE_ALONE, try_match_row
from rewardkit.responses.matching.train_index import Mismatch, TrainIndex, index_rows
from rewardkit.responses.records import SkippedRow
from rewardkit.responses.response_log import ResponseLog, open_response_log
from rewardkit.responses.samples import Sample
from rewardkit.row import question_of

#: Responses that could not be used and are kept to be shown; all are counted.
EXAMPLES = 20


@dataclass
class Placed:
    """What came of placing responses.

    Attributes:
        responses: how many were placed.
        unconfirmed: how many of them were placed by their index, or the number in `custom_id`,
            alone: they carry nothing that confirms it.
        unread: how many records were not placed.
        examples: the first of those.
    """

    responses: int = 0
    unconfirmed: int = 0
    unread: int = 0
    examples: list[SkippedRow] = field(default_factory=list)

    def skip(self, record: SkippedRow) -> None:
        """Count a record whose responses are not used."""
        self.unread += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(record)


@dataclass(frozen=True)
class _Rows:
    """The questions by all that a response may name.

    Attributes:
        questions: without their prompts.
        index: by question, place and id.
        ids: rows by `custom_id`.
        numbered: whether those ids are numbers, not the rows' `source_id`.
    """

    questions: list[Question]
    index: TrainIndex
    ids: Mapping[str, int]
    numbered: bool


def match_to_rows(names: Sequence[str], parquet: Path, path: Path) -> Placed:
    """Write the responses of files as a part, each under the row that it answers.

    A response answers the row whose question (`extra_info.question`, else the last message) the
    record's prompt contains, spaces aside; this command's own files name the row by number, with
    the digest of the prompt. A batch is placed by `custom_id`; see `rows_of_ids`. What a record
    and its row both carry (prompt, question, id, gold) must agree.

    Args:
        names: files, folders and patterns; see `formats`. A file named twice is read as one.
        parquet: the questions.
        path: the part to write.

    Raises:
        DataError: no response can be placed, one contradicts its row, or a file cannot be read.
        UsageError: what is named can be read only once.
    """
    files = [*{Path(name).resolve(): name for name in expand_paths(names)}.values()]
    for name in files:
        if not Path(name).is_file():
            raise UsageError(f"--responses {name}: no plain file; responses are read twice.")
    rows, placed = _rows(parquet, files), Placed()
    with open_response_log(path, {}, overwrite=True) as (part, _):
        _place_all(read_response_records(files), rows, part, placed)
    if not placed.responses:
        why = f" {placed.examples[0].where}: {placed.examples[0].reason}." if placed.unread else ""
        raise DataError(f"{', '.join(files)[:200]}: no response to a row of {parquet}.{why}")
    return placed


def _place_all(
    records: Iterable[ResponseRecord | SkippedRow], rows: _Rows, part: ResponseLog, placed: Placed
) -> None:
    samples: Counter[int] = Counter()
    variant: str | None = None
    for record in records:
        if isinstance(record, SkippedRow):
            placed.skip(record)
            continue
        variant = record.variant if variant is None else variant
        if record.variant != variant:
            continue  # lm-eval writes each response once for every filter
        found = _row_of(record, rows)
        if isinstance(found, SkippedRow):
            placed.skip(found)
            continue
        row, is_confirmed = found
        lines = [text._asdict() for text in record.texts]
        question = rows.questions[row]
        part.append(row, question.digest, samples[row], lines)
        samples[row] += len(lines)
        placed.responses += len(lines)
        placed.unconfirmed += 0 if is_confirmed else len(lines)


def _rows(parquet: Path, files: Sequence[str]) -> _Rows:
    ids = {
        record.custom_id: None
        for record in read_response_records(files)
        if isinstance(record, ResponseRecord)
    }
    ids.pop("", None)
    found: list[Question] = []
    index = index_rows(_seen(questions(parquet), found), str(parquet))
    rows = rows_of_ids(list(ids), found) if ids else {}
    numbered = any(found[row].extra_info["source_id"] != each for each, row in rows.items())
    return _Rows(found, index, rows, numbered)


def _seen(rows: Iterable[Question], found: list[Question]) -> Iterator[dict[str, Any]]:
    """Each question as a row whose prompt is the bare question, beside the message that has it.

    The question is put into `found` without its text.
    """
    for row in rows:
        fields = {
            "data_source": row.data_source,
            "extra_info": row.extra_info,
            "reward_model": {"ground_truth": row.ground_truth},
        }
        message = row.prompt[-1]["content"]
        yield {
            **fields,
            "prompt": question_of({**fields, "prompt": row.prompt}) or message,
            "message": message,
        }
        source_id = str(row.extra_info.get("source_id") or "")
        found.append(row._replace(prompt=[], ground_truth="", extra_info={"source_id": source_id}))


def _row_of(record: ResponseRecord, rows: _Rows) -> tuple[int, bool] | SkippedRow:
    """The row that a record answers, and whether anything beside its place says so.

    Raises:
        DataError: the record contradicts the row.
    """
    if record.custom_id:
        return rows.ids[record.custom_id], not rows.numbered
    if "prompt_sha256" in record.fields:
        row = _own_row(record, rows)
        return row if isinstance(row, SkippedRow) else (row, True)
    info = record.fields.get("extra_info")
    named = dict(info) if isinstance(info, Mapping) else {}
    named.setdefault("data_source", record.fields.get("data_source") or "")
    match = try_match_row(
        rows.index, Sample(record.where, "", record.gold, named, {"input": record.prompt})
    )
    if match is None:
        return SkippedRow(record.where, "no row of the parquet has its question")
    if isinstance(match, Mismatch):
        if match.contradicts:
            raise DataError(f"{record.where} {match.reason}")
        return SkippedRow(record.where, f"it {match.reason}")
    return rows.index.prompts[match.place].row, match.way != PLACE_ALONE


def _own_row(record: ResponseRecord, rows: _Rows) -> int | SkippedRow:
    row = record.fields.get("row")
    if type(row) is not int or not 0 <= row < len(rows.questions):
        return SkippedRow(record.where, f"row {row} is not in the parquet")
    if record.fields["prompt_sha256"] != rows.questions[row].digest:
        raise DataError(
            f"{record.where} answers row {row}, but row {row} of the parquet has another prompt "
            f"({rows.index.name}). Give the parquet that the responses were made from."
        )
    return row


def rows_of_ids(ids: Sequence[str], known: Sequence[Question]) -> dict[str, int]:
    """The row of each `custom_id` of a batch: by `source_id`, else by the number in it.

    Of two numbers the first is the row, as in `12-3`. They count from 0 if a 0 is among them, from
    1 if they are 1 to the number of rows; anything else could be either, and is refused.

    Raises:
        DataError: the ids do not say which rows they are.
    """
    by_source: dict[str, int] = {}
    for question in known:
        by_source.setdefault(str(question.extra_info.get("source_id") or ""), question.row)
    if len(by_source) == len(known) and all(each in by_source for each in ids):
        return {each: by_source[each] for each in ids}
    numbers = {each: [int(digits) for digits in re.findall(r"\d{1,15}", each)] for each in ids}
    for each, found in numbers.items():
        if len(found) not in (1, 2):
            raise DataError(f"custom_id {each!r} is no source_id, and no number of a row.")
    rows = [found[0] for found in numbers.values()]
    first, last = min(rows), max(rows)
    start = 0 if first == 0 else 1
    if last - start >= len(known) or (start == 1 and (first, last) != (1, len(known))):
        raise DataError(
            f"custom_id numbers {first:,} to {last:,} of {len(known):,} rows: whether they count "
            "from 0 or 1 cannot be told. Use the rows' source_id as custom_id."
        )
    return {each: found[0] - start for each, found in numbers.items()}
