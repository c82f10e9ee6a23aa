"""The recipe of a script: its settings as fields where recipes have them, and else under `verl:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardkit.errors import RewardkitError
from rewardkit.launch.overrides import Override
from rewardkit.launch.plan import DAPO_RECIPE, MISSING, Plan, make_plan
from rewardkit.launch.presets import ACTOR, OVERLONG
from rewardkit.launch.recipe import read_recipe
from rewardkit.launch.script_import.script_runs import Start
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, NEW_KEY, Release
from rewardkit.launch.verl.translate import Note, resolve

NAME = "trainer.experiment_name"
_INPUTS = ("actor_rollout_ref.model.path", "data.train_files", "data.val_files")
_REWARD = (f"{NEW_KEY}.path", f"{NEW_KEY}.name")

#: Settings that a plan takes as fields of the recipe.
_FIELDS = frozenset({*_INPUTS, *_REWARD, "trainer.nnodes", "trainer.n_gpus_per_node"})

#: Settings for which a recipe has its own default instead of verl's, by the end of the key, and why.
_OWN_DEFAULTS = {
    NAME: "the recipe takes its name",
    "critic.model.path": "the recipe's critic starts from the model that is trained",
    "trainer.device": "it follows the recipe's devices",
    "use_torch_compile": "on NPU the recipe turns it off",
}


class Setting(NamedTuple):
    """A setting as the script has it, by verl 0.9.1's name, and in the command of the release."""

    line: int
    original: Override
    latest: Override
    overrides: Sequence[Override]
    notes: Sequence[Note]


def draft_recipe(
    settings: Sequence[Setting],
    start: Start,
    env: Mapping[str, str],
    release: Release,
    where: str,
    add: Callable[..., None],
) -> dict[str, Any]:
    """Return a recipe with the effect of a script, as `read_recipe` takes it.

    `env` has the variables of the run; `add` gets the fields of each finding.
    """
    latest = {setting.latest.key: setting for setting in settings}
    values = {key: setting.latest.value for key, setting in latest.items()}
    own = DAPO_RECIPE_KEYS if start.module == DAPO_RECIPE else {}
    known = {to_latest_key(key): value for key, value in own.items()} | values
    overrides = [override for setting in latest.values() for override in setting.overrides]
    effective = {**release.keys, **{override.key: override.value for override in overrides}}
    latest_names = {name: to_latest_key(name, megatron=release.megatron) for name in effective}
    config = {
        key if release.name_of(key) == name else name: resolve(name, effective)
        for name, key in latest_names.items()
    }
    config |= {key: value for key, value in known.items() if not str(value).startswith("${")}
    tree = _choices(values, config, start, release, where, add)
    has_file = values.get(_REWARD[0]) not in (None, "", MISSING)
    fields = _FIELDS - (set() if has_file else set(_REWARD))
    own_fields = [latest[key].latest for key in values if key in fields and values[key]]
    stub = tree | {"model": MISSING, "data": {"train": MISSING, "val": MISSING}}
    base = make_plan(
        read_recipe(stub | {"reward": {"scorer": "verl"}}, where), release.verl, own_fields
    )
    files = {"train": base.recipe.data.train, "val": base.recipe.data.val}
    tree |= {
        "nodes": base.recipe.nodes,
        "devices_per_node": base.recipe.devices_per_node,
        "model": base.recipe.model,
        "data": {name: each[0] if len(each) == 1 else each for name, each in files.items()},
        "reward": {"scorer": base.recipe.reward.scorer},
    }
    for key in _INPUTS:
        if not values.get(key):
            text = "the script does not set it: it is ??? in the recipe."
            add("warning", "incomplete", key, text, "Put the value there.")
    own_env = {name: value for name, value in env.items() if base.env.get(name) != value}
    tree |= {"env": own_env} if own_env else {}
    tree["verl"] = _verl_section(latest, config, fields, base, add)
    try:
        make_plan(read_recipe(tree, where), release.verl)
    except RewardkitError as error:
        add("error", "plan", "the recipe", f"cannot be planned: {error}")
    return tree


def _choices(
    values: Mapping[str, Any],
    config: Mapping[str, Any],
    start: Start,
    release: Release,
    where: str,
    add: Callable[..., None],
) -> dict[str, Any]:
    """Return the fields that no single setting has."""
    stem, estimator = Path(where).stem, config.get("algorithm.adv_estimator")
    is_dapo = (
        start.module == DAPO_RECIPE,
        config.get("algorithm.filter_groups.enable") is True,
        config.get("reward.reward_manager.name") == "dapo",
    )
    device = values.get("trainer.device") or start.variables.get("DEVICE")
    if not device and re.search(r"(?<![a-z])(npu|ascend)(?![a-z])", stem.lower()):
        text = f"npu, from the name of the script, {stem}; the script itself does not say it."
        device, fix = "npu", "Set devices: gpu in the recipe if it runs on GPUs."
        add("info", "devices", "devices", text, fix)
    strategy = "fsdp2" if config.get(f"{ACTOR}.strategy") == "fsdp2" else "fsdp"
    name = re.sub(r"[^\w.\-]+", "-", str(values.get(NAME) or stem)).strip("-.")[:80]
    return {
        "name": name or "imported",
        "about": f"imported from {Path(where).name}",
        "algorithm": "ppo" if estimator == "gae" else "dapo" if any(is_dapo) else "grpo",
        "strategy": "megatron" if release.megatron else strategy,
        "devices": device if device in ("npu", "cpu") else "gpu",
    }


def _verl_section(
    latest: Mapping[str, Setting],
    config: Mapping[str, Any],
    fields: frozenset[str],
    base: Plan,
    add: Callable[..., None],
) -> dict[str, Any]:
    """Return what the fields do not set: other settings, and verl's defaults that they change."""
    release, section = base.release, dict[str, Any]()
    for key, setting in latest.items():
        name, sign, value = release.name_of(key), setting.latest.sign, setting.latest.value
        is_read = release.lists(name) or release.accepts_unlisted(name)
        sign = sign if sign == "~" or not is_read else ""
        is_passed = {*map(str, setting.overrides)} <= {*base.arguments}
        is_planned = (
            key in fields
            or key == "model_engine"
            or (is_passed and base.settings.get(key) == value)
        )
        if sign or not is_planned:
            section[f"{sign}{key}"] = value
    if config.get(f"{OVERLONG}.enable") is True:
        section.setdefault("reward.reward_kwargs.max_resp_len", "${data.max_response_length}")
    for key, value in base.settings.items():
        default = config.get(key)
        reasons = [reason for end, reason in _OWN_DEFAULTS.items() if key.endswith(end)]
        if key in latest or default is None or value in (default, MISSING):
            continue
        if reasons:
            text = f"not in the script (verl's default: {default}): {reasons[0]} ({value})."
            add("info", "differs", key, text)
        else:
            section[key] = default
    return section
