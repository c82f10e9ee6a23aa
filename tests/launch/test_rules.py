"""The rules: for each a plan that breaks it and one that does not."""

import json
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.plan import DAPO_RECIPE, Plan, make_plan
from rewardkit.launch.recipe import built_in, deep_merge, load_tree, read_recipe
from rewardkit.launch.rules import ELSEWHERE, RULES, check_rules
from rewardkit.launch.rules.facts import GIB, Facts, device_memory, facts_of
from rewardkit.launch.verl.key_renames import to_release_key
from rewardkit.launch.verl.keys import parse_release
from rewardkit.launch.verl.releases import known_releases
from tests.tables import every

ACTOR, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.model"
REF, ROLLOUT = "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
LONG = {"data.max_prompt_length": 2048, "data.max_response_length": 16384}
DYNAMIC = {f"{ACTOR}.use_dynamic_bsz": True}
OVERLONG = "reward.reward_kwargs.overlong_buffer_cfg"
TRANSFORMER = f"{ACTOR}.megatron.override_transformer_config"
SEVEN = Facts(layers=28, heads=28, kv_heads=4, experts=0, parameters=7_600_000_000)


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


def planned(of="0.9.1", overrides=(), **parts):
    """The smallest recipe with parts laid over it, planned."""
    recipe = read_recipe(deep_merge(SMALLEST, parts), "my.yaml")
    return make_plan(recipe, of, parse_overrides(overrides, "the command line"))


@dataclass(frozen=True)
class Made:
    """A plan to be: changes to the smallest recipe."""

    verl: dict[str, Any] = field(default_factory=dict)
    of: str = "0.9.1"
    facts: Facts = field(default_factory=Facts)
    parts: dict[str, Any] = field(default_factory=dict)


def made(verl=None, of="0.9.1", facts=Facts(), **parts):  # noqa: B008 - it is frozen
    return Made(verl or {}, of, facts, parts)


def buffer(size, **parts):
    return {"algorithm": "dapo", "dapo": {"overlong_buffer": {"len": size, **parts}}}


def sampled(metric="acc", **parts):
    return {"algorithm": "dapo", "dapo": {"dynamic_sampling": {"metric": metric, **parts}}}


def megatron(tensor=1, pipeline=1, **verl):
    engine = f"{ACTOR}.megatron"
    return {
        f"{engine}.tensor_model_parallel_size": tensor,
        f"{engine}.pipeline_model_parallel_size": pipeline,
        **{f"{engine}.{name}": value for name, value in verl.items()},
    }


M = {"strategy": "megatron"}
NPU = {"devices": "npu", "devices_per_node": 16}
VAL = {"trainer.test_freq": 10}

