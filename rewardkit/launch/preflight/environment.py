"""The machines of a run, as far as they can be seen from here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.devices import (
    CPUS_FOR_DRIVER,
    CPUS_PER_DEVICE,
    count_devices,
    cpus_needed,
)
from rewardkit.launch.findings import LaunchFinding
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.targets.base import WORKER_PORTS
from rewardkit.launch.verl.releases import installed_verl, parse_release

#: verl's engines that patch trl's models where trl is installed; trl 1.13 has no such models.
FSDP = ("fsdp", "fsdp2")
TRL_WITHOUT_PPO = (1, 13)

#: Seconds a Ray dashboard has to answer.
PATIENCE = 5.0


def check_environment(plan: Plan, unchecked: list[str]) -> Iterator[LaunchFinding]:
    """Findings about packages, ports, devices and the cluster.

    Args:
        plan: the run.
        unchecked: is given a line for what cannot be seen from here.
    """
    cluster = plan.recipe.cluster
    for name, port in (("port", cluster.port), ("dashboard_port", cluster.dashboard_port)):
        if port in WORKER_PORTS:
            yield LaunchFinding(
                "error",
                "ports",
                f"cluster.{name}",
                f"{port} lies in 10002 to 19999, where Ray's workers get theirs: Ray refuses it.",
                "Take 6379 or 6766, and 8265.",
                "Ray 2.60",
            )
    if cluster.target == "local":
        yield from _packages(plan)
        yield from _machine(plan)
    elif cluster.target == "ray-job":
        yield from _ray_cluster(plan, unchecked)
    else:
        unchecked.append(f"devices and packages on the nodes: {cluster.target} runs elsewhere.")


def _packages(plan: Plan) -> Iterator[LaunchFinding]:
    if installed_verl() is None:
        fix = "pip install 'verl[verl-core,vllm,fsdp]', or choose a cluster.target."
        if plan.recipe.devices == "npu":  # the extras would bring CUDA's torch in place of CANN's
            fix = (
                "pip install --no-deps verl beside CANN's torch, torch-npu and vllm-ascend, or choose "
                "a cluster.target."
            )
        yield LaunchFinding(
            "error", "packages", "cluster.target", "no verl is installed here.", fix
        )
        return
    v1 = parse_release(plan.verl) >= (0, 9, 0) and plan.get("trainer.use_v1", True)
    if v1 and find_spec("transfer_queue") is None:
        yield LaunchFinding(
            "error",
            "packages",
            "trainer.use_v1",
            "verl 0.9's trainer imports transfer_queue, which pip install verl leaves out.",
            "pip install TransferQueue, or install verl[verl-core].",
            "measured on verl 0.9.1",
        )
    yield from _trl(plan)
    workdir = Path(plan.recipe.cluster.workdir)
    if plan.module == DAPO_RECIPE and not (workdir / "recipe" / "dapo").is_dir():
        yield LaunchFinding(
            "error",
            "packages",
            "cluster.workdir",
            f"{workdir} has no recipe/dapo: python -m {DAPO_RECIPE} would not start.",
            "Set it to a checkout of verl with its recipes, or use verl 0.9.",
        )


def _trl(plan: Plan) -> Iterator[LaunchFinding]:
    trl = _version("trl")
    if (
        trl
        and parse_release(trl) >= TRL_WITHOUT_PPO
        and plan.get("actor_rollout_ref.actor.strategy", "fsdp") in FSDP
    ):
        yield LaunchFinding(
            "error",
            "packages",
            "cluster.target",
            f"trl {trl} is installed: verl's FSDP engine then imports trl.experimental.ppo, which "
            "is gone since trl 1.13.",
            "pip install 'trl<1.13', or uninstall it: verl does without.",
            "verl models/transformers/monkey_patch.py; reproduced on 0.9.1 with trl 1.16.0",
        )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _machine(plan: Plan) -> Iterator[LaunchFinding]:
    """The devices and processors of this machine against what is asked for."""
    asked, kind = plan.recipe.devices_per_node, plan.recipe.devices
    here = count_devices(kind)
    if kind != "cpu" and here < asked:
        yield LaunchFinding(
            "error",
            "devices",
            "devices_per_node",
            f"{asked} {kind.upper()} asked for, {here} here.",
            "Lower devices_per_node, or choose a cluster.target.",
        )
    needed, cpus = cpus_needed(asked), os.cpu_count() or 1
    if cpus < needed:
        yield LaunchFinding(
            "warning",
            "cpus",
            "devices_per_node",
            f"{cpus} CPU cores here; {asked} devices want about {needed} "
            f"({CPUS_PER_DEVICE} each, and {CPUS_FOR_DRIVER}), or placement waits for ever.",
            "Lower devices_per_node, or set ray_kwargs.ray_init.num_cpus.",
            "verl issue 6663",
        )


def _ray_cluster(plan: Plan, unchecked: list[str]) -> Iterator[LaunchFinding]:
    """The resources a running cluster has, against what is asked for."""
    address = plan.recipe.cluster.address.rstrip("/")
    total = _total(address)
    if total is None:
        unchecked.append(
            f"the cluster's resources: {address} does not answer from here (or asks for a token: "
            "RAY_AUTH_TOKEN)."
        )
        return
    name = {"gpu": "GPU", "npu": "NPU", "cpu": "CPU"}[plan.recipe.devices]
    asked, there = plan.recipe.nodes * plan.recipe.devices_per_node, total.get(name, 0)
    if there < asked:
        yield LaunchFinding(
            "error",
            "devices",
            "nodes",
            f"{plan.recipe.nodes} x {plan.recipe.devices_per_node} = {asked} {name} asked for, "
            f"the cluster at {address} has {there:g}.",
            "Start the missing nodes, or lower nodes or devices_per_node.",
        )


def _total(address: str) -> dict[str, float] | None:
    """A cluster's resources by the dashboard's word; None if it does not answer."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    if not address.startswith(("http://", "https://")):
        return None
    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"{address}/api/cluster_status", headers=headers)  # noqa: S310 - http above
    try:
        with urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310
            status: Any = json.load(reply)
        usage = status["data"]["clusterStatus"]["loadMetricsReport"]["usage"]
        total = {name: float(pair[1]) for name, pair in usage.items()}
    except (URLError, OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    # A dashboard that has just started knows of no node yet.
    return total if any(name.startswith("node:") for name in total) else None


def _token() -> str:
    """Ray's token as its own tools find it; "" if there is none."""
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        return token
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
