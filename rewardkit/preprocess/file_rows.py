"""Read the rows of a file in any format that data come in, in bounded memory.

Parquet; Arrow, as a stream (`datasets`) or a file (`pyarrow.feather`); CSV with any separator; JSON
Lines; and JSON: an array of rows, or an object with a list for each column. Text may be compressed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from rewardkit.arrow_types import python_values
from rewardkit.errors import DataError, RewardkitError, unreadable_file
from rewardkit.file_kinds import COMPRESSIONS, json_fault, row_suffix, table_kind, text_fault
from rewardkit.lines import MAX_LINE_BYTES, checked_lines
from rewardkit.parquet_file import bounded_slices
from rewardkit.preprocess.csv_rows import csv_batches, csv_header, text_of_broken_row
from rewardkit.preprocess.place_cursor import PlaceCursor
from rewardkit.row import BATCH_ROWS, open_parquet, python_rows

RawRow: TypeAlias = dict[str, Any]

#: Returns the columns to read, given the file and the names of its columns.
ChooseColumns: TypeAlias = "Callable[[object, Iterable[str]], Sequence[str]]"

#: The byte order mark that some editors write at the start of a UTF-8 file.
BOM = b"\xef\xbb\xbf"

#: Maximum depth of nested brackets in a JSON array.
MAX_DEPTH = 200

#: Rows of a parquet that are read at once if few are wanted: with columns that may be large.
_FEW_ROWS = 256


class BrokenRow(dict[str, Any]):
    """The `text` of a row of a CSV file that does not fit the header."""


def rows_in(
    file: Path, choose: ChooseColumns | None = None, cursor: PlaceCursor | None = None
) -> Iterator[tuple[str, RawRow]]:
    """Yield the rows of a file in order, each with its place for messages (`rows.jsonl:7`).

    Args:
        file: a file whose `row_suffix` is in `READERS`.
        choose: chooses the columns of a table; None for all. A row of JSON has all its columns.
        cursor: the places of the wanted rows; None for all rows.

    Raises:
        SourceError: the file cannot be opened.
        DataError: the file is broken; the message says where.
    """
    try:
        yield from READERS[row_suffix(file)](file, choose, cursor)
    except RewardkitError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable_file(file, error) from error
        reason = str(error).partition("\n")[0]
        fault = _text_fault(file) or f"not a readable {table_kind(file, b'')} file ({reason})"
        raise DataError(f"{file}: {fault}") from error


def _read_parquet(
    file: Path, choose: ChooseColumns | None, cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    with open_parquet(file) as parquet:
        columns = list(choose(file, parquet.schema_arrow.names)) if choose else None
        if cursor is None:
            yield from _rows(file, parquet.iter_batches(BATCH_ROWS, columns=columns), None)
            return
        for group in range(parquet.num_row_groups):
            size = parquet.metadata.row_group(group).num_rows
            if cursor.has_next_within(size):
                batches = parquet.iter_batches(_FEW_ROWS, [group], columns=columns)
                yield from _rows(file, batches, cursor)
            else:
                cursor.advance(size)


def _read_arrow(
    file: Path, choose: ChooseColumns | None, cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    with pa.memory_map(str(file)) as source:
        is_stream = source.read(6) != b"ARROW1"
        source.seek(0)
        reader = (pa.ipc.open_stream if is_stream else pa.ipc.open_file)(source)
        names = reader.schema.names
        columns = list(choose(file, names)) if choose else names
        numbers = range(0 if is_stream else reader.num_record_batches)
        batches = reader if is_stream else map(reader.get_batch, numbers)
        validated = (_validated(batch.select(columns)) for batch in batches)
        yield from _rows(file, (piece for piece, _ in bounded_slices(file, validated)), cursor)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose offsets lie in its buffers: Arrow reads the others from any memory."""
    batch.validate(full=True)
    return batch


