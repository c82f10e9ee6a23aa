"""Rules of the parallel sizes: which devices hold a model together, and which share a sequence."""

from __future__ import annotations

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import (
    ASCEND,
    BLOG,
    CODE,
    GUIDE,
    MODELARTS,
    Violation,
    rule,
    set_to,
)
from rewardkit.launch.rules.values import (
    REMOVE_PADDING,
    ROLLOUT,
    TENSOR_PARALLEL,
    ULYSSES_SIZE,
    PlanValues,
)

ACTOR_TENSOR = f"{ACTOR}.megatron.tensor_model_parallel_size"
EXPERT_PARALLEL = f"{ACTOR}.megatron.expert_model_parallel_size"
ULYSSES = f"{ACTOR}.{ULYSSES_SIZE}"

#: From this many tokens of a response on a sequence is worth cutting, into parts of this length.
LONG_TOKENS, PART_TOKENS = 8192, 2048


@rule("L-37", "error", TENSOR_PARALLEL, GUIDE, BLOG, CODE)
def parallel_sizes(values: PlanValues) -> Violation | None:
    """Parallel sizes divide the devices and the attention heads; TP stays within a node."""
    return _rollout(values) or (_megatron(values) if values.is_megatron else None)


def _rollout(values: PlanValues) -> Violation | None:
    """Check that the rollout's replicas fill the devices."""
    devices, size, heads = values.devices, values.count(TENSOR_PARALLEL), values.facts.heads
    if not devices or not size:
        return None
    per_replica = size * (values.count(f"{ROLLOUT}.data_parallel_size") or 1)
    if devices % per_replica:
        message = f"{per_replica} does not divide {devices} devices."
        best = _largest_divisor(size, devices)
        return set_to(TENSOR_PARALLEL, best, message, refusal="rollout-world")
    if heads and heads % size:
        best = _largest_divisor(size, heads, devices)
        return set_to(TENSOR_PARALLEL, best, _heads_message(size, heads))
    return None


def _megatron(values: PlanValues) -> Violation | None:
    """Check that TP x PP x CP and the experts' sizes fill the devices."""
    devices, per_copy, heads = values.devices, values.model_parallel, values.facts.heads
    size = values.count(ACTOR_TENSOR)
    pipeline = values.count(f"{ACTOR}.megatron.pipeline_model_parallel_size")
    if not devices or not per_copy or not size or not pipeline:
        return None
    if devices % per_copy:
        message = f"TP x PP x CP = {per_copy} does not divide {devices} devices."
        fix = f"Set TP, PP and CP so that their product divides {devices}."
        return Violation(message, fix, ACTOR_TENSOR, refusal="megatron-world")
    experts = values.count(EXPERT_PARALLEL) or 1
    inner = values.count(f"{ACTOR}.megatron.expert_tensor_parallel_size") or size
    if experts > 1 and devices % (experts * inner * pipeline):
        product = experts * inner * pipeline
        message = f"EP x ETP x PP = {product} does not divide {devices} devices."
        return set_to(EXPERT_PARALLEL, _largest_divisor(experts, devices // pipeline), message)
    if heads and heads % size:
        best = _largest_divisor(size, heads)
        return set_to(ACTOR_TENSOR, best, _heads_message(size, heads))
    return _across_nodes(values, size)


def _across_nodes(values: PlanValues, size: int) -> Violation | None:
    per_node = values.count("trainer.n_gpus_per_node")
    if not per_node or size <= per_node:
        return None
    message = f"{size} is more than the {per_node} devices of a node: every layer waits for the "
    message += "network."
    extra = ", and raise pipeline_model_parallel_size"
    return set_to(ACTOR_TENSOR, per_node, message, extra=extra, severity="warning")


def _heads_message(size: int, heads: int) -> str:
    return f"{size} does not divide the model's {heads} attention heads."


def _largest_divisor(limit: int, *totals: int) -> int:
    """Return the largest power of two, up to a limit, that divides all totals."""
    best = 1
    while 2 * best <= limit and all(total % (2 * best) == 0 for total in totals):
        best *= 2
    return best


@rule("L-57", "info", ULYSSES, MODELARTS, CODE)
def sequence_parts(values: PlanValues) -> Violation | None:
    """The Ulysses size is about response / 2048 above 8K; it divides devices and heads."""
    if values.is_megatron:
        return None
    size, devices, length = values.sequence_parallel(), values.devices, values.response_tokens or 0
    heads, kv_heads = values.facts.heads, values.facts.kv_heads
    if not size or not devices:
        return None
    best = _largest_divisor(max(size, length // PART_TOKENS), devices, heads or devices)
    message = ""
    if devices % size:
        message = f"{size} does not divide {devices} devices."
    elif heads and heads % size:
        message = _heads_message(size, heads)
    elif kv_heads and kv_heads % size and size % kv_heads:
        message = f"neither of {size} and the model's {kv_heads} key-value heads divides the other."
    if message:
        return Violation(
            message, _ulysses_fix(values, best), values.ulysses_key(), severity="error"
        )
    if size > 1 or length <= LONG_TOKENS or best == 1:
        return None
    message = f"with 1, each device holds responses of {length} tokens whole."
    extra = f" It needs {REMOVE_PADDING}=True." if values.flag(REMOVE_PADDING) is False else ""
    return Violation(message, f"{_ulysses_fix(values, best)}{extra}", values.ulysses_key())


def _ulysses_fix(values: PlanValues, size: int) -> str:
    """Return how to set the Ulysses size, by the key that the release does not deprecate."""
    if not values.has_own_ulysses_size:
        return f"Set {ULYSSES}={size}."
    models = (ACTOR, REF) if values.uses_reference else (ACTOR,)
    sets = " and ".join(f"{model}.fsdp_config.{ULYSSES_SIZE}={size}" for model in models)
    is_deprecated = values.ulysses_key() == ULYSSES
    return f"Set {sets}{f', and leave {ULYSSES} out' if is_deprecated else ''}."


@rule("L-58", "error", REMOVE_PADDING, ASCEND, CODE)
def parts_need_packing(values: PlanValues) -> Violation | None:
    """A Ulysses size above 1 needs use_remove_padding."""
    if values.is_megatron or values.flag(REMOVE_PADDING) is not False:
        return None
    for model in (ACTOR, REF) if values.uses_reference else (ACTOR,):
        size = values.sequence_parallel(model)
        if size and size > 1:
            message = f"False makes verl stop, because {values.ulysses_key(model)} is {size}."
            return set_to(REMOVE_PADDING, True, message, refusal="actor-padding")
    return None
