"""A run's configuration from a file, where its log does not hold it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rewardkit.errors import DataError, SourceError
from rewardkit.redact import Redactor
from rewardkit.trainlog.python_literal import flatten
from rewardkit.trainlog.training_run import TrainingRun


def with_config(run: TrainingRun, path: Path) -> TrainingRun:
    """The run with the settings of a YAML or JSON file, as Hydra's `.hydra/config.yaml`.

    Raises:
        SourceError: the file cannot be read.
        DataError: it holds no settings.
    """
    import yaml

    try:
        found = Redactor().tree(dict(flatten(yaml.safe_load(path.read_text(encoding="utf-8")))))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DataError(f"{path}: not readable as YAML or JSON: {reason}.") from error
    if not found:
        raise DataError(f"{path}: no settings; name the run's own config.yaml.")
    return replace(run, config={**run.config, **found})
