"""Rules of Megatron: bridge, reference, pipeline, offload, recompute, experts."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import CODE, GUIDE, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    REF,
    count,
    flag,
    is_megatron,
    response_length,
    since,
    uses_reference,
    whole,
)

ENGINE = f"{ACTOR}.megatron"
MODEL_CONFIG = f"{ENGINE}.override_transformer_config"
PIPELINE = f"{ENGINE}.pipeline_model_parallel_size"
OPTIMIZER = f"{ACTOR}.optim.override_optimizer_config"
BRIDGE = f"{ENGINE}.use_mbridge"
RECOMPUTE = f"{MODEL_CONFIG}.recompute_granularity"

#: What makes Adam's moments live on the host, all four together.
HYBRID = {
    "optimizer_offload_fraction": 1,
    "overlap_cpu_optimizer_d2h_h2d": True,
    "use_precision_aware_optimizer": True,
    "optimizer_cpu_offload": True,
}

#: What the guide sets for a mixture of experts.
MIXTURE = {
    "moe_router_dtype": "fp32",
    "moe_shared_expert_overlap": False,
    "moe_permute_fusion": True,
    "moe_enable_deepep": True,
    "moe_token_dispatcher_type": "flex",
}

#: Tokens of a response from which recomputing is worth its time.
LONG = 8192


def bridge(plan: Plan, _: Facts) -> Case | None:
    """Weights go through mbridge."""
    if not is_megatron(plan) or flag(plan, BRIDGE) is not False:
        return None
    fix = f"Set {BRIDGE}=True."
    if since(plan, 0, 8, 0):
        return Case(f"False: verl {plan.verl} ends.", fix)
    if plan.settings.get(BRIDGE) is False:
        return Case("False: weights are converted by verl's older code.", fix, severity="info")
    return None


def reference_like_actor(plan: Plan, _: Facts) -> Case | None:
    """The reference shares the actor's devices, and is cut and offloaded as it is."""
    if not uses_reference(plan):
        return None
    if is_megatron(plan):
        for name in ("tensor_model", "pipeline_model", "context", "expert_model"):
            key = f"megatron.{name}_parallel_size"
            actor, ref = (
                count(plan, f"{ACTOR}.{key}"),
                count(plan, f"{REF}.{key}", f"{ACTOR}.{key}"),
            )
            if actor and ref and actor != ref:
                text = f"{ref}, and the actor has {actor} on the same devices."
                return Case(text, f"Set {REF}.{key}={actor}.", f"{REF}.{key}")
    key = f"{'megatron' if is_megatron(plan) else 'fsdp_config'}.param_offload"
    if flag(plan, f"{ACTOR}.{key}") and flag(plan, f"{REF}.{key}", f"{ACTOR}.{key}") is False:
        text = "False, and the actor's is True: the reference stays on the device."
        return Case(text, f"Set {REF}.{key}=True.", f"{REF}.{key}")
    return None


def hybrid_optimizer(plan: Plan, _: Facts) -> Case | None:
    """The optimizer on the host: four settings, or none."""
    there = [name for name in HYBRID if plan.get(f"{OPTIMIZER}.{name}")]
    missing = [name for name in HYBRID if name not in there]
    offloads = {"optimizer_offload_fraction", "optimizer_cpu_offload"} & set(there)
    if not is_megatron(plan) or not missing or not offloads:
        return None
    text = f"{', '.join(there)} without {', '.join(missing)}."
    sets = " and ".join(f"{OPTIMIZER}.{name}={HYBRID[name]}" for name in missing)
    return Case(text, f"Set {sets}.", f"{OPTIMIZER}.{missing[0]}")


def offload(plan: Plan, _: Facts) -> Case | None:
    """Parameters, optimizer, and before 0.9.1 gradients, go together."""
    names = ["param_offload", "optimizer_offload"]
    names += [] if since(plan, 0, 9, 1) else ["grad_offload"]
    on = [name for name in names if flag(plan, f"{ENGINE}.{name}")]
    off = [name for name in names if flag(plan, f"{ENGINE}.{name}") is False]
    if not is_megatron(plan) or not on or not off:
        return None
    text = f"False, and {on[0]} is True: what stays takes the rollout's memory."
    return Case(text, f"Set {ENGINE}.{off[0]}=True.", f"{ENGINE}.{off[0]}")