#: Rule, a plan that breaks it, one that does not, what its finding says.
EXAMPLES = [
    ("L-01", made({f"{ACTOR}.use_kl_loss": False}), made(), "GRPO has True"),
    ("L-01", made({"algorithm.adv_estimator": "rloo"}), made(), "rloo; GRPO takes grpo"),
    (
        "L-02",
        made({f"{ACTOR}.use_kl_loss": True}, algorithm="dapo"),
        made(algorithm="dapo"),
        "DAPO has False",
    ),
    (
        "L-03",
        made({"algorithm.use_kl_in_reward": False}, algorithm="ppo"),
        made(algorithm="ppo"),
        "PPO has True",
    ),
    (
        "L-04",
        made({"algorithm.kl_ctrl.kl_coef": 0.01}),
        made({"algorithm.kl_ctrl.kl_coef": 0.01}, algorithm="ppo"),
        "0.01 has no effect: algorithm.use_kl_in_reward is False",
    ),
    (
        "L-04",
        made({f"{ACTOR}.kl_loss_coef": 0.01, f"{ACTOR}.use_kl_loss": False}),
        made({f"{ACTOR}.use_kl_loss": False}),
        "0.01 has no effect",
    ),
    ("L-05", made({"algorithm.use_kl_in_reward": True}), made(), "counts twice"),
    (
        "L-06",
        made(algorithm="dapo", dapo={"clip_ratio_high": 0.2}),
        made(algorithm="dapo"),
        "0.2 and 0.2; DAPO clips at 0.2 and 0.28",
    ),
    ("L-06", made({f"{ACTOR}.clip_ratio_high": 0.3}), made(), "GRPO clips at 0.2 and 0.2"),
    (
        "L-06",
        made({f"{ACTOR}.clip_ratio": 0.1}),
        made({f"{ACTOR}.clip_ratio": 0.2}),
        "0.1 has no effect",
    ),
    ("L-07", made({f"{ACTOR}.clip_ratio_c": 1.0}), made(), "1: verl ends"),
    (
        "L-07",
        made(algorithm="dapo", dapo={"clip_ratio_c": 20.0}),
        made(algorithm="dapo", dapo={"clip_ratio_c": 3.0}),
        "the DAPO recipes have 10",
    ),
    (
        "L-08",
        made({"reward.reward_manager.name": "naive"}, algorithm="dapo"),
        made(algorithm="dapo"),
        "naive; DAPO takes dapo",
    ),
    (
        "L-08",
        made({"reward.reward_manager.name": "naive"}, **buffer(100)),
        made(**buffer(100)),
        "naive ignores the length penalty",
    ),
    (
        "L-09",
        made({f"{ACTOR}.loss_agg_mode": "seq-mean-token-sum"}),
        made({f"{ACTOR}.loss_agg_mode": "seq-mean-token-mean"}),
        "seq-mean-token-sum",
    ),
    (
        "L-10",
        made({f"{ROLLOUT}.n": 1}),
        made({f"{ROLLOUT}.n": 1}, algorithm="ppo"),
        "nothing would",
    ),
    ("L-10", made({f"{ROLLOUT}.n": 2}), made(), "2 answers"),
    (
        "L-11",
        made(LONG),
        made({**LONG, f"{ROLLOUT}.max_num_batched_tokens": 18432}),
        "18432 tokens",
    ),
    (
        "L-11",
        made({**LONG, f"{ROLLOUT}.enable_chunked_prefill": True}, of="0.5.0"),
        made({**LONG, f"{ROLLOUT}.max_num_batched_tokens": 18432}, of="0.5.0"),
        "verl 0.5.0 ends",
    ),
    (
        "L-11",
        made({f"{ROLLOUT}.max_num_batched_tokens": 4096}),
        made({f"{ROLLOUT}.max_num_batched_tokens": 1024}),
        "less than verl's own 8192",
    ),
    ("L-12", made({f"{ROLLOUT}.max_num_batched_tokens": 2048}), made(), "2048 at once"),
    ("L-13", made({f"{ROLLOUT}.enable_chunked_prefill": False}), made(), "decodes nothing"),
    (
        "L-14",
        made(
            {f"{ROLLOUT}.tensor_model_parallel_size": 1},
            facts=replace(SEVEN, device_bytes=24 * GIB),
        ),
        made(
            {f"{ROLLOUT}.tensor_model_parallel_size": 2},
            facts=replace(SEVEN, device_bytes=24 * GIB),
        ),
        "14 GiB of weights on 1 x 12 GiB. Set actor_rollout_ref.rollout.tensor_model_parallel_size=2",
    ),
    (
        "L-14",
        made({f"{ROLLOUT}.tensor_model_parallel_size": 16}, nodes=2),
        made({f"{ROLLOUT}.tensor_model_parallel_size": 8}, nodes=2),
        "16: over 8",
    ),
    ("L-15", made({f"{ROLLOUT}.gpu_memory_utilization": 0.88}), made(), "0.88 leaves little"),
    (
        "L-15",
        made(
            {f"{ACTOR}.fsdp_config.param_offload": True, f"{ROLLOUT}.gpu_memory_utilization": 0.4}
        ),
        made(
            {f"{ACTOR}.fsdp_config.param_offload": True, f"{ROLLOUT}.gpu_memory_utilization": 0.8}
        ),
        "0.4, though the actor is offloaded",
    ),
    ("L-15", made({f"{ROLLOUT}.gpu_memory_utilization": 40}), made(), "40 is no share"),
    ("L-16", made(LONG), made({**LONG, **DYNAMIC}), "10 tokens or 16384"),
    (
        "L-16",
        made({**DYNAMIC, f"{ROLLOUT}.log_prob_use_dynamic_bsz": False}),
        made({**DYNAMIC, f"{ROLLOUT}.log_prob_use_dynamic_bsz": False}, of="0.5.0"),
        "verl 0.9.1 ends",
    ),
    (
        "L-17",
        made({**LONG, **DYNAMIC}),
        made({**LONG, **DYNAMIC, f"{ACTOR}.ulysses_sequence_parallel_size": 2}),
        "16384 x sequence parallel 1 is less than prompt + response = 18432",
    ),
    (
        "L-17",
        made(
            {
                **LONG,
                **DYNAMIC,
                f"{ACTOR}.ppo_max_token_len_per_gpu": 18432,
                f"{REF}.log_prob_max_token_len_per_gpu": 9000,
            }
        ),
        made(
            {
                **LONG,
                **DYNAMIC,
                f"{ACTOR}.ppo_max_token_len_per_gpu": 18432,
                f"{REF}.log_prob_max_token_len_per_gpu": 9000,
                f"{ACTOR}.use_kl_loss": False,
            }
        ),
        "Set actor_rollout_ref.ref.log_prob_max_token_len_per_gpu=18432",
    ),
    (
        "L-17",
        made({**LONG, **DYNAMIC, "critic.ppo_max_token_len_per_gpu": 9000}, algorithm="ppo"),
        made({**LONG, **DYNAMIC, f"{ACTOR}.ppo_max_token_len_per_gpu": 18432}, algorithm="ppo"),
        "16384 x sequence parallel 1",
    ),
    (
        "L-17",
        made({**LONG, **DYNAMIC, **megatron()}, of="0.5.0", **M),
        made(
            {
                **LONG,
                **DYNAMIC,
                **megatron(context_parallel_size=2),
                f"{REF}.megatron.context_parallel_size": 2,
            },
            of="0.5.0",
            **M,
        ),
        "16384 x sequence parallel 1",
    ),
    (
        "L-18",
        made({"data.train_batch_size": 128}),
        made({"data.train_batch_size": 256}),
        "256 is more than data.train_batch_size=128",
    ),
    (
        "L-18",
        made({f"{ACTOR}.ppo_micro_batch_size_per_gpu": 3}),
        made({f"{ACTOR}.ppo_micro_batch_size_per_gpu": 3, **DYNAMIC}),
        "3 does not divide the 256 rows",
    ),
    (
        "L-19",
        made({"data.train_batch_size": 257, f"{ROLLOUT}.n": 5}),
        made({"data.train_batch_size": 257, f"{ROLLOUT}.n": 5, **DYNAMIC}),
        "257 x n 5 = 1285 does not divide by 8 (the devices). Set data.train_batch_size=264",
    ),
    (
        "L-19",
        made({"data.train_batch_size": 257, f"{ROLLOUT}.n": 5, **DYNAMIC}, of="0.5.0"),
        made(of="0.5.0"),
        "does not divide by 8",
    ),
    (
        "L-19",
        made({f"{ACTOR}.ppo_mini_batch_size": 4, f"{ROLLOUT}.n": 5}),
        made({f"{ACTOR}.ppo_mini_batch_size": 8, f"{ROLLOUT}.n": 5}),
        "4 x n 5 = 20 does not divide by 8 copies",
    ),
    (
        "L-19",
        made({f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 3}),
        made({f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 3}, of="0.5.0"),
        "3 does not divide the 1024 rows",
    ),
    (
        "L-19",
        made({**megatron(2, 2), "data.train_batch_size": 257, f"{ROLLOUT}.n": 5}, **M),
        made({**megatron(2, 2), "data.train_batch_size": 258, f"{ROLLOUT}.n": 5}, **M),
        "2 copies x micro batch 1",
    ),
    (
        "L-20",
        made({f"{ACTOR}.ppo_mini_batch_size": 32}),
        made({f"{ACTOR}.ppo_mini_batch_size": 64}),
        "32 updates a step",
    ),
    (
        "L-20",
        made({f"{ACTOR}.ppo_mini_batch_size": 400}),
        made({f"{ACTOR}.ppo_mini_batch_size": 512}),
        "the last update has 224 prompts",
    ),
    ("L-21", made({"data.truncation": "right"}, of="0.5.0"), made(of="0.5.0"), "question's end"),
    (
        "L-21",
        made({"data.truncation": "cut"}, of="0.6.1"),
        made({"data.truncation": "cut"}),
        "cut: verl",
    ),
    (
        "L-25",
        made(of="0.5.0"),
        made({"data.filter_overlong_prompts": True}, of="0.5.0"),
        "ends the run",
    ),
    (
        "L-25",
        made({"data.truncation": "error"}),
        made({"data.truncation": "error"}, facts=Facts(longest_prompt=400)),
        "verl 0.9.1 does not read data.truncation",
    ),
    ("L-25", made(model="/m/Qwen2.5-VL-7B"), made(model="/m/Qwen2.5-7B"), "with images"),
    ("L-26", made({f"{ROLLOUT}.temperature": 0.6}), made(), "0.6: the answers"),
    ("L-26", made({f"{ROLLOUT}.top_p": 0.95}), made(), "0.95: the answers"),
    (
        "L-26",
        made({f"{ROLLOUT}.top_k": 0}),
        made({f"{ROLLOUT}.top_k": 0, f"{ROLLOUT}.name": "hf"}, of="0.5.0"),
        "Set actor_rollout_ref.rollout.top_k=-1",
    ),
    (
        "L-27",
        made(VAL, model="/m/Qwen3-8B"),
        made(
            {
                **VAL,
                f"{ROLLOUT}.val_kwargs.do_sample": True,
                f"{ROLLOUT}.val_kwargs.temperature": 1.0,
            },
            model="/m/Qwen3-8B",
        ),
        "a thinking model repeats itself",
    ),
    (
        "L-27",
        made({f"{ROLLOUT}.val_kwargs.do_sample": True, f"{ROLLOUT}.temperature": 0}),
        made({f"{ROLLOUT}.temperature": 0}),
        "rollout.temperature is 0: verl ends",
    ),
    (
        "L-27",
        made({**VAL, f"{ROLLOUT}.val_kwargs.do_sample": True}),
        made(VAL, model="/m/Qwen3-4B-Instruct-2507"),
        "nothing is sampled",
    ),
    (
        "L-27",
        made(VAL, facts=Facts(val_rows=30)),
        made(VAL, facts=Facts(val_rows=500)),
        "jumps by 3.3 points",
    ),
    (
        "L-28",
        made({f"{ROLLOUT}.response_length": 1024}),
        made({f"{ROLLOUT}.response_length": 1024, "data.max_response_length": 1024}),
        "1024 wins over data.max_response_length=512",
    ),
    (
        "L-29",
        made({f"{ROLLOUT}.name": "hf"}),
        made({f"{ROLLOUT}.name": "hf"}, of="0.5.0"),
        "no rollout 'hf'",
    ),
    (
        "L-29",
        made({f"{ROLLOUT}.name": "trtllm"}, of="0.6.1"),
        made({f"{ROLLOUT}.name": "trtllm"}),
        "trtllm",
    ),
    (
        "L-30",
        made({f"{ROLLOUT}.engine_kwargs.vllm.pipeline_parallel_size": 2}),
        made({f"{ROLLOUT}.engine_kwargs.vllm.swap_space": 4}),
        "not supported",
    ),
    (
        "L-30",
        made({f"{ROLLOUT}.engine_kwargs.sglang.attention_backend": "fa3"}),
        made(
            {
                f"{ROLLOUT}.engine_kwargs.sglang.attention_backend": "fa3",
                f"{ROLLOUT}.name": "sglang",
            }
        ),
        "no effect: the rollout is vllm",
    ),
    ("L-30", made({f"{ROLLOUT}.pipeline_model_parallel_size": 2}), made(), "vllm has no pipeline"),
    (
        "L-31",
        made(
            {
                f"{ROLLOUT}.engine_kwargs.vllm.enable_expert_parallel": True,
                f"{ROLLOUT}.tensor_model_parallel_size": 32,
            },
            nodes=4,
        ),
        made({f"{ROLLOUT}.engine_kwargs.vllm.enable_expert_parallel": True}),
        "over 32 devices",
    ),
    (
        "L-32",
        made({f"{ROLLOUT}.gpu_memory_utilization": 0.95}),
        made({f"{ROLLOUT}.gpu_memory_utilization": 0.95}, of="0.5.0"),
        "beside the 95%",
    ),
    (
        "L-33",
        made({f"{ROLLOUT}.cudagraph_capture_sizes": [1, 2], f"{ROLLOUT}.enforce_eager": True}),
        made({f"{ROLLOUT}.cudagraph_capture_sizes": [1, 2]}),
        "no effect: actor_rollout_ref.rollout.enforce_eager is True",
    ),
    ("L-34", made(LONG), made(LONG, **NPU), "the logits of 18432 tokens"),
    (
        "L-35",
        made(megatron(use_mbridge=False), **M),
        made(megatron(), of="0.5.0", **M),
        "verl 0.9.1 ends",
    ),
    (
        "L-36",
        made({**megatron(2), f"{REF}.megatron.tensor_model_parallel_size": 4}, **M),
        made(megatron(2), **M),
        "4, and the actor has 2",
    ),
    (
        "L-36",
        made(megatron(2), of="0.5.0", **M),
        made(megatron(2), of="0.5.0", **M, algorithm="dapo"),
        "1, and the actor has 2",
    ),
    (
        "L-36",
        made({f"{ACTOR}.fsdp_config.param_offload": True}),
        made(
            {f"{ACTOR}.fsdp_config.param_offload": True, f"{REF}.fsdp_config.param_offload": True}
        ),
        "the reference stays on the device",
    ),
    ("L-37", made(megatron(3), **M), made(megatron(2), **M), "TP x PP x CP = 3 does not divide 8"),
    (
        "L-37",
        made({f"{ROLLOUT}.tensor_model_parallel_size": 3}),
        made(),
        "3 does not divide 8 devices",
    ),
    (
        "L-37",
        made({f"{ROLLOUT}.tensor_model_parallel_size": 8}, facts=SEVEN),
        made({f"{ROLLOUT}.tensor_model_parallel_size": 4}, facts=SEVEN),
        "28 attention heads. Set actor_rollout_ref.rollout.tensor_model_parallel_size=4",
    ),
    (
        "L-37",
        made(megatron(2, 2, expert_model_parallel_size=4), **M),
        made(megatron(2, 2, expert_model_parallel_size=4, expert_tensor_parallel_size=1), **M),
        "EP x ETP x PP = 16 does not divide 8",
    ),
    (
        "L-37",
        made(megatron(16), **M, nodes=2),
        made(megatron(8), **M, nodes=2),
        "8 devices of a node",
    ),
    (
        "L-38",
        made(facts=replace(SEVEN, device_bytes=8 * GIB)),
        made(facts=replace(SEVEN, device_bytes=24 * GIB)),
        "take about 14 GiB of a device's 8 GiB",
    ),
    (
        "L-38",
        made(megatron(2), facts=replace(SEVEN, device_bytes=24 * GIB), **M),
        made(megatron(4, 2), facts=replace(SEVEN, device_bytes=24 * GIB), **M),
        "take about",
    ),
    ("L-39", made({f"{ACTOR}.optim.lr": 1e-3}), made({f"{ACTOR}.optim.lr": 1e-6}), "0.001 is far"),
    (
        "L-40",
        made({f"{ACTOR}.optim.override_optimizer_config.optimizer_cpu_offload": True}, **M),
        made(
            {
                f"{ACTOR}.optim.override_optimizer_config": {
                    "optimizer_cpu_offload": True,
                    "optimizer_offload_fraction": 1,
                    "overlap_cpu_optimizer_d2h_h2d": True,
                    "use_precision_aware_optimizer": True,
                }
            },
            **M,
        ),
        "optimizer_cpu_offload without optimizer_offload_fraction",
    ),
    (
        "L-41",
        made(megatron(param_offload=True), **M),
        made(megatron(param_offload=True, optimizer_offload=True), **M),
        "False, and param_offload is True",
    ),
    (
        "L-41",
        made(megatron(param_offload=True, optimizer_offload=True), of="0.8.0", **M),
        made(
            megatron(param_offload=True, optimizer_offload=True, grad_offload=True), of="0.8.0", **M
        ),
        "grad_offload=True",
    ),
    (
        "L-42",
        made({**LONG, **megatron()}, **M),
        made({**LONG, **megatron(), f"{TRANSFORMER}.recompute_granularity": "full"}, **M),
        "16384 tokens",
    ),
    (
        "L-43",
        made(megatron(expert_model_parallel_size=2), **M),
        made(
            {**megatron(expert_model_parallel_size=2), f"{TRANSFORMER}.moe_router_dtype": "fp32"},
            **M,
        ),
        "not set: experts",
    ),
    (
        "L-44",
        made({**megatron(), f"{TRANSFORMER}.gradient_accumulation_fusion": False}, **M),
        made({**megatron(), f"{TRANSFORMER}.gradient_accumulation_fusion": True}, **M),
        "slower",
    ),
    (
        "L-45",
        made(megatron(1, 8), facts=SEVEN, **M),
        made(
            {**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 7},
            facts=SEVEN,
            **M,
        ),
        "28 layers do not divide over 8 stages",
    ),
    (
        "L-45",
        made(
            {**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 6},
            facts=Facts(layers=94),
            **M,
        ),
        made(
            {**megatron(1, 8), f"{TRANSFORMER}.num_layers_in_last_pipeline_stage": 10},
            facts=Facts(layers=94),
            **M,
        ),
        "88 layers do not divide over 7 stages (the model has 94, PP is 8). Set actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_stage=10",
    ),
    (
        "L-45",
        made(megatron(1, 2), facts=Facts(layers=61), **M),
        made(
            {**megatron(1, 2), f"{TRANSFORMER}.account_for_loss_in_pipeline_split": True},
            facts=Facts(layers=61),
            **M,
        ),
        "61 layers",
    ),
    ("L-46", made({f"{ACTOR}.kl_loss_coef": 0}), made(), "for nothing"),
    (
        "L-46",
        made({f"{ACTOR}.kl_loss_coef": 0.5}),
        made({f"{ACTOR}.kl_loss_coef": 0.01}),
        "0.5 leaves",
    ),
    (
        "L-47",
        made({f"{ACTOR}.kl_loss_type": "mse"}),
        made({f"{ACTOR}.kl_loss_type": "k3"}),
        "mse varies",
    ),
    ("L-48", made({f"{ACTOR}.entropy_coeff": 0.001}), made(), "0.001; all recipes have 0"),
    ("L-49", made(**buffer(512)), made(**buffer(511)), "512 tokens, and a response has 512"),
    ("L-49", made({f"{OVERLONG}.len": 0}, **buffer(9)), made(**buffer(9)), "nothing to penalise"),
    (
        "L-49",
        made({f"{OVERLONG}.enable": True, f"{OVERLONG}.len": 9}),
        made(
            {
                f"{OVERLONG}": {"enable": True, "len": 9, "log": False},
                "reward.reward_kwargs.max_resp_len": 512,
            }
        ),
        "missing: verl ends at the first sample",
    ),
    (
        "L-49",
        made({f"{OVERLONG}": {"enable": True, "len": 9, "log": False}}),
        made(of="0.5.0", **buffer(9)),
        "missing: verl ends where it makes the reward manager",
    ),
    (
        "L-49",
        made({"reward.reward_kwargs.max_resp_len": 400}, **buffer(9)),
        made({"reward.reward_kwargs.max_resp_len": 512}, **buffer(9)),
        "400, and a response has 512",
    ),
    (
        "L-50",
        made({"algorithm.filter_groups.metric": None}, **sampled()),
        made(**sampled()),
        "not set",
    ),
    (
        "L-50",
        made(**sampled("seq_reward")),
        made(of="0.5.0", **sampled("seq_reward")),
        "has no seq_reward",
    ),
    ("L-50", made(of="0.5.0", **sampled("reward")), made(**sampled("reward")), "has no reward"),
    (
        "L-50",
        made(of="0.5.0", **sampled(gen_batch_size=100, max_num_gen_batches=5)),
        made(of="0.5.0", **sampled(gen_batch_size=2048, max_num_gen_batches=5)),
        "5 rounds of 100 never make a batch of 1024",
    ),
    (
        "L-50",
        made(of="0.5.0", **sampled(gen_batch_size=512)),
        made(**sampled(gen_batch_size=512)),
        "512 is less than a batch of 1024",
    ),
    (
        "L-53",
        made({"trainer.device": "cuda"}, **NPU),
        made(**NPU),
        "cuda, and the recipe's devices are npu",
    ),
    ("L-53", made({"trainer.device": "npu"}), made(), "Set trainer.device=cuda"),
    ("L-54", made({f"{REF}.use_torch_compile": True}, **NPU), made(**NPU), "True; NPU needs False"),
    (
        "L-55",
        made({f"{ROLLOUT}.enforce_eager": True}, **NPU, env={"TASK_QUEUE_ENABLE": 1}),
        made({f"{ROLLOUT}.enforce_eager": True}, **NPU),
        "Set env.TASK_QUEUE_ENABLE=2",
    ),
    (
        "L-57",
        made(LONG),
        made({**LONG, f"{ACTOR}.ulysses_sequence_parallel_size": 4}),
        "16384 tokens",
    ),
    (
        "L-57",
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 3}),
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 2}),
        "3 does not divide 8",
    ),
    (
        "L-57",
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 8}, facts=SEVEN),
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 4}, facts=SEVEN),
        "28 attention heads",
    ),
    (
        "L-57",
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 4}, facts=Facts(heads=12, kv_heads=6)),
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 4}, facts=Facts(heads=12, kv_heads=2)),
        "6 key-value heads",
    ),
    (
        "L-58",
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 2}, of="0.5.0"),
        made({f"{ACTOR}.ulysses_sequence_parallel_size": 2}),
        "ulysses_sequence_parallel_size is 2: verl ends",
    ),
    ("L-59", made(LONG, of="0.5.0"), made(LONG), "padded to 18432 tokens"),
    (
        "L-59",
        made({**LONG, f"{MODEL}.enable_gradient_checkpointing": False}),
        made(LONG),
        "every layer",
    ),
    (
        "L-60",
        made({f"{ACTOR}.ppo_micro_batch_size_per_gpu": 4}),
        made(
            {
                f"{ACTOR}.ppo_micro_batch_size_per_gpu": 4,
                f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
            }
        ),
        "1 is less than",
    ),
    (
        "L-61",
        made(
            {f"{ROLLOUT}.tensor_model_parallel_size": 4},
            facts=replace(SEVEN, device_bytes=80 * GIB),
        ),
        made(
            {f"{ROLLOUT}.tensor_model_parallel_size": 1},
            facts=replace(SEVEN, device_bytes=80 * GIB),
        ),
        "14 GiB of weights leave room on 2",
    ),
    ("L-62", made({"trainer.test_freq": -100}), made(VAL), "-100: never"),
    (
        "L-62",
        made(VAL, data={"val": ["/data/train.parquet"]}),
        made(
            {"trainer.test_freq": -1, "trainer.val_only": True},
            data={"val": ["/data/train.parquet"]},
        ),
        "/data/train.parquet is trained on and validated on",
    ),
    ("L-62", made(data={"val": []}), made(VAL), "nothing is validated"),
    ("L-63", made(), made({"trainer.save_freq": 100}), "-1: the trained model is never saved"),
    (
        "L-63",
        made({"trainer.save_freq": 5}),
        made({"trainer.save_freq": 5, "trainer.max_actor_ckpt_to_keep": 2}),
        "every 5 steps",
    ),
    (
        "L-64",
        made({"trainer.resume_mode": "always"}),
        made({"trainer.resume_mode": "disable"}),
        "'always'",
    ),
    (
        "L-64",
        made({"trainer.resume_mode": "resume_path"}),
        made(
            {"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "/c/global_step_9"}
        ),
        "resume_from_path is not set",
    ),
    (
        "L-64",
        made({"trainer.resume_mode": "resume_path", "trainer.resume_from_path": "/c/latest"}),
        made({"trainer.resume_from_path": "/c/latest"}),
        "/c/latest: verl reads the step",
    ),
    ("L-65", made({"trainer.logger": ["console", "wandbb"]}), made(), "no wandbb"),
    (
        "L-65",
        made({"trainer.logger": "file"}, of="0.5.0"),
        made({"trainer.logger": "file"}),
        "no file",
    ),
    (
        "L-66",
        made({**VAL, "trainer.logger": ["console", "wandb"]}),
        made({**VAL, "trainer.logger": ["console"]}),
        "wandb gets figures",
    ),
    ("L-67", made(), made({"trainer.project_name": "mine"}), "verl_examples"),
    (
        "L-68",
        made(facts=Facts(train_rows=1000)),
        made(facts=Facts(train_rows=1024)),
        "no step would",
    ),
    (
        "L-68",
        made(
            {"data.train_batch_size": 256, "trainer.save_freq": 500}, facts=Facts(train_rows=3000)
        ),
        made(
            {"data.train_batch_size": 256, "trainer.save_freq": 500}, facts=Facts(train_rows=7473)
        ),
        "500 is more than the run's 330 steps",
    ),
    (
        "L-69",
        made({**LONG, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 2}),
        made({**LONG, f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1}),
        "36864 tokens a pass",
    ),
    (
        "L-70",
        made({"trainer.balance_batch": False}, of="0.5.0"),
        made({"trainer.balance_batch": False}),
        "devices wait",
    ),
    ("L-73", made({"data.shuffle": False}), made({"data.shuffle": True}), "as the file has them"),
    (
        "L-74",
        made({"data.prompt_key": "question"}),
        made({"data.prompt_key": "prompt"}),
        "question",
    ),
    (
        "L-75",
        made({"data.image_key": "pictures"}, model="/m/Qwen2.5-VL-7B"),
        made({"data.image_key": "pictures"}),
        "pictures",
    ),
    (
        "L-75",
        made(of="0.8.0", facts=Facts(vision=True)),
        made(
            {f"{ROLLOUT}.engine_kwargs.vllm.mm_processor_cache_gb": 0},
            of="0.8.0",
            facts=Facts(vision=True),
        ),
        "mm_processor_cache_gb=0",
    ),
    (
        "L-77",
        made(**NPU, cluster={"workdir": "/home/verl"}),
        made(**NPU, cluster={"workdir": "/homes/verl"}),
        "/home/verl: vLLM",
    ),
    (
        "L-78",
        made(nodes=2),
        made({"trainer.default_local_dir": "/shared/c"}, nodes=2),
        "2 nodes each",
    ),
    (
        "L-78",
        made({"trainer.default_local_dir": "ckpt"}, nodes=2),
        made({"trainer.default_local_dir": "ckpt"}),
        "ckpt: 2 nodes each write",
    ),
    (
        "context",
        made(LONG, facts=Facts(context=16384)),
        made(LONG, facts=Facts(context=32768)),
        "18432 tokens, and the model was made for 16384",
    ),
]


