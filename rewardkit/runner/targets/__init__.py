"""Where a plan is run: executed here, or written down for the cluster that will run it.

Each target is a module with one function, `launch(plan, folder)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from rewardkit.runner.plan import Plan
from rewardkit.runner.targets.base import File, Launch, check_environment, reward_path

__all__ = ["TARGETS", "File", "Launch", "render", "reward_path"]

#: A recipe's `cluster.target` -> the module that makes it.
TARGETS: Mapping[str, str] = {
    "local": "local",
    "ray-job": "ray_job",
    "script": "script",
    "slurm": "slurm",
    "symmetric-run": "symmetric_run",
    "kuberay": "kuberay",
    "skypilot": "skypilot",
    "ascend": "ascend",
    "modelarts": "modelarts",
}


def render(plan: Plan, folder: Path) -> Launch:
    """What a plan's target needs: files to write below `folder`, and what is executed.

    Args:
        plan: made with `reward_path=reward_path(recipe, verl)`.
        folder: where the files will lie; nothing is written here.

    Raises:
        UsageError: the target cannot do what the recipe asks for, or the recipe lacks something
            the target needs.
    """
    check_environment(plan.env)
    target = import_module(f"{__name__}.{TARGETS[plan.recipe.cluster.target]}")
    launched: Launch = target.launch(plan, folder.absolute())
    return launched
