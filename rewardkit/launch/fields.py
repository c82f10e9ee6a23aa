"""Fields of a recipe that somebody set by verl's names instead."""

from __future__ import annotations

from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.recipe import Recipe, deep_merge, read_recipe
from rewardkit.launch.verl.key_renames import A, to_latest_key

REWARD = "reward.custom_reward_function"

#: Settings of verl's from which more follows: a field of the recipe says it.
_STRATEGY = frozenset({"model_engine", f"{A}actor.strategy"})


def _refuse(override: Override, recipe: Recipe) -> None:
    """A setting that the recipe decides and that would leave the rest as it was."""
    name = override.key.partition(".")[0]
    if override.key == name and name in type(recipe).model_fields:
        raise UsageError(
            f"{override.origin}: {name} is a field of the recipe: --set {name}={override.value}."
        )
    value = str(override.value)
    if override.key in _STRATEGY and value != recipe.strategy:
        raise UsageError(
            f"{override.origin}: {override.key}={value} alone leaves the rest as it was: set "
            f"strategy: {value} in the recipe, or --set strategy={value}."
        )


#: Settings of verl's that are fields of the recipe: what is made of these must see them too.
_FOLDED = {
    "trainer.nnodes": ("nodes",),
    "trainer.n_gpus_per_node": ("devices_per_node",),
    f"{A}model.path": ("model",),
    "data.train_files": ("data", "train"),
    "data.val_files": ("data", "val"),
}


def apply_overrides(recipe: Recipe, written: list[Override]) -> Recipe:
    """The recipe with the fields that somebody set by verl's names.

    Args:
        recipe: as it was read.
        written: overrides of its `verl:` and of the command line.

    Raises:
        DataError: such a value is not of the field's type.
        UsageError: a setting decides what only the recipe may, or the reward function is no file.
    """
    for override in written:
        _refuse(override, recipe)
    tree = recipe.model_dump(mode="json")
    for override in written:
        key = to_latest_key(override.key)
        if key == f"{REWARD}.path" and override.value:
            tree["reward"] = {"scorer": _scorer(str(override.value), written), "options": {}}
        if key in _FOLDED and override.sign != "~":
            part: Any = override.value
            for name in reversed(_FOLDED[key]):
                part = {name: part}
            tree = deep_merge(tree, part)
    return read_recipe(tree, "the command line")


def _scorer(path: str, written: list[Override]) -> str:
    """The scorer that verl's own keys name."""
    if not path.endswith(".py"):
        raise UsageError(f"{REWARD}.path={path}: set a scorer by name: --set reward.scorer=NAME.")
    names = [o.value for o in written if to_latest_key(o.key) == f"{REWARD}.name"]
    return f"{path}:{names[-1] if names else 'compute_score'}"
