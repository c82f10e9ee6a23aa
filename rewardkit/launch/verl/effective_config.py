"""The configuration that verl composes from a plan's overrides, and which overrides it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rewardkit.launch.overrides import Override
from rewardkit.launch.verl.hydra_values import parse_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, Release
from rewardkit.launch.verl.reward_keys import NEW_KEY

#: Settings that a plan passes even where they are verl's default, by verl 0.9.1's names: what a run
#: is, and what it needs, is in its command.
PINNED = frozenset(
    {"algorithm.adv_estimator", "trainer.nnodes", "trainer.n_gpus_per_node", f"{NEW_KEY}.name"}
)

#: The settings of the reference model, and those that make verl load one.
REFERENCE_SECTION = "actor_rollout_ref.ref."
REFERENCE_SWITCHES = ("actor_rollout_ref.actor.use_kl_loss", "algorithm.use_kl_in_reward")

#: `${data.seed}`, `${oc.select:data.seed,1}`, and the same relative to the key's section (`.x`).
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?(\.*[\w.]+)(?:,([^{}]*))?\}")


def effective_config(release: Release, overrides: Iterable[Override]) -> dict[str, Any]:
    """Return the effective configuration of a release by verl 0.9.1's names."""
    values = {**release.keys, **{override.key: override.value for override in overrides}}
    return {release.latest_name_of(name): _resolve(name, values) for name in values}


def without_ballast(overrides: Iterable[Override], release: Release) -> list[Override]:
    """Return the overrides that verl needs: without those of ours that change nothing.

    These repeat a default of the release, or are for a reference model that the run does not load.
    What a person wrote stays, and so do the settings in `PINNED` and those of verl's DAPO recipe,
    whose defaults are not in the wheel.
    """
    overrides = list(overrides)
    values = {**release.keys, **{override.key: override.value for override in overrides}}
    has_reference = any(_resolve(key, values) is True for key in REFERENCE_SWITCHES)
    needed = []
    for override in overrides:
        key = override.key
        if not _may_be_left_out(override, release):
            needed.append(override)
            continue
        if key.startswith(REFERENCE_SECTION) and not has_reference:
            continue
        value = _resolve(key, values)
        values[key] = release.keys[key]
        default = _resolve(key, values)
        if isinstance(value, bool) != isinstance(default, bool) or value != default:
            values[key] = override.value
            needed.append(override)
    return needed


def _may_be_left_out(override: Override, release: Release) -> bool:
    """Whether an override is one of ours that the release has a known default for."""
    key = override.key
    is_ours = not override.written and not override.sign and not override.is_group
    is_pinned = release.latest_name_of(key) in PINNED
    is_of_recipe = release.dapo_recipe and key in DAPO_RECIPE_KEYS
    return is_ours and key in release.keys and not is_pinned and not is_of_recipe


def _resolve(name: str, values: Mapping[str, Any]) -> Any:
    """Return a value; the interpolation of a single key is resolved, with its fallback."""
    value = values[name]
    for _ in range(5):
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            break
        target = _absolute_key(name, match[1])
        fallback = None if match[2] is None else parse_value(match[2])
        value = values.get(target, fallback)
    return value


def _absolute_key(name: str, reference: str) -> str:
    """`a.b.c` and `.d` -> `a.b.d`; each further dot is a section further up."""
    relative = reference.lstrip(".")
    levels = len(reference) - len(relative)
    return ".".join([*name.split(".")[:-levels], relative]) if levels else reference
