"""`mix`: exact shares, reproducible rows, and any verl row in our schema or a clear error."""

import json
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.checks.schema import schema_findings
from rewardkit.errors import DataError, OutputError, RewardkitError, SourceError, UsageError
from rewardkit.preprocess import mix as module
from rewardkit.preprocess.foreign_rows import describe_changes, to_schema_row
from rewardkit.preprocess.mix import MixPart, mix, parse_part, share_out
from rewardkit.row import IMAGES, METADATA_KEY, SCHEMA, read_rows, write_rows
from tests.preprocess.rows import JSON, verl_row
from tests.tables import every

AIME = "aime_2024/BytedTsinghua-SIA/data/aime-2024.parquet"
DAPO = "dapo-math-17k/data/dapo-math-17k-dedup.parquet"

WEIGHTS = st.lists(st.integers(1, 1000).map(lambda n: n / 100), min_size=1, max_size=6)


def our_row(i, name="a", gold="1", **more):
    text = f"{name} {i}?"
    fields = {"data_source": name, "ground_truth": gold, "question": text, "answer": ""}
    prompt = [{"role": "user", "content": text}]
    return verl_row(i, **(fields | {"prompt": prompt, "scorer": "math"} | more))


def foreign(**more):
    """A row with only the fields that verl needs."""
    return {
        "data_source": "x/y",
        "prompt": [{"role": "user", "content": "q"}],
        "reward_model": {"style": "rule", "ground_truth": "1"},
    } | more


@pytest.fixture
def files(tmp_path):
    """Write `{name: number of rows}` as parquets and return their paths."""

    def write(**counts):
        paths = [tmp_path / f"{name}.parquet" for name in counts]
        for path, count in zip(paths, counts.values(), strict=True):
            write_rows((our_row(i, path.stem) for i in range(count)), path, {}, overwrite=True)
        return paths

    return write


@pytest.fixture
def mixed(files, tmp_path):
    """Mix files of so many rows with these weights; return the report and the rows."""

    def make(counts, *weights, **options):
        paths = files(**counts)
        parts = map(MixPart, paths, weights or [None] * len(paths))
        report = mix(list(parts), tmp_path / "m.parquet", overwrite=True, **options)
        return report, list(read_rows(tmp_path / "m.parquet"))

    return make


def write_table(path, *rows, schema=None):
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path


# Counts


@given(WEIGHTS, st.integers(1, 10**7))
def test_counts_add_up_and_are_within_one_of_their_share(weights, rows):
    assert share_out([0.7, 0.3], 1000) == [700, 300]  # binary fractions can be off by one
    counts = share_out(weights, rows)
    assert sum(counts) == rows
    for weight, count in zip(weights, counts, strict=True):
        assert abs(count - weight / sum(weights) * rows) < 1 + 1e-6


@every(
    ("text", "part"),
    [
        ("run:2:3", ("run:2", 3)),
        ("s:t/a.parquet", ("s:t/a.parquet", None)),
        ("a.parquet:1e-3", ("a.parquet", 0.001)),
    ],
)
def test_a_part_is_a_path_and_a_weight(text, part):
    parsed = parse_part(text)
    assert (str(parsed.path), parsed.weight) == part


# The mix


def test_without_weights_a_mix_has_all_rows_and_with_one_the_shares(mixed):
    for weights, counts in (((), [300, 10]), ((None, 2), [5, 10])):
        report, _ = mixed({"a": 300, "b": 10}, *weights)
        assert [part.rows for part in report.parts] == counts


def test_the_shares_are_exact_no_row_occurs_twice_and_the_parquet_says_so(mixed, tmp_path):
    report, rows = mixed({"a": 300, "b": 5000}, 3, 7, rows=1000, seed=9)
    counts = Counter((row["data_source"], row["extra_info"]["index"]) for row in rows)
    assert Counter(name for name, _ in counts) == {"a": 300, "b": 700}
    assert set(counts.values()) == {1}
    assert [(p.rows, p.available, p.times) for p in report.parts] == [(300, 300, 1), (700, 5000, 1)]
    assert (report.written, report.stats.rows, report.shared) == (1000, 1000, 0)
    assert report.stats.groups["data_source"] == {"a": 300, "b": 700}
    made = json.loads(pq.read_schema(tmp_path / "m.parquet").metadata[METADATA_KEY])
    assert (made["seed"], bool(made["rewardkit"])) == (9, True)
    part = {"name": str(tmp_path / "b.parquet"), "weight": 7, "rows": 700}
    assert made["mix"][1] == part


