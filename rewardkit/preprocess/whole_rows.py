"""Whole raw rows at given places, to keep what is dropped as the source has it.

`RawRows` reads the columns that a dataset needs; others may be large. The few rows that are dropped
are read again with all of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from rewardkit.preprocess.read import (
    CSV_LAYOUT,
    Raw,
    as_object,
    elements,
    is_array,
    numbered_lines,
    parse_line,
)
from rewardkit.row import open_parquet, python_rows

#: Fewer than elsewhere: the columns that no dataset needs may be large.
_BATCH_ROWS = 256


class _Places:
    """Places that are wanted, in ascending order, and how far the rows have been read."""

    def __init__(self, places: Iterable[int]) -> None:
        self._left = iter(places)
        self._wanted = next(self._left, None)
        self._start = 0

    def are_done(self) -> bool:
        return self._wanted is None

    def are_within(self, size: int) -> bool:
        return self._wanted is not None and self._wanted < self._start + size

    def take(self, size: int) -> list[int]:
        """Which of the next `size` rows are wanted, counted from the first of them; moves on."""
        chosen = []
        while self._wanted is not None and self._wanted < self._start + size:
            chosen.append(self._wanted - self._start)
            self._wanted = next(self._left, None)
        self._start += size
        return chosen


def whole_rows(files: Sequence[Path], places: Iterable[int]) -> Iterator[Raw]:
    """The rows at `places`, which ascend and count rows as `RawRows` does, with all their columns.

    Raises:
        DataError: a file cannot be read.
    """
    wanted = _Places(places)
    for file in files:
        if not wanted.are_done():
            yield from _READERS[file.suffix.lower()](file, wanted)


def _of_parquet(file: Path, places: _Places) -> Iterator[Raw]:
    with open_parquet(file) as parquet:
        for group in range(parquet.num_row_groups):
            size = parquet.metadata.row_group(group).num_rows
            if places.are_within(size):
                yield from _of_batches(parquet.iter_batches(_BATCH_ROWS, [group]), places)
            else:
                places.take(size)


def _of_arrow(file: Path, places: _Places) -> Iterator[Raw]:
    with pa.memory_map(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
        yield from _of_batches(reader, places)


def _of_csv(file: Path, places: _Places) -> Iterator[Raw]:
    """Values as text; what is not UTF-8 in a column that nobody asked for is escaped."""
    with file.open("rb") as head:
        header = pa.csv.open_csv(head, parse_options=CSV_LAYOUT).schema.names
    convert = pa.csv.ConvertOptions(column_types={name: pa.binary() for name in header})
    batches = pa.csv.open_csv(file, parse_options=CSV_LAYOUT, convert_options=convert)
    for row in _of_batches(batches, places):
        yield {name: value.decode("utf-8", "backslashreplace") for name, value in row.items()}


def _of_batches(batches: Iterable[pa.RecordBatch], places: _Places) -> Iterator[Raw]:
    for batch in batches:
        chosen = places.take(batch.num_rows)
        yield from python_rows(batch.take(pa.array(chosen, pa.int64())))


def _of_json(file: Path, places: _Places) -> Iterator[Raw]:
    return (_of_array if is_array(file) else _of_jsonl)(file, places)


def _of_array(file: Path, places: _Places) -> Iterator[Raw]:
    for value in elements(file):
        if places.take(1):
            yield as_object(value)
        if places.are_done():
            return


def _of_jsonl(file: Path, places: _Places) -> Iterator[Raw]:
    for where, line in numbered_lines(file):
        if places.take(1):
            yield as_object(parse_line(where, line))
        if places.are_done():
            return


_READERS: Mapping[str, Callable[[Path, _Places], Iterator[Any]]] = {
    ".parquet": _of_parquet,
    ".jsonl": _of_jsonl,
    ".ndjson": _of_jsonl,
    ".json": _of_json,
    ".csv": _of_csv,
    ".arrow": _of_arrow,
}
