"""Read responses with their ground truth: jsonl (a line each) or parquet (a row each)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.row import read_rows

#: The names under which responses and golds are found, first match first. `output` and `gts` are
#: those of verl's rollout and validation dumps.
RESPONSE_KEYS = ("response", "output", "solution_str", "completion")
GOLD_KEYS = ("ground_truth", "gts", "gold", "reward_model.ground_truth")


@dataclass(frozen=True)
class Sample:
    """One response to judge; `where` is file:line, `fields` everything its row has."""

    where: str
    response: str
    ground_truth: str
    extra_info: Mapping[str, Any]
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Unread:
    """A line that holds no sample, and why."""

    where: str
    reason: str


def read_samples(
    path: Path, response_key: str | None = None, gold_key: str | None = None
) -> Iterator[Sample | Unread]:
    """The samples of a file, and what could not be read, in order.

    Args:
        path: a `.parquet` file; any other is read as jsonl.
        response_key: the field with the response; None to try `RESPONSE_KEYS`.
        gold_key: the field with the ground truth, dotted for a nested one; None to try
            `GOLD_KEYS`.

    Raises:
        DataError: the file cannot be opened, or is no parquet.
    """
    response_keys = (response_key,) if response_key else RESPONSE_KEYS
    gold_keys = (gold_key,) if gold_key else GOLD_KEYS
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _jsonl_rows(path)
    for where, row in rows:
        yield (
            Unread(where, row)
            if isinstance(row, str)
            else _sample(where, row, response_keys, gold_keys)
        )


def _sample(
    where: str, row: dict[str, Any], response_keys: tuple[str, ...], gold_keys: tuple[str, ...]
) -> Sample | Unread:
    response = _first(row, response_keys)
    gold = _first(row, gold_keys)
    if response is None:
        return Unread(where, f"no response: none of {', '.join(response_keys)}")
    if gold is None:
        return Unread(where, f"no ground truth: none of {', '.join(gold_keys)}")
    if not isinstance(response, str):
        return Unread(where, f"the response is {type(response).__name__}, not text")
    extra_info = row.get("extra_info")
    info = dict(extra_info) if isinstance(extra_info, Mapping) else {}
    info.setdefault("data_source", row.get("data_source") or "")
    return Sample(where, response, str(gold), info, row)


def _first(row: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of the fields that is there and not null."""
    for key in keys:
        value: Any = row
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def _jsonl_rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}.") from error
    with file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield f"{path}:{number}", _json_object(line)


def _json_object(line: bytes) -> dict[str, Any] | str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        return f"not JSON ({error})"
    return row if isinstance(row, dict) else f"a {type(row).__name__}, not an object"


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any] | str]]:
    for number, row in enumerate(read_rows(path)):
        yield f"{path} row {number}", row
