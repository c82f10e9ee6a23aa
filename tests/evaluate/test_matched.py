"""Responses of other programs, in small files of our own in each program's shape."""

import json

import pytest

from rewardkit.errors import DataError, OutputError
from rewardkit.evaluate.evaluation import evaluate_responses

ROWS = 4


def question(row):
    return f"Which number is {row + 10}?"


def texts(row):
    """Return a right and a wrong response to a row."""
    return [f"#### {row + 10}", "#### 5"]


def verl(row, text):
    text_in = f"system\nYou are helpful.\nuser\n{question(row)} Say #### first.\nassistant\n"
    return {"input": text_in, "output": text, "gts": str(row + 10), "score": 0.0, "step": 3}


def batch(row, text, sample, finish="stop"):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {"object": "chat.completion", "model": "M", "choices": [choice]}
    answer = {"status_code": 200, "request_id": "r", "body": body}
    return {"custom_id": f"q{row}-{sample}", "response": answer, "error": None}


def aisbench(row, text):
    prompt = [{"role": "HUMAN", "prompt": f"{question(row)}\nThink first."}]
    answer = {"prediction": text, "output_tokens": 11, "gold": str(row + 10)}
    return {"data_abbr": "gsm8k", "id": row, "success": True, "origin_prompt": prompt, **answer}


FILES = {
    "verl": [verl(row, text) for row in range(ROWS) for text in texts(row)],
    "batch": [
        batch(row, t, i) for i in range(2) for row in range(ROWS) for t in texts(row)[i : i + 1]
    ],
    "aisbench": [aisbench(row, text) for row in range(ROWS) for text in texts(row)],
}


def write_lines(tmp_path, records, name="r.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("program", FILES)
def test_each_response_is_judged_with_the_row_that_it_answers(program, parquet, tmp_path):
    file, out = write_lines(tmp_path, FILES[program]), tmp_path / "out.jsonl"
    report = evaluate_responses(parquet(ROWS), [str(file)], out)
    with pytest.raises(OutputError, match="--overwrite"):
        evaluate_responses(parquet(ROWS), [str(file)], out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(line["acc"] == (line["response"] != "#### 5") for line in lines)
    assert [line["ground_truth"] for line in lines if line["acc"]] == [
        str(row + 10) for row in range(ROWS)
    ]
    assert report.unread == report.unanswered == report.unconfirmed == 0
    total = report.summary()["total"]
    assert total["pass@k"]["2"]["value"] == 1
    assert total["finish_reason_unknown"] == (0 if program == "batch" else 2 * ROWS)


def test_unmatched_records_are_reported_and_not_counted(parquet, tmp_path):
    records = [
        verl(1, "#### 11"),
        {**verl(0, "#### 5"), "input": "What is love?"},
        {"output": None, "input": "x"},
        {"nothing": 1},
        {**verl(2, "#### 12"), "tokens": 10**30},
        {**batch(3, "#### 13", 0), "custom_id": "q3", "response": None, "error": {"code": "late"}},
    ]
    file = write_lines(tmp_path, records)
    report = evaluate_responses(parquet(ROWS), [str(file), f"{tmp_path}/./r.jsonl"])
    summary = report.summary()
    examples = [example.partition("r.jsonl:")[2] for example in summary["unread_examples"]]
    assert [example.partition(":")[0] for example in examples] == ["2", "3", "4", "6"]
    assert "no row of the parquet has its question" in examples[0]
    assert "the request failed: {'code': 'late'}" in examples[3]
    assert (report.unanswered, summary["total"]["responses"]) == (ROWS - 2, 2)
    assert summary["total"]["tokens"]["known"] == 0
    with pytest.raises(DataError, match=r"no response answers a row of .*r\.jsonl:1: no response"):
        evaluate_responses(parquet(ROWS), [str(write_lines(tmp_path, [{"a": 1}]))])


def test_a_custom_id_that_is_no_source_id_answers_no_row(parquet, tmp_path):
    rows = parquet(3)
    for name, n in (("q2", 1), ("q2-0", 1), ("request-2", 0), ("2", 0)):
        records = [{**batch(2, "#### 12", 0), "custom_id": name}, batch(0, "#### 10", 0)]
        report = evaluate_responses(rows, [str(write_lines(tmp_path, records))])
        assert (report.metrics.total.responses, report.unread) == (1 + n, 1 - n)


def test_unfinished_responses_from_files_count_as_wrong_and_are_reported(parquet, tmp_path):
    reasons = ["stop", "content_filter", "abort", "stop"]
    records = [batch(row, f"#### {row + 10}", 0, reason) for row, reason in enumerate(reasons)]
    records[3]["response"]["body"]["choices"][0]["message"]["content"] = None
    out = tmp_path / "out.jsonl"
    report = evaluate_responses(parquet(4), [str(write_lines(tmp_path, records))], out)
    assert [line["acc"] for line in map(json.loads, out.read_text().splitlines())] == [1, 0, 0, 0]
    warnings = " ".join(report.warnings())
    assert "no usable response for 3 of 4 (abort 1, content_filter 1, no_content 1)" in warnings
