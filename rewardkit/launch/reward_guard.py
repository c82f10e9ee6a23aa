"""The file that guards a recipe's reward: tried on the training rows, and written for verl."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.guard.guard import GuardSettings
from rewardkit.guard.guard_file import (
    guard_file_text,
    secret_variables,
    trial_rows,
    try_reward,
    why_not_guarded,
)
from rewardkit.launch.recipe import Recipe, RewardGuard
from rewardkit.launch.scorer_location import absolute
from rewardkit.launch.secret_values import MARK, reveal_options
from rewardkit.output import atomic
from rewardkit.registry import is_path, with_function

#: Folder of the files, in the folder of the launch, which all nodes see.
FOLDER = "runs/guards"


def guard_reward(
    recipe: Recipe, section: RewardGuard, load_seconds: float, secrets: Mapping[str, str]
) -> Recipe:
    """Write the file that guards a recipe's reward, and return the recipe that names it.

    The name of the file depends on what is in it, so that a run never gets another run's file. It reads the
    secrets that the reward's options have marks for from the environment.
    """
    scorer = recipe.reward.scorer
    if not is_path(scorer):
        why = "verl's own scorers get no guard." if scorer == "verl" else why_not_guarded(scorer)
        raise UsageError(f"reward.guard: {why}")
    reward, learned = with_function(scorer), {"keys", "wrong_score", "right_score"}
    record = recipe.reward.record
    settings = GuardSettings(
        options=_options(recipe.reward.options, secrets),
        record=absolute(record) if record else "",
        load_seconds=load_seconds,
        **section.model_dump(exclude=learned),
    )
    train = next((Path(file) for file in recipe.data.train if Path(file).is_file()), None)
    given = section.model_dump(include=learned)
    trial, settings = try_reward(reward, settings, trial_rows(train), **given)
    text = guard_file_text(reward, trial, settings)
    name = f"{Path(reward.partition(':')[0]).stem}-{sha256(text.encode()).hexdigest()[:12]}.py"
    path = Path(FOLDER, name).absolute()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path, overwrite=True) as temporary:  # another launch may have just written it
            temporary.write_text(text, encoding="utf-8")
    return recipe.model_copy(update={"reward": recipe.reward.with_guard_file(str(path))})


def _options(options: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """Return a reward's options with the values of secrets, for the trial."""
    revealed = reveal_options(options, secrets)
    if MARK.search(str(revealed)):
        raise UsageError(
            "reward.options: a secret in a mapping would be written into a file. Make it an option of its own."
        )
    for name, variable in secret_variables(revealed).items():
        if not os.environ.get(variable):
            raise UsageError(
                f"reward.options.{name} is a secret, which a guarded reward reads from {variable}. "
                "Export it here and where verl runs."
            )
    return revealed
