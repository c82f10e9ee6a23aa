"""`local`: verl in this environment, on this machine, with a Ray of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rewardkit.errors import UsageError
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import reveal
from rewardkit.launch.targets.base import Launch


def launch(plan: Plan, _folder: Path) -> Launch:
    """The command itself.

    Unless RAY_ADDRESS says otherwise, verl starts a Ray of its own: without an address it would
    join whatever cluster it finds on the machine, someone else's too.

    Raises:
        UsageError: the recipe is for more than one node.
    """
    recipe = plan.recipe
    if recipe.nodes > 1:
        raise UsageError(
            f"nodes: {recipe.nodes}, and cluster.target local is one machine; choose ray-job, slurm, "
            "ascend, kuberay, skypilot or modelarts."
        )
    if recipe.cluster.setup:
        raise UsageError(
            "cluster.setup: local runs in the environment that there is; set it up before, or choose "
            "script."
        )
    python, *rest = (reveal(argument, plan.secrets) for argument in plan.command())
    here = sys.executable if python == "python3" else python  # verl is beside rewardkit
    env = dict(plan.env)
    if "RAY_ADDRESS" not in os.environ:
        env.setdefault("RAY_ADDRESS", "local")
    return Launch(files=(), argv=(here, *rest), env=env, next_steps=(), cwd=recipe.cluster.workdir)
