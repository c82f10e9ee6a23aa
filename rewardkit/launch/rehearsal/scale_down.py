"""The overrides of a rehearsal, made of the user's and of what is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rewardkit.launch.overrides import Override
from rewardkit.launch.rehearsal.scale import Scale
from rewardkit.launch.rehearsal.substitutions import LEFT_OUT, NOTES, A, Config, Place, table
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, Release
from rewardkit.launch.verl.reward_keys import NEW_KEY, NEW_KEY_SINCE, OLD_KEY

#: From this release on verl has a logger that writes a file.
FILE_LOGGER_SINCE = (0, 6, 0)


def overrides_of(
    user_overrides: Sequence[Override], config: Config, scale: Scale, place: Place, release: Release
) -> list[str]:
    """The rehearsal's overrides: the user's that stay, then ours.

    Args:
        user_overrides: those of the user's plan.
        config: what verl composes from them, dotted key -> value.
        scale: the sizes.
        place: where things are.
        release: whose keys exist.
    """
    ours: dict[str, Any] = {}
    for group in table(scale, place).values():
        ours |= {key: value for key, value in group.items() if _has(release, key)}
    ours |= _reward(config, scale, place, release)
    ours |= _outputs(config, place, release)
    foreign = is_megatron(config) or uses_recipe(user_overrides, release)
    theirs = [
        str(override)
        for override in user_overrides
        if override.key not in ours and _stays(override, release, foreign=foreign)
    ]
    return theirs + [f"++{key}={format_value(value)}" for key, value in ours.items()]


#: A key that verl does not list and reads all the same.
UNLISTED = f"{A}rollout.enable_sleep_mode"


def _has(release: Release, key: str) -> bool:
    return release.lists(key) or release.accepts_unlisted(key) or key == UNLISTED


def _stays(override: Override, release: Release, *, foreign: bool) -> bool:
    key = override.key
    if override.is_group or any(part in f"{key}." for part in LEFT_OUT):
        return False
    # What only another trainer lists does not compose with the main trainer's configuration.
    return not foreign or bool(override.sign) or release.lists(key) or release.accepts_unlisted(key)


def is_megatron(config: Config) -> bool:
    """Whether the user's actor is Megatron's."""
    return config.get(f"{A}actor.strategy") == "megatron"


def uses_recipe(overrides: Iterable[Override], release: Release) -> bool:
    """Whether the overrides are for verl's DAPO recipe, whose keys the main trainer lacks."""
    return any(
        o.key in DAPO_RECIPE_KEYS and not o.sign and not release.lists(o.key) for o in overrides
    )


def reward_keys(release: Release) -> tuple[str, str]:
    """Where this release has the custom function, and the manager's settings."""
    if release.number >= NEW_KEY_SINCE:
        return NEW_KEY, "reward"
    return OLD_KEY, "reward_model"


def reward_of(config: Config, release: Release) -> tuple[str, str] | None:
    """The user's reward function, as path and name; None where verl's own judges."""
    key = reward_keys(release)[0]
    path, name = config.get(f"{key}.path"), config.get(f"{key}.name")
    return (str(path), str(name or "compute_score")) if path else None


def _reward(config: Config, scale: Scale, place: Place, release: Release) -> dict[str, Any]:
    """The watched reward function, and the overlong penalty at the rehearsal's length."""
    function, section = reward_keys(release)
    options = f"{section}.reward_kwargs"
    ours: dict[str, Any] = {f"{function}.path": str(place.reward)} if place.reward else {}
    if section == "reward_model":  # the recipe's default is another than the main trainer's
        ours["reward_model.reward_manager"] = config.get("reward_model.reward_manager")
    longest = config.get(f"{options}.max_resp_len") or config.get("data.max_response_length")
    buffer = _overlong(config, options, longest, scale)
    if buffer or f"{options}.max_resp_len" in config:
        ours[f"{options}.max_resp_len"] = scale.response
    return ours | buffer


def _overlong(config: Config, options: str, longest: Any, scale: Scale) -> dict[str, Any]:
    """The buffer in proportion; the one of verl's DAPO recipe where the main trainer reads it."""
    there = f"{options}.overlong_buffer_cfg."
    found = _below(config, there) or _below(config, "reward_model.overlong_buffer.")
    length = found.get("len")
    if not isinstance(length, (int, float)) or not isinstance(longest, (int, float)):
        return {}
    share = min(1.0, length / longest) if longest > 0 else 1.0
    scaled = {**found, "len": max(1, round(share * scale.response))}
    return {f"{there}{name}": value for name, value in scaled.items()}


def _below(config: Config, prefix: str) -> dict[str, Any]:
    return {key[len(prefix) :]: v for key, v in config.items() if key.startswith(prefix)}


def _outputs(config: Config, place: Place, release: Release) -> dict[str, Any]:
    """The logger, and dumps of responses where the user has them or nothing else tells of them."""
    to_file = release.number >= FILE_LOGGER_SINCE
    ours: dict[str, Any] = {"trainer.logger": ["console", "file"] if to_file else ["console"]}
    wanted = config.get("trainer.rollout_data_dir")
    if wanted or place.reward is None:
        ours["trainer.rollout_data_dir"] = str(place.folder / "rollouts")
    if config.get("trainer.validation_data_dir"):
        ours["trainer.validation_data_dir"] = str(place.folder / "validation")
    logged = "reward_model.reward_kwargs.overlong_buffer_cfg.log"
    if place.reward is None and not wanted and not to_file and config.get(logged):
        ours[logged] = False  # verl 0.5 cannot write the tensors of this log into a dump
    return ours


def notes(config: Config, scale: Scale, *, recipe: bool) -> tuple[str, ...]:
    """What the user should know of the replacements."""
    rollout = f"{A}rollout."
    said = {
        "megatron": is_megatron(config),
        "tools": config.get(f"{rollout}multi_turn.enable"),
        "agent": config.get(f"{rollout}agent.agent_loop_config_path"),
        "mode": config.get("trainer.v1.trainer_mode", "sync") != "sync",
        "cut": scale.cut,
        "filter": config.get("algorithm.filter_groups.enable"),
        "lora": (config.get(f"{A}model.lora_rank") or 0) > 0,
        "recipe": recipe,
    }
    return tuple(NOTES[name] for name, holds in said.items() if holds)