def found(case, overrides=()):
    verl = {"verl": case.verl} if case.verl else {}
    plan = planned(case.of, overrides, **case.parts, **verl)
    return {finding.rule: finding for finding in check_rules(plan, case.facts)}


@every(("rule", "broken", "mended", "says"), EXAMPLES)
def test_a_rule_speaks_of_what_breaks_it_and_only_then(rule, broken, mended, says):
    findings = found(broken)
    assert rule in findings, f"{rule} says nothing"
    assert says in str(findings[rule])
    assert rule not in found(mended)


@every(("rule", "broken", "mended", "says"), EXAMPLES)
def test_a_finding_names_a_key_a_fix_and_its_source(rule, broken, mended, says):
    finding = found(broken)[rule]
    assert finding.key
    assert finding.fix.endswith(".")
    assert "\n" not in str(finding)
    assert finding.source == next(r.source for r in RULES if r.id == rule)


def test_every_rule_has_an_example():
    assert {rule.id for rule in RULES} == {rule for rule, *_ in EXAMPLES}


def test_every_rule_of_the_inventory_is_checked_here_or_elsewhere():
    here = [rule.id for rule in RULES]
    assert len(here) == len(set(here))
    inventory = {f"L-{number:02}" for number in range(1, 79)}
    assert inventory <= {*here, *ELSEWHERE}
    assert not set(here) & set(ELSEWHERE)


