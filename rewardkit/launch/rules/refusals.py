"""Rules on what verl itself refuses: its validate_config, its dataclasses and its trainers.

Each is a check of `refusals.yaml`, and is made for the releases that the table names. The modules of
the batches, the parallel sizes and the rollout, and `expected_values.yaml`, have the other checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import Violation, Violations, rule
from rewardkit.launch.rules.values import (
    BATCH,
    DYNAMIC_BATCH,
    LOG_PROB_MICRO_BATCH,
    MICRO_BATCH,
    MINI_BATCH,
    MODEL,
    ROLLOUT,
    ULYSSES_SIZE,
    PlanValues,
)

CRITIC_MINI_BATCH = "critic.ppo_mini_batch_size"
EXPERT_PARALLEL = f"{ROLLOUT}.expert_parallel_size"
MOE_TENSOR_PARALLEL = f"{ROLLOUT}.moe_tensor_parallel_size"
ROUTER_REPLAY = f"{ACTOR}.megatron.router_replay.mode"
SYNC_STEP = "trainer.v1.separate_async.parameter_sync_step"
WEIGHTS_BACKEND = f"{ROLLOUT}.checkpoint_engine.backend"

#: vLLM's largest rank of LoRA adapters.
MAX_LORA_RANK = 512


def refused(check: str, key: str, message: str, fix: str) -> Violation:
    """Return the violation of a check; it counts if the plan's release makes the check."""
    return Violation(message, fix, key, refusal=check)


@rule("micro-batch", "error", MICRO_BATCH, "CODE")
def micro_batches(values: PlanValues) -> Violations:
    """Without use_dynamic_bsz, each model has one micro batch size, that per device."""
    missing = []
    for check, key in _micro_batch_keys(values):
        total = key.removesuffix("_per_gpu")
        has_own, has_total = values.is_set(key), values.is_set(total)
        if has_own and has_total:
            message = f"it is set, and so is {total}: verl {values.plan.verl} stops."
            yield refused(f"{check}-micro-both", key, message, f"Leave {total} out.")
        is_unread = values.refusal(f"worker-{check}-micro") and not key.startswith(REF)
        if not has_own and not has_total:
            missing.append((f"{check}-micro-none", key))
        elif has_total and is_unread:
            missing.append((f"worker-{check}-micro", key))
    if missing:
        check, key = missing[0]
        if values.is_megatron and key == MICRO_BATCH:
            check = "megatron-micro-none"
        message = f"it is not set, and batches are cut by rows: verl {values.plan.verl} stops."
        keys = " and ".join(f"{key}=1" for _, key in missing)
        yield refused(check, key, message, f"Set {DYNAMIC_BATCH}=True, or {keys} or more.")


def _micro_batch_keys(values: PlanValues) -> Iterator[tuple[str, str]]:
    """Yield the check and the key of each model whose batches are cut by rows."""
    if not values.is_dynamic:
        yield "actor", MICRO_BATCH
        yield "log-prob", LOG_PROB_MICRO_BATCH
        if values.uses_reference:
            yield "log-prob", f"{REF}.log_prob_micro_batch_size_per_gpu"
    if values.uses_critic and not values.flag("critic.use_dynamic_bsz"):
        yield "critic", "critic.ppo_micro_batch_size_per_gpu"


@rule("global-micro-batch", "error", f"{ACTOR}.ppo_micro_batch_size", "CODE")
def global_micro_batch(values: PlanValues) -> Violations:
    """ppo_micro_batch_size, of all devices, divides the mini batch and has a row for each device."""
    key = f"{ACTOR}.ppo_micro_batch_size"
    micro, mini, devices = values.count(key), values.mini_batch, values.devices
    if values.is_dynamic or not micro or not mini or not devices:
        return
    fix = f"Set {MICRO_BATCH} in place of {key}."
    if mini % micro:
        yield refused(
            "actor-global-divides", key, f"{micro} does not divide {MINI_BATCH}={mini}.", fix
        )
    if micro * (values.count(f"{ACTOR}.{ULYSSES_SIZE}") or 1) < devices:
        message = f"{micro} rows are fewer than the {devices} devices."
        yield refused("actor-global-small", key, message, fix)


