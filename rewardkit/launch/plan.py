"""A plan: the exact command that a recipe is for one release of verl."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rewardkit.errors import UsageError
from rewardkit.launch.fields import REWARD, apply_overrides
from rewardkit.launch.overrides import Override, from_yaml
from rewardkit.launch.presets import NO_BUFFER, environment, preset
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.verl.hydra_values import Raw, parse_value
from rewardkit.launch.verl.key_renames import ignored_key, to_latest_key, to_release_key
from rewardkit.launch.verl.keys import PKG_SINCE, parse_release
from rewardkit.launch.verl.releases import Release, known_releases, release_of
from rewardkit.registry import did_you_mean, is_path

TRAINER = "verl.trainer.main_ppo"
DAPO_RECIPE = "recipe.dapo.main_dapo"

#: The main trainer samples dynamically from this release on; before it, verl's DAPO recipe does.
FILTER_SINCE = (0, 9, 0)

#: From this release on Megatron is a model engine; before it, a configuration of its own.
ENGINE_SINCE = (0, 7, 1)

#: Before it, verl's dapo reward manager ends at the first sample where it is given no buffer.
BUFFER_OPTIONAL_SINCE = (0, 7, 1)

#: The order in which settings are printed.
_ORDER = (
    "data",
    "actor_rollout_ref.model",
    "actor_rollout_ref.actor",
    "actor_rollout_ref.rollout",
    "actor_rollout_ref.ref",
    "actor_rollout_ref",
    "critic",
    "reward",
    "reward_model",
    "custom_reward_function",
    "algorithm",
    "trainer",
)


#: `${data.seed}`, `${oc.select:data.seed,1}`, and the same from the section it stands in (`.x`).
_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?(\.*[\w.]+)(?:,([^{}]*))?\}")


@dataclass(frozen=True)
class Note:
    """Something that was done to a setting, for the person to know.

    Attributes:
        kind: `renamed`, `dropped` (it is not in the command) or `hint`.
        key: as it was written.
        text: what became of it and why.
    """

    kind: Literal["renamed", "dropped", "hint"]
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}"


@dataclass(frozen=True)
class Plan:
    """A launch of verl.

    Attributes:
        recipe: what it is of.
        verl: the release its keys are for.
        module: of verl, run with `python3 -m`.
        arguments: of the module, Hydra's overrides and options.
        settings: what was asked for, by verl 0.9.1's names.
        config: the release's defaults with the settings in them, by the release's names.
        env: variables that all nodes share.
        notes: what was renamed or left out.
        secrets: values of the variables that `<secret:NAME>` in an argument names, those known.
    """

    recipe: Recipe
    verl: str
    module: str
    arguments: tuple[str, ...]
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    env: Mapping[str, str]
    notes: tuple[Note, ...] = field(default=())
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def command(self) -> list[str]:
        """The command as a list of arguments, never to be joined without `shlex.join`."""
        return [self.recipe.cluster.python, "-m", self.module, *self.arguments]

    def shown(self) -> str:
        """The command for a shell, an argument a line."""
        first = " ".join(map(shell_word, self.command()[:3]))
        return " \\\n  ".join([first, *map(shell_word, self.arguments)])

    def get(self, key: str, default: Any = None) -> Any:
        """The effective value of a setting, asked for by verl 0.9.1's name.

        Interpolations of a single key are followed, with what they fall back to; a setting that
        the release does not have, or that is null, is `default`.
        """
        megatron = self.recipe.strategy == "megatron"
        recipe = self.module == DAPO_RECIPE
        name = to_release_key(key, parse_release(self.verl), megatron=megatron, dapo_recipe=recipe)
        value = self.config.get(name)
        for _ in range(5):
            match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                break
            target = match[1] if not match[1].startswith(".") else _beside(name, match[1])
            fallback = None if match[2] is None else parse_value(match[2])
            value = self.config.get(target, fallback)
        return default if value is None or value == "???" else value


def _beside(name: str, relative: str) -> str:
    """`a.b.c` and `.d` -> `a.b.d`; a dot more is a section further up."""
    up = len(relative) - len(relative.lstrip("."))
    return ".".join([*name.split(".")[:-up], relative.lstrip(".")])


def make_plan(
    recipe: Recipe,
    verl: str,
    overrides: Iterable[Override] = (),
    *,
    reward_path: str | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Plan:
    """What a recipe is in a release of verl.

    Args:
        recipe: the run.
        verl: a version, as in 0.9.1 or 0.8.
        overrides: from the command line; they win over all else.
        reward_path: of the scorer's file on the nodes, where it is not the one here.
        secrets: what `secret_values.conceal` took out of recipe and overrides.

    Raises:
        UsageError: a key that no release knows (the message suggests the nearest), a scorer that
            does not load, or a release that cannot do what is asked.
    """
    written = [*from_yaml(recipe.verl, "the recipe's `verl:`"), *overrides]
    recipe = apply_overrides(recipe, written)
    asked = _asked(recipe, written, verl, reward_path)
    settings = {override.key: override.value for override in asked if override.sign != "~"}
    module = _module(settings, verl)
    known = release_of(
        verl, megatron=recipe.strategy == "megatron", dapo_recipe=module == DAPO_RECIPE
    )
    kept, notes = _translated(asked, known, recipe, module)
    if parse_release(verl) > known.number:
        notes.append(
            Note("hint", f"verl {verl}", f"is newer than we know: planned as {known.verl}.")
        )
    if module == DAPO_RECIPE:
        notes.append(_recipe_hint(known))
    config = {**known.keys, **{override.key: override.value for override in kept}}
    return Plan(
        recipe=recipe,
        verl=known.verl,
        module=module,
        arguments=(*_engine(recipe, known), *(str(override) for override in _sorted(kept))),
        settings=settings,
        config=config,
        env=environment(recipe, config),
        notes=tuple(notes),
        secrets=secrets or {},
    )


def _asked(
    recipe: Recipe, written: list[Override], verl: str, reward_path: str | None
) -> list[Override]:
    """All settings by 0.9.1's names, each once: the last one wins."""
    base = {**preset(recipe), **_fields(recipe), **_reward(recipe, verl, reward_path)}
    if parse_release(release_of(verl).verl) < BUFFER_OPTIONAL_SINCE:
        base = {**NO_BUFFER, **base} if recipe.algorithm == "dapo" else base
    merged = {key: Override(key, value, origin="the recipe") for key, value in base.items()}
    for override in written:
        megatron = recipe.strategy == "megatron"
        key = override.key if override.is_group else to_latest_key(override.key, megatron=megatron)
        merged[key] = replace(override, key=key, written=override.key)
    return list(merged.values())


