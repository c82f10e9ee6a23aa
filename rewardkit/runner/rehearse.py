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
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardkit.errors import DataError, OutputError, UsageError
from rewardkit.runner.hydra_text import written
from rewardkit.runner.overrides import parse_overrides
from rewardkit.runner.rehearsal import replaced
from rewardkit.runner.rehearsal.calls import Call, few, read_calls, read_dumps
from rewardkit.runner.rehearsal.checks import Check, Evidence, check, rewards
from rewardkit.runner.rehearsal.engines import (
    INSIDE,
    Engine,
    engine_of,
    environment,
    versions_of,
)
from rewardkit.runner.rehearsal.first_error import first_error, last_lines
from rewardkit.runner.rehearsal.launch import Ended, run
from rewardkit.runner.rehearsal.sample import Sample, take_sample
from rewardkit.runner.rehearsal.scale import scaled
from rewardkit.runner.rehearsal.tiny import write_model
from rewardkit.runner.releases import DAPO_RECIPE, Release, release_of
from rewardkit.trainlog.model import Run
from rewardkit.trainlog.read import read_run

__all__ = ["Call", "Check", "Rehearsal", "rehearse"]

#: Rows of the validation: each may be answered several times.
VALIDATED = 8

#: Seconds for Hydra to compose a configuration; Python may start from a cold disk.
PATIENCE = 120.0

#: Hydra writes nothing of its own.
HYDRA = ("hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=stdout")

_STEP = re.compile(rb"\bstep:(\d+) - ")


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


@dataclass(frozen=True)
class _Stage:
    """A rehearsal that is ready to start."""

    engine: Engine
    release: Release
    overrides: list[str]
    train: Sample
    val: Sample
    reward: tuple[str, str] | None
    notes: tuple[str, ...]


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
        python: the interpreter of verl's environment, which must have rewardkit.
        extra: overrides that win over all others.
        progress: called with the number of steps done since the last call.

    Raises:
        UsageError: this verl cannot be rehearsed, or does not compose the overrides.
        DataError: a file of rows cannot be used.
        OutputError: the folder is not empty, or cannot be written.
    """
    versions = versions_of(python)
    engine = engine_of(versions)
    _make(folder := folder.resolve())
    stage = _prepare(overrides, folder, engine, python, steps=steps, rows=rows)
    temporary = Path(tempfile.mkdtemp(prefix="rk-", dir="/tmp"))  # noqa: S108 - Ray's socket paths may have 107 bytes
    try:
        env = environment(engine, folder, temporary, versions)
        if stage.reward:
            path, name = stage.reward
            notes = {"path": path, "name": name, "calls": str(folder / "calls.jsonl")}
            env["REWARDKIT_REHEARSAL_REWARD"] = json.dumps(notes)
        command = [python, str(INSIDE / "rehearsal_train.py"), *stage.overrides, *extra, *HYDRA]
        _write_command(folder / "command.sh", command, env)
        log = folder / "verl.log"
        ended = run(command, env, log, seconds, _Counter(log, progress))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return _judged(stage, ended, folder, steps, seconds)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OutputError(f"{folder} is not empty; name another folder, or remove it.")
    except NotADirectoryError:
        raise OutputError(f"{folder} is a file; name a folder.") from None
    except FileExistsError:
        raise OutputError(f"{folder} is a file; name a folder.") from None
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}.") from error


def _prepare(
    overrides: Sequence[str], folder: Path, engine: Engine, python: str, *, steps: int, rows: int
) -> _Stage:
    """Compose the user's plan, take the sample, write the model, settle the overrides."""
    name = "ppo_trainer"
    for argument in overrides:
        if argument.startswith("--config-name="):
            name = argument.partition("=")[2].removesuffix(".yaml")
    asked = parse_overrides([text for text in overrides if not text.startswith("-")], "the plan")
    release = release_of(engine.verl)
    recipe = replaced.uses_recipe(asked, release)
    added = [f"++{key}={written(value)}" for key, value in DAPO_RECIPE.items()] if recipe else []
    config = _composed(python, engine.verl, name, [*added, *map(str, asked)])
    _refuse(config)
    key = str(config.get("data.prompt_key") or "prompt")
    train = take_sample(_files(config, "data.train_files"), folder, "train", rows, key)
    val = take_sample(_files(config, "data.val_files"), folder, "val", VALIDATED, key)
    scale = scaled(config, train.rows, max(train.longest, val.longest), steps)
    write_model(folder / "model", positions=scale.prompt + scale.response)
    reward = replaced.reward_of(config, release)
    watcher = INSIDE / "rehearsal_reward.py" if reward else None
    place = replaced.Place(folder, train, val, watcher, engine.settings)
    settled = replaced.overrides_of(asked, config, scale, place, release)
    told = replaced.notes(config, scale, recipe=recipe)
    return _Stage(engine, release, settled, train, val, reward, told)


