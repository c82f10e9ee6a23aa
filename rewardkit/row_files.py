"""The one reader of rows: files of any format that data come in, in bounded memory.

Parquet; Arrow, as a stream (`datasets`) or a file (`pyarrow.feather`); CSV with any separator; JSON
Lines; JSON: an array of rows, or an object with a list for each column; and the folders that
`save_to_disk` of `datasets` writes. Text may be compressed.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

import pyarrow as pa

from rewardkit.errors import DataError, RewardkitError, SourceError, unreadable_file
from rewardkit.file_kinds import COMPRESSIONS, row_suffix, table_kind, text_fault
from rewardkit.jsonl import MAX_LINE_BYTES, checked_lines
from rewardkit.parquet_file import bounded_slices
from rewardkit.row import BATCH_ROWS, Row, open_parquet, python_rows

#: Returns the columns to read, given the file and the names of its columns.
ChooseColumns: TypeAlias = Callable[[object, Iterable[str]], Sequence[str]]

#: Where rows are, for messages (`rows.jsonl:7`), how many, and a function that reads some of them.
Block: TypeAlias = tuple[str, int, Callable[[Sequence[int]], Iterable[Row]]]

#: The byte order mark that some editors write at the start of a UTF-8 file.
_BOM = b"\xef\xbb\xbf"

_DECODER = json.JSONDecoder()

#: White space, and the mark after an element of a JSON array.
_BLANKS, _ELEMENT_END = re.compile(r"\s*"), re.compile(r"\s*([,\]])")

#: What may separate the values of a CSV file, the likeliest first.
_SEPARATORS = ",\t;|"

#: Bytes at the start of a file in which its separator, or the bracket of its array, is looked for.
_SAMPLE_BYTES = 1 << 16


class BrokenRow(dict[str, Any]):
    """The `text` of a row of a CSV file that does not fit the header."""


def rows_in(path: Path, choose: ChooseColumns | None = None) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file, or of a folder of `save_to_disk`, in order, each with where it is.

    Args:
        path: a file for which `is_row_file` is true, or the folder.
        choose: chooses the columns of a table; None for all. A row of JSON has all its columns.
    """
    for file in saved_files(path) if path.is_dir() else [path]:
        for where, size, read in _blocks(file, choose):
            for row in read(range(size)):
                yield where, row


