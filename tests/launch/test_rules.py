"""Each rule has a finding for a plan that breaks it and none for a plan that does not."""

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import Plan, make_plan
from rewardkit.launch.recipe import built_in, deep_merge, load_tree, read_recipe
from rewardkit.launch.rules import CHECKED_ELSEWHERE, RULES, check_rules
from rewardkit.launch.rules.facts import GIB, MachineFacts, RunFacts, device_memory, read_facts
from rewardkit.launch.rules.rule import CODE
from rewardkit.launch.verl.key_renames import renames
from rewardkit.launch.verl.releases import known_releases, release_of, snapshots
from tests.tables import every

ACTOR, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.model"
REF, ROLLOUT = "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
LONG = {"data.max_prompt_length": 2048, "data.max_response_length": 16384}
DYNAMIC = {f"{ACTOR}.use_dynamic_bsz": True}
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
TRANSFORMER = f"{ACTOR}.megatron.override_transformer_config"
SEVEN = RunFacts(layers=28, heads=28, kv_heads=4, experts=0, parameters=7_600_000_000)


SMALLEST = {
    "name": "tiny",
    "algorithm": "grpo",
    "model": "/models/tiny",
    "data": {"train": "/data/train.parquet", "val": "/data/val.parquet"},
    "verl": {
        f"{ROLLOUT}.name": "vllm",
        f"{ROLLOUT}.n": 8,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 1,
        f"{REF}.log_prob_micro_batch_size_per_gpu": 1,
    },
}


def smallest_plan(release="0.9.1", overrides=(), **parts):
    """Return the plan of the smallest recipe, merged with the given parts."""
    recipe = read_recipe(deep_merge(SMALLEST, parts), "my.yaml")
    return make_plan(recipe, release, parse_overrides(overrides, "the command line"))


@dataclass(frozen=True)
class Example:
    """Changes to the smallest recipe, and facts about its model and data."""

    verl: dict[str, Any] = field(default_factory=dict)
    release: str = "0.9.1"
    facts: RunFacts = field(default_factory=RunFacts)
    parts: dict[str, Any] = field(default_factory=dict)


def example(verl=None, release="0.9.1", facts=RunFacts(), **parts):  # noqa: B008 - it is frozen
    return Example(verl or {}, release, facts, parts)


M = {"strategy": "megatron"}
NPU = {"devices": "npu", "devices_per_node": 16}


def on_machine(verl=None, release="0.9.1", *, parts=(), **machine):
    """Return an example with facts about its machine, and with parts of its recipe."""
    facts = RunFacts(machine=MachineFacts(reserved_for="3 x 8 GPU", **machine))
    return example(verl, release, facts, **dict(parts))


def overlong_buffer(size, **parts):
    return {"algorithm": "dapo", "dapo": {"overlong_buffer": {"len": size, **parts}}}


def dynamic_sampling(metric="acc", **parts):
    return {"algorithm": "dapo", "dapo": {"dynamic_sampling": {"metric": metric, **parts}}}


def megatron(tensor=1, pipeline=1, **verl):
    engine = f"{ACTOR}.megatron"
    return {
        f"{engine}.tensor_model_parallel_size": tensor,
        f"{engine}.pipeline_model_parallel_size": pipeline,
        **{f"{engine}.{name}": value for name, value in verl.items()},
    }


VAL = {"trainer.test_freq": 10}
MANAGER, MODEL_REWARD = "reward.reward_manager.name", "reward.reward_model"
GDPO = {
    "algorithm.adv_estimator": "gdpo",
    "algorithm.gdpo_reward_keys": ["correct", "format"],
    "trainer.use_v1": False,
}
OWN = {"reward": {"scorer": "/shared/mine.py:compute_score"}}


ULYSSES, BATCH = f"{ACTOR}.ulysses_sequence_parallel_size", "data.train_batch_size"
TP, SHARE = f"{ROLLOUT}.tensor_model_parallel_size", f"{ROLLOUT}.gpu_memory_utilization"
MICRO, TOTAL = f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ACTOR}.ppo_micro_batch_size"
LOG_PROB, REPLAY = "log_prob_micro_batch_size_per_gpu", f"{ACTOR}.megatron.router_replay.mode"
PADDED_CRITIC = {
    "critic.fsdp.ulysses_sequence_parallel_size": 2,
    "critic.model.use_remove_padding": False,
}
SEPARATE = {
    "trainer.v1.trainer_mode": "separate_async",
    f"{ROLLOUT}.checkpoint_engine.backend": "nccl",
    f"{ROLLOUT}.nnodes": 1,
}
EXPERTS_OF_TRTLLM = {
    f"{ROLLOUT}.name": "trtllm",
    f"{ROLLOUT}.expert_parallel_size": 2,
    f"+{ROLLOUT}.moe_tensor_parallel_size": 2,
}


def reward_pool(**settings):
    """Return a reward model with four devices of its own."""
    own = {
        "enable": True,
        "model_path": "/models/judge",
        "rollout.name": "vllm",
        "enable_resource_pool": True,
        "nnodes": 1,
        "n_gpus_per_node": 4,
    }
    return {f"{MODEL_REWARD}.{name}": value for name, value in (own | settings).items()}


def colocated(**verl):
    return reward_pool(enable_resource_pool=False) | verl


