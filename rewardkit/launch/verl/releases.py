"""verl's releases: the configuration keys of each, with their defaults, and what became of keys.

`tools/verl_releases.py` reads the keys from a release's wheel and writes `release_keys/VERSION.json`. A
key that a release lists can be set. A key that it does not list needs Hydra's `+`, and has an effect
only in a section that accepts any name (`engine_kwargs`, `reward_kwargs`, ...). `key_renames.yaml` has the
keys that verl renamed, moved or stopped reading; a name there that ends in a dot stands for every key below it.

A snapshot is the state of verl's main on a day, under the unreleased version that it had
(`0.10.0.dev0`). It is planned for on request or where such a verl is installed, never by default.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.strict_yaml import read_table
from rewardkit.versions import package_version

Entry = TypeVar("Entry")

FOLDER = Path(__file__).parent / "release_keys"

#: Plans use the names of this release. Without an installed verl, plans are also for this release.
LATEST = "0.9.1"

#: The first release that plans are for.
FIRST = (0, 7, 1)

#: The section under which releases read a custom reward function from 0.7.1 on, and before.
NEW_KEY, OLD_KEY = "reward.custom_reward_function", "custom_reward_function"

#: The name of the newest snapshot, as a version.
MAIN = "main"

#: Sections in which verl accepts any name, in every release.
OPEN_SECTIONS = frozenset(
    "engine_kwargs override_config override_transformer_config override_ddp_config "
    "override_optimizer_config override_model_config overlong_buffer_cfg reward_kwargs "
    "apply_chat_template_kwargs mm_processor_kwargs ray_init runtime_env env_vars wandb_proxy".split()
)

#: Keys that verl's DAPO recipe (recipe/dapo/config/dapo_trainer.yaml) adds to the trainer's.
DAPO_RECIPE_KEYS: Mapping[str, Any] = {
    "data.gen_batch_size": "${data.train_batch_size}",
    "reward_model.reward_manager": "dapo",
    "reward_model.overlong_buffer.enable": False,
    "reward_model.overlong_buffer.len": 0,
    "reward_model.overlong_buffer.penalty_factor": 0.0,
    "reward_model.overlong_buffer.log": False,
    "algorithm.filter_groups.enable": False,
    "algorithm.filter_groups.metric": None,
    "algorithm.filter_groups.max_num_gen_batches": 0,
}

#: Settings that only the reward manager `rate_limited` reads.
_LIMITS = "max_concurrent max_rpm max_tpm estimated_tokens_per_request timeout".split()

#: Keys that verl reads and its YAML does not list, and the first release that reads them.
UNLISTED: Mapping[str, tuple[int, ...]] = {
    "algorithm.gdpo_reward_keys": FIRST,
    "algorithm.gdpo_reward_weights": FIRST,
    **{f"{section}.{name}": FIRST for section in ("reward", "reward_model") for name in _LIMITS},
    "critic.ppo_infer_max_token_len_per_gpu": (0, 8, 0),
    "critic.ppo_infer_micro_batch_size_per_gpu": (0, 8, 0),
}

#: A dotted key in a sentence, which is not part of a path.
_KEY = re.compile(r"(?<![\w./-])[a-z_]\w*(?:\.\w+)+", re.ASCII)


def installed_verl() -> str | None:
    """Return the version of the installed verl without importing it; None if it is not installed."""
    return package_version("verl")


def parse_release(text: str) -> tuple[int, ...]:
    """`"0.7.1.dev0"` -> `(0, 7, 1)`, `"0.8"` -> `(0, 8, 0)`, `"main"` -> that of its snapshot."""
    if text == MAIN and not snapshots():
        raise UsageError(f"no snapshot of verl's {MAIN} is known; name a release, like {LATEST}.")
    name = snapshots()[-1] if text == MAIN else text
    match = re.match(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?!\d)", name)
    if match is None:
        raise UsageError(f"{text!r} is not a version of verl; write it like {LATEST}, or {MAIN}.")
    parts = [int(part) for part in match[1].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


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
    return [{**each, "since": parse_release(each["since"])} for each in table]


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


@cache
def _latest_names(megatron: bool) -> Mapping[str, str]:
    names = {each.old: each.new for each in renames() if not (megatron and each.fsdp_only)}
    return names | {old: new for new, old in _dapo_recipe_names().items()}


@lru_cache(maxsize=1 << 14)
def to_latest_key(key: str, *, megatron: bool = False) -> str:
    """Return a key's name in the newest release we know, given its name in any release."""
    return rename(key, _latest_names(megatron))


