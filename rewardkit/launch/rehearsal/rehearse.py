"""`rewardkit train --rehearse`: a few real steps of verl on this machine's CPU.

Everything of the user's that can be wrong before an accelerator is rented is used as it is: the
rows, the prompts, the scorer, its options, the reward manager, the algorithm. The model is a
random one of 0.1 million weights, so that nothing is downloaded and a step takes a second. What a
rehearsal cannot tell: whether the model fits, how fast it is, and what only Megatron, vLLM-Ascend
or several nodes do. `rehearsal/replaced.py` lists what is replaced.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewardkit.errors import DataError
from rewardkit.launch.rehearsal.calls import Call, few, read_calls, read_dumps
from rewardkit.launch.rehearsal.checks import Check, Evidence, check, rewards
from rewardkit.launch.rehearsal.engines import INSIDE, engine_of, environment, versions_of
from rewardkit.launch.rehearsal.first_error import first_error, last_lines
from rewardkit.launch.rehearsal.run_command import Ended, run
from rewardkit.launch.rehearsal.sandbox import Stage, prepare
from rewardkit.launch.start import new_folder
from rewardkit.redact import redactor_of
from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.training_run import TrainingRun

__all__ = ["Call", "Check", "Rehearsal", "rehearse"]

_STEP = re.compile(rb"\bstep:(\d+) - ")

#: Variables that name a folder which is gone when the rehearsal is over.
_TEMPORARY = frozenset({"REWARDKIT_REHEARSAL_TMP", "HF_DATASETS_CACHE"})


@dataclass(frozen=True)
class Rehearsal:
    """What came of a rehearsal.

    Attributes:
        verl: the release that ran.
        steps: that were asked for.
        seconds: it took.
        checks: what was looked at; a run that failed has one, `run`, that says why.
        rewards: `critic/score/mean` by step.
        calls: a few calls of the scorer.
        folder: log, metrics, checkpoint, the sample and the command.
        notes: what of the user's plan is not rehearsed as it is.
    """

    verl: str
    steps: int
    seconds: float
    checks: tuple[Check, ...]
    rewards: tuple[float, ...]
    calls: tuple[Call, ...]
    folder: Path
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything is as it should be."""
        return all(looked.ok for looked in self.checks)


