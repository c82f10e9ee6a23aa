"""A plan: a recipe's settings by verl 0.9.1's names, and the command for one release.

The keys are translated to the release once, in `verl.translate`; all other code
reads a plan's settings by their names in 0.9.1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override, parse_verl_section
from rewardkit.launch.presets import REWARD_KEYS, environment, gdpo_settings, preset
from rewardkit.launch.recipe import MISSING, Recipe, merge_fields
from rewardkit.launch.scorer_location import compare_scorers, local_path, node_path, reward_settings
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import (
    NEW_KEY,
    Release,
    parse_release,
    release_notice,
    release_of,
    to_latest_key,
)
from rewardkit.launch.verl.translate import Note, resolve, translate, without_ballast

__all__ = ["MISSING", "Plan", "make_plan"]

TRAINER = "verl.trainer.main_ppo"
DAPO_RECIPE = "recipe.dapo.main_dapo"

#: First release whose main trainer has dynamic sampling; before, only verl's DAPO recipe has it.
FILTER_SINCE = (0, 9, 0)

#: First release in which Megatron is a model engine; before, it has a configuration file.
ENGINE_SINCE = (0, 8, 0)

#: The order in which settings are printed.
_SECTIONS = (
    "data actor_rollout_ref.model actor_rollout_ref.actor actor_rollout_ref.rollout "
    "actor_rollout_ref.ref actor_rollout_ref critic reward reward_model custom_reward_function algorithm trainer"
).split()

#: Settings of verl that are fields of a recipe; an override of one also changes the field.
_FIELDS = {
    "trainer.nnodes": "nodes",
    "trainer.n_gpus_per_node": "devices_per_node",
    "actor_rollout_ref.model.path": "model",
    "data.train_files": "data.train",
    "data.val_files": "data.val",
}

#: Settings of verl that must change together with others: the recipe's field `strategy` does that.
_STRATEGY_KEYS = frozenset({"model_engine", "actor_rollout_ref.actor.strategy"})
_STRATEGIES = frozenset(get_args(Recipe.model_fields["strategy"].annotation))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A launch of verl: its module, run with `python3 -m`, and the arguments for a release.

    A setting that only follows from a field of the recipe is left out where it would change nothing. The recipe
    has the fields that were set by verl's names. `settings` are all of the recipe and its fields, and
    `missing` those that are still `???`, by verl 0.9.1's names; `config` has the release's defaults with the
    settings in them, by its own names. `secrets` has the known values of the `<secret:NAME>` marks.
    """

    recipe: Recipe
    release: Release
    module: str
    arguments: tuple[str, ...]
    settings: Mapping[str, Any]
    config: Mapping[str, Any]
    env: Mapping[str, str]
    notes: tuple[Note, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    missing: tuple[str, ...] = ()

    @property
    def verl(self) -> str:
        """The version of the release."""
        return self.release.verl

    def local_arguments(self) -> list[str]:
        """Return the arguments for this machine: with the scorer's file here, not on the nodes."""
        path, copied = f"{NEW_KEY}.path", node_path(self.recipe)
        if copied is None or self.get(path) != copied:
            return list(self.arguments)
        key, here = self.release.name_of(path), local_path(self.recipe)
        local = {f"{key}={format_value(copied)}": f"{key}={format_value(here)}"}
        return [local.get(argument, argument) for argument in self.arguments]

    def command(self) -> list[str]:
        """Return the command as a list of arguments; join it with `shlex.join` only."""
        return [self.recipe.cluster.python, "-m", self.module, *self.arguments]

    def shell_command(self) -> str:
        """Return the command for a shell, with an argument on each line."""
        first = " ".join(map(shell_word, self.command()[:3]))
        return " \\\n  ".join([first, *map(shell_word, self.arguments)])

    def get(self, key: str, default: Any = None) -> Any:
        """Return the effective value of a setting, by its name in any release.

        An interpolation of a single key is resolved. Return `default` if the release does not have
        the setting, or if it is null or `???`.
        """
        latest = to_latest_key(key, megatron=self.release.megatron)
        value = resolve(self.release.name_of(latest), self.config)
        return default if value is None or value == MISSING else value


def make_plan(
    recipe: Recipe,
    verl: str,
    overrides: Iterable[Override] = (),
    *,
    secrets: Mapping[str, str] | None = None,
) -> Plan:
    """Plan a recipe for a release of verl; the overrides of the command line win over the recipe.

    An unknown release is planned as the nearest older one, `main` as the snapshot.
    """
    overrides = list(overrides)
    section = parse_verl_section(recipe.verl, "the recipe's `verl:`")
    scorer_notes = compare_scorers(recipe, section, overrides)
    recipe = _merge_overrides(recipe, [*section, *overrides])
    settings = _settings(recipe, [*section, *overrides], verl)
    values = {setting.key: setting.value for setting in settings if setting.sign != "~"}
    missing = [setting for setting in settings if setting.value == MISSING]
    number = release_of(verl).number
    samples = values.get("algorithm.filter_groups.enable") is True
    release = release_of(
        verl, megatron=recipe.strategy == "megatron", dapo_recipe=samples and number < FILTER_SINCE
    )
    passed, changes = translate([s for s in settings if s.value != MISSING], release)
    # Other defaults may apply where the run is: in an unknown release, and in AscendFactory's own file.
    if parse_release(verl) <= number and recipe.cluster.target != "modelarts":
        passed = without_ballast(passed, release)
    config = {**release.keys, **{override.key: override.value for override in passed}}
    config |= {release.name_of(setting.key): MISSING for setting in missing}
    engine: list[str] = []
    if release.megatron:
        engine = ["--config-path=config", "--config-name=ppo_megatron_trainer.yaml"]
        engine = ["model_engine=megatron"] if number >= ENGINE_SINCE else engine
    text = "is ??? in the recipe: put its value there, or pass it after `--`."
    names = [setting.written or release.name_of(setting.key) for setting in missing]
    return Plan(
        recipe=recipe,
        release=release,
        module=DAPO_RECIPE if release.dapo_recipe else TRAINER,
        arguments=(*engine, *map(str, sorted(passed, key=_section_index))),
        settings=values,
        config=config,
        env={name: expand_home(value) for name, value in environment(recipe, config).items()},
        notes=(
            *(Note("missing", name, text) for name in names),
            *changes,
            *scorer_notes,
            *_release_notes(release, verl),
        ),
        missing=tuple(setting.key for setting in missing),
        secrets=secrets or {},
    )


def _merge_overrides(recipe: Recipe, overrides: Iterable[Override]) -> Recipe:
    """Return the recipe with the fields that overrides set by verl's names."""
    fields: dict[str, Any] = {}
    reward = {"path": "", "name": "compute_score"}
    for override in overrides:
        _require_allowed(override, recipe)
        key, value = to_latest_key(override.key), override.value
        section, _, name = key.rpartition(".")
        if section == NEW_KEY and name in reward and value not in ("", None, MISSING):
            reward[name] = str(value)
            if name == "path" and not reward[name].endswith(".py"):
                raise UsageError(
                    f"{override.key}={value}: set a scorer by name: --set reward.scorer=NAME."
                )
        elif key in _FIELDS and override.sign != "~":
            section, _, name = _FIELDS[key].rpartition(".")
            (fields.setdefault(section, {}) if section else fields)[name] = value
    if reward["path"]:
        fields["reward"] = {"scorer": f"{reward['path']}:{reward['name']}"}
    if not fields:
        return recipe
    merged = merge_fields(recipe, fields, "the command line")
    if reward["path"]:
        return merged
    guarded = merged.reward.with_guard_file(recipe.reward.guard_file)
    return merged.model_copy(update={"reward": guarded})


def _require_allowed(override: Override, recipe: Recipe) -> None:
    """Refuse an override that must be set as a field of the recipe, because more depends on it."""
    key, value = override.key, override.value
    strategy = "fsdp" if value == "dp" else str(value)
    if key in type(recipe).model_fields:
        problem = f"{key} is a field of the recipe: --set {key}={value}."
    elif key not in _STRATEGY_KEYS or strategy == recipe.strategy:
        return
    elif strategy in _STRATEGIES:
        problem = f"{key}={value} alone changes no other setting: set "
        problem += f"strategy: {strategy} in the recipe, or --set strategy={strategy}."
    else:
        problem = f"{key}={value}: rewardkit plans for FSDP and Megatron only. "
        problem += "Delete the setting, or start verl without rewardkit."
    raise UsageError(f"{override.origin}: {problem}")


def _settings(recipe: Recipe, overrides: Iterable[Override], verl: str) -> list[Override]:
    """Return all settings by verl 0.9.1's names, each once: the last one wins."""
    base = {**preset(recipe), **_field_settings(recipe), **reward_settings(recipe)}
    if recipe.algorithm == "gdpo":
        from rewardkit.scorers.compose import part_weights

        has_keys = any(to_latest_key(override.key) == REWARD_KEYS for override in overrides)
        file = recipe.reward.scorer.partition(":")[0]
        base |= gdpo_settings({} if has_keys else part_weights(file), verl)
    megatron = recipe.strategy == "megatron"
    settings = {}
    for name, value in base.items():
        key = to_latest_key(name, megatron=megatron)
        settings[key] = Override(key, value, origin="the recipe")
    for override in overrides:
        key = override.key if override.is_group else to_latest_key(override.key, megatron=megatron)
        value = expand_home(override.value)
        settings[key] = replace(override, key=key, value=value, written=override.key)
    return list(settings.values())


def _field_settings(recipe: Recipe) -> dict[str, Any]:
    model = expand_home(recipe.model)
    train, val = (
        files[0] if len(files) == 1 else files
        for files in map(expand_home, (recipe.data.train, recipe.data.val or recipe.data.train))
    )
    settings: dict[str, Any] = {
        "data.train_files": train,
        "actor_rollout_ref.model.path": model,
        "trainer.nnodes": recipe.nodes,
        "trainer.n_gpus_per_node": recipe.devices_per_node,
        "trainer.experiment_name": recipe.name,
        "data.val_files": val,  # verl reads a validation file even where it does not validate
    }
    if not recipe.data.val:
        settings |= {"trainer.test_freq": -1, "trainer.val_before_train": False}
    return settings | ({"critic.model.path": model} if recipe.algorithm == "ppo" else {})


def expand_home(value: Any) -> Any:
    """Return a value, or the items of a list, with `~` at its start expanded: verl does not do it."""
    if isinstance(value, list):
        return [expand_home(item) for item in value]
    is_at_home = isinstance(value, str) and (value == "~" or value.startswith("~/"))
    return str(Path(value).expanduser()) if is_at_home else value


def _release_notes(release: Release, verl: str) -> Iterable[Note]:
    if notice := release_notice(verl):
        yield Note("hint", f"verl {verl}", notice)
    if release.dapo_recipe:
        yield Note(
            "hint",
            DAPO_RECIPE,
            f"verl {release.verl} samples dynamically in its DAPO recipe only, which is not in the "
            "wheel: start it in a checkout of verl that has recipe/dapo (from 0.7.1 on, git "
            "submodule update --init recipe), or use verl 0.9.",
        )


def _section_index(override: Override) -> int:
    matches = (i for i, name in enumerate(_SECTIONS) if override.key.startswith(f"{name}."))
    return next(matches, len(_SECTIONS))
