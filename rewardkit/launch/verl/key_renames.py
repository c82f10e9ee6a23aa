"""Keys that verl renamed, moved or stopped reading: the tables of `key_renames.yaml`.

A plan names every key as verl 0.9.1 does, and one dict for each release has the release's own names. A
name that ends in a dot stands for every key below it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeVar

from rewardkit.strict_yaml import read_table

Entry = TypeVar("Entry")


@dataclass(frozen=True, kw_only=True)
class KeyRename:
    """A key that is `new` in 0.9.1, and was `old` before the release `since`, perhaps only for FSDP."""

    new: str
    old: str
    since: tuple[int, ...]
    fsdp_only: bool = False


@dataclass(frozen=True, kw_only=True)
class IgnoredKey:
    """A key that verl accepts, perhaps only with a `+`, and ignores from a release on.

    `why` says what happens, and what to use instead; with `fatal` verl stops. A `removed` key is still read
    by a snapshot of main that lists it. `only` is the trainer that ignores it; "" for both.
    """

    key: str
    since: tuple[int, ...]
    why: str
    fatal: bool = False
    removed: bool = False
    only: str = ""


def _entries(section: str) -> list[dict[str, Any]]:
    table = read_table(__file__, "key_renames.yaml")[section]
    return [{**each, "since": tuple(map(int, each["since"].split(".")))} for each in table]


@cache
def renames() -> tuple[KeyRename, ...]:
    """Return the renames of all releases."""
    return tuple(KeyRename(**entry) for entry in _entries("renames"))


@cache
def ignored_keys() -> tuple[IgnoredKey, ...]:
    """Return the keys that some release ignores."""
    return tuple(IgnoredKey(**entry) for entry in _entries("ignored"))


@cache
def gone_keys() -> Mapping[str, str]:
    """Return the keys that only releases before 0.7.1 list, with the newest of them."""
    table = read_table(__file__, "key_renames.yaml")["gone"]
    return {key: verl for verl, keys in table.items() for key in keys}


def _dapo_recipe_names() -> dict[str, str]:
    """Return the names in verl's DAPO recipe, which has the old ones of the reward's keys."""
    names = {each.new: each.old for each in renames() if each.new.startswith("reward.")}
    return {"reward.reward_kwargs.overlong_buffer_cfg.": "reward_model.overlong_buffer."} | names


def names_of_release(
    number: tuple[int, ...], *, megatron: bool, dapo_recipe: bool
) -> dict[str, str]:
    """Return the keys of 0.9.1 that have another name in a release, with that name."""
    names = {
        each.new: each.old
        for each in renames()
        if number < each.since and not (megatron and each.fsdp_only)
    }
    return names | (_dapo_recipe_names() if dapo_recipe else {})


def ignored_in_release(
    number: tuple[int, ...], *, megatron: bool, dapo_recipe: bool
) -> dict[str, IgnoredKey]:
    """Return the entries of the keys that a release ignores, by key; the first entry counts."""
    other = "fsdp" if megatron else "megatron"
    return {
        each.key: each
        for each in reversed(ignored_keys())
        if number >= each.since
        and each.only != other
        and not (dapo_recipe and "reward" in each.key)
    }


@cache
def _latest_names(megatron: bool) -> Mapping[str, str]:
    names = {each.old: each.new for each in renames() if not (megatron and each.fsdp_only)}
    return names | {old: new for new, old in _dapo_recipe_names().items()}


def find_entry(key: str, table: Mapping[str, Entry]) -> tuple[str, Entry] | None:
    """Return the entry of a key, or of the innermost section that it is in, with its name."""
    name = key
    while name not in table:
        name = f"{name[:-1].rpartition('.')[0]}."
        if name == ".":
            return None
    return name, table[name]


def rename(key: str, names: Mapping[str, str]) -> str:
    """Return the name that a table of names has for a key, or for the section it is in."""
    match = find_entry(key, names)
    return match[1] + key[len(match[0]) :] if match else key


@lru_cache(maxsize=1 << 14)
def to_latest_key(key: str, *, megatron: bool = False) -> str:
    """Return a key's name in the newest release we know, given its name in any release."""
    return rename(key, _latest_names(megatron))
