"""What can be known of a run besides its plan: the model, the devices, the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.devices import MEMORY_GIB
from rewardkit.launch.plan import Plan

GIB = 2**30

#: Files of a model that are larger than this are not read: they are not what they are called.
LARGEST_FILE = 64 * 2**20

_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}


@dataclass(frozen=True)
class Facts:
    """What the rules may know; None for what is not known.

    Attributes:
        layers: of the model.
        heads: of its attention.
        kv_heads: of its attention's keys and values.
        experts: of its mixture; 0 for a dense model.
        parameters: how many it has.
        context: the longest sequence it was made for, None too where it is scaled.
        vision: whether it reads images.
        device_bytes: memory of one device.
        train_rows: of all training files.
        val_rows: of all validation files.
        longest_prompt: of the training files, in tokens.
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
    longest_prompt: int | None = None


def facts_of(plan: Plan) -> Facts:
    """What this machine knows: the model's config.json where the model is a folder here.

    Nothing is downloaded. The device's memory is read from the recipe's `hardware`; rows and
    lengths are the caller's.
    """
    memory = device_memory(plan.recipe.hardware)
    folder = Path(plan.recipe.model).expanduser()
    whole = _json(folder / "config.json")
    if not whole:
        return Facts(device_bytes=memory)
    nested = whole.get("text_config")
    config = {**whole, **nested} if isinstance(nested, dict) else whole
    experts = _count(config, "num_experts", "n_routed_experts", "num_local_experts")
    heads = _count(config, "num_attention_heads")
    return Facts(
        layers=_count(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=_count(config, "num_key_value_heads") or heads,
        experts=experts or 0,
        parameters=_indexed(folder, config) or _computed(config, experts or 0),
        context=None if config.get("rope_scaling") else _count(config, "max_position_embeddings"),
        vision="vision_config" in whole,
        device_bytes=memory,
    )


def device_memory(hardware: str) -> int | None:
    """Bytes of one device, of text like `8 GPU of 80 GB` or `4 nodes x 8 H100`."""
    text = hardware.lower()
    if stated := re.search(r"(\d{1,4})\s*gi?b\b", text):
        return int(stated[1]) * GIB
    named = (size for name, size in MEMORY_GIB.items() if re.search(rf"\b{name}", text))
    size = next(named, None)
    return size and size * GIB


def _json(path: Path) -> dict[str, Any]:
    """A JSON mapping; empty where there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _count(config: Mapping[str, Any], *names: str) -> int | None:
    """The first of some settings that is a positive whole number."""
    for name in names:
        value = config.get(name)
        if type(value) is int and value > 0:
            return value
    return None


def _indexed(folder: Path, config: Mapping[str, Any]) -> int | None:
    """Parameters by the index of the weights."""
    metadata = _json(folder / "model.safetensors.index.json").get("metadata")
    if not isinstance(metadata, dict):
        return None
    width = _WIDTHS.get(str(config.get("torch_dtype") or config.get("dtype")))
    size = _count(metadata, "total_size")
    return _count(metadata, "total_parameters") or (size // width if size and width else None)


def _computed(config: Mapping[str, Any], experts: int) -> int | None:
    """Parameters of a decoder with gated layers, by its configuration; norms are left out."""
    layers, hidden = _count(config, "num_hidden_layers"), _count(config, "hidden_size")
    heads, vocabulary = _count(config, "num_attention_heads"), _count(config, "vocab_size")
    inner = _count(config, "moe_intermediate_size") if experts else None
    inner = inner or _count(config, "intermediate_size")
    if not (layers and hidden and heads and vocabulary and inner):
        return None
    head = _count(config, "head_dim") or hidden // heads
    kv_heads = _count(config, "num_key_value_heads") or heads
    attention = 2 * hidden * head * (heads + kv_heads)
    embeddings = vocabulary * hidden * (1 if config.get("tie_word_embeddings") is True else 2)
    return embeddings + layers * (attention + 3 * hidden * inner * (experts or 1))
