"""What the cards of the training sets say about single rows."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rewardkit
from rewardkit.preprocess.base import Dropped, Problem
from rewardkit.preprocess.load import load_dataset
from rewardkit.preprocess.prep import preview
from rewardkit.row import read_rows

INSTRUCTION = "Let's think step by step and output the final answer within \\boxed{}."


def read(name, raw):
    return load_dataset(name).to_problem(raw)


def test_a_eurus_question_has_neither_the_system_message_nor_the_instruction():
    tail = "\n\nPresent the answer in LaTex format: \\boxed{Your answer}"
    raw = {
        "prompt": [
            {"role": "system", "content": "\nWhen tackling a task"},
            {"role": "user", "content": f"How wide is the sheet?{tail}"},
        ],
        "reward_model": {"ground_truth": "7", "style": "rule"},
    }
    assert read("eurus-2", raw) == Problem("How wide is the sheet?", "7")
    for row in preview("eurus-2", 20, sample=True):
        assert [message["role"] for message in row["prompt"]] == ["user"]
        assert "LaTex" not in row["prompt"][0]["content"]


@pytest.mark.parametrize("truth", [{"value": "7", "pass_at_n": 0.25}, {"value": "7"}])
def test_orz_is_read_from_the_array_and_from_the_columns_that_datasets_makes_of_it(truth):
    turns = [{"from": "human", "value": "q"}, {"from": "assistant", "ground_truth": truth}]
    expected = Problem("q", "7", level=str(truth.get("pass_at_n", "")))
    assert read("orz", {"row": turns}) == expected
    assert read("orz", {"0": turns[0], "1": turns[1]}) == expected


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ('["\\\\frac{1}{2}"]', r"\frac{1}{2}"),
        ('["1", "2"]', Dropped("several answers")),
        ("[]", Dropped("no gold answer")),
        ("7", Dropped("not a JSON list")),
    ],
)
def test_a_skywork_gold_is_the_only_item_of_its_list(gold, expected):
    raw = {
        "prompt": [{"role": "user", "content": "q"}],
        "reward_model": {"ground_truth": gold, "style": "rule"},
        "extra_info": {"index": 3, "model_difficulty": {"DeepSeek-R1-Distill-Qwen-7B": 9}},
    }
    problem = read("skywork-or1", raw)
    if isinstance(problem, Problem):
        problem, level, place = problem.ground_truth, problem.level, problem.source_id
        assert (level, place) == ("9", "3")
    assert problem == expected


def test_a_deepscaler_solution_is_checked_only_if_it_has_a_box():
    raw = {"problem": "q", "answer": "7", "solution": "so it is 8"}
    assert read("deepscaler", raw).answer == ""
    assert read("deepscaler", {**raw, "solution": r"\boxed{8}"}).answer == r"\boxed{8}"


def test_a_difficulty_of_deepmath_is_written_without_a_needless_zero():
    for value, expected in ((6.0, "6"), (6.5, "6.5"), (None, "")):
        raw = {"question": "q", "final_answer": "7", "difficulty": value, "topic": "t"}
        assert read("deepmath", raw).level == expected


def test_a_solve_rate_of_big_math_may_be_missing():
    raw = {"problem": "q", "answer": "7", "llama8b_solve_rate": None, "domain": ["a -> b", "c"]}
    problem = read("big-math", raw)
    assert (problem.level, problem.subject) == ("", "a -> b, c")


def prepared(data_source, question, answers):
    """A row as Search-R1's script writes it, which keeps FlashRAG's columns."""
    return {
        "id": "train_0",
        "question": question,
        "golden_answers": answers,
        "data_source": data_source,
        "prompt": [{"role": "user", "content": f"Answer the given question. {question}"}],
        "ability": "fact-reasoning",
        "reward_model": {"ground_truth": {"target": answers}, "style": "rule"},
        "extra_info": {"index": 0, "split": "train"},
    }


@pytest.mark.parametrize("name", ["nq", "hotpotqa"])
def test_search_r1_s_rows_become_those_of_flashrag_and_other_sets_are_dropped(name, tmp_path):
    texts = [("who was it", ["Ann", "Ann Lee"]), ("Was it he?", ["no"])]
    rows = [prepared(source, *text) for source in ("nq", "hotpotqa", "popqa") for text in texts]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    (tmp_path / "raw").mkdir()
    lines = [{"id": "train_0", "question": q, "golden_answers": a} for q, a in texts]
    raw = tmp_path / "raw/train.jsonl"
    raw.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out.parquet"
    report = rewardkit.prep(name, out, source=tmp_path / "train.parquet")
    assert report.splits[0].dropped == {f"not data_source = {name}": 4}
    found = [(row["prompt"], row["reward_model"]) for row in read_rows(out)]
    assert found == [(r["prompt"], r["reward_model"]) for r in preview(name, 9, source=raw)]
    assert [model["ground_truth"] for _, model in found] == ['["Ann", "Ann Lee"]', "no"]
    assert "who was it?" in found[0][0][0]["content"]
