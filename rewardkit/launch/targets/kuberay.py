"""`kuberay`: a RayJob, and a ConfigMap with its command and the recipe's own scorer file.

KubeRay's submitter hands the entrypoint to a shell and to `ray job submit`, which quotes again; so
the entrypoint is `bash /rewardkit/launch.sh` and the command stands in the ConfigMap. The image has
verl and, for scorers of rewardkit's, rewardkit.

Not run on Kubernetes: the tests parse the YAML and run the command that is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.launch.plan import Plan
from rewardkit.launch.scorer_location import NODE_FOLDERS
from rewardkit.launch.secret_values import shell_word
from rewardkit.launch.targets.base import (
    File,
    Launch,
    as_yaml,
    check_absolute,
    commented,
    filled,
    ray_start_arguments,
    reward_text,
    slug,
)

#: Kubernetes' usual name of a device; `cluster.device_resource` where the site has another.
RESOURCES = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/Ascend910"}

_HEADER = """
{name}: {nodes} pods x {count} {device}, verl {verl}. Made by rewardkit, for KubeRay 1.1 or later.

  kubectl apply -f kuberay.yaml
  kubectl logs -f -n {namespace} job/{name}

Secrets are in no file; a Secret of this name becomes environment variables of all pods:
  kubectl create secret generic {name} -n {namespace} --from-literal=WANDB_API_KEY=...
The job starts when all pods are there, waits for their devices at most {wait} s and fails if they do
not come. To run it again: kubectl delete -f kuberay.yaml first.
"""


def launch(plan: Plan, folder: Path) -> Launch:
    """The YAML.

    Raises:
        UsageError: the recipe has no image, or a parquet file's path is relative.
    """
    recipe = plan.recipe
    if not recipe.cluster.image:
        raise UsageError("cluster.image: kuberay needs the container image, with verl in it.")
    check_absolute(recipe, "pods start in a folder of the image's choice")
    name = slug(recipe.name)
    header = _HEADER.format(
        name=name,
        nodes=recipe.nodes,
        count=recipe.devices_per_node,
        device=recipe.devices.upper(),
        verl=plan.verl,
        namespace=recipe.cluster.namespace,
        wait=recipe.cluster.wait_s,
    )
    documents = "---\n".join(as_yaml(part) for part in (_config_map(plan, name), _job(plan, name)))
    path = folder / "kuberay.yaml"
    return Launch(
        files=(File("kuberay.yaml", commented(header) + documents),),
        argv=None,
        env={},
        next_steps=(f"Start it: kubectl apply -f {shell_word(str(path))}",),
    )


def _metadata(plan: Plan, name: str) -> dict[str, str]:
    return {"name": name, "namespace": plan.recipe.cluster.namespace}


def _config_map(plan: Plan, name: str) -> dict[str, Any]:
    data = {"launch.sh": filled("job.sh.j2", plan, wait=True)}
    if (scorer := reward_text(plan)) is not None:
        data["reward.py"] = scorer
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(plan, name),
        "data": data,
    }


def _job(plan: Plan, name: str) -> dict[str, Any]:
    group = {"rayStartParams": _ray_start(plan), "template": {"spec": _pod(plan, name)}}
    cluster: dict[str, Any] = {"headGroupSpec": group}
    workers = plan.recipe.nodes - 1
    if workers:
        count = {"groupName": "workers", "replicas": workers, "minReplicas": workers}
        cluster["workerGroupSpecs"] = [{**count, "maxReplicas": workers, **group}]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": _metadata(plan, name),
        "spec": {
            "entrypoint": f"bash {NODE_FOLDERS['kuberay']}launch.sh",
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 600,
            "rayClusterSpec": cluster,
        },
    }


def _ray_start(plan: Plan) -> dict[str, str]:
    """KubeRay tells Ray of GPUs by itself; a resource's JSON it passes through a shell."""
    if plan.recipe.devices != "npu":
        return {}
    (argument,) = ray_start_arguments(plan.recipe)
    escaped = argument.partition("=")[2].replace('"', '\\"')
    return {"resources": f'"{escaped}"'}


def _pod(plan: Plan, name: str) -> dict[str, Any]:
    cluster, recipe = plan.recipe.cluster, plan.recipe
    resource = cluster.device_resource or RESOURCES.get(recipe.devices)
    limits = {resource: str(recipe.devices_per_node)} if resource else {}
    mounts = [{"name": "rewardkit", "mountPath": NODE_FOLDERS["kuberay"].rstrip("/")}]
    volumes: list[dict[str, Any]] = [{"name": "rewardkit", "configMap": {"name": name}}]
    # NCCL, HCCL and Ray's object store need more shared memory than a pod's 64 MiB.
    mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - that is its place
    volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
    for number, (claim, path) in enumerate(cluster.volumes.items()):
        mounts.append({"name": f"data-{number}", "mountPath": path})
        source = {"persistentVolumeClaim": {"claimName": claim}}
        volumes.append({"name": f"data-{number}", **source})
    container = {
        "name": "ray",
        "image": cluster.image,
        # Kubernetes replaces $(NAME), and $$ by $.
        "env": [{"name": k, "value": v.replace("$", "$$")} for k, v in plan.env.items()],
        "envFrom": [{"secretRef": {"name": name, "optional": True}}],
        "resources": {"limits": limits, "requests": dict(limits)},
        "volumeMounts": mounts,
    }
    return {"containers": [container], "volumes": volumes}
