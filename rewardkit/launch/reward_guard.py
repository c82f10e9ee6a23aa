"""The file that guards a recipe's reward: tried on the training rows, and written for verl."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.guard.guard import GuardSettings
from rewardkit.guard.guard_file import (
    guard_file_text,
    settings_after_trial,
    trial_rows,
    try_reward,
)
from rewardkit.launch.recipe import Recipe
from rewardkit.output import atomic
from rewardkit.registry import is_path, with_function

#: Folder of the files, in the folder of the launch, which all nodes see.
FOLDER = "runs/guards"


def guard_reward(recipe: Recipe, load_seconds: float) -> Recipe:
    """Write the file that guards a recipe's reward, and return the recipe that names it.

    The name of the file depends on what is in it, so that a run never gets another run's file.

    Args:
        recipe: the recipe.
        load_seconds: timeout for importing the reward.

    Raises:
        UsageError: the reward is not a file's function, does not load, or the trial does not show its
            keys and its wrong score.
        OutputError: the file cannot be written.
    """
    section = recipe.reward.guard
    if section is None:
        return recipe
    scorer = recipe.reward.scorer
    if not is_path(scorer):
        raise UsageError(f"reward.guard: the scorer {scorer} needs no guard; remove the key.")
    reward = with_function(scorer)
    record = recipe.reward.record
    stated: dict[str, Any] = section.model_dump(exclude={"keys", "wrong_score", "right_score"})
    settings = GuardSettings(
        options=recipe.reward.options,
        record=str(Path(record).expanduser().absolute()) if record else "",
        load_seconds=load_seconds,
        **stated,
    )
    train = next((Path(file) for file in recipe.data.train if Path(file).is_file()), None)
    trial = try_reward(reward, settings, trial_rows(train))
    settings = settings_after_trial(
        reward,
        trial,
        settings,
        keys=section.keys,
        wrong_score=section.wrong_score,
        right_score=section.right_score,
    )
    text = guard_file_text(reward, trial, settings)
    name = f"{Path(reward.partition(':')[0]).stem}-{sha256(text.encode()).hexdigest()[:12]}.py"
    path = Path(FOLDER, name).absolute()
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path, overwrite=True) as temporary:  # another launch may have just written it
            temporary.write_text(text, encoding="utf-8")
    return recipe.model_copy(update={"reward": recipe.reward.with_guard_file(str(path))})
