"""The overrides of a rehearsal: the user's, with the substitutions in place of some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rewardkit.launch.overrides import Override
from rewardkit.launch.rehearsal.pictures import PictureSample
from rewardkit.launch.rehearsal.rehearsal_scale import RehearsalScale
from rewardkit.launch.rehearsal.substitutions import (
    DROPPED_KEYS,
    KEPT_SINCE_AGENT_LOOPS,
    NOT_REHEARSED,
    NOTES,
    A,
    Config,
    SandboxPaths,
    substitutions_by_reason,
)
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, Release
from rewardkit.launch.verl.reward_keys import NEW_KEY, NEW_KEY_SINCE, OLD_KEY

#: verl has a logger to a file from this release on.
FILE_LOGGER_SINCE = (0, 6, 0)

#: verl's trainer has agent loops and dynamic sampling of its own from this release on.
AGENT_LOOPS_SINCE = (0, 9, 0)


def rehearsal_overrides(
    user_overrides: Sequence[Override],
    config: Config,
    scale: RehearsalScale,
    paths: SandboxPaths,
    release: Release,
) -> list[str]:
    """Return the overrides of a rehearsal: the user's that it keeps, then the substitutions.

    Args:
        user_overrides: the overrides of the user's plan.
        config: what verl composes from them, dotted key -> value.
        scale: the sizes.
        paths: the files of the sandbox.
        release: the installed release.
    """
    ours: dict[str, Any] = {}
    for group in substitutions_by_reason(scale, paths).values():
        ours |= {key: value for key, value in group.items() if _has(release, key)}
    for key in KEPT_SINCE_AGENT_LOOPS if release.number >= AGENT_LOOPS_SINCE else ():
        ours.pop(key, None)
    if varied_metric(config, release):
        ours.pop("algorithm.filter_groups.enable")
    ours |= _reward(config, scale, paths, release)
    ours |= _outputs(config, paths, release)
    foreign = is_megatron(config) or uses_dapo_recipe(user_overrides, release)
    theirs = [
        str(override)
        for override in user_overrides
        if override.key not in ours and _is_kept(override, release, foreign=foreign)
    ]
    return theirs + [f"++{key}={format_value(value)}" for key, value in ours.items()]


#: A key that verl reads although it does not list it.
UNLISTED = f"{A}rollout.enable_sleep_mode"


def _has(release: Release, key: str) -> bool:
    return release.lists(key) or release.accepts_unlisted(key) or key == UNLISTED


def _is_kept(override: Override, release: Release, *, foreign: bool) -> bool:
    key = override.key
    if override.is_group or any(part in f"{key}." for part in DROPPED_KEYS):
        return False
    # What only another trainer lists does not compose with the main trainer's configuration.
    return not foreign or bool(override.sign) or release.lists(key) or release.accepts_unlisted(key)


def is_megatron(config: Config) -> bool:
    """Whether the user's actor is Megatron's."""
    return config.get(f"{A}actor.strategy") == "megatron"


def is_qwen2_vl(config: Config) -> bool:
    """Whether the user's model has a name of Qwen2-VL or Qwen2.5-VL."""
    name = str(config.get(f"{A}model.path") or "").rstrip("/").rpartition("/")[2]
    return bool(re.match(r"qwen-?2(\.5)?-?vl", name, re.IGNORECASE))


def uses_dapo_recipe(overrides: Iterable[Override], release: Release) -> bool:
    """Whether the overrides are for verl's DAPO recipe, whose keys the main trainer lacks."""
    return any(
        o.key in DAPO_RECIPE_KEYS and not o.sign and not release.lists(o.key) for o in overrides
    )


def reward_keys(release: Release) -> tuple[str, str]:
    """Return the sections of the custom function and of the reward manager in a release."""
    if release.number >= NEW_KEY_SINCE:
        return NEW_KEY, "reward"
    return OLD_KEY, "reward_model"


def reward_function(config: Config, release: Release) -> tuple[str, str] | None:
    """Return path and name of the user's reward function; None where verl's own judges."""
    key = reward_keys(release)[0]
    path, name = config.get(f"{key}.path"), config.get(f"{key}.name")
    return (str(path), str(name or "compute_score")) if path else None


def _reward(
    config: Config, scale: RehearsalScale, paths: SandboxPaths, release: Release
) -> dict[str, Any]:
    """Return the recorded reward function, and the overlong penalty at the rehearsal's length."""
    function, section = reward_keys(release)
    options = f"{section}.reward_kwargs"
    ours: dict[str, Any] = {f"{function}.path": str(paths.reward)} if paths.reward else {}
    if config.get(f"{function}.reward_kwargs.record"):
        ours[f"{function}.reward_kwargs.record"] = None  # these are not rewards of the run
    if section == "reward_model":  # the recipe's default differs from the main trainer's
        ours["reward_model.reward_manager"] = config.get("reward_model.reward_manager")
    longest = config.get(f"{options}.max_resp_len") or config.get("data.max_response_length")
    buffer = _overlong(config, options, longest, scale)
    if buffer or f"{options}.max_resp_len" in config:
        ours[f"{options}.max_resp_len"] = scale.response
    return ours | buffer


