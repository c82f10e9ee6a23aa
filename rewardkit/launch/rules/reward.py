"""Rules of the reward's settings: the reward managers, GDPO and the reward model."""

from __future__ import annotations

from rewardkit import registry
from rewardkit.launch import gdpo
from rewardkit.launch.plan import DAPO_RECIPE
from rewardkit.launch.rules.algorithm import FILTER_GROUPS
from rewardkit.launch.rules.rule import CODE, Violation, Violations, rule, set_to
from rewardkit.launch.rules.values import KL_IN_REWARD, MANAGER, PlanValues
from rewardkit.launch.verl.reward_managers import LIMITS, NO_REGISTRATION_SINCE, REWARD_MANAGERS

REWARD_MODEL = "reward.reward_model"
MODEL_ENABLE = f"{REWARD_MODEL}.enable"
MODEL_POOL = f"{REWARD_MODEL}.enable_resource_pool"
MODEL_ROLLOUT = f"{REWARD_MODEL}.rollout"
WORKERS = "reward.num_workers"

#: Our scorers that are async functions: they ask a model.
ASYNC_SCORERS = frozenset({"judge"})

#: More cores than this for reward workers are unusual on a node; with fewer than needed verl waits.
MANY_CORES = 16

LOOP = f"{CODE}: experimental/reward_loop"
GDPO_SOURCE = f"{CODE}: trainer/ppo/core_algos.py, trainer/ppo/v1/trainer_base.py; arXiv 2601.05242"
MODEL_SOURCE = f"{LOOP}/reward_model.py, trainer/ppo/v1/trainer_base.py"


@rule("reward-manager", "error", MANAGER, f"{CODE}: reward_manager/registry.py")
def known_manager(values: PlanValues) -> Violations:
    """The release has the reward manager."""
    name, source = values.text(MANAGER), values.text("reward.reward_manager.source")
    is_own = source not in {"register", None}
    if name in {None, *REWARD_MANAGERS} or is_own or values.plan.module == DAPO_RECIPE:
        return
    near = registry.did_you_mean(str(name), list(REWARD_MANAGERS))
    message = f"verl {values.plan.verl} has no reward manager {name!r} and stops.{near}"
    message += f" It has {', '.join(REWARD_MANAGERS)}."
    best = "remote" if name == "prime" else "naive"  # it took the place of prime in 0.7
    if registry.is_path(values.recipe.reward.scorer) and not values.is_since(
        *NO_REGISTRATION_SINCE
    ):
        extra = ", unless your reward file registers it"
        yield set_to(MANAGER, best, message, extra=extra, severity="warning")
    yield set_to(MANAGER, best, message)


@rule("rate-limit", "warning", LIMITS[0], f"{LOOP}/reward_manager/limited.py")
def rate_limits(values: PlanValues) -> Violations:
    """rate_limited: max_concurrent is set (the default is 1); limits hold for each reward worker."""
    manager, workers = values.text(MANAGER), values.count(WORKERS)
    if manager not in REWARD_MANAGERS:
        return
    if manager != "rate_limited":
        for key in LIMITS:
            if values.explicit(key) is not None:
                fix = f"Set {MANAGER}=rate_limited, or leave {key} out."
                yield Violation(f"the reward manager {manager} does not read it.", fix, key)
        return
    if values.plan.get(LIMITS[0]) is None:
        each = f"each of the {workers} reward workers" if workers else "a reward worker"
        message = f"it is not set, so that {each} scores one response at a time."
        yield set_to(LIMITS[0], 32, message)
    for key in LIMITS[1:3]:
        limit = values.count(key)
        if limit and workers and workers > 1:
            message = f"each of the {workers} reward workers has this limit of its own: together "
            message += f"they reach {limit * workers} a minute."
            fix = f"Set {key} to the server's limit divided by {workers}, or {WORKERS}=1."
            yield Violation(message, fix, key, "info")


@rule("remote-reward", "warning", WORKERS, f"{LOOP}/reward_manager/remote.py")
def remote_processes(values: PlanValues) -> Violations:
    """remote: the scorer is not async; reward.num_workers squared is the number of its cores."""
    workers, scorer = values.count(WORKERS) or 0, values.recipe.reward.scorer
    if values.text(MANAGER) != "remote":
        return
    if scorer in ASYNC_SCORERS:
        message = f"the scorer {scorer} is async, which remote refuses."
        yield set_to(MANAGER, "naive", message, severity="error")
    if workers**2 > MANY_CORES:
        message = f"{workers} reward workers start {workers} processes each: verl reserves "
        message += f"{workers**2} cores for them, and waits forever where they are not free."
        yield set_to(WORKERS, 4, message, extra=", or have the cores")


