"""Response files of other commands: `eval responses` reads what `score` writes."""

import json

from rewardkit.responses.formats import ResponseRecord, read_response_records
from rewardkit.responses.samples import SkippedRow
from rewardkit.responses.score import score_files

ROW = {
    "input": "What is 1 + 0?",
    "output": "#### 1",
    "gts": "1",
    "extra_info": {"index": 4, "split": "test"},
}


def test_a_scored_parquet_has_the_fields_of_its_rows(tmp_path):
    (tmp_path / "dump.jsonl").write_text(json.dumps(ROW) + "\n")
    out = tmp_path / "scored.parquet"
    score_files([str(tmp_path / "dump.jsonl")], "gsm8k", out=out)
    (record,) = read_response_records([str(out)])
    assert isinstance(record, ResponseRecord)
    assert (record.prompt, record.gold, record.texts[0].response) == (
        "What is 1 + 0?",
        "1",
        "#### 1",
    )
    assert record.fields["extra_info"] == ROW["extra_info"]


def test_an_incomplete_last_line_is_skipped_with_the_reason(tmp_path):
    file = tmp_path / "dump.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW)[:20])
    record, skipped_line = read_response_records([str(file)])
    assert isinstance(record, ResponseRecord)
    assert isinstance(skipped_line, SkippedRow)
    assert skipped_line.where == f"{file}:2"
    assert "is it still being written?" in skipped_line.reason