def _fields(recipe: Recipe) -> dict[str, Any]:
    """The settings that a recipe's own fields are."""
    settings: dict[str, Any] = {
        "data.train_files": _files(recipe.data.train),
        "actor_rollout_ref.model.path": recipe.model,
        "trainer.nnodes": recipe.nodes,
        "trainer.n_gpus_per_node": recipe.devices_per_node,
        "trainer.experiment_name": recipe.name,
    }
    if recipe.data.val:
        settings["data.val_files"] = _files(recipe.data.val)
    else:  # verl reads a validation file in any case
        settings["data.val_files"] = _files(recipe.data.train)
        settings["trainer.test_freq"] = -1
        settings["trainer.val_before_train"] = False
    if recipe.algorithm == "ppo":
        settings["critic.model.path"] = recipe.model
    return settings


def _files(names: list[str]) -> Any:
    """One file as text, several as a list; `~` is ours to expand, verl does not."""
    expanded = [str(Path(name).expanduser()) if name.startswith("~") else name for name in names]
    return expanded[0] if len(expanded) == 1 else expanded


def _reward(recipe: Recipe, verl: str, path: str | None) -> dict[str, Any]:
    """The settings of the reward function; none for verl's own scorers."""
    from rewardkit.scorers.load import load_scorer, location

    scorer, options = recipe.reward.scorer, recipe.reward.options
    if scorer == "verl":
        if options:
            raise UsageError("reward.options: verl's own scorers take none; name a scorer.")
        return {}
    key = REWARD
    if is_path(scorer):
        file, _, name = scorer.partition(":")
        where = path or str(Path(file).expanduser().absolute())
        settings = {f"{key}.path": where, f"{key}.name": name or "compute_score"}
    else:
        load_scorer(scorer, **options)
        where = path or location(scorer, pkg=parse_release(verl) >= PKG_SINCE)
        settings = {f"{key}.path": where, f"{key}.name": "compute_score"}
    return settings | {f"{key}.reward_kwargs.{name}": value for name, value in options.items()}


