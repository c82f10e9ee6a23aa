"""The sandbox of a rehearsal: its sample of rows, its model, and its overrides of verl's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal import scale_down
from rewardkit.launch.rehearsal.engines import HOOKS_FOLDER, Engine, require_vision
from rewardkit.launch.rehearsal.pictures import PictureSample, read_pictures
from rewardkit.launch.rehearsal.rehearsal_scale import RehearsalScale, choose_scale, sample_rows
from rewardkit.launch.rehearsal.row_sample import Columns, RowSample, take_sample
from rewardkit.launch.rehearsal.substitutions import SandboxPaths
from rewardkit.launch.rehearsal.tiny_model import write_model
from rewardkit.launch.rehearsal.tiny_vision_model import write_vision_model
from rewardkit.launch.verl.compose import compose_config
from rewardkit.launch.verl.releases import Release, release_of

#: Rows of the validation; each may get several responses.
MAX_VALIDATION_ROWS = 8

#: Keep Hydra from writing files of its own.
HYDRA_OVERRIDES = ("hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=stdout")


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """A rehearsal that is ready to start.

    Attributes:
        folder: the folder of the rehearsal.
        engine: how the installed release runs on a CPU.
        overrides: the overrides for verl's trainer.
        train: the rows to train on.
        val: the rows to validate on.
        pictures: the pictures of both samples; None if the rows have none.
        reward: path and name of the user's function; None where verl's own scorer judges.
        notes: what the rehearsal does in another way than the plan.
        not_rehearsed: parts of the plan that the rehearsal leaves out.
        reward_manager: the name of verl's reward manager; "" if it is not known.
        varied_metric: the scorer's metric that is set in turns, for dynamic sampling; "" for none.
        tool_config: the file of the plan's tools, if they are only loaded; "" for none.
    """

    folder: Path
    engine: Engine
    overrides: tuple[str, ...]
    train: RowSample
    val: RowSample
    pictures: PictureSample | None = None
    reward: tuple[str, str] | None
    notes: tuple[str, ...]
    not_rehearsed: tuple[str, ...]
    reward_manager: str = ""
    varied_metric: str = ""
    tool_config: str = ""


def make_sandbox(
    arguments: Sequence[str],
    folder: Path,
    engine: Engine,
    python: str,
    *,
    versions: Mapping[str, str],
    steps: int,
) -> Sandbox:
    """Compose the plan, sample its rows, write the model and return the sandbox.

    Raises:
        UsageError: verl does not compose the plan, or it cannot be rehearsed.
        DataError: a file of rows cannot be used.
    """
    release = release_of(engine.verl)
    overrides = parse_overrides(
        [text for text in arguments if not text.startswith("-")], "the plan"
    )
    uses_recipe = scale_down.uses_dapo_recipe(overrides, release)
    config = _compose(python, release, arguments, dapo_recipe=uses_recipe)
    _require_no_reward_model(config)
    columns = _columns(config)
    rows = sample_rows(config, steps)
    train = take_sample(_files(config, "data.train_files"), folder, "train", rows, columns, steps)
    val = take_sample(_files(config, "data.val_files"), folder, "val", MAX_VALIDATION_ROWS, columns)
    pictures = None
    if train.has_pictures or val.has_pictures:
        require_vision(engine, versions)
        limit = int(config["data.max_prompt_length"]) if scale_down.is_qwen2_vl(config) else 0
        pictures = read_pictures(python, [*train.files, *val.files], columns.pictures, limit)
    longest = max(train.longest, val.longest)
    scale = choose_scale(config, train.rows, longest, steps, pictures.longest if pictures else 0)
    _write_model(folder / "model", scale, pictures)
    reward = scale_down.reward_function(config, release)
    recorder = HOOKS_FOLDER / "rehearsal_reward.py" if reward else None
    paths = SandboxPaths(folder, train, val, recorder, engine.settings)
    scaled_down = scale_down.rehearsal_overrides(overrides, config, scale, paths, release)
    return Sandbox(
        folder=folder,
        engine=engine,
        overrides=(*scaled_down, *HYDRA_OVERRIDES),
        train=train,
        val=val,
        reward=reward,
        pictures=pictures,
        notes=scale_down.notes(config, scale, release, uses_recipe=uses_recipe, pictures=pictures),
        not_rehearsed=scale_down.not_rehearsed(config, release),
        reward_manager=scale_down.reward_manager(config, release),
        varied_metric=scale_down.varied_metric(config, release),
        tool_config=scale_down.tool_config(config, release),
    )


def _columns(config: Mapping[str, Any]) -> Columns:
    """Return the names of the columns that verl reads."""
    default = Columns()
    return Columns(
        prompt=str(config.get("data.prompt_key") or default.prompt),
        source=str(config.get("data.reward_fn_key") or default.source),
        pictures=str(config.get("data.image_key") or default.pictures),
        videos=str(config.get("data.video_key") or default.videos),
    )


def _write_model(folder: Path, scale: RehearsalScale, pictures: PictureSample | None) -> None:
    positions = scale.prompt + scale.response
    if pictures is None:
        write_model(folder, positions=positions)
    else:
        write_vision_model(folder, positions=positions, pixels=pictures.pixels)


def _compose(
    python: str, release: Release, arguments: Sequence[str], *, dapo_recipe: bool
) -> Mapping[str, Any]:
    """Return the configuration that verl composes, dotted key -> value.

    Raises:
        UsageError: verl does not take the arguments.
    """
    composed = compose_config(arguments, dapo_recipe=dapo_recipe, validate=False, python=python)
    if composed.error:
        raise UsageError(f"verl {release.verl} does not take this plan: {composed.error}")
    return composed.config


def _require_no_reward_model(config: Mapping[str, Any]) -> None:
    for key in ("reward_model.enable", "reward.reward_model.enable"):
        if config.get(key) is True:
            raise UsageError(
                f"{key}=True: a reward model cannot be rehearsed on a CPU; rehearse with "
                f"{key}=False if there is a scorer too."
            )


def _files(config: Mapping[str, Any], key: str) -> list[str]:
    value = config.get(key)
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise UsageError(f"{key}={value}: name at least one file.")
    return [str(name) for name in names]
