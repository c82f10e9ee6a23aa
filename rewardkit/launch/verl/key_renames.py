"""Keys that verl renamed, moved or stopped reading: the tables of `key_renames.yaml`.

A plan names every key as verl 0.9.1 does, and one dict for each release has the release's own names. A
name that ends in a dot stands for every key below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

Entry = TypeVar("Entry")


@dataclass(frozen=True, kw_only=True)
class KeyRename:
    """A key that had another name before a release.

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
        key: the name.
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


def load_table(module: str, name: str) -> Any:
    """Read a YAML file that lies beside a module's file."""
    import yaml

    text = Path(module).with_name(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = load_table(__file__, "key_renames.yaml")
    for entry in (*tables["renames"], *tables["ignored"]):
        entry["since"] = tuple(map(int, entry["since"].split(".")))
    return tables


@cache
def renames() -> tuple[KeyRename, ...]:
    """Return the renames of all releases."""
    return tuple(KeyRename(**entry) for entry in _tables()["renames"])


@cache
def ignored_keys() -> tuple[IgnoredKey, ...]:
    """Return the keys that some release ignores."""
    return tuple(IgnoredKey(**entry) for entry in _tables()["ignored"])


@cache
def gone_keys() -> Mapping[str, str]:
    """Return the keys that only releases before 0.7.1 list, with the newest of them."""
    return {key: verl for verl, keys in _tables()["gone"].items() for key in keys}


def _dapo_recipe_names() -> dict[str, str]:
    """Return the names in verl's DAPO recipe, which has the old ones of the reward's keys."""
    return {
        "reward.reward_kwargs.overlong_buffer_cfg.": "reward_model.overlong_buffer.",
        **{entry.new: entry.old for entry in renames() if entry.new.startswith("reward.")},
    }


@cache
def _release_names(number: tuple[int, ...], megatron: bool, dapo_recipe: bool) -> Mapping[str, str]:
    """Return the keys of 0.9.1 that have another name in a release, with that name."""
    names = {
        entry.new: entry.old
        for entry in renames()
        if number < entry.since and not (megatron and entry.fsdp_only)
    }
    return names | (_dapo_recipe_names() if dapo_recipe else {})


@cache
def _latest_names(megatron: bool) -> Mapping[str, str]:
    """Return the names of older releases with those of 0.9.1."""
    names = {e.old: e.new for e in renames() if not (megatron and e.fsdp_only)}
    return names | {old: new for new, old in _dapo_recipe_names().items()}


@cache
def _ignored(
    number: tuple[int, ...], megatron: bool, dapo_recipe: bool
) -> Mapping[str, IgnoredKey]:
    trainer = "megatron" if megatron else "fsdp"
    table: dict[str, IgnoredKey] = {}
    for entry in ignored_keys():
        is_read_by_recipe = dapo_recipe and "reward" in entry.key
        if number >= entry.since and entry.only in {"", trainer} and not is_read_by_recipe:
            table.setdefault(entry.key, entry)
    return table


def _find(key: str, table: Mapping[str, Entry]) -> tuple[str, Entry] | None:
    """Return the entry of a key, or of the innermost section that it is in, with its name."""
    name = key
    while name not in table:
        name = f"{name[:-1].rpartition('.')[0]}."
        if name == ".":
            return None
    return name, table[name]


def _rename(key: str, names: Mapping[str, str]) -> str:
    match = _find(key, names)
    return match[1] + key[len(match[0]) :] if match else key


@lru_cache(maxsize=1 << 14)
def to_latest_key(key: str, *, megatron: bool = False) -> str:
    """Return a key's name in the newest release we know, given its name in any release."""
    return _rename(key, _latest_names(megatron))


def to_release_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> str:
    """Return the name that a key of verl 0.9.1 has in a release."""
    return _rename(key, _release_names(number, megatron, dapo_recipe))


def ignored_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> IgnoredKey | None:
    """Return the entry for a key that a release ignores; None if no entry matches."""
    match = _find(key, _ignored(number, megatron, dapo_recipe))
    return match and match[1]
