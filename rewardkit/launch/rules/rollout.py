"""Rules of the rollout: its engine, memory and graphs, images, and sampling in validation."""

from __future__ import annotations

import re

from rewardkit.launch.presets import ACTOR
from rewardkit.launch.rules.rule import ASCEND, CODE, GUIDE, MODELARTS, Violation, rule, set_to
from rewardkit.launch.rules.values import EAGER, MEMORY_SHARE, ROLLOUT, TENSOR_PARALLEL, PlanValues

ROLLOUT_ENGINE = f"{ROLLOUT}.name"
ENGINE_SETTINGS = f"{ROLLOUT}.engine_kwargs"
GRAPH_SIZES = f"{ROLLOUT}.cudagraph_capture_sizes"
ROLLOUT_PIPELINE = f"{ROLLOUT}.pipeline_model_parallel_size"
VALIDATION = f"{ROLLOUT}.val_kwargs"

#: Models that think before they answer: at temperature 0 they repeat themselves.
_THINKING_NAME = re.compile(
    r"qwq|thinking|deepseek-r1|qwen3(?!.*(instruct|base|coder))", re.IGNORECASE
)

#: With fewer rows, one response per row is too few.
FEW_ROWS = 100


@rule("L-29", "error", ROLLOUT_ENGINE, GUIDE, CODE)
def engine(values: PlanValues) -> Violation | None:
    """The rollout engine is one that the release has."""
    known = {"vllm", "sglang"}
    known |= {"trtllm"} if values.is_since(0, 7, 1) else set()
    known |= {"hf"} if not values.is_since(0, 6, 0) else set()
    if values.plan.get(ROLLOUT_ENGINE) is None:
        return set_to(ROLLOUT_ENGINE, "vllm", "it is not set, and verl has no default.")
    if values.engine in {None, *known}:
        return None
    message = f"verl {values.plan.verl} has no rollout engine {values.engine!r}; it has "
    return set_to(ROLLOUT_ENGINE, "vllm", f"{message}{', '.join(sorted(known))}.")


@rule("L-30", "error", ENGINE_SETTINGS, GUIDE, CODE)
def engine_settings(values: PlanValues) -> Violation | None:
    """engine_kwargs are those of the engine that runs, without a pipeline."""
    engine_name, stages = values.engine, values.count(ROLLOUT_PIPELINE) or 1
    if stages > 1 and engine_name in {"vllm", "sglang", "trtllm"}:
        message = f"{stages} is not possible: verl's {engine_name} has no pipeline."
        extra = f" and raise {TENSOR_PARALLEL}"
        return set_to(ROLLOUT_PIPELINE, 1, message, extra=extra, refusal="rollout-pipeline")
    for key in values.plan.settings:
        prefix, _, rest = key.partition(f"{ENGINE_SETTINGS}.")
        owner, dot, setting = rest.partition(".")
        if prefix or not dot:
            continue
        if setting in {"pipeline_parallel_size", "pp_size"}:
            fix = f"Leave it out, and raise {TENSOR_PARALLEL}."
            return Violation("verl's rollout does not support a pipeline.", fix, key)
        if engine_name and owner != engine_name:
            message = f"it has no effect, because the rollout engine is {engine_name}."
            fix = f"Write {ENGINE_SETTINGS}.{engine_name}.{setting}."
            return Violation(message, fix, key, severity="warning")
    return None


@rule("L-15", "info", MEMORY_SHARE, GUIDE)
def memory_share(values: PlanValues) -> Violation | None:
    """gpu_memory_utilization is 0.5 to 0.7; 0.8 to 0.9 with offload."""
    share = values.memory_share
    if share is None:
        return None
    if not 0 < share <= 1:
        message = f"{share:g} is not a share between 0 and 1."
        return set_to(MEMORY_SHARE, 0.6, message, severity="error")
    section = "megatron" if values.is_megatron else "fsdp_config"
    is_offloaded = values.flag(f"{ACTOR}.{section}.param_offload") is True
    if is_offloaded and share < 0.6:
        message = f"{share:g} is little, because the actor is offloaded during the rollout."
        return set_to(MEMORY_SHARE, 0.8, message)
    if share > (0.9 if is_offloaded else 0.8):
        message = f"{share:g} leaves little memory besides the rollout."
        return set_to(MEMORY_SHARE, 0.85 if is_offloaded else 0.6, message)
    return None


@rule("L-33", "info", GRAPH_SIZES, GUIDE)
def graph_sizes(values: PlanValues) -> Violation | None:
    """cudagraph_capture_sizes need CUDA graphs."""
    if values.plan.get(GRAPH_SIZES) is None or not values.flag(EAGER):
        return None
    return Violation(f"it has no effect, because {EAGER} is True.", f"Set {EAGER}=False.")


@rule("L-75", "info", "data.image_key", MODELARTS, ASCEND)
def images(values: PlanValues) -> Violation | None:
    """Images: image_key is images, and vLLM's cache of images is off before 0.9."""
    if not values.reads_images:
        return None
    column = values.text("data.image_key")
    if column and column != "images":
        message = f"{column} is unusual: the parquet of every recipe has the column images."
        return Violation(message, "Set data.image_key=images, if that is the file's column.")
    names = ("mm_processor_cache_gb", "disable_mm_preprocessor_cache")
    keys = [f"{ENGINE_SETTINGS}.vllm.{name}" for name in names]
    if values.engine != "vllm" or values.is_since(0, 9, 0) or {*keys} & {*values.plan.settings}:
        return None
    key, value = (keys[0], "0") if values.is_since(0, 7, 0) else (keys[1], "True")
    message = "vLLM's cache of images is on, and goes out of step between processes."
    return set_to(key, value, message)


@rule("L-27", "warning", f"{VALIDATION}.temperature", GUIDE, CODE)
def validation_sampling(values: PlanValues) -> Violation | None:
    """Validation: thinking models sample, and small sets have several responses per row."""
    samples = values.flag(f"{VALIDATION}.do_sample")
    training = values.number(f"{ROLLOUT}.temperature")
    if samples and training is not None and training <= 0:
        message = f"True makes verl stop, because {ROLLOUT}.temperature is {training:g}."
        fix = f"Set {ROLLOUT}.temperature=1.0."
        key = f"{VALIDATION}.do_sample"
        return Violation(message, fix, key, severity="error", refusal="val-temperature")
    if not values.validates and not values.only_validates:
        return None
    temperature = values.number(f"{VALIDATION}.temperature")
    if samples and temperature is not None and temperature <= 0:
        fix = f"Set {VALIDATION}.temperature=1.0 and {VALIDATION}.top_p=0.7."
        return Violation(f"{temperature:g} samples nothing, although do_sample is True.", fix)
    if samples is False and _THINKING_NAME.search(values.recipe.model):
        message = "validation is greedy, and a thinking model repeats itself at temperature 0."
        fix = f"Set {VALIDATION}.do_sample=True, {VALIDATION}.temperature=1.0 and "
        return Violation(message, f"{fix}{VALIDATION}.top_p=0.7.", VALIDATION)
    rows, responses = values.facts.val_rows, values.count(f"{VALIDATION}.n")
    if rows and responses == 1 and rows < FEW_ROWS:
        message = f"with 1 response to each of {rows} rows the score moves in steps of "
        message += f"{100 / rows:.1f} points."
        fix = f"Set {VALIDATION}.n={min(max(4, 2000 // rows), 64)} and {VALIDATION}.do_sample=True."
        return Violation(message, fix, f"{VALIDATION}.n")
    return None
