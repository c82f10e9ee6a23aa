"""Rules of the reward's settings: the reward managers, GDPO and the reward model."""

from __future__ import annotations

from rewardkit import registry
from rewardkit.launch import gdpo
from rewardkit.launch.plan import DAPO_RECIPE
from rewardkit.launch.rules.algorithm import FILTER_GROUPS, MANAGER
from rewardkit.launch.rules.rule import CODE, Violation, rule, set_to
from rewardkit.launch.rules.values import KL_IN_REWARD, PlanValues
from rewardkit.launch.verl.reward_managers import (
    GDPO_SINCE,
    LIMITS,
    NO_REGISTRATION_SINCE,
    REWARD_LOOP_SINCE,
    reward_managers,
)
from rewardkit.registry import did_you_mean, is_path

REWARD_MODEL = "reward.reward_model"
MODEL_ENABLE = f"{REWARD_MODEL}.enable"
MODEL_POOL = f"{REWARD_MODEL}.enable_resource_pool"
MODEL_ROLLOUT = f"{REWARD_MODEL}.rollout"
TRAINER_MODE = "trainer.v1.trainer_mode"
WORKERS = "reward.num_workers"

#: Before 0.7: compute the reward in a Ray task while the trainer goes on.
IN_TASK = "reward_model.launch_reward_fn_async"

#: The reward managers that take the place of those that verl removed in 0.7.
SUCCESSORS = {"prime": "remote", "batch": "naive"}

#: Our scorers that are async functions where verl has a reward loop: they ask a model.
ASYNC_SCORERS = frozenset({"judge"})

#: Releases from this one on have the reward model under `reward.reward_model`.
REWARD_MODEL_SINCE = (0, 7, 1)

#: More cores than this for reward workers are unusual on a node; with fewer than needed verl waits.
MANY_CORES = 16

LOOP = f"{CODE}: experimental/reward_loop"
LIMITED = f"{LOOP}/reward_manager/limited.py"
GDPO_SOURCE = f"{CODE}: trainer/ppo/core_algos.py, trainer/ppo/v1/trainer_base.py; arXiv 2601.05242"
MODEL_SOURCE = f"{LOOP}/reward_model.py, trainer/ppo/v1/trainer_base.py"


@rule("reward-manager", "error", MANAGER, f"{CODE}: reward_manager/registry.py")
def known_manager(values: PlanValues) -> Violation | None:
    """The release has the reward manager."""
    name, source = values.text(MANAGER), values.text("reward.reward_manager.source")
    is_own = source not in {"register", None}
    if name is None or is_own or values.plan.module == DAPO_RECIPE:
        return None
    known = reward_managers(values.plan.release.number)
    if name in known:
        return None
    message = f"verl {values.plan.verl} has no reward manager {name!r} and stops."
    message += f"{did_you_mean(name, list(known))} It has {', '.join(known)}."
    best = SUCCESSORS.get(name, "naive")
    may_register = values.plan.release.number < NO_REGISTRATION_SINCE
    is_custom = is_path(values.recipe.reward.scorer)
    extra = ", unless your reward file registers it" if may_register and is_custom else ""
    best = best if best in known else "naive"
    return set_to(MANAGER, best, message, extra=extra, severity="warning" if extra else None)


@rule("rate-limit", "warning", LIMITS[0], LIMITED)
def rate_limits(values: PlanValues) -> Violation | None:
    """rate_limited: max_concurrent is set (the default is 1); limits hold for each reward worker."""
    manager, workers = values.text(MANAGER), values.count(WORKERS)
    if manager not in (known := reward_managers(values.plan.release.number)):
        return None
    if manager != "rate_limited":
        unread = next((key for key in LIMITS if values.explicit(key) is not None), None)
        if unread is None or "rate_limited" not in known:
            return None
        fix = f"Set {MANAGER}=rate_limited, or leave {unread} out."
        return Violation(f"the reward manager {manager} does not read it.", fix, unread)
    if values.plan.get(LIMITS[0]) is None:
        each = (
            f"each of the {workers} reward workers scores" if workers else "a reward worker scores"
        )
        message = f"it is not set, so that {each} one response at a time."
        return set_to(LIMITS[0], 32, message)
    for key in LIMITS[1:3]:
        limit = values.count(key)
        if limit and workers and workers > 1:
            message = f"each of the {workers} reward workers has this limit of its own: together "
            message += f"they reach {limit * workers} a minute."
            fix = f"Set {key} to the server's limit divided by {workers}, or {WORKERS}=1."
            return Violation(message, fix, key, severity="info")
    return None


