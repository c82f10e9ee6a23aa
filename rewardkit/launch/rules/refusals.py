"""Rules on what verl itself refuses: its validate_config, its dataclasses and its trainers.

Each is a check of `refusals.yaml`, and is made for the releases that the table names. The modules of
the batches, the parallel sizes and the rollout have the other checks of that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewardkit.launch import gdpo
from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.batches import LOG_PROB_MICRO_BATCH, MINI_BATCH
from rewardkit.launch.rules.rule import CODE, Expectation, Violation, expected, rule
from rewardkit.launch.rules.values import (
    BATCH,
    DYNAMIC_BATCH,
    MICRO_BATCH,
    MODEL,
    ROLLOUT,
    TENSOR_PARALLEL,
    ULYSSES_SIZE,
    PlanValues,
)
from rewardkit.launch.verl.refusals import refusal
from rewardkit.registry import is_path

CRITIC_MINI_BATCH = "critic.ppo_mini_batch_size"
DISAGGREGATION = f"{ROLLOUT}.disaggregation"
EXPERT_PARALLEL = f"{ROLLOUT}.expert_parallel_size"
MOE_TENSOR_PARALLEL = f"{ROLLOUT}.moe_tensor_parallel_size"
ROUTER_REPLAY = f"{ACTOR}.megatron.router_replay.mode"
SAMPLER, SYNC_STEP = "trainer.v1.sampler", "trainer.v1.separate_async.parameter_sync_step"
WEIGHTS_BACKEND = f"{ROLLOUT}.checkpoint_engine.backend"

#: vLLM's largest rank of LoRA adapters.
MAX_LORA_RANK = 512


def _refused(values: PlanValues, check: str, key: str, message: str, fix: str) -> Violation | None:
    """Return the violation of a check, if the plan's release makes it."""
    if not refusal(check, values.plan.verl):
        return None
    return Violation(message, fix, key, refusal=check)


@rule("micro-batch", "error", MICRO_BATCH, CODE)
def micro_batches(values: PlanValues) -> Violation | None:
    """Without use_dynamic_bsz, each model has one micro batch size, that per device."""
    missing = []
    for check, key in _micro_batch_keys(values):
        total = key.removesuffix("_per_gpu")
        has_own, has_total = values.is_set(key), values.is_set(total)
        if has_own and has_total:
            message = f"it is set, and so is {total}: verl {values.plan.verl} stops."
            return _refused(values, f"{check}-micro-both", key, message, f"Leave {total} out.")
        is_missing = not has_own and not has_total
        is_unread = has_total and refusal(f"worker-{check}-micro", values.plan.verl)
        if is_missing or (is_unread and not key.startswith(REF)):
            missing.append((f"{check}-micro-none" if is_missing else f"worker-{check}-micro", key))
    if not missing:
        return None
    check, key = missing[0]
    if values.is_megatron and key == MICRO_BATCH:
        check = "megatron-micro-none"
    message = f"it is not set, and batches are cut by rows: verl {values.plan.verl} stops."
    keys = " and ".join(f"{key}=1" for _, key in missing)
    fix = f"Set {DYNAMIC_BATCH}=True, or {keys} or more."
    return _refused(values, check, key, message, fix)


def _micro_batch_keys(values: PlanValues) -> Iterator[tuple[str, str]]:
    """Yield the check and the key of each model whose batches are cut by rows."""
    is_old_megatron = values.is_megatron and not values.is_since(0, 6, 0)
    if not values.is_dynamic or is_old_megatron:
        yield "actor", MICRO_BATCH
    if not values.is_dynamic:
        yield "log-prob", LOG_PROB_MICRO_BATCH
        if values.uses_reference:
            yield "log-prob", f"{REF}.log_prob_micro_batch_size_per_gpu"
    if values.uses_critic and not values.flag("critic.use_dynamic_bsz"):
        yield "critic", "critic.ppo_micro_batch_size_per_gpu"
    is_judged = values.flag("reward.reward_model.enable") and not values.is_since(0, 7, 1)
    by_rows = not values.flag("reward_model.use_dynamic_bsz", "reward_model.use_reward_loop")
    if is_judged and by_rows:
        yield "log-prob", "reward_model.micro_batch_size_per_gpu"


