"""`OUT.dropped.jsonl`: the rows that were dropped, complete and with the reasons.

`RawRows` reads only the columns that a dataset needs, because the others may be large. The few rows
that are dropped are read again with all their columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from rewardkit.output import atomic, json_value, require_absent
from rewardkit.preprocess.csv_rows import csv_batches, csv_header, text_of_broken_row
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.preprocess.raw_rows import (
    RawRow,
    as_object,
    is_json_array,
    json_elements,
    numbered_lines,
    parse_line,
)
from rewardkit.row import open_parquet, python_rows

#: Smaller than `BATCH_ROWS`: columns that no dataset needs may be large.
_BATCH_ROWS = 256


class BrokenRow(dict[str, Any]):
    """The `text` of a row of a CSV file that does not fit the header."""


def dropped_path(out: Path) -> Path:
    """Return the path of the rows that were dropped on the way to `out`."""
    return out.with_name(f"{out.name}.dropped.jsonl")


@contextmanager
def atomic_with_dropped(out: Path, *, overwrite: bool) -> Iterator[tuple[Path, Path]]:
    """Yield temporary files for `out` and for its dropped rows; see `output.atomic`.

    The dropped rows get their name first. So an output of a killed run is complete, and dropped rows
    without an output are not a result: the next run replaces them.
    """
    with (
        atomic(out, overwrite=overwrite) as temporary,
        atomic(dropped_path(out), overwrite=True) as rejects,
    ):
        yield temporary, rejects
        require_absent(out, overwrite=overwrite)  # another run may have written both meanwhile


def dropped_line(index: int, reasons: list[str], row: Mapping[str, Any]) -> str:
    """Return a line of `OUT.dropped.jsonl`: the row's place, the reasons and the row itself."""
    entry = json_value({"index": index, "reasons": reasons, "row": row})
    line = json.dumps(entry, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a lone surrogate
        line = json.dumps(entry)
    return f"{line}\n"


def full_rows(files: Sequence[Path], places: Iterable[int]) -> Iterator[RawRow]:
    """Yield the rows at `places` with all their columns.

    Args:
        files: the files of a split, in the order in which `RawRows` reads them.
        places: ascending; rows are counted over all files, as `RawRows` does.

    Raises:
        DataError: a file cannot be read.
    """
    cursor = PlaceCursor(places)
    for file in files:
        if not cursor.is_done():
            yield from _READERS[file.suffix.lower()](file, cursor)


def _read_parquet(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    with open_parquet(file) as parquet:
        for group in range(parquet.num_row_groups):
            size = parquet.metadata.row_group(group).num_rows
            if cursor.has_next_within(size):
                yield from _read_batches(parquet.iter_batches(_BATCH_ROWS, [group]), cursor)
            else:
                cursor.advance(size)


def _read_arrow(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    with pa.memory_map(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
        yield from _read_batches(reader, cursor)


def _read_csv(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    """Yield values as text; bytes that are not UTF-8, in a column nobody reads, are escaped."""
    for batch in csv_batches(file, csv_header(file), pa.binary()):
        text = text_of_broken_row(batch)
        for row in _read_batches([batch], cursor):
            yield (
                {name: value.decode("utf-8", "backslashreplace") for name, value in row.items()}
                if text is None
                else BrokenRow(text=text)
            )


def _read_batches(batches: Iterable[pa.RecordBatch], cursor: PlaceCursor) -> Iterator[RawRow]:
    for batch in batches:
        _, rows = cursor.take(batch)
        yield from python_rows(rows)


def _read_json(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    return (_read_array if is_json_array(file) else _read_jsonl)(file, cursor)


def _read_array(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    for value in json_elements(file):
        if cursor.advance(1):
            yield as_object(value)
        if cursor.is_done():
            return


def _read_jsonl(file: Path, cursor: PlaceCursor) -> Iterator[RawRow]:
    for where, line in numbered_lines(file):
        if cursor.advance(1):
            yield as_object(parse_line(where, line))
        if cursor.is_done():
            return


_READERS: Mapping[str, Callable[[Path, PlaceCursor], Iterator[Any]]] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".arrow": _read_arrow,
}
