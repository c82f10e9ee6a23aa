"""Rules of the rollout: its engine, memory and graphs, images, and sampling in validation."""

from __future__ import annotations

import re

from rewardkit.launch.presets import ACTOR
from rewardkit.launch.rules.rule import Violation, Violations, rule, set_to
from rewardkit.launch.rules.values import EAGER, MEMORY_SHARE, ROLLOUT, TENSOR_PARALLEL, PlanValues

ENGINES = ("sglang", "trtllm", "vllm")
ROLLOUT_ENGINE = f"{ROLLOUT}.name"
ENGINE_SETTINGS = f"{ROLLOUT}.engine_kwargs"
GRAPH_SIZES = f"{ROLLOUT}.cudagraph_capture_sizes"
IMAGE_CACHE = f"{ENGINE_SETTINGS}.vllm.mm_processor_cache_gb"
ROLLOUT_PIPELINE = f"{ROLLOUT}.pipeline_model_parallel_size"
VALIDATION = f"{ROLLOUT}.val_kwargs"

#: Models that think before they answer: at temperature 0 they repeat themselves.
_THINKING_NAME = re.compile(
    r"qwq|thinking|deepseek-r1|qwen3(?!.*(instruct|base|coder))", re.IGNORECASE
)

#: With fewer rows, one response per row is too few.
FEW_ROWS = 100


@rule("L-29", "error", ROLLOUT_ENGINE, "GUIDE; CODE")
def engine(values: PlanValues) -> Violations:
    """The rollout engine is one that the release has."""
    if values.plan.get(ROLLOUT_ENGINE) is None:
        yield set_to(ROLLOUT_ENGINE, "vllm", "it is not set, and verl has no default.")
    if values.engine not in {None, *ENGINES}:
        message = f"verl {values.plan.verl} has no rollout engine {values.engine!r}; it has "
        yield set_to(ROLLOUT_ENGINE, "vllm", f"{message}{', '.join(ENGINES)}.")


@rule("L-30", "error", ENGINE_SETTINGS, "GUIDE; CODE")
def engine_settings(values: PlanValues) -> Violations:
    """engine_kwargs are those of the engine that runs, without a pipeline."""
    stages = values.count(ROLLOUT_PIPELINE) or 1
    if stages > 1 and values.engine in ENGINES:
        message = f"{stages} is not possible: verl's {values.engine} has no pipeline."
        extra = f" and raise {TENSOR_PARALLEL}"
        yield set_to(ROLLOUT_PIPELINE, 1, message, extra=extra, refusal="rollout-pipeline")
    for key in values.plan.settings:
        prefix, _, rest = key.partition(f"{ENGINE_SETTINGS}.")
        owner, dot, setting = rest.partition(".")
        if prefix or not dot:
            continue
        if setting in {"pipeline_parallel_size", "pp_size"}:
            fix = f"Leave it out, and raise {TENSOR_PARALLEL}."
            yield Violation("verl's rollout does not support a pipeline.", fix, key)
        if values.engine and owner != values.engine:
            message = f"it has no effect, because the rollout engine is {values.engine}."
            fix = f"Write {ENGINE_SETTINGS}.{values.engine}.{setting}."
            yield Violation(message, fix, key, "warning")


@rule("L-15", "info", MEMORY_SHARE, "GUIDE")
def memory_share(values: PlanValues) -> Violations:
    """gpu_memory_utilization is 0.5 to 0.7; 0.8 to 0.9 with offload."""
    share = values.memory_share
    if share is None:
        return
    if not 0 < share <= 1:
        message = f"{share:g} is not a share between 0 and 1."
        yield set_to(MEMORY_SHARE, 0.6, message, severity="error")
    section = "megatron" if values.is_megatron else "fsdp_config"
    is_offloaded = values.flag(f"{ACTOR}.{section}.param_offload") is True
    if is_offloaded and share < 0.6:
        message = f"{share:g} is little, because the actor is offloaded during the rollout."
        yield set_to(MEMORY_SHARE, 0.8, message)
    if share > (0.9 if is_offloaded else 0.8):
        message = f"{share:g} leaves little memory besides the rollout."
        yield set_to(MEMORY_SHARE, 0.85 if is_offloaded else 0.6, message)


@rule("L-33", "info", GRAPH_SIZES, "GUIDE")
def graph_sizes(values: PlanValues) -> Violations:
    """cudagraph_capture_sizes need CUDA graphs."""
    if values.plan.get(GRAPH_SIZES) is not None and values.flag(EAGER):
        yield Violation(f"it has no effect, because {EAGER} is True.", f"Set {EAGER}=False.")


@rule("L-75", "info", "data.image_key", "MODELARTS; ASCEND")
def images(values: PlanValues) -> Violations:
    """Images: image_key is images, and vLLM's cache of images is off before 0.9."""
    if not values.reads_images:
        return
    column = values.text("data.image_key")
    if column and column != "images":
        message = f"{column} is unusual: the parquet of every recipe has the column images."
        yield Violation(message, "Set data.image_key=images, if that is the file's column.")
    older = f"{ENGINE_SETTINGS}.vllm.disable_mm_preprocessor_cache"
    is_set = {IMAGE_CACHE, older} & {*values.plan.settings}
    if values.engine == "vllm" and not values.is_since(0, 9, 0) and not is_set:
        message = "vLLM's cache of images is on, and goes out of step between processes."
        yield set_to(IMAGE_CACHE, 0, message)


@rule("L-27", "warning", f"{VALIDATION}.temperature", "GUIDE; CODE")
def validation_sampling(values: PlanValues) -> Violations:
    """Validation: thinking models sample, and small sets have several responses per row."""
    samples = values.flag(f"{VALIDATION}.do_sample")
    training = values.number(f"{ROLLOUT}.temperature")
    if samples and training is not None and training <= 0:
        message = f"True makes verl stop, because {ROLLOUT}.temperature is {training:g}."
        fix = f"Set {ROLLOUT}.temperature=1.0."
        yield Violation(message, fix, f"{VALIDATION}.do_sample", "error", "val-temperature")
    if not values.validates and not values.only_validates:
        return
    temperature = values.number(f"{VALIDATION}.temperature")
    if samples and temperature is not None and temperature <= 0:
        fix = f"Set {VALIDATION}.temperature=1.0 and {VALIDATION}.top_p=0.7."
        yield Violation(f"{temperature:g} samples nothing, although do_sample is True.", fix)
    if samples is False and _THINKING_NAME.search(values.recipe.model):
        message = "validation is greedy, and a thinking model repeats itself at temperature 0."
        fix = f"Set {VALIDATION}.do_sample=True, {VALIDATION}.temperature=1.0 and "
        yield Violation(message, f"{fix}{VALIDATION}.top_p=0.7.", VALIDATION)
    rows = values.facts.val_rows
    if rows and values.count(f"{VALIDATION}.n") == 1 and rows < FEW_ROWS:
        message = f"with 1 response to each of {rows} rows the score moves in steps of "
        message += f"{100 / rows:.1f} points."
        fix = f"Set {VALIDATION}.n={min(max(4, 2000 // rows), 64)} and {VALIDATION}.do_sample=True."
        yield Violation(message, fix, f"{VALIDATION}.n")
