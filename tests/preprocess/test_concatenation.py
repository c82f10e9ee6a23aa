"""Files that verl cannot load together are found before a run, with what to do."""

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.arrow_types import TypeConflictError, union_type, value_type
from rewardkit.preprocess.concatenation import concatenation_fault
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


#: Types that load together in this order in every version, found with datasets 3.6 and 5.2.
@every(
    ("one", "other"),
    [
        (TEXT, TEXT),
        (TEXT, pa.dictionary(pa.int32(), TEXT)),
        (pa.null(), TEXT),
        (struct(a=TEXT), pa.null()),
        (struct(a=pa.null()), struct(a=TEXT)),
        (struct(a=TEXT), struct(b=TEXT)),
        (struct(a=TEXT), struct(a=TEXT, b=TEXT)),
        (struct(a=TEXT, b=TEXT), struct(b=TEXT)),
        (struct(t=struct(a=TEXT)), struct(t=struct(b=TEXT))),
        (pa.null(), pa.list_(struct(a=TEXT))),
    ],
)
def test_types_that_load_together(one, other, tmp_path_factory):
    assert concatenation_fault(write(tmp_path_factory.mktemp("types"), one, other)) is None


@every(
    ("one", "other"),
    [
        (TEXT, pa.large_string()),
        (TEXT, pa.int64()),
        (pa.int32(), pa.int64()),
        (TEXT, struct(target=pa.list_(TEXT))),
        (struct(t=struct(a=TEXT)), struct(t=struct(a=pa.int64()))),
        (pa.list_(TEXT), pa.large_list(TEXT)),
        (pa.list_(struct(a=TEXT)), pa.list_(struct(a=TEXT, b=TEXT))),
    ],
)
def test_types_that_no_version_loads_together(one, other, tmp_path_factory):
    paths = write(tmp_path_factory.mktemp("types"), one, other)
    fault = concatenation_fault(paths)
    assert (fault.only_in_old, fault.first) == (False, None)
    assert fault.message.startswith(f"{paths[1]}: x")
    assert fault.message.endswith(f"in {paths[0]}")


@every(
    ("one", "other"),
    [
        (struct(a=TEXT, b=TEXT), struct(b=TEXT, a=TEXT)),
        (struct(t=struct(a=TEXT, b=TEXT)), struct(t=struct(b=TEXT, a=TEXT))),
        (pa.list_(struct(a=TEXT, b=TEXT)), pa.list_(struct(b=TEXT, a=TEXT))),
        (pa.list_(TEXT), pa.list_(pa.null())),
    ],
)
def test_types_that_older_versions_do_not_load_together(one, other, tmp_path_factory):
    fault = concatenation_fault(write(tmp_path_factory.mktemp("types"), one, other))
    assert (fault.only_in_old, fault.first) == (True, None)
    assert "1.parquet: " in fault.message


@every(
    ("one", "other", "only_in_old"),
    [(struct(b=TEXT), struct(a=TEXT, b=TEXT), True), (pa.null(), struct(a=TEXT), False)],
)
def test_the_file_that_must_be_first_is_named(one, other, only_in_old, tmp_path_factory):
    paths = write(tmp_path_factory.mktemp("types"), one, other)
    fault = concatenation_fault(paths)
    assert (fault.first, fault.only_in_old) == (paths[1], only_in_old)
    assert concatenation_fault(paths[::-1]) is None


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
