"""Reads parquet files in bounded memory: a file of 9 KB may hold 3 GB.

Pages are compressed, and a dictionary stores a value once that thousands of rows repeat. A batch
therefore has fewer rows where rows are large, and a row has the limit of a line of jsonl.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.errors import DataError
from rewardkit.jsonl import MAX_LINE_BYTES

#: Bytes of a batch that are decoded at once, also if each row had the whole dictionary of a column,
#: which has about a megabyte in real files.
MAX_BATCH_BYTES = 1 << 28

#: Bytes that Python needs at least for an item of a list.
ITEM_BYTES = 16

#: A column of more than `MAX_BATCH_BYTES` may stand for this many times its bytes in the file. Text of
#: real data sets stands for 2 to 20 times.
MAX_RATIO = 200

#: The same for the rows of a file: each may have the same long text, such as the schemas of its tools,
#: which a dictionary stores once.
MAX_ROWS_RATIO = 10_000

#: The start of a page that is a dictionary, with its size as a zigzag varint (Thrift's compact form).
_DICTIONARY_PAGE = re.compile(rb"\x15\x04\x15([\x80-\xff]{0,8}[\x00-\x7f])")

_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


class BoundedParquetFile(pq.ParquetFile):  # type: ignore[misc]
    """A parquet file whose `iter_batches` yields batches of bounded size."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    def iter_batches(
        self,
        batch_size: int,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows in order, in batches of at most `batch_size`, with one row group in memory.

        The method of pyarrow holds all row groups, and with them the images of all rows.
        """
        groups = list(range(self.num_row_groups) if row_groups is None else row_groups)
        row = sum(self.metadata.row_group(g).num_rows for g in range(min(groups, default=0)))
        read = super().iter_batches
        batches = (
            batch
            for group in groups
            for batch in read(
                min(batch_size, self._rows_in_bounds(group, columns)),
                row_groups=[group],
                columns=columns,
            )
        )
        return bounded_slices(self._path, batches, row)

    def _rows_in_bounds(self, group: int, columns: Sequence[str] | None) -> int:
        """Return how many rows of a row group are decoded at once."""
        chunks, total, limit = self.metadata.row_group(group), 1, MAX_BATCH_BYTES
        for chunk in map(chunks.column, range(chunks.num_columns)):
            path = chunk.path_in_schema
            if columns is not None and not any(f"{path}.".startswith(f"{c}.") for c in columns):
                continue
            items = max(0, chunk.num_values - chunks.num_rows)
            size: int = chunk.total_uncompressed_size + ITEM_BYTES * items
            if size > max(MAX_BATCH_BYTES, MAX_RATIO * chunk.total_compressed_size):
                raise DataError(
                    f"{self._path}: row group {group}, column {path}: "
                    f"{chunk.total_compressed_size:,} bytes stand for {size:,}. Leave it out, or "
                    "write the file in smaller row groups."
                )
            total += size
            limit = min(limit, MAX_BATCH_BYTES // max(1, self._largest_repeated_value(chunk)))
        return max(1, min(limit, MAX_BATCH_BYTES * int(chunks.num_rows) // total))

    def _largest_repeated_value(self, chunk: Any) -> int:
        """Return the most bytes of a value that a column stores once for many rows."""
        size: int = chunk.total_uncompressed_size
        if "BYTE_ARRAY" not in chunk.physical_type or chunk.num_values * size <= MAX_BATCH_BYTES:
            return 0
        if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
            return size if "DELTA_BYTE_ARRAY" in chunk.encodings else 0
        with self._path.open("rb") as file:
            file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
            header = _DICTIONARY_PAGE.match(file.read(16))
        if header is None:
            return size
        zigzag: int = sum((byte & 127) << 7 * i for i, byte in enumerate(header[1]))
        return zigzag >> 1


def bounded_slices(
    path: Path, batches: Iterable[pa.RecordBatch], row: int = 0
) -> Iterator[pa.RecordBatch]:
    """Yield batches in parts that are not larger than a row may be; `row` is the first row."""
    # half, so that the first batch of a parquet that explodes is refused before its rows are used
    limit, total = max(MAX_BATCH_BYTES // 2, MAX_ROWS_RATIO * path.stat().st_size), 0
    for batch in batches:
        size = _bytes_of(batch)
        total, row = total + size, row + batch.num_rows
        if total > limit:
            raise DataError(
                f"{path}: the rows up to row {row - 1} stand for {total:,} bytes, but the file has "
                f"{path.stat().st_size:,}. Leave out the large values that many rows repeat."
            )
        yield from _halves(path, batch, size, row - batch.num_rows)


def _halves(path: Path, batch: pa.RecordBatch, size: int, row: int) -> Iterator[pa.RecordBatch]:
    if size <= MAX_LINE_BYTES:
        yield batch
    elif batch.num_rows == 1:
        raise DataError(
            f"{path}: row {row} has {size:,} bytes, more than the limit of {MAX_LINE_BYTES:,}. "
            "Leave it out."
        )
    else:
        half = batch.num_rows // 2
        for start, part in ((0, batch.slice(0, half)), (half, batch.slice(half))):
            yield from _halves(path, part, _bytes_of(part), row + start)


def _bytes_of(batch: pa.RecordBatch) -> int:
    return sum(map(_python_bytes, batch.columns))


def _python_bytes(array: pa.Array) -> int:
    """Return the bytes of the values of an array, about as Python holds them."""
    kind = array.type
    if pa.types.is_dictionary(kind) and any(is_text(kind.value_type) for is_text in _TEXTS):
        lengths = pc.binary_length(array.dictionary).take(array.indices)
        return int(pc.sum(lengths).as_py() or 0) + ITEM_BYTES * len(array)
    if pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type):
        values = (array.dictionary.slice(i, 1) for i in range(len(array.dictionary)))
        sizes = pa.array(map(_python_bytes, values), pa.int64()).take(array.indices)
        return int(pc.sum(sizes).as_py() or 0) + ITEM_BYTES * len(array)
    if pa.types.is_struct(kind):
        return sum(map(_python_bytes, array.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ITEM_BYTES * len(array) + _python_bytes(array.flatten())
    return int(array.nbytes) + ITEM_BYTES * len(array)