@rule("critic-batch", "error", CRITIC_MINI_BATCH, "CODE")
def critic_batches(values: PlanValues) -> Violations:
    """The critic's mini batch is at most a batch; before 0.8 its Ulysses size needs packing."""
    batch, mini = values.batch, values.count(CRITIC_MINI_BATCH)
    if not values.uses_critic:
        return
    is_actors = mini == values.mini_batch and not values.is_dynamic  # L-18 has said so
    is_dynamic = values.flag("critic.use_dynamic_bsz") is True
    if batch and mini and mini > batch and not is_dynamic and not is_actors:
        fix = f"Set {CRITIC_MINI_BATCH}={batch}."
        yield refused(
            "critic-mini", CRITIC_MINI_BATCH, f"{mini} is more than {BATCH}={batch}.", fix
        )
    size = values.count(f"critic.fsdp.{ULYSSES_SIZE}") or 1
    key = "critic.model.use_remove_padding"
    if not values.is_megatron and size > 1 and values.flag(key) is False:
        message = f"False makes verl stop, because critic.fsdp.{ULYSSES_SIZE} is {size}."
        yield refused("critic-padding", key, message, f"Set {key}=True.")


@rule("async-batch", "error", BATCH, "CODE")
def async_batches(values: PlanValues) -> Violations:
    """separate_async: a batch is parameter_sync_step mini batches, and the weights have a way."""
    batch, mini, steps = values.batch, values.mini_batch, values.count(SYNC_STEP)
    if not values.is_separate:
        return
    if batch and mini and steps and batch != steps * mini:
        message = f"{batch} is not {SYNC_STEP} {steps} x mini batch {mini}."
        yield refused("async-batch", BATCH, message, f"Set {BATCH}={steps * mini}.")
    if values.text(WEIGHTS_BACKEND) == "naive":
        message = "naive cannot send the weights to the devices of the rollout."
        yield refused("async-backend", WEIGHTS_BACKEND, message, f"Set {WEIGHTS_BACKEND}=nccl.")


@rule("router-replay", "error", ROUTER_REPLAY, "CODE")
def router_replay(values: PlanValues) -> Violations:
    """Megatron: routes are recorded where log-probs are computed; contexts have a maximum length."""
    bypass = "algorithm.rollout_correction.bypass_mode"
    if not values.is_megatron:
        return
    if values.text(ROUTER_REPLAY) == "R2" and values.flag(bypass) is True:
        message = f"True makes verl {values.plan.verl} stop: {ROUTER_REPLAY} is R2."
        yield refused("router-replay-bypass", bypass, message, f"Set {bypass}=False.")
    key, switch = (
        f"{ACTOR}.megatron.{name}"
        for name in ("max_seqlen_per_dp_cp_rank", "dynamic_context_parallel")
    )
    if values.flag(switch) and not values.count(key):
        message = f"it is not a positive number, and {switch} is True."
        fix = f"Set {key}={values.sequence_tokens or 8192}."
        yield refused("dynamic-context", key, message, fix)


@rule("expert-parallel", "error", EXPERT_PARALLEL, "CODE")
def expert_sizes(values: PlanValues) -> Violations:
    """The rollout's expert parallel size is TP x DP; only trtllm cuts the experts' tensors."""
    experts, inner = values.count(EXPERT_PARALLEL) or 1, values.count(MOE_TENSOR_PARALLEL) or 1
    tensor = values.tensor_parallel or 1
    size = tensor * (values.count(f"{ROLLOUT}.data_parallel_size") or 1)
    without = f"Leave {MOE_TENSOR_PARALLEL} out."
    if values.engine != "trtllm":
        if experts > 1 and experts != size:
            message, fix = (
                f"{experts} is not TP x DP = {size}.",
                f"Set {EXPERT_PARALLEL}={size}, or 1.",
            )
            yield refused("expert-parallel", EXPERT_PARALLEL, message, fix)
        if inner > 1:
            message = f"{inner} is possible for trtllm only."
            yield refused("moe-tensor-parallel", MOE_TENSOR_PARALLEL, message, without)
    elif experts > 1 and inner > 1 and experts * inner != tensor:
        message = f"{inner} x expert parallel {experts} is not TP = {tensor}."
        yield refused("moe-product", MOE_TENSOR_PARALLEL, message, without)


@rule("lora-rank", "error", f"{MODEL}.lora_rank", "CODE")
def lora_rank(values: PlanValues) -> Violations:
    """vLLM: the rank of LoRA adapters is at most 512, unless they are merged."""
    is_merged = values.flag(f"{MODEL}.lora.merge") is True
    for key in (f"{MODEL}.lora.rank", f"{MODEL}.lora_rank"):
        rank = values.count(key)
        if rank:  # the first one counts
            if values.engine == "vllm" and not is_merged and rank > MAX_LORA_RANK:
                message = f"{rank} is more than {MAX_LORA_RANK}, vLLM's largest rank."
                yield refused("lora-rank", key, message, f"Set {key}={MAX_LORA_RANK} or less.")
            return
