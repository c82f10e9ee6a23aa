"""The settings of each algorithm, strategy and device, by verl 0.9.1's names.

Sources: verl's best-practice guide for DAPO and Qwen3-235B (the KL and clip settings of
GRPO, PPO and DAPO), the DAPO paper (arXiv 2503.14476: clip 0.2 / 0.28, token-mean, no KL, overlong
shaping, dynamic sampling), the Ascend guide for NPU (no torch.compile).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardkit.launch.recipe import Dapo, Recipe

ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"

ALGORITHMS: Mapping[str, Mapping[str, Any]] = {
    "ppo": {
        "algorithm.adv_estimator": "gae",
        "algorithm.use_kl_in_reward": True,
        f"{ACTOR}.use_kl_loss": False,
        "reward.reward_manager.name": "naive",
    },
    "grpo": {
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        f"{ACTOR}.use_kl_loss": True,
        f"{ACTOR}.kl_loss_coef": 0.001,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        f"{ACTOR}.entropy_coeff": 0,
        "reward.reward_manager.name": "naive",
    },
    "dapo": {
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.loss_agg_mode": "token-mean",
        f"{ACTOR}.entropy_coeff": 0,
        "reward.reward_manager.name": "dapo",
    },
    "gdpo": {  # verl's examples/gdpo_trainer; the reward keys are those of the recipe's reward
        "algorithm.adv_estimator": "gdpo",
        "algorithm.use_kl_in_reward": False,
        f"{ACTOR}.use_kl_loss": False,
        f"{ACTOR}.entropy_coeff": 0,
        "reward.reward_manager.name": "gdpo",
    },
}


def preset(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that follow from a recipe's algorithm, strategy and devices."""
    settings = dict(ALGORITHMS[recipe.algorithm])
    if recipe.algorithm == "dapo":
        settings |= dapo_settings(recipe.dapo)
    if recipe.strategy == "fsdp2":
        settings |= {f"{ACTOR}.strategy": "fsdp2", f"{REF}.strategy": "fsdp2"}
        settings |= {"critic.strategy": "fsdp2"} if recipe.algorithm == "ppo" else {}
    if recipe.devices != "gpu":
        settings["trainer.device"] = recipe.devices
    if recipe.devices == "npu":
        switch = "use_torch_compile"  # from 0.8 on, that of FSDP is in its own section
        switch = switch if recipe.strategy == "megatron" else f"fsdp_config.{switch}"
        settings |= {f"{ACTOR}.{switch}": False, f"{REF}.{switch}": False}
    return settings


def dapo_settings(dapo: Dapo) -> dict[str, Any]:
    """Return the settings of DAPO, which no other algorithm gets."""
    settings: dict[str, Any] = {
        f"{ACTOR}.clip_ratio_low": dapo.clip_ratio_low,
        f"{ACTOR}.clip_ratio_high": dapo.clip_ratio_high,
        f"{ACTOR}.clip_ratio_c": dapo.clip_ratio_c,
    }
    if buffer := dapo.overlong_buffer:
        settings |= {
            f"{OVERLONG}.enable": True,
            f"{OVERLONG}.len": buffer.len,
            f"{OVERLONG}.penalty_factor": buffer.penalty_factor,
            f"{OVERLONG}.log": buffer.log,
            "reward.reward_kwargs.max_resp_len": "${data.max_response_length}",
        }
    if sampling := dapo.dynamic_sampling:
        settings |= {
            "algorithm.filter_groups.enable": True,
            "algorithm.filter_groups.metric": sampling.metric,
        }
        if sampling.max_num_gen_batches:
            settings["algorithm.filter_groups.max_num_gen_batches"] = sampling.max_num_gen_batches
        if sampling.gen_batch_size:
            settings["data.gen_batch_size"] = sampling.gen_batch_size
    return settings


def environment(recipe: Recipe, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that every process of the run needs, the same on all nodes.

    verl itself sets others (TOKENIZERS_PARALLELISM, NCCL_DEBUG), and the script that starts Ray on a
    node those that differ by node (the network interface of HCCL, NCCL and Gloo).
    """
    variables = {"HYDRA_FULL_ERROR": "1", "PYTHONUNBUFFERED": "1"}
    if recipe.devices == "npu":
        eager = config.get("actor_rollout_ref.rollout.enforce_eager")
        variables |= {
            "TASK_QUEUE_ENABLE": "2" if eager else "1",
            "HCCL_CONNECT_TIMEOUT": "3600",
            "HCCL_EXEC_TIMEOUT": "3600",
        }
    return variables | dict(recipe.env)