def _module(settings: Mapping[str, Any], verl: str) -> str:
    """The module of verl that does what the settings ask for."""
    dynamic = settings.get("algorithm.filter_groups.enable") is True
    before = parse_release(release_of(verl).verl) < FILTER_SINCE
    return DAPO_RECIPE if dynamic and before else TRAINER


def _recipe_hint(known: Release) -> Note:
    return Note(
        "hint",
        DAPO_RECIPE,
        f"verl {known.verl} samples dynamically in its DAPO recipe only, which is not in the wheel: "
        "start it in a checkout of verl that has recipe/dapo (from 0.7.1 on, git submodule update "
        "--init recipe), or use verl 0.9.",
    )


def _engine(recipe: Recipe, known: Release) -> list[str]:
    if recipe.strategy != "megatron":
        return []
    if known.number >= ENGINE_SINCE:
        return ["model_engine=megatron"]
    return ["--config-path=config", "--config-name=ppo_megatron_trainer.yaml"]


def _translated(
    asked: list[Override], known: Release, recipe: Recipe, module: str
) -> tuple[list[Override], list[Note]]:
    """The settings by the release's names, without those it does not act on, and what was done."""
    kept: list[Override] = []
    notes: list[Note] = []
    kind = {"megatron": recipe.strategy == "megatron", "dapo_recipe": module == DAPO_RECIPE}
    for override in asked:
        if override.is_group:
            kept.append(override)
            continue
        key = to_release_key(override.key, known.number, **kind)
        reason = _dropped(override, key, known, kind)
        if reason:
            notes.append(Note("dropped", override.key, reason))
            continue
        if override.written not in {"", key}:
            notes.append(Note("renamed", override.written, f"is {key} in verl {known.verl}."))
        if known.refuses(key, override.value):
            raise UsageError(
                f"{override.origin}: {override.key}={override.value!r} is text; verl "
                f"{known.verl} has {known.keys[key]!r} there."
            )
        if override.sign in {"+", "++"} and not known.lists(key) and not known.open_at(key):
            near = did_you_mean(key, list(known.keys))
            notes.append(Note("hint", key, f"verl {known.verl} does not list it.{near}"))
        sign = override.sign if override.sign == "~" else "" if known.lists(key) else "+"
        kept.append(replace(override, key=key, sign=sign))
    return kept, notes


def _dropped(override: Override, key: str, known: Release, kind: Mapping[str, bool]) -> str | None:
    """Why a setting is not in the command; None if it is.

    Raises:
        UsageError: no release knows it, and no `+` says that this is meant.
    """
    if kind["dapo_recipe"] and override.key == "reward.reward_kwargs.max_resp_len":
        return "the recipe passes it by itself."
    if not key:
        return f"verl {known.verl} has no such setting."
    if entry := ignored_key(key, known.number, **kind):
        return f"verl {known.verl}: {entry.why}."
    section = known.lists(key) and key not in known.keys
    if section and override.sign != "~" and not isinstance(override.value, (Mapping, Raw)):
        raise UsageError(f"{override.origin}: {key} is a section of verl's: set a key in it.")
    if known.lists(key) or known.open_at(key) or override.sign in {"+", "++"}:
        return None
    if since := _listed_by(override.key, megatron=kind["megatron"]):
        return f"verl {known.verl} has no such setting ({since} has)."
    other = _listed_by(override.key, megatron=not kind["megatron"])
    if other:
        engine = "FSDP" if kind["megatron"] else "Megatron"
        return f"a setting of {engine}, and this run is not of it."
    raise UsageError(
        f"{override.origin}: verl {known.verl} has no key {override.key!r}."
        f"{did_you_mean(override.key, list(known.keys))} "
        "Write +key if it is meant for something that reads it without listing it."
    )


def _listed_by(key: str, *, megatron: bool) -> str | None:
    """The newest release that lists a key."""
    for version in reversed(known_releases()):
        release_keys = release_of(version, megatron=megatron)
        if release_keys.lists(key):
            return f"verl {version}"
    return None


def _sorted(overrides: list[Override]) -> list[Override]:
    def place(override: Override) -> int:
        fits = [i for i, name in enumerate(_ORDER) if override.key.startswith(f"{name}.")]
        return fits[0] if fits else len(_ORDER)

    return sorted(overrides, key=place)