@rule("global-micro-batch", "error", f"{ACTOR}.ppo_micro_batch_size", CODE)
def global_micro_batch(values: PlanValues) -> Violation | None:
    """ppo_micro_batch_size, of all devices, divides the mini batch and has a row for each device."""
    key = f"{ACTOR}.ppo_micro_batch_size"
    micro, mini, devices = values.count(key), values.count(MINI_BATCH), values.devices
    if values.is_dynamic or not micro or not mini or not devices:
        return None
    fix = f"Set {MICRO_BATCH} in place of {key}."
    if mini % micro:
        message = f"{micro} does not divide {MINI_BATCH}={mini}."
        return _refused(values, "actor-global-divides", key, message, fix)
    if micro * (values.count(f"{ACTOR}.{ULYSSES_SIZE}") or 1) < devices:
        message = f"{micro} rows are fewer than the {devices} devices."
        return _refused(values, "actor-global-small", key, message, fix)
    return None


@rule("critic-batch", "error", CRITIC_MINI_BATCH, CODE)
def critic_batches(values: PlanValues) -> Violation | None:
    """The critic's mini batch is at most a batch; before 0.8 its Ulysses size needs packing."""
    batch, mini = values.count(BATCH), values.count(CRITIC_MINI_BATCH)
    if not values.uses_critic:
        return None
    is_actors = mini == values.count(MINI_BATCH) and not values.is_dynamic  # L-18 has said so
    is_dynamic = values.flag("critic.use_dynamic_bsz") is True
    if batch and mini and mini > batch and not is_dynamic and not is_actors:
        message, fix = f"{mini} is more than {BATCH}={batch}.", f"Set {CRITIC_MINI_BATCH}={batch}."
        return _refused(values, "critic-mini", CRITIC_MINI_BATCH, message, fix)
    size = values.count(f"critic.fsdp.{ULYSSES_SIZE}") or 1
    key = "critic.model.use_remove_padding"
    if values.is_megatron or size == 1 or values.flag(key) is not False:
        return None
    message = f"False makes verl stop, because critic.fsdp.{ULYSSES_SIZE} is {size}."
    return _refused(values, "critic-padding", key, message, f"Set {key}=True.")


@dataclass(frozen=True)
class AcceptedValues:
    """The values of a setting that verl accepts.

    Attributes:
        check: the check of `refusals.yaml`.
        key: the setting.
        since: each value, and the first release that accepts it.
        when: the condition on which verl reads the setting.
    """

    check: str
    key: str
    since: Mapping[str, tuple[int, ...]]
    when: Callable[[PlanValues], bool] = lambda _: True


def _values(always: Sequence[str], **later: str) -> dict[str, tuple[int, ...]]:
    """Return values by the first release with them, which a keyword names: `v0_9_0="token-sum"`."""
    since: dict[str, tuple[int, ...]] = dict.fromkeys(always, (0, 0, 0))
    for release, names in later.items():
        since |= dict.fromkeys(names.split(), tuple(map(int, release[1:].split("_"))))
    return since


def _is_fsdp(values: PlanValues) -> bool:
    return not values.is_megatron


def _trains_fsdp_critic(values: PlanValues) -> bool:
    return values.uses_critic and not values.is_megatron


def _is_disaggregated(values: PlanValues) -> bool:
    return values.flag(f"{DISAGGREGATION}.enabled") is True


def _is_v1(values: PlanValues) -> bool:
    return values.flag(gdpo.USE_V1) is not False


def _is_separate(values: PlanValues) -> bool:
    """Whether the rollout has devices of its own, in the trainer of 0.9."""
    return _is_v1(values) and values.text("trainer.v1.trainer_mode") == "separate_async"


def _has_no_own_code(values: PlanValues) -> bool:
    """Whether the run imports no code of a user, which may register estimators and losses."""
    keys = (f"{MODEL}.external_lib", "data.custom_cls.path")
    return not is_path(values.recipe.reward.scorer) and not any(map(values.is_set, keys))


_SCHEDULERS, _DTYPES = _values(["constant", "cosine"]), _values(["bfloat16", "float16"])
_MODES = _values(["disabled", "R2", "R3"])

