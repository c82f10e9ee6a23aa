"""The settings that a rehearsal replaces in the user's configuration, and why.

Everything else is rehearsed as it is: the keys of the data, the reward (function, options, manager,
overlong settings), the algorithm, KL, losses, sampling and the number of responses to a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.launch.rehearsal.rehearsal_scale import RehearsalScale
from rewardkit.launch.rehearsal.row_sample import RowSample

Config: TypeAlias = Mapping[str, Any]

A = "actor_rollout_ref."

#: Overrides are dropped if their key contains one of these: they distribute work over accelerators,
#: or belong to an engine that a rehearsal does not run.
DROPPED_KEYS = (
    ".megatron.",
    ".fsdp_config.",
    ".fsdp.",
    ".engine_kwargs.",
    ".override_config.",
    ".lora.",
    ".mtp.",
    ".profiler.",
    ".quantization",
    "global_profiler.",
    "trainer.profile_",
    "trainer.npu_profile",
    "trainer.v1.",
    "transfer_queue.",
    "ray_init.",
    "ray_kwargs.",
    "hydra.",
)

#: Differences between a plan and its rehearsal, for the user.
NOTES = {
    "megatron": "the plan's Megatron is rehearsed with FSDP",
    "cut": "prompts of more than 2,048 bytes are cut from the left",
    "recipe": "verl's DAPO recipe is rehearsed with verl's main trainer, which has its reward",
    "scaled": "pictures of more than 1,024 tokens, or of rows with several, are scaled down",
    "family": "a tiny Qwen2.5-VL stands in for the model; its pictures may have other tokens",
    "mode": "the plan's asynchronous trainer is rehearsed with the synchronous one",
    "filter": "every second response counts as right, in validations too: dynamic sampling would drop "
    "all groups of a random model, which is never right",
}

#: Parts of a plan that its rehearsal leaves out.
NOT_REHEARSED = {
    "tools": "tools and several turns: every prompt gets one response",
    "calls": "calls of tools: a random model makes none, so that a conversation ends after one turn",
    "agent": "the agent loop: every prompt gets one response",
    "filter": "dynamic sampling: a random model's groups are all wrong, so none would be kept",
    "recipe_filter": "dynamic sampling: in this release only verl's DAPO recipe has it, not its main "
    "trainer",
    "lora": "LoRA: all weights are trained",
}


#: Settings that stay as planned from verl 0.9 on, whose trainer has agent loops and dynamic sampling.
KEPT_SINCE_AGENT_LOOPS = frozenset(
    {
        f"{A}rollout.multi_turn.enable",
        f"{A}rollout.agent.default_agent_loop",
        f"{A}rollout.agent.agent_loop_config_path",
    }
)


@dataclass(frozen=True)
class SandboxPaths:
    """Files and settings of a sandbox that substitutions refer to.

    Attributes:
        folder: the folder of the rehearsal.
        train: the rows to train on.
        val: the rows to validate on.
        reward: the file that records calls of the user's function; None without such a function.
        engine: the settings of the rollout and the device for this release.
    """

    folder: Path
    train: RowSample
    val: RowSample
    reward: Path | None
    engine: Config


def substitutions_by_reason(scale: RehearsalScale, paths: SandboxPaths) -> dict[str, Config]:
    """Return reason -> key -> value for all releases; a release gets the keys that it has."""
    return {
        "a tiny model of random weights stands in for the model and the critic": _model(paths),
        "a sample of the user's rows, as long as they are in bytes": _rows(scale, paths),
        "batches that a CPU does in a second": _batches(scale),
        "one process without an accelerator": {**_ONE_PROCESS, **paths.engine},
        "a few steps, then a validation and a checkpoint": _few_steps(scale, paths),
        "a random model is never right": {"algorithm.filter_groups.enable": False},
    }


def _model(paths: SandboxPaths) -> Config:
    model = str(paths.folder / "model")
    shared = {"path": model, "hf_config_path": None, "use_shm": False, "lora_rank": 0}
    return {
        **{
            f"{part}.{name}": v
            for part in (f"{A}model", "critic.model")
            for name, v in shared.items()
        },
        f"{A}model.tokenizer_path": None,
        "critic.model.tokenizer_path": model,
        "data.tokenizer": None,
    }


def _rows(scale: RehearsalScale, paths: SandboxPaths) -> Config:
    return {
        "data.train_files": [str(file) for file in paths.train.files],
        "data.val_files": [str(file) for file in paths.val.files],
        "data.train_max_samples": -1,
        "data.val_max_samples": -1,
        "data.max_prompt_length": scale.prompt,
        "data.max_response_length": scale.response,
        f"{A}rollout.prompt_length": "${data.max_prompt_length}",
        f"{A}rollout.response_length": "${data.max_response_length}",
        "data.filter_overlong_prompts_workers": 1,
        "data.dataloader_num_workers": 0,
        **(
            {"data.truncation": "left", "data.filter_overlong_prompts": False}
            if scale.is_cut
            else {}
        ),
    }


def _batches(scale: RehearsalScale) -> Config:
    micro = scale.responses
    tokens = scale.prompt + scale.response
    return {
        "data.train_batch_size": scale.prompts,
        "data.gen_batch_size": scale.prompts,
        "data.val_batch_size": None,
        f"{A}actor.ppo_mini_batch_size": scale.minibatch,
        f"{A}actor.ppo_micro_batch_size": None,
        f"{A}actor.ppo_micro_batch_size_per_gpu": micro,
        f"{A}actor.use_dynamic_bsz": False,
        f"{A}rollout.log_prob_micro_batch_size": None,
        f"{A}rollout.log_prob_micro_batch_size_per_gpu": micro,
        f"{A}rollout.log_prob_use_dynamic_bsz": False,
        f"{A}ref.log_prob_micro_batch_size": None,
        f"{A}ref.log_prob_micro_batch_size_per_gpu": micro,
        f"{A}ref.log_prob_use_dynamic_bsz": False,
        "critic.ppo_mini_batch_size": scale.minibatch,
        "critic.ppo_micro_batch_size": None,
        "critic.ppo_micro_batch_size_per_gpu": micro,
        "critic.forward_micro_batch_size": None,
        "critic.forward_micro_batch_size_per_gpu": micro,
        "critic.ppo_infer_micro_batch_size_per_gpu": micro,
        "critic.use_dynamic_bsz": False,
        f"{A}rollout.val_kwargs.n": scale.validation,
        f"{A}rollout.max_num_batched_tokens": max(2048, tokens),
        f"{A}rollout.max_num_seqs": 64,
        f"{A}rollout.max_model_len": tokens,
        f"{A}rollout.agent.num_workers": 1,
        "reward.num_workers": 1,
    }


_ONE_PROCESS: Config = {
    f"{A}actor.strategy": "fsdp2",
    f"{A}ref.strategy": "fsdp2",
    "critic.strategy": "fsdp2",
    f"{A}rollout.tensor_model_parallel_size": 1,
    f"{A}rollout.data_parallel_size": 1,
    f"{A}rollout.expert_parallel_size": 1,
    f"{A}rollout.pipeline_model_parallel_size": 1,
    f"{A}actor.ulysses_sequence_parallel_size": 1,
    f"{A}ref.ulysses_sequence_parallel_size": 1,
    "critic.ulysses_sequence_parallel_size": 1,
    f"{A}actor.use_torch_compile": False,
    f"{A}ref.use_torch_compile": False,
    f"{A}actor.fsdp_config.use_torch_compile": False,
    f"{A}ref.fsdp_config.use_torch_compile": False,
    "critic.fsdp.use_torch_compile": False,
    **{
        f"{part}.{key}": False
        for part in (f"{A}model", "critic.model")
        for key in (
            "enable_gradient_checkpointing",
            "enable_activation_offload",
            "use_remove_padding",
            "use_liger",
            "use_fused_kernels",
        )
    },
    f"{A}rollout.enforce_eager": True,
    f"{A}rollout.free_cache_engine": False,
    f"{A}rollout.multi_turn.enable": False,
    f"{A}rollout.agent.default_agent_loop": "single_turn_agent",
    f"{A}rollout.agent.agent_loop_config_path": None,
    "trainer.n_gpus_per_node": 1,
    "trainer.nnodes": 1,
    "trainer.device": "cuda",  # Ray counts one GPU
    "trainer.use_legacy_worker_impl": "auto",
    "trainer.balance_batch": False,
}


def _few_steps(scale: RehearsalScale, paths: SandboxPaths) -> Config:
    return {
        "trainer.total_training_steps": scale.steps,
        "trainer.total_epochs": 4 * scale.steps,  # dynamic sampling may take several batches a step
        "trainer.save_freq": scale.steps,
        "trainer.test_freq": scale.steps,
        "trainer.val_before_train": False,
        "trainer.val_only": False,
        "trainer.critic_warmup": 0,
        "trainer.resume_mode": "disable",
        "trainer.resume_from_path": None,
        "trainer.default_local_dir": str(paths.folder / "checkpoint"),
        "trainer.default_hdfs_dir": None,
        "trainer.project_name": "rewardkit",
        "trainer.experiment_name": "rehearsal",
    }
