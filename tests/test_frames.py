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


class Columns:
    """A frame of which only the Arrow interface is known, such as one of Polars."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


def stream(rows):
    """Return rows as such a frame."""
    return Columns(pa.Table.from_pylist(rows))


class Dataset:
    """What `datasets.Dataset` has: slices of its rows in a format."""

    def __init__(self, rows):
        self._rows = rows

    def with_format(self, name):
        assert name == "arrow"
        return self

    def __getitem__(self, index):
        return pa.Table.from_pylist(self._rows[index])


KINDS = [list, pa.Table.from_pylist, stream, Dataset]


@every("kind", KINDS)
def test_rows_of_any_kind_are_prepared_checked_and_scored(tmp_path_factory, kind):
    tmp_path = tmp_path_factory.mktemp("rows")
    out, scored = tmp_path / "train.parquet", tmp_path / "scored.jsonl"
    report = rewardkit.prep("gsm8k", out, source=kind(RAW))
    assert report.splits[0].written == 2
    table = rewardkit.read_table(out)
    assert rewardkit.check(table).ok
    assert rewardkit.score_file(kind(RESPONSES), "gsm8k").total.correct == 1
    assert rewardkit.score_files(kind(RESPONSES), "gsm8k").total.n == 2  # also without a list
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


def test_views_of_polars_are_written_and_checked_as_text(tmp_path):
    """Parquet has no views, and pyarrow cannot write a column of them that it must cut."""
    view, out = pa.string_view(), tmp_path / "train.parquet"
    rewardkit.prep("gsm8k", out, source=RAW)
    plain = rewardkit.read_table(out)
    row = plain.slice(0, 1).to_pylist()[0]
    messages = pa.list_(pa.struct({"role": view, "content": view}))
    text = pa.array(["openai/gsm8k"] * 2000, view)
    turns = pa.array([row["prompt"]] * 2000, messages)
    table = pa.table({"data_source": text, "prompt": turns})
    written = pq.read_table(write_rows(Columns(table), tmp_path / "x.parquet"))
    assert written.schema.field("data_source").type == pa.large_string()
    assert written["prompt"].to_pylist() == [row["prompt"]] * 2000
    texts = {
        name: pa.array(column.to_pylist(), view if column.type == pa.string() else column.type)
        for name, column in zip(plain.column_names, plain.columns, strict=True)
    }
    assert rewardkit.check(Columns(pa.table(texts))).ok


def test_rows_in_place_of_a_dataset_are_an_error_that_says_where_they_go(tmp_path):
    for rows in (RAW, tmp_path / "my.jsonl"):
        with pytest.raises(UsageError, match="pass its rows as source="):
            rewardkit.prep(rows, tmp_path / "o.parquet")


def test_a_table_is_written_as_it_is(tmp_path):
    table = pa.table({"a": [1, 2]})
    assert pq.read_table(write_rows(table, tmp_path / "x.parquet")).equals(table)
