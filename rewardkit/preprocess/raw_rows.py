"""RawRow rows of parquet, jsonl, JSON, CSV and Arrow files, in bounded memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from rewardkit.errors import DataError, RewardkitError
from rewardkit.lines import MAX_LINE_BYTES, checked_lines
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.row import BATCH_ROWS, open_parquet

RawRow: TypeAlias = dict[str, Any]
NumberedRows: TypeAlias = "Generator[tuple[int, RawRow], None, int]"

#: What some editors put before UTF-8.
BOM = b"\xef\xbb\xbf"

#: How deep an element of a JSON array may be nested.
MAX_DEPTH = 200

#: Rows whose `repeats` columns are looked at together; more is faster and takes more memory.
_SCAN_ROWS = 32_768

#: Quoted values of a CSV file may have line breaks.
CSV_LAYOUT = pa.csv.ParseOptions(newlines_in_values=True)

#: Between the parts of a key; no id or answer has it in it.
_SEPARATOR = "\x1f"


@dataclass
class RawRows:
    """The raw rows of some files, in order; can be iterated more than once.

    Attributes:
        files: parquet, jsonl, json (an array, or lines), csv or arrow.
        encodings: the columns wanted, one sequence for each encoding a file may have.
        repeats: dotted paths; a row that equals an earlier one in all of them is a copy of it and
            left out. A file that lacks one of them has no copies.
        read: how many rows the last iteration has gone through, copies included.

    Iterating yields `(index, row)`: the place of the row among all of them, and its columns.

    Raises:
        DataError: a file is broken, or lacks columns; the message says where.
    """

    files: Sequence[Path]
    encodings: Sequence[Sequence[str]]
    repeats: Sequence[str] = ()
    read: int = 0
    _seen: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[tuple[int, RawRow]]:
        self.read = 0
        self._seen.clear()
        for file in self.files:
            start = self.read
            rows = READERS[file.suffix.lower()](file, self)
            total = yield from _shifted(rows, start, self)
            self.read = start + total

    def columns(self, where: object, present: Iterable[str]) -> list[str]:
        """The first encoding that is present."""
        counts = Counter(iter(present))
        names = set(counts)
        for encoding in self.encodings:
            if names.issuperset(encoding):
                if twice := [column for column in encoding if counts[column] > 1]:
                    raise DataError(f"{where}: the column {twice[0]!r} is there several times.")
                return list(encoding)
        nearest = min(self.encodings, key=lambda encoding: len(set(encoding) - names))
        missing = " and no ".join(repr(c) for c in nearest if c not in names)
        has = ", ".join(sorted(names)) or "nothing"
        raise DataError(f"{where}: has no {missing}; it has {has}.")

    def key_columns(self) -> list[str]:
        """The columns that `repeats` lead into."""
        return list(dict.fromkeys(path.partition(".")[0] for path in self.repeats))

    def is_copy(self, raw: Mapping[str, Any]) -> bool:
        """Whether an earlier row has the same values in the `repeats` columns; remembers them."""
        values = [value_at_path(raw, path) for path in self.repeats]
        if not values or None in values:
            return False
        key = _SEPARATOR.join(str(value) for value in values)
        return self.is_seen(key)

    def is_seen(self, key: str | None) -> bool:
        """Whether a key occurred before; remembers it. A row with a null in its key never did."""
        if key is None:
            return False
        before = len(self._seen)
        self._seen.add(key)
        return len(self._seen) == before


def value_at_path(value: Any, path: str) -> Any:
    """What a dotted path leads to (`extra_info.index`, `row.0.value`), None if nothing."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _shifted(rows: NumberedRows, start: int, total: RawRows) -> NumberedRows:
    """The rows of a file, counted from `start`; returns how many the file has."""
    while True:
        try:
            place, raw = next(rows)
        except StopIteration as end:
            return int(end.value)
        total.read = start + place + 1
        yield start + place, raw


