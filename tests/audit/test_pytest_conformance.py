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


FAILING = (
    "hedge glued before_afterword full_stop bold math_marks spacing trailing_zeros"  # of gsm8k
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("reward", "allowed", "code", "texts"),
    [
        ("gsm8k", FAILING, 0, [" passed"]),
        ("gsm8k", "", 1, ["test_my_reward[hedge]"]),
        ("bad.py:compute_score", "", 1, ["score: hedge (hole, high) went through in", "18 or 19"]),
    ],
)
def test_a_good_scorer_passes_and_a_bad_one_fails_with_an_example(
    tmp_path, reward, allowed, code, texts
):
    (tmp_path / "bad.py").write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return float(ground_truth in solution_str)\n"
    )
    text = TEST.replace("REWARD", reward).replace("ALLOWED", repr(allowed.split()))
    (tmp_path / "test_reward.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_reward.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code, done.stdout
    assert all(text in done.stdout for text in texts)
    assert "Traceback" not in done.stdout


def test_an_unknown_attack_cannot_be_allowed():
    with pytest.raises(UnknownNameError, match="no attack 'hegde'"):
        conformance("gsm8k", allowed=["hegde"])
