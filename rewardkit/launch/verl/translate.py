"""Translates a plan's settings, and the keys in messages, to one release. No other code does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.key_renames import gone_keys
from rewardkit.launch.verl.releases import (
    UNLISTED,
    Release,
    known_releases,
    release_of,
    snapshots,
)
from rewardkit.registry import did_you_mean

#: The setting of the dapo reward manager that verl's DAPO recipe sets itself.
MAX_RESP_LEN = "reward.reward_kwargs.max_resp_len"

#: A dotted key in a sentence, which is not part of a path.
_KEY = re.compile(r"(?<![\w./-])[a-z_]\w*(?:\.\w+)+", re.ASCII)


@dataclass(frozen=True)
class Note:
    """A note on a setting that is not in the command as the user wrote it.

    Attributes:
        kind: `renamed`, `dropped` (the setting is not in the command), `missing` (it has no value
            yet) or `hint`.
        key: the key as the user wrote it, or as the release names it if the user did not.
        text: what the command has in its place, and why.
    """

    kind: Literal["renamed", "dropped", "missing", "hint"]
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


def with_release_keys(sentence: str, release: Release) -> str:
    """Return a sentence in which verl 0.9.1's keys have the names that the release has for them."""
    return _KEY.sub(lambda match: release.name_of(match[0]), sentence)


def translate(settings: Iterable[Override], release: Release) -> tuple[list[Override], list[Note]]:
    """Return the overrides for a release, and notes on renamed and dropped settings.

    Args:
        settings: overrides whose keys are those of verl 0.9.1.
        release: the release, as composed by the run's trainer.

    Raises:
        UsageError: no release knows a key that has no `+` before it, or the release refuses the type
            of a value.
    """
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
        if release.refuses(key, setting.value):
            raise UsageError(
                f"{setting.origin}: {setting.written or key}={setting.value!r} is text, but verl "
                f"{release.verl} has {release.keys[key]!r} there."
            )
        if (
            setting.sign in {"+", "++"}
            and not release.lists(key)
            and not release.accepts_unlisted(key)
        ):
            near = did_you_mean(key, list(release.keys))
            notes.append(Note("hint", key, f"verl {release.verl} does not list this key.{near}"))
        sign = setting.sign if setting.sign == "~" else "" if release.lists(key) else "+"
        overrides.append(replace(setting, key=key, sign=sign))
    return overrides, notes


def _drop_reason(setting: Override, key: str, release: Release) -> str | None:
    """Return why a setting is not in the command; None if it is.

    Raises:
        UsageError: no release knows the key, which has no `+` before it.
    """
    if release.dapo_recipe and setting.key == MAX_RESP_LEN:
        return "verl's DAPO recipe sets it itself."
    if entry := release.ignored(key):
        return f"verl {release.verl}: {entry.why}."
    is_section = release.lists(key) and key not in release.keys
    if is_section and setting.sign != "~" and not isinstance(setting.value, (Mapping, Raw)):
        raise UsageError(f"{setting.origin}: {key} is a section of verl: set a key in it.")
    if release.lists(key) or release.accepts_unlisted(key) or setting.sign in {"+", "++"}:
        return None
    if version := _newest_listing(setting.key, megatron=release.megatron):
        return f"verl {release.verl} has no such setting (verl {version} has)."
    if _newest_listing(setting.key, megatron=not release.megatron):
        engine = "FSDP" if release.megatron else "Megatron"
        return f"this is a setting of {engine}, which this run does not use."
    raise _unknown_key(setting, key, release)


def _unknown_key(setting: Override, key: str, release: Release) -> UsageError:
    """Return the error for a key that no release has for FSDP or Megatron."""
    where, name = f"{setting.origin}: ", setting.written or key
    if engines := release.engines_of(setting.key):
        return UsageError(
            f"{where}{name} is a setting of {' and '.join(engines)} in verl {release.verl}, "
            "and rewardkit plans for FSDP and Megatron only. Delete the setting, or start verl "
            "without rewardkit."
        )
    return UsageError(
        f"{where}verl {release.verl} has no key {name!r}.{did_you_mean(key, list(release.keys))} "
        "Write +key if code of yours reads it."
    )


def _newest_listing(key: str, *, megatron: bool) -> str | None:
    """Return the newest release that lists a key; a snapshot if no release does."""
    versions = [*reversed(known_releases()), *snapshots()]
    releases = ((v, release_of(v, megatron=megatron)) for v in versions)
    return next(
        (v for v, r in releases if r.lists(key) or (key in UNLISTED and r.accepts_unlisted(key))),
        gone_keys().get(key),
    )
