"""The targets of a plan: a run on this machine, or files and commands for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import secret_variables
from rewardkit.launch.targets import clusters, scripts
from rewardkit.launch.targets.base import File, Launch, require_no_secrets

__all__ = ["TARGETS", "File", "Launch", "render"]

#: The values of `cluster.target` in a recipe, with the functions that render them.
TARGETS: Mapping[str, Callable[[Plan, Path], Launch]] = {
    "local": scripts.local,
    "ray-job": clusters.ray_job,
    "script": scripts.script,
    "slurm": scripts.slurm,
    "kuberay": clusters.kuberay,
    "skypilot": clusters.skypilot,
    "ascend": scripts.ascend,
    "modelarts": clusters.modelarts,
}


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
    launch, secrets = TARGETS[name](plan, folder.absolute()), secret_variables(plan.arguments)
    if not secrets or name == "local":
        return launch
    where = {"kuberay": "in the Secret", "ray-job": "on the Ray cluster's nodes"}
    place = where.get(name, "in the shell that starts the run")
    step = f"Set {' and '.join(secrets)} {place}: rewardkit writes no secret into a file."
    return replace(launch, next_steps=(step, *launch.next_steps))
