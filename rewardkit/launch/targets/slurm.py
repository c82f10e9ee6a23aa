"""`slurm`: an sbatch script for several nodes, with one Ray per job.

Not tested on a Slurm cluster: bash and ShellCheck accept the scripts, node.sh is the script that
`ascend` runs on real Ray, and the tests run slurm.sh with stand-ins for `srun` and `scontrol`.
"""

from __future__ import annotations

from pathlib import Path

from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.ascend import node_script
from rewardkit.launch.targets.base import File, Launch, render_template, require_free_port

#: The usual name of a device in Slurm; `cluster.device_resource` sets another one.
GRES = {"gpu": "gpu", "npu": "npu"}

#: Cores to request: those that verl reserves (`cpu_cores`), and some for what Ray does not count.
CORES_PER_DEVICE, CORES_FOR_OTHERS = 3, 16


def launch(plan: Plan, folder: Path) -> Launch:
    """Return the job's script, and the script that it runs on every node."""
    recipe = plan.recipe
    require_free_port(recipe.cluster.port, "cluster.port")
    job = render_template(
        "slurm.sh.j2",
        plan,
        folder=str(folder),
        cpus=CORES_PER_DEVICE * recipe.devices_per_node + CORES_FOR_OTHERS,
        gres=recipe.cluster.device_resource or GRES.get(recipe.devices),
    )
    script = shell_word(str(folder / "slurm.sh"))
    return Launch(
        files=(
            File("slurm.sh", job, executable=True),
            File("node.sh", node_script(plan, rank="SLURM_NODEID"), executable=True),
        ),
        next_steps=(
            f"Submit it from the folder to which the recipe's relative paths refer: sbatch {script}",
            "Export secrets (WANDB_API_KEY, HF_TOKEN) in the shell that submits it.",
        ),
    )
