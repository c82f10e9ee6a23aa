"""MATH-V's own texts and golds, with a stand-in for every picture: the copy at hand has none."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.preprocess.source import SAMPLES
from rewardkit.row import read_rows
from rewardkit.scorers.row_scorer import scorer_for

#: Rows whose labels are wrong: the response has another option's value, or none's.
WRONG_LABELS = {"mathv:Gemini-Pro-CoT:2199", "mathv:Qwen-VL-Max-CoT:1410"}


@pytest.fixture(scope="module")
def prepared(shared, tmp_path_factory):
    """The rows by id, and the report of `prep`."""
    folder = tmp_path_factory.mktemp("math-v")
    lines = (shared / "data/benchmarks/mathv_test.jsonl").read_text(encoding="utf-8").splitlines()
    schema = pq.read_schema(SAMPLES / "math-v/test.parquet")
    picture = {"bytes": b"a picture", "path": None}
    rows = [{**json.loads(line), "decoded_image": picture} for line in lines]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "test-0.parquet")
    out = folder / "out.parquet"
    report = rewardkit.prep("math-v", out, split="test", source=folder / "test-0.parquet")
    return {row["extra_info"]["source_id"]: row for row in read_rows(out)}, report.splits[0]


def test_all_rows_are_written_and_pass_the_self_check(prepared):
    rows, report = prepared
    assert (report.read, report.written, report.dropped) == (3_040, 3_040, {})
    assert len(rows) == 3_040
    kinds = Counter(row["extra_info"]["kind"] for row in rows.values())
    assert kinds == {"single": 1_532, "": 1_508}


def test_every_row_has_one_mark_and_figures_keep_their_names(prepared):
    rows, _ = prepared
    texts = {name: row["prompt"][-1]["content"] for name, row in rows.items()}
    assert all(text.count("<image>") == 1 for text in texts.values())
    named = [text for text in texts.values() if "<image1>" in text]
    assert len(named) == 340
    assert all(text.startswith("<image>") for text in named)
    assert "A. <image1>\nB. <image2>" in texts["2673"]


@pytest.mark.parametrize("file", ["mathv_choice", "mathv_free"])
def test_the_scorer_of_a_row_judges_letters_option_values_and_values(prepared, shared, file):
    rows, _ = prepared
    wrong = []
    cases = (shared / f"cases/{file}.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(json.loads, cases):
        row = rows[case["id"].rpartition(":")[2]]
        info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
        assert info["options"] == case["options"]
        verdict = scorer_for(row["data_source"], info)(case["solution_str"], gold, info)
        if verdict.correct != case["label"]:
            wrong.append(case["id"])
    assert set(wrong) <= WRONG_LABELS