#: Rule, a plan that breaks it, a plan that does not, part of the finding's message.
EXAMPLES = [
    ("L-01", example({f"{ACTOR}.use_kl_loss": False}), example(), "GRPO has True"),
    ("L-01", example({"algorithm.adv_estimator": "rloo"}), example(), "rloo, but GRPO has grpo"),
    ("L-02", example({f"{ACTOR}.use_kl_loss": True}, algorithm="dapo"), example(algorithm="dapo"),
     "DAPO has False"),
    ("L-03", example({"algorithm.use_kl_in_reward": False}, algorithm="ppo"),
     example(algorithm="ppo"), "PPO has True"),
    ("L-04", example({"algorithm.kl_ctrl.kl_coef": 0.01}),
     example({"algorithm.kl_ctrl.kl_coef": 0.01}, algorithm="ppo"),
     "0.01 has no effect, because algorithm.use_kl_in_reward is False"),
    ("L-04", example({f"{ACTOR}.kl_loss_coef": 0.01, f"{ACTOR}.use_kl_loss": False}),
     example({f"{ACTOR}.use_kl_loss": False}), "0.01 has no effect"),
    ("L-05", example({"algorithm.use_kl_in_reward": True}), example(),
     "True counts the KL twice, because algorithm.use_kl_in_reward is True"),
    ("L-06", example(algorithm="dapo", dapo={"clip_ratio_high": 0.2}), example(algorithm="dapo"),
     "the plan clips at 0.2 and 0.2, but DAPO clips at 0.2 and 0.28"),
    ("L-06", example({f"{ACTOR}.clip_ratio_high": 0.3}), example(), "GRPO clips at 0.2 and 0.2"),
    ("L-06", example({f"{ACTOR}.clip_ratio": 0.1}), example({f"{ACTOR}.clip_ratio": 0.2}),
     "0.1 has no effect"),
    ("L-07", example({f"{ACTOR}.clip_ratio_c": 1.0}), example(),
     "1 makes verl stop: the bound must be more than 1"),
    ("L-07", example(algorithm="dapo", dapo={"clip_ratio_c": 20.0}),
     example(algorithm="dapo", dapo={"clip_ratio_c": 3.0}), "the DAPO recipes have 10"),
    ("L-08", example({MANAGER: "naive"}, algorithm="dapo"), example(algorithm="dapo"),
     "naive, but DAPO has dapo"),
    ("L-08", example({MANAGER: "naive"}, **overlong_buffer(100)), example(**overlong_buffer(100)),
     "naive ignores the length penalty"),
    ("L-09", example({f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum"}),
     example({f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean"}), "seq-mean-token-sum"),
    ("L-09", example({f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean"}, algorithm="dapo"),
     example(algorithm="dapo"),
     "seq-mean-token-mean gives tokens of long and short responses different weights"),
    ("L-10", example({f"{ROLLOUT}.n": 1}), example({f"{ROLLOUT}.n": 1}, algorithm="ppo"),
     "1 response per prompt leaves grpo nothing to compare and to learn from"),
    ("L-10", example({f"{ROLLOUT}.n": 2}), example(),
     "2 responses per prompt make the advantage coarse"),
    ("L-11", example(LONG), example({**LONG, f"{ROLLOUT}.max_num_batched_tokens": 18432}),
     "18432 tokens"),
    ("L-11", example({f"{ROLLOUT}.max_num_batched_tokens": 4096}),
     example({f"{ROLLOUT}.max_num_batched_tokens": 1024}),
     "4096 is less than verl's default, 8192"),
    ("L-12", example({f"{ROLLOUT}.max_num_batched_tokens": 2048}), example(),
     "2048 tokens at once leave the device idle most of the time"),
    ("L-13", example({f"{ROLLOUT}.enable_chunked_prefill": False}), example(),
     "False stops vLLM's decoding while it reads a long prompt"),
    ("L-14", example({TP: 1}, facts=replace(SEVEN, device_bytes=24 * GIB)),
     example({TP: 2}, facts=replace(SEVEN, device_bytes=24 * GIB)),
     "14 GiB of weights do not fit 1 x 12 GiB. Set actor_rollout_ref.rollout.tensor_model_parallel_size=2, or raise actor_rollout_ref.rollout.gpu_memory_utilization"),
    ("L-14", example({TP: 16}, nodes=2), example({TP: 8}, nodes=2),
     "16 is more than 8: the devices wait for each other"),
    ("L-15", example({SHARE: 0.88}), example(), "0.88 leaves little"),
    ("L-15", example({f"{ACTOR}.fsdp_config.param_offload": True, SHARE: 0.4}),
     example({f"{ACTOR}.fsdp_config.param_offload": True, SHARE: 0.8}),
     "0.4 is little, because the actor is offloaded during the rollout"),
    ("L-15", example({SHARE: 40}), example(), "40 is not a fraction between 0 and 1"),
    ("L-16", example(LONG), example({**LONG, **DYNAMIC}),
     "False gives each pass the same number of rows, whether of 10 tokens or of 16384"),
    ("L-16", example({**DYNAMIC, f"{ROLLOUT}.log_prob_use_dynamic_bsz": False}), example(),
     "False makes verl 0.9.1 stop: actor_rollout_ref.actor.use_dynamic_bsz is True"),
    ("L-17", example({**LONG, **DYNAMIC}), example({**LONG, **DYNAMIC, ULYSSES: 2}),
     "16384 x sequence parallel 1 is less than prompt + response = 18432"),
    ("L-17",
     example({**LONG, **DYNAMIC, f"{ACTOR}.ppo_max_token_len_per_gpu": 18432, f"{REF}.log_prob_max_token_len_per_gpu": 9000}),
     example({**LONG, **DYNAMIC, f"{ACTOR}.ppo_max_token_len_per_gpu": 18432, f"{REF}.log_prob_max_token_len_per_gpu": 9000, f"{ACTOR}.use_kl_loss": False}),
     "Set actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=18432"),
    ("L-17",
     example({**LONG, **DYNAMIC, "critic.ppo_max_token_len_per_gpu": 9000}, algorithm="ppo"),
     example({**LONG, **DYNAMIC, f"{ACTOR}.ppo_max_token_len_per_gpu": 18432}, algorithm="ppo"),
     "16384 x sequence parallel 1"),
    ("L-18", example({BATCH: 128}), example({BATCH: 256}),
     "256 is more than data.train_batch_size=128"),
    ("L-18", example({MICRO: 3}), example({MICRO: 3, **DYNAMIC}), "3 does not divide the 256 rows"),
    ("L-19", example({BATCH: 257, f"{ROLLOUT}.n": 5}),
     example({BATCH: 257, f"{ROLLOUT}.n": 5, **DYNAMIC}),
     "257 x n 5 = 1285 does not divide by 8 (the devices). Set data.train_batch_size=264"),
    ("L-19", example({BATCH: 257, f"{ROLLOUT}.n": 5}, facts=RunFacts(train_rows=260)),
     example({BATCH: 256, f"{ROLLOUT}.n": 5}), "Set data.train_batch_size=256"),
    ("L-19", example({f"{ACTOR}.ppo_mini_batch_size": 4, f"{ROLLOUT}.n": 5}),
     example({f"{ACTOR}.ppo_mini_batch_size": 8, f"{ROLLOUT}.n": 5}),
     "4 x n 5 = 20 does not divide by 8 copies"),
    ("L-19", example({f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 3}), example(),
     "3 does not divide the 1024 rows"),
    ("L-19", example({**megatron(2, 2), BATCH: 257, f"{ROLLOUT}.n": 5}, **M),
     example({**megatron(2, 2), BATCH: 258, f"{ROLLOUT}.n": 5}, **M), "2 copies x micro batch 1"),
    ("L-20", example({f"{ACTOR}.ppo_mini_batch_size": 32}),
     example({f"{ACTOR}.ppo_mini_batch_size": 64}),
     "32 makes more than 16 updates per step: the later ones are far off policy"),
    ("L-20", example({f"{ACTOR}.ppo_mini_batch_size": 400}),
     example({f"{ACTOR}.ppo_mini_batch_size": 512}), "the last update has fewer prompts"),
    ("L-25", example({"data.truncation": "error"}),
     example({"data.truncation": "error"}, facts=RunFacts(fits_prompts=True)),
     "False lets verl 0.9.1 cut long prompts: it ignores data.truncation"),
    ("L-25", example(model="/m/Qwen2.5-VL-7B"), example(model="/m/Qwen2.5-7B"), "with images"),
    ("L-26", example({f"{ROLLOUT}.temperature": 0.6}), example(),
     "0.6 changes the distribution: the responses are not those of the trained policy"),
    ("L-26", example({f"{ROLLOUT}.top_p": 0.95}), example(),
     "0.95 changes the distribution: the responses are not those of the trained policy"),
    ("L-26", example({f"{ROLLOUT}.top_k": 0}), example(), "Set actor_rollout_ref.rollout.top_k=-1"),
    ("L-27", example(VAL, model="/m/Qwen3-8B"),
     example({**VAL, f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.val_kwargs.temperature": 1.0}, model="/m/Qwen3-8B"),
     "a thinking model repeats itself"),
    ("L-27", example({f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0}),
     example({f"{ROLLOUT}.temperature": 0}),
     "True makes verl stop, because actor_rollout_ref.rollout.temperature is 0"),
    ("L-27", example({**VAL, f"{ROLLOUT}.val_kwargs.do_sample": True}),
     example(VAL, model="/m/Qwen3-4B-Instruct-2507"),
     "0 samples nothing, although do_sample is True"),
    ("L-27", example(VAL, facts=RunFacts(val_rows=30)), example(VAL, facts=RunFacts(val_rows=500)),
     "with 1 response to each of 30 rows the score moves in steps of 3.3 points"),
    ("L-28", example({f"{ROLLOUT}.response_length": 1024}),
     example({f"{ROLLOUT}.response_length": 1024, "data.max_response_length": 1024}),
     "1024 wins over data.max_response_length=512"),
    ("L-29", example({f"{ROLLOUT}.name": "hf"}), example(),
     "verl 0.9.1 has no rollout engine 'hf'; it has sglang, trtllm, vllm"),
    ("L-30", example({f"{ROLLOUT}.engine_kwargs.vllm.pipeline_parallel_size": 2}),
     example({f"{ROLLOUT}.engine_kwargs.vllm.swap_space": 4}),
     "verl's rollout does not support a pipeline"),
    ("L-30", example({f"{ROLLOUT}.engine_kwargs.sglang.attention_backend": "fa3"}),
     example({f"{ROLLOUT}.engine_kwargs.sglang.attention_backend": "fa3", f"{ROLLOUT}.name": "sglang"}),
     "it has no effect, because the rollout engine is vllm"),
    ("L-30", example({f"{ROLLOUT}.pipeline_model_parallel_size": 2}), example(),
     "vllm has no pipeline"),
    ("L-31",
     example({f"{ROLLOUT}.engine_kwargs.vllm.enable_expert_parallel": True, TP: 32}, nodes=4),
     example({f"{ROLLOUT}.engine_kwargs.vllm.enable_expert_parallel": True}), "over 32 devices"),
    ("L-32", example({SHARE: 0.95}), example(),
     "False makes CUDA graphs, which need memory besides the rollout's 95%"),
    ("L-33",
     example({f"{ROLLOUT}.cudagraph_capture_sizes": [1, 2], f"{ROLLOUT}.enforce_eager": True}),
     example({f"{ROLLOUT}.cudagraph_capture_sizes": [1, 2]}),
     "it has no effect, because actor_rollout_ref.rollout.enforce_eager is True"),
    ("L-34", example(LONG), example(LONG, **NPU),
     "False keeps the logits of all 18432 tokens in memory"),
    ("L-35", example(megatron(use_mbridge=False), **M), example(**M),
     "False makes verl 0.9.1 stop"),
    ("L-35", example(megatron(use_mbridge=False), release="0.7.1", **M),
     example(megatron(use_mbridge=True), release="0.7.1", **M),
     "False converts the weights with verl's older code"),
    ("L-36", example({**megatron(2), f"{REF}.megatron.tensor_model_parallel_size": 4}, **M),
     example(megatron(2), **M), "4, but the actor has 2 on the same devices"),
    ("L-36", example({f"{ACTOR}.fsdp_config.param_offload": True}),
     example({f"{ACTOR}.fsdp_config.param_offload": True, f"{REF}.fsdp_config.param_offload": True}),
     "False keeps the reference on the device, although the actor is offloaded"),
    ("L-37", example(megatron(3), **M), example(megatron(2), **M),
     "TP x PP x CP = 3 does not divide 8"),
    ("L-37", example({TP: 3}), example(), "3 does not divide 8 devices"),
    ("L-37", example({TP: 8}, facts=SEVEN), example({TP: 4}, facts=SEVEN),
     "28 attention heads. Set actor_rollout_ref.rollout.tensor_model_parallel_size=4"),
    ("L-37", example(megatron(2, 2, expert_model_parallel_size=4), **M),
     example(megatron(2, 2, expert_model_parallel_size=4, expert_tensor_parallel_size=1), **M),
     "EP x ETP x PP = 16 does not divide 8"),
    ("L-37", example(megatron(16), **M, nodes=2), example(megatron(8), **M, nodes=2),
     "8 devices of a node"),
    ("L-38", example(facts=replace(SEVEN, device_bytes=8 * GIB)),
     example(facts=replace(SEVEN, device_bytes=24 * GIB)), "take about 14 GiB of a device's 8 GiB"),
    ("L-38", example(megatron(2), facts=replace(SEVEN, device_bytes=24 * GIB), **M),
     example(megatron(4, 2), facts=replace(SEVEN, device_bytes=24 * GIB), **M), "take about"),
    ("L-39", example({f"{ACTOR}.optim.lr": 0.001}), example({f"{ACTOR}.optim.lr": 1e-06}),
     "0.001 is far"),
    ("L-40", example({f"{ACTOR}.optim.override_optimizer_config.optimizer_cpu_offload": True}, **M),
     example({f"{ACTOR}.optim.override_optimizer_config": {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 1, "overlap_cpu_optimizer_d2h_h2d": True, "use_precision_aware_optimizer": True}}, **M),
     "optimizer_cpu_offload without optimizer_offload_fraction"),
    ("L-41", example(megatron(param_offload=True), **M),
     example(megatron(param_offload=True, optimizer_offload=True), **M),
     "False takes memory from the rollout, although param_offload is True"),
    ("L-41", example(megatron(param_offload=True, optimizer_offload=True), release="0.8.0", **M),
     example(megatron(param_offload=True, optimizer_offload=True, grad_offload=True), release="0.8.0", **M),
     "grad_offload=True"),
    ("L-41",
     example(megatron(param_offload=True, optimizer_offload=True), release="0.10.0.dev0", **M),
     example(megatron(param_offload=True, optimizer_offload=True), **M), "grad_offload=True"),
    ("L-42", example({**LONG, **megatron()}, **M),
     example({**LONG, **megatron(), f"{TRANSFORMER}.recompute_granularity": "full"}, **M),
     "16384 tokens"),
    ("L-43", example(megatron(expert_model_parallel_size=2), **M),
     example({**megatron(expert_model_parallel_size=2), f"{TRANSFORMER}.moe_router_dtype": "fp32"}, **M),
     "it is not set, so training chooses experts in bfloat16, and others than the rollout"),
    ("L-44", example({**megatron(), f"{TRANSFORMER}.gradient_accumulation_fusion": False}, **M),
     example({**megatron(), f"{TRANSFORMER}.gradient_accumulation_fusion": True}, **M), "slower"),
    ("L-45", example(megatron(1, 8), facts=SEVEN, **M),
     example({**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 7}, facts=SEVEN, **M),
     "28 layers do not divide over 8 stages"),
    ("L-45",
     example({**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 6}, facts=RunFacts(layers=94), **M),
     example({**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 10}, facts=RunFacts(layers=94), **M),
     "88 layers do not divide over 7 stages (the model has 94, PP is 8). Set actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_stage=10"),
    ("L-45", example(megatron(1, 2), facts=RunFacts(layers=61), **M),
     example({**megatron(1, 2), f"{TRANSFORMER}.account_for_loss_in_pipeline_split": True}, facts=RunFacts(layers=61), **M),
     "61 layers"),
    ("L-46", example({f"{ACTOR}.kl_loss_coef": 0}), example(),
     "0 makes verl load a reference model that has no effect"),
    ("L-46", example({f"{ACTOR}.kl_loss_coef": 0.5}), example({f"{ACTOR}.kl_loss_coef": 0.01}),
     "0.5 leaves"),
    ("L-47", example({f"{ACTOR}.kl_loss_type": "mse"}), example({f"{ACTOR}.kl_loss_type": "k3"}),
     "mse varies"),
    ("L-48", example({f"{ACTOR}.entropy_coeff": 0.001}), example(),
     "0.001 is unusual: all recipes have 0"),
    ("L-49", example(**overlong_buffer(512)), example(**overlong_buffer(511)),
     "a buffer of 512 tokens penalises every response of up to 512 tokens"),
    ("L-49", example({f"{OVERLONG}.len": 0}, **overlong_buffer(9)), example(**overlong_buffer(9)),
     "a buffer of 0 tokens penalises nothing"),
    ("L-49", example({f"{OVERLONG}.enable": True, f"{OVERLONG}.len": 9}),
     example({f"{OVERLONG}": {"enable": True, "len": 9, "log": False}, "reward.reward_kwargs.max_resp_len": 512}),
     "it is not set, and verl stops at the first sample without it"),
    ("L-49", example({f"{OVERLONG}": {"enable": True, "len": 9, "log": False}}),
     example(**overlong_buffer(9)),
     "it is not set, and verl cannot make the reward manager without it"),
    ("L-49", example({"reward.reward_kwargs.max_resp_len": 400}, **overlong_buffer(9)),
     example({"reward.reward_kwargs.max_resp_len": 512}, **overlong_buffer(9)),
     "400 moves the penalty's start: responses have up to 512 tokens"),
    ("L-50", example({"algorithm.filter_groups.metric": None}, **dynamic_sampling()),
     example(**dynamic_sampling()), "not set"),
    ("L-50", example(**dynamic_sampling("seq_reward")), example(**dynamic_sampling()),
     "verl 0.9.1 has no metric seq_reward and stops at the first batch"),
    *(("L-50", example(release=release, **dynamic_sampling(metric)), example(release=release, **dynamic_sampling("acc")), f"verl {release} has no metric {metric} and stops at the first batch. Set algorithm.filter_groups.metric=acc.") for release in ("0.9.0", "0.10.0.dev0") for metric in ("reward", "seq_final_reward")),
    ("L-53", example({"trainer.device": "cuda"}, **NPU), example(**NPU),
     "cuda does not match the recipe's devices, npu"),
    ("L-53", example({"trainer.device": "npu"}), example(), "Set trainer.device=cuda"),
    ("ascend", example(cluster={"target": "ascend"}), example(cluster={"target": "ascend"}, **NPU),
     "Set devices: npu"),
    ("L-54", example({f"{REF}.use_torch_compile": True}, **NPU), example(**NPU),
     "True does not work: NPU needs False"),
    ("L-55", example({f"{ROLLOUT}.enforce_eager": True}, **NPU, env={"TASK_QUEUE_ENABLE": 1}),
     example({f"{ROLLOUT}.enforce_eager": True}, **NPU), "Set env.TASK_QUEUE_ENABLE=2"),
    ("L-57", example(LONG), example({**LONG, ULYSSES: 4}), "16384 tokens"),
    ("L-57", example({ULYSSES: 3}), example({ULYSSES: 2}), "3 does not divide 8"),
    ("L-57", example({ULYSSES: 8}, facts=SEVEN), example({ULYSSES: 4}, facts=SEVEN),
     "28 attention heads"),
    ("L-57", example({ULYSSES: 4}, facts=RunFacts(heads=12, kv_heads=6)),
     example({ULYSSES: 4}, facts=RunFacts(heads=12, kv_heads=2)), "6 key-value heads"),
    ("L-59", example({**LONG, f"{MODEL}.enable_gradient_checkpointing": False}), example(LONG),
     "every layer"),
    ("L-60", example({MICRO: 4}),
     example({MICRO: 4, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8}),
     "4 rows fit with gradients, but actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 without"),
    ("L-61", example({TP: 4}, facts=replace(SEVEN, device_bytes=80 * GIB)),
     example({TP: 1}, facts=replace(SEVEN, device_bytes=80 * GIB)),
     "14 GiB of weights leave room on 2"),
    ("L-62", example({"trainer.test_freq": -100}), example(VAL),
     "with -100 the run never validates"),
    ("L-62", example(VAL, data={"val": ["/data/train.parquet"]}),
     example({"trainer.test_freq": -1, "trainer.val_only": True}, data={"val": ["/data/train.parquet"]}),
     "/data/train.parquet is a file for training and for validation"),
    ("L-62", example(data={"val": []}), example(VAL), "nothing is validated"),
    ("L-63", example(), example({"trainer.save_freq": 100}),
     "with -1 the run never saves the trained model"),
    ("L-63", example({"trainer.save_freq": 5}),
     example({"trainer.save_freq": 5, "trainer.max_actor_ckpt_to_keep": 2}), "every 5 steps"),
    ("L-64", example({"trainer.resume_mode": "always"}),
     example({"trainer.resume_mode": "disable"}), "'always'"),
    ("L-64", example({"trainer.resume_mode": "resume_path"}),
     example({"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "/c/global_step_9"}),
     "it is not set, and trainer.resume_mode=resume_path needs it"),
    ("L-64",
     example({"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "/c/latest"}),
     example({"trainer.resume_from_path": "/c/latest"}),
     "/c/latest has no global_step_N, from which verl reads the step"),
    ("L-65", example({"trainer.logger": ["console", "wandbb"]}), example(),
     "verl 0.9.1 has no logger wandbb; it has clearml, console, file, mlflow, rl_insight, swanlab, tensorboard, tracking, trackio, vemlp_wandb, wandb"),
    ("L-66", example({**VAL, "trainer.logger": ["console", "wandb"]}),
     example({**VAL, "trainer.logger": ["console"]}),
     "with 0 the shared logger shows metrics and no responses"),
    ("L-67", example(), example({"trainer.project_name": "mine"}), "verl_examples"),
    ("L-68", example(facts=RunFacts(train_rows=1000)), example(facts=RunFacts(train_rows=1024)),
     "1024 is more than the 1000 training rows: the run has no step"),
    ("L-68", example({f"{ROLLOUT}.n": 5}, facts=RunFacts(train_rows=1003)),
     example({f"{ROLLOUT}.n": 5}, facts=RunFacts(train_rows=1024)),
     "the run has no step. Set data.train_batch_size=1000 or less"),
    ("L-68", example({f"{ROLLOUT}.n": 5}, facts=RunFacts(train_rows=7)),
     example({f"{ROLLOUT}.n": 5}, facts=RunFacts(train_rows=1024)), "Prepare 8 rows or more"),
    ("L-68", example({BATCH: 256, "trainer.save_freq": 500}, facts=RunFacts(train_rows=3000)),
     example({BATCH: 256, "trainer.save_freq": 500}, facts=RunFacts(train_rows=7473)),
     "500 is more than the run's 330 steps"),
    ("L-69", example({**LONG, MICRO: 2}), example({**LONG, MICRO: 1}),
     "2 rows of 18432 tokens make passes of 36864 tokens"),
    ("L-73", example({"data.shuffle": False}), example({"data.shuffle": True}),
     "False reads the rows in the file's order in every epoch"),
    ("L-74", example({"data.prompt_key": "question"}), example({"data.prompt_key": "prompt"}),
     "question"),
    ("L-75", example({"data.image_key": "pictures"}, model="/m/Qwen2.5-VL-7B"),
     example({"data.image_key": "pictures"}), "pictures"),
    ("L-75", example(release="0.8.0", facts=RunFacts(vision=True)),
     example({f"{ROLLOUT}.engine_kwargs.vllm.mm_processor_cache_gb": 0}, release="0.8.0", facts=RunFacts(vision=True)),
     "mm_processor_cache_gb=0"),
    ("L-77", example(**NPU, cluster={"workdir": "/home/verl"}),
     example(**NPU, cluster={"workdir": "/homes/verl"}),
     "vLLM does not start in /home/verl, below /home of the Ascend image"),
    ("L-78", example(nodes=2), example({"trainer.default_local_dir": "/shared/c"}, nodes=2),
     "verl's default is another folder on each of the 2 nodes"),
    ("L-78", example({"trainer.default_local_dir": "ckpt"}, nodes=2),
     example({"trainer.default_local_dir": "ckpt"}),
     "ckpt is another folder on each of the 2 nodes"),
    ("reward-manager", example({MANAGER: "rate_limitd"}),
     example({MANAGER: "rate_limited", "reward.max_concurrent": 8}),
     "no reward manager 'rate_limitd' and stops. Did you mean 'rate_limited'?"),
    ("reward-manager", example({MANAGER: "prime"}, release="0.7.1"), example(),
     "Set reward.reward_manager.name=remote."),
    ("rate-limit", example({MANAGER: "rate_limited"}),
     example({MANAGER: "rate_limited", "reward.max_concurrent": 8}),
     "each reward worker scores one response at a time"),
    ("rate-limit",
     example({MANAGER: "rate_limited", "reward.max_concurrent": 8, "reward.max_rpm": 500}),
     example({MANAGER: "rate_limited", "reward.max_concurrent": 8, "reward.max_rpm": 500, "reward.num_workers": 1}),
     "together they reach 4000 a minute"),
    ("rate-limit", example({"reward.max_concurrent": 8}),
     example({MANAGER: "rate_limited", "reward.max_concurrent": 8}),
     "the reward manager naive does not read it"),
    ("remote-reward", example({MANAGER: "remote"}),
     example({MANAGER: "remote", "reward.num_workers": 4}), "verl reserves 64 cores for them"),
    ("remote-reward",
     example({MANAGER: "remote", "reward.num_workers": 2}, reward={"scorer": "judge"}),
     example({MANAGER: "naive"}, reward={"scorer": "judge"}),
     "the scorer judge is async, which remote refuses"),
    ("gdpo", example(GDPO | {"trainer.use_v1": True}), example(GDPO),
     "does not give the parts to GDPO and stops"),
    ("gdpo", example(GDPO | {"algorithm.gdpo_reward_keys": []}), example(GDPO, release="0.7.1"),
     "stops at the first step without it"),
    ("gdpo", example(GDPO | {"algorithm.gdpo_reward_weights": [1.0]}),
     example(GDPO | {"algorithm.gdpo_reward_weights": [1.0, 0.1]}), "1 weights for 2 keys"),
    ("gdpo", example(GDPO | {"algorithm.use_kl_in_reward": True}),
     example(GDPO | {f"{ACTOR}.use_kl_loss": True}),
     "GDPO reads the parts of the reward, not the reward"),
    ("gdpo", example(GDPO | {"algorithm.norm_adv_by_std_in_grpo": False}), example(GDPO),
     "a part's weight counts there and in gdpo_reward_weights"),
    ("gdpo", example(GDPO | {"algorithm.adv_estimator": "grpo"}), example(GDPO),
     "grpo does not read it"),
    ("reward-model", example(reward_pool(model_path=None), **OWN), example(reward_pool(), **OWN),
     "verl loads the reward model from it"),
    ("reward-model", example({k: v for k, v in reward_pool().items() if "rollout" not in k}, **OWN),
     example(reward_pool(), **OWN), "Set reward.reward_model.rollout.name=vllm."),
    ("reward-model", example(reward_pool(**{"rollout.name": "trtllm"}), reward={"scorer": "verl"}),
     example(reward_pool(), reward={"scorer": "verl"}), "cannot ask a reward model on trtllm"),
    ("reward-model", example(reward_pool(), reward={"scorer": "gsm8k"}),
     example(reward_pool(), **OWN), "nothing asks: the scorer gsm8k does not"),
    ("reward-model", example(reward_pool(enable=False), **OWN), example(reward_pool(), **OWN),
     "reserves devices that stay idle"),
    ("reward-model", example({f"{MODEL_REWARD}.model_path": "/models/judge"}, **OWN),
     example(**OWN), "it has no effect, because reward.reward_model.enable is False"),
    ("reward-model", example(colocated(), **OWN), example(colocated(), reward={"scorer": "verl"}),
     "fails where a reward function needs data_source and ground_truth"),
    ("reward-model", example(colocated(), **OWN),
     example(colocated(**{"trainer.use_v1": False}), **OWN),
     "Set reward.reward_model.enable_resource_pool=True"),
    ("reward-model", example(colocated(), reward={"scorer": "verl"}, **dynamic_sampling("reward")),
     example(reward_pool(), reward={"scorer": "verl"}, **dynamic_sampling("reward")),
     "which dynamic sampling needs before"),
    ("reward-model",
     example(colocated(**{"trainer.v1.trainer_mode": "separate_async"}), reward={"scorer": "verl"}),
     example(reward_pool() | {"trainer.v1.trainer_mode": "separate_async"}, reward={"scorer": "verl"}),
     "separate_async has no reward model on the trainer's devices"),
    ("reward-model-pool", example(reward_pool(nnodes=0), **OWN),
     example({f"{MODEL_REWARD}.nnodes": 0}, **OWN), "0 gives the reward model's pool no device"),
    ("reward-model-pool", example(reward_pool(n_gpus_per_node=1), **OWN),
     example(colocated(**{"trainer.use_v1": False}), **OWN),
     "a replica of the reward model takes 2 devices"),
    ("reward-model-pool", example(reward_pool(), cluster={"target": "slurm"}, **NPU, **OWN),
     example(colocated(), **NPU, **OWN),
     "the pool comes on top of the recipe's devices: 4 + 16"),
    ("context", example(LONG, facts=RunFacts(context=16384)),
     example(LONG, facts=RunFacts(context=32768)),
     "prompt + response = 18432 tokens, and the model was trained for 16384"),
    ("micro-batch", example({MICRO: None}), example({MICRO: None} | DYNAMIC),
     f"Set {ACTOR}.use_dynamic_bsz=True, or {MICRO}=1 or more."),
    ("micro-batch", example({MICRO: None, f"{ROLLOUT}.{LOG_PROB}": None}), example(),
     f"{MICRO}=1 and {ROLLOUT}.{LOG_PROB}=1 or more"),
    ("micro-batch", example({TOTAL: 256}), example({TOTAL: 256} | DYNAMIC),
     f"it is set, and so is {TOTAL}: verl 0.9.1 stops"),
    ("micro-batch", example({MICRO: None, TOTAL: 256}),
     example({MICRO: None, TOTAL: 256}, release="0.7.1"),
     "it is not set, and batches are cut by rows: verl 0.9.1 stops"),
    ("micro-batch", example(algorithm="ppo"),
     example({"critic.use_dynamic_bsz": True}, algorithm="ppo"),
     "critic.ppo_micro_batch_size_per_gpu=1 or more"),
    ("global-micro-batch", example({MICRO: None, TOTAL: 100}, release="0.7.1"),
     example({MICRO: None, TOTAL: 128}, release="0.7.1"),
     f"100 does not divide {ACTOR}.ppo_mini_batch_size=256"),
    ("global-micro-batch", example({MICRO: None, TOTAL: 4}, release="0.7.1"),
     example({MICRO: None, TOTAL: 8}, release="0.7.1"), "4 rows are fewer than the 8 devices"),
    ("critic-batch", example({"critic.ppo_mini_batch_size": 2048}, algorithm="ppo"),
     example({"critic.ppo_mini_batch_size": 2048}), "2048 is more than data.train_batch_size=1024"),
    ("critic-batch", example(PADDED_CRITIC, release="0.7.1", algorithm="ppo"),
     example(PADDED_CRITIC, algorithm="ppo"),
     "False makes verl stop, because critic.ulysses_sequence_parallel_size is 2"),
    ("accepted-value", example({f"{ACTOR}.loss_agg_mode": "token-sum"}, release="0.8.0"),
     example({f"{ACTOR}.loss_agg_mode": "token-sum"}),
     "verl 0.8.0 does not know token-sum; it knows token-mean,"),
    ("accepted-value", example({"algorithm.adv_estimator": "grpoo"}),
     example({"algorithm.adv_estimator": "grpoo"}, **OWN), "verl 0.9.1 does not know grpoo"),
    ("accepted-value", example({f"{ACTOR}.optim.lr_scheduler_type": "linear"}),
     example({f"{ACTOR}.optim.lr_scheduler_type": "cosine"}), "it knows constant, cosine"),
    ("bounds", example({f"{ROLLOUT}.trace.max_samples_per_step_per_worker": -1}),
     example({f"{ROLLOUT}.trace.max_samples_per_step_per_worker": 0}), "-1 is less than 0"),
    ("bounds", example({"trainer.v1.sampler.max_off_policy_threshold": 0}),
     example({"trainer.v1.sampler.max_off_policy_threshold": 0, "trainer.use_v1": False}),
     "0 is less than 1"),
    ("async-batch", example(SEPARATE | {BATCH: 512}), example(SEPARATE),
     "512 is not trainer.v1.separate_async.parameter_sync_step 4 x mini batch 256"),
    ("async-batch", example(SEPARATE | {f"{ROLLOUT}.checkpoint_engine.backend": "naive"}),
     example(SEPARATE | {"trainer.use_v1": False}), "naive cannot send the weights"),
    ("expert-parallel", example({f"{ROLLOUT}.expert_parallel_size": 4}),
     example({f"{ROLLOUT}.expert_parallel_size": 4, f"{ROLLOUT}.name": "trtllm"}),
     "4 is not TP x DP = "),
    ("expert-parallel", example({f"+{ROLLOUT}.moe_tensor_parallel_size": 2}),
     example({f"+{ROLLOUT}.moe_tensor_parallel_size": 2, f"{ROLLOUT}.name": "trtllm"}),
     "2 is possible for trtllm only"),
    ("expert-parallel", example(EXPERTS_OF_TRTLLM | {TP: 2}), example(EXPERTS_OF_TRTLLM | {TP: 4}),
     "2 x expert parallel 2 is not TP = 2"),
    ("lora-rank", example({f"{MODEL}.lora_rank": 600}), example(),
     "600 is more than 512, vLLM's largest rank"),
    ("router-replay",
     example({REPLAY: "R2", "algorithm.rollout_correction.bypass_mode": True}, **M),
     example({REPLAY: "R3", "algorithm.rollout_correction.bypass_mode": True}, **M),
     f"True makes verl 0.9.1 stop: {REPLAY} is R2"),
    ("router-replay", example({f"{ACTOR}.megatron.dynamic_context_parallel": True}, **M),
     example(**M), "it is not a positive number"),
    ("L-25", example(release="0.7.1"), example({"data.filter_overlong_prompts": True}, "0.7.1"),
     "False lets a prompt over the limit stop the run"),
    ("L-36", example(megatron(2) | {f"{REF}.megatron.tensor_model_parallel_size": 1}, **M),
     example(megatron(2), **M), "1, but the actor has 2 on the same devices"),
    ("L-50", example(release="0.8.0", **dynamic_sampling("reward")),
     example(**dynamic_sampling("reward")), "verl 0.8.0 has no metric reward and stops"),
    ("L-50", example(release="0.8.0", **dynamic_sampling(gen_batch_size=100, max_num_gen_batches=5)),
     example(release="0.8.0", **dynamic_sampling(gen_batch_size=2048, max_num_gen_batches=5)),
     "5 rounds of 100 prompts never fill a batch of 1024"),
    ("L-50", example(release="0.7.1", **dynamic_sampling(gen_batch_size=512)),
     example(**dynamic_sampling(gen_batch_size=512)),
     "512 is less than the batch of 1024: every step takes several rounds"),
    ("L-58", example({ULYSSES: 2, f"{MODEL}.use_remove_padding": False}), example({ULYSSES: 2}),
     "False makes verl stop, because actor_rollout_ref.actor.ulysses_sequence_parallel_size is 2"),
    ("L-59", example(LONG | {f"{MODEL}.use_remove_padding": False}), example(LONG),
     "False pads every sequence to 18432 tokens"),
    ("L-70", example({"trainer.balance_batch": False}, "0.8.0"),
     example({"trainer.balance_batch": False}), "devices wait"),
    ("ports", example(cluster={"port": 10002}), example(), "Ray refuses 10002"),
    ("ports", example(cluster={"dashboard_port": 19999}), example(), "Set it to 8265"),
    ("packages", on_machine(has_verl=False), on_machine(has_verl=True), "verl is not installed"),
    ("packages", on_machine(has_verl=False, parts=NPU), on_machine(parts=NPU), "--no-deps verl beside CANN"),
    ("packages", on_machine(has_transfer_queue=False),
     on_machine({"trainer.use_v1": False}, has_transfer_queue=False), "pip install TransferQueue"),
    ("packages", on_machine(new_trl="1.16.0"), on_machine(new_trl="1.16.0", parts=M),
     "imports trl.experimental.ppo"),
    ("packages", on_machine(release="0.8.0", has_dapo_recipe=False, parts=dynamic_sampling()),
     on_machine(has_dapo_recipe=False, parts=dynamic_sampling()), ". has no recipe/dapo"),
    ("devices", on_machine(devices=1), on_machine(devices=8),
     "the recipe needs 8 GPU, and this machine has 1"),
    ("devices", on_machine(cluster_devices=8, parts={"nodes": 2}), on_machine(cluster_devices=16, parts={"nodes": 2}),
     "the recipe needs 2 x 8 = 16 GPU, and the cluster at http://127.0.0.1:8265 has 8"),
    ("cpus", on_machine(cores=8, reserved_cores=12), on_machine(cores=12, reserved_cores=12),
     "and this machine has 8: the run would wait for them forever. Set ray_kwargs.ray_init.num_cpus=12"),
    ("cpus", on_machine({"ray_kwargs.ray_init.num_cpus": 6}, cores=64, reserved_cores=12),
     on_machine({"ray_kwargs.ray_init.num_cpus": 12}, cores=8, reserved_cores=12),
     "ray_kwargs.ray_init.num_cpus is 6"),
    ("L-50", example(facts=RunFacts(reward_keys=["extra", "score"]), **dynamic_sampling()),
     example(facts=RunFacts(reward_keys=["acc", "score"]), **dynamic_sampling()),
     "auto returns extra, score, but not acc: verl stops at the first batch. Return acc, or set algorithm.filter_groups.metric=reward"),
    *(("L-50", example(facts=RunFacts(reward_keys=["fit"]), release=release, **dynamic_sampling()), example(), f"metric={total}.") for release, total in (("0.8.0", "seq_reward"), ("0.9.0", "score"), ("0.10.0.dev0", "score"))),
    ("gdpo", example(GDPO, facts=RunFacts(numeric_keys=["correct", "form"])),
     example(GDPO, facts=RunFacts(numeric_keys=["correct", "format"])),
     "auto returns correct, form, but no number for format: verl stops at the first step"),
    ("reward-manager", example({MANAGER: "my_own"}, "0.7.1", **OWN),
     example({MANAGER: "MyOwn", "reward.reward_manager.source": "importlib"}, **OWN),
     "unless your reward file registers it"),
]  # fmt: skip


def findings_of(case, overrides=()):
    verl = {"verl": case.verl} if case.verl else {}
    plan = smallest_plan(case.release, overrides, **case.parts, **verl)
    return {finding.rule: finding for finding in check_rules(plan, case.facts)}


@every(("rule", "breaking", "fixed", "message"), EXAMPLES)
def test_a_rule_has_a_finding_for_a_plan_that_breaks_it_and_none_for_the_fixed_plan(
    rule, breaking, fixed, message
):
    findings = findings_of(breaking)
    assert rule in findings, f"{rule} has no finding"
    assert message in str(findings[rule])
    assert rule not in findings_of(fixed)


@every(("rule", "breaking", "fixed", "message"), EXAMPLES)
def test_a_finding_names_a_key_a_fix_and_its_source(rule, breaking, fixed, message):
    finding = findings_of(breaking)[rule]
    assert finding.key
    assert finding.fix.endswith(".")
    assert "\n" not in str(finding)
    source = next(r.source for r in RULES if r.id == rule)
    assert finding.source == source or finding.source.startswith(source.removesuffix(CODE))


#: A dotted name in a sentence, which is not part of a path.
DOTTED = re.compile(r"(?<![\w./-])[a-z_]\w*(?:\.\w+)+")


@cache
def all_keys():
    """Return the keys of all releases, with their sections."""
    variants = [release_of(v, megatron=m) for v in known_releases() for m in (False, True)]
    keys = {key for release in variants for key in release.keys}
    keys |= {key for entry in renames() for key in (entry.new, entry.old)}
    parts = (key.rstrip(".").split(".") for key in keys)
    return {".".join(names[:i]) for names in parts for i in range(2, len(names) + 1)}


def is_a_key(name):
    """Whether a name is a key of some release, or is below one of its sections of any name."""
    variants = [release_of(v, megatron=m) for v in known_releases() for m in (False, True)]
    return name in all_keys() or any(release.accepts_unlisted(name) for release in variants)


@pytest.mark.full
@every("verl", known_releases())
def test_a_finding_names_only_keys_that_the_planned_release_reads(verl):
    for rule, case, *_ in EXAMPLES:
        changes = {"verl": case.verl} if case.verl else {}
        plan = smallest_plan(verl, **case.parts, **changes)
        release = plan.release
        for finding in check_rules(plan, case.facts):
            for name in filter(is_a_key, DOTTED.findall(str(finding))):
                assert release.lists(name) or release.accepts_unlisted(name), (rule, name)
                assert release.ignored(name) is None, (rule, name)


def test_a_finding_names_the_keys_of_the_planned_release():
    parts = dynamic_sampling() | overlong_buffer(600)
    parts["dapo"] = dynamic_sampling()["dapo"] | overlong_buffer(600)["dapo"]
    finding = findings_of(example(release="0.8.0", **parts))["L-49"]
    assert finding.key == "reward_model.overlong_buffer.len"
    assert finding.fix == "Set reward_model.overlong_buffer.len=102."


@every(
    ("verl", "key"),
    [
        ("0.7.1", f"{ACTOR}.ulysses_sequence_parallel_size"),
        ("0.8.0", f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size"),
        ("0.9.1", f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size"),
    ],
)
def test_the_ulysses_size_is_recommended_by_the_key_that_the_release_does_not_deprecate(verl, key):
    packed = {**LONG, f"{MODEL}.use_remove_padding": True}
    finding = findings_of(example(packed, release=verl))["L-57"]
    assert finding.key == key
    sets = finding.fix.removeprefix("Set ").removesuffix(".").split(" and ")
    assert sets[0] == f"{key}=8"
    assert "L-57" not in findings_of(example(packed, release=verl), sets)


def test_a_wrong_ulysses_size_by_the_deprecated_key_is_corrected_by_the_other_one():
    deprecated = f"{ACTOR}.ulysses_sequence_parallel_size"
    finding = findings_of(example({deprecated: 3}))["L-57"]
    assert finding.key == deprecated
    own = [f"{model}.fsdp_config.ulysses_sequence_parallel_size=2" for model in (ACTOR, REF)]
    assert finding.fix == f"Set {' and '.join(own)}, and leave {deprecated} out."
    assert "L-57" not in findings_of(example(), own)


@every(("verl", "name"), [("0.8.0", "ppo"), ("0.9.1", "ppo_infer")])
def test_the_token_budget_of_the_critic_is_named_by_the_key_that_the_release_reads(verl, name):
    long = {"data.max_prompt_length": 2048, "data.max_response_length": 38912}
    wide = {f"{ACTOR}.ppo_max_token_len_per_gpu": 40960}
    finding = findings_of(example({**long, **wide, **DYNAMIC}, release=verl, algorithm="ppo"))
    assert finding["L-17"].fix == f"Set critic.{name}_max_token_len_per_gpu=40960, or more."


@every(
    ("verl", "place"),
    [
        ("0.9.1", "workers/config/actor.py:207"),
        ("0.8.0", "workers/config/actor.py:207"),
        ("0.7.1", "workers/config/actor.py:198"),
    ],
)
def test_a_finding_names_the_line_of_the_release_that_would_stop(verl, place):
    finding = findings_of(example({MICRO: None}, release=verl))["micro-batch"]
    assert finding.severity == "error"
    assert finding.source == f"verl {verl}: {place}"


def test_a_value_that_is_still_open_in_the_recipe_is_not_a_missing_micro_batch():
    assert "micro-batch" not in findings_of(example({MICRO: "???"}))


def test_every_rule_has_an_example():
    assert {rule.id for rule in RULES} == {rule for rule, *_ in EXAMPLES}


def test_every_rule_of_the_inventory_is_in_rules_or_in_checked_elsewhere():
    checked = [rule.id for rule in RULES]
    assert len(checked) == len(set(checked))
    inventory = {f"L-{number:02}" for number in range(1, 79)}
    assert inventory - {"L-21"} <= {*checked, *CHECKED_ELSEWHERE}  # L-21 was about verl before 0.7
    assert not set(checked) & set(CHECKED_ELSEWHERE)


@every("verl", [*known_releases(), *snapshots()])
@every("name", built_in())
def test_no_rule_raises_on_a_built_in_recipe_and_none_finds_an_error(name, verl):
    tree = load_tree(name)
    for variant in (None, *(tree.get("sweep") or {})):
        plan = make_plan(read_recipe(tree, name, variant), verl)
        findings = check_rules(plan, read_facts(plan))
        assert [str(f) for f in findings if f.severity == "error"] == []
        assert len({finding.rule for finding in findings}) == len(findings)


#: Rows of the built-in recipes' files, as the datasets are today.
ROWS = {
    "gsm8k": (7473, 1319),
    "7b-grpo": (17391, 530),
    "geometry3k": (2101, 601),
    "235b": (17391, 30),
    "32b-dapo": (17391, 30),
    "dianjin": (25000, 500),
}


@pytest.mark.full
@every("devices", ["gpu", "npu"])
@every("verl", known_releases())
@every("name", built_in())
def test_a_built_in_recipe_has_no_warning_about_itself(name, verl, devices):
    tree = {**load_tree(name), "devices": devices}
    if devices == "gpu":  # on GPUs the target ascend has a warning of its own
        tree["cluster"] = {**tree.get("cluster", {}), "target": "script"}
    train, val = next(rows for part, rows in ROWS.items() if part in name)
    for variant in (None, *(tree.get("sweep") or {})):
        plan = make_plan(read_recipe(tree, name, variant), verl)
        facts = replace(read_facts(plan), train_rows=train, val_rows=val)
        serious = [f for f in check_rules(plan, facts) if f.severity != "info"]
        assert [str(finding) for finding in serious] == []


def test_every_built_in_recipe_validates_and_not_on_what_it_trains_on():
    for name in built_in():
        recipe = read_recipe(load_tree(name), name)
        assert recipe.data.val, name
        assert not {*recipe.data.train} & {*recipe.data.val}, name


def test_a_rollout_over_two_nodes_is_no_warning_if_the_weights_crowd_one_node():
    """235B parameters take 438 GiB; eight devices have 512 GiB for the rollout."""
    wide = {f"{ROLLOUT}.tensor_model_parallel_size": 16, f"{ROLLOUT}.gpu_memory_utilization": 0.8}
    node = RunFacts(device_bytes=80 * GIB)
    for model, is_reported in (("Qwen3-235B-A22B", False), ("Qwen3-30B-A3B", True), ("mine", True)):
        case = example(wide, facts=node, nodes=2, model=f"/models/{model}")
        assert ("L-14" in findings_of(case)) is is_reported, model


def test_the_values_in_the_fix_for_the_token_budget_remove_the_finding():
    """The command line sets the values that the fix names."""
    breaking = next(case for rule, case, *_ in EXAMPLES if rule == "L-17")
    finding = findings_of(breaking)["L-17"]
    sets = finding.fix.removeprefix("Set ").removesuffix(", or more.").split(" and ")
    assert "L-17" not in findings_of(breaking, sets)


class RecordingPlan(Plan):
    """A plan that records which settings the rules read."""

    keys: ClassVar[set[str]] = set()

    def get(self, key, default=None):
        self.keys.add(key)
        return super().get(key, default)


def plans():
    """Return plans of every strategy and the settings that the rules read from them."""
    plans_by_release = [
        make_plan(read_recipe(load_tree(name), name), verl)
        for name in built_in()
        for verl in ("0.9.1", "0.7.1")
    ]
    for plan in plans_by_release:
        parts = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
        check_rules(RecordingPlan(**parts), SEVEN)
    return plans_by_release, sorted(RecordingPlan.keys)


PLANS, KEYS = plans()
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=9),
    st.sampled_from(["${data.train_batch_size}", "${no.such}", "1e-6", "", "???"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
FACTS = st.builds(
    RunFacts,
    **{
        name: st.none() | st.integers(1, 2**40)
        for name in (
            "layers",
            "heads",
            "kv_heads",
            "parameters",
            "context",
            "device_bytes",
            "val_rows",
        )
    },
    train_rows=st.none() | st.integers(1, 10**9),
    experts=st.none() | st.integers(0, 512),
    vision=st.none() | st.booleans(),
)


def with_values(plan, values):
    """Return a plan with settings of any type, which no recipe could have."""
    by_name = {plan.release.name_of(key): value for key, value in values.items()}
    return replace(plan, settings={**plan.settings, **values}, config={**plan.config, **by_name})


@given(st.sampled_from(PLANS), st.dictionaries(st.sampled_from(KEYS), ODD, max_size=12), FACTS)
def test_no_rule_raises_on_any_value(plan, odd, facts):
    for finding in check_rules(with_values(plan, odd), facts):
        assert isinstance(finding, LaunchFinding)
        assert finding.text


#: Settings that are lists, and some that may be of any type.
LISTS = {
    "reward.max_concurrent",
    "reward.max_rpm",
    "reward.max_tpm",
    "reward.reward_model.model_path",
    "reward.reward_model.rollout.name",
    "trainer.logger",
    "data.train_files",
    "data.val_files",
    f"{ROLLOUT}.cudagraph_capture_sizes",
}


@cache
def rules_and_keys(plan):
    """Return (rule, key) of each finding of an unchanged plan."""
    return {(f.rule, f.key) for f in check_rules(PLANS[plan], SEVEN)}


@every("key", sorted(set(KEYS) - LISTS))
def test_a_value_of_the_wrong_type_adds_no_finding_of_a_rule(key):
    for i, plan in enumerate(PLANS):
        odd = with_values(plan, {key: [["many"]]})
        findings = {(f.rule, f.key) for f in check_rules(odd, SEVEN)}
        assert [pair for pair in findings - rules_and_keys(i) if pair[1] == key] == []


def write_model(folder, **config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


SMALL = {
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "max_position_embeddings": 32768,
}


def test_the_facts_of_a_model_come_from_its_configuration(tmp_path):
    """Qwen2.5-0.5B: 494 million parameters, norms and biases aside."""
    plan = smallest_plan(model=write_model(tmp_path, **SMALL), hardware="8 GPU of 24 GB")
    facts = read_facts(plan)
    assert (facts.layers, facts.heads, facts.kv_heads, facts.experts) == (24, 14, 2, 0)
    assert facts.parameters == pytest.approx(494e6, rel=0.001)
    assert (facts.context, facts.vision, facts.device_bytes) == (32768, False, 24 * GIB)


def test_the_facts_of_a_vision_model_are_those_of_its_language_model(tmp_path):
    folder = write_model(tmp_path, text_config=SMALL, vision_config={"depth": 32})
    facts = read_facts(smallest_plan(model=folder))
    assert (facts.layers, facts.vision) == (24, True)


def test_the_index_of_the_weights_is_preferred_for_the_number_of_parameters(tmp_path):
    folder = write_model(tmp_path, **SMALL, torch_dtype="bfloat16")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 2_000_000}}))
    assert read_facts(smallest_plan(model=folder)).parameters == 1_000_000


def test_the_parameters_of_a_mixture_include_all_experts(tmp_path):
    """Qwen3-30B-A3B has 30.5 billion parameters."""
    mixture = {
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "moe_intermediate_size": 768,
        "intermediate_size": 6144,
        "num_experts": 128,
        "vocab_size": 151936,
    }
    facts = read_facts(smallest_plan(model=write_model(tmp_path, **mixture)))
    assert facts.parameters == pytest.approx(30.5e9, rel=0.01)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"num_hidden_layers": "24"}', "\udcff"])
def test_an_unusable_configuration_gives_no_facts(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    facts = read_facts(smallest_plan(model=str(tmp_path)))
    assert facts.layers is None
    assert facts.parameters is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(list(SMALL)), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*SMALL, "text_config", "num_experts", "rope_scaling"]), JSON)
)
def test_no_model_configuration_makes_a_rule_raise(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("model")
    plan = replace(PLANS[0], recipe=PLANS[0].recipe.model_copy(update={"model": str(folder)}))
    write_model(folder, **config)
    check_rules(plan, read_facts(plan))


@pytest.mark.parametrize(
    ("hardware", "gib"),
    [
        ("1 node x 8 GPU of 80 GB", 80),
        ("1 GPU of 24 GB or more", 24),
        ("4 nodes x 16 NPU (Atlas 800T A3)", 64),
        ("8 x H200", 141),
        ("2 x A800", 80),
        ("16 NPU", None),
        ("", None),
    ],
)
def test_the_memory_of_a_device_is_read_from_the_recipe(hardware, gib):
    assert device_memory(hardware) == (gib and gib * GIB)


def test_the_rules_see_overrides_of_the_command_line():
    assert "L-10" in findings_of(example(), [f"{ROLLOUT}.n=1"])


@pytest.mark.parametrize("algorithm", ["grpo", "dapo"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_groups_are_advised_to_have_8_responses_and_other_prompts(algorithm, size):
    """64 responses cost eight times as much, and do not help a prompt that is always solved."""
    plan = example({f"{ROLLOUT}.n": size}, algorithm=algorithm)
    fix = findings_of(plan, [])["L-10"].fix
    assert fix.startswith("Set actor_rollout_ref.rollout.n=8")
    assert "64" not in fix
    assert "16" not in fix
    assert "rewardkit select" in fix