ACCEPTED: tuple[AcceptedValues, ...] = (
    AcceptedValues("loss-agg-mode", f"{ACTOR}.loss_agg_mode", _values(
        "token-mean seq-mean-token-sum seq-mean-token-mean seq-mean-token-sum-norm".split(),
        v0_9_0="token-sum")),
    AcceptedValues("scheduler", f"{ACTOR}.optim.lr_scheduler_type", _SCHEDULERS, _is_fsdp),
    AcceptedValues("scheduler", "critic.optim.lr_scheduler_type", _SCHEDULERS, _trains_fsdp_critic),
    AcceptedValues("megatron-dtype", f"{ACTOR}.megatron.dtype", _DTYPES,
        lambda values: values.is_megatron),
    AcceptedValues("router-replay-mode", ROUTER_REPLAY, _MODES, lambda values: values.is_megatron),
    AcceptedValues("router-replay-mode", f"{ACTOR}.router_replay.mode", _MODES),
    AcceptedValues("disaggregation-engine", f"{ROLLOUT}.name", _values(["sglang"], v0_9_0="vllm"),
        _is_disaggregated),
    AcceptedValues("disaggregation-backend", f"{DISAGGREGATION}.transfer_backend",
        _values("nixl mooncake ascend mori fake".split()), _is_disaggregated),
    AcceptedValues("off-policy-strategy", f"{SAMPLER}.max_off_policy_strategy",
        _values(["drop", "wait"]), _is_v1),
    AcceptedValues("estimator", "algorithm.adv_estimator", _values(
        "grpo gae gdpo reinforce_plus_plus reinforce_plus_plus_baseline remax rloo opo grpo_passk "
        "gpg".split(),
        v0_6_1="rloo_vectorized grpo_vectorized",
        v0_7_1="optimal_token_baseline tir_optimal_token_baseline"), _has_no_own_code),
    AcceptedValues("loss-mode", f"{ACTOR}.policy_loss.loss_mode", _values(
        "vanilla gpg clip_cov kl_cov".split(), v0_6_1="gspo geo_mean rollout_correction",
        v0_7_0="sapo cispo bypass_mode", v0_7_1="dppo_tv dppo_kl", v0_9_0="dro"), _has_no_own_code),
)  # fmt: skip


@rule("accepted-value", "error", f"{ACTOR}.loss_agg_mode", CODE)
def accepted_values(values: PlanValues) -> Violation | None:
    """Settings of which verl knows a list of values have one of them."""
    for entry in ACCEPTED:
        value = values.text(entry.key)
        known = [name for name, since in entry.since.items() if values.is_since(*since)]
        if value is None or value in known or not entry.when(values):
            continue
        message = f"verl {values.plan.verl} does not know {value}; it knows {', '.join(known)}."
        fix = f"Set {entry.key}={known[0]}."
        if violation := _refused(values, entry.check, entry.key, message, fix):
            return violation
    return None


def _at_least(
    least: int, check: str, key: str, when: Callable[[PlanValues], bool], best: int = 1
) -> Expectation:
    """Expect a number that is not below verl's bound."""
    message, fix = f"{{value}} is less than {least}.", f"Set {key}={best}."
    return Expectation(
        key, lambda value: value >= least, message, when=when, fix=fix, read=PlanValues.integer,
        refusal=check,
    )  # fmt: skip


BOUNDS = expected("bounds", "error", CODE,
    "Numbers that verl bounds are within its bounds",
    _at_least(0, "trace-samples", f"{ROLLOUT}.trace.max_samples_per_step_per_worker", lambda _: True),
    _at_least(1, "disaggregation-replicas", f"{DISAGGREGATION}.prefill_replicas", _is_disaggregated),
    _at_least(1, "disaggregation-replicas", f"{DISAGGREGATION}.decode_replicas", _is_disaggregated),
    _at_least(1, "disaggregation-port", f"{DISAGGREGATION}.bootstrap_port", _is_disaggregated, 8998),
    _at_least(1, "off-policy", f"{SAMPLER}.max_off_policy_threshold", _is_v1, 8),
    _at_least(1, "async-nodes", f"{ROLLOUT}.nnodes", _is_separate),
    _at_least(1, "async-devices", f"{ROLLOUT}.n_gpus_per_node", _is_separate, 8),
)  # fmt: skip


