"""Arrow types of columns: their plain forms, and one type for the columns of several files."""

import pyarrow as pa


class TypeConflictError(ValueError):
    """Two types of one field, `column`, that no type can hold."""

    def __init__(self, column: str, one: pa.DataType, other: pa.DataType) -> None:
        super().__init__(f"{column} is {one} and {other}")
        self.column, self.one, self.other = column, one, other


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with `string` and `list` in place of their large forms."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(item.name, plain_type(item.type)) for item in kind.fields])
    return kind


def value_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the plain type without its fields of type null; None if it has no other fields.

    A dictionary becomes the type of its values.
    """
    if pa.types.is_dictionary(kind):
        return value_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = value_type(kind.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(kind):
        pairs = [(item.name, value_type(item.type)) for item in kind.fields]
        known = [(name, inner) for name, inner in pairs if inner is not None]
        return pa.struct(known) if known else None
    return None if pa.types.is_null(kind) else plain_type(kind)


def union_type(one: pa.DataType, other: pa.DataType, column: str) -> pa.DataType:
    """Return a type with the fields of both, those of `one` first."""
    if one.equals(other):
        return one
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        kinds = {item.name: item.type for item in one.fields}
        for item in other.fields:
            path = f"{column}.{item.name}"
            kinds[item.name] = union_type(kinds.get(item.name, item.type), item.type, path)
        return pa.struct(list(kinds.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(union_type(one.value_type, other.value_type, f"{column}[]"))
    raise TypeConflictError(column, one, other)
