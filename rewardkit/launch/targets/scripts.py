"""The targets that run verl here, or by a script: `local`, `script`, `ascend` and `slurm`.

`ascend` is one bash script for every node of an NPU (or GPU) cluster, without a scheduler. The script
compares its address with the head's to know which node it runs on. It starts Ray, waits for the other
nodes with a timeout, runs verl on the head, and ends its own processes by id. The script that the Ascend
guide publishes waits forever, kills every Python of the host and removes /tmp/ray.

`slurm` is an sbatch script for several nodes, with one Ray per job. Not tested on a Slurm cluster: bash
and ShellCheck accept the scripts, node.sh is the script that `ascend` runs on real Ray, and the tests run
slurm.sh with stand-ins for `srun` and `scontrol`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rewardkit.devices import INTERFACE_VARIABLES
from rewardkit.errors import UsageError
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import reveal_secrets, shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    render_template,
    require_free_ports,
)

#: The usual name of a device in Slurm; `cluster.device_resource` sets another one.
GRES = {"gpu": "gpu", "npu": "npu"}

#: Cores to request: those that verl reserves (`reserved_cores`), and some for what Ray does not count.
CORES_PER_DEVICE, CORES_FOR_OTHERS = 3, 16


def local(plan: Plan, _folder: Path) -> Launch:
    """Return the command for this machine.

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


def script(plan: Plan, folder: Path) -> Launch:
    """Return a script that runs verl on its machine and writes a log next to itself."""
    nodes = plan.recipe.nodes
    where = f"on the head of a Ray cluster of {nodes} nodes" if nodes > 1 else "on any node"
    return Launch(
        files=(File("train.sh", render_template("script.sh.j2", plan), executable=True),),
        next_steps=(f"Run it {where}: bash {shell_word(str(folder / 'train.sh'))}",),
    )


def ascend(plan: Plan, folder: Path) -> Launch:
    """Return the script, which the user runs on every node.

    Raises:
        UsageError: a port cannot be used.
    """
    recipe = plan.recipe
    require_free_ports(recipe)
    path = shell_word(str(folder / "node.sh"))
    head = "" if recipe.cluster.head or recipe.nodes == 1 else "MASTER_ADDR=<the head's address> "
    where = f"Run it on each of the {recipe.nodes} nodes" if recipe.nodes > 1 else "Run it"
    return Launch(
        files=(File("node.sh", node_script(plan, log=True), executable=True),),
        next_steps=(f"{where}: {head}bash {path}",),
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


def slurm(plan: Plan, folder: Path) -> Launch:
    """Return the job's script, and the script that it runs on every node."""
    recipe = plan.recipe
    job = render_template(
        "slurm.sh.j2",
        plan,
        folder=str(folder),
        cpus=CORES_PER_DEVICE * recipe.devices_per_node + CORES_FOR_OTHERS,
        gres=recipe.cluster.device_resource or GRES.get(recipe.devices),
    )
    path = shell_word(str(folder / "slurm.sh"))
    return Launch(
        files=(
            File("slurm.sh", job, executable=True),
            File("node.sh", node_script(plan, rank="SLURM_NODEID"), executable=True),
        ),
        next_steps=(
            f"Submit it from the folder to which the recipe's relative paths refer: sbatch {path}",
            "Export secrets (WANDB_API_KEY, HF_TOKEN) in the shell that submits it.",
        ),
    )
