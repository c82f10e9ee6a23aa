"""Whether verl can load a file, and several files together: `datasets.concatenate_datasets` of them.

Measured with datasets 3.6 and 5.2: a column or a field of a struct that only some files have is null
in the rows of the others. A field must have one type in all files; a list of structs, also the same
fields. A column that is null in the whole first file cannot be a struct in another. With datasets
3.6 and pyarrow 20 the fields of each struct must also be in the order of the files before, and
a list of nulls is not aligned with a list of texts; datasets 5.2 with pyarrow 26 accepts both.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path

import pyarrow as pa

from rewardkit.checks.row_checks import DataFinding
from rewardkit.row import SCHEMA, open_parquet, plain_type

#: The columns that verl reads from every row. The rows of a file without one are not checked.
REQUIRED_COLUMNS = ("data_source", "prompt[].content", "prompt[].role", "reward_model.ground_truth")


def schema_findings(schema: pa.Schema) -> Iterator[DataFinding]:
    """Yield the columns that verl cannot load, or cannot load together with other files.

    Large strings and lists, as pandas 3 and Polars write them, load alone and with their like;
    `concatenation_fault` finds those that are mixed with plain ones.
    """
    our_types = dict(_leaves(pa.struct(list(SCHEMA))))
    present = list(_leaves(pa.struct(list(schema))))
    missing = [
        column
        for column in REQUIRED_COLUMNS
        if not any(re.match(rf"{re.escape(column)}(?:[.\[]|$)", name) for name, _ in present)
    ]
    for name, columns in groupby(missing, key=lambda column: re.split(r"[.\[]", column)[0]):
        if name not in schema.names:
            for column in columns:
                yield DataFinding(
                    None, "missing", f"no column {column}; verl reads it from every row"
                )
            continue
        kind = schema.field(name).type
        is_text = name == "prompt" and pa.types.is_string(plain_type(kind))
        hint = ": rewardkit mix writes text prompts as chats" if is_text else ""
        message = f"{name} is {kind}; verl reads {' and '.join(columns)} in it{hint}"
        yield DataFinding(None, "missing", message)
    for column, count in Counter(name for name, _ in present).items():
        if count > 1:
            yield DataFinding(None, "schema", f"the file has {count} columns {column}")
    for column, kind in present:
        plain, wanted = plain_type(kind), plain_type(our_types.get(column, kind))
        values = plain.value_type if pa.types.is_dictionary(plain) else plain
        if values != wanted and not pa.types.is_null(values):  # `datasets` reads these as the other
            concatenation = "which verl cannot concatenate with files that have"
            yield DataFinding(None, "schema", f"{column} is {kind}, {concatenation} {wanted}")


@dataclass(frozen=True)
class ConcatenationFault:
    """Why files do not load together."""

    message: str
    only_in_old: bool
    first: Path | None


def concatenation_fault(paths: Sequence[Path]) -> ConcatenationFault | None:
    """Return why verl cannot load these files together in this order; None if it can."""
    types = dict[Path, pa.DataType]()
    for path in paths:
        with open_parquet(path) as file:
            types[path] = pa.struct(list(file.schema_arrow))
    if fault := _first_fault(types):
        orders = ((path, {path: types[path], **types}) for path in paths)
        first = next((path for path, order in orders if _first_fault(order) is None), None)
        return ConcatenationFault(*fault, first)
    return None


def _first_fault(types: dict[Path, pa.DataType]) -> tuple[str, bool] | None:
    """Return the first fault, as its message and whether newer versions accept it."""
    for (earlier, one), (path, other) in combinations(types.items(), 2):
        if fault := _merge(one, other, "")[1]:
            return f"{path}: {fault} in {earlier}", False
    merged: pa.DataType = pa.struct([])
    faults = []
    for path, kind in types.items():
        merged, _, fault = _merge(merged, kind, "")
        faults += [(f"{path}: {fault} in the files before", True)] if fault else []
    return next(iter(faults), None)


def _merge(one: pa.DataType, other: pa.DataType, column: str) -> tuple[pa.DataType, str, str]:
    """Return the fields of both, the first fault, and the first that newer versions accept."""
    one, other = (k.value_type if pa.types.is_dictionary(k) else k for k in (one, other))
    text = f"{column} is {other}, but {one}"
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds, fault, old = {item.name: item.type for item in one.fields}, "", ""
        for item in other.fields:
            path = f"{column}.{item.name}".lstrip(".")
            known = kinds.get(item.name, item.type)
            kinds[item.name], *inner = _merge(known, item.type, path)
            fault, old = fault or inner[0], old or inner[1]
        names = list(kinds)
        positions = [names.index(item.name) for item in other.fields]
        if column and positions != sorted(positions):  # the order of columns does not matter
            old = f"the fields of {column} have another order than"
        return pa.struct(list(kinds.items())), fault, old
    if pa.types.is_list(one) and pa.types.is_list(other):
        nulls = pa.types.is_null(one.value_type), pa.types.is_null(other.value_type)
        if any(nulls):
            return one, "", text if nulls[0] != nulls[1] else ""
        merged, fault, old = _merge(one.value_type, other.value_type, f"{column}[]")
        is_same = {*_leaves(one.value_type)} == {*_leaves(other.value_type)}
        return pa.list_(merged), "" if is_same else fault or text, old
    if pa.types.is_null(one):
        return other, text if pa.types.is_struct(other) else "", ""
    return one, "" if other in (one, pa.null()) else text, ""


def _leaves(kind: pa.DataType, path: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the dotted path and type of every field, also within structs and lists of structs."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    item = kind.value_type if is_list else kind
    if not pa.types.is_struct(item):
        yield path, kind
        return
    for inner in item.fields:
        yield from _leaves(inner.type, f"{path}{'[]' * is_list}.{inner.name}".lstrip("."))
