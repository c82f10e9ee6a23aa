"""Rows that a notebook holds, in place of a file: for `prep`, `check`, `score_file` and `score_files`.

An Arrow table, a pandas or Polars frame, a `datasets.Dataset` or a list of dictionaries becomes a parquet
file in a temporary folder, so that it is read, checked and bounded as any other file. No package but pyarrow
is needed. What is written goes back with `pandas.read_parquet`, `datasets.load_dataset` or `read_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rewardkit.errors import DataError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")

#: The name of the file, which messages have in front of the number of a row.
FILE_NAME = "rows.parquet"


def takes_rows(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function take rows of a notebook wherever it takes the path of a file, also in a list."""

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        with ExitStack() as stack:

            def as_path(value: Any) -> Any:
                if is_rows(value):
                    folder = stack.enter_context(TemporaryDirectory(prefix="rewardkit-"))
                    return write_rows(value, Path(folder) / FILE_NAME)
                return [*map(as_path, value)] if isinstance(value, list) else value

            values: Any = map(as_path, arguments)
            return function(*values, **{name: as_path(value) for name, value in options.items()})

    return call


def is_rows(value: Any) -> bool:
    """Return whether a value is a table, a frame, a dataset, or a list of dictionaries."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return any(hasattr(value, name) for name in ("__arrow_c_stream__", "iloc", "with_format"))


def write_rows(rows: Any, path: Path) -> Path:
    """Write rows to a parquet file and return its path.

    Raises:
        UsageError: Arrow has no type for a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = arrow_table(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"Arrow cannot hold these rows ({type(rows).__name__}): {reason}"
        ) from error
    pq.write_table(table, path)
    return path


def arrow_table(rows: Any) -> pa.Table:
    """Return rows of a notebook as an Arrow table."""
    import pyarrow as pa

    if isinstance(rows, pa.Table):
        table = rows
    elif hasattr(
        rows, "with_format"
    ):  # a `datasets.Dataset`; its own rows would have decoded images
        table = rows.with_format("arrow")[:]
    elif hasattr(rows, "iloc"):  # a frame of pandas; its index is left out
        table = pa.Table.from_pandas(rows, preserve_index=False)
    else:
        table = pa.Table.from_pylist(rows) if isinstance(rows, list) else pa.table(rows)
    schema = pa.schema([each.with_type(_without_views(each.type)) for each in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with large strings for views, as Polars writes them: parquet has no views."""
    import pyarrow as pa

    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_without_views(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_views(kind.value_type)))
    return kind


def read_table(path: Path | str) -> pa.Table:
    """Return the rows of a file that `prep`, `check` or `score_files` wrote as an Arrow table.

    Raises:
        DataError: the file cannot be read, or the values of a column are of different types.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rewardkit.row_files import rows_in

    try:
        if Path(path).suffix == ".parquet":
            return pq.read_table(path)  # with its types, also of empty lists
        return pa.Table.from_pylist([row for _, row in rows_in(Path(path))])
    except pa.ArrowException as error:
        raise DataError(f"{path}: Arrow cannot hold the rows: {error}") from error
