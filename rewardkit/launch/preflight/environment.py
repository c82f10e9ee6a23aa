"""Checks the machines of a run, as far as this machine can reach them."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.devices import RAY_RESOURCES, count_devices
from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.targets.base import WORKER_PORTS
from rewardkit.launch.verl.releases import installed_verl, parse_release
from rewardkit.versions import package_version

#: verl's FSDP engines patch trl's models if trl is installed; trl 1.13 has no such models.
FSDP = ("fsdp", "fsdp2")
TRL_WITHOUT_PPO = (1, 13)

#: The setting of how many storage units, of one core each, TransferQueue has in the whole cluster.
STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"

#: Timeout of a request to a Ray dashboard, in seconds.
DASHBOARD_TIMEOUT_SECONDS = 5.0


def check_environment(plan: Plan, report: PreflightReport) -> None:
    """Check ports, packages, devices and the Ray cluster of a plan."""
    cluster = plan.recipe.cluster
    for name, port in (("port", cluster.port), ("dashboard_port", cluster.dashboard_port)):
        if port in WORKER_PORTS:
            text = f"Ray refuses {port}, because its workers use the ports 10002 to 19999."
            fix = "Set it to 6379 or 6766." if name == "port" else "Set it to 8265."
            report.add("error", "ports", f"cluster.{name}", text, fix, "Ray 2.60")
    if cluster.target == "local":
        _check_packages(plan, report)
        _check_machine(plan, report)
    elif cluster.target == "ray-job":
        _check_ray_cluster(plan, report)
    else:
        report.unchecked.append(
            f"devices and packages on the nodes: {cluster.target} runs on other machines."
        )


def _check_packages(plan: Plan, report: PreflightReport) -> None:
    if installed_verl() is None:
        fix = "pip install 'verl[verl-core,vllm,fsdp]', or choose a cluster.target."
        if plan.recipe.devices == "npu":  # the extras would bring CUDA's torch in place of CANN's
            fix = "pip install --no-deps verl beside CANN's torch, torch-npu and vllm-ascend, or "
            fix += "choose a cluster.target."
        report.add("machine", "packages", "cluster.target", "verl is not installed.", fix)
        return
    is_v1 = parse_release(plan.verl) >= (0, 9, 0) and plan.get("trainer.use_v1", True)
    if is_v1 and find_spec("transfer_queue") is None:
        text = "verl 0.9's trainer imports transfer_queue, which pip install verl leaves out."
        fix = "pip install TransferQueue, or install verl[verl-core]."
        report.add("machine", "packages", "trainer.use_v1", text, fix, "measured on verl 0.9.1")
    _check_trl(plan, report)
    workdir = Path(plan.recipe.cluster.workdir)
    if plan.module == DAPO_RECIPE and not (workdir / "recipe" / "dapo").is_dir():
        text = f"{workdir} has no recipe/dapo: python -m {DAPO_RECIPE} would not start."
        fix = "Set it to a checkout of verl with its recipes, or use verl 0.9."
        report.add("machine", "packages", "cluster.workdir", text, fix)


def _check_trl(plan: Plan, report: PreflightReport) -> None:
    trl, strategy = package_version("trl"), plan.get("actor_rollout_ref.actor.strategy", "fsdp")
    if trl is None or parse_release(trl) < TRL_WITHOUT_PPO or strategy not in FSDP:
        return
    report.add(
        "machine",
        "packages",
        "cluster.target",
        f"trl {trl} is installed: verl's FSDP engine then imports trl.experimental.ppo, which trl "
        "1.13 removed.",
        "pip install 'trl<1.13', or uninstall it: verl does not need it.",
        "verl models/transformers/monkey_patch.py; reproduced on 0.9.1 with trl 1.16.0",
    )


def _check_machine(plan: Plan, report: PreflightReport) -> None:
    """Compare this machine's devices and CPU cores with the recipe's."""
    needed, kind = plan.recipe.devices_per_node, plan.recipe.devices
    present = count_devices(kind)
    if kind != "cpu" and present < needed:
        text = f"the recipe needs {needed} {kind.upper()}, and this machine has {present}."
        fix = "Lower devices_per_node, or choose a cluster.target."
        report.add("machine", "devices", "devices_per_node", text, fix)
    _check_cores(plan, report)


def _check_cores(plan: Plan, report: PreflightReport) -> None:
    """Compare the cores that a Ray of this machine has with those that verl reserves."""
    if os.environ.get("RAY_ADDRESS"):
        return  # verl joins that cluster
    setting = plan.release.name_of("ray_kwargs.ray_init.num_cpus")
    given = plan.get(setting)
    cores = given if isinstance(given, int) else os.cpu_count() or 1
    parts = reserved_cores(plan)
    needed = sum(parts.values())
    if cores >= needed:
        return
    is_given = isinstance(given, int)
    owner = f"{setting} is {cores}" if is_given else f"this machine has {cores}"
    text = (
        f"verl {plan.verl} reserves {needed} CPU cores in Ray ({', '.join(parts)}), and {owner}: "
    )
    text += "the run would wait for them forever."
    fix = f"Set {setting}={needed}: Ray only counts cores."
    if (units := plan.get(STORAGE_UNITS)) not in {None, 1} and needed - cores < units:
        fix = f"Set {STORAGE_UNITS}={units - (needed - cores)}, or {fix[0].lower()}{fix[1:]}"
    severity: Severity = "error" if is_given else "machine"
    report.add(severity, "cpus", setting, text, fix, "verl pull request 6663")


def reserved_cores(plan: Plan) -> dict[str, int]:
    """Return the CPU cores that verl reserves in Ray on the first node, by what they are for.

    With fewer, a run waits for them forever. Read in the code of the releases, and measured on 0.9.1
    with TransferQueue 0.1.11 and Ray 2.60: a run on one GPU gets its placement group with 12 cores, and
    not with 11. Ray's other actors (agent loops, reward workers, servers) start without a free core.
    """
    recipe = plan.recipe
    devices, nodes = recipe.devices_per_node, recipe.nodes
    cores = {f"3 x {devices} {recipe.devices.upper()}": 3 * devices}
    workers = plan.get("reward.num_workers")
    if plan.get("reward.reward_manager.name") == "remote" and type(workers) is int:
        remote = -(-workers // nodes) * workers  # each reward worker starts as many processes
        cores[f"{remote} for the reward manager remote"] = remote
    if plan.release.number < (0, 9, 0):
        return cores | {"1 for verl's driver": 1}
    if plan.get("trainer.use_v1", True) is True:  # it keeps its samples in TransferQueue
        is_simple = plan.get("transfer_queue.backend.storage_backend") == "SimpleStorage"
        units = plan.get(STORAGE_UNITS) if is_simple else 0
        here = 1 + (-(-units // nodes) if isinstance(units, int) else 0)
        cores[f"{here} for TransferQueue"] = here
    return cores


def _check_ray_cluster(plan: Plan, report: PreflightReport) -> None:
    """Compare a running cluster's resources with the recipe's."""
    recipe = plan.recipe
    address, name = recipe.cluster.address.rstrip("/"), RAY_RESOURCES[recipe.devices] or "CPU"
    total = _cluster_resources(address)
    if total is None:
        report.unchecked.append(
            f"the cluster's resources: {address} does not answer (it may need a token: "
            "RAY_AUTH_TOKEN)."
        )
        return
    needed, present = recipe.nodes * recipe.devices_per_node, total.get(name, 0)
    if present < needed:
        text = (
            f"the recipe needs {recipe.nodes} x {recipe.devices_per_node} = {needed} {name}, and "
        )
        text += f"the cluster at {address} has {present:g}."
        fix = "Start the missing nodes, or lower nodes or devices_per_node."
        report.add("error", "devices", "nodes", text, fix)


def _cluster_resources(address: str) -> dict[str, float] | None:
    """Return a cluster's resources from its dashboard; None if the dashboard does not answer."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    if not address.startswith(("http://", "https://")):
        return None
    token = _ray_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"{address}/api/cluster_status", headers=headers)  # noqa: S310 - http above
    try:
        with urlopen(request, timeout=DASHBOARD_TIMEOUT_SECONDS) as reply:  # noqa: S310
            status: Any = json.load(reply)
        usage = status["data"]["clusterStatus"]["loadMetricsReport"]["usage"]
        total = {name: float(pair[1]) for name, pair in usage.items()}
    except (URLError, OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    # A dashboard that has just started does not list the nodes yet.
    return total if any(name.startswith("node:") for name in total) else None


def _ray_token() -> str:
    """Return Ray's token from where Ray's own tools read it; "" without one."""
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        return token
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
