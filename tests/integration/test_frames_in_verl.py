"""Frames of pandas and datasets of `datasets`, which verl installs, are read like files."""

import pytest

import rewardkit

pytest.importorskip("verl")
pandas = pytest.importorskip("pandas")
datasets = pytest.importorskip("datasets")

RESPONSES = [
    {"data_source": "openai/gsm8k", "response": f"#### {answer}", "ground_truth": "5"}
    for answer in (5, 7, 5, 6)
]


@pytest.mark.parametrize("kind", [pandas.DataFrame, datasets.Dataset.from_list])
def test_selected_rows_are_scored_and_go_back(tmp_path, kind):
    rows, out = kind(RESPONSES), tmp_path / "scored.jsonl"
    rows = rows[rows.index > 0] if kind is pandas.DataFrame else rows.select([1, 2, 3])
    report = rewardkit.score_file(rows, "gsm8k", out=out)
    assert (report.total.n, report.total.correct) == (3, 1)
    table = rewardkit.read_table(out)
    assert list(table.to_pandas()["score"]) == [0.0, 1.0, 0.0]
    assert datasets.Dataset(table)["score"][1] == 1.0
