"""A plan's settings as the overrides of one release: the only place where keys get their release's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.releases import Release, known_releases, release_of
from rewardkit.registry import did_you_mean


@dataclass(frozen=True)
class Note:
    """What became of a setting that is not in the command as it was written.

    Attributes:
        kind: `renamed`, `dropped` (the setting is not in the command) or `hint`.
        key: the key as it was written.
        text: what became of it, and why.
    """

    kind: Literal["renamed", "dropped", "hint"]
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def translate(settings: Iterable[Override], release: Release) -> tuple[list[Override], list[Note]]:
    """Return the overrides that a release takes, and notes on the settings that it does not.

    Args:
        settings: overrides whose keys are those of verl 0.9.1.
        release: the release, as the run's trainer composes it.

    Raises:
        UsageError: no release knows a key and no `+` stands before it, or a value is of a type that
            the release refuses.
    """
    overrides: list[Override] = []
    notes: list[Note] = []
    for setting in settings:
        if setting.is_group:
            overrides.append(setting)
            continue
        key = release.name_of(setting.key)
        if reason := _drop_reason(setting, key, release):
            notes.append(Note("dropped", setting.key, reason))
            continue
        if setting.written not in {"", key}:
            notes.append(Note("renamed", setting.written, f"is {key} in verl {release.verl}."))
        if release.refuses(key, setting.value):
            raise UsageError(
                f"{setting.origin}: {setting.key}={setting.value!r} is text; verl "
                f"{release.verl} has {release.keys[key]!r} there."
            )
        if setting.sign in {"+", "++"} and not release.lists(key) and not release.open_at(key):
            near = did_you_mean(key, list(release.keys))
            notes.append(Note("hint", key, f"verl {release.verl} does not list this key.{near}"))
        sign = setting.sign if setting.sign == "~" else "" if release.lists(key) else "+"
        overrides.append(replace(setting, key=key, sign=sign))
    return overrides, notes


def _drop_reason(setting: Override, key: str, release: Release) -> str | None:
    """Return why a setting is not in the command; None if it is.

    Raises:
        UsageError: no release knows the key, and no `+` says that this is meant.
    """
    if release.dapo_recipe and setting.key == "reward.reward_kwargs.max_resp_len":
        return "the recipe passes it by itself."
    if entry := release.ignored(key):
        return f"verl {release.verl}: {entry.why}."
    is_section = release.lists(key) and key not in release.keys
    if is_section and setting.sign != "~" and not isinstance(setting.value, (Mapping, Raw)):
        raise UsageError(f"{setting.origin}: {key} is a section of verl: set a key in it.")
    if release.lists(key) or release.open_at(key) or setting.sign in {"+", "++"}:
        return None
    if version := _newest_listing(setting.key, megatron=release.megatron):
        return f"verl {release.verl} has no such setting (verl {version} has)."
    if _newest_listing(setting.key, megatron=not release.megatron):
        engine = "FSDP" if release.megatron else "Megatron"
        return f"this is a setting of {engine}, which this run does not use."
    raise UsageError(
        f"{setting.origin}: verl {release.verl} has no key {setting.key!r}."
        f"{did_you_mean(setting.key, list(release.keys))} "
        "Write +key if something reads it without listing it."
    )


def _newest_listing(key: str, *, megatron: bool) -> str | None:
    """Return the newest release that lists a key."""
    versions = reversed(known_releases())
    return next((v for v in versions if release_of(v, megatron=megatron).lists(key)), None)
