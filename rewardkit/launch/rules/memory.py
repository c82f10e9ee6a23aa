"""Rules of memory: do the weights fit, and what makes room."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import GIB, Facts
from rewardkit.launch.rules.rollout import images
from rewardkit.launch.rules.rule import ASCEND, GUIDE, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    MODEL,
    ROLLOUT,
    count,
    data_parallel,
    devices,
    flag,
    is_megatron,
    model_parallel,
    number,
    only_validates,
    response_length,
    tokens,
)

TENSOR = f"{ROLLOUT}.tensor_model_parallel_size"
SHARE = f"{ROLLOUT}.gpu_memory_utilization"
FUSED = f"{MODEL}.use_fused_kernels"
PADDING = f"{MODEL}.use_remove_padding"
CHECKPOINTING = f"{MODEL}.enable_gradient_checkpointing"
OFFLOAD = f"{ACTOR}.optim.override_optimizer_config.optimizer_cpu_offload"

#: Bytes of a parameter: in the rollout; weights and gradients of FSDP (float32) and of Megatron
#: (bfloat16 and float32); Adam's two moments, and with Megatron the float32 weights.
BF16, FSDP, FSDP_ADAM, MEGATRON, MEGATRON_ADAM = 2, 8, 8, 6, 12

#: Over so many devices a layer of the rollout waits for the network.
WIDE = 8

#: Tokens from which the levers of memory matter.
LONG, VERY_LONG = 4096, 16384


def _room(plan: Plan, facts: Facts) -> float | None:
    """Bytes that the rollout has on a device."""
    share = number(plan, SHARE)
    return facts.device_bytes * share if facts.device_bytes and share and share > 0 else None


def _copies(plan: Plan) -> int:
    """Devices beside TP over which a mixture's experts are spread."""
    spread = (count(plan, f"{ROLLOUT}.expert_parallel_size") or 1) > 1
    return (count(plan, f"{ROLLOUT}.data_parallel_size") or 1) if spread else 1


def weights_fit(plan: Plan, facts: Facts) -> Case | None:
    """The rollout's weights fit its share; no wider than needed."""
    size, room = count(plan, TENSOR), _room(plan, facts)
    each = count(plan, "trainer.n_gpus_per_node")
    if not size:
        return None
    if room and facts.parameters and room * size * _copies(plan) <= facts.parameters * BF16:
        weights = facts.parameters * BF16
        text = f"{weights / GIB:,.0f} GiB of weights on {size} x {room / GIB:,.0f} GiB."
        smallest = _smallest(weights / room / _copies(plan))
        return Case(text, f"Set {TENSOR}={smallest}, or raise {SHARE}.", severity="error")
    if size > WIDE or (each and size > each):
        text = f"{size}: over {min(WIDE, each or WIDE)} the devices wait for each other."
        return Case(text, f"Set {TENSOR}={min(WIDE, each or WIDE)}, if the weights fit.")
    return None


def _smallest(needed: float) -> int:
    """The smallest power of two over a number."""
    size = 1
    while size <= needed:
        size *= 2
    return size


def narrower(plan: Plan, facts: Facts) -> Case | None:
    """A smaller TP makes more replicas, where half of them would hold the weights twice over."""
    size, room = count(plan, TENSOR), _room(plan, facts)
    if not size or size == 1 or not room or not facts.parameters:
        return None
    weights = facts.parameters * BF16
    if room * (size // 2) <= 2 * weights:
        return None
    text = f"{size}: {weights / GIB:,.0f} GiB of weights leave room on {size // 2}."
    return Case(text, f"Set {TENSOR}={size // 2}: twice the replicas.")


def training_fits(plan: Plan, facts: Facts) -> Case | None:
    """Weights, gradients and Adam's moments fit the devices that share them."""
    shards = _training_bytes(plan, facts)
    if shards is None or not facts.device_bytes or only_validates(plan):
        return None
    if shards <= facts.device_bytes:
        return None
    text = f"weights, gradients and Adam take about {shards / GIB:,.0f} GiB of a device's "
    text += f"{facts.device_bytes / GIB:,.0f} GiB while an update lasts."
    if is_megatron(plan):
        return Case(text, f"Raise TP or PP, or set {OFFLOAD}=True.", OFFLOAD)
    return Case(text, "Set trainer.nnodes higher, or train adapters.", "trainer.nnodes")


def _training_bytes(plan: Plan, facts: Facts) -> float | None:
    """On one device; None for adapters, and for mixtures under Megatron, whose experts are spread."""
    all_of_them, copy, copies = devices(plan), model_parallel(plan), data_parallel(plan)
    adapters = count(plan, f"{MODEL}.lora_rank", f"{MODEL}.lora.rank")
    if not facts.parameters or not all_of_them or not copy or not copies or adapters:
        return None
    if not is_megatron(plan):
        size = count(plan, f"{ACTOR}.fsdp_config.fsdp_size")
        return facts.parameters * (FSDP + FSDP_ADAM) / min(size or all_of_them, all_of_them)
    if facts.experts:
        return None
    adam = 0 if flag(plan, OFFLOAD) else MEGATRON_ADAM / copies
    return facts.parameters * (MEGATRON + adam) / copy


def fused_kernels(plan: Plan, facts: Facts) -> Case | None:
    """Long sequences x the vocabulary are many logits."""
    longest = tokens(plan) or 0
    left_out = plan.recipe.devices != "gpu" or images(plan, facts)
    if left_out or flag(plan, FUSED) is not False or longest < VERY_LONG:
        return None
    text = f"False: the logits of {longest} tokens are kept whole."
    return Case(text, f"Set {FUSED}=True.")


def levers(plan: Plan, _: Facts) -> Case | None:
    """Packing and checkpointing, of FSDP."""
    length, longest = response_length(plan) or 0, tokens(plan) or 0
    if is_megatron(plan):
        return None
    if flag(plan, PADDING) is False and longest >= LONG:
        return Case(f"False: sequences are padded to {longest} tokens.", f"Set {PADDING}=True.")
    if flag(plan, CHECKPOINTING) is False and length >= LONG:
        text = f"False: the activations of {length} tokens are kept in every layer."
        return Case(text, f"Set {CHECKPOINTING}=True.", CHECKPOINTING)
    return None


RULES = (
    Rule(
        "L-14",
        "warning",
        TENSOR,
        "memory x gpu_memory_utilization x TP > parameters x 2 bytes; the smallest TP that does",
        GUIDE,
        weights_fit,
    ),
    Rule("L-34", "info", FUSED, "use_fused_kernels for long sequences", GUIDE, fused_kernels),
    Rule(
        "L-38",
        "info",
        OFFLOAD,
        "bytes of weights, gradients and Adam against the devices",
        GUIDE,
        training_fits,
    ),
    Rule(
        "L-59",
        "info",
        PADDING,
        "use_remove_padding and enable_gradient_checkpointing for long sequences",
        ASCEND,
        levers,
    ),
    Rule("L-61", "info", TENSOR, "a smaller TP where the weights leave room", ASCEND, narrower),
)