def _read_csv(
    file: Path, choose: ChooseColumns | None, cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    """Yield all values as text: the dataset decides which are numbers.

    In a row with all its columns, bytes that are not UTF-8 are escaped.
    """
    names = csv_header(file)
    if choose:
        yield from _rows(file, csv_batches(file, choose(file, names), pa.string()), cursor)
        return
    for batch in csv_batches(file, names, pa.binary()):
        text = text_of_broken_row(batch)
        for where, row in _rows(file, [batch], cursor):
            yield (
                where,
                {name: value.decode("utf-8", "backslashreplace") for name, value in row.items()}
                if text is None
                else BrokenRow(text=text),
            )
        if cursor and cursor.is_done():
            return


def _rows(
    file: Path, batches: Iterable[pa.RecordBatch], cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    where = str(file)
    for batch in batches:
        for row in _python_rows(batch if cursor is None else cursor.take(batch)[1]):
            yield where, row
        if cursor and cursor.is_done():
            return


def _python_rows(batch: pa.RecordBatch) -> list[RawRow]:
    try:
        return python_values(batch)
    except (ValueError, pa.ArrowException):  # a type without a Python one, such as nanoseconds
        return python_rows(batch)


def _read_json(
    file: Path, _: ChooseColumns | None, cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    if _is_array(file):
        elements = enumerate(_json_elements(file))
        values = ((f"{file}: element {place}", value) for place, value in elements)
    elif columns := _json_columns(file):
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        values = ((f"{file}: row {place}", row) for place, row in enumerate(rows))
    else:
        yield from _read_jsonl(file, None, cursor)
        return
    for where, value in values:
        if cursor is None or cursor.advance(1):
            yield where, _as_object(where, value)
        if cursor and cursor.is_done():
            return


def _read_jsonl(
    file: Path, _: ChooseColumns | None, cursor: PlaceCursor | None
) -> Iterator[tuple[str, RawRow]]:
    for place, (where, line) in enumerate(_numbered_lines(file)):
        if cursor is None or cursor.advance(1):
            try:
                value = _parse_line(where, line)
            except DataError as error:
                if fault := _text_fault(file) or (json_fault(file) if place == 0 else ""):
                    raise DataError(f"{where}: {fault}") from error
                raise
            yield where, _as_object(where, value)
        if cursor and cursor.is_done():
            return


def _as_object(where: str, row: Any) -> RawRow:
    """Return a row; one that is a list, such as a conversation, as an object with the column `row`."""
    if isinstance(row, list):
        return {"row": row}
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    return row


def _is_array(file: Path) -> bool:
    """Return whether a .json file is an array; many such files have an object on every line."""
    with _open(file) as stream:
        return bool(stream.read(1 << 16).removeprefix(BOM).lstrip().startswith(b"["))


def _json_columns(file: Path) -> Mapping[str, Sequence[Any]]:
    """Return the columns of a .json file that is one object with a list for each column.

    pandas writes an object of values by the labels of the rows in place of each list. {} for another
    file.
    """
    with _open(file) as stream:
        text = stream.read(MAX_LINE_BYTES + 1)
    try:
        value = json.loads(text) if len(text) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):  # an object on each line, or not JSON
        return {}
    if not isinstance(value, dict) or not value:
        return {}
    columns = value
    if _has_labels(value):
        columns = {name: list(column.values()) for name, column in value.items()}
    if not all(isinstance(column, list) for column in columns.values()):
        return {}
    is_table = len({len(column) for column in columns.values()}) == 1
    first_items = [column[0] for column in columns.values() if len(column) > 1]
    # lists of objects are rows, such as those of several splits, or the messages of one chat
    has_plain_column = any(not isinstance(item, Mapping) for item in first_items)
    return columns if is_table and has_plain_column else {}


def _has_labels(table: Mapping[str, Any]) -> bool:
    """Return whether each column of a table has its values by the same labels of rows.

    Labels that are no numbers may be names of columns, and the columns rows, unless there are more
    labels than columns.
    """
    if not all(isinstance(column, dict) for column in table.values()):
        return False
    labels, *others = (list(column) for column in table.values())
    is_numbered = all(map(str.isdecimal, labels))
    return all(other == labels for other in others) and (is_numbered or len(labels) > len(table))


def _json_elements(file: Path) -> Iterator[Any]:
    """Yield the elements of a JSON array, with one in memory at a time.

    Raises:
        DataError: the file is not JSON, not UTF-8, or nested too deep.
    """
    import ijson

    with _open(file) as stream:
        if stream.peek(len(BOM)).startswith(BOM):
            stream.read(len(BOM))
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
            place = f"not JSON, or not UTF-8, before byte {pieces.bytes_read:,} ({reason})."
            raise DataError(f"{file}: {_text_fault(file) or place}") from error


class _LimitedStream:
    """A stream for the parser, which limits the size of an element to that of a line.

    The parser keeps a string in memory until its end.
    """

    def __init__(self, file: Path, stream: Any) -> None:
        self._file, self._stream = file, stream
        self._element = self._size = self.bytes_read = 0

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        piece: bytes = self._stream.read(size)
        self._size += len(piece)
        self.bytes_read += len(piece)
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


def _numbered_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file that are not blank, each with its place, such as `rows.jsonl:7`."""
    with _open(file) as lines:
        for number, line in checked_lines(lines, file):
            if line.strip():
                yield f"{file}:{number}", line


def _parse_line(where: str, line: bytes) -> Any:
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


def is_row_file(path: Path) -> bool:
    """Return whether a path has the name of a file of rows; only text may be compressed."""
    is_text = row_suffix(path) not in (".parquet", ".arrow")
    return row_suffix(path) in READERS and (is_text or not _is_compressed(path))


def _text_fault(file: Path) -> str:
    """Return why a file is not UTF-8 text; "" if it is, compressed, or Arrow."""
    return "" if _is_compressed(file) or row_suffix(file) == ".arrow" else text_fault(file)


def _is_compressed(file: Path) -> bool:
    return file.suffix.lower() in COMPRESSIONS


def _open(file: Path) -> io.BufferedReader:
    try:
        if _is_compressed(file):
            # Arrow decompresses in pieces, so that a line's limit holds for any content
            return io.BufferedReader(pa.input_stream(str(file)))
        return file.open("rb")
    except RewardkitError:
        raise
    except OSError as error:
        raise unreadable_file(file, error) from error


READERS: Mapping[
    str,
    Callable[[Path, ChooseColumns | None, PlaceCursor | None], Iterator[tuple[str, RawRow]]],
] = {
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".arrow": _read_arrow,
}
