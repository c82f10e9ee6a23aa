"""Rules of the rollout: its engine, memory, graphs and images."""

from __future__ import annotations

import re

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, CODE, GUIDE, MODELARTS, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    ROLLOUT,
    count,
    flag,
    is_megatron,
    number,
    since,
    word,
)

NAME = f"{ROLLOUT}.name"
MEMORY = f"{ROLLOUT}.gpu_memory_utilization"
EAGER = f"{ROLLOUT}.enforce_eager"
SIZES = f"{ROLLOUT}.cudagraph_capture_sizes"
KWARGS = f"{ROLLOUT}.engine_kwargs"
TENSOR = f"{ROLLOUT}.tensor_model_parallel_size"

_SEES = re.compile(r"(?:^|[-_/.\d])vl(?:[-_/.]|$)", re.IGNORECASE)


def images(plan: Plan, facts: Facts) -> bool:
    """Whether the model reads images, by its configuration or its name."""
    return facts.vision is True or bool(_SEES.search(plan.recipe.model))


def engine(plan: Plan, _: Facts) -> Case | None:
    """An engine that the release has."""
    known = {"vllm", "sglang"}
    known |= {"trtllm"} if since(plan, 0, 7, 1) else set()
    known |= {"hf"} if not since(plan, 0, 6, 0) else set()
    if plan.get(NAME) is None:
        return Case("not set, and verl has no default.", f"Set {NAME}=vllm.")
    name = word(plan, NAME)
    if name is None or name in known:
        return None
    text = f"verl {plan.verl} has no rollout {name!r}; it has {', '.join(sorted(known))}."
    return Case(text, f"Set {NAME}=vllm.")


def engine_settings(plan: Plan, _: Facts) -> Case | None:
    """The engine's own settings: of the engine that runs, and no pipeline."""
    name, pipeline = word(plan, NAME), f"{ROLLOUT}.pipeline_model_parallel_size"
    if (count(plan, pipeline) or 1) > 1 and name in {"vllm", "sglang", "trtllm"}:
        text = f"{plan.get(pipeline)}: verl's {name} has no pipeline."
        return Case(text, f"Set {pipeline}=1 and raise {TENSOR}.", pipeline)
    for key in plan.settings:
        if not key.startswith(f"{KWARGS}."):
            continue
        owner, dot, setting = key.removeprefix(f"{KWARGS}.").partition(".")
        if not dot:
            continue
        if setting in {"pipeline_parallel_size", "pp_size"}:
            return Case("not supported by verl's rollout.", f"Leave it out, raise {TENSOR}.", key)
        if name and owner != name:
            text = f"no effect: the rollout is {name}."
            return Case(text, f"Write {KWARGS}.{name}.{setting}.", key, "warning")
    return None


def memory_share(plan: Plan, _: Facts) -> Case | None:
    """The rollout's share: high where the actor moves out, about a half where it stays."""
    share = number(plan, MEMORY)
    if share is None:
        return None
    if not 0 < share <= 1:
        return Case(f"{share:g} is no share.", f"Set {MEMORY}=0.6.", severity="error")
    part = "megatron" if is_megatron(plan) else "fsdp_config"
    offload = flag(plan, f"{ACTOR}.{part}.param_offload") is True
    if offload and share < 0.6:
        text = f"{share:g}, though the actor is offloaded during the rollout."
        return Case(text, f"Set {MEMORY}=0.8.")
    if share > (0.9 if offload else 0.8):
        text = f"{share:g} leaves little beside the rollout."
        return Case(text, f"Set {MEMORY}={0.85 if offload else 0.6}.")
    return None


def expert_parallel(plan: Plan, _: Facts) -> Case | None:
    """Expert parallel over many devices costs more than it gives."""
    key, size = f"{KWARGS}.vllm.enable_expert_parallel", count(plan, TENSOR) or 1
    if flag(plan, key) and size >= 32:
        text = f"True over {size} devices was slower than without, on DeepSeek-V3."
        return Case(text, f"Try {key}=False.")
    return None


def graphs_beside(plan: Plan, _: Facts) -> Case | None:
    """CUDA graphs lie outside the rollout's share."""
    share = number(plan, MEMORY)
    if flag(plan, EAGER) is False and share is not None and 0.9 <= share <= 1:
        text = f"False: graphs need memory beside the {share:.0%} of the rollout."
        return Case(text, f"Set {EAGER}=True, or {MEMORY}=0.85.")
    return None


def graph_sizes(plan: Plan, _: Facts) -> Case | None:
    """Sizes of graphs need graphs."""
    if plan.get(SIZES) is not None and flag(plan, EAGER):
        return Case(f"no effect: {EAGER} is True.", f"Set {EAGER}=False.")
    return None


def multimodal(plan: Plan, facts: Facts) -> Case | None:
    """Images: their column, and vLLM's cache of them."""
    if not images(plan, facts):
        return None
    column = word(plan, "data.image_key")
    if column and column != "images":
        text = f"{column}; every recipe's parquet has images."
        return Case(text, "Set data.image_key=images, if that is its column.", "data.image_key")
    names = ("mm_processor_cache_gb", "disable_mm_preprocessor_cache")
    told = any(f"{KWARGS}.vllm.{name}" in plan.settings for name in names)
    if word(plan, NAME) == "vllm" and not told and not since(plan, 0, 9, 0):
        key = f"{KWARGS}.vllm.{names[0] if since(plan, 0, 7, 0) else names[1]}"
        value = "0" if since(plan, 0, 7, 0) else "True"
        return Case(
            "vLLM's cache of images is on, and gets out of step.", f"Set {key}={value}.", key
        )
    return None


RULES = (
    Rule("L-15", "info", MEMORY, "0.5 to 0.7; 0.8 to 0.9 with offload", GUIDE, memory_share),
    Rule(
        "L-29", "error", NAME, "a rollout engine that the release has", f"{GUIDE}; {CODE}", engine
    ),
    Rule(
        "L-30",
        "error",
        KWARGS,
        "engine_kwargs of the engine that runs, without a pipeline",
        f"{GUIDE}; {CODE}",
        engine_settings,
    ),
    Rule(
        "L-31",
        "info",
        f"{KWARGS}.vllm.enable_expert_parallel",
        "expert parallel over 32 devices can be slower",
        GUIDE,
        expert_parallel,
    ),
    Rule("L-32", "info", EAGER, "CUDA graphs need memory beside the share", GUIDE, graphs_beside),
    Rule("L-33", "info", SIZES, "cudagraph_capture_sizes need graphs", GUIDE, graph_sizes),
    Rule(
        "L-75",
        "info",
        "data.image_key",
        "images: image_key, and vLLM's cache of them off",
        f"{MODELARTS}; {ASCEND}",
        multimodal,
    ),
)
