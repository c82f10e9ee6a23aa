"""Where verl finds a run's scorer, and the settings that name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.reward_keys import NEW_KEY
from rewardkit.registry import SCORERS, is_path

#: Targets that copy the scorer's file to the nodes, and the folder it is copied to.
NODE_FOLDERS: Mapping[str, str] = {
    "ray-job": "",
    "kuberay": "/rewardkit/",
    "skypilot": "/opt/rewardkit/",
}


def absolute(path: str) -> str:
    """Return an absolute path, with `~` expanded."""
    return str(Path(path).expanduser().absolute())


def node_path(recipe: Recipe) -> str | None:
    """Return the path of the scorer's file on the nodes; None if the target copies no file.

    A guard's file has its own name, as the reward's file is copied beside it.
    """
    folder = NODE_FOLDERS.get(recipe.cluster.target)
    if folder is None or not is_path(recipe.reward.scorer):
        return None
    return f"{folder}{Path(recipe.reward.guard_file or 'reward.py').name}"


def local_path(recipe: Recipe) -> str | None:
    """Return the path of the scorer on this machine, or `pkg://module`; None for verl's own scorers."""
    from rewardkit.scorers.load import location

    scorer = recipe.reward.scorer
    if recipe.reward.guard_file or scorer == "verl":
        return recipe.reward.guard_file or None
    return absolute(scorer.partition(":")[0]) if is_path(scorer) else location(scorer, pkg=True)


def reward_settings(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of the reward function by verl 0.9.1's names; none for verl's own scorers.

    The options of a custom scorer are checked where it may be imported, in a process of its own.

    Raises:
        UsageError: the scorer does not exist, a built-in one has no such option, verl's own
            scorers are given options or are to record, or the nodes cannot find the folder.
    """
    reward, target = recipe.reward, recipe.cluster.target
    scorer, options, record = reward.scorer, reward.options, reward.record
    if scorer == "verl":
        if options:
            raise UsageError(
                "reward.options: verl's own scorers have no options; remove them or name a scorer."
            )
        if record:
            raise UsageError(
                "reward.record: verl's own scorers record nothing; remove it or name a scorer."
            )
        return {}
    if record and target in NODE_FOLDERS and not Path(record).expanduser().is_absolute():
        raise UsageError(
            f"reward.record: {record} is relative, but the nodes of {target} have other folders. "
            "Give an absolute path on storage that every node sees."
        )
    file, _, function = scorer.partition(":")
    settings = {f"{NEW_KEY}.path": node_path(recipe) or local_path(recipe)}
    if reward.guard_file:  # it has the options and the folder of records
        return settings | {f"{NEW_KEY}.name": "compute_score"}
    if record and is_path(scorer):
        from rewardkit.scorers.compose import part_weights

        if not part_weights(file):
            raise UsageError(
                "reward.record: a file's function records through its guard; add `guard: {}` to reward."
            )
    if options and scorer in SCORERS:
        from rewardkit.scorers.load import load_scorer

        load_scorer(scorer, **options)
    options = (
        {**options, "record": absolute(record)} if record else options
    )  # workers run elsewhere
    settings[f"{NEW_KEY}.name"] = function or "compute_score"
    return settings | {f"{NEW_KEY}.reward_kwargs.{name}": v for name, v in options.items()}


def states_scorer(recipe: Recipe) -> bool:
    """Whether a recipe's `reward:` names a scorer or its options, so that no key may name another."""
    is_left_to_verl = recipe.reward.scorer == "verl" and not recipe.reward.options
    return "reward" in recipe.model_fields_set and not is_left_to_verl


def require_one_scorer(recipe: Recipe, section: Iterable[Override]) -> None:
    """Refuse a reward function under `verl:` that is not the one of the recipe's `reward:`.

    Args:
        recipe: the recipe as it is written.
        section: the settings under `verl:` that no override of the command line replaces.

    Raises:
        UsageError: `verl:` names another reward function, or another value for one of its options.
    """
    if not states_scorer(recipe):
        return
    own = reward_settings(recipe) | {f"{NEW_KEY}.path": local_path(recipe)}
    for override in section:
        key, value = to_latest_key(override.key), override.value
        if key == f"{NEW_KEY}.path" and is_path(str(value)):
            value = absolute(str(value))
        if key in own and value != own[key]:
            raise UsageError(
                f"{override.origin}: {override.key}={override.value}, but reward.scorer is "
                f"{recipe.reward.scorer}: a run has one reward function. Remove the key, or remove "
                "reward: from the recipe."
            )
