"""Rows that a notebook holds are read like a file of theirs, and go back as an Arrow table."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.errors import DataError, UsageError
from rewardkit.frames import write_rows
from tests.tables import every

RAW = [
    {"question": "What is 2 + 3?", "answer": "2 + 3 = 5\n#### 5"},
    {"question": "What is 4 + 4?", "answer": "4 + 4 = 8\n#### 8"},
]
RESPONSES = [
    {"data_source": "openai/gsm8k", "response": "#### 5", "ground_truth": "5"},
    {"data_source": "openai/gsm8k", "response": "#### 7", "ground_truth": "8"},
]


class Stream:
    """A frame of which only the Arrow interface is known, such as one of Polars."""

    def __init__(self, rows):
        self.__arrow_c_stream__ = pa.Table.from_pylist(rows).__arrow_c_stream__


class Dataset:
    """What `datasets.Dataset` has: slices of its rows in a format."""

    def __init__(self, rows):
        self._rows = rows

    def with_format(self, name):
        assert name == "arrow"
        return self

    def __getitem__(self, index):
        return pa.Table.from_pylist(self._rows[index])


KINDS = [list, pa.Table.from_pylist, Stream, Dataset]


@every("kind", KINDS)
def test_rows_of_any_kind_are_prepared_checked_and_scored(tmp_path_factory, kind):
    tmp_path = tmp_path_factory.mktemp("rows")
    out, scored = tmp_path / "train.parquet", tmp_path / "scored.jsonl"
    report = rewardkit.prep("gsm8k", out, source=kind(RAW))
    assert report.splits[0].written == 2
    table = rewardkit.read_table(out)
    assert rewardkit.check(table).ok
    assert rewardkit.score_file(kind(RESPONSES), "gsm8k").total.correct == 1
    both = rewardkit.score_files([kind(RESPONSES), kind(RESPONSES[:1])], "gsm8k", out=scored)
    assert (both.total.n, both.total.correct) == (3, 2)
    assert rewardkit.read_table(scored)["score"].to_pylist() == [1.0, 0.0, 1.0]


def test_a_finding_names_the_row():
    rows = [{"data_source": "openai/gsm8k", "prompt": [], "reward_model": {"ground_truth": "5"}}]
    report = rewardkit.check(rows)
    assert not report.ok
    assert report.path.name == "rows.parquet"


def test_rows_that_arrow_cannot_hold_are_an_error_of_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"^Arrow cannot hold these rows \(list\): .*"):
        rewardkit.score_file([{"response": "a"}, {"response": 1}, {"response": {}}])
    mixed = tmp_path / "x.jsonl"
    mixed.write_text('{"a": 1}\n{"a": "x"}\n')
    with pytest.raises(DataError, match="x.jsonl: Arrow cannot hold the rows"):
        rewardkit.read_table(mixed)


def test_a_table_is_written_as_it_is(tmp_path):
    table = pa.table({"a": [1, 2]})
    assert pq.read_table(write_rows(table, tmp_path / "x.parquet")).equals(table)
