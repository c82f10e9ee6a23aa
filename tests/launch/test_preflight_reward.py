"""The reward of a plan is looked at before the launch, in a process of its own."""

import pytest

from rewardkit.launch.preflight.reward import check_reward

GOOD = "def compute_score(data_source, solution_str, ground_truth, extra_info=None{rest}):\n    return 1.0\n"


@pytest.fixture
def found(tmp_path, plan):
    def look(text, **options):
        file = tmp_path / "mine.py"
        file.write_text(text)
        reward = {"scorer": f"{file}:compute_score", "options": options}
        return [finding.text for finding in check_reward(plan(reward=reward), [], [])]

    return look


def test_a_function_that_verl_can_call_has_no_finding(found):
    assert found(GOOD.format(rest="")) == []
    assert found(GOOD.format(rest=", **kwargs"), bonus=1) == []


def test_a_function_that_lacks_verl_s_keywords_is_named_with_those_it_is_given(found):
    (said,) = found("def compute_score(solution_str, ground_truth):\n    return 1.0\n")
    assert "an unexpected keyword argument" in said
    assert "verl calls it with data_source=, solution_str=, ground_truth=, extra_info=" in said


def test_options_of_a_user_s_function_are_validated(found):
    typed = "from typing import Literal\n" + GOOD.format(rest=", kind: Literal['a', 'bc'] = 'a'")
    assert "has no kind 'bd'. Did you mean 'bc'?" in found(typed, kind="bd")[0]
    assert "has no option 'kid'. Did you mean 'kind'?" in found(typed, kid="a")[0]


def test_a_file_that_ends_its_process_while_it_is_imported_is_a_finding(found):
    (said,) = found("import os\nos._exit(3)\n")
    assert "does not load" in said