def test_a_part_keeps_its_file_s_order_and_parts_are_interleaved(mixed):
    _, rows = mixed({"a": 500, "b": 500}, rows=600, seed=3)
    for name in "ab":
        indices = [r["extra_info"]["index"] for r in rows if r["data_source"] == name]
        assert indices == sorted(indices)
    names = "".join(row["data_source"] for row in rows)
    assert 200 < names.count("ab") + names.count("ba") < 400


def test_the_choice_depends_on_the_seed_and_is_the_same_on_every_machine(mixed):
    """Fixed values: only `random.random()` is used, whose numbers are the same in all versions."""
    one, other = (mixed({"a": 300, "b": 300}, rows=100, seed=seed)[1] for seed in (1, 2))
    assert one != other
    indices = [p for p, part in enumerate(module._order([6, 14], random.Random(7))) if part == 0]
    assert indices == [1, 3, 6, 8, 10, 11]
    assert list(module._order([3, 2], random.Random(7))) == [0, 0, 1, 0, 1]


def test_oversampling_repeats_every_row_k_or_k_plus_1_times(mixed, tmp_path):
    with pytest.raises(UsageError, match=r"a\.parquet has 30 rows.*--rows \d+.*--oversample"):
        mixed({"a": 30, "b": 2000}, 1, 1, rows=200)
    report, rows = mixed({"a": 30, "b": 2000}, 1, 1, rows=200, oversample=True)
    counts = Counter(r["extra_info"]["index"] for r in rows if r["data_source"] == "a")
    assert (len(counts), set(counts.values()), counts.total()) == (30, {3, 4}, 100)
    assert [p.times for p in report.parts] == [4, 1]


def test_questions_of_several_parts_are_counted_and_their_golds_compared(tmp_path):
    parts = {"a": ["1", "25", "3", "4", "4"], "b": ["1", "025", "7"], "c": ["2"]}
    for name, golds in parts.items():
        rows = (our_row(i, name, gold, question=f"Q{i}") for i, gold in enumerate(golds))
        write_rows(rows, tmp_path / name, {})
    files = [MixPart(tmp_path / name) for name in parts]
    report = mix(files, tmp_path / "m.parquet", rows=30, oversample=True)
    assert (report.shared, report.conflicting) == (3, 2)


@pytest.mark.full
def test_pictures_are_written_even_if_the_first_rows_have_none(files, tmp_path):
    """write_rows looks for the column of images only in the first rows."""
    [a] = files(a=9000)
    picture = {"bytes": b"png", "path": None}
    b = write_table(tmp_path / "b", foreign(images=[picture]), schema=SCHEMA.append(IMAGES))
    mix([MixPart(a, 9000), MixPart(b, 1)], tmp_path / "m.parquet", seed=5)
    rows = list(read_rows(tmp_path / "m.parquet"))
    assert [row["images"] for row in rows if row["images"]] == [[picture]]
    assert not any(row["images"] for row in rows[:2048])


def test_images_that_the_first_rows_lack_are_an_error_and_not_lost(tmp_path):
    rows = [our_row(i) for i in range(2049)]
    rows[-1]["images"] = [{"bytes": b"png", "path": None}]
    with pytest.raises(DataError, match="after the first 2,048 have images, which those lack"):
        write_rows(rows, tmp_path / "m.parquet", {})
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("a.parquet:nan", "must be above 0"),
        (":1", "Write FILE:WEIGHT"),
        ("a.parquet:30%", "'30%' is not a weight. Write FILE:0.7"),
        ("sub/../b.parquet", "named twice"),
        ("a.parquet", "add --overwrite"),
    ],
)
def test_an_invalid_part_is_an_error(files, tmp_path, monkeypatch, part, message):
    files(a=5, b=5, m=5)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "m.parquet").read_bytes()
    with pytest.raises((UsageError, OutputError), match=message):
        mix([parse_part(part), MixPart(Path("b.parquet"))], "m.parquet")
    assert (tmp_path / "m.parquet").read_bytes() == before


