"""verl's releases: the configuration keys of each, with their defaults.

`tools/verl_releases.py` reads them from a release's wheel and writes `release_keys/VERSION.json`. A
key that a release lists can be set. A key that it does not list needs Hydra's `+`, and has an effect
only in a section that accepts any name (`engine_kwargs`, `reward_kwargs`, ...).

A snapshot is the state of verl's main on a day, under the unreleased version that it had
(`0.10.0.dev0`). It is planned for on request or where such a verl is installed, never by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.key_renames import IgnoredKey, ignored_key, to_latest_key, to_release_key
from rewardkit.launch.verl.reward_managers import LIMITS

FOLDER = Path(__file__).parent / "release_keys"

#: Plans use the names of this release. Without an installed verl, plans are also for this release.
LATEST = "0.9.1"

#: The first release that plans are for.
FIRST = (0, 7, 1)

#: The name of the newest snapshot, as a version.
MAIN = "main"

#: Sections in which verl accepts any name, in every release.
OPEN_SECTIONS = frozenset(
    "engine_kwargs override_config override_transformer_config override_ddp_config "
    "override_optimizer_config override_model_config overlong_buffer_cfg reward_kwargs "
    "apply_chat_template_kwargs mm_processor_kwargs ray_init runtime_env env_vars "
    "wandb_proxy".split()
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

#: Keys that verl reads and its YAML does not list, and the first release that reads them.
UNLISTED: Mapping[str, tuple[int, ...]] = {
    "algorithm.gdpo_reward_keys": FIRST,
    "algorithm.gdpo_reward_weights": FIRST,
    **dict.fromkeys((*LIMITS, *(key.replace("reward.", "reward_model.") for key in LIMITS)), FIRST),
    "critic.ppo_infer_max_token_len_per_gpu": (0, 8, 0),
    "critic.ppo_infer_micro_batch_size_per_gpu": (0, 8, 0),
}


def installed_verl() -> str | None:
    """Return the version of the installed verl without importing it; None if it is not installed."""
    try:
        return version("verl")
    except PackageNotFoundError:
        return None


def parse_release(text: str) -> tuple[int, ...]:
    """`"0.7.1.dev0"` -> `(0, 7, 1)`, `"0.8"` -> `(0, 8, 0)`, `"main"` -> that of its snapshot.

    Raises:
        UsageError: the text does not begin with a version, or there is no snapshot of main.
    """
    newest = snapshots()[-1:] if text == MAIN else [text]
    if not newest:
        raise UsageError(f"no snapshot of verl's {MAIN} is known; name a release, like {LATEST}.")
    match = re.match(r"v?(\d{1,4}(?:\.\d{1,4}){0,3})(?!\d)", newest[0])
    if match is None:
        raise UsageError(f"{text!r} is not a version of verl; write it like {LATEST}, or {MAIN}.")
    parts = [int(part) for part in match[1].split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


@dataclass(frozen=True)
class Release:
    """The configuration of a verl release, as composed by one trainer.

    Attributes:
        verl: the version whose keys these are, like 0.9.1.
        keys: dotted key -> default; interpolations are not resolved.
        megatron: whether it is the configuration of the Megatron trainer instead of FSDP's.
        dapo_recipe: whether it is the configuration of verl's DAPO recipe (up to 0.8).
        engines: the engines of the release that no plan can use, like `veomni`, each with the keys
            that only it has. Keys in a section of the engine's name are not listed.
        date: the day on which its wheel was built; for a snapshot, of its commit.
        commit: the commit of a snapshot; "" for a release.
    """

    verl: str
    keys: Mapping[str, Any]
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
        return to_release_key(
            key, self.number, megatron=self.megatron, dapo_recipe=self.dapo_recipe
        )

    def latest_name_of(self, key: str) -> str:
        """Return the name in verl 0.9.1 of a key of this release.

        If a release lists both names of a key, the name that it does not read stays unchanged.
        """
        return self._latest_names[key] if key in self._latest_names else self._latest_name(key)

    @cached_property
    def _latest_names(self) -> Mapping[str, str]:
        return {key: self._latest_name(key) for key in self.keys}

    def _latest_name(self, key: str) -> str:
        latest = to_latest_key(key, megatron=self.megatron)
        return latest if self.name_of(latest) == key else key

    def ignored(self, key: str) -> IgnoredKey | None:
        """Return the entry for a key that this release lists and ignores; None for any other key."""
        entry = ignored_key(key, self.number, megatron=self.megatron, dapo_recipe=self.dapo_recipe)
        return None if entry and entry.removed and self.lists(key) else entry

    def lists(self, key: str) -> bool:
        """Whether the release has a key, or keys below it: they can be set without a `+`."""
        return key in self.keys or key in self._sections

    @cached_property
    def _sections(self) -> frozenset[str]:
        """All sections, at every depth."""
        return frozenset(k[:i] for k in self.keys for i, char in enumerate(k) if char == ".")

    def engines_of(self, key: str) -> tuple[str, ...]:
        """Return the engines that a setting belongs to, if the release has it only for those.

        Such an engine is one of `engines`: verl has it, and no plan can use it. Two engines may share a
        key (`actor_rollout_ref.ref.optim.lr`). The tuple is empty for any other key.
        """
        if self.lists(key):
            return ()
        sections = key.split(".")[1:]
        return tuple(
            engine for engine, keys in self.engines.items() if engine in sections or key in keys
        )

    def refuses(self, key: str, value: Any) -> bool:
        """Whether a value is text although the release has a number or a boolean."""
        text = isinstance(value, str) and not isinstance(value, Raw) and not value.startswith("${")
        return text and isinstance(self.keys.get(key), (int, float))

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
    names = (path.stem for path in FOLDER.glob("*.json"))
    return sorted(names, key=parse_release)


def nearest(verl: str) -> str:
    """Return the known version with whose keys a version is planned: `0.7` -> 0.7.1, `0.9.2` -> 0.9.1.

    A snapshot is planned for its own number only: `main`, `0.10` and `0.10.0.dev0` -> 0.10.0.dev0.

    Raises:
        UsageError: it is older than every known version.
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
    is_released = parse_release(older[-1]) == wanted
    return same[-1] if same and not is_released else older[-1]


def release_notice(verl: str) -> str:
    """Return what a user has to know about the keys with which a version is planned; "" if nothing.

    Raises:
        UsageError: the version is older than every known one.
    """
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
    """Return a release, as composed by one trainer.

    Args:
        verl: a version; an unknown version is planned as the nearest older release.
        megatron: for the Megatron trainer.
        dapo_recipe: with the keys of verl's DAPO recipe (up to 0.8).

    Raises:
        UsageError: the version is older than every known one.
    """
    known = nearest(verl)
    stored = json.loads((FOLDER / f"{known}.json").read_text(encoding="utf-8"))
    keys = dict(stored["fsdp"])
    if megatron:
        lacks = frozenset(stored["megatron_lacks"])
        keys = {k: v for k, v in keys.items() if k not in lacks} | stored["megatron"]
    keys |= DAPO_RECIPE_KEYS if dapo_recipe else {}
    engines = {engine: frozenset(names) for engine, names in stored["engines"].items()}
    date, commit = stored["date"], stored["commit"]
    return Release(known, keys, megatron, dapo_recipe, engines, date, commit)
