"""Every file of responses is read, up to its damage, in bounded memory, and foreign records as ours."""

import gzip
import json
import os
from random import Random

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import SourceError, UsageError
from rewardkit.responses import files as files_module
from rewardkit.responses.files import SkippedRow, expand_paths
from rewardkit.responses.samples import FieldNames, Sample, read_samples, samples_of
from rewardkit.responses.score import score_files

ROWS = [
    {"output": f"so #### {i % 7}", "gts": str(i % 5), "step": i // 100, "score": 0.5}
    for i in range(400)
]
RIGHT = sum(i % 7 == i % 5 for i in range(400))


def lines(rows):
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines(rows)))
    elif path.name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(lines(rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        pacsv.write_csv(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_bytes(lines(rows))
    return str(path)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet", "csv", "json"])
def test_every_file_format_gives_the_same_scores(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(files_module, "CHUNK_BYTES", 2000)
    report = score_files([write(tmp_path / f"x.{suffix}", ROWS)], "gsm8k")
    assert (report.total.n, report.total.correct, report.unscored) == (400, RIGHT, 0)
    assert {step: tally.n for step, tally in report.steps.items()} == dict.fromkeys("0123", 100)


def test_files_of_folders_and_patterns_are_sorted_by_number(tmp_path):
    for step in (10, 9, 1):
        write(tmp_path / f"dump/{step}.jsonl", ROWS[:3])
    write(tmp_path / "dump/notes.txt", [])
    dump = str(tmp_path / "dump")
    names = [name.rpartition("/")[2] for name in expand_paths([dump])]
    assert names == ["1.jsonl", "9.jsonl", "10.jsonl"]
    assert len(expand_paths([f"{dump}/1*.jsonl"])) == 2
    assert len(expand_paths([dump, dump, f"{dump}/./9.jsonl"])) == 3
    os.mkfifo(tmp_path / "pipe")
    for arguments, error, message in (
        ([f"{dump}/nope*"], SourceError, "no such file, and no files of that pattern"),
        ([f"{dump}/nope.parquet"], SourceError, "no such file"),
        (["-", dump], UsageError, "is read alone"),
        ([str(tmp_path / "pipe")], UsageError, "pipe is not a regular file"),
    ):
        with pytest.raises(error, match=message):
            expand_paths(arguments)


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst"])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.9])
def test_the_lines_before_the_cut_of_a_compressed_file_are_read(tmp_path, suffix, part):
    rng = Random(0)  # incompressible, so that a part of the file is the same part of the rows
    rows = [{**row, "input": rng.randbytes(2000).hex()} for row in ROWS]
    good, path = write(tmp_path / "1.jsonl", ROWS[:3]), tmp_path / f"2.{suffix}"
    data = path.read_bytes() if write(path, rows) else b""
    path.write_bytes(data[: 10 + int(part * len(data))])
    report = score_files([path, good], "gsm8k")
    count = report.total.n - 3
    assert 400 * part - 70 <= count < 400  # zstd reads a block of 128 kB completely or not at all
    (only,) = report.examples
    assert "cut off or damaged from here on" in only.reason
    assert only.where == f"{path}:{count + 1}"
    path.write_bytes(lines(ROWS[:5]))  # not compressed at all
    report = score_files([path, good], "gsm8k")
    assert (report.total.n, report.unscored) == (3, 1)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_a_line_that_is_too_long_is_the_only_one_that_fails(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(files_module, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(files_module, "MAX_LINE_BYTES", 5000)
    long = {"output": "x" * 20_000, "gts": "1"}
    rows = [*ROWS[:50], long, *ROWS[50:100], long]
    report = score_files([write(tmp_path / f"x.{suffix}", rows)], "gsm8k")
    assert report.total.n == 100
    assert [row.where.rpartition(":")[2] for row in report.examples] == ["51", "102"]
    assert all("more than the limit of 5,000" in row.reason for row in report.examples)


def test_lines_that_are_no_row_are_skipped_with_their_number_and_the_reason(tmp_path):
    good = json.dumps(ROWS[0]).encode()
    bad = [b"{half", b"[1]", b'{"output": "x"}', b'{"gts": "1"}', b'{"output": 5, "gts": "1"}']
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([good, *bad, b"\xff\xfe", b"", b"[" * 10_000, good, b'{"cut": ']))
    report = score_files([file], "gsm8k")
    assert (report.total.n, report.unscored) == (2, 8)
    numbers = [row.where.rpartition(":")[2] for row in report.examples]
    assert numbers == ["2", "3", "4", "5", "6", "7", "9", "11"]
    assert report.examples[-1].reason.endswith("is it still being written?")


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"response": "r", "ground_truth": 1}, ()),
        ({"input": "q", "output": "r", "gts": "1", "score": 0.0}, ()),
        ({"solution_str": "r", "reward_model": {"ground_truth": "1"}}, ()),
        ({"text": "r", "response": "x", "meta": {"gold": "1"}}, ("text", "meta.gold")),
        ({"responses": ["r"], "ground_truth": ["1"]}, ()),
    ],
)
def test_response_and_gold_are_read_from_the_usual_or_the_named_fields(tmp_path, row, names):
    (sample,) = read_samples([write(tmp_path / "x.jsonl", [row])], FieldNames(*names))
    assert (sample.response, sample.ground_truth) == ("r", "1")


def test_a_row_with_several_responses_has_the_values_of_each(tmp_path):
    texts = ["#### 1", "#### 2", None]
    row = {"responses": texts, "ground_truth": "1", "acc": [1.0, 0.0, 0.0], "score": [7]}
    first, second, none = read_samples([write(tmp_path / "x.parquet", [row])])
    values = [(s.response, s.fields["sample"], s.fields["acc"]) for s in (first, second)]
    assert values == [("#### 1", 0, 1.0), ("#### 2", 1, 0.0)]
    assert first.fields["score"] == [7]
    assert none == SkippedRow(none.where, "the response is NoneType, not text")


def test_prompts_of_any_form_group_the_responses(tmp_path):
    """Without a prompt its index does, in its data source and split, and else each is alone."""
    row = {"output": "r", "gts": "1"}
    rows = [
        {**row, "input": "q"},
        {**row, "prompt": [{"role": "user", "content": "q"}]},
        {**row, "extra_info": {"question": "q"}},
        *({**row, "extra_info": {"index": 0, "split": split}} for split in ("a", "b")),
        {**row, "data_source": "d", "extra_info": {"index": 0, "split": "a"}},
        {**row, "index": 0},
        {**row, "uid": "u"},
        row,
        row,
        {**row, "prompt": 5},
    ]
    samples = list(read_samples([write(tmp_path / "x.jsonl", rows)]))
    assert [s.prompt for s in samples][:3] == ["q", "user: q", "q"]
    groups = [sample.group(sample.prompt) for sample in samples]
    assert [groups.index(group) for group in groups] == [0, 1, 0, 3, 4, 5, 6, 7, 8, 9, 10]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = "custom_id response body choices message content origin_prompt prediction output input "
KEYS += "extra_info finish_reason tokens ground_truth prompt data_source step"
names = st.sampled_from(KEYS.split())


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values), max_size=6))
def test_records_of_any_shape_are_read_without_an_exception(record):
    chunk = files_module.Chunk(path="f", first=1, lines=json.dumps(record).encode())
    for needs_gold in (True, False):
        for sample in samples_of(chunk, needs_gold=needs_gold):
            assert isinstance(sample, (Sample, SkippedRow))
            if isinstance(sample, Sample):
                sample.group(sample.prompt), sample.step, sample.source
