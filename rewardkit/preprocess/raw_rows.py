"""Read raw rows of parquet, jsonl, JSON, CSV and Arrow files in bounded memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardkit.arrow_types import python_values
from rewardkit.errors import DataError, RewardkitError, unreadable_file
from rewardkit.file_kinds import json_fault, text_fault
from rewardkit.lines import MAX_LINE_BYTES, checked_lines
from rewardkit.preprocess.csv_rows import csv_batches, csv_header
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.preprocess.value_path import value_at_path
from rewardkit.registry import did_you_mean
from rewardkit.row import BATCH_ROWS, open_parquet

RawRow: TypeAlias = dict[str, Any]
NumberedRows: TypeAlias = "Generator[tuple[int, RawRow], None, int]"

#: The byte order mark that some editors write at the start of a UTF-8 file.
BOM = b"\xef\xbb\xbf"

#: Maximum depth of nested brackets in a JSON array.
MAX_DEPTH = 200

#: Rows whose `repeats` columns are compared at once; more rows are faster and need more memory.
_SCAN_ROWS = 32_768

#: Separates the parts of a key; no id or answer contains it.
_SEPARATOR = "\x1f"


@dataclass
class RawRows:
    """The raw rows of files, in order; can be iterated more than once.

    Iterating yields `(index, row)`: the place of the row among all rows, and its columns. A row of
    JSON that lacks a column of the rows before it in its file has a null there.

    Attributes:
        files: parquet, jsonl, json (an array, or lines), csv or arrow files.
        layouts: the columns to read, one sequence for each layout that a file may have.
        repeats: dotted paths. A row that equals an earlier one in all of them is a copy and is
            skipped. A file without one of these columns has no copies.
        read: number of rows that the last iteration has read, copies included.

    Raises:
        DataError: a file is broken or columns are missing; the message says where.
    """

    files: Sequence[Path]
    layouts: Sequence[Sequence[str]]
    repeats: Sequence[str] = ()
    read: int = 0
    _keys: set[str] = field(default_factory=set)
    _layout: Sequence[str] = ()

    def __iter__(self) -> Iterator[tuple[int, RawRow]]:
        self.read = 0
        self._keys.clear()
        for file in self.files:
            start, self._layout = self.read, ()
            rows = READERS[file.suffix.lower()](file, self)
            total = yield from _count_from(rows, start, self)
            self.read = start + total

    def columns(self, where: object, present: Iterable[str]) -> list[str]:
        """Return the columns of the first layout that is present, else of the row before."""
        counts = Counter(iter(present))
        names = set(counts)
        for layout in self.layouts:
            if names.issuperset(layout):
                if repeated := [column for column in layout if counts[column] > 1]:
                    raise DataError(f"{where}: there are several columns {repeated[0]!r}.")
                self._layout = layout
                return list(layout)
        if self._layout:
            return list(self._layout)
        nearest = min(self.layouts, key=lambda layout: len(set(layout) - names))
        absent = [column for column in nearest if column not in names]
        missing = " and no ".join(map(repr, absent))
        columns = ", ".join(sorted(names)) or "nothing"
        near = next(filter(None, (did_you_mean(name, list(names)) for name in absent)), "")
        raise DataError(f"{where}: has no {missing}; it has {columns}.{near}")

    def key_columns(self) -> list[str]:
        """Return the columns that `repeats` lead into."""
        return list(dict.fromkeys(path.partition(".")[0] for path in self.repeats))

    def is_copy(self, raw: Mapping[str, Any]) -> bool:
        """Return whether an earlier row has the same `repeats` values, and remember the values."""
        values = [value_at_path(raw, path) for path in self.repeats]
        if not values or None in values:
            return False
        key = _SEPARATOR.join(str(value) for value in values)
        return self.is_repeated(key)

    def is_repeated(self, key: str | None) -> bool:
        """Return whether a key occurred before, and remember it; None never counts as repeated."""
        if key is None:
            return False
        before = len(self._keys)
        self._keys.add(key)
        return len(self._keys) == before


def _count_from(rows: NumberedRows, start: int, raw_rows: RawRows) -> NumberedRows:
    """Yield the rows of a file, counted from `start`; return the number of rows in the file."""
    while True:
        try:
            place, raw = next(rows)
        except StopIteration as end:
            return int(end.value)
        raw_rows.read = start + place + 1
        yield start + place, raw


def _read_parquet(file: Path, raw_rows: RawRows) -> NumberedRows:
    with open_parquet(file) as parquet:
        columns = raw_rows.columns(file, parquet.schema_arrow.names)
        if raw_rows.repeats and _has_paths(parquet, raw_rows.repeats):
            firsts = _first_rows(parquet, raw_rows)
            for group, places in firsts.items():
                if places:
                    yield from _take(parquet, group, places, columns)
        else:
            batches = parquet.iter_batches(BATCH_ROWS, columns=columns)
            yield from enumerate(row for batch in batches for row in python_values(batch))
        return int(parquet.metadata.num_rows)


def _has_paths(parquet: pq.ParquetFile, paths: Sequence[str]) -> bool:
    leaves = {parquet.schema.column(i).path for i in range(len(parquet.schema))}
    return leaves.issuperset(paths)


def _first_rows(parquet: pq.ParquetFile, raw_rows: RawRows) -> dict[int, list[int]]:
    """Return by row group the places of the rows that are not copies; only the keys are read."""
    firsts: dict[int, list[int]] = {}
    known = pa.array([], pa.string())  # the first keys, which Arrow looks up faster than Python
    place = 0
    for group in range(parquet.num_row_groups):
        firsts[group] = []
        for batch in parquet.iter_batches(
            _SCAN_ROWS, row_groups=[group], columns=list(raw_rows.repeats)
        ):
            keys_and_places = list(_keys(batch, raw_rows.repeats, known))
            new = [at for key, at in keys_and_places if not raw_rows.is_repeated(key)]
            if len(known) < _SCAN_ROWS:
                keys = pa.array([key for key, _ in keys_and_places if key is not None], pa.string())
                known = pa.concat_arrays([known, keys])
            firsts[group] += sorted(place + at for at in new)
            place += batch.num_rows
    return firsts


def _keys(
    batch: pa.RecordBatch, paths: Sequence[str], known: pa.Array
) -> Iterator[tuple[str | None, int]]:
    """Yield the distinct keys of a batch, without `known`, with their first places.

    A row with a null in its key has the key None; each of these rows is yielded.
    """
    parts = [pc.struct_field(batch[p.split(".")[0]], p.split(".")[1:]) for p in paths]
    key = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), _SEPARATOR)
    places = pc.indices_nonzero(pc.invert(pc.is_in(key, value_set=known)))
    key = key.take(places)
    yield from ((None, at) for at in places.filter(key.is_null()).to_pylist())
    table = pa.table({"key": key, "at": places})
    firsts = table.group_by("key", use_threads=False).aggregate([("at", "min")])
    keys_and_places = zip(firsts["key"].to_pylist(), firsts["at_min"].to_pylist(), strict=True)
    yield from ((key, at) for key, at in keys_and_places if key is not None)


def _take(
    parquet: pq.ParquetFile, group: int, places: list[int], columns: list[str]
) -> Iterator[tuple[int, RawRow]]:
    """Yield the rows at those places, which are counted over the file, batch by batch."""
    start = sum(parquet.metadata.row_group(i).num_rows for i in range(group))
    cursor = PlaceCursor(places, start)
    for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns):
        chosen, rows = cursor.take(batch)
        yield from zip(chosen, python_values(rows), strict=True)
        if cursor.is_done():
            return


def _read_arrow(file: Path, raw_rows: RawRows) -> NumberedRows:
    try:
        with pa.memory_map(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
            columns = raw_rows.columns(file, reader.schema.names)
            keys = [name for name in raw_rows.key_columns() if name in reader.schema.names]
            read = list(dict.fromkeys((*columns, *keys)))
            rows = (row for batch in reader for row in python_values(batch.select(read)))
            return (yield from _without_copies(rows, columns, raw_rows))
    except pa.ArrowException as error:
        raise DataError(f"{file}: not a readable Arrow stream ({error})") from error


def _read_csv(file: Path, raw_rows: RawRows) -> NumberedRows:
    """Yield all values as text: the dataset decides which are numbers."""
    try:
        columns = raw_rows.columns(file, csv_header(file))
        reader = csv_batches(file, columns, pa.string())
        rows = (row for batch in reader for row in batch.to_pylist())
        return (yield from _without_copies(rows, columns, raw_rows))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        fault = text_fault(file)
        reason = str(error).splitlines()[0]
        raise DataError(f"{file}: {fault or f'not a readable CSV file ({reason})'}") from error


def _read_json(file: Path, raw_rows: RawRows) -> NumberedRows:
    return (yield from (_read_array if is_json_array(file) else _read_jsonl)(file, raw_rows))


def is_json_array(file: Path) -> bool:
    """Return whether a .json file is an array; many such files have an object on every line."""
    with _open(file) as stream:
        return bool(stream.read(1 << 16).removeprefix(BOM).lstrip().startswith(b"["))


def _read_array(file: Path, raw_rows: RawRows) -> NumberedRows:
    place = -1
    for place, value in enumerate(json_elements(file)):
        if (raw := _new_row(f"{file}: element {place}", value, raw_rows)) is not None:
            yield place, raw
    return place + 1


def json_elements(file: Path) -> Iterator[Any]:
    """Yield the elements of a JSON array, with one in memory at a time.

    Raises:
        DataError: the file is not JSON, not UTF-8, or nested too deep.
    """
    import ijson

    with _open(file) as stream:
        if stream.read(len(BOM)) != BOM:
            stream.seek(0)
        pieces = _LimitedStream(file, stream)
        try:
            for value in _build_elements(file, ijson.basic_parse(pieces, use_float=True)):
                pieces.end_element()
                yield value
        except ijson.JSONError as error:
            message = error.args[0] if error.args else ""
            if isinstance(message, bytes):
                message = message.decode("utf-8", "replace")
            reason = " ".join(str(message).split())[:120]
            place = f"not JSON, or not UTF-8, before byte {stream.tell():,} ({reason})."
            raise DataError(f"{file}: {text_fault(file) or place}") from error


class _LimitedStream:
    """A stream for the parser, which limits the size of an element to that of a line.

    The parser keeps a string in memory until its end.
    """

    def __init__(self, file: Path, stream: Any) -> None:
        self._file, self._stream = file, stream
        self._element = self._size = 0

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        piece: bytes = self._stream.read(size)
        self._size += len(piece)
        if self._size > MAX_LINE_BYTES + size:
            raise DataError(
                f"{self._file}: element {self._element} has more than {MAX_LINE_BYTES:,} bytes. "
                "Leave it out."
            )
        return piece

    def end_element(self) -> None:
        """Start to count the bytes of the next element."""
        self._element, self._size = self._element + 1, 0


def _build_elements(file: Path, events: Iterator[tuple[str, Any]]) -> Iterator[Any]:
    """Yield the elements of an array from parsing events; ijson's own builder has no depth limit."""
    from ijson import ObjectBuilder

    depth, builder = 0, ObjectBuilder()
    for event, value in events:
        opens, closes = event in ("start_array", "start_map"), event in ("end_array", "end_map")
        is_own = (opens and depth == 0) or (closes and depth == 1)  # the array's own brackets
        depth += opens - closes
        if depth > MAX_DEPTH:
            raise DataError(f"{file}: brackets are nested more than {MAX_DEPTH} deep.")
        if is_own:
            continue
        builder.event(event, value)
        if depth == 1:
            yield builder.value
            builder = ObjectBuilder()