@every("verl", known_releases())
@every("name", built_in())
def test_no_rule_raises_on_a_built_in_recipe_and_none_finds_an_error(name, verl):
    tree = load_tree(name)
    for variant in (None, *(tree.get("sweep") or {})):
        plan = make_plan(read_recipe(tree, name, variant), verl)
        findings = check_rules(plan, facts_of(plan))
        assert [str(f) for f in findings if f.severity == "error"] == []
        assert len({finding.rule for finding in findings}) == len(findings)


def test_what_a_fix_says_mends_the_token_budget():
    """The values in the fix, set on the command line, are enough."""
    broken = next(case for rule, case, *_ in EXAMPLES if rule == "L-17")
    finding = found(broken)["L-17"]
    sets = finding.fix.removeprefix("Set ").removesuffix(", or more.").split(" and ")
    assert "L-17" not in found(broken, sets)


class Watched(Plan):
    """A plan that notes which settings are asked for."""

    asked: ClassVar[set[str]] = set()

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)


def plans():
    """A plan of every strategy, and the settings that the rules ask for in them."""
    made_plans = [
        make_plan(read_recipe(load_tree(name), name), verl)
        for name in built_in()
        for verl in ("0.9.1", "0.5.0")
    ]
    for plan in made_plans:
        parts = {name: getattr(plan, name) for name in Plan.__dataclass_fields__}
        check_rules(Watched(**parts), SEVEN)
    return made_plans, sorted(Watched.asked)


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
    Facts,
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
    """A plan with settings of any type, as no recipe could plan them."""
    kind = {
        "megatron": plan.recipe.strategy == "megatron",
        "dapo_recipe": plan.module == DAPO_RECIPE,
    }
    by_name = {to_release_key(k, parse_release(plan.verl), **kind): v for k, v in values.items()}
    return replace(plan, settings={**plan.settings, **values}, config={**plan.config, **by_name})


