"""Rules that no row can say: batches and lengths, parallel sizes and memory, engines and folders."""

import re
from collections.abc import Iterator
from pathlib import Path

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.facts import GIB
from rewardkit.launch.rules.rule import Violation, Violations, check, refusal, set_to
from rewardkit.launch.rules.values import (
    DYNAMIC_BATCH,
    LOG_PROB_MICRO_BATCH,
    MICRO_BATCH,
    MODEL,
    ROLLOUT,
    TENSOR_PARALLEL,
    ULYSSES_SIZE,
    PlanValues,
    largest_divisor,
)

TOKENS = f"{ACTOR}.ppo_max_token_len_per_gpu"

#: verl's default of the critic's budget, which its YAML does not list, from 0.9 on.
CRITIC_TOKENS = 32768
MEMORY_FRACTION = f"{ROLLOUT}.gpu_memory_utilization"
REMOVE_PADDING = f"{MODEL}.use_remove_padding"
MEGATRON = f"{ACTOR}.megatron"
PIPELINE = f"{MEGATRON}.pipeline_model_parallel_size"
TRANSFORMER = f"{MEGATRON}.override_transformer_config"
LAST_STAGE = f"{TRANSFORMER}.num_layers_in_last_pipeline_stage"
OPTIMIZER = f"{ACTOR}.optim.override_optimizer_config"
OFFLOAD = f"{OPTIMIZER}.optimizer_cpu_offload"
ULYSSES = f"{ACTOR}.{ULYSSES_SIZE}"

#: From this many tokens of a response on a sequence is worth cutting, into parts of this length.
LONG_TOKENS, PART_TOKENS = 8192, 2048

#: Bytes per parameter in the rollout (bfloat16).
ROLLOUT_BYTES = 2

#: Bytes per parameter of weights, gradients and Adam's state: FSDP keeps float32. Megatron keeps bfloat16
#: weights, float32 gradients, and float32 weights in Adam's state, which the copies share.
FSDP_BYTES = 16
MEGATRON_BYTES, MEGATRON_ADAM_BYTES = 6, 12

#: Weights with a larger fraction of the rollout's memory leave too little for its KV cache.
CROWDED_FRACTION = 0.8

#: Over more devices than this a layer of the rollout waits for the network.
MAX_TENSOR_PARALLEL = 8

#: The billions of parameters in a model's name.
_NAMED_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)[Bb](?![A-Za-z])")

#: The four settings that together keep Adam's moments on the host.
HYBRID_OPTIMIZER = {
    "optimizer_offload_fraction": 1,
    "overlap_cpu_optimizer_d2h_h2d": True,
    "use_precision_aware_optimizer": True,
    "optimizer_cpu_offload": True,
}

ENGINE_SETTINGS = f"{ROLLOUT}.engine_kwargs"
FOLDER = "trainer.default_local_dir"

#: Temporary folders, of which every node has its own.
TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - prefixes that the rule warns of

LOGGERS = (
    "clearml console file mlflow swanlab tensorboard tracking trackio vemlp_wandb wandb".split()
)


@check("micro-batch")
def micro_batches(values: PlanValues) -> Violations:
    """Yield micro batch sizes that are missing, or set twice, where batches are cut by rows."""
    missing = []
    for name, key in _micro_batch_keys(values):
        total = key.removesuffix("_per_gpu")
        has_own, has_total = values.is_set(key), values.is_set(total)
        if has_own and has_total:
            message = f"it is set, and so is {total}: verl {values.plan.verl} stops."
            yield Violation(message, f"Leave {total} out.", key, refusal=f"{name}-micro-both")
        is_unread = refusal(f"worker-{name}-micro", values.plan.verl) and not key.startswith(REF)
        if not has_own and not has_total:
            missing.append((f"{name}-micro-none", key))
        elif has_total and is_unread:
            missing.append((f"worker-{name}-micro", key))
    if missing:
        name, key = missing[0]
        if values.is_megatron and key == MICRO_BATCH:
            name = "megatron-micro-none"
        keys = " and ".join(f"{key}=1" for _, key in missing)
        yield Violation(
            f"it is not set, and batches are cut by rows: verl {values.plan.verl} stops.",
            f"Set {DYNAMIC_BATCH}=True, or {keys} or more.",
            key,
            refusal=name,
        )


