"""`slurm`: an sbatch script for N nodes, with one Ray for each job.

Not run on a Slurm cluster: the scripts pass bash and shellcheck, node.sh is the one that `ascend`
runs on real Ray, and the tests run slurm.sh with stand-ins for `srun` and `scontrol`.
"""

from __future__ import annotations

from pathlib import Path

from rewardkit.devices import cpus_needed
from rewardkit.launch.plan import Plan
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.ascend import node_script
from rewardkit.launch.targets.base import File, Launch, check_port, filled

#: Slurm's usual name of a device; `cluster.device_resource` where the site has another.
GRES = {"gpu": "gpu", "npu": "npu"}


def launch(plan: Plan, folder: Path) -> Launch:
    """The job's script, and the one it runs on every node."""
    recipe = plan.recipe
    check_port(recipe.cluster.port, "cluster.port")
    job = filled(
        "slurm.sh.j2",
        plan,
        folder=str(folder),
        cpus=cpus_needed(recipe.devices_per_node),
        gres=recipe.cluster.device_resource or GRES.get(recipe.devices),
    )
    return Launch(
        files=(
            File("slurm.sh", job, executable=True),
            File("node.sh", node_script(plan, rank="SLURM_NODEID"), executable=True),
        ),
        argv=None,
        env={},
        next_steps=(
            f"Submit it where relative paths of the recipe start: sbatch {shell_word(str(folder / 'slurm.sh'))}",
            "Secrets (WANDB_API_KEY, HF_TOKEN) are taken from the shell that submits.",
        ),
    )
