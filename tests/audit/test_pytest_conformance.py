"""`conformance` in a reward's repository: a good scorer passes, a bad one fails with an example."""

import subprocess
import sys

import pytest

from rewardkit.audit import conformance
from rewardkit.errors import UnknownNameError

TEST = """
from rewardkit.audit import conformance

ROWS = [
    {"data_source": "x", "prompt": [{"role": "user", "content": "What is 9 + 9?"}],
     "reward_model": {"ground_truth": "18"}, "extra_info": {}},
]
test_my_reward = conformance("REWARD", data=ROWS, allowed=ALLOWED)
"""

#: The checks of time are left out, because they depend on the machine.
test_of_ours = conformance("gsm8k", rows=4, options={"method": "robust"}, allowed=["slow", "grows"])


@pytest.fixture
def verdict(tmp_path):
    """Return a function that runs pytest in a repository with the test: (exit code, output)."""

    def run(reward, allowed=()):
        text = TEST.replace("REWARD", reward).replace("ALLOWED", repr(allowed))
        (tmp_path / "test_reward.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_reward.py"]
        completed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return completed.returncode, completed.stdout

    return run


@pytest.mark.full
def test_a_good_scorer_passes(verdict):
    code, output = verdict("math")
    assert code == 0, output
    assert " passed" in output


@pytest.mark.full
def test_a_bad_scorer_fails_with_an_example(verdict, tmp_path):
    (tmp_path / "bad.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(ground_truth in solution_str)\n"
    )
    code, output = verdict("bad.py:compute_score")
    assert code == 1
    assert "test_my_reward[hedge]" in output
    assert "bad.py:compute_score: hedge (hole, high) went through in" in output
    assert "18 or 19" in output
    assert "gold '18': score 1" in output
    assert "Traceback" not in output


@pytest.mark.full
def test_allowed_attacks_may_go_through(verdict):
    failing = [
        "hedge",
        "glued",
        "before_afterword",
        "full_stop",
        "bold",
        "math_marks",
        "spacing",
        "trailing_zeros",
    ]
    assert verdict("gsm8k")[0] == 1
    code, output = verdict("gsm8k", failing)
    assert code == 0, output


def test_an_unknown_attack_cannot_be_allowed():
    with pytest.raises(UnknownNameError, match="no attack 'hegde'"):
        conformance("gsm8k", allowed=["hegde"])
