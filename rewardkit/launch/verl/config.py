"""A plan in the hands of the installed verl: composed by Hydra, validated by verl's own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import DataError
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE as RECIPE_KEYS

#: Seconds verl has for it; importing torch and Ray alone can take a cold disk a minute.
PATIENCE = 300.0


@dataclass(frozen=True)
class ComposedConfig:
    """What came of it.

    Attributes:
        config: the whole configuration, dotted key -> value, interpolations resolved.
        error: why Hydra could not compose it; "" if it could.
        invalid: what verl's `validate_config` says against it; "" for nothing.
        reward: the name of the reward function verl loaded, None if it loaded none.
        reward_error: why it could not be loaded.
    """

    config: Mapping[str, Any]
    error: str = ""
    invalid: str = ""
    reward: str | None = None
    reward_error: str = ""


def compose_plan(plan: Plan) -> ComposedConfig:
    """Compose a plan with the verl that is installed beside rewardkit.

    Args:
        plan: for that verl's release.

    Raises:
        DataError: the environment's Python ended without an answer.
    """
    name, overrides = _for_hydra(plan)
    request = {
        "config_name": name,
        "overrides": overrides,
    }
    process = subprocess.run(
        [sys.executable, "-m", "rewardkit.launch.verl.config_child"],
        input=json.dumps(request),
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        last = (process.stderr.strip().splitlines() or ["no output"])[-1]
        raise DataError(f"verl's configuration could not be composed: {last}")
    return ComposedConfig(**json.loads(lines[-1]))


def _for_hydra(plan: Plan) -> tuple[str, list[str]]:
    """The configuration's name and the overrides, as Hydra's compose takes them.

    The configuration of the DAPO recipe is not in verl's wheel: its keys are added to the main
    trainer's.
    """
    name, overrides = "ppo_trainer", []
    for argument in plan.arguments:
        if argument.startswith("--config-name="):
            name = argument.partition("=")[2].removesuffix(".yaml")
        elif not argument.startswith("--"):
            overrides.append(argument)
    if plan.module == DAPO_RECIPE:
        added = [f"++{key}={format_value(value)}" for key, value in RECIPE_KEYS.items()]
        overrides = [*added, *overrides]
    return name, overrides