@rule("remote-reward", "warning", WORKERS, f"{LOOP}/reward_manager/remote.py")
def remote_processes(values: PlanValues) -> Violation | None:
    """remote: the scorer is not async; reward.num_workers squared is the number of its cores."""
    is_remote = "remote" in reward_managers(values.plan.release.number)
    if not is_remote or values.text(MANAGER) != "remote":
        return None
    if values.recipe.reward.scorer in ASYNC_SCORERS:
        message = f"the scorer {values.recipe.reward.scorer} is async, which remote refuses."
        return set_to(MANAGER, "naive", message, severity="error")
    workers = values.count(WORKERS)
    if not workers or workers**2 <= MANY_CORES:
        return None
    message = f"{workers} reward workers start {workers} processes each: verl reserves "
    message += f"{workers**2} cores for them, and waits forever where they are not free."
    return set_to(WORKERS, 4, message, extra=", or have the cores")


@rule("dictionary-reward", "error", MANAGER, f"{CODE}: workers/reward_manager (0.5, 0.6)")
def dictionary_manager(values: PlanValues) -> Violation | None:
    """Our scorers and guarded rewards, which return dictionaries, have a manager that takes them."""
    manager, reward = values.text(MANAGER), values.recipe.reward
    is_ours = reward.scorer in registry.SCORERS or reward.guard is not None
    if not is_ours or manager not in SUCCESSORS or values.is_since(*REWARD_LOOP_SINCE):
        return None
    what = {
        "batch": "passes lists, and the reward takes one response: verl stops at the first step.",
        "prime": "scores the whole batch 0, because the reward returns a dictionary.",
    }
    return set_to(MANAGER, "naive", f"{manager} {what[manager]}")


@rule("reward-in-task", "error", IN_TASK, f"{CODE}: trainer/ppo/reward.py; tried with 0.5.0")
def reward_in_task(values: PlanValues) -> Violation | None:
    """Before 0.7, a custom reward is not computed in a Ray task, which cannot load its file."""
    is_custom = values.recipe.reward.scorer != "verl"
    if values.flag(IN_TASK) is not True or not is_custom or values.plan.release.number >= (0, 7, 0):
        return None
    message = (
        "the task cannot load the reward's file and ends with No module named 'custom_module'."
    )
    return set_to(IN_TASK, False, message)


@rule("gdpo", "error", gdpo.REWARD_KEYS, GDPO_SOURCE)
def gdpo_parts(values: PlanValues) -> Violation | None:
    """GDPO has reward keys, a weight for each, and a trainer that passes them to the estimator."""
    keys, weights = values.plan.get(gdpo.REWARD_KEYS), values.plan.get(gdpo.REWARD_WEIGHTS)
    if values.text(gdpo.ESTIMATOR) != "gdpo":
        if keys is None:
            return None
        message = f"{values.text(gdpo.ESTIMATOR)} does not read it."
        return set_to(gdpo.ESTIMATOR, "gdpo", message, severity="warning")
    if values.plan.release.number < GDPO_SINCE:
        message = f"verl {values.plan.verl} does not know gdpo and stops."
        return Violation(message, "Use verl 0.7.1 or newer.", gdpo.ESTIMATOR)
    if not isinstance(keys, (list, tuple)) or not keys:
        message = "it is not set, and verl stops at the first step without it."
        fix = f"Set +{gdpo.REWARD_KEYS}=[...] to keys that the reward function returns; "
        return Violation(message, f"{fix}rewardkit compose --gdpo prints it.")
    if isinstance(weights, (list, tuple)) and len(weights) != len(keys):
        message = f"{len(weights)} weights for {len(keys)} keys."
        return Violation(message, "Give each key one weight.", gdpo.REWARD_WEIGHTS)
    return _gdpo_trainer(values)


def _gdpo_trainer(values: PlanValues) -> Violation | None:
    """Check what the trainer does with the parts."""
    if values.is_since(*gdpo.V1_SINCE) and values.flag(gdpo.USE_V1) is True:
        message = "True is the trainer that does not give the parts to GDPO and stops at its first "
        return set_to(gdpo.USE_V1, False, f"{message}step.")
    if values.flag(KL_IN_REWARD) is True:
        message = "True has no effect: GDPO reads the parts of the reward, not the reward."
        fix = f"Set {KL_IN_REWARD}=False; actor_rollout_ref.actor.use_kl_loss=True works."
        return Violation(message, fix, KL_IN_REWARD, severity="warning")
    by_spread = "algorithm.norm_adv_by_std_in_grpo"
    if values.flag(by_spread) is False:
        message = "False leaves the parts as large as the reward function makes them, so that a "
        message += "part's weight counts there and in gdpo_reward_weights."
        return set_to(by_spread, True, message, severity="warning")
    return None


