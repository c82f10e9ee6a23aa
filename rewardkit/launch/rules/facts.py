"""Facts about a run that are not in its plan: the model, the devices, the data, this machine."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.devices import MEMORY_GIB, count_devices
from rewardkit.launch.plan import Plan
from rewardkit.launch.verl.releases import installed_verl, parse_release
from rewardkit.versions import package_version

GIB = 2**30

#: A model's JSON files are not read above this size: a larger file is not a model's configuration.
MAX_FILE_BYTES = 64 * 2**20

#: The names that models have for the number of their experts.
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")

_BYTES_PER_PARAMETER = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}


#: verl's FSDP engines patch trl's models if trl is installed; trl 1.13 has no such models.
TRL_WITHOUT_PPO = (1, 13)

#: The setting of how many storage units, of one core each, TransferQueue has in the whole cluster.
STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """Facts about this machine, if the run is on it; None for unknown facts.

    `new_trl` is the version of trl here, if verl's FSDP engine cannot import it; `reserved_cores` are the
    CPU cores that verl reserves in Ray on the first node, and `reserved_for` says for what.
    """

    has_verl: bool | None = None
    has_transfer_queue: bool | None = None
    new_trl: str | None = None
    has_dapo_recipe: bool | None = None
    devices: int | None = None
    cores: int | None = None
    reserved_cores: int | None = None
    reserved_for: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """Facts that the rules use besides the plan; None for an unknown fact.

    The first ones are about the model: a dense one has 0 experts, and `context` is the longest sequence it
    was trained for, in tokens, None if it is scaled (RoPE). `device_bytes` is the memory of one device,
    `fits_prompts` whether all prompts are known to be within the run's limit; `numeric_keys` are the
    `reward_keys` that are always numbers.
    """

    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    experts: int | None = None
    parameters: int | None = None
    context: int | None = None
    vision: bool | None = None
    device_bytes: int | None = None
    train_rows: int | None = None
    val_rows: int | None = None
    fits_prompts: bool = False
    reward_keys: list[str] | None = None
    numeric_keys: list[str] | None = None
    machine: MachineFacts = MachineFacts()


def read_facts(plan: Plan) -> RunFacts:
    """Read the device's memory from `hardware` and the model's config.json, if its folder is here."""
    memory, folder = device_memory(plan.recipe.hardware), Path(plan.recipe.model).expanduser()
    outer = _read_json(folder / "config.json")
    if not outer:
        return RunFacts(device_bytes=memory)
    nested = outer.get("text_config")
    config = {**outer, **nested} if isinstance(nested, dict) else outer
    count = partial(_positive_integer, config)
    heads, experts = count("num_attention_heads"), count(*_EXPERTS) or 0
    return RunFacts(
        layers=count("num_hidden_layers"),
        heads=heads,
        kv_heads=count("num_key_value_heads") or heads,
        experts=experts,
        parameters=_indexed_parameters(folder, config) or _computed_parameters(config),
        context=None if config.get("rope_scaling") else count("max_position_embeddings"),
        vision="vision_config" in outer,
        device_bytes=memory,
    )


def device_memory(hardware: str) -> int | None:
    """Read the bytes of one device from a text like `8 GPU of 80 GB` or `4 nodes x 8 H100`."""
    text = hardware.lower()
    if match := re.search(r"(\d{1,4})\s*gi?b\b", text):
        return int(match[1]) * GIB
    sizes = (size * GIB for name, size in MEMORY_GIB.items() if re.search(rf"\b{name}", text))
    return next(sizes, None)


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON mapping; empty if the file does not exist or has no mapping."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _positive_integer(config: Mapping[str, Any], *names: str) -> int | None:
    values = map(config.get, names)
    return next((value for value in values if type(value) is int and value > 0), None)


def _indexed_parameters(folder: Path, config: Mapping[str, Any]) -> int | None:
    metadata = _read_json(folder / "model.safetensors.index.json").get("metadata")
    if not isinstance(metadata, dict):
        return None
    width = _BYTES_PER_PARAMETER.get(str(config.get("torch_dtype") or config.get("dtype")), 1 << 99)
    size = _positive_integer(metadata, "total_size") or 0
    return _positive_integer(metadata, "total_parameters") or size // width or None


def _computed_parameters(config: Mapping[str, Any]) -> int | None:
    """Compute the parameters of a decoder with gated layers; norms and biases are left out."""
    count = partial(_positive_integer, config)
    layers, hidden, heads = (
        count(name) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    vocabulary, experts = count("vocab_size"), count(*_EXPERTS)
    inner = (experts and count("moe_intermediate_size")) or count("intermediate_size")
    if not (layers and hidden and heads and vocabulary and inner):
        return None
    head = count("head_dim") or hidden // heads
    attention = 2 * hidden * head * (heads + (count("num_key_value_heads") or heads))
    embeddings = vocabulary * hidden * (1 if config.get("tie_word_embeddings") is True else 2)
    return embeddings + layers * (attention + 3 * hidden * inner * (experts or 1))


def read_machine(plan: Plan, unchecked: list[str]) -> MachineFacts:
    """Return the facts about this machine; a line in `unchecked` says if the run is on others."""
    target = plan.recipe.cluster.target
    if target != "local":
        unchecked.append(f"devices and packages on the nodes: {target} runs on other machines.")
        return MachineFacts()
    has_verl, trl = installed_verl() is not None, package_version("trl")
    cores = reserved_cores(plan)
    is_new = has_verl and trl and parse_release(trl) >= TRL_WITHOUT_PPO
    own_ray = not os.environ.get("RAY_ADDRESS")  # otherwise verl joins that cluster
    return MachineFacts(
        has_verl=has_verl,
        has_transfer_queue=not has_verl or find_spec("transfer_queue") is not None,
        new_trl=trl if is_new else None,
        has_dapo_recipe=not has_verl or Path(plan.recipe.cluster.workdir, "recipe/dapo").is_dir(),
        devices=count_devices(plan.recipe.devices),
        cores=os.cpu_count() if own_ray else None,
        reserved_cores=sum(cores.values()) if own_ray else None,
        reserved_for=", ".join(cores),
    )


def reserved_cores(plan: Plan) -> dict[str, int]:
    """Return the CPU cores that verl reserves in Ray on the first node, by what they are for.

    With fewer, a run waits for them forever. Read in the code of the releases, and measured on 0.9.1
    with TransferQueue 0.1.11 and Ray 2.60: a run on one GPU gets its placement group with 12 cores, and
    not with 11. Ray's other actors (agent loops, reward workers, servers) start without a free core.
    """
    recipe = plan.recipe
    devices, nodes = recipe.devices_per_node, recipe.nodes
    cores = {f"3 x {devices} {recipe.devices.upper()}": 3 * devices}
    workers = plan.get("reward.num_workers")
    if plan.get("reward.reward_manager.name") == "remote" and type(workers) is int:
        remote = -(-workers // nodes) * workers  # each reward worker starts as many processes
        cores[f"{remote} for the reward manager remote"] = remote
    if plan.release.number < (0, 9, 0):
        return cores | {"1 for verl's driver": 1}
    if plan.get("trainer.use_v1", True) is True:  # it keeps its samples in TransferQueue
        is_simple = plan.get("transfer_queue.backend.storage_backend") == "SimpleStorage"
        units = plan.get(STORAGE_UNITS) if is_simple else 0
        here = 1 + (-(-units // nodes) if isinstance(units, int) else 0)
        cores[f"{here} for TransferQueue"] = here
    return cores
