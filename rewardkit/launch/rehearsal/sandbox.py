"""Make a rehearsal ready: compose the user's plan, take a sample, write a model, settle the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal import scale_down
from rewardkit.launch.rehearsal.engines import INSIDE, Engine
from rewardkit.launch.rehearsal.sample import RowSample, take_sample
from rewardkit.launch.rehearsal.scale import scaled
from rewardkit.launch.rehearsal.substitutions import Place
from rewardkit.launch.rehearsal.tiny import write_model
from rewardkit.launch.verl.compose import compose_config
from rewardkit.launch.verl.releases import Release, release_of

#: Rows of the validation: each may be answered several times.
VALIDATED = 8

#: Hydra writes nothing of its own.
HYDRA = ("hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=stdout")


@dataclass(frozen=True)
class Stage:
    """A rehearsal that is ready to start.

    Attributes:
        folder: where everything is.
        engine: of the release that runs.
        overrides: for verl's trainer.
        train: rows to train on.
        val: rows to validate on.
        reward: the user's function as path and name; None where verl's own scorer judges.
        notes: what of the user's plan is not rehearsed as it is.
    """

    folder: Path
    engine: Engine
    overrides: tuple[str, ...]
    train: RowSample
    val: RowSample
    reward: tuple[str, str] | None
    notes: tuple[str, ...]


def prepare(
    arguments: Sequence[str], folder: Path, engine: Engine, python: str, *, steps: int, rows: int
) -> Stage:
    """Everything that is done before verl starts.

    Raises:
        UsageError: verl does not compose the plan, or it cannot be rehearsed.
        DataError: a file of rows cannot be used.
    """
    release = release_of(engine.verl)
    asked = parse_overrides([text for text in arguments if not text.startswith("-")], "the plan")
    recipe = scale_down.uses_recipe(asked, release)
    config = _composed(python, release, arguments, recipe=recipe)
    _refuse(config)
    key = str(config.get("data.prompt_key") or "prompt")
    train = take_sample(_files(config, "data.train_files"), folder, "train", rows, key)
    val = take_sample(_files(config, "data.val_files"), folder, "val", VALIDATED, key)
    scale = scaled(config, train.rows, max(train.longest, val.longest), steps)
    write_model(folder / "model", positions=scale.prompt + scale.response)
    reward = scale_down.reward_of(config, release)
    watcher = INSIDE / "rehearsal_reward.py" if reward else None
    place = Place(folder, train, val, watcher, engine.settings)
    settled = scale_down.overrides_of(asked, config, scale, place, release)
    told = scale_down.notes(config, scale, recipe=recipe)
    return Stage(folder, engine, (*settled, *HYDRA), train, val, reward, told)


def _composed(
    python: str, release: Release, arguments: Sequence[str], *, recipe: bool
) -> Mapping[str, Any]:
    """Return the configuration that verl composes, dotted key -> value.

    Raises:
        UsageError: verl does not take the arguments.
    """
    composed = compose_config(arguments, dapo_recipe=recipe, validate=False, python=python)
    if composed.error:
        raise UsageError(f"verl {release.verl} does not take this plan: {composed.error}")
    return composed.config


def _refuse(config: Mapping[str, Any]) -> None:
    for key in ("reward_model.enable", "reward.reward_model.enable"):
        if config.get(key) is True:
            raise UsageError(
                f"{key}=True: a reward model cannot be rehearsed on a CPU; rehearse with "
                f"{key}=False if a scorer judges as well."
            )


def _files(config: Mapping[str, Any], key: str) -> list[str]:
    value = config.get(key)
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise UsageError(f"{key}={value}: name at least one file.")
    return [str(name) for name in names]
