"""`script`: a bash script with the command and its environment."""

from __future__ import annotations

from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.base import File, Launch, render_template


def launch(plan: Plan, folder: Path) -> Launch:
    """Return a script that runs verl on its machine and writes a log next to itself."""
    nodes = plan.recipe.nodes
    where = f"on the head of a Ray cluster of {nodes} nodes" if nodes > 1 else "on any node"
    return Launch(
        files=(File("train.sh", render_template("script.sh.j2", plan), executable=True),),
        next_steps=(f"Run it {where}: bash {shell_word(str(folder / 'train.sh'))}",),
    )
