"""`record` in verl's reward_kwargs records the dictionary that verl gets."""

import json

import pytest

from rewardkit.adapters.common import SampleScorer
from rewardkit.recorder.writer import PATTERN
from rewardkit.scorers import auto, gsm8k
from rewardkit.scorers.compose import build

ROW = ("openai/gsm8k", "First #### 17, then #### 18", "18", {"index": 1, "split": "train"})


def values_of(folder):
    """Return count and sum of every number in the lines of a folder."""
    [file] = folder.glob(PATTERN)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["source"] for line in lines} == {"openai/gsm8k"}
    assert not any("validation" in line for line in lines)
    numbers = [line["values"] for line in lines]
    return {key: (len(numbers), sum(each[key] for each in numbers)) for key in numbers[0]}


def test_a_scorer_records_its_result_and_returns_it_unchanged(tmp_path):
    folder = str(tmp_path)
    result = gsm8k.compute_score(*ROW, method="robust", record=folder)
    assert result == gsm8k.compute_score(*ROW, method="robust")
    numbers = {key: (1, value) for key, value in result.items() if key != "pred"}
    assert values_of(tmp_path) == numbers


def test_a_composed_reward_records_its_sum_and_its_parts_once(tmp_path):
    reward = build(
        {"scorer": "gsm8k", "parts": {"correct": 1.0, "length": {"weight": 0.5, "max_chars": 100}}}
    )
    result = reward.compute_score(*ROW, record=str(tmp_path))
    numbers = {key: (1, value) for key, value in result.items() if key != "pred"}
    assert {"score", "correct", "length", "acc"} <= set(numbers)
    assert values_of(tmp_path) == numbers


def test_auto_records_rows_of_known_and_of_unknown_scorers_once(tmp_path):
    auto.compute_score(*ROW, record=str(tmp_path))
    unknown = {"scorer": "nothing_like_this"}
    assert auto.compute_score(*ROW[:3], unknown, record=str(tmp_path))["error"] == 1.0
    assert values_of(tmp_path)["error"] == (2, 1.0)


@pytest.mark.parametrize("record", [None, "", 7])
def test_a_record_that_names_no_folder_changes_nothing(record):
    assert gsm8k.compute_score(*ROW, record=record) == gsm8k.compute_score(*ROW)


@pytest.mark.parametrize("response", [None, 18, b"#### 18", ["#### 18"]])
def test_responses_that_are_not_text_are_recorded_too(tmp_path, response):
    row = (ROW[0], response, *ROW[2:])
    assert gsm8k.compute_score(*row, record=str(tmp_path)) == gsm8k.compute_score(*row)
    assert values_of(tmp_path)["score"][0] == 1


@pytest.mark.parametrize("scorer", ["gsm8k", "auto"])
def test_other_trainers_record_too(tmp_path, scorer):
    score = SampleScorer(scorer, {"record": str(tmp_path)})
    row = {"data_source": ROW[0], "ground_truth": ROW[2], "extra_info": ROW[3]}
    assert score(ROW[1], row)["score"] == 1.0
    assert values_of(tmp_path)["score"] == (1, 1.0)
