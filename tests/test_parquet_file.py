"""A parquet file of some kilobytes does not fill the memory."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import parquet_file
from rewardkit.errors import DataError
from rewardkit.parquet_file import BoundedParquetFile
from rewardkit.row import open_parquet

MEGABYTE = 1 << 20

#: Reads a file within 3 GB of addresses, and prints its rows or what is wrong with it.
READ = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from rewardkit.errors import DataError
from rewardkit.row import open_parquet
try:
    with open_parquet(Path(sys.argv[1])) as file:
        print(sum(len(batch.to_pylist()) for batch in file.iter_batches(2048)))
except DataError as error:
    print(error)
"""


def write(path, column, **options):
    pq.write_table(pa.table({"x": column}), path, compression="zstd", **options)
    return path


def read(path):
    with open_parquet(path) as file:
        return [row["x"] for batch in file.iter_batches(2048) for row in batch.to_pylist()]


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(parquet_file, "MAX_LINE_BYTES", MEGABYTE)
    monkeypatch.setattr(parquet_file, "MAX_BATCH_BYTES", 4 * MEGABYTE)


@pytest.mark.full
@pytest.mark.parametrize(
    ("value", "rows", "output"),
    [
        ("x" * (300 * MEGABYTE), 1, "bytes stand for 31"),
        ("x" * (5 * MEGABYTE), 20, "20\n"),
        ("x" * (5 * MEGABYTE), 1000, "the rows up to row 50 stand for 26"),
    ],
    ids=["cell", "dictionary", "explosion"],
)
def test_a_small_file_of_gigabytes_is_read_in_three_or_refused(tmp_path, value, rows, output):
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows), [value])
    options = {"dictionary_pagesize_limit": 1 << 30, "store_schema": False}
    path = write(tmp_path / "x.parquet", column, **options)
    assert path.stat().st_size < 20_000
    done = subprocess.run(
        [sys.executable, "-c", READ, path], capture_output=True, text=True, check=True
    )
    assert output in done.stdout


def test_a_column_that_stands_for_far_more_than_its_bytes_is_refused(tmp_path, small_limits):
    path = write(tmp_path / "x.parquet", ["x" * (5 * MEGABYTE)], use_dictionary=False)
    with pytest.raises(DataError, match=r"x.parquet: row group 0, column x: .* stand for 5,24"):
        read(path)
    items = pa.array([[0] * MEGABYTE], pa.list_(pa.int8()))
    with pytest.raises(DataError, match=r"column x.list.element: .* stand for 16,"):
        read(write(tmp_path / "y.parquet", items))


def test_a_row_has_the_limit_of_a_line(tmp_path, small_limits):
    values = ["a", "b" * (MEGABYTE * 3 // 2), "c"]
    with pytest.raises(DataError, match=r"x.parquet: row 1 has 1,572,\d+ bytes, more than"):
        read(write(tmp_path / "x.parquet", values))
    values = [["b" * 1000] * 400, ["b" * 1000] * 1200]
    with pytest.raises(DataError, match="row 1 has"):
        read(write(tmp_path / "y.parquet", values, row_group_size=1))


def test_rows_that_stand_for_far_more_than_their_file_are_refused(tmp_path, small_limits):
    same = pa.array(["x" * (MEGABYTE // 2)] * 50)
    for column in (same, same.dictionary_encode()):
        path = write(tmp_path / "x.parquet", column)
        with pytest.raises(DataError, match=r"x.parquet: the rows up to row 13 stand for 7,34"):
            read(path)


@pytest.mark.parametrize(
    "options",
    [
        {"dictionary_pagesize_limit": 1 << 30},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    ],
    ids=str,
)
def test_large_rows_come_in_small_batches(tmp_path, small_limits, options):
    column = ["x" * (MEGABYTE // 2) + str(n // 3) for n in range(3)]
    path = write(tmp_path / "x.parquet", column, **options)
    with open_parquet(path) as file:
        batches = list(file.iter_batches(2048))
    assert max(batch.num_rows for batch in batches) <= 2
    assert [row["x"] for batch in batches for row in batch.to_pylist()] == column


def test_small_rows_come_by_row_group_as_from_pyarrow(tmp_path):
    column = [f"problem {n}" for n in range(5000)]
    path = write(tmp_path / "x.parquet", column, row_group_size=1500)
    with BoundedParquetFile(path) as mine, pq.ParquetFile(path) as theirs:
        assert [batch.num_rows for batch in mine.iter_batches(2048)] == [1500, 1500, 1500, 500]
        part = {"row_groups": [1], "columns": ["x"]}
        assert list(mine.iter_batches(64, **part)) == list(theirs.iter_batches(64, **part))
    assert read(path) == column
    assert list(read(write(tmp_path / "empty.parquet", pa.array([], pa.string())))) == []
