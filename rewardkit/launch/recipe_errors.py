"""Messages for a recipe that cannot be read: one line for each mistake."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel

from rewardkit.launch.verl.releases import LATEST, release_of
from rewardkit.registry import did_you_mean

#: Words of other tools, and the recipe's words for them.
_ALIASES = {"cuda": "gpu", "ascend": "npu", "dapo_trainer": "dapo", "gae": "ppo"}

#: An example of each section, for a recipe that has a single value in its place.
_SECTIONS = {
    "data": "data: {train: FILE.parquet}",
    "reward": "reward: {scorer: NAME}",
    "cluster": "cluster: {target: NAME}",
    "dapo": "dapo: {clip_ratio_high: 0.28}",
    "dapo.overlong_buffer": "overlong_buffer: {len: 4096}",
    "dapo.dynamic_sampling": "dynamic_sampling: {metric: acc}",
}


def format_error(error: Any, where: str, recipe: type[BaseModel]) -> str:
    """Return the line for one error of pydantic.

    Args:
        error: an item of `ValidationError.errors()`.
        where: the recipe's name or file.
        recipe: the recipe's model.
    """
    parts = error["loc"][:-2] if error["loc"][-1:] == ("[key]",) else error["loc"]
    place = ".".join(str(part) if str(part).isprintable() else repr(part) for part in parts)
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key {place!r}.{_key_suggestion(error['loc'], recipe)}"
    if error["type"] == "missing":
        return f"{where}: {place!r} is missing."
    value = error.get("input")
    quoted = f" (it is {value!r})" if not isinstance(value, (dict, list)) else ""
    if error["type"] in {"model_type", "model_attributes_type", "dict_type"}:
        example = f", as in `{_SECTIONS[place]}`" if place in _SECTIONS else ""
        return f"{where}: {place}: should be a mapping{example}{quoted}."
    near = _word_suggestion(error, value) if error["type"] == "literal_error" else ""
    return f"{where}: {place}: {error['msg'][0].lower()}{error['msg'][1:]}{quoted}.{near}"


def _word_suggestion(error: Any, value: Any) -> str:
    known = re.findall(r"'([^']*)'", error["ctx"]["expected"])
    word = _ALIASES.get(str(value).lower(), str(value).lower())
    return f" Did you mean {word!r}?" if word in known else did_you_mean(word, known)


def _key_suggestion(loc: tuple[Any, ...], recipe: type[BaseModel]) -> str:
    """Suggest a name for an unknown key, or the section that a key of verl belongs to."""
    model: Any = recipe
    for part in loc[:-1]:
        field = model.model_fields.get(part) if hasattr(model, "model_fields") else None
        model = field.annotation if field else None
    name = str(loc[-1])
    keys = release_of(LATEST).keys
    if len(loc) == 1 and any(key.startswith(f"{name.partition('.')[0]}.") for key in keys):
        return " Settings of verl stand under `verl:`."
    near = did_you_mean(name, list(getattr(model, "model_fields", {})))
    ending = [key for key in keys if key.endswith(f".{name}")]
    if near or not ending:
        return near
    return f" verl has {ending[0]}: write it under `verl:`."
