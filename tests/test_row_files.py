"""Rows of files in every format, and of the folders that `datasets` writes."""

import gzip
import json
import struct
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import parquet_file, row
from rewardkit.errors import DataError, SourceError
from rewardkit.file_kinds import ROW_SUFFIXES, is_row_file
from rewardkit.jsonl import MAX_LINE_BYTES
from rewardkit.row_files import rows_in, saved_files, saved_splits
from tests.tables import every

ROWS = [{"question": f"What is {n}+1; or, in words?", "answer": str(n + 1)} for n in range(5)]
TABLE = pa.Table.from_pylist(ROWS)
LARGE = TABLE.cast(pa.schema([("question", pa.large_string()), ("answer", pa.large_string())]))


def arrow(table, new):
    sink = BytesIO()
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet(table):
    sink = BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def separated(separator):
    lines = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
    return "".join(separator.join(f'"{v}"' for v in line) + "\n" for line in lines).encode()


def lines():
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


COLUMNS = {"question": [row["question"] for row in ROWS], "answer": [row["answer"] for row in ROWS]}
NUMBERED = {name: {str(n): v for n, v in enumerate(column)} for name, column in COLUMNS.items()}
NAMED = {name: dict(zip("abcde", column, strict=True)) for name, column in COLUMNS.items()}


