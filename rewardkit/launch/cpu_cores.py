"""The CPU cores that verl reserves in Ray on a node; with fewer, a run waits for them forever.

Read in the code of the releases. Measured on 0.9.1 with TransferQueue 0.1.11 and Ray 2.60: a run on one
GPU gets its placement group with 12 cores, and not with 11. Ray's other actors (agent loops, reward
workers, servers from 0.7.1 on) start without a free core.
"""

from __future__ import annotations

from rewardkit.launch.plan import Plan

#: First release whose placement group has three cores for each device instead of one.
THREE_CORES_SINCE = (0, 7, 0)

#: First release whose rollout servers reserve no core.
FREE_SERVERS_SINCE = (0, 7, 1)

#: First release whose default trainer keeps its samples in TransferQueue.
TRANSFER_QUEUE_SINCE = (0, 9, 0)

#: First release that starts `reward.num_workers` reward workers, over all nodes in turn.
WORKERS_SINCE = (0, 7, 1)

#: The setting of how many storage units, of one core each, TransferQueue has in the whole cluster.
STORAGE_UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units"


def reserved_cores(plan: Plan) -> dict[str, int]:
    """Return the cores that a plan reserves on its first node, by what they are for."""
    per_device = 3 if plan.release.number >= THREE_CORES_SINCE else 1
    devices = plan.recipe.devices_per_node
    kind = plan.recipe.devices.upper()
    cores = {f"{per_device} x {devices} {kind}": per_device * devices} | _remote_cores(plan)
    if plan.release.number < TRANSFER_QUEUE_SINCE:
        return cores | {"1 for verl's driver": 1} | _server_cores(plan)
    if plan.get("trainer.use_v1", True) is True:
        units = plan.get(STORAGE_UNITS, 0) if _has_simple_storage(plan) else 0
        here = -(-units // plan.recipe.nodes) if isinstance(units, int) else 0
        cores[f"{1 + here} for TransferQueue"] = 1 + here
    return cores


def _remote_cores(plan: Plan) -> dict[str, int]:
    """Return the cores of the processes that each reward worker of the manager `remote` starts."""
    workers = plan.get("reward.num_workers")
    is_remote = plan.get("reward.reward_manager.name") == "remote"
    if not is_remote or type(workers) is not int or plan.release.number < WORKERS_SINCE:
        return {}
    cores = -(-workers // plan.recipe.nodes) * workers
    return {f"{cores} for the reward manager remote": cores}


def _has_simple_storage(plan: Plan) -> bool:
    return bool(plan.get("transfer_queue.backend.storage_backend") == "SimpleStorage")


def _server_cores(plan: Plan) -> dict[str, int]:
    """Return the cores of the servers of an asynchronous rollout, one for each replica."""
    is_async = plan.get("actor_rollout_ref.rollout.mode") == "async"
    size = plan.get("actor_rollout_ref.rollout.tensor_model_parallel_size", 1)
    if plan.release.number >= FREE_SERVERS_SINCE or not is_async or type(size) is not int:
        return {}
    servers = max(1, plan.recipe.devices_per_node // max(1, size))
    return {f"{servers} for the rollout's servers": servers}
