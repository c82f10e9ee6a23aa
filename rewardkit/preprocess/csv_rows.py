"""Read CSV files of any separator in batches. A row that does not fit the header is nulls with its text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

#: What may separate values, the likeliest first, and the bytes of a file that are read to find it.
_SEPARATORS = ",\t;|"
_SAMPLE_BYTES = 1 << 16

#: The key of a batch's metadata with the text of a row that does not fit the header.
_TEXT = b"text"


def csv_header(file: Path) -> list[str]:
    """Return the names of the columns.

    Raises:
        pyarrow.ArrowException: the file is not CSV.
        OSError: the file cannot be read.
    """
    with pa.csv.open_csv(file, parse_options=_layout(file, [])) as reader:
        return list(reader.schema.names)


def csv_batches(
    file: Path, columns: Sequence[str], value_type: pa.DataType
) -> Iterator[pa.RecordBatch]:
    """Yield the rows in order, each value with the same type.

    One missing quote would otherwise make the whole file unreadable. A row with more or fewer values
    than the header has columns is a row of nulls, so that a dataset drops it and a report counts it;
    `text_of_broken_row` has its text. No other value is null.

    Args:
        file: a CSV file with a header; quoted values may contain line breaks.
        columns: the columns to read.
        value_type: `pyarrow.string()` or `pyarrow.binary()`.

    Raises:
        pyarrow.ArrowException: the file is not CSV, or a value is not of the type.
        OSError: the file cannot be read.
    """
    broken: list[tuple[int, str]] = []
    reader = pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False),  # threads do not number the rows
        parse_options=_layout(file, broken),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, value_type),
            include_columns=list(columns),
            strings_can_be_null=False,
        ),
    )
    nulls = pa.RecordBatch.from_pylist([{}], schema=reader.schema)
    place = 0
    for batch in reader:
        start = 0
        while broken and broken[0][0] < place + batch.num_rows - start:
            number, text = broken.pop(0)
            rows = batch.slice(start, number - place)
            yield rows
            yield nulls.replace_schema_metadata({_TEXT: text})
            start, place = start + rows.num_rows, place + rows.num_rows + 1
        yield batch.slice(start)
        place += batch.num_rows - start
    for _, text in broken:
        yield nulls.replace_schema_metadata({_TEXT: text})


def text_of_broken_row(batch: pa.RecordBatch) -> str | None:
    """Return the text of the row, if the batch is one row that does not fit the header."""
    text = (batch.schema.metadata or {}).get(_TEXT)
    return None if text is None else text.decode("utf-8", "backslashreplace")


def _separator(file: Path) -> str:
    """Return the separator that cuts the header into the most columns, and the first row into as many.

    The header alone decides if no separator cuts both alike.
    """
    with pa.input_stream(str(file)) as stream:
        sample = stream.read(_SAMPLE_BYTES).decode("utf-8", "replace")
    columns = {}
    for separator in _SEPARATORS:
        lines = io.StringIO(sample.replace("\0", ""), newline="")
        header, row = islice(chain(csv.reader(lines, delimiter=separator), [[], []]), 2)
        columns[separator] = (len(header) == len(row) > 1, len(header))
    return max(columns, key=lambda separator: columns[separator])


def _layout(file: Path, broken: list[tuple[int, str]]) -> pa.csv.ParseOptions:
    """Return how a file is read; place and text of rows that do not fit the header go to `broken`."""

    def skip(row: Any) -> str:
        if row.number is not None:
            broken.append((row.number - 2, row.text))  # the header is row 1
        return "skip"

    return pa.csv.ParseOptions(
        delimiter=_separator(file), newlines_in_values=True, invalid_row_handler=skip
    )
