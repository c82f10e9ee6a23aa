"""A model, a tokenizer and a processor of images that are small enough for a CPU.

The model is a Qwen2 of two layers with random weights; the tokenizer has one token per byte of UTF-8,
so that it reads every language and the length of a prompt is known from its bytes. For rows with
images it is a Qwen2.5-VL with the same layers, and its real processor: an image has as many tokens
here as in the real model, up to a limit of pixels.
"""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers

#: Sizes of the language model and of the vision layers. vLLM needs heads of at least 32 on a CPU.
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}
VISION = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "depth": 2,
    "num_heads": 2,
    "out_hidden_size": 64,
    "fullatt_block_indexes": [1],
}

END, STOP, START = "<|endoftext|>", "<|im_end|>", "<|im_start|>"

#: The marks around an image, and those that stand for an image and a video, by their keys.
IMAGE_MARKS = {
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
}

#: The least pixels of an image: four tokens, of 28 pixels on each side.
MIN_PIXELS = 4 * 28 * 28

#: A message's content is a text, or a list of parts, of which some are images.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}"
    "{% else %}<|vision_start|><|{{ part['type'] }}_pad|><|vision_end|>{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model(folder: Path, positions: int, pixels: int = 0) -> None:
    """Write a model and its tokenizer, as transformers loads them.

    Args:
        folder: the folder; it is created.
        positions: the longest sequence, in tokens.
        pixels: the most pixels of an image, larger ones are scaled down; 0 for a model of text.
    """
    tokenizer = make_tokenizer(positions, [START, *(IMAGE_MARKS.values() if pixels else ())])
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": positions}
    text = {**TEXT, **ends, **sizes, "bos_token_id": None}
    torch.manual_seed(1)
    if pixels:
        model = make_vision_model(tokenizer, text)
        limits = {"min_pixels": MIN_PIXELS, "max_pixels": pixels}
        processor = transformers.Qwen2_5_VLProcessor(
            transformers.Qwen2VLImageProcessor(**limits),
            tokenizer,
            transformers.Qwen2VLVideoProcessor(**limits),
            chat_template=TEMPLATE,
        )
        processor.save_pretrained(folder)
    else:
        model = transformers.AutoModelForCausalLM.from_config(transformers.Qwen2Config(**text))
        tokenizer.save_pretrained(folder)
    model.generation_config = transformers.GenerationConfig(**ends)
    model.save_pretrained(folder)


def make_tokenizer(positions: int, marks: list[str]) -> Any:
    """Return a tokenizer with one token per byte, and these marks beside END and STOP."""
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    vocabulary = {letter: number for number, letter in enumerate(sorted(level.alphabet()))}
    bytewise = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    bytewise.pre_tokenizer, bytewise.decoder = level, tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        eos_token=STOP,
        pad_token=END,
        additional_special_tokens=marks,
        model_max_length=positions,
        clean_up_tokenization_spaces=False,
        chat_template=TEMPLATE,
    )


def make_vision_model(tokenizer: Any, text: dict[str, Any]) -> Any:
    """Return a Qwen2.5-VL that never samples a mark of an image.

    A response with such a mark would make a model look for an image that is not there. The first of
    a vector's dimensions is constant, and the head forbids the marks by it alone.
    """
    marks = {key: tokenizer.convert_tokens_to_ids(mark) for key, mark in IMAGE_MARKS.items()}
    # Times, heights and widths share the 16 rotary frequencies of a head.
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
    config = transformers.Qwen2_5_VLConfig(
        text_config={**text, "rope_parameters": rope}, vision_config=VISION, **marks
    )
    model = transformers.AutoModelForImageTextToText.from_config(config)
    with torch.no_grad():
        model.get_input_embeddings().weight[:, 0] = 1.0
        model.model.visual.merger.mlp[2].bias[0] = 1.0
        model.lm_head.weight[:, 0] = 0.0
        model.lm_head.weight[list(marks.values()), 0] = -10.0
    return model
