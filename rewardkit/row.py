"""The verl row: one Arrow schema for every dataset, and parquet files of it.

verl concatenates its `data.train_files` with `datasets.concatenate_datasets`, which refuses files
whose types differ (`large_string` against `string`, an int64 `index` against a uuid). With one
schema any mix of our files loads. `prompt` is a chat: `[{"role": "user", "content": "..."}]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import DataError, RewardkitError
from rewardkit.output import atomic

Row: TypeAlias = dict[str, Any]
T = TypeVar("T")

SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("split", pa.string()),
                    ("source_id", pa.string()),
                    ("question", pa.string()),
                    ("answer", pa.string()),
                    ("scorer", pa.string()),
                    ("subject", pa.string()),
                    ("level", pa.string()),
                    ("kind", pa.string()),
                    ("options", pa.list_(pa.string())),
                ]
            ),
        ),
    ]
)

#: The last column of datasets with pictures: files as the hub's `Image` feature stores them.
IMAGES = pa.field("images", pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])))

#: Key of the file metadata that holds how a file was made, as JSON.
METADATA_KEY = b"rewardkit"

BATCH_ROWS = 2048

#: Of a row group, uncompressed.
GROUP_BYTES = 8 << 20


def build_row(
    *,
    data_source: str,
    prompt: list[dict[str, str]],
    ability: str,
    ground_truth: str,
    index: int,
    split: str,
    source_id: str,
    question: str,
    answer: str,
    scorer: str,
    subject: str = "",
    level: str = "",
    kind: str = "",
    options: Sequence[str] = (),
    images: Sequence[bytes] | None = None,
) -> Row:
    """A verl row. `answer` is the dataset's own solution ("" if it has none).

    Rows of a dataset with pictures have a column `images`, as verl reads it (`data.image_key`);
    `None` is for datasets without, an empty list for a row without.
    """
    row: Row = {
        "data_source": data_source,
        "prompt": prompt,
        "ability": ability,
        "reward_model": {"style": "rule", "ground_truth": ground_truth},
        "extra_info": {
            "index": index,
            "split": split,
            "source_id": source_id,
            "question": question,
            "answer": answer,
            "scorer": scorer,
            "subject": subject,
            "level": level,
            "kind": kind,
            "options": list(options),
        },
    }
    if images is not None:
        row[IMAGES.name] = [{"bytes": image, "path": None} for image in images]
    return row


def question_of(row: Mapping[str, Any]) -> str:
    """What a verl row asks: its own question, or else its last user message."""
    question = (row.get("extra_info") or {}).get("question")
    if isinstance(question, str) and question:
        return question
    prompt = row["prompt"]
    if isinstance(prompt, str):
        return prompt
    said = [
        m.get("content") for m in prompt or () if isinstance(m, Mapping) and m.get("role") == "user"
    ]
    return str(said[-1] or "") if said else ""


def write_rows(
    rows: Iterable[Row], out: Path, metadata: Mapping[str, Any], *, overwrite: bool = False
) -> int:
    """Write rows to a parquet file in bounded memory and return how many there were.

    Raises:
        OutputError: `out` exists and `overwrite` is False, or it cannot be written.
    """
    written = 0
    batches = batched(rows, BATCH_ROWS)
    first = next(batches, [])
    schema = SCHEMA.append(IMAGES) if any(IMAGES.name in row for row in first) else SCHEMA
    schema = schema.with_metadata({METADATA_KEY: json.dumps(metadata, ensure_ascii=False)})
    with (
        atomic(out, overwrite=overwrite) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        made = (
            pa.RecordBatch.from_pylist(batch, schema=schema) for batch in chain([first], batches)
        )
        for group in _groups(made):
            writer.write_table(pa.Table.from_batches(group))
            written += sum(batch.num_rows for batch in group)
    return written


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in row groups of some megabytes: the writer keeps what it knows of every group."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(each.nbytes for each in group) >= GROUP_BYTES:
            yield group
            group = []
    if group:
        yield group


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` rows."""
    batch: list[T] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a parquet file for reading.

    Raises:
        DataError: no such file, or it is not parquet, or truncated.
    """
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except RewardkitError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file.") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: not a readable parquet file ({reason})") from error


def python_rows(batch: pa.RecordBatch) -> list[Row]:
    """The rows of a batch, whatever its columns are.

    Values that Python has no type for, such as a timestamp in nanoseconds, are text.
    """
    columns = [_python_values(column) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _python_values(column: pa.Array) -> list[Any]:
    for values in (column.to_pylist, lambda: column.cast(pa.string()).to_pylist()):
        with suppress(ValueError, pa.ArrowException):
            return list(values())
    return [f"<{column.type}>"] * len(column)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a parquet file, a batch in memory at a time."""
    with open_parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            yield from batch.to_pylist()
