"""Where a plan runs: here, or on a cluster for which its files are written.

Each target is a module with one function, `launch(plan, folder)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import secret_variables
from rewardkit.launch.targets.base import File, Launch, require_no_secrets

__all__ = ["TARGETS", "File", "Launch", "render"]

#: The module of each `cluster.target` of a recipe.
TARGETS: Mapping[str, str] = {
    "local": "local",
    "ray-job": "ray_job",
    "script": "script",
    "slurm": "slurm",
    "kuberay": "kuberay",
    "skypilot": "skypilot",
    "ascend": "ascend",
    "modelarts": "modelarts",
}


def render(plan: Plan, folder: Path) -> Launch:
    """Return the files to write below `folder` and the command to run, for a plan's target.

    Args:
        plan: the run.
        folder: the folder of the files; this function writes nothing.

    Raises:
        UsageError: the target cannot do what the recipe asks for, or it needs a field that the
            recipe does not set.
    """
    require_no_secrets(plan)
    name = plan.recipe.cluster.target
    launch: Launch = import_module(f"{__name__}.{TARGETS[name]}").launch(plan, folder.absolute())
    secrets = secret_variables(plan.arguments)
    if not secrets or name == "local":
        return launch
    where = {"kuberay": "in the Secret", "ray-job": "on the Ray cluster's nodes"}
    place = where.get(name, "in the shell that starts the run")
    step = f"Set {' and '.join(secrets)} {place}: rewardkit writes no secret into a file."
    return replace(launch, next_steps=(step, *launch.next_steps))
