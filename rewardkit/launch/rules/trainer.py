"""Rules of the trainer: validation, checkpoints, logs."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, CODE, GUIDE, MODELARTS, Case, Rule
from rewardkit.launch.rules.values import (
    count,
    only_validates,
    since,
    validates,
    whole,
    word,
    words,
)

TEST, SAVE = "trainer.test_freq", "trainer.save_freq"
MODE, RESUME = "trainer.resume_mode", "trainer.resume_from_path"
LOGGER = "trainer.logger"
FOLDER = "trainer.default_local_dir"
KEEP = "trainer.max_actor_ckpt_to_keep"
SHOWN = "trainer.log_val_generations"

#: Every node has its own of these.
TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - a prefix that is warned of

#: Saved as often as this, checkpoints fill a disk.
OFTEN = 10

#: Loggers by the release that brought them.
LOGGERS = {
    (0, 0, 0): (
        "console",
        "wandb",
        "swanlab",
        "mlflow",
        "tensorboard",
        "vemlp_wandb",
        "clearml",
        "tracking",
    ),
    (0, 6, 0): ("trackio", "file"),
    (0, 9, 0): ("rl_insight",),
}

#: Loggers that other people look at, and that show answers.
SHARED = frozenset(
    {"wandb", "swanlab", "mlflow", "tensorboard", "vemlp_wandb", "clearml", "trackio"}
)


def validation(plan: Plan, _: Facts) -> Case | None:
    """There is a validation, and not on what is trained on."""
    if only_validates(plan):
        return None
    both = sorted(set(words(plan, "data.train_files")) & set(words(plan, "data.val_files")))
    if both and validates(plan):
        text = f"{', '.join(both)} is trained on and validated on."
        return Case(text, f"Hold some rows out, or set {TEST}=-1.", "data.val_files")
    every = whole(plan, TEST)
    if every is None or every > 0:
        return None
    if not plan.recipe.data.val:
        return Case("none: nothing is validated.", f"Set data.val, and {TEST}=10.", "data.val")
    return Case(f"{every}: never.", f"Set {TEST}=10.")


def checkpoints(plan: Plan, _: Facts) -> Case | None:
    """Something is saved, and not everything kept."""
    every = whole(plan, SAVE)
    if every is None or only_validates(plan):
        return None
    if every <= 0:
        return Case(f"{every}: the trained model is never saved.", f"Set {SAVE}=100.")
    if every <= OFTEN and plan.get(KEEP) is None:
        text = f"not set, and every {every} steps one is saved: all of them are kept."
        return Case(text, f"Set {KEEP}=2.", KEEP, "info")
    return None


def resume(plan: Plan, _: Facts) -> Case | None:
    """Where a run goes on."""
    mode, path = word(plan, MODE), plan.get(RESUME)
    if mode is None:
        return None
    if mode not in {"auto", "disable", "resume_path"}:
        return Case(f"{mode!r} is none of auto, disable, resume_path.", f"Set {MODE}=auto.")
    if mode != "resume_path":
        return None
    fix = f"Set {RESUME}=.../global_step_N."
    if path is None:
        return Case(f"resume_path, and {RESUME} is not set.", fix, RESUME)
    if isinstance(path, str) and "global_step_" not in path:
        return Case(f"{path}: verl reads the step from global_step_N in it.", fix, RESUME)
    return None


def loggers(plan: Plan, _: Facts) -> Case | None:
    """Loggers that the release knows."""
    known = {name for number, names in LOGGERS.items() if since(plan, *number) for name in names}
    other = [name for name in words(plan, LOGGER) if name not in known]
    if not other:
        return None
    text = f"verl {plan.verl} has no {', '.join(other)}; it has {', '.join(sorted(known))}."
    return Case(text, f"Set {LOGGER}=[console].")


def answers_shown(plan: Plan, _: Facts) -> Case | None:
    """Some answers of the validation are worth a look."""
    shared = SHARED & set(words(plan, LOGGER))
    if whole(plan, SHOWN) != 0 or not shared or not validates(plan):
        return None
    return Case(f"0: {min(shared)} gets figures and no answers.", f"Set {SHOWN}=10.")


def names(plan: Plan, _: Facts) -> Case | None:
    """Runs are found again by their names."""
    shared = SHARED & set(words(plan, LOGGER))
    if shared and plan.get("trainer.project_name") == "verl_examples":
        text = "verl_examples, which is everybody's."
        return Case(text, "Set trainer.project_name to one of yours.")
    return None


def shared_folder(plan: Plan, _: Facts) -> Case | None:
    """Each node writes its shards where all can read them."""
    folder, nodes = plan.settings.get(FOLDER), count(plan, "trainer.nnodes")
    if not nodes or nodes == 1 or only_validates(plan):
        return None
    fix = f"Set {FOLDER} to an absolute path on storage that all nodes share."
    if folder is None:
        return Case(f"not set: {nodes} nodes each write to a folder of their own.", fix)
    if isinstance(folder, str) and _of_one_node(folder):
        return Case(f"{folder}: {nodes} nodes each write to their own.", fix)
    return None


def _of_one_node(folder: str) -> bool:
    """Whether a folder is relative, or a node's temporary one."""
    return "://" not in folder and (not folder.startswith("/") or folder.startswith(TEMPORARY))


RULES = (
    Rule(
        "L-62",
        "warning",
        TEST,
        "validation is on, and not on the training file",
        ASCEND,
        validation,
    ),
    Rule(
        "L-63", "warning", SAVE, "save_freq > 0; few are kept if saved often", ASCEND, checkpoints
    ),
    Rule("L-64", "error", MODE, "resume_mode and its path", f"{MODELARTS}; {CODE}", resume),
    Rule("L-65", "error", LOGGER, "loggers that the release has", f"{GUIDE}; {CODE}", loggers),
    Rule("L-66", "info", SHOWN, "log_val_generations 10", GUIDE, answers_shown),
    Rule("L-67", "info", "trainer.project_name", "a project's name of one's own", GUIDE, names),
    Rule("L-78", "warning", FOLDER, "checkpoints on shared storage", ASCEND, shared_folder),
)
