"""Rules of memory: whether the weights fit, and how wide a model is spread."""

from __future__ import annotations

import re
from pathlib import Path

from rewardkit.launch.presets import ACTOR
from rewardkit.launch.rules.facts import GIB
from rewardkit.launch.rules.rule import ASCEND, GUIDE, Violation, rule, set_to
from rewardkit.launch.rules.values import MEMORY_SHARE, ROLLOUT, TENSOR_PARALLEL, PlanValues

OFFLOAD = f"{ACTOR}.optim.override_optimizer_config.optimizer_cpu_offload"

#: Bytes per parameter in the rollout (bfloat16).
ROLLOUT_BYTES = 2

#: Bytes per parameter of weights and gradients, and of Adam's state: FSDP keeps float32; Megatron
#: keeps bfloat16 weights, float32 gradients, and float32 weights in Adam's state.
FSDP_BYTES, FSDP_ADAM_BYTES = 8, 8
MEGATRON_BYTES, MEGATRON_ADAM_BYTES = 6, 12

#: Weights with a larger share of the rollout's memory leave too little for its KV cache.
CROWDED_SHARE = 0.8

#: The billions of parameters in a model's name.
_NAMED_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[Bb](?![A-Za-z])")

#: Over more devices than this a layer of the rollout waits for the network.
MAX_TENSOR_PARALLEL = 8


def _rollout_bytes(values: PlanValues) -> float | None:
    """Return the bytes that the rollout has on a device."""
    share, memory = values.memory_share, values.facts.device_bytes
    return memory * share if memory and share and share > 0 else None


def _expert_copies(values: PlanValues) -> int:
    """Return by which factor expert parallelism, besides TP, spreads the experts of a mixture."""
    if (values.count(f"{ROLLOUT}.expert_parallel_size") or 1) == 1:
        return 1
    return values.count(f"{ROLLOUT}.data_parallel_size") or 1


@rule("L-14", "warning", TENSOR_PARALLEL, GUIDE)
def weights_fit(values: PlanValues) -> Violation | None:
    """Memory x gpu_memory_utilization x TP > parameters x 2 bytes, with the smallest such TP."""
    size, room, copies = (
        values.count(TENSOR_PARALLEL),
        _rollout_bytes(values),
        _expert_copies(values),
    )
    if not size:
        return None
    weights = (values.facts.parameters or 0) * ROLLOUT_BYTES
    if room and weights and room * size * copies <= weights:
        message = f"{weights / GIB:,.0f} GiB of weights do not fit {size} x {room / GIB:,.0f} GiB."
        smallest, extra = _next_power(weights / room / copies), f", or raise {MEMORY_SHARE}"
        return set_to(TENSOR_PARALLEL, smallest, message, extra=extra, severity="error")
    per_node = values.count("trainer.n_gpus_per_node") or MAX_TENSOR_PARALLEL
    widest = min(MAX_TENSOR_PARALLEL, per_node)
    if size <= widest or (room and _named_weights(values) > CROWDED_SHARE * room * widest):
        return None
    message = f"{size} is more than {widest}: the devices wait for each other."
    return set_to(TENSOR_PARALLEL, widest, message, extra=", if the weights fit")


def _named_weights(values: PlanValues) -> float:
    """Return the bytes of the rollout's weights, if need be by a name like Qwen3-235B-A22B; else 0."""
    sizes = map(float, _NAMED_SIZE.findall(Path(values.recipe.model).name))
    return (values.facts.parameters or max(sizes, default=0) * 1e9) * ROLLOUT_BYTES


def _next_power(number: float) -> int:
    """Return the smallest power of two above a number."""
    power = 1
    while power <= number:
        power *= 2
    return power


@rule("L-61", "info", TENSOR_PARALLEL, ASCEND)
def smaller_tensor_parallel(values: PlanValues) -> Violation | None:
    """TP is halved where half the devices can hold the weights twice, for more replicas."""
    size, room, parameters = (
        values.count(TENSOR_PARALLEL),
        _rollout_bytes(values),
        values.facts.parameters,
    )
    if not size or size == 1 or not room or not parameters:
        return None
    weights = parameters * ROLLOUT_BYTES
    if room * (size // 2) <= 2 * weights:
        return None
    message = f"{size} is more than needed: {weights / GIB:,.0f} GiB of weights leave room on "
    message += f"{size // 2}."
    return set_to(TENSOR_PARALLEL, size // 2, message, extra=" for twice the replicas")


@rule("L-38", "info", OFFLOAD, GUIDE)
def training_fits(values: PlanValues) -> Violation | None:
    """Weights, gradients and Adam's state fit on the devices that share them."""
    needed, memory = _training_bytes(values), values.facts.device_bytes
    if needed is None or not memory or values.only_validates or needed <= memory:
        return None
    message = f"weights, gradients and Adam take about {needed / GIB:,.0f} GiB of a device's "
    message += f"{memory / GIB:,.0f} GiB during an update."
    if values.is_megatron:
        return Violation(message, f"Raise TP or PP, or set {OFFLOAD}=True.", OFFLOAD)
    fix = "Set trainer.nnodes higher, or train adapters."
    return Violation(message, fix, "trainer.nnodes")


def _training_bytes(values: PlanValues) -> float | None:
    """Return the bytes on one device.

    None for adapters, and for mixtures under Megatron, which spreads their experts.
    """
    parameters, devices = values.facts.parameters, values.devices
    per_copy, copies = values.model_parallel, values.data_parallel
    if not parameters or not devices or not per_copy or not copies or values.adapter_rank:
        return None
    if not values.is_megatron:
        shards = values.count(f"{ACTOR}.fsdp_config.fsdp_size") or devices
        return parameters * (FSDP_BYTES + FSDP_ADAM_BYTES) / min(shards, devices)
    if values.facts.experts:
        return None
    adam = 0 if values.flag(OFFLOAD) else MEGATRON_ADAM_BYTES / copies
    return parameters * (MEGATRON_BYTES + adam) / per_copy
