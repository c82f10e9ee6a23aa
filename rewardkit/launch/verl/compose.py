"""Compose the configuration of an installed verl with Hydra, and validate it with verl's own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS

#: Timeout for verl, in seconds: importing torch and Ray from a cold disk can take a minute.
COMPOSE_TIMEOUT_SECONDS = 300.0

_CHILD = Path(__file__).with_name("compose_child.py")


@dataclass(frozen=True, kw_only=True)
class ComposedConfig:
    """The configuration that an installed verl composes from overrides.

    Attributes:
        config: the whole configuration, dotted key -> value, with interpolations resolved.
        error: why Hydra cannot compose it; "" if it can.
        invalid: the error of verl's `validate_config`; "" without one.
        reward: the name of the reward function that verl loads; None if it loads none.
        reward_error: why the reward function cannot be loaded; "" if it can.
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    invalid: str = ""
    reward: str | None = None
    reward_error: str = ""


def compose_config(
    arguments: Sequence[str],
    *,
    dapo_recipe: bool = False,
    validate: bool = True,
    python: str = sys.executable,
) -> ComposedConfig:
    """Compose a configuration with the verl of a Python environment.

    Args:
        arguments: arguments of verl's trainer: overrides, and `--config-name`.
        dapo_recipe: whether they are for verl's DAPO recipe. Its configuration is not in the wheel,
            so its keys are added to the main trainer's.
        validate: whether verl's own code validates the configuration and loads the reward; that
            imports torch.
        python: the interpreter of verl's environment.

    Raises:
        DataError: the interpreter fails, or takes longer than `COMPOSE_TIMEOUT_SECONDS`.
    """
    keys = DAPO_RECIPE_KEYS.items() if dapo_recipe else ()
    request = {
        "config_name": config_name(arguments),
        "overrides": [
            *(f"++{key}={format_value(value)}" for key, value in keys),
            *(argument for argument in arguments if not argument.startswith("--")),
        ],
        "validate": validate,
    }
    try:
        process = subprocess.run(  # noqa: S603 - our own file in verl's environment
            [python, str(_CHILD)],
            input=json.dumps(request),
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=COMPOSE_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"verl did not compose the configuration within {COMPOSE_TIMEOUT_SECONDS:.0f} s."
        ) from None
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        last = (process.stderr.strip().splitlines() or ["no output"])[-1]
        raise DataError(f"verl's configuration cannot be composed: {last}")
    return ComposedConfig(**json.loads(lines[-1]))


def config_name(arguments: Sequence[str]) -> str:
    """Return the name of the configuration that a trainer's arguments choose."""
    names = [text.partition("=")[2] for text in arguments if text.startswith("--config-name=")]
    return names[-1].removesuffix(".yaml") if names else "ppo_trainer"
