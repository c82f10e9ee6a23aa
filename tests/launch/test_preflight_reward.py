"""The preflight checks the reward function of a plan, in another process."""

import pytest

from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.preflight.reward import check_reward

GOOD = "def compute_score(data_source, solution_str, ground_truth, extra_info=None{rest}):\n    return 1.0\n"


@pytest.fixture
def findings_of(tmp_path, plan):
    """The findings of a reward file."""

    def check(text, **options):
        file = tmp_path / "mine.py"
        file.write_text(text)
        reward = {"scorer": f"{file}:compute_score", "options": options}
        report = PreflightReport()
        check_reward(plan(reward=reward), report)
        return [finding.text for finding in report.findings]

    return check


def test_a_function_that_verl_can_call_has_no_finding(findings_of):
    assert findings_of(GOOD.format(rest="")) == []
    assert findings_of(GOOD.format(rest=", **kwargs"), bonus=1) == []


def test_the_finding_for_a_function_without_verl_s_keywords_lists_them(findings_of):
    (message,) = findings_of("def compute_score(solution_str, ground_truth):\n    return 1.0\n")
    assert "an unexpected keyword argument" in message
    assert "verl calls it with data_source=, solution_str=, ground_truth=, extra_info=" in message


def test_options_of_a_user_s_function_are_validated(findings_of):
    code = "from typing import Literal\n" + GOOD.format(rest=", kind: Literal['a', 'bc'] = 'a'")
    assert "has no kind 'bd'. Did you mean 'bc'?" in findings_of(code, kind="bd")[0]
    assert "has no option 'kid'. Did you mean 'kind'?" in findings_of(code, kid="a")[0]


def test_a_reward_file_that_exits_during_its_import_is_a_finding(findings_of):
    (message,) = findings_of("import os\nos._exit(3)\n")
    assert "does not load" in message
