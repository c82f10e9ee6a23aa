"""`check` warns of rows whose only reward is that a text follows constraints."""

import json

import pytest

from rewardkit.checks.check import check
from rewardkit.row import build_row, write_rows
from rewardkit.scorers.compose import write_reward_file
from rewardkit.scorers.isolated import open_scorer
from rewardkit.scorers.load import load_scorer


@pytest.fixture
def rows(tmp_path):
    gold = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    prompts = ("Name a river without commas.", "Name a lake without commas.")
    write_rows(
        [
            build_row(
                data_source="google/IFEval",
                prompt=[{"role": "user", "content": prompt}],
                ability="instruction-following",
                ground_truth=json.dumps(gold),
                index=index,
            )
            for index, prompt in enumerate(prompts)
        ],
        tmp_path / "rows.parquet",
        {},
    )
    return tmp_path / "rows.parquet"


@pytest.mark.parametrize("name", ["instructions", "auto"])
def test_rows_of_instructions_alone_are_a_note_and_no_finding(rows, name):
    report = check(rows, scorer=load_scorer(name) if name != "auto" else None)
    (note,) = report.stats.notes()
    assert report.ok
    assert "instructions alone: 2;" in note
    assert "`second: judge`" in note
    assert "`parts: {correct: {weight: 1.0, min_chars: 200}}`" in note


def test_a_composed_reward_is_not_warned_of_and_its_constraints_are_not_answers(rows, tmp_path):
    yaml = tmp_path / "reward.yaml"
    yaml.write_text("{scorer: instructions, parts: {correct: {weight: 1.0, min_chars: 200}}}")
    file = write_reward_file(yaml, tmp_path / "reward.py")
    with open_scorer(f"{file}:score", {}) as scorer:
        report = check(rows, scorer=scorer)
    assert (report.ok, report.stats.notes()) == (True, [])
