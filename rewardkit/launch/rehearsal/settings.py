"""The settings of a rehearsal: the user's, with those of `settings.yaml` in place of some."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.rehearsal.sample import PictureTokens, RowSample
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import release_of

#: What verl composes from the user's settings, dotted key -> value.
Config: TypeAlias = Mapping[str, Any]

#: The release that can be rehearsed.
VERL = "0.9.1"

#: Responses and prompts of a step, and responses to each prompt of a validation.
TARGET_RESPONSES, MAX_PROMPTS, MAX_VALIDATION_RESPONSES = 32, 8, 4

#: A token is a byte. Longer prompts are cut from the left, with a note; those with pictures never.
MAX_RESPONSE_TOKENS, MAX_PROMPT_TOKENS, MAX_PICTURE_PROMPT_TOKENS = 32, 2048, 4096

A = "actor_rollout_ref."


@dataclass(frozen=True, kw_only=True)
class RehearsalPlan:
    """The rows and settings of a rehearsal, and how they differ from the user's plan.

    Attributes:
        folder: the folder of the rehearsal.
        steps: steps of training.
        train: the rows to train on; each of them is trained on.
        val: the rows to validate on.
        pictures: the pictures of both; None if they have none.
        max_prompt: the most tokens of a prompt in the user's plan; 0 if its model makes other tokens
            of pictures than Qwen2.5-VL.
        reward_manager: the name of verl's reward manager; "" if it is not known.
        varied_metric: the scorer's metric that is set in turns, for dynamic sampling; "" for none.
        tokens: the longest sequence.
        overrides: the overrides for verl's trainer.
        notes: what the rehearsal does in another way than the plan.
        not_rehearsed: parts of the plan that the rehearsal leaves out.
    """

    folder: Path
    steps: int
    train: RowSample
    val: RowSample
    pictures: PictureTokens | None = None
    max_prompt: int = 0
    reward_manager: str = ""
    varied_metric: str = ""
    tokens: int = 0
    overrides: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    not_rehearsed: tuple[str, ...] = ()


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return a table of `settings.yaml`."""
    import yaml

    text = Path(__file__).with_name("settings.yaml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return tables[name]


def sample_rows(config: Config, steps: int) -> int:
    """Return the rows that steps of a small batch take.

    Raises:
        UsageError: a size of the configuration is not a positive integer.
    """
    prompts = min(max(2, TARGET_RESPONSES // _positive(config, f"{A}rollout.n")), MAX_PROMPTS)
    return min(prompts, _positive(config, "data.train_batch_size")) * steps


def make_plan(
    user_overrides: Sequence[Override],
    config: Config,
    folder: Path,
    steps: int,
    train: RowSample,
    val: RowSample,
    pictures: PictureTokens | None = None,
) -> RehearsalPlan:
    """Return the plan of a rehearsal.

    Raises:
        UsageError: a size of the configuration is not a positive integer, or a prompt with pictures
            would have to be cut.
    """
    longest = max(train.longest, val.longest)
    limit = MAX_PICTURE_PROMPT_TOKENS if pictures else MAX_PROMPT_TOKENS
    if pictures and longest > limit:
        raise UsageError(
            f"a prompt of rows with pictures has {longest:,} bytes; a rehearsal takes at most "
            f"{limit:,}, because cutting it might remove the mark of a picture."
        )
    prompt = -(-(min(limit, longest) + (pictures.longest if pictures else 0)) // 64) * 64
    response = min(MAX_RESPONSE_TOKENS, _positive(config, "data.max_response_length"))
    values = _batches(config, train.rows, steps) | {
        "steps": steps,
        "epochs": 4 * steps,  # dynamic sampling may take several batches a step
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
    } | _reward(config, response)
    if longest > limit:
        ours |= {"data.truncation": "left", "data.filter_overlong_prompts": False}
    for key in ("trainer.rollout_data_dir", "trainer.validation_data_dir"):
        if config.get(key):
            ours[key] = str(folder / key.rpartition(".")[2])
    is_megatron = config.get(f"{A}actor.strategy") == "megatron"
    is_filtered = config.get("algorithm.filter_groups.enable") is True
    is_qwen2_vl = has_tokens_of_qwen2_vl(str(config.get(f"{A}model.path") or ""))
    notes = {
        "megatron": is_megatron,
        "mode": config.get("trainer.v1.trainer_mode", "sync") != "sync",
        "cut": longest > limit,
        "filter": is_filtered,
        "scaled": pictures is not None and pictures.planned != pictures.rehearsed,
        "family": pictures is not None and not is_qwen2_vl,
    }
    left_out = {
        "tools": config.get(f"{A}rollout.multi_turn.enable"),
        "lora": (config.get(f"{A}model.lora_rank") or 0) > 0,
    }
    others = [str(o) for o in user_overrides if o.key not in ours and _is_kept(o, is_megatron)]
    return RehearsalPlan(
        folder=folder,
        steps=steps,
        train=train,
        val=val,
        pictures=pictures,
        max_prompt=int(config["data.max_prompt_length"]) if is_qwen2_vl else 0,
        reward_manager=str(config.get("reward.reward_manager.name") or ""),
        varied_metric=str(config["algorithm.filter_groups.metric"]) if is_filtered else "",
        tokens=prompt + response,
        overrides=(*others, *(f"++{key}={format_value(value)}" for key, value in ours.items())),
        notes=tuple(table("notes")[name] for name, holds in notes.items() if holds),
        not_rehearsed=tuple(
            table("not_rehearsed")[name] for name, holds in left_out.items() if holds
        ),
    )


def has_tokens_of_qwen2_vl(model: str) -> bool:
    """Whether a model is Qwen2-VL or Qwen2.5-VL, by its name."""
    name = model.rstrip("/").rpartition("/")[2]
    return bool(re.match(r"qwen-?2(\.5)?-?vl", name, re.IGNORECASE))


def _is_kept(override: Override, is_megatron: bool) -> bool:
    key, release = override.key, release_of(VERL)
    if override.is_group or any(part in f"{key}." for part in table("dropped")):
        return False
    # What only Megatron's trainer lists does not compose with FSDP's configuration.
    is_known = override.sign or release.lists(key) or release.accepts_unlisted(key)
    return not is_megatron or bool(is_known)


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


def _reward(config: Config, response: int) -> dict[str, Any]:
    """Return the overlong penalty at the rehearsal's length, and no record among the run's rewards."""
    options, ours = "reward.reward_kwargs", dict[str, Any]()
    if config.get("reward.custom_reward_function.reward_kwargs.record"):
        ours["reward.custom_reward_function.reward_kwargs.record"] = None
    longest = config.get(f"{options}.max_resp_len") or config.get("data.max_response_length")
    buffer = config.get(f"{options}.overlong_buffer_cfg.len")
    if isinstance(buffer, (int, float)) and isinstance(longest, (int, float)) and longest > 0:
        share = min(1.0, buffer / longest)
        ours[f"{options}.overlong_buffer_cfg.len"] = max(1, round(share * response))
    if buffer is not None or f"{options}.max_resp_len" in config:
        ours[f"{options}.max_resp_len"] = response
    return ours


def _positive(config: Config, key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"{key}={value}: verl needs a whole number from 1 on.")
    return value