def _read_parquet(file: Path, wanted: RawRows) -> NumberedRows:
    with open_parquet(file) as parquet:
        columns = wanted.columns(file, parquet.schema_arrow.names)
        if wanted.repeats and _has_paths(parquet, wanted.repeats):
            firsts = _first_rows(parquet, wanted)
            for group, places in firsts.items():
                if places:
                    yield from _take(parquet, group, places, columns)
        else:
            batches = parquet.iter_batches(BATCH_ROWS, columns=columns)
            yield from enumerate(row for batch in batches for row in batch.to_pylist())
        return int(parquet.metadata.num_rows)


def _has_paths(parquet: pq.ParquetFile, paths: Sequence[str]) -> bool:
    leaves = {parquet.schema.column(i).path for i in range(len(parquet.schema))}
    return leaves.issuperset(paths)


def _first_rows(parquet: pq.ParquetFile, wanted: RawRows) -> dict[int, list[int]]:
    """By row group, the places of rows that copy no earlier one; only their keys are read."""
    firsts: dict[int, list[int]] = {}
    known = pa.array([], pa.string())  # the first keys: looked up in Arrow, not in Python
    place = 0
    for group in range(parquet.num_row_groups):
        firsts[group] = []
        for batch in parquet.iter_batches(
            _SCAN_ROWS, row_groups=[group], columns=list(wanted.repeats)
        ):
            found = list(_keys(batch, wanted.repeats, known))
            new = [at for key, at in found if not wanted.is_seen(key)]
            if len(known) < _SCAN_ROWS:
                keys = pa.array([key for key, _ in found if key is not None], pa.string())
                known = pa.concat_arrays([known, keys])
            firsts[group] += sorted(place + at for at in new)
            place += batch.num_rows
    return firsts


def _keys(
    batch: pa.RecordBatch, paths: Sequence[str], known: pa.Array
) -> Iterator[tuple[str | None, int]]:
    """The distinct keys of a batch but for `known`, each with its first place; all without one."""
    parts = [pc.struct_field(batch[p.split(".")[0]], p.split(".")[1:]) for p in paths]
    key = pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), _SEPARATOR)
    places = pc.indices_nonzero(pc.invert(pc.is_in(key, value_set=known)))
    key = key.take(places)
    yield from ((None, at) for at in places.filter(key.is_null()).to_pylist())
    table = pa.table({"key": key, "at": places})
    firsts = table.group_by("key", use_threads=False).aggregate([("at", "min")])
    found = zip(firsts["key"].to_pylist(), firsts["at_min"].to_pylist(), strict=True)
    yield from ((key, at) for key, at in found if key is not None)


def _take(
    parquet: pq.ParquetFile, group: int, places: list[int], columns: list[str]
) -> Iterator[tuple[int, RawRow]]:
    """Yield the rows at those places, which are counted over the file, batch by batch."""
    start = sum(parquet.metadata.row_group(i).num_rows for i in range(group))
    cursor = PlaceCursor(places, start)
    for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns):
        chosen, rows = cursor.take(batch)
        yield from zip(chosen, rows.to_pylist(), strict=True)
        if cursor.is_done():
            return


def _read_arrow(file: Path, wanted: RawRows) -> NumberedRows:
    try:
        with pa.memory_map(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
            columns = wanted.columns(file, reader.schema.names)
            keys = [name for name in wanted.key_columns() if name in reader.schema.names]
            read = list(dict.fromkeys((*columns, *keys)))
            rows = (row for batch in reader for row in batch.select(read).to_pylist())
            return (yield from _without_copies(rows, columns, wanted))
    except pa.ArrowException as error:
        raise DataError(f"{file}: not a readable Arrow stream ({error})") from error


def _read_csv(file: Path, wanted: RawRows) -> NumberedRows:
    """Every value as text: what is a number is for the dataset to say."""
    try:
        with file.open("rb") as head:
            header = pa.csv.open_csv(head, parse_options=CSV_LAYOUT).schema.names
        columns = wanted.columns(file, header)
        reader = pa.csv.open_csv(
            file,
            parse_options=CSV_LAYOUT,
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in header},
                include_columns=columns,
                strings_can_be_null=False,
            ),
        )
        rows = (row for batch in reader for row in batch.to_pylist())
        return (yield from _without_copies(rows, columns, wanted))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file}: not a readable CSV file ({reason})") from error