def _overlong(config: Config, options: str, longest: Any, scale: RehearsalScale) -> dict[str, Any]:
    """Return the overlong buffer in proportion, under the keys that the main trainer reads."""
    section = f"{options}.overlong_buffer_cfg."
    buffer = _below(config, section) or _below(config, "reward_model.overlong_buffer.")
    length = buffer.get("len")
    if not isinstance(length, (int, float)) or not isinstance(longest, (int, float)):
        return {}
    share = min(1.0, length / longest) if longest > 0 else 1.0
    scaled = {**buffer, "len": max(1, round(share * scale.response))}
    return {f"{section}{name}": value for name, value in scaled.items()}


def _below(config: Config, prefix: str) -> dict[str, Any]:
    return {key[len(prefix) :]: v for key, v in config.items() if key.startswith(prefix)}


def _outputs(config: Config, paths: SandboxPaths, release: Release) -> dict[str, Any]:
    """Return the logger, and dumps of responses where the user has them or no recorder is there."""
    to_file = release.number >= FILE_LOGGER_SINCE
    ours: dict[str, Any] = {"trainer.logger": ["console", "file"] if to_file else ["console"]}
    has_dumps = config.get("trainer.rollout_data_dir")
    if has_dumps or paths.reward is None:
        ours["trainer.rollout_data_dir"] = str(paths.folder / "rollouts")
    if config.get("trainer.validation_data_dir"):
        ours["trainer.validation_data_dir"] = str(paths.folder / "validation")
    logged = "reward_model.reward_kwargs.overlong_buffer_cfg.log"
    if paths.reward is None and not has_dumps and not to_file and config.get(logged):
        ours[logged] = False  # verl 0.5 cannot write the tensors of this log into a dump
    return ours


def reward_manager(config: Config, release: Release) -> str:
    """Return the name of the plan's reward manager; "" if the configuration has none."""
    section = reward_keys(release)[1]
    name = config.get(f"{section}.reward_manager.name") or config.get(f"{section}.reward_manager")
    return str(name or "")


def tool_config(config: Config, release: Release) -> str:
    """Return the file of a plan's tools where the rehearsal does not use them; "" for none."""
    section = f"{A}rollout.multi_turn."
    has_tools = config.get(f"{section}enable") and release.number < AGENT_LOOPS_SINCE
    return str(config.get(f"{section}tool_config_path") or "") if has_tools else ""


def varied_metric(config: Config, release: Release) -> str:
    """Return the metric by which groups are kept, if dynamic sampling is rehearsed; else ""."""
    is_rehearsed = (
        config.get("algorithm.filter_groups.enable") is True
        and release.number >= AGENT_LOOPS_SINCE
        and reward_function(config, release) is not None
    )
    return str(config.get("algorithm.filter_groups.metric") or "") if is_rehearsed else ""


def notes(
    config: Config,
    scale: RehearsalScale,
    release: Release,
    *,
    uses_recipe: bool,
    pictures: PictureSample | None = None,
) -> tuple[str, ...]:
    """Return what a rehearsal does in another way than its plan."""
    conditions = {
        "megatron": is_megatron(config),
        "mode": config.get("trainer.v1.trainer_mode", "sync") != "sync",
        "cut": scale.is_cut,
        "recipe": uses_recipe,
        "filter": varied_metric(config, release),
        "scaled": pictures is not None and pictures.is_scaled,
        "family": pictures is not None and not is_qwen2_vl(config),
    }
    return tuple(NOTES[name] for name, holds in conditions.items() if holds)


def not_rehearsed(config: Config, release: Release) -> tuple[str, ...]:
    """Return the parts of a plan that its rehearsal leaves out."""
    rollout, has_loops = f"{A}rollout.", release.number >= AGENT_LOOPS_SINCE
    has_tools = config.get(f"{rollout}multi_turn.enable")
    is_filtered = config.get("algorithm.filter_groups.enable")
    conditions = {
        "tools": has_tools and not has_loops,
        "calls": has_tools and has_loops,
        "agent": config.get(f"{rollout}agent.agent_loop_config_path") and not has_loops,
        "filter": is_filtered and has_loops and not varied_metric(config, release),
        "recipe_filter": is_filtered and not has_loops,
        "lora": (config.get(f"{A}model.lora_rank") or 0) > 0,
    }
    return tuple(NOT_REHEARSED[name] for name, holds in conditions.items() if holds)
