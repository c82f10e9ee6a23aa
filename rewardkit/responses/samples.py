"""Responses with their ground truth, read from files of any program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rewardkit.responses.chunks import Chunk, read_chunks
from rewardkit.responses.records import (
    GOLD_KEYS,
    RESPONSE_KEYS,
    SkippedRow,
    first_value,
    read_records,
)
from rewardkit.scorers.gold import unwrap_gold

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
