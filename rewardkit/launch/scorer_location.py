"""Where verl finds a run's scorer, and the settings that name it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import Override
from rewardkit.launch.recipe import MISSING, Recipe
from rewardkit.launch.verl.releases import NEW_KEY, to_latest_key
from rewardkit.launch.verl.translate import Note
from rewardkit.registry import SCORERS, is_path, target

#: Targets that copy the scorer's file to the nodes, and the folder it is copied to.
NODE_FOLDERS: Mapping[str, str] = {
    "ray-job": "",
    "kuberay": "/rewardkit/",
    "skypilot": "/opt/rewardkit/",
}


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
    scorer = recipe.reward.scorer
    if recipe.reward.guard_file or scorer == "verl":
        return recipe.reward.guard_file or None
    file = scorer.partition(":")[0]
    module = None if is_path(scorer) else target("scorers", scorer).partition(":")[0]
    return f"pkg://{module}" if module else absolute(file)


def absolute(path: str) -> str:
    """Return a path from the root, without `~`."""
    return str(Path(path).expanduser().absolute())


def reward_settings(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of the reward function by verl 0.9.1's names; none for verl's own scorers.

    The options of a custom scorer are checked where it may be imported, in a process of its own.
    """
    reward, scorer = recipe.reward, recipe.reward.scorer
    options, record = reward.options, reward.record
    if scorer == "verl":
        if options or record:
            raise UsageError(
                "reward: verl's own scorers record nothing and have no options; remove record and "
                "options, or name a scorer."
            )
        return {}
    if (
        record
        and recipe.cluster.target in NODE_FOLDERS
        and not Path(record).expanduser().is_absolute()
    ):
        raise UsageError(
            f"reward.record: {record} is relative, but the nodes of {recipe.cluster.target} have other "
            "folders. Give an absolute path on storage that every node sees."
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
    settings[f"{NEW_KEY}.name"] = function or "compute_score"
    options = options | ({"record": absolute(record)} if record else {})  # workers run elsewhere
    return settings | {f"{NEW_KEY}.reward_kwargs.{name}": v for name, v in options.items()}


def compare_scorers(
    recipe: Recipe, section: Iterable[Override], overrides: Iterable[Override]
) -> list[Note]:
    """Compare the reward function that a recipe's `reward:` names with those that keys of verl name.

    The command line may have another function, which is a note; the recipe's own `verl:` may not, nor
    another value for one of its options: no key may silently win.
    """
    reward = recipe.reward
    if "reward" not in recipe.model_fields_set or (reward.scorer == "verl" and not reward.options):
        return []  # it is left to verl
    own = reward_settings(recipe) | {f"{NEW_KEY}.path": local_path(recipe)}
    replaced = {to_latest_key(override.key): override for override in overrides}
    for override in section:
        key, value = to_latest_key(override.key), override.value
        if key in replaced or value == MISSING:
            continue
        if key == f"{NEW_KEY}.path" and is_path(str(value)):
            value = absolute(str(value))
        if key in own and value != own[key]:
            raise UsageError(
                f"{override.origin}: {override.key}={override.value}, but reward.scorer is "
                f"{reward.scorer}: a run has one reward function. Remove the key, or remove reward: from the recipe."
            )
    other = replaced.get(f"{NEW_KEY}.path")
    if other is None or not other.value or str(other.value) == reward.scorer.partition(":")[0]:
        return []
    text = f"replaces the recipe's reward.scorer, {reward.scorer}"
    return [Note("hint", other.key, f"{text}{' and its options' if reward.options else ''}.")]