@rule("async-batch", "error", BATCH, CODE)
def async_batches(values: PlanValues) -> Violation | None:
    """separate_async: a batch is parameter_sync_step mini batches, and the weights have a way."""
    batch, mini = values.count(BATCH), values.count(MINI_BATCH)
    steps, backend = values.count(SYNC_STEP), values.text(WEIGHTS_BACKEND)
    if not _is_separate(values):
        return None
    if batch and mini and steps and batch != steps * mini:
        message = f"{batch} is not {SYNC_STEP} {steps} x mini batch {mini}."
        return _refused(values, "async-batch", BATCH, message, f"Set {BATCH}={steps * mini}.")
    if backend == "naive":
        message = "naive cannot send the weights to the devices of the rollout."
        fix = f"Set {WEIGHTS_BACKEND}=nccl."
        return _refused(values, "async-backend", WEIGHTS_BACKEND, message, fix)
    return None


@rule("router-replay", "error", ROUTER_REPLAY, CODE)
def router_replay(values: PlanValues) -> Violation | None:
    """Megatron: routes are recorded where log-probs are computed; contexts have a maximum length."""
    bypass = "algorithm.rollout_correction.bypass_mode"
    if not values.is_megatron:
        return None
    if values.text(ROUTER_REPLAY) == "R2" and values.flag(bypass) is True:
        message = f"True makes verl {values.plan.verl} stop: {ROUTER_REPLAY} is R2."
        return _refused(values, "router-replay-bypass", bypass, message, f"Set {bypass}=False.")
    key = f"{ACTOR}.megatron.max_seqlen_per_dp_cp_rank"
    if values.flag(f"{ACTOR}.megatron.dynamic_context_parallel") and not values.count(key):
        message = (
            f"it is not a positive number, and {ACTOR}.megatron.dynamic_context_parallel is True."
        )
        fix = f"Set {key}={values.sequence_tokens or 8192}."
        return _refused(values, "dynamic-context", key, message, fix)
    return None


@rule("expert-parallel", "error", EXPERT_PARALLEL, CODE)
def expert_sizes(values: PlanValues) -> Violation | None:
    """The rollout's expert parallel size is TP x DP; only trtllm cuts the experts' tensors."""
    experts, inner = values.count(EXPERT_PARALLEL) or 1, values.count(MOE_TENSOR_PARALLEL) or 1
    tensor = values.count(TENSOR_PARALLEL) or 1
    size = tensor * (values.count(f"{ROLLOUT}.data_parallel_size") or 1)
    is_trtllm = values.engine == "trtllm" and values.is_since(0, 7, 1)
    if experts > 1 and experts != size and not is_trtllm:
        message = f"{experts} is not TP x DP = {size}."
        fix = f"Set {EXPERT_PARALLEL}={size}, or 1."
        return _refused(values, "expert-parallel", EXPERT_PARALLEL, message, fix)
    if inner > 1 and not is_trtllm:
        message, fix = f"{inner} is possible for trtllm only.", f"Leave {MOE_TENSOR_PARALLEL} out."
        return _refused(values, "moe-tensor-parallel", MOE_TENSOR_PARALLEL, message, fix)
    if is_trtllm and experts > 1 and inner > 1 and experts * inner != tensor:
        message = f"{inner} x expert parallel {experts} is not TP = {tensor}."
        fix = f"Leave {MOE_TENSOR_PARALLEL} out."
        return _refused(values, "moe-product", MOE_TENSOR_PARALLEL, message, fix)
    return None


@rule("lora-rank", "error", f"{MODEL}.lora_rank", CODE)
def lora_rank(values: PlanValues) -> Violation | None:
    """vLLM: the rank of LoRA adapters is at most 512, unless they are merged."""
    nested = values.count(f"{MODEL}.lora.rank") if values.is_since(0, 7, 1) else None
    rank = nested or values.count(f"{MODEL}.lora_rank") or 0
    is_merged = values.flag(f"{MODEL}.lora.merge") is True and values.is_since(0, 7, 1)
    if values.engine != "vllm" or is_merged or rank <= MAX_LORA_RANK:
        return None
    key = f"{MODEL}.lora.rank" if nested else f"{MODEL}.lora_rank"
    message = f"{rank} is more than {MAX_LORA_RANK}, vLLM's largest rank."
    return _refused(values, "lora-rank", key, message, f"Set {key}={MAX_LORA_RANK} or less.")
