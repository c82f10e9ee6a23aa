"""The optional checks of `check`: contamination and lengths."""

import re

import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.checks.check import OptionalChecks
from rewardkit.checks.overlap import index_items
from rewardkit.errors import DataError, SourceError, UnknownNameError, UsageError
from rewardkit.preprocess.card_dataset import dataset_from_file
from rewardkit.preprocess.eval_sets import read_eval_sets
from tests.preprocess.rows import dropped, infos, jsonl

STORY = (
    "At the end of the week a baker in {town} counts how many loaves were sold on all seven days "
    "together, on each of which half as many were sold in the afternoon as in the morning, and in "
    "the morning always {n}"
)


def write(tmp_path, name, *pairs):
    source = jsonl(tmp_path / f"{name}.jsonl", *({"question": q, "answer": a} for q, a in pairs))
    rewardkit.prep(dataset_from_file(source), tmp_path / f"{name}.parquet", source=source)
    return tmp_path / f"{name}.parquet"


@pytest.fixture
def train(tmp_path):
    texts = [STORY.format(town="Ulm", n=40), "What is 1+1?", STORY.format(town="Ulm", n=44)]
    return write(tmp_path, "train", *((text, "1") for text in texts))


@pytest.fixture
def held_out(tmp_path):
    other = "How long is the diagonal of a square field whose fence is forty metres long?"
    return write(tmp_path, "val", (STORY.format(town="Graz", n=40), "420"), (other, "14.14"))


def against(*specs):
    return OptionalChecks(against=index_items(read_eval_sets(list(map(str, specs))).items))


def test_a_row_with_an_evaluation_item_is_reported_and_dropped(train, held_out, tmp_path):
    out = tmp_path / "clean.parquet"
    report = rewardkit.check(train, extras=against(held_out), drop_overlap=out)
    assert (report.counts, report.kept) == ({"overlap": 1}, 2)
    [overlap] = report.overlaps
    assert (overlap.row, overlap.source, overlap.item) == (0, "val", "0")
    assert 0.5 <= overlap.coverage < 1
    assert infos(out, "index") == [1, 2]
    [entry] = dropped(out)
    assert entry["reasons"][0].startswith("overlap:")


def test_a_variant_with_other_numbers_is_no_finding_however_much_of_the_item_it_has(tmp_path):
    """docs/data.md calls the same problem with other numbers a near miss; half of it was a copy."""
    item = STORY.format(town="Graz", n=40)
    variant, words = item.replace("40", "44"), item.replace("40", "forty")
    part = item.replace("Graz", "Ulm")
    cut = item[: len(item) * 3 // 4] + "?"
    rows = write(tmp_path, "rows", *((text, "1") for text in (item, variant, part, words, cut)))
    report = rewardkit.check(rows, extras=against(write(tmp_path, "evals", (item, "1"))))
    assert {o.row: o.rule for o in report.overlaps} == {0: "copy", 2: "part", 3: "part", 4: "part"}
    assert [(o.row, o.rule) for o in report.near_misses] == [(1, "near_miss")]
    assert report.pairs_by_set == {"evals": {"copy": 1, "part": 3, "near_miss": 1}}
    assert report.counts["overlap"] == 4


def test_drop_overlap_does_not_drop_rows_with_other_findings(tmp_path, held_out):
    twice = write(tmp_path, "twice", ("What is 1+1?", "2"), ("What is 1+1?", "2"))
    out = tmp_path / "out.parquet"
    report = rewardkit.check(twice, extras=against(held_out), drop_overlap=out)
    assert (report.counts, pq.read_metadata(out).num_rows) == ({"duplicate": 1}, 2)
    with pytest.raises(UsageError, match="leave --drop-overlap out"):
        rewardkit.check(twice, drop_bad=out, drop_overlap=tmp_path / "o2.parquet")


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("math-500={folder}/nope", SourceError, "no such file or folder"),
        ("{folder}/nope.jsonl", SourceError, "nope.jsonl: no such file"),
        ("{folder}/x.jsonl", DataError, "prep .*--question-key ask .*--against NAME=.*x.jsonl"),
        ("{folder}/x.txt", DataError, "Write one with rewardkit prep"),
        ("my=x.parquet", UnknownNameError, "A verl parquet needs no name: --against x.parquet"),
    ],
)
def test_a_missing_evaluation_set_is_one_clear_error(tmp_path, spec, error, message):
    message = re.compile(message, re.DOTALL)
    for name in ("x.jsonl", "x.txt"):
        (tmp_path / name).write_text('{"ask": "How many legs do two cats have?", "answer": "8"}\n')
    with pytest.raises(error, match=message):
        read_eval_sets([spec.format(folder=tmp_path)])