@every(
    ("name", "content"),
    [
        ("x.parquet", parquet(TABLE)),
        ("x.parquet", parquet(LARGE)),
        ("x.arrow", arrow(TABLE, pa.ipc.new_stream)),
        ("x.arrow", arrow(TABLE, pa.ipc.new_file)),
        ("x.csv", b"\xef\xbb\xbf" + separated(";")),
        ("x.csv", separated("|")),
        ("x.csv.gz", gzip.compress(separated(";"), mtime=0)),
        ("x.jsonl", lines()),
        ("x.json", lines()),
        ("x.jsonl.gz", gzip.compress(lines()[:50], mtime=0) + gzip.compress(lines()[50:], mtime=0)),
        ("x.ndjson.zst", zstd(lines())),
        ("x.json", json.dumps(ROWS).encode()),
        ("x.json.gz", gzip.compress(b"\xef\xbb\xbf" + json.dumps(ROWS).encode(), mtime=0)),
        ("x.json", json.dumps(COLUMNS).encode()),
        ("x.json", json.dumps(NUMBERED).encode()),
        ("x.json", json.dumps(NAMED).encode()),
    ],
)
def test_every_form_of_a_file_has_the_same_rows(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    assert is_row_file(file)
    assert [row for _, row in rows_in(file)] == ROWS


@every(
    ("content", "columns"),
    [
        ("question,answer\nA; B; C; D?,1\n", ["question", "answer"]),
        ("question;answer\nHow many, one, two or three?;1,5\n", ["question", "answer"]),
        ("question,a;b\n1 broken row\n", ["question", "a;b"]),
        ("question;answer\n\u2028a, b;1\n", ["question", "answer"]),
    ],
)
def test_a_separator_is_found_by_the_header_and_the_first_row(tmp_path, content, columns):
    file = tmp_path / "x.csv"
    file.write_text(content, encoding="utf-8")
    names = []
    list(rows_in(file, lambda _, header: names.extend(header) or names))
    assert names == columns


@every(
    "value",
    [
        {"train": [{"q": "a"}, {"q": "b"}], "test": [{"q": "a"}, {"q": "b"}]},
        {"0": {"question": "a", "answer": "1"}, "2": {"question": "b", "answer": "2"}},
        {"a": {"text": "1", "lang": "en"}, "b": {"text": "2", "lang": "en"}},
        {"question": {"0": "a", "2": "b"}, "answer": {"2": "2", "0": "1"}},
    ],
)
def test_an_object_that_is_no_table_of_columns_is_one_row(tmp_path, value):
    file = tmp_path / "x.json"
    file.write_text(json.dumps(value))
    assert [row for _, row in rows_in(file)] == [value]


@every(
    ("name", "content"),
    [
        ("x.jsonl.gz", gzip.compress(lines(), mtime=0)[:-20]),
        ("x.csv.gz", gzip.compress(separated(","), mtime=0)[:-20]),
        ("x.jsonl.zst", zstd(lines())[:-20]),
        ("x.jsonl.gz", lines()),
        ("x.arrow", arrow(TABLE, pa.ipc.new_file)[:-20]),
    ],
)
def test_a_file_that_is_cut_off_or_not_compressed_is_one_clear_error(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}: not a readable [A-Z]\w+( Lines)? file \("):
        list(rows_in(tmp_path / name))


def test_a_file_that_does_not_exist_is_named(tmp_path):
    for suffix in (*ROW_SUFFIXES, ".csv.zst"):
        with pytest.raises(SourceError, match=rf"x{suffix}: no such file"):
            list(rows_in(tmp_path / f"x{suffix}"))
    assert not is_row_file(tmp_path / "x.parquet.gz")


@pytest.mark.full
def test_a_small_file_that_decompresses_to_one_long_line_is_not_read_into_memory(tmp_path):
    with gzip.open(tmp_path / "x.jsonl.gz", "wb") as file:
        for _ in range(3 * MAX_LINE_BYTES >> 20):
            file.write(b" " * (1 << 20))
    with pytest.raises(DataError, match=r"x.jsonl.gz:1: the line has 201,326,592 bytes"):
        list(rows_in(tmp_path / "x.jsonl.gz"))


def save_to_disk(folder, tables):
    """Write what `Dataset.save_to_disk` writes, and a cache that a later `map` leaves there."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05d}-of-{len(tables):05d}.arrow" for n in range(len(tables))]
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    (folder / "cache-0123456789abcdef.arrow").write_bytes(arrow(TABLE, pa.ipc.new_stream))
    for name, table in zip(names, tables, strict=True):
        (folder / name).write_bytes(arrow(table, pa.ipc.new_stream))


def test_a_saved_dataset_is_its_shards_in_order_and_a_missing_one_is_named(tmp_path):
    folder = tmp_path / "d"
    save_to_disk(folder, [TABLE.slice(0, 2), TABLE.slice(2, 0), TABLE.slice(2)])
    files = saved_files(folder)
    assert [row for file in files for _, row in rows_in(file)] == ROWS
    assert saved_splits(folder) == []
    (folder / "data-00001-of-00003.arrow").unlink()
    with pytest.raises(SourceError, match="d/data-00001-of-00003.arrow: missing, but state.json"):
        saved_files(folder)
    for text in ("{}", "["):
        (folder / "state.json").write_text(text)
        with pytest.raises(SourceError, match="state.json: not the state of a dataset"):
            saved_files(folder)


def test_a_folder_of_one_saved_split_is_read_and_of_several_each_is_named(tmp_path):
    save_to_disk(tmp_path / "d/train", [TABLE])
    (tmp_path / "d/dataset_dict.json").write_text("{}")
    assert [row for _, row in rows_in(tmp_path / "d")] == ROWS
    save_to_disk(tmp_path / "d/test", [TABLE])
    with pytest.raises(
        SourceError, match="d: has several splits. Name the folder of one: .*d/test or"
    ):
        list(rows_in(tmp_path / "d"))
    with pytest.raises(SourceError, match=r"a folder without the state\.json of a saved dataset"):
        list(rows_in(tmp_path))


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file])
def test_an_arrow_dictionary_is_read_in_small_parts_or_refused(tmp_path, monkeypatch, new):
    value = ["x" * 500, "x" * 500]
    monkeypatch.setattr(parquet_file, "MAX_LINE_BYTES", 10_000)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 900, pa.int32()), [value])
    file = tmp_path / "x.arrow"
    file.write_bytes(arrow(pa.table({"question": column}), new))
    assert [row["question"] for _, row in rows_in(file)] == [value] * 900
    monkeypatch.setattr(parquet_file, "MAX_BATCH_BYTES", 100_000)
    monkeypatch.setattr(parquet_file, "MAX_ROWS_RATIO", 10)
    with pytest.raises(DataError, match=r"x.arrow: the rows up to row 899 stand for 9"):
        list(rows_in(file))


def test_a_batch_of_rows_ends_at_a_number_of_characters(monkeypatch):
    monkeypatch.setattr(row, "BATCH_CHARACTERS", 10)
    rows = [{"a": "1234"}, {"a": [{"b": b"123456"}]}, {"a": "1" * 50}, {"a": None}, {"a": 1}]
    assert list(row.batched(rows, 2)) == [rows[:2], rows[2:3], rows[3:]]


def test_an_arrow_file_whose_offsets_lead_out_of_it_is_an_error_and_no_crash(tmp_path, cli):
    """Arrow itself checks no offset: it would read any memory, and end the process."""
    table = pa.table({"question": ["a?", "b?", "c?"], "answer": ["1", "2", "3"]})
    content = arrow(table, pa.ipc.new_stream)
    offsets, broken = (struct.pack("<4i", 0, 2, 4, last) for last in (6, 1 << 30))
    assert offsets in content
    (tmp_path / "x.arrow").write_bytes(content.replace(offsets, broken))
    done = cli("prep", "x.arrow", "--out", "o.parquet", cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith("error: x.arrow: not a readable Arrow file (")
