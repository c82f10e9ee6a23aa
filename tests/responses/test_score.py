import json

import pytest

from rewardkit.errors import OutputError, SourceError
from rewardkit.responses.score import score_file
from rewardkit.scorers.load import load_scorer


def write(tmp_path, *lines):
    file = tmp_path / "responses.jsonl"
    text = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    file.write_bytes(b"\n".join(text))
    return file


def test_the_report_counts_by_status_and_data_source(tmp_path):
    file = write(
        tmp_path,
        {"response": "#### 1", "ground_truth": "1", "data_source": "a"},
        {"response": "#### 2", "ground_truth": "1", "data_source": "a"},
        {"response": "none", "ground_truth": "1", "data_source": "b"},
    )
    summary = score_file(file, load_scorer("gsm8k")).summary()
    low, high = summary["total"].pop("interval")
    assert 0 < low < 1 / 3 < high < 1
    assert summary["total"].pop("no_answer") == 1 / 3
    assert summary["total"] == {
        "n": 3,
        "mean_score": 1 / 3,
        "accuracy": 1 / 3,
        "statuses": {"correct": 1, "wrong": 1, "no_answer": 1},
    }
    assert summary["by_data_source"]["a"]["accuracy"] == 0.5


@pytest.mark.parametrize(
    "row",
    [
        {"response": "#### 1", "ground_truth": "1"},
        {"input": "q", "output": "#### 1", "gts": "1", "score": 0.0, "step": 3},
        {"solution_str": "#### 1", "reward_model": {"ground_truth": "1"}},
        {"response": "#### 1", "ground_truth": 1},
    ],
)
def test_the_usual_field_names_are_read(tmp_path, row):
    assert score_file(write(tmp_path, row), load_scorer("gsm8k")).total.correct == 1


def test_other_field_names_can_be_passed(tmp_path):
    file = write(tmp_path, {"text": "#### 1", "meta": {"gold": "1"}})
    report = score_file(file, load_scorer("gsm8k"), response_key="text", gold_key="meta.gold")
    assert report.total.correct == 1


def test_rows_that_cannot_be_scored_are_reported_and_the_rest_is_scored(tmp_path):
    good = {"response": "#### 1", "ground_truth": "1"}
    file = write(
        tmp_path, good, b"{half", b"[1]", {"response": "x"}, {"ground_truth": "1"},
        {"response": 5, "ground_truth": "1"}, b"\xff\xfe", b"", good,
    )  # fmt: skip
    report = score_file(file, load_scorer("gsm8k"))
    assert (report.total.n, report.unscored) == (2, 6)
    line_numbers = [line.where.rpartition(":")[2] for line in report.examples]
    assert line_numbers == ["2", "3", "4", "5", "6", "7"]


def test_each_row_is_scored_by_its_own_scorer_by_default(tmp_path):
    file = write(
        tmp_path,
        {"response": "#### 1", "ground_truth": "1", "data_source": "openai/gsm8k"},
        {"response": r"\boxed{1}", "ground_truth": "1", "extra_info": {"scorer": "math"}},
        {"response": "#### 1", "ground_truth": "1", "data_source": "unknown"},
    )
    report = score_file(file, load_scorer("auto"))
    assert (report.total.correct, report.unscored) == (2, 1)
    assert "no scorer is known for data_source 'unknown'" in report.examples[0].reason


def test_scored_rows_keep_all_their_fields(tmp_path):
    file = write(tmp_path, {"output": "#### 1", "gts": "1", "score": 0.25, "step": 3})
    out = tmp_path / "scored.jsonl"
    score_file(file, load_scorer("gsm8k"), out=out)
    assert json.loads(out.read_text()) == {
        "output": "#### 1",
        "gts": "1",
        "score_before": 0.25,
        "step": 3,
        "score": 1.0,
        "acc": 1.0,
        "pred": "1",
        "no_answer": 0.0,
        "timeout": 0.0,
        "error": 0.0,
        "status": "correct",
    }
    with pytest.raises(OutputError, match="--overwrite"):
        score_file(file, load_scorer("gsm8k"), out=out)


def test_hostile_responses_are_scored_like_any_other(tmp_path):
    texts = ["\ud800", "\x00", "#### " * 100_000, "{" * 1_000_000, "9" * 1_000_000, "\u202e#### 1"]
    file = write(tmp_path, *({"response": text, "ground_truth": "1"} for text in texts))
    for name in ("gsm8k", "math"):
        report = score_file(file, load_scorer(name), out=tmp_path / f"{name}.jsonl")
        assert (report.total.n, report.unscored) == (len(texts), 0)


def test_a_missing_file_is_one_clear_error(tmp_path):
    for name in ("nope.jsonl", "nope.parquet"):
        with pytest.raises(SourceError, match="[Nn]o such file"):
            score_file(tmp_path / name, load_scorer("gsm8k"))
