"""Rules of the trainer: validation, checkpoints, logs, steps, and the settings of NPUs."""

from __future__ import annotations

from rewardkit.launch.findings import Severity
from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.batches import batch_step
from rewardkit.launch.rules.rule import (
    ASCEND,
    CODE,
    GUIDE,
    MODELARTS,
    TUTORIAL,
    Violation,
    rule,
    set_to,
)
from rewardkit.launch.rules.values import BATCH, EAGER, LOGGER, PlanValues

DEVICE = "trainer.device"
FOLDER = "trainer.default_local_dir"
KEPT_CHECKPOINTS = "trainer.max_actor_ckpt_to_keep"
RESUME_MODE, RESUME_PATH = "trainer.resume_mode", "trainer.resume_from_path"
SAVE, TEST = "trainer.save_freq", "trainer.test_freq"
TASK_QUEUE = "TASK_QUEUE_ENABLE"

#: Temporary folders, of which every node has its own.
TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - prefixes that the rule warns of

#: Saving at least once in this many steps fills a disk.
FREQUENT_STEPS = 10

#: Loggers by the release that introduced them.
LOGGERS = {
    (0, 0, 0): "console wandb swanlab mlflow tensorboard vemlp_wandb clearml tracking".split(),
    (0, 6, 0): ["trackio", "file"],
    (0, 9, 0): ["rl_insight"],
}


@rule("L-62", "warning", TEST, ASCEND)
def validation(values: PlanValues) -> Violation | None:
    """The run validates, and not on the training file."""
    if values.only_validates:
        return None
    both = sorted({*values.texts("data.train_files")} & {*values.texts("data.val_files")})
    if both and values.validates:
        message = f"{', '.join(both)} is a file for training and for validation."
        return Violation(message, f"Hold some rows out, or set {TEST}=-1.", "data.val_files")
    frequency = values.integer(TEST)
    if frequency is None or frequency > 0:
        return None
    if not values.recipe.data.val:
        message = "the recipe has no validation file, so nothing is validated."
        return Violation(message, f"Set data.val, and {TEST}=10.", "data.val")
    return set_to(TEST, 10, f"with {frequency} the run never validates.")


@rule("L-63", "warning", SAVE, ASCEND)
def checkpoints(values: PlanValues) -> Violation | None:
    """The run saves checkpoints, and keeps few of them if it saves often."""
    frequency = values.integer(SAVE)
    if frequency is None or values.only_validates:
        return None
    if frequency <= 0:
        message = f"with {frequency} the run never saves the trained model."
        return set_to(SAVE, 100, message)
    if frequency > FREQUENT_STEPS or values.plan.get(KEPT_CHECKPOINTS) is not None:
        return None
    message = f"it is not set, so verl keeps all checkpoints, one every {frequency} steps."
    return set_to(KEPT_CHECKPOINTS, 2, message, severity="info")


@rule("L-64", "error", RESUME_MODE, MODELARTS, CODE)
def resume(values: PlanValues) -> Violation | None:
    """resume_mode is auto, disable, or resume_path with a path."""
    mode, path = values.text(RESUME_MODE), values.plan.get(RESUME_PATH)
    if mode in {None, "auto", "disable"}:
        return None
    if mode != "resume_path":
        message = f"{mode!r} is not one of auto, disable, resume_path."
        return set_to(RESUME_MODE, "auto", message)
    if path is None:
        message = f"it is not set, and {RESUME_MODE}=resume_path needs it."
        return set_to(RESUME_PATH, ".../global_step_N", message)
    if isinstance(path, str) and "global_step_" not in path:
        message = f"{path} has no global_step_N, from which verl reads the step."
        return set_to(RESUME_PATH, ".../global_step_N", message)
    return None


@rule("L-65", "error", LOGGER, GUIDE, CODE)
def loggers(values: PlanValues) -> Violation | None:
    """Loggers are among those that the release has."""
    known = {name for since, names in LOGGERS.items() if values.is_since(*since) for name in names}
    unknown = [name for name in values.texts(LOGGER) if name not in known]
    if not unknown:
        return None
    message = f"verl {values.plan.verl} has no logger {', '.join(unknown)}; it has "
    return set_to(LOGGER, "[console]", f"{message}{', '.join(sorted(known))}.")