def _micro_batch_keys(values: PlanValues) -> Iterator[tuple[str, str]]:
    """Yield the name and the key of each model whose batches are cut by rows."""
    if not values.flag(DYNAMIC_BATCH):
        yield "actor", MICRO_BATCH
        yield "log-prob", LOG_PROB_MICRO_BATCH
        if values.uses_reference:
            yield "log-prob", f"{REF}.log_prob_micro_batch_size_per_gpu"
    if values.uses_critic and not values.flag("critic.use_dynamic_bsz"):
        yield "critic", "critic.ppo_micro_batch_size_per_gpu"


@check("L-17")
def token_budget(values: PlanValues) -> Violations:
    """Yield the budgets of dynamic batches that are less than the longest sequence."""
    longest = values.sequence_tokens or 0
    small = [
        (key, tokens, size)
        for key, tokens, size in _token_budgets(values)
        if tokens and size and tokens * size < longest
    ]
    if small:
        key, tokens, size = small[0]
        message = f"{tokens} x sequence parallel {size} is less than prompt + response = {longest}."
        sizes = " and ".join(f"{key}={-(-longest // (size or 1))}" for key, _, size in small)
        yield Violation(message, f"Set {sizes}, or more.", key)


def _token_budgets(values: PlanValues) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield key, tokens and sequence parallel size of each model that has dynamic batches."""
    if values.flag(DYNAMIC_BATCH):
        yield TOKENS, values.count(TOKENS), values.sequence_parallel()
    for model, owner in ((ROLLOUT, ACTOR), (REF, REF)):
        key = f"{model}.log_prob_max_token_len_per_gpu"
        is_dynamic = values.flag(f"{model}.log_prob_use_dynamic_bsz", DYNAMIC_BATCH)
        if is_dynamic and (model == ROLLOUT or values.uses_reference):
            yield key, values.count(key, TOKENS), values.sequence_parallel(owner)
    if values.uses_critic and values.flag("critic.use_dynamic_bsz", DYNAMIC_BATCH):
        name = "megatron.context_parallel_size" if values.is_megatron else ULYSSES_SIZE
        is_new = values.is_since(0, 9, 0)
        key = f"critic.{'ppo_infer' if is_new else 'ppo'}_max_token_len_per_gpu"
        tokens = values.count(key) or (CRITIC_TOKENS if is_new else None)
        yield key, tokens, values.count(f"critic.{name}")


@check("L-57")
def sequence_parts(values: PlanValues) -> Violations:
    """The Ulysses size is about response / 2048 above 8K; it divides devices and heads."""
    size, devices, length = values.sequence_parallel(), values.devices, values.response_tokens or 0
    heads, kv_heads = values.facts.heads, values.facts.kv_heads
    if values.is_megatron or not size or not devices:
        return
    key = values.ulysses_key()
    best = largest_divisor(max(size, length // PART_TOKENS), devices, heads or devices)
    fix = f"Set {ULYSSES}={best}."
    if values.has_own_ulysses_size:  # verl deprecates the actor's
        models = (ACTOR, REF) if values.uses_reference else (ACTOR,)
        sets = " and ".join(f"{model}.fsdp_config.{ULYSSES_SIZE}={best}" for model in models)
        fix = f"Set {sets}{f', and leave {ULYSSES} out' if key == ULYSSES else ''}."
    if devices % size:
        yield Violation(f"{size} does not divide {devices} devices.", fix, key, "error")
    if heads and heads % size:
        message = f"{size} does not divide the model's {heads} attention heads."
        yield Violation(message, fix, key, "error")
    if kv_heads and kv_heads % size and size % kv_heads:
        message = f"neither of {size} and the model's {kv_heads} key-value heads divides the other."
        yield Violation(message, fix, key, "error")
    if size == 1 and length > LONG_TOKENS and best > 1:
        extra = f" It needs {REMOVE_PADDING}=True." if values.flag(REMOVE_PADDING) is False else ""
        message = f"with 1, each device holds responses of {length} tokens whole."
        yield Violation(message, f"{fix}{extra}", key)


@check("L-58")
def parts_need_packing(values: PlanValues) -> Violations:
    """A Ulysses size above 1 needs use_remove_padding."""
    if values.is_megatron or values.flag(REMOVE_PADDING) is not False:
        return
    for model in (ACTOR, REF) if values.uses_reference else (ACTOR,):
        size = values.sequence_parallel(model) or 1
        if size > 1:
            message = f"False makes verl stop, because {values.ulysses_key(model)} is {size}."
            yield set_to(REMOVE_PADDING, True, message, refusal="actor-padding")


def _rollout_bytes(values: PlanValues) -> float:
    """Return the bytes that the rollout has on a device; 0 if unknown."""
    return max(0, (values.number(MEMORY_FRACTION) or 0) * (values.facts.device_bytes or 0))


@check("L-14")
def weights_fit(values: PlanValues) -> Violations:
    """Memory x gpu_memory_utilization x TP > parameters x 2 bytes, with the smallest such TP."""
    size, room = values.tensor_parallel, _rollout_bytes(values)
    if not size:
        return
    copies = 1  # expert parallelism, besides TP, spreads the experts of a mixture
    if (values.count(f"{ROLLOUT}.expert_parallel_size") or 1) > 1:
        copies = values.count(f"{ROLLOUT}.data_parallel_size") or 1
    weights: float = (values.facts.parameters or 0) * ROLLOUT_BYTES
    if room and weights and room * size * copies <= weights:
        smallest = 1
        while smallest <= weights / room / copies:
            smallest *= 2
        yield set_to(
            TENSOR_PARALLEL,
            smallest,
            f"{weights / GIB:,.0f} GiB of weights do not fit {size} x {room / GIB:,.0f} GiB.",
            extra=f", or raise {MEMORY_FRACTION}",
            severity="error",
        )
    widest = min(MAX_TENSOR_PARALLEL, values.devices_per_node or MAX_TENSOR_PARALLEL)
    if not weights:  # a name like Qwen3-235B-A22B says it
        sizes = map(float, _NAMED_SIZE.findall(Path(values.recipe.model).name))
        weights = max(sizes, default=0) * 1e9 * ROLLOUT_BYTES
    if size > widest and not (room and weights > CROWDED_FRACTION * room * widest):
        message = f"{size} is more than {widest}: the devices wait for each other."
        yield set_to(TENSOR_PARALLEL, widest, message, extra=", if the weights fit")


@check("L-61")
def smaller_tensor_parallel(values: PlanValues) -> Violations:
    """TP is halved where half the devices can hold the weights twice, for more replicas."""
    half, weights = (values.tensor_parallel or 1) // 2, values.facts.parameters or 0
    weights *= ROLLOUT_BYTES
    if half and weights and _rollout_bytes(values) * half > 2 * weights:
        yield set_to(
            TENSOR_PARALLEL,
            half,
            f"{values.tensor_parallel} is more than needed: {weights / GIB:,.0f} GiB of weights leave room on {half}.",
            extra=" for twice the replicas",
        )


@check("L-38")
def training_fits(values: PlanValues) -> Violations:
    """Weights, gradients and Adam's state fit on the devices that share them."""
    parameters, memory, devices = values.facts.parameters, values.facts.device_bytes, values.devices
    per_copy, copies = values.model_parallel, values.data_parallel
    if not parameters or not memory or not devices or not per_copy or not copies:
        return
    if values.value("adapter_rank") or values.only_validates:
        return
    if values.is_megatron:
        adam = 0 if values.flag(OFFLOAD) else MEGATRON_ADAM_BYTES / copies
        needed = parameters * (MEGATRON_BYTES + adam) / per_copy
    else:
        shards = values.count(f"{ACTOR}.fsdp_config.fsdp_size") or devices
        needed = parameters * FSDP_BYTES / min(shards, devices)
    is_spread = values.is_megatron and values.facts.experts  # over expert parallel devices
    if needed > memory and not is_spread:
        message = f"weights, gradients and Adam take about {needed / GIB:,.0f} GiB of a device's "
        message += f"{memory / GIB:,.0f} GiB during an update."
        if values.is_megatron:
            yield Violation(message, f"Raise TP or PP, or set {OFFLOAD}=True.")
        fix = "Set trainer.nnodes higher, or train adapters."
        yield Violation(message, fix, "trainer.nnodes")


