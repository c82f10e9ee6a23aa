"""What a file really is: the messages for files of the wrong kind."""

import gzip
import re
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardkit import file_kinds
from rewardkit.errors import DataError
from rewardkit.file_kinds import lines_fault, missing_file, text_encoding, text_fault
from rewardkit.row import open_parquet

CHINESE = "题目,答案\n小明有三个苹果，又买了两个，现在一共有多少个？,5\n"


def parquet_bytes(tmp_path):
    pq.write_table(pa.table({"a": list(range(999))}), tmp_path / "whole.parquet")
    return (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"q": 1}\n', "x.jsonl: this is JSON Lines, not parquet. Run `rewardkit prep "),
        ("x.parquet", b'{"q": 1}\n{"q": 2}\n', "this is JSON Lines, not parquet"),
        ("x.csv", b"q,a\n1,2\n", "this is CSV, not parquet"),
        ("x.parquet", b"", "the file is empty"),
        ("x.parquet", b"PAR1" + b"x" * 99, "the end of the parquet is missing"),
        ("x.parquet", gzip.compress(b"x", mtime=0), "this is a gzip archive. Run `gunzip < "),
        ("x.xlsx", b"PK\x03\x04", "this is an Excel workbook"),
        ("x.parquet", b"<!DOCTYPE html><html>", "this is a web page: its download failed"),
        ("x.parquet", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        ("x.parquet", b"\x00\x01\x02", "not a readable parquet file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_parquet_says_what_it_is(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(DataError) as raised, open_parquet(file):
        pass
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{file}: ")


def test_a_parquet_that_is_cut_and_one_that_is_a_folder_say_so(tmp_path):
    (tmp_path / "cut.parquet").write_bytes(parquet_bytes(tmp_path)[:-9])
    for name, message in (("cut.parquet", "the end of the parquet is missing"), ("", "a folder")):
        with pytest.raises(DataError, match=message), open_parquet(tmp_path / name):
            pass


def test_a_missing_file_names_its_likely_neighbours(tmp_path):
    (tmp_path / "train.parquet").touch()
    assert missing_file(tmp_path / "trian.parquet").endswith("Did you mean 'train.parquet'?")
    assert missing_file(tmp_path / "x").endswith("x: no such file.")
    assert missing_file(tmp_path / "no/x").endswith(f"no such file, and no folder {tmp_path}/no.")


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (CHINESE, "utf-8", "UTF-8"), (CHINESE, "utf-8-sig", "UTF-8"), (CHINESE, "gbk", "GBK"),
        (CHINESE, "utf-16", "UTF-16"), ("q,a\n1,2\n" * 9, "utf-16-le", "UTF-16LE"),
        ("q,a\n1,2\n" * 9, "utf-16-be", "UTF-16BE"), (CHINESE, "utf-32", "UTF-32"),
        (CHINESE + "𠮷", "gb18030", "GB18030"), ("Où est le café\n", "latin-1", None),
        ("q,a\n", "ascii", "UTF-8"), ("q,a\n一周有几天？,7\n", "gbk", "GBK"),
        ("", "utf-8", "UTF-8"),
    ],
)  # fmt: skip
def test_the_encoding_of_a_text_is_known_from_its_start(text, encoding, name):
    assert text_encoding(text.encode(encoding)) == name


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_a_character_that_the_prefix_cuts_does_not_change_the_encoding(encoding):
    whole = (CHINESE * 99).encode(encoding)
    names = {text_encoding(whole[:size]) for size in range(2000, 2010)}
    assert names == {encoding.upper()}


def test_the_command_for_a_gbk_file_has_its_name(tmp_path):
    file = tmp_path / "my file.csv"
    file.write_bytes(CHINESE.encode("gbk"))
    assert f"`iconv -f GBK -t UTF-8 '{file}' > '{tmp_path}/my file-utf8.csv'`" in text_fault(file)
    file.write_text(CHINESE, encoding="utf-8")
    assert text_fault(file) == ""


def test_rows_under_the_name_of_a_parquet_are_renamed_before_they_are_prepared(tmp_path):
    path = tmp_path / "train.parquet"
    path.write_text('{"question": "1+1?", "answer": "2"}\n')
    source, fault = path.with_suffix(".jsonl"), file_kinds.parquet_fault(path)
    assert f"`mv {path} {source} && rewardkit prep {source} --out {path}`" in fault


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz", "my rows.jsonl"])
def test_the_command_that_unpacks_an_archive_works(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"{}\n"))
    command = re.search("`(.*)`", text_fault(tmp_path / name))[1]
    subprocess.run(["bash", "-c", command], check=True)
    assert (tmp_path / f"{name.partition('.')[0]}-unpacked.jsonl").read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("x.json", b'[{"a": 1}]', "this is a JSON array. Run `jq -c '.[]' "),
        ("x.jsonl", "题".encode("utf-16"), "the text is UTF-16"),
        ("x.jsonl", b"{}\n{}\n", ""),
        ("x.jsonl", b"broken\n", ""),
    ],
)
def test_a_file_without_json_lines_says_what_it_is(tmp_path, name, content, fault):
    (tmp_path / name).write_bytes(content)
    assert fault in lines_fault(tmp_path / name)
    assert bool(lines_fault(tmp_path / name)) == bool(fault)
