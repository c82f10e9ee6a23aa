"""A few rows of the user's own files, as files of the same schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError, SourceError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: What the template and its marks add to a prompt and to each of its messages, in tokens.
AROUND, PER_MESSAGE = 24, 8


@dataclass(frozen=True)
class RowSample:
    """Rows that were taken.

    Attributes:
        files: one for each file of the user's, so that verl joins what it would join.
        rows: in all.
        longest: the longest prompt, in tokens of one byte.
    """

    files: tuple[Path, ...]
    rows: int
    longest: int


def take_sample(names: Sequence[str], folder: Path, kind: str, rows: int, key: str) -> RowSample:
    """Write rows from all over each file into `folder/<kind>-<i>.parquet`.

    Args:
        names: parquet files.
        folder: exists.
        kind: `train` or `val`.
        rows: in all; each file gives one at least, and what it has at most.
        key: the column of the prompts.

    Raises:
        SourceError: there is no such file, or it cannot be read.
        DataError: a file is not a parquet, or has no rows.
        UsageError: a file is not on this machine, or of another format.
    """
    each = max(1, rows // max(1, len(names)))
    files, taken, longest = [], 0, 0
    for i, name in enumerate(names):
        out = folder / f"{kind}-{i}.parquet"
        for table in _write(_local(name), out, each):
            taken += table.num_rows
            prompts = table.column(key).to_pylist() if key in table.column_names else []
            longest = max([longest, *map(length, prompts)])
        files.append(out)
    return RowSample(tuple(files), taken, longest)


def length(prompt: Any) -> int:
    """How many tokens a prompt is with the tiny tokenizer, or a few more."""
    messages = [prompt] if isinstance(prompt, str) else prompt or []
    return AROUND + sum(PER_MESSAGE + sum(map(_bytes, _texts(message))) for message in messages)


def _texts(message: Any) -> Iterator[str]:
    """All text in a message: its role, its content, the texts of its parts."""
    if isinstance(message, str):
        yield message
    elif isinstance(message, Mapping):
        for value in message.values():
            yield from _texts(value)
    elif isinstance(message, Iterable) and not isinstance(message, bytes):
        for part in message:
            yield from _texts(part)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _local(name: str) -> Path:
    if "://" in name:
        raise UsageError(f"{name}: a rehearsal reads files of this machine; name a local copy.")
    path = Path(name).expanduser()
    if path.suffix != ".parquet":
        raise UsageError(f"{name}: a rehearsal takes its rows from .parquet files.")
    if not path.is_file():
        raise SourceError(f"{name}: no such file.")
    return path


def _write(source: Path, out: Path, rows: int) -> Iterator[pa.Table]:
    """Write evenly spread rows with the file's own schema and metadata; yields them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as file:
            total = file.metadata.num_rows
            if not total:
                raise DataError(f"{source}: no rows; there is nothing to train on.")
            count = min(rows, total)
            wanted = [i * total // count for i in range(count)]
            with pq.ParquetWriter(out, file.schema_arrow) as writer:
                for table in _rows(file, wanted):
                    writer.write_table(table)
                    yield table
    except pa.ArrowInvalid as error:
        raise DataError(f"{source}: cannot be read as parquet: {error}.") from error
    except OSError as error:
        raise SourceError(f"{source}: cannot be read: {error.strerror or error}.") from error


def _rows(file: pq.ParquetFile, wanted: Sequence[int]) -> Iterator[pa.Table]:
    """The rows of these numbers, ascending; groups of rows that have none of them are not read."""
    import pyarrow as pa

    start = 0
    for group in range(file.metadata.num_row_groups):
        end = start + file.metadata.row_group(group).num_rows
        if any(start <= number < end for number in wanted):
            for batch in file.iter_batches(batch_size=1024, row_groups=[group]):
                here = [n - start for n in wanted if start <= n < start + batch.num_rows]
                if here:
                    yield pa.Table.from_batches([batch]).take(here)
                start += batch.num_rows
        start = end
