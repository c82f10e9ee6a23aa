"""The targets of a plan: a run on this machine, or files and commands for a cluster.

Each target is a function of its name, `(plan, folder)`, in `scripts` or in a module of its name.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import get_args

from rewardkit.launch.plan import Plan
from rewardkit.launch.recipe import Target
from rewardkit.launch.secret_values import secret_variables
from rewardkit.launch.targets.base import File, Launch, require_no_secrets

__all__ = ["TARGETS", "File", "Launch", "render"]

#: The values of `cluster.target` in a recipe; the function of `ray-job` is `ray_job`.
TARGETS: tuple[str, ...] = get_args(Target)


def render(plan: Plan, folder: Path) -> Launch:
    """Return the files to write below `folder` and the command to run, for a plan's target.

    Args:
        plan: the run.
        folder: the folder of the files; this function writes nothing.

    Raises:
        UsageError: the target does not support the recipe, or needs a field that the recipe does
            not set.
    """
    require_no_secrets(plan)
    name = plan.recipe.cluster.target
    function = name.replace("-", "_")
    module = "scripts" if name in {"local", "script", "ascend", "slurm"} else function
    target = getattr(import_module(f"{__name__}.{module}"), function)
    launch: Launch = target(plan, folder.absolute())
    secrets = secret_variables(plan.arguments)
    if not secrets or name == "local":
        return launch
    where = {"kuberay": "in the Secret", "ray-job": "on the Ray cluster's nodes"}
    place = where.get(name, "in the shell that starts the run")
    step = f"Set {' and '.join(secrets)} {place}: rewardkit writes no secret into a file."
    return replace(launch, next_steps=(step, *launch.next_steps))
