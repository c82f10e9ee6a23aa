"""Raw rows: every format, copies, and the messages for broken files."""

import json
import os
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError
from rewardkit.jsonl import MAX_LINE_BYTES
from rewardkit.preprocess.source import RawRows
from rewardkit.row_files import rows_in
from tests.preprocess.rows import write_file
from tests.tables import every

ROWS = [{"q": f"q{i}", "a": str(i), "id": {"key": f"k{i % 3}"}} for i in range(7)]


@pytest.mark.parametrize("suffix", ["parquet", "json", "arrow"])
def test_copies_are_skipped_and_the_first_rows_keep_their_places(tmp_path, suffix):
    files = [write_file(tmp_path / f"{name}.{suffix}", ROWS) for name in "ab"]
    rows = RawRows(files, [("q",)], repeats=("id.key",))
    assert list(rows) == [(i, {"q": f"q{i}"}) for i in range(3)]
    assert rows.read == 14


@given(
    keys=st.lists(st.sampled_from(["a", "b", "c", "", None]), min_size=1, max_size=60),
    group=st.integers(1, 20),
)
def test_parquet_is_searched_for_copies_as_the_other_formats_are(tmp_path_factory, keys, group):
    folder = tmp_path_factory.mktemp("copies")
    rows = [{"q": i, "id": {"key": key, "x": "1"}} for i, key in enumerate(keys)]
    kind = pa.struct([("key", pa.string()), ("x", pa.string())])
    table = pa.Table.from_pylist(rows, pa.schema([("q", pa.int64()), ("id", kind)]))
    pq.write_table(table, folder / "x.parquet", row_group_size=group)
    files = folder / "x.parquet", write_file(folder / "x.jsonl", rows)
    one, other = (list(RawRows([file], [("q",)], repeats=("id.key", "id.x"))) for file in files)
    assert one == other


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_row_of_json_without_a_column_of_the_row_before_has_a_null(tmp_path, name):
    rows = [{"q": 1, "a": 2}, {"q": 3}, {"z": 4}, {"p": 5, "b": 6}, {"p": 7}, {"q": 8, "a": 9}]
    whole = [*rows[:1], {"q": 3, "a": None}, {"q": None, "a": None}, rows[3]]
    whole += [{"p": 7, "b": None}, rows[5]]
    raw_rows = RawRows([write_file(tmp_path / name, rows)], [("q", "a"), ("p", "b")])
    for _ in range(2):
        assert [row for _, row in raw_rows] == whole


@every(
    ("name", "content", "message"),
    [
        ("x.json", b'[{"q": 1}, {"q": ', r"x.json: element 1: not JSON \("),
        ("x.json", b'{"data":\n [{"q": 1}]}', r"x.json:1: an array of rows, or one object per"),
        ("x.json", b'[{"q": ' + b"1" * 5000 + b"}]", r"x.json: element 0: not JSON"),
        ("x.jsonl", b'{"Q": 1}\n', r"x.jsonl:1: has no 'q'; it has Q. Did you mean 'Q'"),
        ("x.csv", "q,题\n1,几\n".encode("gbk"), r"x.csv: the text is GBK, not UTF-8. Run `iconv"),
        ("x.csv", "q,a\n1,2\n".encode("utf-16"), r"x.csv: the text is UTF-16, not UTF-8"),
        ("x.jsonl", b"\x1f\x8b\x08", r"x.jsonl:1: this is a gzip archive. Run `gunzip <"),
        ("x.parquet", b"PAR1", r"x.parquet: not a readable parquet file"),
        ("x.arrow", b"ARROW", r"x.arrow: not a readable Arrow file"),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(RawRows([tmp_path / name], [("q",)]))


@every(
    ("content", "rows"),
    [
        (b"q,a\n3\n1,2\n\n6,7,8\n", [None, "1", None]),
        (b'q,a\r\n"1\r\n1",2\r\n3\r\n4\r\n5,"6\n6"\r\n', ["1\r\n1", None, None, "5"]),
        (b"q,a\n1\n2\n", [None, None]),
    ],
)
def test_a_csv_row_that_does_not_fit_the_header_is_a_row_of_nulls(tmp_path, content, rows):
    """One missing quote must not make the other rows unreadable, nor move their indices."""
    (tmp_path / "x.csv").write_bytes(content)
    read = list(RawRows([tmp_path / "x.csv"], [("q",)]))
    assert read == [(index, {"q": value}) for index, value in enumerate(rows)]


def test_nesting_is_bounded(tmp_path):
    (tmp_path / "x.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(DataError, match="element 0: brackets are nested too deep"):
        list(RawRows([tmp_path / "x.json"], [("q",)]))


@pytest.mark.parametrize("name", ["x.jsonl", "x.json"])
def test_a_line_that_is_too_long_is_an_error_that_names_it(tmp_path, name):
    """Such as a disk image or a file without line ends, which must not be read into memory."""
    (tmp_path / name).write_bytes(b'{"q": 1}\n')
    os.truncate(tmp_path / name, MAX_LINE_BYTES + 100)  # sparse: takes no room on the disk
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"{name}:2: the line has 67,108,955 bytes, more than"):
        list(RawRows([tmp_path / name], [("q",)]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * MAX_LINE_BYTES


@given(
    st.lists(
        st.dictionaries(st.text(max_size=3), st.text() | st.none() | st.integers()), max_size=9
    ),
    st.integers(1, 40),
)
def test_an_array_is_read_in_pieces_of_any_size(tmp_path_factory, rows, size):
    file = tmp_path_factory.mktemp("array") / "x.json"
    file.write_text(
        " \n" + json.dumps(rows, indent=size % 3, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rewardkit.row_files._SAMPLE_BYTES", 3 * size)
        assert [row for _, row in rows_in(file)] == rows


@every("content", ["[{}, , {}]", "[{},]", "[{}] [{}]", "[{} {}]", "[{}", "[,{}]", "["])
def test_an_array_that_is_not_json_is_an_error(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(DataError, match=r"x\.json: (element \d: not JSON|there is text after)"):
        list(rows_in(tmp_path / "x.json"))


@every("element", ['"' + "a" * 300_000 + '"', "[" + "1, " * 100_000 + "1]"])
def test_an_element_that_is_too_long_is_an_error_that_names_it(tmp_path, monkeypatch, element):
    monkeypatch.setattr("rewardkit.row_files.MAX_LINE_BYTES", 100_000)
    ok = '{"q": "' + "a" * 60_000 + '"}'
    (tmp_path / "x.json").write_text(f"[{ok}, {ok}, {ok}, {element}]")
    rows = iter(RawRows([tmp_path / "x.json"], [("q",)]))
    assert [next(rows)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(DataError, match=r"x\.json: element 3 has more than 100,000 bytes"):
        next(rows)