def _composed(python: str, verl: str, name: str, overrides: Sequence[str]) -> Mapping[str, Any]:
    """What verl's own configuration makes of the overrides: dotted key -> value."""
    request = {"config_name": name, "overrides": overrides, "validate": False, "reward": False}
    try:
        done = subprocess.run(  # noqa: S603 - our own module in the user's environment
            [python, "-m", "rewardkit.runner._verl_config"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.CalledProcessError as error:
        raise DataError(f"verl {verl}: its configuration fails: {last_lines(error.stderr, 1)}") from error
    except subprocess.TimeoutExpired as error:
        raise DataError(f"verl {verl}: no configuration after {PATIENCE:.0f} s.") from error
    if answer["error"]:
        raise UsageError(f"verl {verl} does not take this plan: {answer['error']}")
    config: Mapping[str, Any] = answer["config"]
    return config


def _refuse(config: Mapping[str, Any]) -> None:
    for key in ("reward_model.enable", "reward.reward_model.enable"):
        if config.get(key) is True:
            raise UsageError(
                f"{key}=True: a reward model cannot be rehearsed on a CPU; rehearse with "
                f"{key}=False if a scorer judges as well."
            )


def _files(config: Mapping[str, Any], key: str) -> list[str]:
    value = config.get(key)
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise UsageError(f"{key}={value}: name at least one file.")
    return [str(name) for name in names]


def _write_command(out: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
    """The command as a script that runs again: Ray's folder is a new one."""
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in env.items()
        if name not in {"REWARDKIT_REHEARSAL_TMP", "HF_DATASETS_CACHE"}
    ]
    lines = [
        "#!/bin/sh",
        *exports,
        "REWARDKIT_REHEARSAL_TMP=$(mktemp -d /tmp/rk-XXXXXX); export REWARDKIT_REHEARSAL_TMP",
        'export HF_DATASETS_CACHE="$REWARDKIT_REHEARSAL_TMP/datasets"',
        "exec " + " \\\n  ".join(map(shlex.quote, command)),
    ]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
        text = self.rest + new
        self.rest = text[text.rfind(b"\n") + 1 :]
        whole = text[: len(text) - len(self.rest)]
        found = [int(match[1]) for match in _STEP.finditer(whole)]
        if found and max(found) > self.done:
            self.progress(max(found) - self.done)
            self.done = max(found)


def _judged(stage: _Stage, ended: Ended, folder: Path, steps: int, seconds: float) -> Rehearsal:
    text = (folder / "verl.log").read_text(encoding="utf-8", errors="replace")
    told = _run_of(folder)
    calls, unloaded = read_calls(folder / "calls.jsonl")
    if not stage.reward:
        calls = read_dumps(folder / "rollouts")
    if ended.code == 0:
        watched = stage.reward is not None
        looked = check(
            Evidence(folder, text, told, steps, stage.train, stage.val, calls, watched)
        )
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


def _run_of(folder: Path) -> Run | None:
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
    stage: _Stage, ended: Ended, text: str, calls: Sequence[Call], unloaded: str, seconds: float
) -> str:
    """Why a run did not end well: the scorer's fault first, then what verl says."""
    if stage.reward and unloaded:
        return f"the scorer {stage.reward[0]} does not load: {unloaded}"
    if ended.code is None:
        return f"ended after {seconds:,.0f} s; the last lines: {last_lines(text)}"
    raised = next((call.error for call in calls if call.error), "")
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