def recompute(plan: Plan, _: Facts) -> Case | None:
    """Long answers: activations are recomputed. Megatron reads no enable_gradient_checkpointing."""
    length = response_length(plan) or 0
    if not is_megatron(plan) or plan.get(RECOMPUTE) is not None or length < LONG:
        return None
    text = f"not set: Megatron keeps the activations of {length} tokens "
    text += "(it does not read model.enable_gradient_checkpointing)."
    fix = f"Set {RECOMPUTE}=full with recompute_method=uniform and recompute_num_layers=1."
    return Case(text, fix)


def experts(plan: Plan, facts: Facts) -> Case | None:
    """A mixture routes in float32."""
    mixture = facts.experts or (count(plan, f"{ENGINE}.expert_model_parallel_size") or 1) > 1
    if not is_megatron(plan) or not mixture:
        return None
    other = [name for name, value in MIXTURE.items() if plan.get(f"{MODEL_CONFIG}.{name}") != value]
    value = plan.get(f"{MODEL_CONFIG}.moe_router_dtype", "not set")
    if "moe_router_dtype" not in other or not isinstance(value, str):
        return None
    sets = ", ".join(f"{name}={MIXTURE[name]}" for name in other)
    text = f"{value}: experts are chosen with bfloat16's precision, otherwise than in the rollout."
    return Case(text, f"Set {MODEL_CONFIG}.*: {sets}.")


def fusion(plan: Plan, _: Facts) -> Case | None:
    """Gradients are accumulated where they are computed."""
    key = f"{MODEL_CONFIG}.gradient_accumulation_fusion"
    if is_megatron(plan) and plan.settings.get(key) is False:
        return Case("False is slower.", f"Set {key}=True.")
    return None


def stages(plan: Plan, facts: Facts) -> Case | None:
    """Layers divide over the pipeline, or the last and first stages are given."""
    size, layers = count(plan, PIPELINE), facts.layers
    virtual = count(plan, f"{ENGINE}.virtual_pipeline_model_parallel_size") or 1
    given = plan.get(f"{MODEL_CONFIG}.pipeline_model_parallel_layout") is not None
    if not is_megatron(plan) or not size or size == 1 or not layers or virtual > 1 or given:
        return None
    counted = [
        f"{MODEL_CONFIG}.account_for_{part}_in_pipeline_split" for part in ("embedding", "loss")
    ]
    edges = [f"{MODEL_CONFIG}.num_layers_in_{end}_pipeline_stage" for end in ("first", "last")]
    own = [whole(plan, key) for key in edges]
    left = layers + sum(flag(plan, key) is True for key in counted)
    left -= sum(edge for edge in own if edge is not None)
    middle = size - sum(edge is not None for edge in own)
    if left >= 0 and (left == 0 if middle == 0 else left % max(middle, 1) == 0):
        return None
    last = layers - -(-layers // size) * (size - 1)
    text = (
        f"{left} layers do not divide over {middle} stages (the model has {layers}, PP is {size})."
    )
    if last > 0:
        return Case(text, f"Set {edges[1]}={last}, and leave the first stage out.", edges[1])
    return Case(text, f"Set {PIPELINE} to a divisor of {layers}.")


RULES = (
    Rule("L-35", "error", BRIDGE, "Megatron: use_mbridge True", f"{GUIDE}; {CODE}", bridge),
    Rule(
        "L-36",
        "warning",
        REF,
        "the reference's parallel sizes and offload are the actor's",
        GUIDE,
        reference_like_actor,
    ),
    Rule("L-40", "warning", OPTIMIZER, "the four of the hybrid optimizer", GUIDE, hybrid_optimizer),
    Rule("L-41", "info", ENGINE, "parameters and optimizer are offloaded together", GUIDE, offload),
    Rule("L-42", "info", RECOMPUTE, "recompute uniform, full, 1 layer", GUIDE, recompute),
    Rule("L-43", "info", f"{MODEL_CONFIG}.moe_router_dtype", "MoE settings", GUIDE, experts),
    Rule(
        "L-44",
        "info",
        f"{MODEL_CONFIG}.gradient_accumulation_fusion",
        "gradient_accumulation_fusion on",
        GUIDE,
        fusion,
    ),
    Rule("L-45", "error", PIPELINE, "layers divide over the pipeline", GUIDE, stages),
)