@given(st.sampled_from(PLANS), st.dictionaries(st.sampled_from(KEYS), ODD, max_size=12), FACTS)
def test_no_rule_raises_on_any_value(plan, odd, facts):
    for finding in check_rules(with_values(plan, odd), facts):
        assert isinstance(finding, LaunchFinding)
        assert finding.text


#: Settings that are lists, and one that may be of any type.
LISTS = {
    "trainer.logger",
    "data.train_files",
    "data.val_files",
    f"{ROLLOUT}.cudagraph_capture_sizes",
}


@cache
def spoken(plan):
    """What the rules say of a plan as it is."""
    return {(f.rule, f.key) for f in check_rules(PLANS[plan], SEVEN)}


@every("key", sorted(set(KEYS) - LISTS))
def test_a_value_of_the_wrong_type_is_left_to_verl(key):
    for i, plan in enumerate(PLANS):
        odd = with_values(plan, {key: [["many"]]})
        after = {(f.rule, f.key) for f in check_rules(odd, SEVEN)}
        assert [pair for pair in after - spoken(i) if pair[1] == key] == []


def model(folder, **config):
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


def test_the_model_is_known_by_its_configuration(tmp_path):
    """Qwen2.5-0.5B: 494 million parameters, norms and biases aside."""
    plan = planned(model=model(tmp_path, **SMALL), hardware="8 GPU of 24 GB")
    facts = facts_of(plan)
    assert (facts.layers, facts.heads, facts.kv_heads, facts.experts) == (24, 14, 2, 0)
    assert facts.parameters == pytest.approx(494e6, rel=0.001)
    assert (facts.context, facts.vision, facts.device_bytes) == (32768, False, 24 * GIB)