@rule("L-78", "warning", FOLDER, ASCEND)
def shared_folder(values: PlanValues) -> Violation | None:
    """Checkpoints of several nodes are on storage that all nodes share."""
    folder, nodes = values.explicit(FOLDER), values.count("trainer.nnodes") or 1
    if nodes == 1 or values.only_validates or not isinstance(folder, (str, type(None))):
        return None
    if folder is not None and not _is_local_to_node(folder):
        return None
    name = folder or "verl's default"
    message = f"{name} is another folder on each of the {nodes} nodes."
    return Violation(message, f"Set {FOLDER} to an absolute path on storage that all nodes share.")


def _is_local_to_node(folder: str) -> bool:
    """Whether a folder is relative, or a node's temporary one."""
    return "://" not in folder and (not folder.startswith("/") or folder.startswith(TEMPORARY))


@rule("L-68", "info", SAVE, TUTORIAL)
def steps(values: PlanValues) -> Violation | None:
    """The run's steps, rows // batch x epochs, are enough to save and validate."""
    rows, batch = values.facts.train_rows, values.count(BATCH)
    if not rows or not batch:
        return None
    if rows < batch:
        message = f"{batch} is more than the {rows} training rows: the run has no step."
        step = batch_step(values)
        if rows < step:
            fix = f"Prepare {step} rows or more: a batch divides over the devices."
            return Violation(message, fix, BATCH, severity="error")
        return set_to(BATCH, rows // step * step, message, extra=" or less", severity="error")
    total = values.count("trainer.total_training_steps")
    total = total or rows // batch * (values.count("trainer.total_epochs") or 1)
    for key in (SAVE, TEST):
        frequency = values.count(key)
        if frequency and frequency > total:
            message = f"{frequency} is more than the run's {total} steps: only the last one counts."
            return set_to(key, max(1, total // 5), message)
    return None


@rule("L-53", "warning", DEVICE, ASCEND)
def device(values: PlanValues) -> Violation | None:
    """trainer.device is npu on NPUs; before 0.7 verl does not detect them."""
    name, devices = values.text(DEVICE), values.recipe.devices
    if name is None or (name == "npu") == values.is_npu:
        return None
    severity: Severity = "warning" if values.is_since(0, 7, 0) else "error"
    message = f"{name} does not match the recipe's devices, {devices}."
    good = "cuda" if devices == "gpu" else devices
    return set_to(DEVICE, good, message, severity=severity)


@rule("ascend", "warning", "devices", "rewardkit's target ascend")
def ascend_devices(values: PlanValues) -> Violation | None:
    """The target ascend starts NPUs: the recipe has devices: npu."""
    recipe = values.recipe
    if recipe.cluster.target != "ascend" or recipe.devices != "gpu":
        return None
    message = (
        "gpu on the target ascend: the script sets nothing of HCCL, and verl is not told of NPUs."
    )
    return Violation(message, "Set devices: npu, or the target script or slurm for GPUs.")


@rule("L-54", "warning", f"{ACTOR}.use_torch_compile", ASCEND, MODELARTS)
def torch_compile(values: PlanValues) -> Violation | None:
    """NPU: use_torch_compile is False, for the actor and the reference if there is one."""
    switch = "use_torch_compile" if values.is_megatron else "fsdp_config.use_torch_compile"
    models = (ACTOR, REF) if values.uses_reference else (ACTOR,)
    for model in models if values.is_npu else ():
        key = f"{model}.{switch}"
        if values.flag(key, f"{ACTOR}.{switch}"):
            return set_to(key, False, "True does not work: NPU needs False.")
    return None


@rule("L-55", "warning", f"env.{TASK_QUEUE}", ASCEND)
def task_queue(values: PlanValues) -> Violation | None:
    """NPU: TASK_QUEUE_ENABLE is 1 with graphs, 2 in eager mode."""
    is_eager, value = values.flag(EAGER), values.plan.env.get(TASK_QUEUE)
    good = "2" if is_eager else "1"
    if not values.is_npu or is_eager is None or value == good:
        return None
    message = f"{value or 'the default'} does not match {EAGER}={is_eager}."
    return set_to(f"env.{TASK_QUEUE}", good, message)


@rule("L-77", "info", "cluster.workdir", ASCEND)
def work_folder(values: PlanValues) -> Violation | None:
    """NPU: the working folder is not below /home of the Ascend image."""
    folder = values.recipe.cluster.workdir
    if not values.is_npu or not f"{folder}/".startswith("/home/"):
        return None
    message = f"vLLM does not start in {folder}, below /home of the Ascend image."
    return Violation(message, "Set cluster.workdir to another folder.")
