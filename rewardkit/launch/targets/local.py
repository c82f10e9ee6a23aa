"""`local`: verl runs in this environment, on this machine, with its own Ray."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rewardkit.errors import UsageError
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import reveal_secrets
from rewardkit.launch.targets.base import Launch


def launch(plan: Plan, _folder: Path) -> Launch:
    """Return the command.

    verl starts its own Ray, unless RAY_ADDRESS names one: without an address it would join any
    cluster that it finds on the machine, also another user's.

    Raises:
        UsageError: the recipe is for more than one node, or has setup lines.
    """
    recipe = plan.recipe
    if recipe.nodes > 1:
        raise UsageError(
            f"nodes: {recipe.nodes}, but cluster.target local is one machine. Set it to ray-job, "
            "slurm, ascend, kuberay, skypilot or modelarts."
        )
    if recipe.cluster.setup:
        raise UsageError(
            "cluster.setup: the target local runs in the current environment. Prepare the environment first, "
            "or set cluster.target to script."
        )
    python, *rest = (reveal_secrets(argument, plan.secrets) for argument in plan.command())
    program = sys.executable if python == "python3" else python  # verl is in this environment
    env = dict(plan.env)
    if "RAY_ADDRESS" not in os.environ:
        env.setdefault("RAY_ADDRESS", "local")
    return Launch(argv=(program, *rest), env=env, cwd=recipe.cluster.workdir)
