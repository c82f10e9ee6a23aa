"""Rules of the trainer: validation, checkpoints, logs, steps, and the settings of NPUs."""

from __future__ import annotations

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.batches import batch_step
from rewardkit.launch.rules.rule import Violation, Violations, rule, set_to
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

LOGGERS = (
    "clearml console file mlflow swanlab tensorboard tracking trackio vemlp_wandb wandb".split()
)


@rule("L-62", "warning", TEST, "ASCEND")
def validation(values: PlanValues) -> Violations:
    """The run validates, and not on the training file."""
    if values.only_validates:
        return
    both = sorted({*values.texts("data.train_files")} & {*values.texts("data.val_files")})
    if both and values.validates:
        message = f"{', '.join(both)} is a file for training and for validation."
        yield Violation(message, f"Hold some rows out, or set {TEST}=-1.", "data.val_files")
    frequency = values.integer(TEST)
    if frequency is None or frequency > 0:
        return
    if not values.recipe.data.val:
        message = "the recipe has no validation file, so nothing is validated."
        yield Violation(message, f"Set data.val, and {TEST}=10.", "data.val")
    yield set_to(TEST, 10, f"with {frequency} the run never validates.")


@rule("L-63", "warning", SAVE, "ASCEND")
def checkpoints(values: PlanValues) -> Violations:
    """The run saves checkpoints, and keeps few of them if it saves often."""
    frequency = values.integer(SAVE)
    if frequency is None or values.only_validates:
        return
    if frequency <= 0:
        message = f"with {frequency} the run never saves the trained model."
        yield set_to(SAVE, 100, message)
    if frequency <= FREQUENT_STEPS and values.plan.get(KEPT_CHECKPOINTS) is None:
        message = f"it is not set, so verl keeps all checkpoints, one every {frequency} steps."
        yield set_to(KEPT_CHECKPOINTS, 2, message, severity="info")


@rule("L-64", "error", RESUME_MODE, "MODELARTS; CODE")
def resume(values: PlanValues) -> Violations:
    """resume_mode is auto, disable, or resume_path with a path."""
    mode, path = values.text(RESUME_MODE), values.plan.get(RESUME_PATH)
    if mode not in {None, "auto", "disable", "resume_path"}:
        yield set_to(RESUME_MODE, "auto", f"{mode!r} is not one of auto, disable, resume_path.")
    if mode == "resume_path" and path is None:
        message = f"it is not set, and {RESUME_MODE}=resume_path needs it."
        yield set_to(RESUME_PATH, ".../global_step_N", message)
    if mode == "resume_path" and isinstance(path, str) and "global_step_" not in path:
        message = f"{path} has no global_step_N, from which verl reads the step."
        yield set_to(RESUME_PATH, ".../global_step_N", message)


@rule("L-65", "error", LOGGER, "GUIDE; CODE")
def loggers(values: PlanValues) -> Violations:
    """Loggers are among those that the release has."""
    known = sorted([*LOGGERS, "rl_insight"] if values.is_since(0, 9, 0) else LOGGERS)
    unknown = [name for name in values.texts(LOGGER) if name not in known]
    if unknown:
        message = f"verl {values.plan.verl} has no logger {', '.join(unknown)}; it has "
        yield set_to(LOGGER, "[console]", f"{message}{', '.join(known)}.")


@rule("L-78", "warning", FOLDER, "ASCEND")
def shared_folder(values: PlanValues) -> Violations:
    """Checkpoints of several nodes are on storage that all nodes share."""
    nodes = values.nodes or 1
    folder = values.explicit(FOLDER) or ""
    if nodes == 1 or values.only_validates or not isinstance(folder, str):
        return
    is_absolute = folder.startswith("/") and not folder.startswith(TEMPORARY)
    if not is_absolute and "://" not in folder:
        name = folder or "verl's default"
        message = f"{name} is another folder on each of the {nodes} nodes."
        fix = f"Set {FOLDER} to an absolute path on storage that all nodes share."
        yield Violation(message, fix)


@rule("L-68", "info", SAVE, "TUTORIAL")
def steps(values: PlanValues) -> Violations:
    """The run's steps, rows // batch x epochs, are enough to save and validate."""
    rows, batch = values.facts.train_rows, values.batch
    if not rows or not batch:
        return
    if rows < batch:
        message = f"{batch} is more than the {rows} training rows: the run has no step."
        step = batch_step(values)
        if rows < step:
            fix = f"Prepare {step} rows or more: a batch divides over the devices."
            yield Violation(message, fix, BATCH, "error")
        yield set_to(BATCH, rows // step * step, message, extra=" or less", severity="error")
    total = values.count("trainer.total_training_steps")
    total = total or rows // batch * (values.count("trainer.total_epochs") or 1)
    for key in (SAVE, TEST):
        frequency = values.count(key) or 0
        if frequency > total:
            message = f"{frequency} is more than the run's {total} steps: only the last one counts."
            yield set_to(key, max(1, total // 5), message)


@rule("L-53", "warning", DEVICE, "ASCEND")
def device(values: PlanValues) -> Violations:
    """trainer.device is npu on NPUs."""
    name, devices = values.text(DEVICE), values.recipe.devices
    if name is not None and (name == "npu") != values.is_npu:
        good = "cuda" if devices == "gpu" else devices
        yield set_to(DEVICE, good, f"{name} does not match the recipe's devices, {devices}.")


@rule("ascend", "warning", "devices", "rewardkit's target ascend")
def ascend_devices(values: PlanValues) -> Violations:
    """The target ascend starts NPUs: the recipe has devices: npu."""
    if values.recipe.cluster.target == "ascend" and values.recipe.devices == "gpu":
        yield Violation(
            "gpu on the target ascend: the script sets nothing of HCCL, and verl is not told of NPUs.",
            "Set devices: npu, or the target script or slurm for GPUs.",
        )


@rule("L-54", "warning", f"{ACTOR}.use_torch_compile", "ASCEND; MODELARTS")
def torch_compile(values: PlanValues) -> Violations:
    """NPU: use_torch_compile is False, for the actor and the reference if there is one."""
    switch = "use_torch_compile" if values.is_megatron else "fsdp_config.use_torch_compile"
    for model in (ACTOR, REF) if values.uses_reference else (ACTOR,):
        key = f"{model}.{switch}"
        if values.is_npu and values.flag(key, f"{ACTOR}.{switch}"):
            yield set_to(key, False, "True does not work: NPU needs False.")


@rule("L-55", "warning", f"env.{TASK_QUEUE}", "ASCEND")
def task_queue(values: PlanValues) -> Violations:
    """NPU: TASK_QUEUE_ENABLE is 1 with graphs, 2 in eager mode."""
    is_eager, value = values.flag(EAGER), values.plan.env.get(TASK_QUEUE)
    good = "2" if is_eager else "1"
    if values.is_npu and is_eager is not None and value != good:
        message = f"{value or 'the default'} does not match {EAGER}={is_eager}."
        yield set_to(f"env.{TASK_QUEUE}", good, message)


@rule("L-77", "info", "cluster.workdir", "ASCEND")
def work_folder(values: PlanValues) -> Violations:
    """NPU: the working folder is not below /home of the Ascend image."""
    folder = values.recipe.cluster.workdir
    if values.is_npu and f"{folder}/".startswith("/home/"):
        message = f"vLLM does not start in {folder}, below /home of the Ascend image."
        yield Violation(message, "Set cluster.workdir to another folder.")