def _read_jsonl(file: Path, raw_rows: RawRows) -> NumberedRows:
    place = -1
    for place, (where, line) in enumerate(numbered_lines(file)):
        try:
            value = parse_line(where, line)
        except DataError as error:
            if fault := text_fault(file) or (json_fault(file) if place == 0 else ""):
                raise DataError(f"{where}: {fault}") from error
            raise
        if (raw := _new_row(where, value, raw_rows)) is not None:
            yield place, raw
    return place + 1


def numbered_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file that are not blank, each with its place, such as `rows.jsonl:7`."""
    with _open(file) as lines:
        for number, line in checked_lines(lines, file):
            if line.strip():
                yield f"{file}:{number}", line


def parse_line(where: str, line: bytes) -> Any:
    """Return the JSON value of a line.

    Args:
        where: the place of the line, for the message.
        line: one line of a file.

    Raises:
        DataError: the line is not JSON or not UTF-8.
    """
    try:
        return json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start}).") from error
    except (ValueError, RecursionError) as error:  # also raised for a number with too many digits
        raise DataError(f"{where}: not JSON ({error}).") from error


def _new_row(where: str, row: Any, raw_rows: RawRows) -> RawRow | None:
    """Return the columns of a row; None for a copy of an earlier row."""
    row = as_object(row)
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    columns = raw_rows.columns(where, row)
    return None if raw_rows.is_copy(row) else {column: row.get(column) for column in columns}


def as_object(row: Any) -> Any:
    """Return a row that is a list, such as a conversation, as an object with the column `row`."""
    return {"row": row} if isinstance(row, list) else row


def _without_copies(
    rows: Iterable[RawRow], columns: Sequence[str], raw_rows: RawRows
) -> NumberedRows:
    place = -1
    for place, raw in enumerate(rows):
        if not raw_rows.is_copy(raw):
            yield place, {column: raw[column] for column in columns}
    return place + 1


def _open(file: Path) -> Any:
    try:
        return file.open("rb")
    except RewardkitError:
        raise
    except OSError as error:
        raise unreadable_file(file, error) from error


READERS: Mapping[str, Callable[[Path, RawRows], NumberedRows]] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".arrow": _read_arrow,
}
