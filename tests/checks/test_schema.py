"""Files that verl cannot load together are found before a run, with what to do."""

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks.schema import concatenation_fault
from rewardkit.row import TypeConflictError, union_type, value_type
from tests.tables import every

TEXT = pa.string()


def struct(**fields):
    return pa.struct(list(fields.items()))


def write(folder, *types):
    """Write a file with the column x of each type."""
    paths = [folder / f"{number}.parquet" for number in range(len(types))]
    for path, kind in zip(paths, types, strict=True):
        pq.write_table(pa.schema([("x", kind)]).empty_table(), path)
    return paths


NO_VERSION, OLD_VERSIONS = (False, None), (True, None)


#: Which versions load two types in this order, found with datasets 3.6 and 5.2: None for all.
@every(
    ("fault", "one", "other"),
    [
        (None, struct(a=pa.null()), struct(a=TEXT)),
        (None, struct(a=TEXT), struct(b=TEXT)),
        (None, struct(t=struct(a=TEXT)), struct(t=struct(b=TEXT))),
        (NO_VERSION, TEXT, pa.large_string()),
        (NO_VERSION, TEXT, pa.int64()),
        (NO_VERSION, TEXT, struct(target=pa.list_(TEXT))),
        (NO_VERSION, struct(t=struct(a=TEXT)), struct(t=struct(a=pa.int64()))),
        (NO_VERSION, pa.list_(struct(a=TEXT)), pa.list_(struct(a=TEXT, b=TEXT))),
        (OLD_VERSIONS, struct(a=TEXT, b=TEXT), struct(b=TEXT, a=TEXT)),
        (OLD_VERSIONS, struct(t=struct(a=TEXT, b=TEXT)), struct(t=struct(b=TEXT, a=TEXT))),
        (OLD_VERSIONS, pa.list_(TEXT), pa.list_(pa.null())),
        ((True, 1), struct(b=TEXT), struct(a=TEXT, b=TEXT)),
        ((False, 1), pa.null(), struct(a=TEXT)),
    ],
)
def test_types_load_together_or_the_fault_names_the_file(fault, one, other, tmp_path_factory):
    paths = write(tmp_path_factory.mktemp("types"), one, other)
    found = concatenation_fault(paths)
    if fault is None:
        assert found is None
        return
    only_in_old, first = fault
    assert (found.only_in_old, found.first) == (only_in_old, first and paths[first])
    assert found.message.startswith(f"{paths[1]}: ")
    assert found.message.endswith("in the files before" if only_in_old else f"in {paths[0]}")
    assert first is None or concatenation_fault(paths[::-1]) is None


def test_columns_may_be_in_any_order(tmp_path):
    for name, columns in {"a": "xy", "b": "yx", "c": "z"}.items():
        schema = pa.schema([(column, TEXT) for column in columns])
        pq.write_table(schema.empty_table(), tmp_path / name)
    assert concatenation_fault([tmp_path / name for name in "abc"]) is None


# One type for several files

LEAVES = st.sampled_from([TEXT, pa.int64(), pa.bool_(), pa.large_string(), pa.null()])
TYPES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(pa.list_, inner)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda d: struct(**d))
    ),
    max_leaves=6,
)


@given(TYPES)
def test_a_value_type_has_no_null_and_no_large_type(kind):
    made = value_type(kind)
    assert "null" not in str(made)
    assert "large" not in str(made)
    assert made is None or union_type(made, made, "x").equals(made)


@given(TYPES.map(value_type).filter(bool), TYPES.map(value_type).filter(bool))
def test_a_union_holds_both_types_or_names_the_field(one, other):
    try:
        union = union_type(one, other, "x")
    except TypeConflictError as error:
        assert error.column.startswith("x")
        assert not error.one.equals(error.other)
    else:
        assert union_type(union, one, "x").equals(union)
        assert union_type(union, other, "x").equals(union)
