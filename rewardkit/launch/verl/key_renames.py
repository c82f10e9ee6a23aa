"""Keys that verl renamed, moved or stopped reading: the tables of `key_renames.yaml`.

A plan names every key as verl 0.9.1 does, and its overrides are translated to the release at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

#: A release number above every real one.
NEVER = (99, 0, 0)


@dataclass(frozen=True, kw_only=True)
class KeyRename:
    """A key, or every key below it if it ends in a dot, that had another name before a release.

    Attributes:
        new: the name in 0.9.1.
        old: the name before `since`.
        since: the first release that reads the new name.
        fsdp_only: the old name is FSDP's; Megatron has always had the new one.
    """

    new: str
    old: str
    since: tuple[int, ...]
    fsdp_only: bool = False


@dataclass(frozen=True, kw_only=True)
class IgnoredKey:
    """A key that verl accepts, perhaps only with a `+`, and ignores from a release on.

    Attributes:
        key: the name; a dot at the end means every key below it.
        since: the first release that ignores it.
        why: what happens, and what to use instead.
        fatal: whether verl stops instead of ignoring it.
        removed: whether verl removed it: a snapshot of main that lists it still reads it.
        only: the trainer that ignores it, `fsdp` or `megatron`; "" for both.
    """

    key: str
    since: tuple[int, ...]
    why: str
    fatal: bool = False
    removed: bool = False
    only: str = ""


@cache
def renames() -> tuple[KeyRename, ...]:
    """Return the renames of all releases; the first one that matches a key applies."""
    return tuple(KeyRename(**entry) for entry in _table("renames"))


@cache
def dapo_recipe_renames() -> tuple[KeyRename, ...]:
    """Return the renames for verl's DAPO recipe, which has the old names of the reward's keys."""
    overlong = KeyRename(
        new="reward.reward_kwargs.overlong_buffer_cfg.",
        old="reward_model.overlong_buffer.",
        since=NEVER,
    )
    reward = (entry for entry in renames() if entry.new.startswith("reward."))
    return (overlong, *(KeyRename(new=r.new, old=r.old, since=NEVER) for r in reward))


@cache
def ignored_keys() -> tuple[IgnoredKey, ...]:
    """Return the keys that some release ignores."""
    return tuple(IgnoredKey(**entry) for entry in _table("ignored"))


@lru_cache(maxsize=1 << 14)
def to_latest_key(key: str, *, megatron: bool = False) -> str:
    """Return a key's name in the newest release we know, given its name in any release."""
    for rename in (*dapo_recipe_renames(), *renames()):
        if _matches(key, rename.old) and not (megatron and rename.fsdp_only):
            return rename.new + key[len(rename.old) :]
    return key


def to_release_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> str:
    """Return the name that a key of verl 0.9.1 has in a release."""
    for rename in (*(dapo_recipe_renames() if dapo_recipe else ()), *renames()):
        if (
            number < rename.since
            and _matches(key, rename.new)
            and not (megatron and rename.fsdp_only)
        ):
            return rename.old + key[len(rename.new) :]
    return key


def ignored_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> IgnoredKey | None:
    """Return the entry for a key that a release ignores; None if no entry matches."""
    for entry in ignored_keys():
        for_trainer = entry.only in {"", "megatron" if megatron else "fsdp"}
        is_read_by_recipe = dapo_recipe and "reward" in entry.key
        if (
            number >= entry.since
            and for_trainer
            and _matches(key, entry.key)
            and not is_read_by_recipe
        ):
            return entry
    return None


def _matches(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name


def _table(name: str) -> list[dict[str, Any]]:
    """Return a table of the YAML, with releases as numbers."""
    entries: list[dict[str, Any]] = _tables()[name]
    return [{**entry, "since": _numbers(entry["since"])} for entry in entries]


@cache
def _tables() -> dict[str, Any]:
    import yaml

    text = Path(__file__).with_name("key_renames.yaml").read_text(encoding="utf-8")
    tables: dict[str, Any] = yaml.safe_load(text)
    return tables


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
