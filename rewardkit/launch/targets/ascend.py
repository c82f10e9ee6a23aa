"""`ascend`: one bash script for every node of an NPU (or GPU) cluster, without a scheduler.

The script compares its address with the head's to know which node it runs on. It starts Ray, waits
for the other nodes with a timeout, runs verl on the head, and ends its own processes by id. The script that
the Ascend guide publishes waits forever, kills every Python of the host and removes /tmp/ray.
"""

from __future__ import annotations

from pathlib import Path

from rewardkit.devices import INTERFACE_VARIABLES
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.base import File, Launch, render_template, require_free_ports


def launch(plan: Plan, folder: Path) -> Launch:
    """Return the script, which the user runs on every node.

    Raises:
        UsageError: a port cannot be used.
    """
    recipe = plan.recipe
    require_free_ports(recipe)
    script = folder / "node.sh"
    head = "" if recipe.cluster.head or recipe.nodes == 1 else "MASTER_ADDR=<the head's address> "
    where = f"Run it on each of the {recipe.nodes} nodes" if recipe.nodes > 1 else "Run it"
    return Launch(
        files=(File("node.sh", node_script(plan, log=True), executable=True),),
        next_steps=(f"{where}: {head}bash {shell_word(str(script))}",),
    )


def node_script(plan: Plan, *, rank: str | None = None, log: bool = False) -> str:
    """Return the script that each node of a cluster runs.

    Args:
        plan: the run.
        rank: the scheduler's variable with the number of the node, 0 for the head; without it, the
            head is the node whose address is MASTER_ADDR.
        log: whether the script writes a log next to itself.
    """
    variables = INTERFACE_VARIABLES[plan.recipe.devices]
    return render_template("node.sh.j2", plan, rank=rank, log=log, interface_variables=variables)
