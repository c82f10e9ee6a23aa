"""Which responses answer one prompt: they are alike, and count for less than so many others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rewardkit.responses.samples import Sample

#: The names under which prompts are found; verl's dumps say `input`.
PROMPT_KEYS = ("input", "prompt", "question", "problem")

#: What a row is known by where it has no prompt.
INDEX_KEYS = ("uid", "index")


def prompt_of(sample: Sample) -> str:
    """What was asked, as text; "" if the row does not say."""
    for place in (sample.fields, sample.extra_info):
        for key in PROMPT_KEYS:
            if value := place.get(key):
                return value if isinstance(value, str) else _said(value)
    return ""


def group_of(sample: Sample, prompt: str) -> str:
    """The same for all responses to one prompt: the prompt, else its number, else the line."""
    if prompt:
        return prompt
    places = (sample.fields, sample.extra_info)
    numbers = (place.get(key) for key in INDEX_KEYS for place in places)
    known = next((value for value in numbers if value is not None), sample.where)
    return f"{type(known).__name__} {known}"


def _said(prompt: Any) -> str:
    """A prompt as text; of a chat, its messages, each with its role."""
    if isinstance(prompt, list) and all(isinstance(message, Mapping) for message in prompt):
        return "\n\n".join(f"{m.get('role', '')}: {m.get('content', '')}" for m in prompt)
    return json.dumps(prompt, default=str)