@rule("reward-model", "error", MODEL_ENABLE, MODEL_SOURCE)
def reward_model(values: PlanValues) -> Violation | None:
    """A reward model has a path and an engine, and something asks it."""
    if values.plan.release.number < REWARD_MODEL_SINCE:
        return None
    if values.flag(MODEL_ENABLE) is not True:
        return _unused_reward_model(values)
    if not values.text(f"{REWARD_MODEL}.model_path"):
        message = "it is not set, and verl loads the reward model from it."
        return Violation(message, f"Set {REWARD_MODEL}.model_path.", f"{REWARD_MODEL}.model_path")
    engine, key = values.text(f"{MODEL_ROLLOUT}.name"), f"{MODEL_ROLLOUT}.name"
    if not engine:
        message = "it is not set, and verl cannot start the reward model's engine without it."
        return set_to(key, values.engine or "vllm", message)
    scorer = values.recipe.reward.scorer
    if scorer == "verl" and engine not in {"vllm", "sglang"}:
        message = f"verl cannot ask a reward model on {engine} for scores."
        return set_to(key, "vllm", message)
    if scorer in registry.SCORERS and scorer not in ASYNC_SCORERS:
        message = f"True loads a model that nothing asks: the scorer {scorer} does not."
        fix = f"Set {MODEL_ENABLE}=False, or a reward function that calls reward_router_address."
        may_ask = scorer == "auto"  # a row may name the scorer that asks
        return Violation(message, fix, severity="info" if may_ask else "warning")
    return _colocated(values)


def _unused_reward_model(values: PlanValues) -> Violation | None:
    """Check that no setting of a reward model is set while it is off."""
    names = ("enable_resource_pool", "model_path", "rollout.name")
    keys = (f"{REWARD_MODEL}.{name}" for name in names)
    key = next((key for key in keys if values.explicit(key) not in {None, False}), None)
    if key is None:
        return None
    does = "reserves devices that stay idle" if key == MODEL_POOL else "has no effect"
    message = f"it {does}, because {MODEL_ENABLE} is False."
    return Violation(message, f"Set {MODEL_ENABLE}=True.", key, severity="warning")


def _colocated(values: PlanValues) -> Violation | None:
    """Check what a reward model on the trainer's devices cannot do."""
    if values.flag(MODEL_POOL) is not False:
        return None
    is_v1 = values.is_since(0, 9, 0) and values.flag(gdpo.USE_V1) is not False
    if is_v1 and values.text(TRAINER_MODE) == "separate_async":
        message = "False: separate_async has no reward model on the trainer's devices."
        return set_to(MODEL_POOL, True, message)
    if is_v1 and values.flag(f"{FILTER_GROUPS}.enable") is True:
        message = "False computes rewards after sampling, which dynamic sampling needs before."
        return set_to(MODEL_POOL, True, message)
    if is_v1 and values.recipe.reward.scorer != "verl":
        message = "False: a reward model on the trainer's devices is given prompts and responses "
        message += (
            "only, and verl fails where a reward function needs data_source and ground_truth."
        )
        return set_to(MODEL_POOL, True, message)
    return None


@rule("reward-model-pool", "error", MODEL_POOL, MODEL_SOURCE)
def reward_model_devices(values: PlanValues) -> Violation | None:
    """The reward model's devices exist, and its parallel sizes divide them."""
    is_on = values.flag(MODEL_ENABLE) is True
    if values.plan.release.number < REWARD_MODEL_SINCE or not is_on:
        return None
    devices, is_pool = values.devices, values.flag(MODEL_POOL) is True
    if is_pool:
        counts = {}
        for name in ("nnodes", "n_gpus_per_node"):
            key = f"{REWARD_MODEL}.{name}"
            number = values.integer(key)
            if number is None:
                return None
            if number <= 0:
                return set_to(key, 1, f"{number} gives the reward model's pool no device.")
            counts[name] = number
        devices = counts["nnodes"] * counts["n_gpus_per_node"]
    return _replicas(values, devices) or (_extra_devices(values, devices) if is_pool else None)


def _replicas(values: PlanValues, devices: int | None) -> Violation | None:
    """Check that replicas of the reward model fill its devices."""
    names = ("tensor_model_parallel_size", "data_parallel_size", "pipeline_model_parallel_size")
    size = 1
    for name in names:
        size *= values.count(f"{MODEL_ROLLOUT}.{name}") or 1
    if not devices or devices % size == 0:
        return None
    key = f"{MODEL_ROLLOUT}.tensor_model_parallel_size"
    message = (
        f"a replica of the reward model takes {size} devices (TP x DP x PP; verl's default TP "
    )
    return set_to(key, 1, f"{message}is 2), which does not divide its {devices}.")


def _extra_devices(values: PlanValues, pool: int | None) -> Violation | None:
    """Say how many devices a pool needs besides the trainer's, which the recipe counts."""
    if not pool or not values.devices:
        return None
    devices = "1 device comes" if pool == 1 else f"{pool} devices come"
    message = f"the pool's {devices} on top of the {values.devices} that the recipe has."
    fix = f"Run it on a cluster with {pool + values.devices} devices (cluster.target: ray-job)."
    is_fixed = values.recipe.cluster.target not in {"ray-job", "local", "script"}
    return Violation(message, fix, severity="warning" if is_fixed else "info")
