"""Responses of other programs, in small files of our own in each program's shape."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import DataError, UsageError
from rewardkit.evaluate.evaluation import evaluate, evaluate_responses
from rewardkit.evaluate.generate import GenerationConfig, Sampling
from rewardkit.evaluate.leaderboard import compare_results
from rewardkit.evaluate.match_responses import rows_by_custom_id
from rewardkit.evaluate.questions import read_questions
from rewardkit.model_client.client import Server
from rewardkit.responses.formats import parse_record
from rewardkit.responses.samples import Record, SkippedRow

ROWS = 4


def question(row):
    return f"Which number is {row + 10}?"


def texts(row):
    """Return a right and a wrong response to a row."""
    return [f"#### {row + 10}", "#### 5"]


def verl(row, text):
    return {
        "input": f"system\nYou are helpful.\nuser\n{question(row)} Say #### first.\nassistant\n",
        "output": text,
        "gts": str(row + 10),
        "score": 0.0,
        "step": 3,
    }


def batch(row, text, sample):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    body = {"object": "chat.completion", "model": "M", "choices": [choice]}
    return {
        "id": "vllm-1",
        "custom_id": f"request-{row}-{sample}",
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def aisbench(row, text):
    return {
        "data_abbr": "gsm8k",
        "id": row,
        "success": True,
        "uuid": "ab",
        "origin_prompt": [{"role": "HUMAN", "prompt": f"{question(row)}\nThink first."}],
        "prediction": text,
        "output_tokens": 11,
        "gold": str(row + 10),
    }


def lm_eval(row, name):
    return {
        "doc_id": row,
        "doc": {"question": question(row), "answer": f"#### {row + 10}"},
        "target": str(row + 10),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {question(row)}\nA:", "arg_1": {"until": []}}},
        "resps": [texts(row)],
        "filtered_resps": ["10"],
        "filter": name,
        "doc_hash": "ab",
    }


FILES = {
    "verl": [verl(row, text) for row in range(ROWS) for text in texts(row)],
    "batch": [
        batch(row, text, s) for row in reversed(range(ROWS)) for s, text in enumerate(texts(row))
    ],
    "aisbench": [aisbench(row, text) for row in range(ROWS) for text in texts(row)],
    "lm-eval": [lm_eval(row, name) for name in ("strict", "flexible") for row in range(ROWS)],
}


def write_lines(tmp_path, records, name="r.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("program", FILES)
def test_each_response_is_judged_with_the_row_that_it_answers(program, parquet, tmp_path):
    file, out = write_lines(tmp_path, FILES[program]), tmp_path / "out.jsonl"
    report = evaluate_responses(parquet(ROWS), [str(file)], out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["row"], line["sample"]) for line in lines] == [
        (row, sample) for row in range(ROWS) for sample in range(2)
    ]
    assert [line["response"] for line in lines] == [t for row in range(ROWS) for t in texts(row)]
    assert [line["acc"] for line in lines] == [1.0, 0.0] * ROWS
    assert report.matches.unread == report.unanswered == 0
    assert report.matches.unconfirmed == (2 * ROWS if program == "batch" else 0)
    total = report.summary()["total"]
    assert total["pass@k"]["2"]["value"] == 1
    unknown = 0 if program == "batch" else 2 * ROWS
    assert total["finish_reason_unknown"] == unknown


def test_lighteval_details_have_all_samples_of_a_question_in_one_row(parquet, tmp_path):
    records = [
        {
            "doc": {"query": f"{question(row)}\nThink.", "id": str(row), "task_name": "gsm8k|0"},
            "model_response": {"text": texts(row), "output_tokens": [[1, 2, 3], [4]]},
            "metric": {"extractive_match": 0.5},
        }
        for row in range(ROWS)
    ]
    path = tmp_path / "details_gsm8k.parquet"
    pq.write_table(pa.Table.from_pylist(records), path)
    total = evaluate_responses(parquet(ROWS), [str(path)]).summary()["total"]
    assert total["responses"] == 2 * ROWS
    assert total["mean"]["value"] == 0.5
    assert total["tokens"]["mean"] == 2


def test_result_files_can_be_judged_again(serve, parquet, tmp_path):
    out, rejudged_file, rows = tmp_path / "m.jsonl", tmp_path / "again.jsonl", parquet(5)
    with serve() as server:
        generation = GenerationConfig(Server(server.url), "M", Sampling(seed=4), n=3)
        report = evaluate(rows, generation, out)
    rejudged = evaluate_responses(rows, [str(out)], rejudged_file)
    assert rejudged.metrics.summary() == report.metrics.summary()
    changed_file = write_lines(
        tmp_path, [{**json.loads(out.read_text().splitlines()[0]), "row": 1}], "o.jsonl"
    )
    with pytest.raises(DataError, match="row 1 of the parquet has another prompt"):
        evaluate_responses(rows, [str(changed_file)])


@pytest.mark.parametrize("program", ["verl", "aisbench", "lm-eval"])
def test_a_gold_that_contradicts_the_row_is_an_error(program, parquet, tmp_path):
    gold = {"verl": "gts", "aisbench": "gold", "lm-eval": "target"}[program]
    equal_gold = write_lines(tmp_path, [{**FILES[program][0], gold: "We add.\n#### 10"}])
    assert evaluate_responses(parquet(ROWS), [str(equal_gold)]).matches.responses
    wrong_gold = write_lines(
        tmp_path, [*FILES[program][2:], {**FILES[program][0], gold: "77"}], "w.jsonl"
    )
    message = r"w\.jsonl:7 matches row 0 of .*: its gold is '77', the row's '10'\. Give the parquet"
    with pytest.raises(DataError, match=message):
        evaluate_responses(parquet(ROWS), [str(wrong_gold)])


def test_unmatched_records_are_reported_and_not_counted(parquet, tmp_path):
    stranger = {**verl(0, "#### 5"), "input": "What is love?"}
    failed_request = {"output": None, "input": "x"}
    file = write_lines(tmp_path, [verl(1, "#### 11"), stranger, failed_request, {"nothing": 1}])
    report = evaluate_responses(parquet(ROWS), [str(file)])
    assert report.summary()["unread"] == 3
    assert "no row of the parquet has its question" in report.summary()["unread_examples"][0]
    assert report.unanswered == ROWS - 1
    assert report.summary()["total"]["mean"]["value"] == 1


def test_a_file_that_is_named_twice_is_read_once(parquet, tmp_path):
    file = write_lines(tmp_path, [verl(1, "#### 11")])
    names = [str(file), str(tmp_path / "." / "r.jsonl"), str(tmp_path / "*.jsonl")]
    report = evaluate_responses(parquet(ROWS), names)
    assert report.summary()["total"]["responses"] == 1


def test_stdin_and_pipes_are_errors_and_do_not_block(parquet, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("-", str(tmp_path / "pipe")):
        with pytest.raises(UsageError, match="not a regular file"):
            evaluate_responses(parquet(ROWS), [name])


def test_a_deeply_nested_record_or_a_huge_number_does_not_affect_other_records(parquet, tmp_path):
    deep = "[" * 900 + "]" * 900
    file = write_lines(tmp_path, [verl(1, "#### 11"), {**verl(2, "#### 12"), "tokens": 10**30}])
    with file.open("a") as more:
        more.write(f'{{"resps": {deep}, "doc_id": 0, "doc": {{"question": "{question(0)}"}}}}\n')
    summary = evaluate_responses(parquet(ROWS), [str(file)]).summary()
    assert [example.partition(": ")[0] for example in summary["unread_examples"]] == [f"{file}:3"]
    assert summary["total"]["responses"] == 2
    assert summary["total"]["tokens"]["known"] == 0


def test_a_file_without_a_response_to_any_row_is_an_error(parquet, tmp_path):
    file = write_lines(tmp_path, [{"a": 1}])
    with pytest.raises(DataError, match=r"r\.jsonl:1: none of the formats"):
        evaluate_responses(parquet(ROWS), [str(file)])


def test_custom_ids_are_source_ids_or_numbers_from_0_or_1(parquet):
    questions = [*read_questions(parquet(3))]
    assert rows_by_custom_id(["q2", "q0"], questions) == {"q2": 2, "q0": 0}
    assert rows_by_custom_id(["r-0", "r-2"], questions) == {"r-0": 0, "r-2": 2}
    assert rows_by_custom_id(["r1", "r2", "r3"], questions) == {"r1": 0, "r2": 1, "r3": 2}
    for ids in (["r1", "r2"], ["r0", "r3"], ["one"], ["1-2-3"]):
        with pytest.raises(DataError, match="custom_id"):
            rows_by_custom_id(ids, questions)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = (
    *("custom_id", "response", "body", "choices", "doc", "doc_id", "resps", "model_response"),
    *("origin_prompt", "prediction", "output", "input", "text", "success", "target", "filter"),
)
names = st.sampled_from(KEYS)


@given(st.dictionaries(names, json_values | st.dictionaries(names, json_values), max_size=6))
def test_records_of_any_shape_are_parsed_without_an_exception(record):
    result = parse_record(Record("f:1", record))
    assert isinstance(result, SkippedRow) or all(isinstance(t.response, str) for t in result.texts)


def test_a_comparison_pairs_questions_and_has_an_interval_and_a_p_value(parquet, tmp_path):
    def results(name, right):
        records = [verl(r, f"#### {r + 10 if right(r, s) else 5}") for r in range(40) for s in "ab"]
        file = write_lines(tmp_path, records, f"{name}.in.jsonl")
        out = tmp_path / f"{name}.jsonl"
        evaluate_responses(parquet(40), [str(file)], out)
        return out

    a = results("a", lambda r, s: r % 2 == 0)
    b = results("b", lambda r, s: r % 2 == 0 or (r % 8 == 1 and s == "a"))
    summary = compare_results(a, b).summary()
    assert summary["total"]["mean_a"] == 0.5
    assert summary["total"]["difference"] == pytest.approx(5 * 0.5 / 40)
    low, high = summary["total"]["interval"]
    # Values of scipy.stats.ttest_rel for the same shares.
    assert (low, high) == pytest.approx((0.008941764723762, 0.116058235276238), abs=1e-12)
    assert summary["total"]["p"] == pytest.approx(0.02335192036345708, abs=1e-12)
    assert summary["by_data_source"]["openai/gsm8k"]["questions"] == 40
    backwards = compare_results(b, a).summary()["total"]
    assert backwards["difference"] == -summary["total"]["difference"]
    assert backwards["interval"] == pytest.approx((-high, -low))


def test_files_that_cannot_be_compared_are_a_one_line_error(parquet, tmp_path):
    results = tmp_path / "a.jsonl"
    evaluate_responses(parquet(2), [str(write_lines(tmp_path, [verl(0, "#### 10")]))], results)
    with pytest.raises(DataError, match=r"r\.jsonl:1: not a scored response"):
        compare_results(results, tmp_path / "r.jsonl")
    other_results = tmp_path / "b.jsonl"
    evaluate_responses(
        parquet(2), [str(write_lines(tmp_path, [verl(1, "#### 10")]))], other_results
    )
    with pytest.raises(DataError, match="no question in common"):
        compare_results(results, other_results)
