"""A model and a tokenizer that are small enough for a CPU, written without torch or a network.

The model is a Qwen2 of two layers with random weights; the tokenizer has one token per byte of
UTF-8, so that it reads every language and the length of a prompt is known from its bytes. For rows
with pictures, `tiny_vision_model.py` has a Qwen2.5-VL with the same layers.
"""

from __future__ import annotations

import json
import math
import random
import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

#: Name -> shape and numbers.
Weights: TypeAlias = dict[str, tuple[tuple[int, ...], "array[float]"]]

#: Sizes of the model. vLLM's attention on the CPU needs heads of at least 32.
HIDDEN, INNER, LAYERS, HEADS, KV_HEADS = 64, 128, 2, 2, 1
HEAD = HIDDEN // HEADS

END, START, STOP = MARKS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

#: Tokens of bytes; the marks follow them.
BYTES = 256

#: Rows of the embedding: the bytes and three marks, so that every sampled token is text.
VOCABULARY = BYTES + len(MARKS)

#: The standard deviation of the weights.
WEIGHT_DEVIATION = 0.02

#: Endings of the names of normalisation weights, which are 1.
NORMS = ("norm.weight", "norm1.weight", "norm2.weight", "ln_q.weight")

#: A message's content is a text, or a list of parts of which some are pictures.
TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{{ part['text'] if part['type'] == 'text' else '<' + part['type'] + '>' }}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model(folder: Path, *, positions: int, seed: int = 1) -> None:
    """Write a model and its tokenizer into `folder`, as transformers loads them.

    Args:
        folder: the folder; it is created if it does not exist.
        positions: the longest sequence, in tokens.
        seed: the random seed of the weights.
    """
    files = {
        "config.json": text_config(positions, VOCABULARY),
        **tokenizer_files(positions, MARKS, TEMPLATE, "PreTrainedTokenizerFast"),
    }
    write_files(folder, files, safetensors(random_weights(text_shapes(VOCABULARY), seed)))


def write_files(folder: Path, files: Mapping[str, Any], weights: bytes) -> None:
    """Write files of JSON, and the weights, into a folder, which is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(weights)


def text_config(positions: int, vocabulary: int) -> dict[str, Any]:
    """Return the configuration of a Qwen2."""
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": positions,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "initializer_range": WEIGHT_DEVIATION,
        "eos_token_id": 258,
        "pad_token_id": 256,
        "torch_dtype": "float32",
    }


def _byte_letters() -> list[str]:
    """Return the letter that stands for each byte in a byte-level vocabulary.

    Printable bytes stand for themselves; the others are numbered from U+0100 on (GPT-2's rule,
    which `tokenizers` implements).
    """
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def tokenizer_files(
    positions: int, marks: Sequence[str], template: str, tokenizer_class: str
) -> dict[str, Any]:
    """Return file name -> content of a tokenizer with one token per byte, and these marks."""
    return {
        "generation_config.json": {"eos_token_id": 258, "pad_token_id": 256},
        "tokenizer.json": _tokenizer(marks),
        "tokenizer_config.json": {
            "tokenizer_class": tokenizer_class,
            "eos_token": STOP,
            "pad_token": END,
            "additional_special_tokens": [mark for mark in marks if mark not in {END, STOP}],
            "chat_template": template,
            "model_max_length": positions,
            "clean_up_tokenization_spaces": False,
        },
    }


def _tokenizer(marks: Sequence[str]) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": BYTES + i, "content": mark, "special": True, **flags} for i, mark in enumerate(marks)
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {letter: byte for byte, letter in enumerate(_byte_letters())},
            "merges": [],
        },
    }


def text_shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a Qwen2's weights, by name."""
    key_value = KV_HEADS * HEAD
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, HIDDEN)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        for name, rows in (("q", HIDDEN), ("k", key_value), ("v", key_value)):
            shapes[f"{layer}.self_attn.{name}_proj.weight"] = (rows, HIDDEN)
            shapes[f"{layer}.self_attn.{name}_proj.bias"] = (rows,)
        shapes[f"{layer}.self_attn.o_proj.weight"] = (HIDDEN, HIDDEN)
        shapes[f"{layer}.mlp.gate_proj.weight"] = (INNER, HIDDEN)
        shapes[f"{layer}.mlp.up_proj.weight"] = (INNER, HIDDEN)
        shapes[f"{layer}.mlp.down_proj.weight"] = (HIDDEN, INNER)
        shapes[f"{layer}.input_layernorm.weight"] = (HIDDEN,)
        shapes[f"{layer}.post_attention_layernorm.weight"] = (HIDDEN,)
    return shapes | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (vocabulary, HIDDEN)}


def random_weights(shapes: Mapping[str, tuple[int, ...]], seed: int) -> Weights:
    """Return name -> shape and numbers: norms are 1, biases 0, other weights random."""
    generator = random.Random(seed)  # noqa: S311 - weights, no secrets
    weights: Weights = {}
    for name, shape in shapes.items():
        size = math.prod(shape)
        if name.endswith(NORMS):
            values = array("f", [1.0]) * size
        elif name.endswith("bias"):
            values = array("f", [0.0]) * size
        else:
            values = array("f", (generator.gauss(0.0, WEIGHT_DEVIATION) for _ in range(size)))
        weights[name] = shape, values
    return weights


def safetensors(weights: Weights) -> bytes:
    """Return weights as safetensors: the header's length, the header in JSON, the numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, (shape, values) in weights.items():
        end = len(body) + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(body), end]}
        body += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)
