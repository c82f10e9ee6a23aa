"""`rewardkit train --rehearse`: a few real steps of verl on this machine's CPU.

A rehearsal uses what can be wrong before an accelerator is rented: the user's rows, prompts, scorer
with its options, reward manager and algorithm. The model has 0.1 million random weights (0.3 million
for rows with pictures), so that nothing is downloaded and a step takes a second. A rehearsal does not show whether the model fits,
how fast it is, or what only Megatron, vLLM-Ascend or several nodes do. `substitutions.py` lists the
settings that it replaces.
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
from pathlib import Path

from rewardkit.errors import DataError
from rewardkit.launch.rehearsal.checks import (
    RehearsalCheck,
    RehearsalEvidence,
    check_rehearsal,
    mean_rewards,
)
from rewardkit.launch.rehearsal.engines import (
    HOOKS_FOLDER,
    environment,
    find_engine,
    installed_versions,
)
from rewardkit.launch.rehearsal.log_errors import first_error, last_lines
from rewardkit.launch.rehearsal.planned_tools import read_tools
from rewardkit.launch.rehearsal.run_command import CommandOutcome, run_command
from rewardkit.launch.rehearsal.run_monitor import RunMonitor
from rewardkit.launch.rehearsal.sandbox import Sandbox, make_sandbox
from rewardkit.launch.rehearsal.scorer_calls import (
    ScorerCall,
    read_calls,
    read_dumps,
    select_examples,
)
from rewardkit.launch.start import new_folder
from rewardkit.redact import redactor_of
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.training_run import TrainingRun

__all__ = ["Rehearsal", "RehearsalCheck", "ScorerCall", "rehearse"]

#: Time limit of a rehearsal, and of one call of the scorer, in seconds.
REHEARSAL_SECONDS, CALL_SECONDS = 900.0, 60.0

#: Variables that name a folder which is removed after the rehearsal.
_TEMPORARY = frozenset({"REWARDKIT_REHEARSAL_TMP", "HF_DATASETS_CACHE"})


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
    python: str = sys.executable,
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
        python: the interpreter of verl's environment.
        extra: overrides that win over all others.
        progress: called with what is being done, whenever that changes.

    Raises:
        UsageError: this verl cannot be rehearsed, or does not compose the overrides.
        DataError: a file of rows cannot be used.
        OutputError: the folder is not empty, or cannot be created.
    """
    deadline = time.monotonic() + seconds
    versions = installed_versions(python)
    engine = find_engine(versions)
    folder = folder.resolve()
    progress("composing verl's configuration")
    with new_folder(folder):  # a refused plan leaves no files
        sandbox = make_sandbox(overrides, folder, engine, python, versions=versions, steps=steps)
    # A short path whatever TMPDIR is: Ray's sockets are below it, with at most 107 bytes in a path.
    temporary = Path(tempfile.mkdtemp(prefix="rk-", dir="/tmp"))
    try:
        env = environment(engine, folder, temporary, versions)
        env |= _recorder_variables(sandbox, call_seconds) | _tool_variables(sandbox)
        command = [python, str(HOOKS_FOLDER / "rehearsal_train.py"), *sandbox.overrides, *extra]
        _write_command(folder / "command.sh", command, env)
        monitor = RunMonitor(folder, steps=steps, limit=call_seconds, progress=progress)
        rest = deadline - time.monotonic()
        outcome = run_command(command, env, folder / "verl.log", rest, monitor)
    finally:
        _hide_secrets(folder / "verl.log")
        shutil.rmtree(temporary, ignore_errors=True)
    if monitor.hanging_call is None:  # else the stacks of its process are in this folder
        shutil.rmtree(folder / "running", ignore_errors=True)
    end_reason = _end_reason(monitor, seconds) if outcome.exit_code is None else ""
    return _result(sandbox, outcome, steps, end_reason)


def _end_reason(monitor: RunMonitor, seconds: float) -> str:
    """Return why a run had to be ended."""
    if monitor.hanging_call is not None:
        return monitor.hanging_call.describe()
    lines = last_lines(monitor.log.read_text(encoding="utf-8", errors="replace"))
    return (
        f"ended after {seconds:,.0f} s, its time limit (--rehearse-seconds); verl was at: "
        f"{monitor.activity}" + (f"; the last lines of the log: {lines}" if lines else "")
    )


def _recorder_variables(sandbox: Sandbox, call_seconds: float) -> dict[str, str]:
    """Return the variables of the recorder of calls."""
    if sandbox.reward is None:
        return {}
    path, name = sandbox.reward
    settings = {
        "path": path,
        "name": name,
        "calls": str(sandbox.folder / "calls.jsonl"),
        "running": str(sandbox.folder / "running"),
        "call_seconds": call_seconds,
        "varied_metric": sandbox.varied_metric,
    }
    return {"REWARDKIT_REHEARSAL_REWARD": json.dumps(settings)}


