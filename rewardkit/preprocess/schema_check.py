"""Check whether verl can load the schema of a parquet, alone and together with other files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from rewardkit.arrow_types import plain_type
from rewardkit.preprocess.row_checks import DataFinding
from rewardkit.row import SCHEMA

#: The columns that verl reads from every row. The rows of a file without one are not checked.
REQUIRED_COLUMNS = ("data_source", "prompt[].content", "prompt[].role", "reward_model.ground_truth")

_CONCATENATION = "which verl cannot concatenate with files that have"


def schema_findings(schema: pa.Schema) -> Iterator[DataFinding]:
    """Yield the columns that verl cannot load, or cannot load together with other files.

    `datasets.concatenate_datasets` raises if a field has different types in two files (measured
    with datasets 3.6 and 5.2). It fills a field with None if only one file has it, or if it is
    null in all rows of one file. Large strings and lists, as pandas 3 and Polars write them, load
    alone and with their like; `concatenation_fault` finds those that are mixed with plain ones.
    """
    ours = dict(_leaves(SCHEMA))
    present = list(_leaves(schema))
    missing = [
        column for column in REQUIRED_COLUMNS if not any(_leads_to(column, n) for n, _ in present)
    ]
    for column in missing:
        if column.partition("[")[0].partition(".")[0] not in schema.names:
            yield DataFinding(None, "missing", f"no column {column}; verl reads it from every row")
    for name in schema.names:
        if fields_within := [
            column for column in missing if column.startswith((f"{name}.", f"{name}["))
        ]:
            kind = schema.field(name).type
            fields = " and ".join(fields_within)
            yield DataFinding(
                None, "missing", f"{name} is {kind}; verl reads {fields} in it{_hint(name, kind)}"
            )
    for column, count in Counter(name for name, _ in present).items():
        if count > 1:
            yield DataFinding(None, "schema", f"the file has {count} columns {column}")
    for column, kind in present:
        wanted = ours.get(column, kind)
        if not _loads_as(plain_type(kind), plain_type(wanted)):
            yield DataFinding(
                None, "schema", f"{column} is {kind}, {_CONCATENATION} {plain_type(wanted)}"
            )


def _leads_to(column: str, name: str) -> bool:
    """Return whether a leaf is the column or a part of it."""
    return name == column or name.startswith((f"{column}.", f"{column}["))


def _hint(name: str, kind: pa.DataType) -> str:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return ": rewardkit mix writes text prompts as chats" if name == "prompt" and is_text else ""


def _loads_as(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether `datasets` reads the type as the other: also nulls and dictionaries of it."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(kind == wanted or pa.types.is_null(kind))


def _leaves(
    schema: pa.Schema | pa.StructType, prefix: str = ""
) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the dotted path and type of every field, also within structs and lists of structs."""
    for i in range(len(schema) if isinstance(schema, pa.Schema) else schema.num_fields):
        item = schema.field(i)
        path, kind = f"{prefix}{item.name}", item.type
        is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        if pa.types.is_struct(kind):
            yield from _leaves(kind, f"{path}.")
        elif is_list and pa.types.is_struct(kind.value_type):
            yield from _leaves(kind.value_type, f"{path}[].")
        else:
            yield path, kind
