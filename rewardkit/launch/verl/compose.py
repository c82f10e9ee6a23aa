"""Compose the configuration of an installed verl with Hydra, and validate it with verl's own code."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.errors import DataError
from rewardkit.isolate.child import exit_text
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS, timeout_message
from rewardkit.isolate.run import run
from rewardkit.launch.verl.hydra_values import format_value
from rewardkit.launch.verl.releases import DAPO_RECIPE_KEYS, NEW_KEY, OLD_KEY

#: Timeout for verl, in seconds: importing torch and Ray from a cold disk can take a minute. The
#: reward's file has a timeout of its own.
COMPOSE_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class ComposedConfig:
    """The configuration that an installed verl composes from overrides, with dotted keys, resolved.

    `error` is that of Hydra, `invalid` that of verl's `validate_config`; `reward` is the name of the reward
    function that verl loads, if it loads one.
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
    load_seconds: float | None = LOAD_TIMEOUT_SECONDS,
) -> ComposedConfig:
    """Compose a configuration from the arguments of a trainer, with the installed verl.

    The configuration of verl's DAPO recipe is not in the wheel, so its keys are added to the main trainer's.
    With `validate` verl's own code validates it and loads the reward, which imports torch; `load_seconds`
    is the timeout for the reward's file, None to leave it out.
    """
    keys = DAPO_RECIPE_KEYS.items() if dapo_recipe else ()
    request = {
        "config_name": config_name(arguments),
        "overrides": [
            *(f"++{key}={format_value(value)}" for key, value in keys),
            *(argument for argument in arguments if not argument.startswith("--")),
        ],
        "validate": validate,
        "load_seconds": load_seconds if validate else None,
    }
    seconds = COMPOSE_TIMEOUT_SECONDS + (load_seconds or 0)
    try:
        command = [sys.executable, "-m", "rewardkit.launch.verl.compose_child"]
        environment = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        result = run(command, environment, seconds, text=json.dumps(request))
    except ChildTimeoutError:
        raise DataError(f"verl did not compose the configuration within {seconds:.0f} s.") from None
    except ChildCrashError as error:
        raise DataError(f"the process that runs verl ended ({error}).") from error
    fields: dict[str, Any] = {}
    for line in result.stdout.splitlines():
        fields |= json.loads(line)
    last = "".join(result.stderr.strip().splitlines()[-1:])
    if not fields:
        raise DataError(f"verl's configuration cannot be composed: {last or 'no output'}")
    if request["load_seconds"] and fields.keys().isdisjoint({"error", "reward", "reward_error"}):
        config = fields["config"]
        paths = (config.get(f"{key}.path") for key in (NEW_KEY, OLD_KEY))
        name = str(next(filter(None, paths), "the reward"))
        fields["reward_error"] = f"{name}: the process ended while it was imported "
        fields["reward_error"] += f"({exit_text(result.code)}){f': {last}' if last else ''}"
        if "\nTimeout (" in f"\n{result.stderr}":
            fields["reward_error"] = timeout_message(result.stderr, name, load_seconds or 0)
    return ComposedConfig(**fields)


def config_name(arguments: Sequence[str]) -> str:
    """Return the name of the configuration that a trainer's arguments choose."""
    names = [text.partition("=")[2] for text in arguments if text.startswith("--config-name=")]
    return names[-1].removesuffix(".yaml") if names else "ppo_trainer"
