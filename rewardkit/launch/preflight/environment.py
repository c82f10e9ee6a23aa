"""Reads the facts about the machines of a run, as far as this machine can reach them."""

import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rewardkit.devices import RAY_RESOURCES, count_devices
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import MachineFacts
from rewardkit.launch.verl.releases import installed_verl, parse_release
from rewardkit.versions import package_version

#: verl's FSDP engines patch trl's models if trl is installed; trl 1.13 has no such models.
TRL_WITHOUT_PPO = (1, 13)

#: The setting of how many storage units, of one core each, TransferQueue has in the whole cluster.
STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"

#: Timeout of a request to a Ray dashboard, in seconds.
DASHBOARD_TIMEOUT_SECONDS = 5.0


def read_machine(plan: Plan, unchecked: list[str]) -> MachineFacts:
    """Return the facts about the machines of a plan; those that cannot be read get a line in `unchecked`."""
    target = plan.recipe.cluster.target
    if target == "ray-job":
        return MachineFacts(cluster_devices=_cluster_devices(plan, unchecked))
    if target != "local":
        unchecked.append(f"devices and packages on the nodes: {target} runs on other machines.")
        return MachineFacts()
    has_verl, trl = installed_verl() is not None, package_version("trl")
    cores = reserved_cores(plan)
    is_new = has_verl and trl and parse_release(trl) >= TRL_WITHOUT_PPO
    own_ray = not os.environ.get("RAY_ADDRESS")  # otherwise verl joins that cluster
    return MachineFacts(
        has_verl=has_verl,
        has_transfer_queue=not has_verl or find_spec("transfer_queue") is not None,
        new_trl=trl if is_new else None,
        has_dapo_recipe=not has_verl or Path(plan.recipe.cluster.workdir, "recipe/dapo").is_dir(),
        devices=count_devices(plan.recipe.devices),
        cores=os.cpu_count() if own_ray else None,
        reserved_cores=sum(cores.values()) if own_ray else None,
        reserved_for=", ".join(cores),
    )


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


def _cluster_devices(plan: Plan, unchecked: list[str]) -> int | None:
    """Return the devices of a running cluster from its dashboard; None if it does not answer."""
    from urllib.request import Request, urlopen

    address = plan.recipe.cluster.address.rstrip("/")
    token = _ray_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    total: dict[str, int] = {}
    with suppress(OSError, ValueError, LookupError, TypeError):
        if not address.startswith(("http://", "https://")):
            raise ValueError(address)
        request = Request(f"{address}/api/cluster_status", headers=headers)  # noqa: S310 - http above
        with urlopen(request, timeout=DASHBOARD_TIMEOUT_SECONDS) as reply:  # noqa: S310
            status: Any = json.load(reply)
        usage = status["data"]["clusterStatus"]["loadMetricsReport"]["usage"]
        total = {name: int(pair[1]) for name, pair in usage.items()}
    if any(name.startswith("node:") for name in total):  # a new dashboard does not list them yet
        return total.get(RAY_RESOURCES[plan.recipe.devices] or "CPU", 0)
    text = f"the cluster's resources: {address} does not answer "
    unchecked.append(f"{text}(it may need a token: RAY_AUTH_TOKEN).")
    return None


def _ray_token() -> str:
    """Return Ray's token from where Ray's own tools read it; "" without one."""
    if token := os.environ.get("RAY_AUTH_TOKEN"):
        return token
    path = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
