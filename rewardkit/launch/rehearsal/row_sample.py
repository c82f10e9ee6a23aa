"""A sample of the rows of the user's files, written to files of the same schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardkit.errors import DataError, SourceError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Data sources of a file that each get a row.
MAX_SOURCES = 64

#: Tokens that the template and its marks add to a prompt, and to each of its messages.
PROMPT_TOKENS, MESSAGE_TOKENS = 24, 8


@dataclass(frozen=True)
class RowSample:
    """A sample of rows in files.

    Attributes:
        files: one for each of the user's files, so that verl joins as many.
        rows: rows of all files.
        longest: the longest prompt, in tokens of one byte, without its pictures.
        has_pictures: whether a row has pictures.
    """

    files: tuple[Path, ...]
    rows: int
    longest: int
    has_pictures: bool = False


@dataclass(frozen=True)
class Columns:
    """The names of the columns that a sample is measured by.

    Attributes:
        prompt: the column of prompts.
        source: the column of data sources.
        pictures: the column of pictures.
        videos: the column of videos.
    """

    prompt: str = "prompt"
    source: str = "data_source"
    pictures: str = "images"
    videos: str = "videos"


def take_sample(
    names: Sequence[str], folder: Path, kind: str, rows: int, columns: Columns, steps: int = 1
) -> RowSample:
    """Write rows of each file to `folder/<kind>-<i>.parquet`.

    The rows have the longest prompt, the longest gold and each data source of the file; the others
    are evenly spread.

    Args:
        names: parquet files.
        folder: an existing folder.
        kind: `train` or `val`.
        rows: rows of all files together; more if those rows are more.
        columns: the names of the columns.
        steps: each file gives a multiple of this number, or all of its rows.

    Raises:
        SourceError: a file does not exist or cannot be read.
        DataError: a file is not parquet, or has no rows.
        UsageError: a file is on another machine, has another format, or has videos.
    """
    each = -(-rows // (len(names) * steps)) * steps
    files, count, longest, has_pictures = [], 0, 0, False
    for i, name in enumerate(names):
        out = folder / f"{kind}-{i}.parquet"
        for table in _write(_local(name), out, each, columns, steps):
            count += table.num_rows
            longest = max([longest, *map(prompt_tokens, _values(table, columns.prompt))])
            has_pictures = has_pictures or any(_values(table, columns.pictures))
            if any(_values(table, columns.videos)):
                raise UsageError(
                    f"{name}: rows with videos (column {columns.videos}) cannot be rehearsed."
                )
        files.append(out)
    return RowSample(tuple(files), count, longest, has_pictures)


def _values(table: pa.Table, column: str) -> list[Any]:
    values: list[Any] = table.column(column).to_pylist() if column in table.column_names else []
    return values


def prompt_tokens(prompt: Any) -> int:
    """Return an upper bound of the tokens of a prompt with the byte tokenizer."""
    messages = [prompt] if isinstance(prompt, str) else prompt or []
    return PROMPT_TOKENS + sum(
        MESSAGE_TOKENS + sum(map(_bytes, _texts(message))) for message in messages
    )


def _texts(message: Any) -> Iterator[str]:
    """Yield all text in a message: its role, its content, the texts of its parts."""
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
        raise UsageError(f"{name}: a rehearsal reads rows from .parquet files only.")
    if not path.is_file():
        raise SourceError(f"{name}: no such file.")
    return path


def _write(source: Path, out: Path, rows: int, columns: Columns, steps: int) -> Iterator[pa.Table]:
    """Write rows with the file's own schema and metadata, and yield them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source) as file:
            total = file.metadata.num_rows
            if not total:
                raise DataError(f"{source}: no rows to train on.")
            special = _special_rows(file, columns)
            count = min(total, max(rows, -(-len(special) // steps) * steps)) - len(special)
            others = [number for number in range(total) if number not in special]
            numbers = special.union(others[i * len(others) // count] for i in range(count))
            with pq.ParquetWriter(out, file.schema_arrow) as writer:
                for table in _rows(file, sorted(numbers)):
                    writer.write_table(table)
                    yield table
    except pa.ArrowInvalid as error:
        raise DataError(f"{source}: cannot be read as parquet: {error}.") from error
    except OSError as error:
        raise SourceError(f"{source}: cannot be read: {error.strerror or error}.") from error


def _special_rows(file: pq.ParquetFile, columns: Columns) -> set[int]:
    """Return the rows with the longest prompt, the longest gold, and the first of each source."""
    names = {columns.prompt, columns.source, "reward_model"} & {*file.schema_arrow.names}
    longest, sources, number = {"prompt": (-1, 0), "gold": (-1, 0)}, dict[str, int](), 0
    for batch in file.iter_batches(1024, columns=sorted(names)):
        for row in batch.to_pylist():
            reward = row.get("reward_model")
            gold = reward.get("ground_truth") if isinstance(reward, Mapping) else None
            sizes = {"prompt": prompt_tokens(row.get(columns.prompt)), "gold": len(str(gold))}
            for name, size in sizes.items():
                longest[name] = max(longest[name], (size, -number))
            if len(sources) < MAX_SOURCES:
                sources.setdefault(str(row.get(columns.source)), number)
            number += 1
    return {*sources.values(), *(-place for _, place in longest.values())}


def _rows(file: pq.ParquetFile, numbers: Sequence[int]) -> Iterator[pa.Table]:
    """Yield the rows with these numbers, which ascend; row groups without any are not read."""
    import pyarrow as pa

    start = 0
    for group in range(file.metadata.num_row_groups):
        end = start + file.metadata.row_group(group).num_rows
        if any(start <= number < end for number in numbers):
            for batch in file.iter_batches(batch_size=1024, row_groups=[group]):
                here = [n - start for n in numbers if start <= n < start + batch.num_rows]
                if here:
                    yield pa.Table.from_batches([batch]).take(here)
                start += batch.num_rows
        start = end
