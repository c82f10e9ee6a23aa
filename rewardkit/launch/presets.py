"""The settings that follow from a recipe's algorithm, strategy and devices, by verl 0.9.1's names.

Sources: `presets.yaml`; the DAPO paper (arXiv 2503.14476: clip 0.2 / 0.28, overlong shaping, dynamic
sampling); the Ascend guide for NPU (no torch.compile).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.launch.recipe import Dapo, Recipe
from rewardkit.launch.verl.key_renames import load_table

ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"


def preset(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that follow from a recipe's algorithm, strategy and devices."""
    settings: dict[str, Any] = dict(load_table(__file__, "presets.yaml")[recipe.algorithm])
    if recipe.algorithm == "dapo":
        settings |= _dapo_settings(recipe.dapo)
    if recipe.strategy == "fsdp2":
        models = (ACTOR, REF, "critic") if recipe.algorithm == "ppo" else (ACTOR, REF)
        settings |= {f"{model}.strategy": "fsdp2" for model in models}
    if recipe.devices != "gpu":
        settings["trainer.device"] = recipe.devices
    if recipe.devices == "npu":
        switch = "use_torch_compile"  # from 0.8 on, that of FSDP is in its own section
        switch = switch if recipe.strategy == "megatron" else f"fsdp_config.{switch}"
        settings |= {f"{model}.{switch}": False for model in (ACTOR, REF)}
    return settings


def _dapo_settings(dapo: Dapo) -> dict[str, Any]:
    ratios = ("clip_ratio_low", "clip_ratio_high", "clip_ratio_c")
    settings: dict[str, Any] = {f"{ACTOR}.{name}": getattr(dapo, name) for name in ratios}
    if buffer := dapo.overlong_buffer:
        settings[f"{OVERLONG}.enable"] = True
        settings |= {f"{OVERLONG}.{name}": value for name, value in buffer}
        settings["reward.reward_kwargs.max_resp_len"] = "${data.max_response_length}"
    if sampling := dapo.dynamic_sampling:
        groups = "algorithm.filter_groups"
        settings |= {f"{groups}.enable": True, f"{groups}.metric": sampling.metric}
        if sampling.max_num_gen_batches:
            settings[f"{groups}.max_num_gen_batches"] = sampling.max_num_gen_batches
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
        is_eager = config.get("actor_rollout_ref.rollout.enforce_eager")
        variables["TASK_QUEUE_ENABLE"] = "2" if is_eager else "1"
        variables |= {f"HCCL_{name}_TIMEOUT": "3600" for name in ("CONNECT", "EXEC")}
    return variables | recipe.env
