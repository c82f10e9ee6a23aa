"""Rules of settings that are lists or names: engines, loggers, folders."""

from __future__ import annotations

from rewardkit.launch.rules.rule import Violation, Violations, check, set_to
from rewardkit.launch.rules.values import ROLLOUT, TENSOR_PARALLEL, PlanValues

ENGINE_SETTINGS = f"{ROLLOUT}.engine_kwargs"
FOLDER = "trainer.default_local_dir"

#: Temporary folders, of which every node has its own.
TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - prefixes that the rule warns of

LOGGERS = (
    "clearml console file mlflow swanlab tensorboard tracking trackio vemlp_wandb wandb".split()
)


@check("L-30")
def engine_settings(values: PlanValues) -> Violations:
    """Yield engine_kwargs of another engine, or of a pipeline."""
    engine = values.text(f"{ROLLOUT}.name")
    for key in values.plan.settings:
        prefix, _, rest = key.partition(f"{ENGINE_SETTINGS}.")
        owner, dot, setting = rest.partition(".")
        if prefix or not dot:
            continue
        if setting in {"pipeline_parallel_size", "pp_size"}:
            fix = f"Leave it out, and raise {TENSOR_PARALLEL}."
            yield Violation("verl's rollout does not support a pipeline.", fix, key)
        if engine and owner != engine:
            message = f"it has no effect, because the rollout engine is {engine}."
            fix = f"Write {ENGINE_SETTINGS}.{engine}.{setting}."
            yield Violation(message, fix, key, "warning")


@check("L-65")
def loggers(values: PlanValues) -> Violations:
    """Yield the loggers that the release does not have."""
    known = sorted([*LOGGERS, "rl_insight"] if values.is_since(0, 9, 0) else LOGGERS)
    unknown = [name for name in values.strings("trainer.logger") if name not in known]
    if unknown:
        message = f"verl {values.plan.verl} has no logger {', '.join(unknown)}; it has "
        yield set_to("trainer.logger", "[console]", f"{message}{', '.join(known)}.")


@check("L-78")
def shared_folder(values: PlanValues) -> Violations:
    """Yield a folder of checkpoints that the nodes of a run do not share."""
    nodes, folder = values.nodes or 1, values.explicit(FOLDER) or ""
    if nodes == 1 or values.only_validates or not isinstance(folder, str):
        return
    is_absolute = folder.startswith("/") and not folder.startswith(TEMPORARY)
    if not is_absolute and "://" not in folder:
        name = folder or "verl's default"
        message = f"{name} is another folder on each of the {nodes} nodes."
        fix = f"Set {FOLDER} to an absolute path on storage that all nodes share."
        yield Violation(message, fix)
