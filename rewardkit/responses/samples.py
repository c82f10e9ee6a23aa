"""Responses with their ground truth and, if they have them, their scores, read from files of any program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.file_kinds import lines_fault
from rewardkit.jsonl import parse_json
from rewardkit.responses.chunks import Chunk, read_chunks
from rewardkit.scorers.gold import unwrap_gold
from rewardkit.scorers.reward_result import VERDICT_KEYS, RewardResult, RightRule, rule_of_results

#: The keys under which responses and golds are looked up, in this order. `output` and `gts` are
#: those of verl's rollout and validation dumps.
RESPONSE_KEYS = ("response", "output", "solution_str", "completion", "responses")
GOLD_KEYS = ("ground_truth", "gts", "gold", "reward_model.ground_truth")


class SkippedRow(NamedTuple):
    """A row without a usable response, or without a score; `where` is file:line."""

    where: str
    reason: str


class Record(NamedTuple):
    """The fields of a row; `where` is file:line."""

    where: str
    fields: dict[str, Any]


def read_records(chunk: Chunk) -> Iterator[Record | SkippedRow]:
    """Yield the records of a chunk in order, and the lines that are not a record."""
    number = chunk.first
    for row in chunk.rows:
        yield Record(f"{chunk.path} row {number}", _unpack(row))
        number += 1
    for line in BytesIO(chunk.text):
        if not line.isspace():
            where, fields = f"{chunk.path}:{number}", _parse_object(line)
            if isinstance(fields, dict):
                yield Record(where, fields)
            else:
                is_whole = line.endswith(b"\n")
                hint = "" if is_whole else "; it has no line end: is it still being written?"
                is_first = number == 1 and chunk.span[1] > 0
                fault = lines_fault(Path(chunk.path)) if is_first else ""
                yield SkippedRow(where, fault or fields + hint)
        number += 1
    if chunk.damage:
        yield SkippedRow(f"{chunk.path}:{number}", chunk.damage)


def first_value(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, Any]:
    """Return the first key with a value other than null, and the value; a dot leads into a field."""
    for key in keys:
        value = _nested_value(row, key) if "." in key else row.get(key)
        if value is not None:
            return key, value
    return "", None


def _nested_value(row: Mapping[str, Any], key: str) -> Any:
    value: Any = row
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _parse_object(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line of JSON, or why there is none."""
    try:
        value = parse_json(line)
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        return f"not JSON ({error})"
    return value if isinstance(value, dict) else f"a {type(value).__name__}, not an object"


def _unpack(row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a row of our own parquet of scores has as JSON in its column `row`."""
    packed = row.get("row")
    if "status" not in row or not isinstance(packed, str):
        return row
    fields = _parse_object(packed.encode())
    return row if isinstance(fields, str) else fields


#: A row with a list of responses may have a list of these too, with one value for each response.
KEYS_PER_RESPONSE = ("score", "acc", "pred", "status", "no_answer", "timeout", "error")


class Sample(NamedTuple):
    """One response to score; `where` is file:line, `fields` has all fields of its row."""

    where: str
    response: str
    ground_truth: str
    extra_info: Mapping[str, Any]
    fields: Mapping[str, Any]


def read_samples(
    files: Iterable[str], response_key: str | None = None, gold_key: str | None = None
) -> Iterator[Sample | SkippedRow]:
    """Yield the samples of files in order, and the rows that cannot be used.

    Args:
        files: parquet, or jsonl, which may be compressed (`.gz`, `.zst`).
        response_key: the field with the response, or with a list of responses; None to try
            `RESPONSE_KEYS`.
        gold_key: the field with the ground truth, dotted for a nested one; None to try
            `GOLD_KEYS`.

    Raises:
        DataError: a file cannot be opened, or is not parquet.
    """
    for chunk in read_chunks(files):
        yield from samples_of(chunk, response_key, gold_key)


def samples_of(
    chunk: Chunk, response_key: str | None = None, gold_key: str | None = None
) -> Iterator[Sample | SkippedRow]:
    """Yield the samples of a chunk; a row with a list of responses has one for each."""
    response_keys = (response_key,) if response_key else RESPONSE_KEYS
    gold_keys = (gold_key,) if gold_key else GOLD_KEYS
    for record in read_records(chunk):
        if isinstance(record, SkippedRow):
            yield record
            continue
        where, row = record
        key, response = first_value(row, response_keys)
        gold = first_value(row, gold_keys)[1]
        if response is None:
            yield SkippedRow(where, f"no response: {_absent(response_keys, '--response-key')}")
        elif gold is None:
            yield SkippedRow(where, f"no ground truth: {_absent(gold_keys, '--gold-key')}")
        elif isinstance(response, list):
            for number, fields in enumerate(_split(row, key, response)):
                yield _sample(f"{where} response {number}", fields, response[number], gold)
        else:
            yield _sample(where, row, response, gold)


def _absent(keys: Iterable[str], option: str) -> str:
    return f"the row has none of {', '.join(keys)}; name its field with {option}"


def _split(row: dict[str, Any], key: str, responses: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields of each response of a list, with its own values of `KEYS_PER_RESPONSE`."""
    lists = [
        name
        for name in KEYS_PER_RESPONSE
        if isinstance(row.get(name), list) and len(row[name]) == len(responses)
    ]
    for number, response in enumerate(responses):
        values = {name: row[name][number] for name in lists}
        yield {**row, key: response, **values, "sample": number}


def _sample(where: str, row: Mapping[str, Any], response: Any, gold: Any) -> Sample | SkippedRow:
    if not isinstance(response, str):
        return SkippedRow(where, f"the response is {type(response).__name__}, not text")
    extra_info = row.get("extra_info")
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info.setdefault("data_source", row.get("data_source") or "")
    return Sample(where, response, unwrap_gold(gold), info, row)


#: Rows from which it is learned what states the verdicts of a file.
LEARNED_ROWS = 1000


def finite_number(value: Any) -> float | None:
    """Return a number of a file as a float; None for any other value, also an infinite one."""
    if not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        return None
    return float(value)


def row_result(fields: Mapping[str, Any]) -> RewardResult | None:
    """Return the result that a row has in `score`, `acc` and `correct`; None without a number.

    `acc` stands for a missing score. A score without `acc` and `correct` is its own `acc`, as verl's
    managers write it of a reward that returns a number.
    """
    values = {
        name: value
        for name in ("score", *VERDICT_KEYS)
        if (value := finite_number(fields.get(name))) is not None
    }
    score = values.get("score", values.get("acc"))
    if score is None:
        return None
    values = {
        "score": score,
        **({} if values.keys() & {*VERDICT_KEYS} else {"acc": score}),
        **values,
    }
    return RewardResult.of(values)


def rule_of_files(
    files: Sequence[str],
    response_key: str | None,
    gold_key: str | None,
    right_score: float | None = None,
) -> RightRule:
    """Return which results in files are right, from their first rows or from `--right-score`.

    Raises:
        DataError: a file cannot be read.
    """
    if right_score is not None:
        return RightRule(right_score, False, "--right-score")
    samples = islice(read_samples(files, response_key, gold_key), LEARNED_ROWS)
    results = (row_result(sample.fields) for sample in samples if isinstance(sample, Sample))
    return rule_of_results(each for each in results if each is not None)