def _tool_variables(sandbox: Sandbox) -> dict[str, str]:
    """Return the variables of the loader of tools."""
    if not sandbox.tool_config:
        return {}
    settings = {"config": sandbox.tool_config, "out": str(sandbox.folder / "tools.json")}
    return {"REWARDKIT_REHEARSAL_TOOLS": json.dumps(settings)}


def _write_command(out: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Write the command as a script that runs again, with a temporary folder of its own."""
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in env.items()
        if name not in _TEMPORARY
    ]
    lines = [
        "#!/bin/sh",
        *exports,
        "REWARDKIT_REHEARSAL_TMP=$(mktemp -d /tmp/rk-XXXXXX); export REWARDKIT_REHEARSAL_TMP",
        'export HF_DATASETS_CACHE="$REWARDKIT_REHEARSAL_TMP/datasets"',
        "exec " + " \\\n  ".join(map(shlex.quote, command)),
    ]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _hide_secrets(log: Path) -> None:
    """Hide the secrets of the environment in a log: some libraries print the environment."""
    if not log.is_file():
        return
    text = log.read_text(encoding="utf-8", errors="surrogateescape")
    hidden = redactor_of(os.environ).text(text)
    log.write_text(hidden, encoding="utf-8", errors="surrogateescape")


def _result(sandbox: Sandbox, outcome: CommandOutcome, steps: int, end_reason: str) -> Rehearsal:
    folder, is_watched = sandbox.folder, sandbox.reward is not None
    text = (folder / "verl.log").read_text(encoding="utf-8", errors="replace")
    run = _read_metrics(folder)
    calls, unloaded = read_calls(folder / "calls.jsonl")
    calls = calls if is_watched else read_dumps(folder / "rollouts")
    if outcome.exit_code == 0:
        evidence = RehearsalEvidence(
            folder=folder,
            text=text,
            run=run,
            steps=steps,
            train=sandbox.train,
            val=sandbox.val,
            calls=calls,
            is_watched=is_watched,
            reward_manager=sandbox.reward_manager,
            tools=read_tools(folder / "tools.json"),
            pictures=sandbox.pictures,
        )
        checks = check_rehearsal(evidence)
    else:
        reason = _failure_reason(sandbox, outcome, text, calls, unloaded, end_reason)
        checks = (RehearsalCheck("run", False, f"{reason}; log: {folder / 'verl.log'}"),)
    return Rehearsal(
        verl=sandbox.engine.verl,
        steps=steps,
        seconds=outcome.seconds,
        checks=checks,
        rewards=mean_rewards(run),
        calls=select_examples(calls),
        folder=folder,
        notes=sandbox.notes,
        not_rehearsed=sandbox.not_rehearsed,
    )


def _read_metrics(folder: Path) -> TrainingRun | None:
    """Return the run in the log, and write metrics.jsonl for releases that do not write it."""
    try:
        run = read_run(folder / "verl.log")
    except DataError:
        return None
    out = folder / "metrics.jsonl"
    if not out.exists():
        rows = [
            {"step": step, "data": {k: v[i] for k, v in run.table.items() if v[i] is not None}}
            for i, step in enumerate(run.steps)
        ]
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return run


def _failure_reason(
    sandbox: Sandbox,
    outcome: CommandOutcome,
    text: str,
    calls: Sequence[ScorerCall],
    unloaded: str,
    end_reason: str,
) -> str:
    """Return why a run failed: an error of the scorer if there is one, else verl's error."""
    scorer_error = next((call.error for call in calls if call.error), "")
    if outcome.exit_code is None:
        is_own = scorer_error and not scorer_error.startswith("SystemExit")  # which ended the run
        first = f"the scorer raised {scorer_error}; " if is_own else ""
        return f"{first}{end_reason}"
    if sandbox.reward and unloaded:
        return f"the scorer {sandbox.reward[0]} does not load: {unloaded}"
    if scorer_error:
        return f"the scorer raised {scorer_error}"
    unscored = next((call for call in calls if call.score is None), None)
    if unscored is not None:
        return (
            f"the scorer returned {_describe_result(unscored)} (data_source {unscored.data_source!r}); verl "
            "takes a number, or a dict with a number under 'score'"
        )
    error = first_error(text) or (
        f"exit code {outcome.exit_code}; the last lines: {last_lines(text)}"
    )
    return f"verl {sandbox.engine.verl}: {error}"


def _describe_result(call: ScorerCall) -> str:
    return f"a {call.returned} with {', '.join(call.keys)}" if call.keys else call.returned
