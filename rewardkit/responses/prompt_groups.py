"""Which responses answer the same prompt: they are alike and count as one cluster of an interval."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rewardkit.responses.samples import Sample

#: The keys under which a prompt is looked up; verl's dumps have `input`.
PROMPT_KEYS = ("input", "prompt", "question", "problem")

#: The keys that identify a row without a prompt.
INDEX_KEYS = ("uid", "index")


def prompt_text(sample: Sample) -> str:
    """Return the prompt as text; "" if the row does not have it."""
    for fields in (sample.fields, sample.extra_info):
        for key in PROMPT_KEYS:
            if value := fields.get(key):
                return value if isinstance(value, str) else _as_text(value)
    return ""


def prompt_group(sample: Sample, prompt: str) -> str:
    """Return a text that responses to one prompt share: the prompt, its index, or else the line.

    Every data source and split counts its rows from 0.
    """
    if prompt:
        return prompt
    identity = _first_value(sample, *INDEX_KEYS)
    if identity is None:
        return sample.where
    source, split = _first_value(sample, "data_source"), _first_value(sample, "split")
    return f"{source} {split} {type(identity).__name__} {identity}"


def _first_value(sample: Sample, *keys: str) -> Any:
    rows = (sample.fields, sample.extra_info)
    values = (row.get(key) for key in keys for row in rows)
    return next((value for value in values if value is not None), None)


def _as_text(prompt: Any) -> str:
    """Return a prompt as text; a chat as its messages, each with its role."""
    if isinstance(prompt, list) and all(isinstance(message, Mapping) for message in prompt):
        return "\n\n".join(f"{m.get('role', '')}: {m.get('content', '')}" for m in prompt)
    return json.dumps(prompt, default=str)
