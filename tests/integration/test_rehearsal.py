"""`rehearse` trains with real verl 0.9.1 and vLLM on this CPU: plans that work and plans that fail."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rewardkit
from rewardkit.errors import UsageError
from rewardkit.launch.plan import make_plan
from rewardkit.launch.recipe import deep_merge, load_tree, read_recipe
from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.row import write_rows
from rewardkit.scorers.load import location
from tests.integration.conftest import VERL, needs_rehearsal, row
from tests.launch.conftest import processes

pytestmark = needs_rehearsal


def living_processes(folder):
    """Return the commands of a rehearsal's living processes: its own, and those named in its log."""
    pids = set(re.findall(r" pid=(\d+)", (folder / "verl.log").read_text(errors="replace")))
    return [
        line
        for pid, line in processes()
        if str(folder) in line or (pid in pids and "ray::" in line)
    ]


DIGITS = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    digits = sum(char in "0123456789" for char in solution_str)
    return {"score": digits / 10, "acc": float(digits > 0), "digits": digits}
"""


def test_grpo_learns_what_the_scorer_rewards(plan, tmp_path):
    """The reward rises, so that the scorer drives the training."""
    scorer, short = tmp_path / "digits.py", tmp_path / "short.parquet"
    scorer.write_text(DIGITS)
    write_rows((row(i, f"{i} + {i}?", 2 * i, "rewardkit/digits") for i in range(16)), short, {})
    overlong, activities = "+reward.reward_kwargs.overlong_buffer_cfg", []
    actor, micro = "actor_rollout_ref.actor", "log_prob_micro_batch_size_per_gpu=64"
    settings = (
        f"{actor}.use_kl_loss=True {actor}.kl_loss_coef=0.0001 reward.reward_manager.name=dapo "
        f"+reward.reward_kwargs.max_resp_len=2048 {overlong}.enable=True {overlong}.len=1024 "
        f"{overlong}.penalty_factor=0.1 {overlong}.log=True"
    )
    sizes = (
        "data.train_batch_size=8 data.gen_batch_size=8 data.max_response_length=16 "
        f"{actor}.ppo_mini_batch_size=8 {actor}.ppo_micro_batch_size_per_gpu=64 "
        f"actor_rollout_ref.rollout.{micro} actor_rollout_ref.ref.{micro} {actor}.optim.lr=5e-3"
    )
    digits = plan(scorer, *settings.split(), data=short, n=8)
    more = {"extra": sizes.split(), "progress": activities.append}
    result = rehearse(digits, folder=tmp_path / "r", steps=STEPS, **more)
    assert result.ok, result.checks
    early, late = sum(result.rewards[:5]) / 5, sum(result.rewards[-5:]) / 5
    assert late > early + 0.3, result.rewards
    details = {check.name: check.detail for check in result.checks}
    assert "16 of 16 to train on, 8 of 8 to validate on" in details["rows read"]
    assert "data_source rewardkit/digits" in details["scorer called"]
    assert "by the reward manager dapo" in details["rewards"]
    assert "acc, digits" in details["metrics"]
    assert "val-core/rewardkit/digits/acc/mean@1" in details["validation"]
    assert activities[0] == "composing verl's configuration"
    assert {"starting Ray", f"training step {STEPS} of {STEPS}"} < set(activities)
    call = result.calls[0]
    assert (call["data_source"], call["keys"]) == ("rewardkit/digits", ["score", "acc", "digits"])
    assert {"index", "split", "question"} < set(call["extra_info"])
    metrics = (result.folder / "metrics.jsonl").read_text()
    assert "overlong_reward" in metrics
    assert "actor/kl_loss" in metrics
    assert can_merge(result.folder / "checkpoint", tmp_path / "merged")
    assert living_processes(result.folder) == []


#: Steps of training in which the reward rises.
STEPS = 14


def can_merge(folder, out):
    """Return whether `rewardkit eval merge` turns a rehearsal's checkpoint into Hugging Face weights."""
    command = [sys.executable, "-m", "rewardkit", "eval", "merge", str(folder), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode == 0 and (out / "model.safetensors").is_file()


@pytest.mark.nightly
def test_the_vision_recipe_shows_its_images_to_the_model(tmp_path):
    rows = tmp_path / "rows.parquet"
    rewardkit.prep("geometry3k", rows, sample=True, split="train")
    name = "qwen2.5-vl-32b-grpo-geometry3k"
    tree = deep_merge(load_tree(name), {"data": {"train": str(rows), "val": str(rows)}})
    vision = make_plan(read_recipe(tree, name), VERL)
    result = rehearse(vision.local_arguments(), folder=tmp_path / "r")
    assert result.ok, result.checks
    details = {check.name: check.detail for check in result.checks}
    assert "19 of 19 rows have images, with up to 24 tokens" in details["images"]
    assert re.search(r"the actor got [1-9]\d*, the rollout got [1-9]", details["images"])
    assert (result.notes, result.not_rehearsed) == ((), ())
    assert living_processes(result.folder) == []


@pytest.mark.nightly
def test_a_call_that_hangs_ends_the_rehearsal_and_is_named(plan, tmp_path):
    (tmp_path / "judge.py").write_text(
        "import asyncio\n\nasync def compute_score(**_):\n    await asyncio.sleep(600)\n"
    )
    result = rehearse(plan(tmp_path / "judge.py"), folder=tmp_path / "r", call_seconds=5)
    (check,) = result.checks
    assert (check.name, check.ok) == ("run", False)
    assert f"{tmp_path / 'judge.py'}:4: a call of the scorer has not returned" in check.detail
    assert living_processes(result.folder) == []


@pytest.mark.nightly
@pytest.mark.parametrize(("code", "message"), [
    ("import json\nraise ValueError('no key')\n", "ValueError: no key (bad.py:2)"),
    ("def compute_score(**_):\n    pass\n", "the reward returned NoneType"),
    ("def compute_score(solution, gold):\n    return 1.0\n", "the scorer raised TypeError: "),
])  # fmt: skip
def test_a_scorer_that_fails_is_reported_in_one_line(plan, tmp_path, code, message):
    (tmp_path / "bad.py").write_text(code)
    result = rehearse(plan(tmp_path / "bad.py"), folder=tmp_path / "r")
    (check,) = result.checks
    assert (check.name, check.ok, result.ok) == ("run", False, False)
    assert message in check.detail
    assert "\n" not in check.detail
    assert living_processes(result.folder) == []


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


@pytest.mark.nightly
def test_a_tool_agent_is_rehearsed(plan, tmp_path):
    (tmp_path / "tools.py").write_text(TOOLS)
    page = (Path(__file__).parents[2] / "docs/how-to/conversations.md").read_text(encoding="utf-8")
    loops = re.search(r"# loops.yaml\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "loops.yaml").write_text(loops)
    rollout = "actor_rollout_ref.rollout"
    settings = (
        f"{rollout}.agent.agent_loop_config_path={tmp_path / 'loops.yaml'} "
        f"{rollout}.multi_turn.enable=True {rollout}.agent.default_agent_loop=tool_agent "
        f"{rollout}.multi_turn.function_tool_path='{tmp_path / 'tools.py'}' "
        "algorithm.filter_groups.enable=True algorithm.filter_groups.metric=acc"
    )
    result = rehearse(plan(location("gsm8k"), *settings.split(), n=2), folder=tmp_path / "r")
    assert result.ok, result.checks
    assert {"tool_rewards", "turn_scores", "extras"} < set(result.calls[0]["extra_info"])
    parts = [text.partition(":")[0] for text in result.not_rehearsed]
    assert parts == ["dynamic sampling", "calls of tools"]


def test_a_ppo_plan_judged_by_verl_s_own_scorer_passes_every_check(plan, tmp_path):
    """The plan has a critic and no custom function: verl's own scorer is watched as well."""
    settings = ["algorithm.adv_estimator=gae", "critic.model.path=Qwen/Qwen3-8B"]
    result = rehearse(plan("", *settings, n=1)[:-1], folder=tmp_path / "r")
    assert result.ok, result.checks
    assert "critic/vf_loss" in (result.folder / "metrics.jsonl").read_text()
    assert result.calls[0]["data_source"] == "openai/gsm8k"


def test_a_plan_that_verl_cannot_compose_is_refused_before_it_starts(plan, tmp_path):
    wrong = plan(location("gsm8k"), "data.train_batchsize=8")
    with pytest.raises(UsageError, match="verl 0.9.1 does not take this plan: .*train_batchsize"):
        rehearse(wrong, folder=tmp_path / "r")
    assert not (tmp_path / "r").exists()
