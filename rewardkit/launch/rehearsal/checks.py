"""What a rehearsal looks at when it is over."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewardkit.launch.rehearsal.calls import Call
from rewardkit.launch.rehearsal.sample import RowSample
from rewardkit.trainlog.training_run import TrainingRun


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        ok: whether it is as it should be.
        detail: with numbers; where it is not ok, what to do.
    """

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Evidence:
    """What a run that ended well left behind.

    Attributes:
        folder: of the rehearsal.
        text: verl's log.
        run: the same, read; None if there is not one step.
        steps: that were asked for.
        train: rows that were given to train on.
        val: rows to validate on.
        calls: of the scorer.
        watched: whether the calls were written down as they happened, not read from dumps.
    """

    folder: Path
    text: str
    run: TrainingRun | None
    steps: int
    train: RowSample
    val: RowSample
    calls: Sequence[Call]
    watched: bool


_LENGTH = re.compile(r"(filter )?dataset len: (\d+)")

#: What every step of training logs.
EXPECTED = ("critic/score/mean", "actor/pg_loss", "response_length/mean")


def check(evidence: Evidence) -> tuple[Check, ...]:
    """All checks, in the order in which things happen."""
    looks: dict[str, Callable[[Evidence], tuple[bool, str]]] = {
        "rows read": _rows,
        "scorer called": _called,
        "rewards": _rewards,
        "metrics": _metrics,
        "validation": _validation,
        "checkpoint": _checkpoint,
        "log": _log,
    }
    return tuple(Check(name, *look(evidence)) for name, look in looks.items())


def _rows(evidence: Evidence) -> tuple[bool, str]:
    """The log says how many rows verl read, and how many are left once the long ones are out."""
    read: list[int] = []
    for filtered, count in _LENGTH.findall(evidence.text):
        if filtered and read:
            read[-1] = int(count)
        elif not filtered:
            read.append(int(count))
    given = evidence.train.rows, evidence.val.rows
    if len(read) < 2:
        return False, "verl's log does not say how many rows it read"
    kept = f"{read[0]:,} of {given[0]:,} to train on, {read[1]:,} of {given[1]:,} to validate on"
    longest = f"the longest prompt has {evidence.train.longest:,} bytes"
    if tuple(read[:2]) != given:
        return False, f"{kept}: verl left rows out as too long; {longest}"
    return True, f"{kept}; {longest}"


def _called(evidence: Evidence) -> tuple[bool, str]:
    calls = evidence.calls
    if not calls:
        return False, "the scorer was never called: verl does not use the one you set"
    raised = [call for call in calls if call.error]
    if raised:
        return False, f"{len(raised):,} of {len(calls):,} calls raised; first: {raised[0].error}"
    if not evidence.watched:
        return True, f"{len(calls):,} responses were judged by verl's own scorer"
    if all(call.ground_truth is None for call in calls):
        return False, "every ground_truth is None: set reward_model.ground_truth in the rows"
    sources = ", ".join(_counted(call.data_source for call in calls))
    threads = "/".join(sorted({re.sub(r"\d+", "N", call.thread) for call in calls}))
    slowest = max(call.seconds for call in calls)
    info = calls[0].extra_info
    keys = info if isinstance(info, str) else ", ".join(info)
    return True, (
        f"{len(calls):,} calls in {threads}, slowest {slowest * 1000:,.1f} ms; "
        f"data_source {sources}; extra_info: {keys or 'no keys'}"
    )


def _counted(names: Iterator[str]) -> list[str]:
    return [f"{name or '(none)'} x {n:,}" for name, n in Counter(names).most_common(4)]


def _rewards(evidence: Evidence) -> tuple[bool, str]:
    values = rewards(evidence.run)
    if len(values) < evidence.steps:
        return False, f"{len(values)} of {evidence.steps} steps logged critic/score/mean"
    if not all(map(math.isfinite, values)):
        return False, "a step's mean reward is not a number: the scorer returns NaN or infinity"
    told = ", ".join(f"{value:.3f}" for value in (*values[:3], *values[3:][-3:]))
    flat = {call.score for call in evidence.calls}
    note = (
        "; the scorer gave every response the same: the model is random" if len(flat) == 1 else ""
    )
    return True, f"mean by step {told}{note}"


def rewards(run: TrainingRun | None) -> tuple[float, ...]:
    """The mean reward of each step."""
    return tuple(value for _, value in run.series("critic/score/mean")) if run else ()


def _metrics(evidence: Evidence) -> tuple[bool, str]:
    """The scorer's numbers are logged by the validation, under names of their own."""
    logged = set(evidence.run.table) if evidence.run else set()
    if missing := [name for name in EXPECTED if name not in logged]:
        return False, f"not logged: {', '.join(missing)}"
    shapes = {call.keys for call in evidence.calls if call.returned}
    if len(shapes) > 1:
        differ = sorted(
            frozenset().union(*shapes) - frozenset.intersection(*map(frozenset, shapes))
        )
        return False, f"return the same keys for every response; some lack {', '.join(differ)}"
    numbers = dict.fromkeys(key for call in evidence.calls for key in call.numbers)
    wanted = [key for key in numbers if key not in {"score", "reward"}]
    lost = [key for key in wanted if not any(f"/{key}/" in name for name in logged)]
    if lost:
        return False, f"the scorer returns {', '.join(lost)}, of which no metric came out"
    told = f"; of the scorer: {', '.join(wanted)}" if wanted else ""
    return True, f"{len(logged):,} metrics{told}"


def _validation(evidence: Evidence) -> tuple[bool, str]:
    run = evidence.run
    core = [name for name in run.table if name.startswith("val-core/")] if run else []
    if run is None or not core:
        return False, "no val-core/... metric was logged"
    shown = ", ".join(f"{name}={run.series(name)[-1][1]:.3f}" for name in core[:3])
    return True, shown


def _checkpoint(evidence: Evidence) -> tuple[bool, str]:
    folder = evidence.folder / "checkpoint" / f"global_step_{evidence.steps}"
    files = [file for file in folder.rglob("*") if file.is_file()]
    weights = [file for file in files if file.suffix in {".pt", ".safetensors", ".distcp"}]
    size = sum(file.stat().st_size for file in files) / 1e6
    if not weights:
        return False, f"{folder}: no weights were written"
    return True, f"{len(files)} files, {size:.1f} MB in {folder}"


def _log(evidence: Evidence) -> tuple[bool, str]:
    steps = len(evidence.run.steps) if evidence.run else 0
    said = f"{steps} of {evidence.steps} steps in {evidence.folder / 'metrics.jsonl'}"
    return steps == evidence.steps, said
