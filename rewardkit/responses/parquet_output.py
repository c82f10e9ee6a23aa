"""Scored rows as parquet: the fields that every row has in columns, the whole row as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.responses.samples import GOLD_KEYS, RESPONSE_KEYS, first_value
from rewardkit.row import BATCH_ROWS, batched

#: Rows of one run have different fields, which columns of a parquet cannot; `row` has all of them.
SCORED_SCHEMA = pa.schema(
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


def write_scored_parquet(
    lines: Path, out: Path, response_key: str | None, gold_key: str | None
) -> None:
    """Write a jsonl of scored rows as parquet, in bounded memory."""
    keys = (
        (response_key,) if response_key else RESPONSE_KEYS,
        (gold_key,) if gold_key else GOLD_KEYS,
    )
    with (
        lines.open("rb") as source,
        pq.ParquetWriter(out, SCORED_SCHEMA, compression="zstd") as writer,
    ):
        for rows in batched((_columns(line, *keys) for line in source), BATCH_ROWS):
            writer.write_table(pa.Table.from_pylist(rows, schema=SCORED_SCHEMA))


def _columns(line: bytes, response_keys: Sequence[str], gold_keys: Sequence[str]) -> dict[str, Any]:
    row = json.loads(line)
    step = row.get("step")
    return {
        **{name: row.get(name) for name in ("score", "acc", "no_answer", "timeout", "error")},
        "pred": _as_text(row.get("pred")),
        "status": row.get("status"),
        "response": _as_text(first_value(row, response_keys)[1]),
        "ground_truth": _as_text(first_value(row, gold_keys)[1]),
        "data_source": _as_text(row.get("data_source") or ""),
        "step": step if type(step) is int and abs(step) < 1 << 63 else None,
        "row": line.decode().rstrip("\n"),
    }


def _as_text(value: Any) -> str | None:
    """Return a value as text that parquet accepts: lone surrogates are escaped."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()
