"""Responses with their ground truth, from the lines and rows of whatever a run wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.responses.files import Unit, units
from rewardkit.responses.json_lines import parse_line
from rewardkit.scorers.gold import unwrap_gold

#: The names under which responses and golds are found, first match first. `output` and `gts` are
#: those of verl's rollout and validation dumps.
RESPONSE_KEYS = ("response", "output", "solution_str", "completion", "responses")
GOLD_KEYS = ("ground_truth", "gts", "gold", "reward_model.ground_truth")


#: What a row with a list of responses may have a list of too: one for each response.
PER_RESPONSE = ("score", "acc", "pred", "status", "no_answer", "timeout", "error")


class Sample(NamedTuple):
    """One response to judge; `where` is file:line, `fields` everything its row has."""

    where: str
    response: str
    ground_truth: str
    extra_info: Mapping[str, Any]
    fields: Mapping[str, Any]


class Unread(NamedTuple):
    """A line that holds no sample, and why."""

    where: str
    reason: str


def read_samples(
    path: Path, response_key: str | None = None, gold_key: str | None = None
) -> Iterator[Sample | Unread]:
    """The samples of a file, and what could not be read, in order.

    Args:
        path: parquet, or jsonl, which may be compressed (`.gz`, `.zst`).
        response_key: the field with the response, or with a list of responses; None to try
            `RESPONSE_KEYS`.
        gold_key: the field with the ground truth, dotted for a nested one; None to try
            `GOLD_KEYS`.

    Raises:
        DataError: the file cannot be opened, or is no parquet.
    """
    for unit in units([str(path)]):
        yield from samples_of(unit, response_key, gold_key)


def samples_of(
    unit: Unit, response_key: str | None = None, gold_key: str | None = None
) -> Iterator[Sample | Unread]:
    """The samples of a unit; a row with a list of responses gives one for each."""
    response_keys = (response_key,) if response_key else RESPONSE_KEYS
    gold_keys = (gold_key,) if gold_key else GOLD_KEYS
    for where, row in _rows(unit):
        if isinstance(row, str):
            yield Unread(where, row)
            continue
        key, response = first_of(row, response_keys)
        gold = first_of(row, gold_keys)[1]
        if response is None:
            yield Unread(where, f"no response: none of {', '.join(response_keys)}")
        elif gold is None:
            yield Unread(where, f"no ground truth: none of {', '.join(gold_keys)}")
        elif isinstance(response, list):
            yield from _samples(where, row, key, gold)
        else:
            yield _sample(where, row, response, gold)


def _samples(where: str, row: dict[str, Any], key: str, gold: Any) -> Iterator[Sample | Unread]:
    """A sample for each of the responses that a row has under `key`."""
    responses = row[key] if key in row else first_of(row, (key,))[1]
    lists = [name for name in PER_RESPONSE if _as_many(row.get(name), responses)]
    for number, each in enumerate(responses):
        own = {name: row[name][number] for name in lists}
        fields = {**row, key: each, **own, "sample": number}
        yield _sample(f"{where} response {number}", fields, each, gold)


def _as_many(values: Any, responses: list[Any]) -> bool:
    return isinstance(values, list) and len(values) == len(responses)


def _sample(where: str, row: Mapping[str, Any], response: Any, gold: Any) -> Sample | Unread:
    if not isinstance(response, str):
        return Unread(where, f"the response is {type(response).__name__}, not text")
    extra_info = row.get("extra_info")
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info.setdefault("data_source", row.get("data_source") or "")
    return Sample(where, response, unwrap_gold(gold), info, row)


def first_of(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, Any]:
    """The first of the fields that is there and not null, and its name."""
    for key in keys:
        value = _inside(row, key) if "." in key else row.get(key)
        if value is not None:
            return key, value
    return "", None


def _inside(row: Mapping[str, Any], key: str) -> Any:
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _rows(unit: Unit) -> Iterator[tuple[str, dict[str, Any] | str]]:
    number = unit.first
    for row in unit.rows:
        yield f"{unit.path} row {number}", _unfolded(row)
        number += 1
    for line in BytesIO(unit.text):
        if not line.isspace():
            read = _json_object(line)
            if isinstance(read, str) and not line.endswith(b"\n"):
                read += "; it has no end: is it still being written?"
            yield f"{unit.path}:{number}", read
        number += 1
    if unit.cut:
        yield f"{unit.path}:{number}", unit.cut


def _unfolded(row: dict[str, Any]) -> dict[str, Any]:
    """A row of our own parquet of scores has the fields it was made of as JSON in `row`."""
    folded = row.get("row")
    if "status" not in row or not isinstance(folded, str):
        return row
    fields = _json_object(folded.encode())
    return row if isinstance(fields, str) else fields


def _json_object(line: bytes) -> dict[str, Any] | str:
    try:
        row = parse_line(line)
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        return f"not JSON ({error})"
    return row if isinstance(row, dict) else f"a {type(row).__name__}, not an object"
