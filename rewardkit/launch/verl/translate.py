"""Translates a plan's settings to one release, and leaves out those that change nothing there."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.verl.hydra_values import Raw, parse_value
from rewardkit.launch.verl.releases import (
    DAPO_RECIPE_KEYS,
    NEW_KEY,
    UNLISTED,
    Release,
    gone_keys,
    known_releases,
    release_of,
    snapshots,
)
from rewardkit.registry import did_you_mean

#: The setting of the dapo reward manager that verl's DAPO recipe sets itself.
MAX_RESP_LEN = "reward.reward_kwargs.max_resp_len"

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


@dataclass(frozen=True)
class Note:
    """A note on a setting that is not in the command as the user wrote it: what is there, and why.

    The key is named as the user wrote it, or as the release names it if the user did not.
    """

    kind: Literal["renamed", "dropped", "missing", "hint"]
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def translate(settings: Iterable[Override], release: Release) -> tuple[list[Override], list[Note]]:
    """Return settings by verl 0.9.1's names as overrides for a release, and notes on what is not as written."""
    overrides: list[Override] = []
    notes: list[Note] = []
    for setting in settings:
        if setting.is_group:
            overrides.append(setting)
            continue
        key = release.name_of(setting.key)
        if reason := _drop_reason(setting, key, release):
            if setting.written or setting.key != MAX_RESP_LEN:  # nobody misses ours
                notes.append(Note("dropped", setting.written or key, reason))
            continue
        if setting.written not in {"", key}:
            notes.append(Note("renamed", setting.written, f"is {key} in verl {release.verl}."))
        is_text = isinstance(setting.value, str) and not isinstance(setting.value, Raw)
        is_number = isinstance(release.keys.get(key), (int, float))
        if is_text and is_number and not setting.value.startswith("${"):
            raise UsageError(
                f"{setting.origin}: {setting.written or key}={setting.value!r} is text, but verl "
                f"{release.verl} has {release.keys[key]!r} there."
            )
        is_listed = release.lists(key)
        if setting.sign in {"+", "++"} and not is_listed and not release.accepts_unlisted(key):
            near = did_you_mean(key, list(release.keys))
            notes.append(Note("hint", key, f"verl {release.verl} does not list this key.{near}"))
        sign = setting.sign if setting.sign == "~" else "" if is_listed else "+"
        overrides.append(replace(setting, key=key, sign=sign))
    return overrides, notes


def _drop_reason(setting: Override, key: str, release: Release) -> str | None:
    """Return why a setting is not in the command; None if it is."""
    if release.dapo_recipe and setting.key == MAX_RESP_LEN:
        return "verl's DAPO recipe sets it itself."
    if entry := release.ignored(key):
        return f"verl {release.verl}: {entry.why}."
    where, name, is_listed = setting.origin, setting.written or key, release.lists(key)
    is_section = is_listed and key not in release.keys
    if is_section and setting.sign != "~" and not isinstance(setting.value, (Mapping, Raw)):
        raise UsageError(f"{where}: {key} is a section of verl: set a key in it.")
    if is_listed or release.accepts_unlisted(key) or setting.sign in {"+", "++"}:
        return None
    if version := _newest_listing(setting.key, megatron=release.megatron):
        return f"verl {release.verl} has no such setting (verl {version} has)."
    if _newest_listing(setting.key, megatron=not release.megatron):
        engine = "FSDP" if release.megatron else "Megatron"
        return f"this is a setting of {engine}, which this run does not use."
    if engines := release.engines_of(setting.key):
        raise UsageError(
            f"{where}: {name} is a setting of {' and '.join(engines)} in verl {release.verl}, "
            "and rewardkit plans for FSDP and Megatron only. Delete the setting, or start verl without rewardkit."
        )
    near = did_you_mean(key, list(release.keys))
    raise UsageError(
        f"{where}: verl {release.verl} has no key {name!r}.{near} Write +key if code of yours reads it."
    )


def _newest_listing(key: str, *, megatron: bool) -> str | None:
    """Return the newest release that lists a key; a snapshot if no release does."""
    versions = [*reversed(known_releases()), *snapshots()]
    releases = ((v, release_of(v, megatron=megatron)) for v in versions)
    return next(
        (v for v, r in releases if r.lists(key) or (key in UNLISTED and r.accepts_unlisted(key))),
        gone_keys().get(key),
    )


def without_ballast(overrides: Iterable[Override], release: Release) -> list[Override]:
    """Return the overrides that verl needs: without those of ours that change nothing.

    These repeat a default of the release, or are for a reference model that the run does not load.
    What a person wrote stays, and so do the settings in `PINNED` and those of verl's DAPO recipe,
    whose defaults are not in the wheel.
    """
    overrides = list(overrides)
    values = {**release.keys, **{override.key: override.value for override in overrides}}
    pinned = {release.name_of(key) for key in PINNED}
    pinned |= DAPO_RECIPE_KEYS.keys() if release.dapo_recipe else set()
    has_reference = any(resolve(key, values) is True for key in REFERENCE_SWITCHES)
    needed = []
    for override in overrides:
        key = override.key
        is_ours = not (override.written or override.sign or override.is_group)
        if not is_ours or key in pinned or key not in release.keys:
            needed.append(override)
        elif has_reference or not key.startswith(REFERENCE_SECTION):
            value = resolve(key, values)
            values[key] = release.keys[key]
            default = resolve(key, values)
            if isinstance(value, bool) != isinstance(default, bool) or value != default:
                values[key] = override.value
                needed.append(override)
    return needed


def resolve(name: str, values: Mapping[str, Any]) -> Any:
    """Return a value; the interpolation of a single key is resolved, with its fallback."""
    value = values.get(name)
    for _ in range(5):
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            break
        relative = match[1].lstrip(".")  # `.d` in `a.b.c` is `a.b.d`; each dot more is a section up
        levels = len(match[1]) - len(relative)
        sections = name.split(".")[:-levels] if levels else []
        fallback = None if match[2] is None else parse_value(match[2])
        value = values.get(".".join([*sections, relative]), fallback)
    return value
