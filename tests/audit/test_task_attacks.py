"""The attacks on scorers of function calls, JSON schemas and constraints."""

from dataclasses import replace

import pytest

from rewardkit.audit.model import WHOLE, Target
from rewardkit.audit.rows import packaged_rows
from rewardkit.audit.run import audit
from rewardkit.audit.task_attacks import TASK_AUDIT, as_task
from rewardkit.errors import DataError
from rewardkit.scorers.load import load_scorer

SCORERS = ("function_call", "json_schema", "instructions")

#: A reward that looks for the arguments of the gold anywhere, the last of repeated keys being the value.
NAIVE = """
import json, re

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    calls = []
    for text in re.findall(r"[{].*[}]", solution_str):
        try:
            calls.append(json.loads(text))
        except ValueError:
            pass
    return float(all(call in calls for call in json.loads(ground_truth)))
"""


@pytest.mark.parametrize("name", SCORERS)
def test_each_scorer_pays_what_is_right_and_of_the_rest_only_what_is_shown_as_low(name):
    scorer, rows = load_scorer(name), packaged_rows(name, 64, 0)
    attacks = [attack for attack in TASK_AUDIT if attack.task == name]
    assert rows
    assert {attack.kind for attack in attacks} == {"hole", "miss"}
    for row in rows:
        for attack in attacks:
            for response in attack.responses(Target(row, WHOLE)):
                is_paid = attack.kind == "miss" or attack.severity == "low"
                assert scorer(response, row.gold).correct is is_paid, (attack.name, response)


@pytest.mark.full
def test_a_text_that_ignores_the_question_is_an_attack_that_an_audit_shows():
    report = audit("instructions")
    failed = {result.attack: result.severity for result in report.failed}
    assert failed == {"ignores_question": "low", "keywords_in_a_comment": "low"}
    assert report.grade == "A"


@pytest.mark.full
@pytest.mark.parametrize("name", ["function_call", "json_schema"])
def test_an_audit_of_calls_and_of_json_has_the_best_grade(name):
    report = audit(name)
    assert (report.grade, report.failed, report.left_out) == ("A", (), ())


@pytest.mark.full
def test_rows_of_one_s_own_are_attacked_by_the_calls_of_their_golds(tmp_path):
    path = tmp_path / "reward.py"
    path.write_text(NAIVE)
    rows = [
        {
            "prompt": "Lower the sail.",
            "data_source": "rlla",
            "reward_model": {"ground_truth": '[{"arguments": {"sail": "jib"}, "name": "lower"}]'},
        }
    ]
    report = audit(f"{path}:compute_score", data=rows)
    failed = {result.attack for result in report.findings if result.failed}
    assert {"call_in_thought", "call_of_a_tool", "further_calls", "call_in_a_sentence"} <= failed
    assert {"right_call", "wrong_call"}.isdisjoint(failed)
    assert report.grade == "F"


@pytest.mark.parametrize("name", ["json_schema", "instructions"])
def test_a_row_whose_gold_says_nothing_of_a_right_response_is_refused(name):
    row = packaged_rows(name, 64, 0)[-1]
    with pytest.raises(DataError, match=f"Audit {name} without --data"):
        as_task(replace(row, extra_info={}, task=""), name)
