"""Where verl finds a run's scorer, and the settings that name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.recipe import Recipe
from rewardkit.launch.verl.key_renames import to_latest_key
from rewardkit.launch.verl.releases import parse_release
from rewardkit.launch.verl.reward_keys import NEW_KEY, PKG_SINCE
from rewardkit.registry import SCORERS, is_path

#: Targets that copy the scorer's file to the nodes, and the folder it is copied to.
NODE_FOLDERS: Mapping[str, str] = {
    "ray-job": "",
    "kuberay": "/rewardkit/",
    "skypilot": "/opt/rewardkit/",
}


def node_path(recipe: Recipe, verl: str) -> str | None:
    """Return the path of the scorer's file on the nodes; None if the target copies no file.

    No file is copied for verl's own scorers, nor where verl loads a scorer of rewardkit as
    `pkg://module`.
    """
    folder, scorer = NODE_FOLDERS.get(recipe.cluster.target), recipe.reward.scorer
    is_package = not is_path(scorer) and parse_release(verl) >= PKG_SINCE
    if folder is None or scorer == "verl" or is_package:
        return None
    # A guard's file has its own name, as the reward's file is copied beside it.
    return f"{folder}{Path(recipe.reward.guard_file or 'reward.py').name}"


def local_path(recipe: Recipe, verl: str) -> str | None:
    """Return the path of the scorer on this machine, or `pkg://module`; None for verl's own scorers."""
    from rewardkit.scorers.load import location

    scorer = recipe.reward.scorer
    if scorer == "verl":
        return None
    if recipe.reward.guard_file:
        return recipe.reward.guard_file
    if is_path(scorer):
        return str(Path(scorer.partition(":")[0]).expanduser().absolute())
    return location(scorer, pkg=parse_release(verl) >= PKG_SINCE)


def reward_settings(recipe: Recipe, verl: str) -> dict[str, Any]:
    """Return the settings of the reward function by verl 0.9.1's names; none for verl's own scorers.

    The options of a custom scorer are checked where it may be imported, in a process of its own.

    Raises:
        UsageError: the scorer does not exist, a built-in one has no such option, verl's own
            scorers are given options or are to record, or the nodes cannot find the folder.
    """
    from rewardkit.scorers.compose import part_weights
    from rewardkit.scorers.load import load_scorer

    scorer, options = recipe.reward.scorer, recipe.reward.options
    if scorer == "verl":
        if options:
            raise UsageError(
                "reward.options: verl's own scorers have no options; remove them or name a scorer."
            )
        if recipe.reward.record:
            raise UsageError(
                "reward.record: verl's own scorers record nothing; remove it or name a scorer."
            )
        return {}
    _require_reachable_records(recipe)
    if recipe.reward.guard_file:  # it has the options and the folder of records
        return {
            f"{NEW_KEY}.path": node_path(recipe, verl) or recipe.reward.guard_file,
            f"{NEW_KEY}.name": "compute_score",
        }
    file, _, function = scorer.partition(":")
    if recipe.reward.record and is_path(scorer) and not part_weights(file):
        raise UsageError(
            "reward.record: a file's function records through its guard; add `guard: {}` to reward."
        )
    if scorer in SCORERS:
        load_scorer(scorer, **options)
    return {
        f"{NEW_KEY}.path": node_path(recipe, verl) or local_path(recipe, verl),
        f"{NEW_KEY}.name": function or "compute_score",
        **{f"{NEW_KEY}.reward_kwargs.{name}": value for name, value in options.items()},
        **_record_setting(recipe),
    }


def _record_setting(recipe: Recipe) -> dict[str, Any]:
    """Return the setting of the folder of records; an absolute path, as workers run elsewhere."""
    if recipe.reward.record is None:
        return {}
    folder = Path(recipe.reward.record).expanduser().absolute()
    return {f"{NEW_KEY}.reward_kwargs.record": str(folder)}


def _require_reachable_records(recipe: Recipe) -> None:
    """Require a folder of records that the nodes can find."""
    record, target = recipe.reward.record, recipe.cluster.target
    if record and target in NODE_FOLDERS and not Path(record).expanduser().is_absolute():
        raise UsageError(
            f"reward.record: {record} is relative, but the nodes of {target} have other folders. "
            "Give an absolute path on storage that every node sees."
        )


def states_scorer(recipe: Recipe) -> bool:
    """Whether a recipe's `reward:` names a scorer or its options, so that no key may name another."""
    is_left_to_verl = recipe.reward.scorer == "verl" and not recipe.reward.options
    return "reward" in recipe.model_fields_set and not is_left_to_verl


def require_one_scorer(recipe: Recipe, section: Iterable[Override], verl: str) -> None:
    """Refuse a reward function under `verl:` that is not the one of the recipe's `reward:`.

    Args:
        recipe: the recipe as it is written.
        section: the settings under `verl:` that no override of the command line replaces.
        verl: the release.

    Raises:
        UsageError: `verl:` names another reward function, or another value for one of its options.
    """
    if not states_scorer(recipe):
        return
    own = reward_settings(recipe, verl) | {f"{NEW_KEY}.path": local_path(recipe, verl)}
    for override in section:
        key = to_latest_key(override.key)
        value = override.value
        if key == f"{NEW_KEY}.path" and is_path(str(value)):
            value = str(Path(str(value)).expanduser().absolute())
        if key in own and value != own[key]:
            raise UsageError(
                f"{override.origin}: {override.key}={override.value}, but reward.scorer is "
                f"{recipe.reward.scorer}: a run has one reward function. Remove the key, or remove "
                "reward: from the recipe."
            )
