"""Whether verl can load several files together: what `datasets.concatenate_datasets` accepts.

Measured with datasets 3.6 and 5.2: a column or a field of a struct that only some files have is null
in the rows of the others. A field must have one type in all files; a list of structs, also the same
fields. A column that is null in the whole first file cannot be a struct in another. With datasets
3.6 and pyarrow 20 the fields of each struct must also be in the order of the files before, and
a list of nulls is not aligned with a list of texts; datasets 5.2 with pyarrow 26 accepts both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rewardkit.row import open_parquet


@dataclass(frozen=True)
class ConcatenationFault:
    """Why files do not load together.

    Attributes:
        message: which file and field, and what differs.
        only_in_old: whether newer versions of `datasets` and `pyarrow` load the files.
        first: a file with which the list could begin, so that the files do load; None if there is
            none.
    """

    message: str
    only_in_old: bool
    first: Path | None


def concatenation_fault(paths: Sequence[Path]) -> ConcatenationFault | None:
    """Return why verl cannot load these files together in this order; None if it can."""
    types = {path: _struct_of(path) for path in paths}
    fault = _first_fault(types)
    if fault is None:
        return None
    message, only_in_old = fault
    for path in paths:
        if _first_fault({path: types[path], **types}) is None:
            return ConcatenationFault(message, only_in_old, path)
    return ConcatenationFault(message, only_in_old, None)


def _struct_of(path: Path) -> pa.StructType:
    with open_parquet(path) as file:
        return pa.struct(list(file.schema_arrow))


def _first_fault(types: dict[Path, pa.StructType]) -> tuple[str, bool] | None:
    """Return the first fault, as its message and whether newer versions accept it."""
    old = None
    for path, kind in types.items():
        for earlier, other in types.items():
            if earlier == path:
                break
            if fault := _conflict(other, kind, ""):
                return f"{path}: {fault} in {earlier}", False
    merged = pa.struct([])
    for path, kind in types.items():
        merged, fault = _merge(merged, kind, "")
        old = old or (fault and f"{path}: {fault} in the files before")
    return (old, True) if old else None


def _conflict(one: pa.DataType, other: pa.DataType, column: str) -> str:
    """Return the first field whose types cannot be aligned, with both types; "" if there is none."""
    one, other = (k.value_type if pa.types.is_dictionary(k) else k for k in (one, other))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds = {item.name: item.type for item in one.fields}
        shared = (item for item in other.fields if item.name in kinds)
        faults = (
            _conflict(kinds[item.name], item.type, f"{column}.{item.name}".lstrip("."))
            for item in shared
        )
        return next(filter(None, faults), "")
    if pa.types.is_null(one) and pa.types.is_struct(other):
        return f"{column} is {other}, but null"
    are_lists = pa.types.is_list(one) and pa.types.is_list(other)
    pair = (one.value_type, other.value_type) if are_lists else (one, other)
    is_same = _sorted(one) == _sorted(other) or any(map(pa.types.is_null, pair))
    return "" if is_same else f"{column} is {other}, but {one}"


def _sorted(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_sorted(kind.value_type))
    if pa.types.is_struct(kind):
        items = sorted(kind.fields, key=lambda item: str(item.name))
        return pa.struct([(item.name, _sorted(item.type)) for item in items])
    return kind


def _merge(one: pa.DataType, other: pa.DataType, column: str) -> tuple[pa.DataType, str]:
    """Return the fields of both, and the first fault that newer versions accept; "" if none."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        if pa.types.is_null(one.value_type) != pa.types.is_null(other.value_type):
            return one, f"{column} is {other}, but {one}"
        return one, _merge(one.value_type, other.value_type, f"{column}[]")[1]
    if not (pa.types.is_struct(one) and pa.types.is_struct(other)):
        return (other if pa.types.is_null(one) else one), ""
    kinds, fault = {item.name: item.type for item in one.fields}, ""
    for item in other.fields:
        path = f"{column}.{item.name}".lstrip(".")
        kinds[item.name], inner = _merge(kinds.get(item.name, item.type), item.type, path)
        fault = fault or inner
    names = list(kinds)
    places = [names.index(item.name) for item in other.fields]
    if column and places != sorted(places):  # the order of columns does not matter
        fault = f"the fields of {column} have another order than"
    return pa.struct(list(kinds.items())), fault
