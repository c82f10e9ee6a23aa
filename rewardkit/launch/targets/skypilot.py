"""`skypilot`: a task for `sky launch`, with its own Ray on the nodes that SkyPilot rents.

The image, or cluster.setup, must provide verl and rewardkit. The task does not touch the Ray of SkyPilot
itself on each node (ports 6380 and 8266).

Not tested on a cloud: the tests parse the YAML and check its script, which is the one that `ascend`
runs on real Ray.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.plan import Plan
from rewardkit.launch.scorer_location import NODE_FOLDERS
from rewardkit.launch.secret_values import secret_variables, shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    as_comment,
    as_yaml,
    comment_text,
    require_free_ports,
    scorer_files,
    slug,
)
from rewardkit.launch.targets.scripts import node_script

_SKYPILOT_PORTS = {6380: "SkyPilot's own Ray", 8266: "SkyPilot's own dashboard"}

#: The variables of the loggers' API keys; SkyPilot takes their values from the shell.
_API_KEYS = {"wandb": "WANDB_API_KEY", "swanlab": "SWANLAB_API_KEY"}

_HEADER = """
{name}: {nodes} x {count} {accelerator}, verl {verl}. Made by rewardkit.

  sky launch -c {name} skypilot.yaml{secrets}
  sky logs {name}
  sky down {name}

On the same cluster (sky exec) it refuses to start while an earlier run is active.
"""

#: SkyPilot numbers the nodes and lists their addresses; the head's is the first.
_ADDRESSES = """\
MASTER_ADDR=$(head -n 1 <<<"$SKYPILOT_NODE_IPS")
CURRENT_IP=$(sed -n "$((SKYPILOT_NODE_RANK + 1))p" <<<"$SKYPILOT_NODE_IPS")
export MASTER_ADDR CURRENT_IP
"""


def skypilot(plan: Plan, folder: Path) -> Launch:
    """Return the task's YAML, and the scorer's file next to it.

    Raises:
        UsageError: the recipe has no accelerator or is for NPU, or a port cannot be used.
    """
    recipe = plan.recipe
    if recipe.devices == "npu":
        raise UsageError(
            "devices: SkyPilot has no NPUs. Set cluster.target to ascend, slurm or kuberay."
        )
    if recipe.devices == "gpu" and not recipe.cluster.accelerator:
        raise UsageError(
            "cluster.accelerator: skypilot needs the GPU's name, as in H100 (see sky show-gpus)."
        )
    require_free_ports(recipe, _SKYPILOT_PORTS)
    scorers, name = scorer_files(plan), slug(recipe.name)
    secrets = _secrets(plan)
    header = _HEADER.format(
        name=name,
        nodes=recipe.nodes,
        count=recipe.devices_per_node,
        accelerator=comment_text(recipe.cluster.accelerator or "CPU"),
        verl=plan.verl,
        secrets="".join(f" --secret {secret}" for secret in secrets),
    )
    task = as_comment(header) + as_yaml(_task(plan, folder, name, list(scorers)))
    files = [File("skypilot.yaml", task), *(File(file, text) for file, text in scorers.items())]
    return Launch(
        files=tuple(files),
        next_steps=(f"Start it: sky launch -c {name} {shell_word(str(folder / 'skypilot.yaml'))}",),
    )


def _task(plan: Plan, folder: Path, name: str, scorers: Sequence[str]) -> dict[str, Any]:
    recipe = plan.recipe
    cluster = recipe.cluster
    resources: dict[str, Any] = {}
    if cluster.accelerator:
        resources["accelerators"] = f"{cluster.accelerator}:{recipe.devices_per_node}"
    if cluster.image:
        resources["image_id"] = f"docker:{cluster.image}"
    task: dict[str, Any] = {"name": name, "num_nodes": recipe.nodes, "resources": resources}
    if secrets := _secrets(plan):
        task["secrets"] = dict.fromkeys(secrets)
    if scorers:
        place = NODE_FOLDERS["skypilot"]
        task["file_mounts"] = {f"{place}{file}": str(folder / file) for file in scorers}
    script = node_script(plan, rank="SKYPILOT_NODE_RANK")
    return task | {"run": _ADDRESSES + script.partition("\n")[2]}


def _secrets(plan: Plan) -> list[str]:
    """Return the variables of the settings' secrets and of the loggers' API keys, each once."""
    loggers = plan.get("trainer.logger") or []
    names = [_API_KEYS[logger] for logger in loggers if logger in _API_KEYS]
    return list(dict.fromkeys([*names, *secret_variables(plan.arguments)]))
