"""`conformance` in a reward's own repository: a good scorer passes, a bad one fails with the pair."""

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

#: What is slow is the machine's affair: benchmarks/ has the figures.
test_of_ours = conformance("gsm8k", rows=4, options={"method": "robust"}, allowed=["slow", "grows"])


@pytest.fixture
def verdict(tmp_path):
    """What pytest says of a repository that has the test."""

    def run(reward, allowed=()):
        text = TEST.replace("REWARD", reward).replace("ALLOWED", repr(allowed))
        (tmp_path / "test_reward.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_reward.py"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stdout

    return run


@pytest.mark.full
def test_a_good_scorer_passes(verdict):
    code, said = verdict("math")
    assert code == 0, said
    assert " passed" in said


@pytest.mark.full
def test_a_bad_scorer_fails_with_the_pair(verdict, tmp_path):
    (tmp_path / "bad.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(ground_truth in solution_str)\n"
    )
    code, said = verdict("bad.py:compute_score")
    assert code == 1
    assert "test_my_reward[hedge]" in said
    assert "bad.py:compute_score: hedge (hole, high) went through in" in said
    assert "18 or 19" in said
    assert "gold '18': score 1" in said
    assert "Traceback" not in said


@pytest.mark.full
def test_an_attack_may_be_allowed_by_name(verdict):
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
    code, said = verdict("gsm8k", failing)
    assert code == 0, said


def test_an_attack_that_does_not_exist_is_not_allowed():
    with pytest.raises(UnknownNameError, match="no attack 'hegde'"):
        conformance("gsm8k", allowed=["hegde"])