@dataclass(frozen=True)
class Release:
    """The configuration of a verl release, as composed by the trainer of FSDP, Megatron or the DAPO recipe (up to 0.8).

    `keys` has the defaults, with interpolations as they are; `names` the keys of 0.9.1 that have another name
    here. `engines` are those that no plan can use, like `veomni`, each with the keys that only it has (those in a
    section of its name aside). `date` is the day on which the wheel was built; for a snapshot, of its commit.
    """

    verl: str
    keys: Mapping[str, Any]
    names: Mapping[str, str] = field(repr=False)
    ignored_keys: Mapping[str, IgnoredKey] = field(repr=False)
    megatron: bool = False
    dapo_recipe: bool = False
    engines: Mapping[str, frozenset[str]] = field(default_factory=dict)
    date: str = ""
    commit: str = ""

    @cached_property
    def number(self) -> tuple[int, ...]:
        """The version as numbers."""
        return parse_release(self.verl)

    def name_of(self, key: str) -> str:
        """Return the name that a key of verl 0.9.1 has in this release."""
        return rename(key, self.names)

    def with_own_names(self, sentence: str) -> str:
        """Return a sentence in which verl 0.9.1's keys have the names that they have here."""
        return _KEY.sub(lambda match: self.name_of(match[0]), sentence)

    def ignored(self, key: str) -> IgnoredKey | None:
        """Return the entry for a key that this release ignores; None for any other key."""
        match = find_entry(key, self.ignored_keys)
        return None if match is None or (match[1].removed and self.lists(key)) else match[1]

    def lists(self, key: str) -> bool:
        """Whether the release has a key, or keys below it: they can be set without a `+`."""
        return key in self.keys or key in self._sections

    @cached_property
    def _sections(self) -> frozenset[str]:
        return frozenset(k[:i] for k in self.keys for i, char in enumerate(k) if char == ".")

    def engines_of(self, key: str) -> tuple[str, ...]:
        """Return the engines of `engines` to which a setting belongs that the release has only for those.

        Two engines may share a key (`actor_rollout_ref.ref.optim.lr`).
        """
        sections = key.split(".")[1:]
        return tuple(
            engine
            for engine, keys in self.engines.items()
            if not self.lists(key) and (engine in sections or key in keys)
        )

    def accepts_unlisted(self, key: str) -> bool:
        """Whether a key that is not listed is in a section that accepts any name."""
        if key in UNLISTED and self.number >= UNLISTED[key]:
            return True
        parts = key.split(".")
        sections = [".".join(parts[:i]) for i in range(1, len(parts))]
        return not self._sections.isdisjoint(sections[:1]) and any(
            part in OPEN_SECTIONS or self.keys.get(section) == {}
            for part, section in zip(parts, sections, strict=False)
        )


def known_releases() -> list[str]:
    """Return the releases whose keys we have, oldest first; no snapshot is one of them."""
    return [known for known in _known_versions() if ".dev" not in known]


def snapshots() -> list[str]:
    """Return the versions of the snapshots whose keys we have, oldest first."""
    return [known for known in _known_versions() if ".dev" in known]


def _known_versions() -> list[str]:
    return sorted((path.stem for path in FOLDER.glob("*.json")), key=parse_release)