@rule("gdpo", "error", gdpo.REWARD_KEYS, GDPO_SOURCE)
def gdpo_parts(values: PlanValues) -> Violations:
    """GDPO has reward keys, a weight for each, and a trainer that passes them to the estimator."""
    keys, weights = values.plan.get(gdpo.REWARD_KEYS), values.plan.get(gdpo.REWARD_WEIGHTS)
    if values.text(gdpo.ESTIMATOR) != "gdpo":
        if keys is not None:
            message = f"{values.text(gdpo.ESTIMATOR)} does not read it."
            yield set_to(gdpo.ESTIMATOR, "gdpo", message, severity="warning")
        return
    if not isinstance(keys, (list, tuple)) or not keys:
        message = "it is not set, and verl stops at the first step without it."
        fix = f"Set +{gdpo.REWARD_KEYS}=[...] to keys that the reward function returns; "
        yield Violation(message, f"{fix}rewardkit compose --gdpo prints it.")
        return
    if isinstance(weights, (list, tuple)) and len(weights) != len(keys):
        message = f"{len(weights)} weights for {len(keys)} keys."
        yield Violation(message, "Give each key one weight.", gdpo.REWARD_WEIGHTS)
    if values.is_since(*gdpo.V1_SINCE) and values.flag(gdpo.USE_V1) is True:
        message = "True is the trainer that does not give the parts to GDPO and stops at its first "
        yield set_to(gdpo.USE_V1, False, f"{message}step.")
    if values.flag(KL_IN_REWARD) is True:
        message = "True has no effect: GDPO reads the parts of the reward, not the reward."
        fix = f"Set {KL_IN_REWARD}=False; actor_rollout_ref.actor.use_kl_loss=True works."
        yield Violation(message, fix, KL_IN_REWARD, "warning")
    by_spread = "algorithm.norm_adv_by_std_in_grpo"
    if values.flag(by_spread) is False:
        message = "False leaves the parts as large as the reward function makes them, so that a "
        message += "part's weight counts there and in gdpo_reward_weights."
        yield set_to(by_spread, True, message, severity="warning")


@rule("reward-model", "error", MODEL_ENABLE, MODEL_SOURCE)
def reward_model(values: PlanValues) -> Violations:
    """A reward model has a path and an engine, and something asks it."""
    path, key = f"{REWARD_MODEL}.model_path", f"{MODEL_ROLLOUT}.name"
    if values.flag(MODEL_ENABLE) is not True:
        for unused in (MODEL_POOL, path, key):
            if values.explicit(unused) not in (None, False):
                does = (
                    "reserves devices that stay idle" if unused == MODEL_POOL else "has no effect"
                )
                message = f"it {does}, because {MODEL_ENABLE} is False."
                yield Violation(message, f"Set {MODEL_ENABLE}=True.", unused, "warning")
        return
    if not values.text(path):
        message = "it is not set, and verl loads the reward model from it."
        yield Violation(message, f"Set {path}.", path)
    engine, scorer = values.text(key), values.recipe.reward.scorer
    if not engine:
        message = "it is not set, and verl cannot start the reward model's engine without it."
        yield set_to(key, values.engine or "vllm", message)
    if scorer == "verl" and engine not in {"vllm", "sglang"}:
        message = f"verl cannot ask a reward model on {engine} for scores."
        yield set_to(key, "vllm", message)
    if scorer in registry.SCORERS and scorer not in ASYNC_SCORERS:
        message = f"True loads a model that nothing asks: the scorer {scorer} does not."
        fix = f"Set {MODEL_ENABLE}=False, or a reward function that calls reward_router_address."
        may_ask = scorer == "auto"  # a row may name the scorer that asks
        yield Violation(message, fix, severity="info" if may_ask else "warning")
    if values.flag(MODEL_POOL) is False and values.is_v1:
        yield from _shared_devices(values)


def _shared_devices(values: PlanValues) -> Violations:
    """Yield what a reward model on the trainer's devices cannot do."""
    if values.is_separate:
        message = "False: separate_async has no reward model on the trainer's devices."
        yield set_to(MODEL_POOL, True, message)
    if values.flag(f"{FILTER_GROUPS}.enable") is True:
        message = "False computes rewards after sampling, which dynamic sampling needs before."
        yield set_to(MODEL_POOL, True, message)
    if values.recipe.reward.scorer != "verl":
        message = "False: a reward model on the trainer's devices is given prompts and responses "
        message += (
            "only, and verl fails where a reward function needs data_source and ground_truth."
        )
        yield set_to(MODEL_POOL, True, message)


@rule("reward-model-pool", "error", MODEL_POOL, MODEL_SOURCE)
def reward_model_devices(values: PlanValues) -> Violations:
    """The reward model's devices exist, and its parallel sizes divide them."""
    if values.flag(MODEL_ENABLE) is not True:
        return
    devices, is_pool = values.devices, values.flag(MODEL_POOL) is True
    if is_pool:
        devices = 1
        for name in ("nnodes", "n_gpus_per_node"):
            key = f"{REWARD_MODEL}.{name}"
            number = values.integer(key)
            if number is None:
                return
            if number <= 0:
                yield set_to(key, 1, f"{number} gives the reward model's pool no device.")
            devices *= number
    tensor, size = f"{MODEL_ROLLOUT}.tensor_model_parallel_size", 1
    for name in ("tensor", "data", "pipeline"):
        suffix = "parallel_size" if name == "data" else "model_parallel_size"
        size *= values.count(f"{MODEL_ROLLOUT}.{name}_{suffix}") or 1
    if devices and devices % size:
        message = (
            f"a replica of the reward model takes {size} devices (TP x DP x PP; verl's default TP "
        )
        yield set_to(tensor, 1, f"{message}is 2), which does not divide its {devices}.")
    if is_pool and devices and values.devices:
        come = "1 device comes" if devices == 1 else f"{devices} devices come"
        total = devices + values.devices
        is_fixed = values.recipe.cluster.target not in {"ray-job", "local", "script"}
        yield Violation(
            f"the pool's {come} on top of the {values.devices} that the recipe has.",
            f"Run it on a cluster with {total} devices (cluster.target: ray-job).",
            severity="warning" if is_fixed else "info",
        )