@check("L-40")
def hybrid_optimizer(values: PlanValues) -> Violations:
    """The four settings of the hybrid optimizer are set together."""
    present = [name for name in HYBRID_OPTIMIZER if values.plan.get(f"{OPTIMIZER}.{name}")]
    missing = [name for name in HYBRID_OPTIMIZER if name not in present]
    offloads = {"optimizer_offload_fraction", "optimizer_cpu_offload"} & set(present)
    if values.is_megatron and missing and offloads:
        message = f"the plan sets {', '.join(present)} without {', '.join(missing)}."
        fix = " and ".join(f"{OPTIMIZER}.{name}={HYBRID_OPTIMIZER[name]}" for name in missing)
        yield Violation(message, f"Set {fix}.", f"{OPTIMIZER}.{missing[0]}")


@check("L-45")
def pipeline_stages(values: PlanValues) -> Violations:
    """Layers divide over the pipeline, or the first and last stages are set."""
    size, layers = values.count(PIPELINE) or 1, values.facts.layers
    virtual = values.count(f"{MEGATRON}.virtual_pipeline_model_parallel_size") or 1
    has_layout = values.plan.get(f"{TRANSFORMER}.pipeline_model_parallel_layout") is not None
    if not values.is_megatron or size == 1 or not layers or virtual > 1 or has_layout:
        return
    keys = (f"{TRANSFORMER}.num_layers_in_first_pipeline_stage", LAST_STAGE)
    edges = [edge for key in keys if (edge := values.integer(key)) is not None]
    parts = ("embedding", "loss")  # they may count as a layer of the pipeline
    counted = (f"{TRANSFORMER}.account_for_{part}_in_pipeline_split" for part in parts)
    left = layers + sum(values.flag(key) is True for key in counted) - sum(edges)
    middle = size - len(edges)
    if left >= 0 and (left % middle == 0 if middle > 0 else left == 0):
        return
    message = f"{left} layers do not divide over {middle} stages (the model has {layers}, PP is "
    message += f"{size})."
    last = layers - -(-layers // size) * (size - 1)
    if last > 0:
        yield set_to(LAST_STAGE, last, message, extra=", and leave the first stage out")
    yield Violation(message, f"Set {PIPELINE} to a divisor of {layers}.")


@check("L-30")
def engine_settings(values: PlanValues) -> Violations:
    """Yield engine_kwargs of another engine, or of a pipeline."""
    engine = values.text(f"{ROLLOUT}.name")
    for key in values.plan.settings:
        prefix, _, rest = key.partition(f"{ENGINE_SETTINGS}.")
        owner, dot, setting = rest.partition(".")
        if prefix or not dot:
            continue
        if setting in {"pipeline_parallel_size", "pp_size"}:
            fix = f"Leave it out, and raise {TENSOR_PARALLEL}."
            yield Violation("verl's rollout does not support a pipeline.", fix, key)
        if engine and owner != engine:
            message = f"it has no effect, because the rollout engine is {engine}."
            fix = f"Write {ENGINE_SETTINGS}.{engine}.{setting}."
            yield Violation(message, fix, key, "warning")


@check("L-65")
def loggers(values: PlanValues) -> Violations:
    """Yield the loggers that the release does not have."""
    known = sorted([*LOGGERS, "rl_insight"] if values.is_since(0, 9, 0) else LOGGERS)
    unknown = [name for name in values.strings("trainer.logger") if name not in known]
    if unknown:
        message = f"verl {values.plan.verl} has no logger {', '.join(unknown)}; it has "
        yield set_to("trainer.logger", "[console]", f"{message}{', '.join(known)}.")


@check("L-78")
def shared_folder(values: PlanValues) -> Violations:
    """Yield a folder of checkpoints that the nodes of a run do not share."""
    nodes, folder = values.nodes or 1, values.explicit(FOLDER) or ""
    if nodes == 1 or values.only_validates or not isinstance(folder, str):
        return
    is_absolute = folder.startswith("/") and not folder.startswith(TEMPORARY)
    if not is_absolute and "://" not in folder:
        name = folder or "verl's default"
        message = f"{name} is another folder on each of the {nodes} nodes."
        fix = f"Set {FOLDER} to an absolute path on storage that all nodes share."
        yield Violation(message, fix)
