"""The verl row: one Arrow schema for all datasets, and functions that read and write its files.

verl concatenates its `data.train_files` with `datasets.concatenate_datasets`, which rejects files
with different types (`large_string` and `string`, an int64 `index` and a uuid). Because all our
files have one schema, verl can load any of them together. `prompt` is a chat:
`[{"role": "user", "content": "..."}]`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from rewardkit.errors import DataError, RewardkitError, SourceError, unreadable_file
from rewardkit.file_kinds import missing_file, parquet_fault, require_regular_file
from rewardkit.output import atomic
from rewardkit.parquet_file import BoundedParquetFile

Row: TypeAlias = dict[str, Any]
T = TypeVar("T")

_MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
_EXTRA_INFO = pa.struct(
    [
        ("index", pa.int64()),
        *(
            (name, pa.string())
            for name in "split source_id question answer scorer subject level kind".split()
        ),
        ("options", pa.list_(pa.string())),
        ("columns", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(_MESSAGE)),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", _EXTRA_INFO),
    ]
)

#: The last column of datasets with images, in the form of the hub's `Image` feature.
IMAGES = pa.field("images", pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())])))

#: The column that names verl's agent loop, in files with rows of more than one turn.
AGENT_NAME = pa.field("agent_name", pa.string())

#: The agent loop for rows of one turn.
SINGLE_TURN_AGENT = "single_turn_agent"

#: The agent loop of every release since 0.5 that calls tools.
TOOL_AGENT = "tool_agent"

#: The last fields of `extra_info` in such files. Their types depend on the tools, so that a file has
#: only those that its rows have.
TURN_FIELDS = ("need_tools_kwargs", "tools_kwargs", "interaction_kwargs", "tool_selection")

#: Key of the file metadata with JSON that says how the file was made.
METADATA_KEY = b"rewardkit"

#: File metadata that names the type of `images` for the library `datasets`, which then decodes the
#: images: verl 0.5 cannot read them as bytes. All its releases know the type `Sequence`.
IMAGES_METADATA = {
    "huggingface": json.dumps(
        {"info": {"features": {IMAGES.name: {"feature": {"_type": "Image"}, "_type": "Sequence"}}}}
    )
}

#: Rows that are read, checked and written together.
BATCH_ROWS = 2048

#: Characters after which a batch ends: rows of a megabyte would be gigabytes.
BATCH_CHARACTERS = 32 << 20

#: Rows with images that a row group has at least: a reader holds a whole row group.
IMAGE_ROWS = 16

#: Minimum uncompressed bytes of a row group, except the last.
ROW_GROUP_BYTES = 8 << 20


def build_row(
    *,
    data_source: str,
    prompt: list[dict[str, str]],
    ability: str,
    ground_truth: str,
    images: Sequence[bytes] | None = None,
    **info: Any,
) -> Row:
    """Return a verl row.

    Args:
        data_source: verl's reward key.
        prompt: the chat.
        ability: verl's `ability` column.
        ground_truth: the gold answer.
        images: contents of the image files for the column `images` (verl's `data.image_key`); None
            for a dataset without images, an empty list for a row without images.
        **info: the fields of `extra_info` that are not empty; `index` is always given.
    """
    empty = {item.name: "" for item in _EXTRA_INFO.fields}
    row: Row = {
        "data_source": data_source,
        "prompt": prompt,
        "ability": ability,
        "reward_model": {"style": "rule", "ground_truth": ground_truth},
        "extra_info": {**empty, **info, "options": list(info.get("options", ()))},
    }
    if images is not None:
        row[IMAGES.name] = [{"bytes": image, "path": None} for image in images]
    return row


def question_of(row: Mapping[str, Any]) -> str:
    """Return the question of a verl row: `extra_info.question`, or else the last user message."""
    question, prompt = (row.get("extra_info") or {}).get("question"), row["prompt"]
    if isinstance(question, str) and question:
        return question
    if isinstance(prompt, str):
        return prompt
    messages = (m for m in reversed(prompt or ()) if isinstance(m, Mapping))
    return str(next((m.get("content") for m in messages if m.get("role") == "user"), "") or "")


def row_schema(
    turn_types: Mapping[str, pa.DataType], *, agent_name: bool = False, images: bool = False
) -> pa.Schema:
    """Return the schema of a file: the common one, and what its rows have in addition.

    `turn_types` are the types of those of `TURN_FIELDS` that the rows have.
    """
    added = [pa.field(name, turn_types[name]) for name in TURN_FIELDS if name in turn_types]
    info = pa.field("extra_info", pa.struct([*_EXTRA_INFO.fields, *added]))
    columns = [info if column.name == info.name else column for column in SCHEMA]
    return pa.schema([*columns, *[AGENT_NAME] * agent_name, *[IMAGES] * images])


def write_rows(
    rows: Iterable[Row],
    out: Path,
    metadata: Mapping[str, Any],
    *,
    schema: pa.Schema | None = None,
    overwrite: bool = False,
) -> int:
    """Write rows to a parquet file in bounded memory and return the number of rows.

    Without a `schema` it is that of the first rows, and all others must be of their kind. Raises
    `DataError` if later ones have images and those do not.
    """
    written = 0
    batches = batched(rows, BATCH_ROWS)
    if schema is None:
        first = next(batches, [])
        infos = [row.get("extra_info") or {} for row in first]
        kinds = {n: value_type(pa.array([i.get(n) for i in infos]).type) for n in TURN_FIELDS}
        schema = row_schema(
            {name: kind for name, kind in kinds.items() if kind is not None},
            agent_name=any(row.get(AGENT_NAME.name) for row in first),
            images=any(IMAGES.name in row for row in first),
        )
        batches = chain([first], batches)
    entries = {METADATA_KEY.decode(): json.dumps(metadata, ensure_ascii=False)}
    if IMAGES.name in schema.names:
        entries |= IMAGES_METADATA
    schema = schema.with_metadata(entries)
    with (
        atomic(out, overwrite=overwrite) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        size = IMAGE_ROWS if IMAGES.name in schema.names else BATCH_ROWS
        group: list[pa.RecordBatch] = []  # of some megabytes: the writer keeps metadata of each
        for batch in batches:
            if IMAGES.name not in schema.names and any(map(image_contents, batch)):
                raise DataError(
                    f"{out}: rows after the first {written:,} have images, which those lack. Give "
                    "each row a list of images, which may be empty."
                )
            for start in range(0, len(batch), size):
                rows_of_group = batch[start : start + size]
                group.append(pa.RecordBatch.from_pylist(rows_of_group, schema=schema))
                if sum(each.nbytes for each in group) >= ROW_GROUP_BYTES:
                    writer.write_table(pa.Table.from_batches(group))
                    group = []
            written += len(batch)
        if group:
            writer.write_table(pa.Table.from_batches(group))
    return written


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of up to `size` rows, which end earlier if their strings reach `BATCH_CHARACTERS`."""
    batch: list[T] = []
    characters = 0
    for row in rows:
        batch.append(row)
        characters += _characters(row)
        if len(batch) == size or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _characters(value: object) -> int:
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (str, bytes)):
            total += len(item)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            waiting += item
    return total


