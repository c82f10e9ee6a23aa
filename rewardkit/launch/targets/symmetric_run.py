"""`symmetric-run`: Ray's own way to start a cluster for one command (Ray 2.49 and later).

It ends with `ray stop`, which ends every Ray process of the host: for hosts of one's own only.
"""

from __future__ import annotations

from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.ascend import INTERFACE_VARIABLES
from rewardkit.launch.targets.base import File, Launch, check_ports, filled


def launch(plan: Plan, folder: Path) -> Launch:
    """The script, to be started on every node.

    Raises:
        UsageError: a port cannot be used.
    """
    recipe = plan.recipe
    check_ports(recipe)
    variables = INTERFACE_VARIABLES[recipe.devices]
    text = filled("symmetric.sh.j2", plan, interface_variables=variables)
    head = "" if recipe.cluster.head or recipe.nodes == 1 else "MASTER_ADDR=<the head's address> "
    return Launch(
        files=(File("symmetric.sh", text, executable=True),),
        argv=None,
        env={},
        next_steps=(
            f"Run it on each of the nodes: {head}bash {shell_word(str(folder / 'symmetric.sh'))}",
            "It ends with a host-wide `ray stop`: not on hosts where others use Ray.",
        ),
    )