def _read_json(file: Path, wanted: RawRows) -> NumberedRows:
    return (yield from (_read_array if is_json_array(file) else _read_jsonl)(file, wanted))


def is_json_array(file: Path) -> bool:
    """Whether a .json file is an array; many are called so with an object on every line."""
    with _open(file) as stream:
        return bool(stream.read(1 << 16).removeprefix(BOM).lstrip().startswith(b"["))


def _read_array(file: Path, wanted: RawRows) -> NumberedRows:
    place = -1
    for place, value in enumerate(json_elements(file)):
        if (raw := _new_row(f"{file}: element {place}", value, wanted)) is not None:
            yield place, raw
    return place + 1


def json_elements(file: Path) -> Iterator[Any]:
    """The elements of a JSON array, one in memory at a time.

    Raises:
        DataError: it is not JSON, not UTF-8, or nested too deep.
    """
    import ijson

    with _open(file) as stream:
        if stream.read(len(BOM)) != BOM:
            stream.seek(0)
        pieces = _Pieces(file, stream)
        try:
            for value in _built(file, ijson.basic_parse(pieces, use_float=True)):
                pieces.end_element()
                yield value
        except ijson.JSONError as error:
            said = error.args[0] if error.args else ""
            said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            reason = " ".join(said.split())[:120]
            raise DataError(
                f"{file}: not JSON, or not UTF-8, before byte {stream.tell():,} ({reason})."
            ) from error


class _Pieces:
    """A file for the parser, which holds a text until its end: no element may exceed a line."""

    def __init__(self, file: Path, stream: Any) -> None:
        self._file, self._stream = file, stream
        self._element = self._size = 0

    def read(self, size: int) -> bytes:
        """Up to `size` bytes."""
        piece: bytes = self._stream.read(size)
        self._size += len(piece)
        if self._size > MAX_LINE_BYTES + size:
            raise DataError(
                f"{self._file}: element {self._element} has more than {MAX_LINE_BYTES:,} bytes; "
                "leave it out."
            )
        return piece

    def end_element(self) -> None:
        """Count anew."""
        self._element, self._size = self._element + 1, 0


def _built(file: Path, events: Iterator[tuple[str, Any]]) -> Iterator[Any]:
    """The elements of the one array that parsing events are; ijson's own way of it has no depth."""
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


def _read_jsonl(file: Path, wanted: RawRows) -> NumberedRows:
    place = -1
    for place, (where, line) in enumerate(numbered_lines(file)):
        if (raw := _new_row(where, parse_line(where, line), wanted)) is not None:
            yield place, raw
    return place + 1


def numbered_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a file that are not blank, each with where it is: `rows.jsonl:7`."""
    with _open(file) as lines:
        for number, line in checked_lines(lines, file):
            if line.strip():
                yield f"{file}:{number}", line


def parse_line(where: str, line: bytes) -> Any:
    """The JSON value of a line.

    Raises:
        DataError: it is not JSON, or not UTF-8; the message says `where`.
    """
    try:
        return json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start}).") from error
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise DataError(f"{where}: not JSON ({error}).") from error


def _new_row(where: str, row: Any, wanted: RawRows) -> RawRow | None:
    """The columns of a row, None of a copy."""
    row = as_object(row)
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    columns = wanted.columns(where, row)
    return None if wanted.is_copy(row) else {column: row[column] for column in columns}


def as_object(row: Any) -> Any:
    """A row that is a list, such as a conversation, as the one column `row`; others as they are."""
    return {"row": row} if isinstance(row, list) else row


def _without_copies(
    rows: Iterable[RawRow], columns: Sequence[str], wanted: RawRows
) -> NumberedRows:
    place = -1
    for place, raw in enumerate(rows):
        if not wanted.is_copy(raw):
            yield place, {column: raw[column] for column in columns}
    return place + 1


def _open(file: Path) -> Any:
    try:
        return file.open("rb")
    except RewardkitError:
        raise
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}.") from error


READERS: Mapping[str, Callable[[Path, RawRows], NumberedRows]] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".arrow": _read_arrow,
}
