"""Scored rows as parquet: what every row has in columns of its own, the rest as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.rollouts.read import GOLD_KEYS, RESPONSE_KEYS
from rewardkit.row import batched

#: Rows of one run differ in their fields, and parquet's columns cannot: `row` has them all.
SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("step", pa.int64()),
        ("response", pa.string()),
        ("ground_truth", pa.string()),
        ("score", pa.float64()),
        ("acc", pa.float64()),
        ("pred", pa.string()),
        ("status", pa.string()),
        ("no_answer", pa.float64()),
        ("timeout", pa.float64()),
        ("error", pa.float64()),
        ("row", pa.string()),
    ]
)


def write_table(lines: Path, out: Path) -> None:
    """Write a jsonl of scored rows as parquet, in bounded memory."""
    with lines.open("rb") as source, pq.ParquetWriter(out, SCHEMA, compression="zstd") as writer:
        for rows in batched(_rows(source), 2048):
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))


def _rows(source: Any) -> Iterator[dict[str, Any]]:
    for line in source:
        row = json.loads(line)
        known = {name: row.get(name) for name in SCHEMA.names}
        known["response"] = _first(row, RESPONSE_KEYS)
        known["ground_truth"] = _first(row, GOLD_KEYS)
        known["data_source"] = row.get("data_source") or ""
        known["step"] = row["step"] if isinstance(row.get("step"), int) else None
        yield {**known, "row": line.decode().rstrip("\n")}


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((str(row[key]) for key in keys if row.get(key) is not None), None)