def test_a_vision_model_is_known_by_the_language_model_in_it(tmp_path):
    folder = model(tmp_path, text_config=SMALL, vision_config={"depth": 32})
    facts = facts_of(planned(model=folder))
    assert (facts.layers, facts.vision) == (24, True)


def test_the_index_of_the_weights_counts_parameters_better(tmp_path):
    folder = model(tmp_path, **SMALL, torch_dtype="bfloat16")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 2_000_000}}))
    assert facts_of(planned(model=folder)).parameters == 1_000_000


def test_a_mixture_counts_all_of_its_experts(tmp_path):
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
    facts = facts_of(planned(model=model(tmp_path, **mixture)))
    assert facts.parameters == pytest.approx(30.5e9, rel=0.01)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"num_hidden_layers": "24"}', "\udcff"])
def test_a_configuration_that_says_nothing_is_no_fact(tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    facts = facts_of(planned(model=str(tmp_path)))
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
def test_no_configuration_of_a_model_raises(tmp_path_factory, config):
    folder = tmp_path_factory.mktemp("model")
    plan = replace(PLANS[0], recipe=PLANS[0].recipe.model_copy(update={"model": str(folder)}))
    model(folder, **config)
    check_rules(plan, facts_of(plan))


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


def test_an_override_on_the_command_line_is_what_the_rules_look_at():
    assert "L-10" in found(made(), [f"{ROLLOUT}.n=1"])
