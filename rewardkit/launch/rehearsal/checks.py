"""The checks after a rehearsal."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rewardkit.launch.rehearsal.picture_check import check_pictures
from rewardkit.launch.rehearsal.pictures import PictureSample
from rewardkit.launch.rehearsal.planned_tools import PlannedTools, check_tools
from rewardkit.launch.rehearsal.row_sample import RowSample
from rewardkit.launch.rehearsal.scorer_calls import ScorerCall
from rewardkit.trainlog.training_run import TrainingRun


@dataclass(frozen=True)
class RehearsalCheck:
    """The result of one check.

    Attributes:
        name: the name of the check.
        ok: whether it passed.
        detail: the numbers, or what to do if it failed.
    """

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class RehearsalEvidence:
    """Files and numbers of a run that ended with exit code 0.

    Attributes:
        folder: the folder of the rehearsal.
        text: verl's log.
        run: the parsed log; None if it has no step.
        steps: the planned steps.
        train: the rows to train on.
        val: the rows to validate on.
        calls: the calls of the scorer.
        is_watched: whether the calls were recorded as they happened, not read from dumps.
        reward_manager: the name of verl's reward manager; "" if it is not known.
        tools: the tools of the plan, if they were only loaded; None otherwise.
        pictures: the pictures of the rows; None if they have none.
    """

    folder: Path
    text: str
    run: TrainingRun | None
    steps: int
    train: RowSample
    val: RowSample
    calls: Sequence[ScorerCall]
    is_watched: bool
    reward_manager: str = ""
    tools: PlannedTools | None = None
    pictures: PictureSample | None = None


_LENGTH = re.compile(r"(filter )?dataset len: (\d+)")

#: Metrics of every step of training.
EXPECTED_METRICS = ("critic/score/mean", "actor/pg_loss", "response_length/mean")


def check_rehearsal(evidence: RehearsalEvidence) -> tuple[RehearsalCheck, ...]:
    """Return the results of all checks, in the order of a run."""
    checks: dict[str, Callable[[RehearsalEvidence], tuple[bool, str]]] = {
        "rows read": _rows,
        "scorer called": _scorer_calls,
        "rewards": _rewards,
        "metrics": _metrics,
        "validation": _validation,
        "checkpoint": _checkpoint,
        "log": _log,
    }
    if evidence.tools is not None:
        checks["tools"] = _tools
    if (pictures := evidence.pictures) is not None:
        file = evidence.folder / "pictures.jsonl"
        checks["pictures"] = lambda _: check_pictures(pictures, file)
    return tuple(RehearsalCheck(name, *check(evidence)) for name, check in checks.items())


def _rows(evidence: RehearsalEvidence) -> tuple[bool, str]:
    """Compare the rows that verl read and kept, as its log has them, with the sample."""
    read: list[int] = []
    for filtered, count in _LENGTH.findall(evidence.text):
        if filtered and read:
            read[-1] = int(count)
        elif not filtered:
            read.append(int(count))
    planned = evidence.train.rows, evidence.val.rows
    if len(read) < 2:
        return False, "verl's log does not say how many rows it read"
    counts = (
        f"{read[0]:,} of {planned[0]:,} to train on, {read[1]:,} of {planned[1]:,} to validate on"
    )
    longest = f"the longest prompt has {evidence.train.longest:,} bytes"
    if tuple(read[:2]) != planned:
        return False, f"{counts}: verl left rows out as too long; {longest}"
    return True, f"{counts}; {longest}"


def _scorer_calls(evidence: RehearsalEvidence) -> tuple[bool, str]:
    calls = evidence.calls
    if not calls:
        return False, "the scorer was never called: verl does not use the one you set"
    failures = [call for call in calls if call.error]
    if failures:
        return (
            False,
            f"{len(failures):,} of {len(calls):,} calls raised; first: {failures[0].error}",
        )
    if not evidence.is_watched:
        return True, f"{len(calls):,} responses were judged by verl's own scorer"
    if all(call.ground_truth is None for call in calls):
        return False, "every ground_truth is None: set reward_model.ground_truth in the rows"
    sources = ", ".join(_count(call.data_source for call in calls))
    threads = "/".join(sorted({re.sub(r"\d+", "N", call.thread) for call in calls}))
    slowest = max(call.seconds for call in calls)
    info = calls[0].extra_info
    keys = info if isinstance(info, str) else ", ".join(info)
    return True, (
        f"{len(calls):,} calls in {threads}, slowest {slowest * 1000:,.1f} ms; "
        f"data_source {sources}; extra_info: {keys or 'no keys'}"
    )


def _count(names: Iterator[str]) -> list[str]:
    return [f"{name or '(none)'} x {n:,}" for name, n in Counter(names).most_common(4)]


def _rewards(evidence: RehearsalEvidence) -> tuple[bool, str]:
    values = mean_rewards(evidence.run)
    if len(values) < evidence.steps:
        return False, f"{len(values)} of {evidence.steps} steps logged critic/score/mean"
    if not all(map(math.isfinite, values)):
        return False, "a step's mean reward is not a number: the scorer returns NaN or infinity"
    means = ", ".join(f"{value:.3f}" for value in (*values[:3], *values[3:][-3:]))
    scores = {call.score for call in evidence.calls}
    note = "; every response got the same score: the model is random" if len(scores) == 1 else ""
    manager = f" by the reward manager {evidence.reward_manager}" if evidence.reward_manager else ""
    return True, f"mean by step {means}{manager}{note}"


def mean_rewards(run: TrainingRun | None) -> tuple[float, ...]:
    """Return the mean reward of each step."""
    return tuple(value for _, value in run.series("critic/score/mean")) if run else ()


def _metrics(evidence: RehearsalEvidence) -> tuple[bool, str]:
    """Check that every number of the scorer is a metric of the validation."""
    logged = set(evidence.run.table) if evidence.run else set()
    if missing := [name for name in EXPECTED_METRICS if name not in logged]:
        return False, f"not logged: {', '.join(missing)}"
    if broken := _broken_metrics(evidence.run):
        return False, f"not a number: {', '.join(broken)}"
    shapes = {call.keys for call in evidence.calls if call.returned}
    if len(shapes) > 1:
        differ = sorted(
            frozenset().union(*shapes) - frozenset.intersection(*map(frozenset, shapes))
        )
        return False, f"return the same keys for every response; some lack {', '.join(differ)}"
    numbers = dict.fromkeys(key for call in evidence.calls for key in call.numbers)
    expected = [key for key in numbers if key not in {"score", "reward"}]
    lost = [key for key in expected if not any(f"/{key}/" in name for name in logged)]
    if lost:
        return False, f"the scorer returns {', '.join(lost)}, but verl logs no metric of it"
    own = f"; of the scorer: {', '.join(expected)}" if expected else ""
    return True, f"{len(logged):,} metrics{own}"


def _broken_metrics(run: TrainingRun | None) -> list[str]:
    """Return the expected metrics that are NaN or infinite at a step."""
    return [
        f"{name} at step {step}"
        for name in EXPECTED_METRICS
        for step, value in (run.series(name) if run else ())
        if not math.isfinite(value)
    ]


def _validation(evidence: RehearsalEvidence) -> tuple[bool, str]:
    """Check that verl validated, and that every metric of the validation is a number."""
    run = evidence.run
    series = (
        {name: run.series(name) for name in run.table if name.startswith("val-")} if run else {}
    )
    last = {name: values[-1][1] for name, values in series.items() if values}
    core = [name for name in last if name.startswith("val-core/")]
    if not core:
        return False, "no val-core/... metric was logged"
    if broken := [name for name, value in last.items() if not math.isfinite(value)]:
        broken.sort(key=lambda name: not name.startswith("val-core/"))
        names = ", ".join(f"{name}={last[name]}" for name in broken[:3])
        more = f" and {len(broken) - 3:,} more" if len(broken) > 3 else ""
        return False, f"not a number: {names}{more}; the scorer returns NaN or infinity"
    return True, ", ".join(f"{name}={last[name]:.3f}" for name in core[:3])


def _checkpoint(evidence: RehearsalEvidence) -> tuple[bool, str]:
    folder = evidence.folder / "checkpoint" / f"global_step_{evidence.steps}"
    files = [file for file in folder.rglob("*") if file.is_file()]
    weights = [file for file in files if file.suffix in {".pt", ".safetensors", ".distcp"}]
    size = sum(file.stat().st_size for file in files) / 1e6
    if not weights:
        return False, f"{folder}: no weights were written"
    return True, f"{len(files)} files, {size:.1f} MB in {folder}"


def _tools(evidence: RehearsalEvidence) -> tuple[bool, str]:
    assert evidence.tools is not None  # noqa: S101 - for the type
    return check_tools(evidence.tools, (*evidence.train.files, *evidence.val.files))


def _log(evidence: RehearsalEvidence) -> tuple[bool, str]:
    steps = len(evidence.run.steps) if evidence.run else 0
    detail = f"{steps} of {evidence.steps} steps in {evidence.folder / 'metrics.jsonl'}"
    return steps == evidence.steps, detail