BAD = {
    "no gold": (foreign(reward_model={"style": "rule"}), "ground_truth is missing"),
    "two golds": (foreign(reward_model={"ground_truth": ["1", "2"]}), "ground_truth is a list of"),
    "no prompt": (foreign(prompt=None), "prompt is missing"),
    "empty prompt": (foreign(prompt=[]), "prompt is missing or empty"),
    "tool call": (foreign(prompt=[{"role": "user", "content": "q", "tool_calls": [{"id": "1"}]}]), r"prompt\[\].tool_calls is set"),
    "video": (foreign(videos=[{"video": "v.mp4"}]), "videos is set"),
    "no bytes": (foreign(images=[{"bytes": None, "path": "a.png"}]), r"images\[\].bytes is missing"),
    "pixels": (foreign(images=[{"bytes": b"x", "min_pixels": 4}]), r"images\[\].min_pixels is set"),
}  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Three batches of good rows."""
    path = tmp_path_factory.mktemp("good") / "good.parquet"
    write_rows((our_row(i) for i in range(3000)), path, {})
    return path


@pytest.mark.parametrize("case", BAD)
def test_a_row_that_cannot_be_converted_is_one_clear_error_and_leaves_no_file(case, good, tmp_path):
    row, message = BAD[case]
    path = write_table(tmp_path / "bad.parquet", row)
    parts = [MixPart(good, 3000), MixPart(path, 1)]
    with pytest.raises((DataError, SourceError), match=message) as error:
        mix(parts, tmp_path / "m.parquet")
    assert str(error.value).startswith(f"{path}: row 0: ")
    assert "\n" not in str(error.value)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.parquet"]


@pytest.mark.parametrize(
    ("name", "message"), [("empty", "no rows"), ("text", "not a readable parquet")]
)
def test_files_that_cannot_be_read_are_one_clear_error(good, tmp_path, name, message):
    write_table(tmp_path / "empty", schema=SCHEMA)
    (tmp_path / "text").write_text("no parquet")
    with pytest.raises((DataError, SourceError), match=message):
        mix([MixPart(good), MixPart(tmp_path / name)], tmp_path / "m.parquet")
    assert not (tmp_path / "m.parquet").exists()


def test_a_column_that_is_not_a_python_value_is_left_out_and_named(tmp_path):
    """Such as a struct with two fields of one name, for which to_pylist raises a ValueError."""
    twice = pa.StructArray.from_arrays([pa.array(["1"]), pa.array(["2"])], ["a", "a"])
    pq.write_table(pa.Table.from_pylist([foreign()]).append_column("x", twice), tmp_path / "twice")
    report = mix([MixPart(tmp_path / "twice")], tmp_path / "m.parquet")
    assert report.parts[0].left_out == {"x": 1}


# One row


@every(
    ("gold", "text"), [(2**80, str(2**80)), (-0.5, "-0.5"), (Decimal("1.50"), "1.50"), ([7], "7")]
)
def test_a_gold_becomes_its_text(gold, text):
    row = foreign(reward_model={"ground_truth": gold})
    made, left_out = to_schema_row(row, 0)
    assert made["reward_model"] == {"style": "rule", "ground_truth": text}
    assert type(made["reward_model"]["ground_truth"]) is str
    assert not left_out
    is_changed = any("ground_truth was" in change for change in describe_changes(row, made))
    assert is_changed != isinstance(gold, str)


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_of_any_size_stay_exact_in_golds_and_indices(number):
    row = foreign(reward_model={"ground_truth": number}, extra_info={"index": number})
    made, left_out = to_schema_row(row, 5)
    info = made["extra_info"]
    assert made["reward_model"]["ground_truth"] == str(number)
    assert str(number) in (str(info["index"]), info["source_id"])
    assert not left_out
    pa.RecordBatch.from_pylist([made], schema=SCHEMA)


@pytest.mark.parametrize(
    ("info", "index", "source_id", "lost"),
    [
        ({"index": "9a-uuid"}, 7, "9a-uuid", set()),
        ({"index": "9a-uuid", "source_id": 5}, 7, "5", {"extra_info.index"}),
        ({"index": float("nan")}, 7, "", set()),
        ({"index": [1]}, 7, "", {"extra_info.index"}),
        (None, 7, "", set()),
    ],
)
def test_an_index_is_a_whole_number_and_any_other_is_an_id(info, index, source_id, lost):
    made, left_out = to_schema_row(foreign(extra_info=info), 7)
    assert (made["extra_info"]["index"], made["extra_info"]["source_id"]) == (index, source_id)
    assert left_out == lost


def test_fields_outside_the_schema_are_omitted_and_named_unless_they_are_blank():
    model = {"ground_truth": "1", "style": "rule", "rubric": "r"}
    info = {"index": 0, "split": {"a": 1}, "level": 5, "raw_problem": "p", "options": [{"a": 1}]}
    more = {"level": "Level 5", "type": "", "__index_level_0__": 0, "ability": {"a": 1}}
    made, left_out = to_schema_row(foreign(reward_model=model, extra_info=info, **more), 0)
    assert made["extra_info"]["level"] == "5"
    names = "level __index_level_0__ ability reward_model.rubric extra_info.split"
    assert left_out == {*names.split(), "extra_info.raw_problem", "extra_info.options"}


@every(
    ("options", "texts"),
    [(["a", 1, None], ["a", "1", ""]), ({"B": "y", "A": "x", "C": None}, ["x", "y"]), (None, [])],
)
def test_options_become_a_list_of_texts(options, texts):
    made, _ = to_schema_row(foreign(extra_info={"options": options}), 0)
    assert made["extra_info"]["options"] == texts


@every(
    ("column", "kind"),
    [
        ("data_source", pa.dictionary(pa.int32(), pa.string())),
        ("prompt", pa.large_string()),
        ("images", pa.null()),
    ],
)
def test_any_arrow_type_of_the_same_values_can_be_read(tmp_path, column, kind):
    table = pa.Table.from_pylist([{k: v for k, v in foreign().items() if k != column}])
    value = None if pa.types.is_null(kind) else "x/y"
    pq.write_table(table.append_column(column, pa.array([value]).cast(kind)), tmp_path / "a")
    mix([MixPart(tmp_path / "a")], tmp_path / "m.parquet", overwrite=True)
    assert list(schema_findings(pq.read_schema(tmp_path / "m.parquet"))) == []


VALUES = JSON | st.binary()
NAMES = st.sampled_from([*SCHEMA.names, "images", "agent_name", "x"])
INFO = st.sampled_from([*(f.name for f in SCHEMA.field("extra_info").type), "tools_kwargs", "x"])


@given(st.dictionaries(NAMES, VALUES), st.dictionaries(INFO, VALUES), st.booleans())
def test_any_row_can_be_converted_or_is_a_clear_error(fields, info, mostly_good):
    row = {**foreign(), **({} if mostly_good else fields), "extra_info": info}
    try:
        made, left_out = to_schema_row(row, 0)
    except RewardkitError as error:
        assert "\n" not in str(error)
        return
    list(describe_changes(row, made))
    assert all(isinstance(name, str) for name in left_out)
    again, nothing = to_schema_row(made, 0)
    assert (again, nothing) == (made, frozenset())


# Real files


def test_real_files_that_verl_cannot_list_together_become_one(shared, tmp_path):
    parts = [MixPart(shared / "data" / AIME, 1), MixPart(shared / "data" / DAPO, 9)]
    report = mix(parts, tmp_path / "m.parquet", rows=5000)
    a, d = report.parts
    assert (a.rows, d.rows) == (500, 4500)
    assert a.left_out == {"__index_level_0__": 500, "extra_info.raw_problem": 500}
    assert (d.left_out, d.changes) == ({}, {"extra_info.index was str: kept as source_id": 4500})
    schema = pq.read_schema(tmp_path / "m.parquet")
    assert (list(schema_findings(schema)), schema.remove_metadata()) == ([], SCHEMA)