def rehearse(
    overrides: Sequence[str],
    *,
    folder: Path,
    steps: int = 2,
    rows: int = 32,
    seconds: float = 900,
    python: str = sys.executable,
    extra: Sequence[str] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> Rehearsal:
    """Run verl for a few steps on the CPU with the user's own rows and scorer.

    Args:
        overrides: of the plan, complete, as verl's trainer gets them; `--config-name=...` too.
        folder: is made, and must be empty; everything is kept there.
        steps: of training.
        rows: of the user's training data, from all over the files.
        seconds: after which the run is ended.
        python: the interpreter of verl's environment.
        extra: overrides that win over all others.
        progress: called with the number of steps done since the last call.

    Raises:
        UsageError: this verl cannot be rehearsed, or does not compose the overrides.
        DataError: a file of rows cannot be used.
        OutputError: the folder is not empty, or cannot be made.
    """
    versions = versions_of(python)
    engine = engine_of(versions)
    folder = folder.resolve()
    with new_folder(folder):  # where the plan is refused, nothing stays
        stage = prepare(overrides, folder, engine, python, steps=steps, rows=rows)
    # Ray makes sockets below it, whose paths may have 107 bytes: a short one, whatever TMPDIR is.
    temporary = Path(tempfile.mkdtemp(prefix="rk-", dir="/tmp"))
    try:
        env = environment(engine, folder, temporary, versions) | _watch(stage)
        command = [python, str(INSIDE / "rehearsal_train.py"), *stage.overrides, *extra]
        _write_command(folder / "command.sh", command, env)
        log = folder / "verl.log"
        ended = run(command, env, log, seconds, _Counter(log, progress))
    finally:
        _hide_secrets(folder / "verl.log")
        shutil.rmtree(temporary, ignore_errors=True)
    return _judged(stage, ended, steps, seconds)


def _watch(stage: Stage) -> dict[str, str]:
    """What the watched reward function must know."""
    if stage.reward is None:
        return {}
    path, name = stage.reward
    told = {"path": path, "name": name, "calls": str(stage.folder / "calls.jsonl")}
    return {"REWARDKIT_REHEARSAL_REWARD": json.dumps(told)}


def _write_command(out: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """The command as a script that runs again, with a temporary folder of its own."""
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
    """Hide the secrets of the environment in a log, if there is one: some libraries print it."""
    if not log.is_file():
        return
    text = log.read_text(encoding="utf-8", errors="surrogateescape")
    hidden = redactor_of(os.environ).text(text)
    log.write_text(hidden, encoding="utf-8", errors="surrogateescape")


class _Counter:
    """Counts the steps that a growing log tells of."""

    def __init__(self, log: Path, progress: Callable[[int], object]) -> None:
        self.log, self.progress = log, progress
        self.read, self.done, self.rest = 0, 0, b""

    def __call__(self) -> None:
        with self.log.open("rb") as file:
            file.seek(self.read)
            new = file.read()
        self.read += len(new)
        whole, end, self.rest = (self.rest + new).rpartition(b"\n")
        step = max((int(match[1]) for match in _STEP.finditer(whole + end)), default=0)
        if step > self.done:
            self.progress(step - self.done)
            self.done = step


def _judged(stage: Stage, ended: Ended, steps: int, seconds: float) -> Rehearsal:
    folder, watched = stage.folder, stage.reward is not None
    text = (folder / "verl.log").read_text(encoding="utf-8", errors="replace")
    told = _run_of(folder)
    calls, unloaded = read_calls(folder / "calls.jsonl")
    calls = calls if watched else read_dumps(folder / "rollouts")
    if ended.code == 0:
        evidence = Evidence(folder, text, told, steps, stage.train, stage.val, calls, watched)
        looked = check(evidence)
    else:
        why = _why(stage, ended, text, calls, unloaded, seconds)
        looked = (Check("run", False, f"{why}; log: {folder / 'verl.log'}"),)
    return Rehearsal(
        verl=stage.engine.verl,
        steps=steps,
        seconds=ended.seconds,
        checks=looked,
        rewards=rewards(told),
        calls=few(calls),
        folder=folder,
        notes=stage.notes,
    )


def _run_of(folder: Path) -> TrainingRun | None:
    """The run as its log tells it; releases without a logger to a file get that file from us."""
    try:
        told = read_run(folder / "verl.log")
    except DataError:
        return None
    out = folder / "metrics.jsonl"
    if not out.exists():
        rows = [
            {"step": step, "data": {k: v[i] for k, v in told.table.items() if v[i] is not None}}
            for i, step in enumerate(told.steps)
        ]
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return told


def _why(
    stage: Stage, ended: Ended, text: str, calls: Sequence[Call], unloaded: str, seconds: float
) -> str:
    """Why a run did not end well: the scorer's fault first, then what verl says."""
    raised = next((call.error for call in calls if call.error), "")
    if ended.code is None:
        first = f"the scorer raised {raised}; " if raised else ""
        return f"{first}ended after {seconds:,.0f} s; the last lines: {last_lines(text)}"
    if stage.reward and unloaded:
        return f"the scorer {stage.reward[0]} does not load: {unloaded}"
    if raised:
        return f"the scorer raised {raised}"
    strange = next((call for call in calls if call.score is None), None)
    if strange is not None:
        return (
            f"the scorer returned {_named(strange)} (data_source {strange.data_source!r}); verl "
            "takes a number, or a dict with a number under 'score'"
        )
    said = first_error(text) or f"exit code {ended.code}; the last lines: {last_lines(text)}"
    return f"verl {stage.engine.verl}: {said}"


def _named(call: Call) -> str:
    return f"a {call.returned} with {', '.join(call.keys)}" if call.keys else call.returned
