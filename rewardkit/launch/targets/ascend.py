"""`ascend`: one bash script for every node of an NPU (or GPU) cluster, without a scheduler.

The script decides by the head's address which node it is, starts Ray, waits with a limit, runs verl
on the head, and ends by process id what it started. The source's own script for it (published for
Atlas nodes) waits for ever, kills every python of the host and removes /tmp/ray.
"""

from __future__ import annotations

from pathlib import Path

from rewardkit.devices import INTERFACE_VARIABLES
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.base import File, Launch, check_ports, filled


def launch(plan: Plan, folder: Path) -> Launch:
    """The script, to be started on every node.

    Raises:
        UsageError: a port cannot be used.
    """
    recipe = plan.recipe
    check_ports(recipe)
    script = folder / "node.sh"
    head = "" if recipe.cluster.head or recipe.nodes == 1 else "MASTER_ADDR=<the head's address> "
    where = f"Run it on each of the {recipe.nodes} nodes" if recipe.nodes > 1 else "Run it"
    return Launch(
        files=(File("node.sh", node_script(plan, log=True), executable=True),),
        argv=None,
        env={},
        next_steps=(f"{where}: {head}bash {shell_word(str(script))}",),
    )


def node_script(plan: Plan, *, rank: str | None = None, log: bool = False) -> str:
    """What one node of a cluster runs.

    Args:
        plan: of the run.
        rank: the variable in which the scheduler gives a node's number, 0 for the head; without
            one the node whose address is MASTER_ADDR is the head.
        log: whether it keeps a log beside itself.
    """
    variables = INTERFACE_VARIABLES[plan.recipe.devices]
    return filled("node.sh.j2", plan, rank=rank, log=log, interface_variables=variables)