def nearest(verl: str) -> str:
    """Return the known version with whose keys a version is planned: `0.7` -> 0.7.1, `0.9.2` -> 0.9.1.

    A snapshot is planned for its own number only: `main`, `0.10` and `0.10.0.dev0` -> 0.10.0.dev0.
    """
    wanted, known = parse_release(verl), known_releases()
    minor = [release for release in known if parse_release(release)[:2] == wanted[:2]]
    if minor and verl.lstrip("v").count(".") < 2:
        return minor[-1]
    older = [release for release in known if parse_release(release) <= wanted]
    if not older:
        raise UsageError(
            f"verl {verl}: plans start at verl {known[0]}. For older releases use rewardkit 0.1.0."
        )
    same = [snapshot for snapshot in snapshots() if parse_release(snapshot) == wanted]
    return older[-1] if not same or parse_release(older[-1]) == wanted else same[-1]


def release_notice(verl: str) -> str:
    """Return what a user has to know about the keys with which a version is planned; "" if nothing."""
    release = release_of(verl)
    if release.commit:
        latest = release_of(LATEST)
        age = f", older than verl {LATEST} ({latest.date})" if release.date < latest.date else ""
        return (
            f"is planned as verl's main of {release.date} (commit {release.commit[:12]}), an "
            f"unreleased snapshot{age}. main may have changed since."
        )
    if parse_release(verl) > release.number:
        return f"is newer than the releases we know: planned as {release.verl}."
    return ""


@cache
def release_of(verl: str, *, megatron: bool = False, dapo_recipe: bool = False) -> Release:
    """Return a release as composed by one trainer; an unknown version is the nearest older release."""
    known = nearest(verl)
    stored = json.loads((FOLDER / f"{known}.json").read_text(encoding="utf-8"))
    keys = dict(stored["fsdp"])
    if megatron:
        lacks = frozenset(stored["megatron_lacks"])
        keys = {k: v for k, v in keys.items() if k not in lacks} | stored["megatron"]
    number, other = parse_release(known), "fsdp" if megatron else "megatron"
    names = {
        each.new: each.old
        for each in renames()
        if number < each.since and not (megatron and each.fsdp_only)
    }
    ignored = (
        each
        for each in reversed(ignored_keys())  # the first entry of a key counts
        if number >= each.since and each.only != other
        if not (dapo_recipe and "reward" in each.key)
    )
    return Release(
        verl=known,
        keys={**keys, **(DAPO_RECIPE_KEYS if dapo_recipe else {})},
        names={**names, **(_dapo_recipe_names() if dapo_recipe else {})},
        ignored_keys={each.key: each for each in ignored},
        megatron=megatron,
        dapo_recipe=dapo_recipe,
        engines={engine: frozenset(names) for engine, names in stored["engines"].items()},
        date=stored["date"],
        commit=stored["commit"],
    )


def reward_key(verl: str) -> str:
    """Return the section under which a verl release reads a custom reward function."""
    return NEW_KEY if parse_release(verl) >= FIRST else OLD_KEY


def describe_reward_keys(verl: str) -> str:
    """Return in one line which sections a verl release reads, and which it ignores.

    0.9 no longer calls `migrate_legacy_reward_impl` (`trainer/main_ppo.py`): given the old section, it trains with
    its built-in scorer, without a message (measured on 0.9.1).
    """
    if parse_release(verl) >= (0, 9, 0):
        return f"{NEW_KEY}.path only; {OLD_KEY}.path is accepted and silently ignored"
    return (
        f"{NEW_KEY}.path, and still {OLD_KEY}.path"
        if reward_key(verl) == NEW_KEY
        else f"{OLD_KEY}.path"
    )


def reward_overrides(
    location: str, options: Mapping[str, Any], verl: str, function: str = "compute_score"
) -> list[str]:
    """Return the Hydra overrides that make a verl release use a scorer: a path, or `pkg://module`."""
    if location.startswith("pkg://") and parse_release(verl) < (0, 7, 0):
        raise UsageError(f"verl {verl} loads rewards from files only; leave --pkg out.")
    key = reward_key(verl)
    values = {f"{key}.path": location, f"{key}.name": function}
    values |= {f"+{key}.reward_kwargs.{name}": value for name, value in options.items()}
    return [f"{name}={format_value(value)}" for name, value in values.items()]
