"""Configuration of a run from a file, for logs that do not contain it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rewardkit.errors import DataError, unreadable_file
from rewardkit.redact import Redactor
from rewardkit.trainlog.python_literal import flatten
from rewardkit.trainlog.training_run import TrainingRun


def with_config(run: TrainingRun, path: Path) -> TrainingRun:
    """Return the run with the settings of a YAML or JSON file, such as `.hydra/config.yaml`.

    Raises:
        SourceError: the file cannot be read.
        DataError: the file has no settings.
    """
    import yaml

    try:
        settings = Redactor().tree(dict(flatten(yaml.safe_load(path.read_text(encoding="utf-8")))))
    except OSError as error:
        raise unreadable_file(path, error) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DataError(f"{path}: invalid YAML or JSON: {reason}.") from error
    if not settings:
        raise DataError(f"{path}: no settings; name the run's own config.yaml.")
    return replace(run, config={**run.config, **settings})