def rows_at(
    files: Iterable[Path], indices: Iterable[int], choose: ChooseColumns | None = None
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of files at ascending indices, each with its index; `choose` as in `rows_in`."""
    return select_rows(chain.from_iterable(_blocks(file, choose) for file in files), indices)


def select_rows(blocks: Iterable[Block], indices: Iterable[int]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of blocks at ascending indices; a block without one is not decoded."""
    blocks, wanted, start = iter(blocks), iter(indices), 0
    index = next(wanted, None)
    while index is not None and (block := next(blocks, None)):
        _, size, read = block
        chosen = list[int]()
        while index is not None and index < start + size:
            chosen.append(index - start)
            index = next(wanted, None)
        if chosen:
            yield from zip((start + i for i in chosen), read(chosen), strict=True)
        start += size


def block_of(file: Path, batch: pa.RecordBatch) -> Block:
    """Return a batch as a block."""

    def read(indices: Sequence[int]) -> list[Row]:
        few = len(indices) < batch.num_rows
        return python_rows(batch.take(pa.array(indices, pa.int64())) if few else batch)

    return str(file), batch.num_rows, read


def saved_splits(folder: Path) -> list[str]:
    """Return the splits of a `DatasetDict` that was saved to a folder; [] for another path."""
    if not (folder / "dataset_dict.json").is_file():
        return []
    return sorted(state.parent.name for state in folder.glob("*/state.json"))


def saved_files(folder: Path) -> list[Path]:
    """Return the files of a dataset that `save_to_disk` wrote, in the order of its state.json."""
    splits, state = saved_splits(folder), folder / "state.json"
    if len(splits) == 1:
        return saved_files(folder / splits[0])
    if splits:
        names = " or ".join(str(folder / name) for name in splits)
        raise SourceError(f"{folder}: has several splits. Name the folder of one: {names}.")
    if not state.is_file():
        raise SourceError(f"{folder}: a folder without the state.json of a saved dataset.")
    try:
        entries = json.loads(state.read_bytes())["_data_files"]
        files = [folder / Path(entry["filename"]).name for entry in entries]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SourceError(
            f"{state}: not the state of a dataset that was saved. Copy the folder again."
        ) from error
    for file in files:
        if not file.is_file():
            raise SourceError(f"{file}: missing, but {state.name} names it. Copy the folder again.")
    return files


def _blocks(file: Path, choose: ChooseColumns | None = None) -> Iterator[Block]:
    suffix = row_suffix(file)
    try:
        if suffix in (".csv", ".tsv"):
            yield from (_block(file, row) for row in _read_csv(file, choose))
        elif suffix == ".parquet":
            with open_parquet(file) as parquet:
                columns = list(choose(file, parquet.schema_arrow.names)) if choose else None
                for batch in parquet.iter_batches(BATCH_ROWS, columns=columns):
                    yield block_of(file, batch)
        elif suffix == ".arrow":
            yield from (block_of(file, batch) for batch in _arrow_batches(file, choose))
        else:
            yield from _read_json(file, may_be_whole=suffix == ".json")
    except RewardkitError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable_file(file, error) from error
        reason = str(error).partition("\n")[0]
        fault = _text_fault(file) or f"not a readable {table_kind(file)} file ({reason})"
        raise DataError(f"{file}: {fault}") from error


def _block(where: object, row: Any) -> Block:
    """Return one row as a block; a row of JSON may be a list, such as a conversation."""
    row = {"row": row} if isinstance(row, list) else row
    if not isinstance(row, dict):
        raise DataError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    return str(where), 1, lambda _: [row]


def _arrow_batches(file: Path, choose: ChooseColumns | None) -> Iterator[pa.RecordBatch]:
    def validated(batch: pa.RecordBatch) -> pa.RecordBatch:
        batch.validate(full=True)  # Arrow reads offsets that are out of bounds from any memory
        return batch

    with pa.memory_map(str(file)) as source:
        is_stream = source.read(6) != b"ARROW1"
        source.seek(0)
        reader = (pa.ipc.open_stream if is_stream else pa.ipc.open_file)(source)
        columns = list(choose(file, reader.schema.names)) if choose else reader.schema.names
        numbers = range(0 if is_stream else reader.num_record_batches)
        batches = reader if is_stream else map(reader.get_batch, numbers)
        chosen = (validated(batch.select(columns)) for batch in batches)
        yield from bounded_slices(file, chosen)


def _read_csv(file: Path, choose: ChooseColumns | None) -> Iterator[Row]:
    """Yield all values as text: the dataset decides which are numbers.

    One missing quote would otherwise make the whole file unreadable: a row with more or fewer values
    than the header has columns is nulls, so that a dataset drops it and a report counts it. If all
    columns are read, it is a `BrokenRow`, and bytes that are not UTF-8 are escaped.
    """
    pieces = list[str]()  # of the row that is read, whose bytes are limited

    def lines(stream: io.BufferedReader) -> Iterator[str]:
        size = 0
        for number, line in checked_lines(stream, file):
            size = size + len(line) if pieces else len(line)
            if size > MAX_LINE_BYTES:
                raise DataError(
                    f"{file}:{number}: the row has more than {MAX_LINE_BYTES:,} bytes. Is a quote "
                    "missing?"
                )
            for part in line.removeprefix(_BOM if number == 1 else b"").splitlines(keepends=True):
                pieces.append(part.decode("utf-8", "surrogateescape"))
                yield pieces[-1]

    def text(value: str, errors: str) -> str:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", errors)

    with _open(file) as sample:
        separator = _separator(sample.read(_SAMPLE_BYTES).decode("utf-8", "replace"))
    csv.field_size_limit(MAX_LINE_BYTES)
    with _open(file) as stream:
        values = filter(None, csv.reader(lines(stream), delimiter=separator))  # no empty lines
        names = [text(name, "strict") for name in next(values, ())]
        if not names:
            raise DataError(f"{file}: not a readable CSV file (Empty CSV file)")
        columns = choose(file, names) if choose else names
        indices = {name: index for index, name in enumerate(names) if name in columns}
        pieces.clear()
        for row in values:
            whole = "".join(pieces)
            if len(row) != len(names):
                broken = BrokenRow(text=text(whole.strip("\r\n"), "backslashreplace"))
                yield dict.fromkeys(columns) if choose else broken
            elif whole.isascii():
                yield {name: row[indices[name]] for name in columns}
            else:
                errors = "strict" if choose else "backslashreplace"
                yield {name: text(row[indices[name]], errors) for name in columns}
            pieces.clear()


def _separator(sample: str) -> str:
    """Return the separator that cuts the header into the most columns, and the first row into as many.

    The header alone decides if no separator cuts both alike.
    """
    columns = {}
    for separator in _SEPARATORS:
        lines = io.StringIO(sample.replace("\0", ""), newline="")
        header, row = islice(chain(csv.reader(lines, delimiter=separator), [[], []]), 2)
        columns[separator] = (len(header) == len(row) > 1, len(header))
    return max(columns, key=lambda separator: columns[separator])


def _read_json(file: Path, *, may_be_whole: bool) -> Iterator[Block]:
    """Yield the elements of an array, the rows of columns, or the objects on the lines of a file."""
    with _open(file) as stream:
        start = stream.read(_SAMPLE_BYTES).removeprefix(_BOM).lstrip()[:1]
    if may_be_whole and start == b"[":  # many such files have an object on every line
        for i, value in enumerate(_json_elements(file)):
            yield _block(f"{file}: element {i}", value)
    elif may_be_whole and (columns := _json_columns(file)):
        for i, row in enumerate(zip(*columns.values(), strict=True)):
            yield _block(f"{file}: row {i}", dict(zip(columns, row, strict=True)))
    else:
        with _open(file) as stream:
            lines = ((n, line) for n, line in checked_lines(stream, file) if line.strip())
            for index, (number, line) in enumerate(lines):
                where = f"{file}:{number}"
                yield where, 1, partial(_row_of_line, file, where, line, index == 0)


def _row_of_line(
    file: Path, where: str, line: bytes, is_first: bool, indices: Sequence[int]
) -> Iterable[Row]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:  # also a number with too many digits
        fault = _text_fault(file)
        if not fault and is_first and file.suffix.lower() == ".json":
            out = quote(file.with_suffix(".jsonl").name)
            fault = (
                "an array of rows, or one object per line, is expected. If a key of one object "
                f"holds the rows, run `jq -c '.KEY[]' {quote(str(file))} > {out}` with its name."
            )
        reason = f"not JSON ({error})."
        if isinstance(error, UnicodeDecodeError):
            reason = f"not UTF-8 ({error.reason} at byte {error.start})."
        raise DataError(f"{where}: {fault or reason}") from error
    return _block(where, value)[2](indices)


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
    if all(isinstance(column, dict) for column in value.values()):
        labels, *others = map(list, value.values())
        # labels that are not numbers may be names of columns, unless there are more than columns
        are_rows = all(map(str.isdecimal, labels)) or len(labels) > len(value)
        if are_rows and all(other == labels for other in others):
            columns = {name: list(column.values()) for name, column in value.items()}
    if not all(isinstance(column, list) for column in columns.values()):
        return {}
    is_table = len({len(column) for column in columns.values()}) == 1
    first_items = [column[0] for column in columns.values() if len(column) > 1]
    # lists of objects are rows, such as those of several splits, or the messages of one chat
    has_plain_column = any(not isinstance(item, Mapping) for item in first_items)
    return columns if is_table and has_plain_column else {}


def _json_elements(file: Path) -> Iterator[Any]:
    """Yield the elements of a JSON array, with about one in memory at a time."""
    number, start, mark = 0, 1, ","
    with io.TextIOWrapper(_open(file), "utf-8-sig") as stream:
        text = stream.read(_SAMPLE_BYTES).lstrip()
        while mark == ",":
            try:
                value, mark, start = _next_element(text, start)
            except RecursionError:
                raise DataError(
                    f"{file}: element {number}: brackets are nested too deep."
                ) from None
            except ValueError as error:  # perhaps the element goes on behind the text in memory
                text, start = text[start:], 0
                if len(text) > MAX_LINE_BYTES:
                    raise DataError(
                        f"{file}: element {number} has more than {MAX_LINE_BYTES:,} bytes, or is not "
                        "JSON. Leave it out."
                    ) from error
                piece = stream.read(max(_SAMPLE_BYTES, len(text)))
                if not piece and number == 0 and text.strip() == "]":
                    return
                if not piece:
                    raise DataError(f"{file}: element {number}: not JSON ({error}).") from error
                text += piece
            else:
                yield value
                number += 1
        if (text[start:] + stream.read(_SAMPLE_BYTES)).strip():
            raise DataError(f"{file}: there is text after the array. Write one array.")


def _next_element(text: str, start: int) -> tuple[Any, str, int]:
    """Return the JSON value at an index, the mark that ends it, and the index after that mark.

    Raises:
        ValueError: the text has no whole value there.
    """
    blanks = _BLANKS.match(text, start)
    value, end = _DECODER.raw_decode(text, blanks.end() if blanks else start)
    mark = _ELEMENT_END.match(text, end)
    if mark is None:
        raise ValueError(f"a comma or ] is missing after {end - start:,} characters")
    return value, mark[1], mark.end()


def _text_fault(file: Path) -> str:
    """Return why a file is not UTF-8 text; "" if it is, compressed, or Arrow."""
    is_text = file.suffix.lower() not in (*COMPRESSIONS, ".arrow")
    return text_fault(file) if is_text else ""


def _open(file: Path) -> io.BufferedReader:
    if file.suffix.lower() in COMPRESSIONS:
        # Arrow decompresses in pieces, so that a line's limit holds for any content
        return io.BufferedReader(pa.input_stream(str(file)))
    return file.open("rb")
