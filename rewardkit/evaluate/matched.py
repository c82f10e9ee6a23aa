"""Match responses from files to the rows of a parquet that they answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.generate import add_responses
from rewardkit.evaluate.questions import Question, read_questions
from rewardkit.responses.figures import MAX_EXAMPLES
from rewardkit.responses.files import SkippedRow, expand_paths, read_chunks
from rewardkit.responses.formats import FILTER_KEY
from rewardkit.responses.matching import PLACE_ALONE, Mismatch, TrainIndex
from rewardkit.responses.samples import Sample, samples_of
from rewardkit.responses.store import Store


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


def match_to_rows(names: Sequence[str], parquet: Path, store: Store) -> MatchReport:
    """Append the responses of files to a store, each under the row that it answers.

    A response answers the row whose question (`extra_info.question`, or else the last message) is
    contained in the record's prompt, white space aside. Files of this command name the row by number
    and have the digest of its prompt. A batch is matched by `custom_id`; see `rows_by_custom_id`.
    Fields that both the record and its row have (prompt, question, id, gold) must agree.

    Raises:
        DataError: no response matches a row, one contradicts its row, or a file cannot be read.
        UsageError: a name is not a regular file; the files are read twice.
    """
    files = expand_paths(names)
    if "-" in files:
        raise UsageError("-: not a regular file. Save the responses to one: they are read twice.")
    rows = _Rows(files, parquet)
    report = MatchReport()
    samples: Counter[int] = Counter()
    name: str | None = None
    for sample in _read_responses(files):
        match = sample if isinstance(sample, SkippedRow) else rows.find(sample)
        if isinstance(sample, SkippedRow) or isinstance(match, SkippedRow):
            report.unread += 1
            if len(report.examples) < MAX_EXAMPLES and isinstance(match, SkippedRow):
                report.examples.append(match)
            continue
        own = sample.fields.get(FILTER_KEY)
        name = own if name is None else name
        if own != name:
            continue  # lm-eval writes each response once for every filter
        row, is_confirmed = match
        finish, tokens = sample.fields.get("finish_reason"), sample.fields.get("tokens")
        response = {"response": sample.response, "finish_reason": finish or "", "tokens": tokens}
        question = rows.questions[row]
        add_responses(store, (row, question.digest), samples[row], [response], {})
        samples[row] += 1
        report.responses += 1
        report.unconfirmed += not is_confirmed
    if not report.responses:
        why = f" {': '.join(report.examples[0])}." if report.examples else ""
        raise DataError(f"{', '.join(files)[:200]}: no response answers a row of {parquet}.{why}")
    return report


def _read_responses(files: Sequence[str]) -> Iterator[Sample | SkippedRow]:
    for chunk in read_chunks(files):
        yield from samples_of(chunk, needs_gold=False)


class _Rows:
    """The rows of a parquet by everything that a response may name.

    Attributes:
        questions: all rows, without their prompts.
    """

    def __init__(self, files: Sequence[str], parquet: Path) -> None:
        samples = (s.fields for s in _read_responses(files) if isinstance(s, Sample))
        ids = list(dict.fromkeys(str(f["custom_id"]) for f in samples if "custom_id" in f))
        self.questions: list[Question] = []
        self._index = TrainIndex(self._rows(parquet), str(parquet), by_question=True)
        self._by_id = rows_by_custom_id(ids, self.questions) if ids else {}
        self._has_numbers = any(
            self.questions[row].extra_info["source_id"] != custom_id
            for custom_id, row in self._by_id.items()
        )

    def _rows(self, parquet: Path) -> Iterator[dict[str, Any]]:
        for question in read_questions(parquet):
            yield {
                "data_source": question.data_source,
                "prompt": question.prompt,
                "reward_model": {"ground_truth": question.ground_truth},
                "extra_info": question.extra_info,
                "images": question.images,
            }
            info = {"source_id": str(question.extra_info.get("source_id") or "")}
            bare = question._replace(prompt=[], ground_truth="", extra_info=info, images=())
            self.questions.append(bare)

    def find(self, sample: Sample) -> tuple[int, bool] | SkippedRow:
        """Return the row that a response answers, and whether more than its place confirms it.

        Raises:
            DataError: the response contradicts the row.
        """
        if "custom_id" in sample.fields:
            return self._by_id[str(sample.fields["custom_id"])], not self._has_numbers
        if "prompt_sha256" in sample.fields:
            return self._find_own(sample.where, sample.fields)
        match = self._index.try_match(sample)
        if match is None:
            return SkippedRow(sample.where, "no row of the parquet has its question")
        if not isinstance(match, Mismatch):
            return self._index.prompts[match.prompt].row, match.way != PLACE_ALONE
        if match.contradicts:
            raise DataError(f"{sample.where} {match.reason}")
        return SkippedRow(sample.where, f"it {match.reason}")

    def _find_own(self, where: str, fields: Mapping[str, Any]) -> tuple[int, bool] | SkippedRow:
        row = fields.get("row")
        if type(row) is not int or not 0 <= row < len(self.questions):
            return SkippedRow(where, f"row {row} is not in the parquet")
        if fields["prompt_sha256"] != self.questions[row].digest:
            raise DataError(
                f"{where} answers row {row}, but row {row} of the parquet has another prompt "
                f"({self._index.name}). Name the parquet that the responses were generated from."
            )
        return row, True


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
    numbers: dict[str, int] = {}
    for custom_id in ids:
        in_id = re.findall(r"\d{1,15}", custom_id)
        if len(in_id) not in (1, 2):
            raise DataError(f"custom_id {custom_id!r} is neither a source_id nor a row number.")
        numbers[custom_id] = int(in_id[0])
    first, last = min(numbers.values()), max(numbers.values())
    start = 0 if first == 0 else 1
    if last - start >= len(rows) or (start == 1 and (first, last) != (1, len(rows))):
        raise DataError(
            f"custom_id numbers {first:,} to {last:,} of {len(rows):,} rows: it is unclear whether "
            "they count from 0 or 1. Use the rows' source_id as custom_id."
        )
    return {custom_id: number - start for custom_id, number in numbers.items()}
