"""Rules of Megatron: reference, offload, recomputation, experts, pipeline."""

from __future__ import annotations

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import GUIDE, Violation, rule, set_to
from rewardkit.launch.rules.values import PlanValues

MEGATRON = f"{ACTOR}.megatron"
TRANSFORMER = f"{MEGATRON}.override_transformer_config"
PIPELINE = f"{MEGATRON}.pipeline_model_parallel_size"
OPTIMIZER = f"{ACTOR}.optim.override_optimizer_config"
RECOMPUTE = f"{TRANSFORMER}.recompute_granularity"
LAST_STAGE = f"{TRANSFORMER}.num_layers_in_last_pipeline_stage"

#: The four settings that together keep Adam's moments on the host.
HYBRID_OPTIMIZER = {
    "optimizer_offload_fraction": 1,
    "overlap_cpu_optimizer_d2h_h2d": True,
    "use_precision_aware_optimizer": True,
    "optimizer_cpu_offload": True,
}

#: The settings that the guide has for a mixture of experts.
MIXTURE = {
    "moe_router_dtype": "fp32",
    "moe_shared_expert_overlap": False,
    "moe_permute_fusion": True,
    "moe_enable_deepep": True,
    "moe_token_dispatcher_type": "flex",
}

#: From this many tokens of a response on recomputation is worth its time.
LONG_TOKENS = 8192


@rule("L-36", "warning", REF, GUIDE)
def reference_like_actor(values: PlanValues) -> Violation | None:
    """The reference's parallel sizes and offload are the actor's: they share the devices."""
    if not values.uses_reference:
        return None
    names = ("tensor_model", "pipeline_model", "context", "expert_model")
    for name in names if values.is_megatron else ():
        key = f"megatron.{name}_parallel_size"
        actor, ref = values.count(f"{ACTOR}.{key}"), values.count(f"{REF}.{key}", f"{ACTOR}.{key}")
        if actor and ref and actor != ref:
            message = f"{ref}, but the actor has {actor} on the same devices."
            return set_to(f"{REF}.{key}", actor, message)
    key = f"{'megatron' if values.is_megatron else 'fsdp_config'}.param_offload"
    is_ref_offloaded = values.flag(f"{REF}.{key}", f"{ACTOR}.{key}")
    if values.flag(f"{ACTOR}.{key}") and is_ref_offloaded is False:
        message = "False keeps the reference on the device, although the actor is offloaded."
        return set_to(f"{REF}.{key}", True, message)
    return None


@rule("L-40", "warning", OPTIMIZER, GUIDE)
def hybrid_optimizer(values: PlanValues) -> Violation | None:
    """The four settings of the hybrid optimizer are set together."""
    present = [name for name in HYBRID_OPTIMIZER if values.plan.get(f"{OPTIMIZER}.{name}")]
    missing = [name for name in HYBRID_OPTIMIZER if name not in present]
    offloads = {"optimizer_offload_fraction", "optimizer_cpu_offload"} & set(present)
    if not values.is_megatron or not missing or not offloads:
        return None
    message = f"the plan sets {', '.join(present)} without {', '.join(missing)}."
    fix = " and ".join(f"{OPTIMIZER}.{name}={HYBRID_OPTIMIZER[name]}" for name in missing)
    return Violation(message, f"Set {fix}.", f"{OPTIMIZER}.{missing[0]}")


@rule("L-41", "info", MEGATRON, GUIDE)
def offload(values: PlanValues) -> Violation | None:
    """Parameters and optimizer are offloaded together, and gradients where verl has a key for it."""
    names = ["param_offload", "optimizer_offload"]
    if values.plan.release.lists(f"{MEGATRON}.grad_offload"):
        names.append("grad_offload")
    on = [name for name in names if values.flag(f"{MEGATRON}.{name}")]
    off = [name for name in names if values.flag(f"{MEGATRON}.{name}") is False]
    if not values.is_megatron or not on or not off:
        return None
    message = f"False takes memory from the rollout, although {on[0]} is True."
    return set_to(f"{MEGATRON}.{off[0]}", True, message)


@rule("L-42", "info", RECOMPUTE, GUIDE)
def recompute(values: PlanValues) -> Violation | None:
    """Long responses: recompute_granularity is full, uniform, 1 layer."""
    length = values.response_tokens or 0
    if not values.is_megatron or values.plan.get(RECOMPUTE) is not None or length < LONG_TOKENS:
        return None
    message = f"it is not set, and Megatron keeps the activations of {length} tokens "
    message += "(it does not read model.enable_gradient_checkpointing)."
    extra = " with recompute_method=uniform and recompute_num_layers=1"
    return set_to(RECOMPUTE, "full", message, extra=extra)


@rule("L-43", "info", f"{TRANSFORMER}.moe_router_dtype", GUIDE)
def experts(values: PlanValues) -> Violation | None:
    """A mixture of experts chooses them in fp32."""
    expert_parallel = values.count(f"{MEGATRON}.expert_model_parallel_size") or 1
    if not values.is_megatron or not (values.facts.experts or expert_parallel > 1):
        return None
    settings = {name: values.plan.get(f"{TRANSFORMER}.{name}", "not set") for name in MIXTURE}
    other = [name for name, value in settings.items() if value != MIXTURE[name]]
    value = settings["moe_router_dtype"]
    if "moe_router_dtype" not in other or not isinstance(value, str):
        return None
    message = f"{value}, so training chooses experts in bfloat16, and others than the rollout."
    fix = ", ".join(f"{name}={MIXTURE[name]}" for name in other)
    return Violation(message, f"Set {TRANSFORMER}.*: {fix}.")


@rule("L-45", "error", PIPELINE, GUIDE)
def pipeline_stages(values: PlanValues) -> Violation | None:
    """Layers divide over the pipeline, or the first and last stages are set."""
    size, layers = values.count(PIPELINE), values.facts.layers
    virtual = values.count(f"{MEGATRON}.virtual_pipeline_model_parallel_size") or 1
    has_layout = values.plan.get(f"{TRANSFORMER}.pipeline_model_parallel_layout") is not None
    if not values.is_megatron or not size or size == 1 or not layers or virtual > 1 or has_layout:
        return None
    keys = (f"{TRANSFORMER}.num_layers_in_first_pipeline_stage", LAST_STAGE)
    edges = [edge for key in keys if (edge := values.integer(key)) is not None]
    counted = (f"{TRANSFORMER}.account_for_{part}_in_pipeline_split" for part in _COUNTED_PARTS)
    left = layers + sum(values.flag(key) is True for key in counted) - sum(edges)
    middle = size - len(edges)
    if left >= 0 and (left % middle == 0 if middle > 0 else left == 0):
        return None
    message = f"{left} layers do not divide over {middle} stages (the model has {layers}, PP is "
    message += f"{size})."
    last = layers - -(-layers // size) * (size - 1)
    if last > 0:
        return set_to(LAST_STAGE, last, message, extra=", and leave the first stage out")
    return Violation(message, f"Set {PIPELINE} to a divisor of {layers}.")


#: Parts of a model that may count as a layer of the pipeline.
_COUNTED_PARTS = ("embedding", "loss")
