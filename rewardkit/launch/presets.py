"""The settings that follow from a recipe's algorithm, strategy and devices, by verl 0.9.1's names.

GDPO (arXiv 2601.05242) normalises each part of the reward within a group before verl adds them, so that the size
of a part's weight in a composed reward has no effect on the advantage. To keep the parts as important to each
other as that reward says, the sizes become verl's `algorithm.gdpo_reward_weights`. A KL in the reward and a
length penalty have no effect.

Sources: `presets.yaml`; the DAPO paper (arXiv 2503.14476); the Ascend guide for NPU (no torch.compile); verl
trainer/ppo/core_algos.py (compute_gdpo_outcome_advantage). In 0.9.0, 0.9.1 and main of 2026-08-22 the default
trainer gives that estimator neither parts nor prompts (trainer/ppo/v1/trainer_base.py, _compute_advantage), so
that it fails at the first step; the older trainer, `trainer.use_v1=False`, does.
"""

from collections.abc import Mapping
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.recipe import Dapo, Recipe
from rewardkit.launch.verl.releases import release_of
from rewardkit.launch.verl.translate import translate
from rewardkit.strict_yaml import read_table

ACTOR = "actor_rollout_ref.actor"
REF = "actor_rollout_ref.ref"
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
REWARD_KEYS = "algorithm.gdpo_reward_keys"
REWARD_WEIGHTS = "algorithm.gdpo_reward_weights"


def preset(recipe: Recipe) -> dict[str, Any]:
    """Return the settings that follow from a recipe's algorithm, strategy and devices."""
    settings: dict[str, Any] = dict(read_table(__file__, "presets.yaml")[recipe.algorithm])
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


def gdpo_settings(weights: Mapping[str, float], verl: str) -> dict[str, Any]:
    """Return the settings of GDPO for the parts of a composed reward, by verl 0.9.1's names.

    A part with the weight 0 is left out. Without parts, the keys are not set.
    """
    sizes = {name: abs(weight) for name, weight in weights.items() if weight}
    settings: dict[str, Any] = {
        "algorithm.adv_estimator": "gdpo",
        "reward.reward_manager.name": "gdpo",
    }
    if sizes:
        settings |= {REWARD_KEYS: list(sizes), REWARD_WEIGHTS: list(sizes.values())}
    return settings | ({"trainer.use_v1": False} if release_of(verl).number >= (0, 9, 0) else {})


def gdpo_overrides(weights: Mapping[str, float], verl: str) -> list[str]:
    """Return Hydra's overrides that make a release train a composed reward with GDPO."""
    settings = gdpo_settings(weights, verl)
    if REWARD_KEYS not in settings:
        raise UsageError("every part of the reward has the weight 0; give one a weight.")
    overrides = (Override(key, value, origin="--gdpo") for key, value in settings.items())
    return [str(override) for override in translate(overrides, release_of(verl))[0]]


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
