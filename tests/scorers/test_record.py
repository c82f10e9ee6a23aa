"""`record` in verl's reward_kwargs records the dictionary that verl gets."""

import json

import pytest

from rewardkit.adapters.common import SampleScorer
from rewardkit.recorder.writer import PATTERN
from rewardkit.scorers import auto, gsm8k

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


def test_auto_records_rows_of_known_and_of_unknown_scorers_once(tmp_path):
    """Other trainers record too."""
    auto.compute_score(*ROW, record=str(tmp_path))
    unknown = {"scorer": "nothing_like_this"}
    assert auto.compute_score(*ROW[:3], unknown, record=str(tmp_path))["error"] == 1.0
    row = {"data_source": ROW[0], "ground_truth": ROW[2], "extra_info": ROW[3]}
    assert SampleScorer("auto", {"record": str(tmp_path)})(ROW[1], row)["score"] == 1.0
    assert values_of(tmp_path)["error"] == (3, 1.0)


@pytest.mark.parametrize("record", [None, 7])
def test_a_record_that_names_no_folder_changes_nothing(record):
    assert gsm8k.compute_score(*ROW, record=record) == gsm8k.compute_score(*ROW)


@pytest.mark.parametrize("response", [None, 18, b"#### 18", ["#### 18"]])
def test_responses_that_are_not_text_are_recorded_too(tmp_path, response):
    row = (ROW[0], response, *ROW[2:])
    assert gsm8k.compute_score(*row, record=str(tmp_path)) == gsm8k.compute_score(*row)
    assert values_of(tmp_path)["score"][0] == 1
