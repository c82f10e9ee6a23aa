"""What verl's releases compose: every key with its default, read from their wheels.

The files in `releases/` are written by `tools/verl_releases.py`. A key that a release lists can be
set; one it does not list needs Hydra's `+`, and does something only where verl keeps an open place
(`engine_kwargs`, `reward_kwargs`, ...).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.verl.hydra_values import Raw
from rewardkit.launch.verl.keys import parse_release

FOLDER = Path(__file__).parent / "release_keys"

#: Parts of a key below which verl takes names of its own choosing, whatever the release lists.
OPEN = (
    "engine_kwargs",
    "override_config",
    "override_transformer_config",
    "override_ddp_config",
    "override_optimizer_config",
    "override_model_config",
    "overlong_buffer_cfg",
    "reward_kwargs",
    "apply_chat_template_kwargs",
    "mm_processor_kwargs",
    "ray_init",
    "runtime_env",
    "env_vars",
    "wandb_proxy",
)

#: verl's DAPO recipe (recipe/dapo/config/dapo_trainer.yaml) adds these to the trainer's own.
DAPO_RECIPE: Mapping[str, Any] = {
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


#: Fields of verl's dataclasses that its YAML does not list, and that are read, by release.
UNLISTED: Mapping[str, tuple[int, ...]] = {
    "critic.ppo_infer_max_token_len_per_gpu": (0, 8, 0),
    "critic.ppo_infer_micro_batch_size_per_gpu": (0, 8, 0),
}


@dataclass(frozen=True)
class Release:
    """The configuration of a verl release.

    Attributes:
        verl: the version whose keys these are, as in 0.9.1.
        keys: dotted key -> default, interpolations as they are written.
    """

    verl: str
    keys: Mapping[str, Any]

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers."""
        return parse_release(self.verl)

    def lists(self, key: str) -> bool:
        """Whether a key, or keys below it, can be set without a `+`."""
        return key in self.keys or f"{key}." in _prefixes(tuple(self.keys))

    def refuses(self, key: str, value: Any) -> bool:
        """Whether a value is text where the release has a number or a truth value."""
        text = isinstance(value, str) and not isinstance(value, Raw) and not value.startswith("${")
        return text and isinstance(self.keys.get(key), (int, float))

    def open_at(self, key: str) -> bool:
        """Whether a key that is not listed lies where verl takes any name."""
        if key in UNLISTED and self.number >= UNLISTED[key]:
            return True
        parts = key.split(".")
        if not any(name.startswith(f"{parts[0]}.") for name in self.keys):
            return False
        above = (".".join(parts[:i]) for i in range(1, len(parts)))
        return any(part in OPEN for part in parts[:-1]) or any(
            self.keys.get(a) == {} for a in above
        )


def known_releases() -> list[str]:
    """The versions there is a file of, oldest first."""
    return sorted((path.stem for path in FOLDER.glob("*.json")), key=parse_release)


def nearest(verl: str) -> str:
    """The known version that a version is planned as: `0.7` -> 0.7.1, `0.9.1.dev0` -> 0.9.1.

    Raises:
        UsageError: it is older than all of them.
    """
    wanted = parse_release(verl)
    minor = [known for known in known_releases() if parse_release(known)[:2] == wanted[:2]]
    if minor and verl.lstrip("v").count(".") < 2:
        return minor[-1]
    older = [known for known in known_releases() if parse_release(known) <= wanted]
    if not older:
        raise UsageError(f"verl {verl}: plans start at verl {known_releases()[0]}.")
    return older[-1]


@cache
def release_of(verl: str, *, megatron: bool = False, dapo_recipe: bool = False) -> Release:
    """The keys of a release, as one trainer composes them.

    Args:
        verl: a version; an unknown one is taken as the nearest older.
        megatron: of the Megatron trainer.
        dapo_recipe: with those of verl's DAPO recipe (up to 0.8).

    Raises:
        UsageError: there is no such release, and no older one.
    """
    version = nearest(verl)
    stored = json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))
    keys = dict(stored["fsdp"])
    if megatron:
        lacks = frozenset(stored["megatron_lacks"])
        keys = {k: v for k, v in keys.items() if k not in lacks} | stored["megatron"]
    return Release(version, {**keys, **DAPO_RECIPE} if dapo_recipe else keys)


@cache
def _prefixes(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(key[: i + 1] for key in keys for i, char in enumerate(key) if char == ".")
