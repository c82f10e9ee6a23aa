"""Where a plan is run: executed here, or written down for the cluster that will run it.

Each target is a module with one function, `launch(plan, folder)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import variables_of
from rewardkit.launch.targets.base import File, Launch, check_secrets

__all__ = ["TARGETS", "File", "Launch", "render"]

#: A recipe's `cluster.target` -> the module that makes it.
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
    """What a plan's target needs: files to write below `folder`, and what is executed.

    Args:
        plan: the run.
        folder: where the files will lie; nothing is written here.

    Raises:
        UsageError: the target cannot do what the recipe asks for, or the recipe lacks something
            the target needs.
    """
    check_secrets(plan)
    name = plan.recipe.cluster.target
    launched: Launch = import_module(f"{__name__}.{TARGETS[name]}").launch(plan, folder.absolute())
    secrets = variables_of(plan.arguments)
    if not secrets or name == "local":
        return launched
    where = {"kuberay": "in the Secret", "ray-job": "on the Ray cluster's nodes"}.get(name, "there")
    step = f"Set {' and '.join(secrets)} {where}, where the run starts: a secret is in no file."
    return replace(launched, next_steps=(step, *launched.next_steps))
