"""Configuration of a run from a file, for logs that do not contain it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rewardkit.errors import DataError
from rewardkit.redact import Redactor
from rewardkit.strict_yaml import read_yaml_file
from rewardkit.trainlog.python_literal import flatten
from rewardkit.trainlog.training_run import TrainingRun


def with_config(run: TrainingRun, path: Path) -> TrainingRun:
    """Return the run with the settings of a YAML or JSON file, such as `.hydra/config.yaml`.

    Raises:
        SourceError: the file cannot be read.
        DataError: it is not YAML or JSON within the limits, or has no settings.
    """
    settings = Redactor().tree(dict(flatten(read_yaml_file(path))))
    if not settings:
        raise DataError(f"{path}: no settings; name the run's own config.yaml.")
    return replace(run, config={**run.config, **settings})
