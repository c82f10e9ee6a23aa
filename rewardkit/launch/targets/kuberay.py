"""`kuberay`: a RayJob, and a ConfigMap with its command and the recipe's scorer file.

KubeRay passes the entrypoint to a shell and to `ray job submit`, which quotes it again. So the
entrypoint is `bash /rewardkit/launch.sh`, and the command is in the ConfigMap. The image must have
verl, and rewardkit for its scorers.

Not tested on Kubernetes: the tests parse the YAML and run the command in it.
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
    as_comment,
    as_yaml,
    ray_start_arguments,
    render_template,
    require_absolute_data,
    scorer_files,
    slug,
)

#: The usual name of a device in Kubernetes; `cluster.device_resource` sets another one.
RESOURCES = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/Ascend910"}

_HEADER = """
{name}: {nodes} pods x {count} {device}, verl {verl}. Made by rewardkit, for KubeRay 1.1 or later.

  kubectl apply -f kuberay.yaml
  kubectl logs -f -n {namespace} job/{name}

This file has no secrets. A Secret with this name becomes environment variables of all pods:
  kubectl create secret generic {name} -n {namespace} --from-literal=WANDB_API_KEY=...
The job starts when all pods run. It waits up to {wait} s for their devices and fails if they are missing.
Before you run it again: kubectl delete -f kuberay.yaml
"""


def kuberay(plan: Plan, folder: Path) -> Launch:
    """Return the YAML.

    Raises:
        UsageError: the recipe has no image, or a parquet file's path is relative.
    """
    recipe = plan.recipe
    if not recipe.cluster.image:
        raise UsageError("cluster.image: kuberay needs a container image that has verl.")
    require_absolute_data(recipe, "the image decides in which folder pods start")
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
        files=(File("kuberay.yaml", as_comment(header) + documents),),
        next_steps=(f"Start it: kubectl apply -f {shell_word(str(path))}",),
    )


def _metadata(plan: Plan, name: str) -> dict[str, str]:
    return {"name": name, "namespace": plan.recipe.cluster.namespace}


def _config_map(plan: Plan, name: str) -> dict[str, Any]:
    data = {"launch.sh": render_template("job.sh.j2", plan, wait=True), **scorer_files(plan)}
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
    """Return the NPUs as a resource, escaped for KubeRay's shell; KubeRay counts GPUs by itself."""
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
