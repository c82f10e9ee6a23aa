"""The settings of a rehearsal: the user's, with those of `settings.yaml` in place of some."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.rehearsal.sample import ImageTokens, RowSample
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import release_of
from rewardkit.strict_yaml import read_table

#: What verl composes from the user's settings, dotted key -> value.
Config: TypeAlias = Mapping[str, Any]

#: The release that can be rehearsed.
VERL = "0.9.1"

#: Responses and prompts of a step, and responses to each prompt of a validation.
TARGET_RESPONSES, MAX_PROMPTS, MAX_VALIDATION_RESPONSES = 32, 8, 4

#: A token is a byte. Longer prompts are cut from the left, with a note; those with images never.
MAX_RESPONSE_TOKENS, MAX_PROMPT_TOKENS, MAX_IMAGE_PROMPT_TOKENS = 32, 2048, 4096

A = "actor_rollout_ref."

#: Qwen2-VL or Qwen2.5-VL, by the end of a model's path: their images have the tokens of a rehearsal's.
QWEN2_VL = re.compile(r"(?:.*/)?qwen-?2(\.5)?-?vl[^/]*/*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class RehearsalPlan:
    """The rows and settings of a rehearsal, and how they differ from the user's plan, which is `config`.

    `images` are those of `train` and `val`; `tokens` is the longest sequence; `overrides` are for verl's trainer.
    """

    folder: Path
    steps: int
    train: RowSample
    val: RowSample
    images: ImageTokens | None = None
    config: Config = field(default_factory=dict)
    tokens: int = 0
    overrides: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    not_rehearsed: tuple[str, ...] = ()


def table(name: str) -> Mapping[str, Any]:
    """Return a table of `settings.yaml`."""
    tables: dict[str, dict[str, Any]] = read_table(__file__, "settings.yaml")
    return tables[name]


def sample_rows(config: Config, steps: int) -> int:
    """Return the rows that steps of a small batch take."""
    prompts = min(max(2, TARGET_RESPONSES // _positive(config, f"{A}rollout.n")), MAX_PROMPTS)
    return min(prompts, _positive(config, "data.train_batch_size")) * steps


def make_plan(
    user_overrides: Sequence[Override],
    config: Config,
    folder: Path,
    steps: int,
    train: RowSample,
    val: RowSample,
    images: ImageTokens | None = None,
) -> RehearsalPlan:
    """Return the plan of a rehearsal."""
    longest = max(train.longest, val.longest)
    limit = MAX_IMAGE_PROMPT_TOKENS if images else MAX_PROMPT_TOKENS
    is_cut = longest > limit
    if images and is_cut:
        raise UsageError(
            f"a prompt of rows with images has {longest:,} bytes; a rehearsal takes at most "
            f"{limit:,}, because cutting it might remove the mark of an image."
        )
    prompt = -(-(min(limit, longest) + (images.longest if images else 0)) // 64) * 64
    response = min(MAX_RESPONSE_TOKENS, _positive(config, "data.max_response_length"))
    values = _batches(config, train.rows, steps) | {
        "steps": steps,
        "prompt": prompt,
        "response": response,
        "tokens": prompt + response,
        "batched_tokens": max(2048, prompt + response),
        "train": [str(file) for file in train.files],
        "val": [str(file) for file in val.files],
        "model": str(folder / "model"),
        "checkpoint": str(folder / "checkpoint"),
    }
    ours = {
        key: values[value[1:]] if str(value).startswith("$") else value
        for key, value in table("overrides").items()
    }
    if is_cut:
        ours |= {"data.truncation": "left", "data.filter_overlong_prompts": False}
    for key, value in table("in_place_of").items():
        if config.get(key):
            ours[key] = value and str(folder / value)
    differences = {
        "megatron": config.get(f"{A}actor.strategy") == "megatron",
        "mode": config.get("trainer.v1.trainer_mode", "sync") != "sync",
        "cut": is_cut,
        "scaled": images is not None and images.is_scaled,
        "family": images is not None and not QWEN2_VL.fullmatch(str(config.get(f"{A}model.path"))),
        "filter": config.get("algorithm.filter_groups.enable") is True,
        "tools": config.get(f"{A}rollout.multi_turn.enable"),
        "lora": (config.get(f"{A}model.lora_rank") or 0) > 0,
    }
    notes, not_rehearsed = (
        tuple(text for name, text in table(each).items() if differences[name])
        for each in ("notes", "not_rehearsed")
    )
    others = [str(o) for o in user_overrides if o.key not in ours and _is_kept(o)]
    return RehearsalPlan(
        folder=folder,
        steps=steps,
        train=train,
        val=val,
        images=images,
        config=config,
        tokens=prompt + response,
        overrides=(*others, *(f"++{key}={format_value(value)}" for key, value in ours.items())),
        notes=notes,
        not_rehearsed=not_rehearsed,
    )


def _is_kept(override: Override) -> bool:
    key, release = override.key, release_of(VERL)
    if override.is_group or any(part in f"{key}." for part in table("dropped")):
        return False
    # What only Megatron's trainer lists does not compose with FSDP's configuration.
    return bool(override.sign or release.lists(key) or release.accepts_unlisted(key))


def _batches(config: Config, rows: int, steps: int) -> dict[str, Any]:
    """Return the sizes of batches, with as many updates per step as planned."""
    # verl leaves out the rows of an epoch that fill no batch.
    prompts = rows // steps if rows % steps == 0 else rows
    minibatch = _positive(config, f"{A}actor.ppo_mini_batch_size")
    per_update = max(1, prompts // max(1, _positive(config, "data.train_batch_size") // minibatch))
    validation = _positive(config, f"{A}rollout.val_kwargs.n")
    return {
        "prompts": prompts,
        "minibatch": max(n for n in range(1, per_update + 1) if prompts % n == 0),
        "responses": _positive(config, f"{A}rollout.n"),
        "validation": min(MAX_VALIDATION_RESPONSES, validation),
    }


def _positive(config: Config, key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"{key}={value}: verl needs a whole number from 1 on.")
    return value