@contextmanager
def open_parquet(path: Path) -> Iterator[BoundedParquetFile]:
    """Open a parquet file for reading.

    Raises:
        SourceError: the file does not exist or cannot be opened.
        DataError: it is truncated, or is not a parquet file.
    """
    require_regular_file(path)
    try:
        with BoundedParquetFile(path) as file:
            yield file
    except RewardkitError:
        raise
    except FileNotFoundError as error:
        raise SourceError(missing_file(path)) from error
    except (PermissionError, IsADirectoryError) as error:
        raise unreadable_file(path, error) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        fault = parquet_fault(path)
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: {fault or f'not a readable parquet file ({reason})'}") from error


def python_rows(batch: pa.RecordBatch) -> list[Row]:
    """Return the rows of a batch with columns of any type.

    A number of 32 bits is its shortest text: 0.1, not 0.10000000149. Values without a Python type,
    such as timestamps in nanoseconds, become text.
    """

    def values(column: pa.Array) -> list[Any]:
        if column.type == pa.float32():
            column = column.cast(pa.string()).cast(pa.float64())
        for read in (column.to_pylist, lambda: column.cast(pa.string()).to_pylist()):
            with suppress(ValueError, pa.ArrowException):
                return list(read())
        return [f"<{column.type}>"] * len(column)

    columns = map(values, batch.columns)
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def image_contents(row: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Return the contents of the image files of a verl row, empty for one that is not in it.

    `images` has objects with `bytes`, or the bytes themselves.
    """
    images = row.get("images")
    images = images if isinstance(images, (list, tuple)) else ()
    contents = [image.get("bytes") if isinstance(image, Mapping) else image for image in images]
    return tuple(content if isinstance(content, bytes) else b"" for content in contents)


def read_rows(path: Path, batch_rows: int = BATCH_ROWS) -> Iterator[Row]:
    """Yield the rows of a parquet file, with one row group and one batch in memory at a time."""
    with open_parquet(path) as file:
        for batch in file.iter_batches(batch_rows):
            yield from batch.to_pylist()


class TypeConflictError(ValueError):
    """Two types of one field, `column`, that no type can hold."""

    def __init__(self, column: str, one: pa.DataType, other: pa.DataType) -> None:
        super().__init__(f"{column} is {one} and {other}")
        self.column, self.one, self.other = column, one, other


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with `string` and `list` in place of their large forms."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(item.name, plain_type(item.type)) for item in kind.fields])
    return kind


def value_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the plain type without its fields of type null; None if it has no other fields.

    A dictionary becomes the type of its values.
    """
    if pa.types.is_dictionary(kind):
        return value_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = value_type(kind.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(kind):
        pairs = [(item.name, value_type(item.type)) for item in kind.fields]
        known = [(name, inner) for name, inner in pairs if inner is not None]
        return pa.struct(known) if known else None
    return None if pa.types.is_null(kind) else plain_type(kind)


def union_type(one: pa.DataType, other: pa.DataType, column: str) -> pa.DataType:
    """Return a type with the fields of both, those of `one` first."""
    if one.equals(other):
        return one
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds = {item.name: item.type for item in one.fields}
        for item in other.fields:
            path = f"{column}.{item.name}"
            kinds[item.name] = union_type(kinds.get(item.name, item.type), item.type, path)
        return pa.struct(list(kinds.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(union_type(one.value_type, other.value_type, f"{column}[]"))
    raise TypeConflictError(column, one, other)
