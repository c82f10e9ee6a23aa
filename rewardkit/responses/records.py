"""Read the records of response files: JSON objects of lines, and rows of parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.file_kinds import lines_fault
from rewardkit.json_lines import parse_json
from rewardkit.responses.chunks import Chunk

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
