"""A Qwen2.5-VL that is small enough for a CPU, with a real processor of pictures.

The language model is the one of `tiny_model.py`; two vision layers are before it. The patches of a
picture have the size that they have in every Qwen2.5-VL, so a picture has as many tokens here as in
the real model, up to `pixels`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from rewardkit.launch.rehearsal.tiny_model import (
    BYTES,
    HIDDEN,
    MARKS,
    VOCABULARY,
    Weights,
    random_weights,
    safetensors,
    text_config,
    text_shapes,
    tokenizer_files,
    write_files,
)

#: A patch of a picture in pixels, the pictures that a patch spans, and the patches on each side of
#: what becomes one token.
PATCH, FRAMES, MERGE = 14, 2, 2

#: The pixels on each side of what becomes one token, and the least pixels of a picture.
SIDE = PATCH * MERGE
MIN_PIXELS = 4 * SIDE * SIDE

VISION_LAYERS, VISION_HEADS, VISION_INNER = 2, 2, 128

#: The marks around a picture, and those that stand for a picture and a video.
PICTURE_MARKS = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
VISION_START, VISION_END, IMAGE, VIDEO = range(VOCABULARY, VOCABULARY + len(PICTURE_MARKS))

#: The first of a vector's dimensions is constant and decides which tokens are never sampled: a
#: response with a mark of a picture would make a model look for a picture that is not there.
CONSTANT, NEVER = 1.0, -10.0

#: As Qwen2.5-VL's template: a picture is its marks, and its tokens take the place of the middle one.
TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_vision_model(folder: Path, *, positions: int, pixels: int, seed: int = 1) -> None:
    """Write a vision-language model and its processor into `folder`, as transformers loads them.

    Args:
        folder: the folder; it is created if it does not exist.
        positions: the longest sequence, in tokens.
        pixels: the most pixels of a picture; larger ones are scaled down.
        seed: the random seed of the weights.
    """
    marks = (*MARKS, *PICTURE_MARKS)
    files = {
        "config.json": _config(positions, BYTES + len(marks)),
        "preprocessor_config.json": _processor("image", pixels),
        "video_preprocessor_config.json": _processor("video", pixels),
        "chat_template.json": {"chat_template": TEMPLATE},
        **tokenizer_files(positions, marks, TEMPLATE, "Qwen2Tokenizer"),
    }
    write_files(folder, files, safetensors(_weights(BYTES + len(marks), seed)))


def _config(positions: int, vocabulary: int) -> dict[str, Any]:
    vision = {
        "depth": VISION_LAYERS,
        "hidden_size": HIDDEN,
        "intermediate_size": VISION_INNER,
        "num_heads": VISION_HEADS,
        "out_hidden_size": HIDDEN,
        "hidden_act": "silu",
        "in_chans": 3,
        "patch_size": PATCH,
        "spatial_patch_size": PATCH,
        "temporal_patch_size": FRAMES,
        "spatial_merge_size": MERGE,
        "tokens_per_second": 2,
        "window_size": 8 * PATCH,
        "fullatt_block_indexes": [VISION_LAYERS - 1],
    }
    return text_config(positions, vocabulary) | {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        # Times, heights and widths share the 16 rotary frequencies of a head.
        "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]},
        "vision_start_token_id": VISION_START,
        "vision_end_token_id": VISION_END,
        "image_token_id": IMAGE,
        "video_token_id": VIDEO,
        "vision_config": vision,
    }


def _processor(kind: str, pixels: int) -> dict[str, Any]:
    return {
        f"{kind}_processor_type": f"Qwen2VL{kind.title()}Processor",
        "processor_class": "Qwen2_5_VLProcessor",
        "min_pixels": MIN_PIXELS,
        "max_pixels": pixels,
        "patch_size": PATCH,
        "temporal_patch_size": FRAMES,
        "merge_size": MERGE,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }


def _vision_shapes() -> dict[str, tuple[int, ...]]:
    merged = HIDDEN * MERGE * MERGE
    shapes: dict[str, tuple[int, ...]] = {
        "visual.patch_embed.proj.weight": (HIDDEN, 3, FRAMES, PATCH, PATCH)
    }
    for i in range(VISION_LAYERS):
        block = f"visual.blocks.{i}"
        for name, rows, columns in (
            ("attn.qkv", 3 * HIDDEN, HIDDEN),
            ("attn.proj", HIDDEN, HIDDEN),
            ("mlp.gate_proj", VISION_INNER, HIDDEN),
            ("mlp.up_proj", VISION_INNER, HIDDEN),
            ("mlp.down_proj", HIDDEN, VISION_INNER),
        ):
            shapes[f"{block}.{name}.weight"] = (rows, columns)
            shapes[f"{block}.{name}.bias"] = (rows,)
        shapes[f"{block}.norm1.weight"] = shapes[f"{block}.norm2.weight"] = (HIDDEN,)
    shapes["visual.merger.ln_q.weight"] = (HIDDEN,)
    for i, rows in ((0, merged), (2, HIDDEN)):
        shapes[f"visual.merger.mlp.{i}.weight"] = (rows, merged)
        shapes[f"visual.merger.mlp.{i}.bias"] = (rows,)
    return shapes


def _weights(vocabulary: int, seed: int) -> Weights:
    """Return random weights that never sample a mark of a picture."""
    weights = random_weights(text_shapes(vocabulary) | _vision_shapes(), seed)
    _, embedding = weights["model.embed_tokens.weight"]
    _, head = weights["lm_head.weight"]
    for token in range(vocabulary):
        embedding[token * HIDDEN] = CONSTANT
        head[token * HIDDEN] = NEVER if token >= VISION_START else 0.0
    weights["visual.merger.mlp.2.bias"][1][0] = CONSTANT
    return weights
