"""What a rehearsal wrote, while it runs and afterwards: calls of the scorer, verl's log, the checks."""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.isolate.function import line_in_stacks
from rewardkit.launch.rehearsal.sample import ImageTokens
from rewardkit.launch.rehearsal.settings import QWEN2_VL, A, RehearsalPlan, table
from rewardkit.trainlog.training_run import TrainingRun

#: A call of the scorer; `hooks/rehearsal_calls.py` says what is in it.
ScorerCall: TypeAlias = Mapping[str, Any]

#: Characters of a line in a message, and seconds in which a process has written its stacks.
MAX_LINE_CHARACTERS, STACKS_SECONDS = 400, 0.3


def read_calls(folder: Path) -> list[ScorerCall]:
    """Return the calls of a rehearsal; the lines of a call are one record."""
    records: dict[str, dict[str, Any]] = {}
    file = folder / "calls.jsonl"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    for line in text.split("\n"):
        with suppress(ValueError):  # the last line of a process that was ended
            record = json.loads(line)
            records.setdefault(record["call"], {}).update(record)
    return [*records.values()]


def hanging_call(folder: Path, scorer: str) -> str:
    """Return a message about a call that exceeded its limit, with its line and row; "" without one.

    `scorer` is the scorer's file; "" for verl's own.
    """
    for path in [path for path in folder.glob("stacks-*.txt") if path.stat().st_size]:
        time.sleep(STACKS_SECONDS)
        calls = [call for call in read_calls(folder) if "seconds" not in call]
        calls = [call for call in calls if call["call"].startswith(f"{path.stem[7:]}-")]
        if not calls:
            continue
        call = min(calls, key=lambda call: float(call["started"]))
        mark, stacks = f"hread 0x{call['stack']:016x} ", path.read_text("utf-8", "replace")
        stack = stacks.partition(mark)[2].partition("hread 0x")[0]
        line = call.get("line") or (scorer and line_in_stacks(stack, scorer))
        index = "" if call["index"] is None else f"extra_info.index {call['index']}, "
        return (
            f"{scorer or 'verl'}{f':{line}' if line else ''}: a call of the scorer has not returned "
            f"after {time.monotonic() - call['started']:,.0f} s; its row has {index}data_source "
            f"{call['data_source']!r}, ground_truth {call['ground_truth']!r}; the response begins with "
            f"{call['response'][:60]!r}. Fix the scorer, or raise --rehearse-call-seconds if it is only "
            "slow"
        )
    return ""


#: The steps that are done, in verl's line of metrics and in its progress bar.
_STEPS_DONE = re.compile(r"\bstep:(\d{1,9}) - |Training Progress: [^\n]{0,200}?\| (\d{1,9})/\d+ \[")


def last_activity(log: str, steps: int) -> str:
    """Return the last activity, in the order of a rehearsal, that verl's log shows."""
    done = max((int(one or other) for one, other in _STEPS_DONE.findall(log)), default=0)
    activities = [text for mark, text in table("activities").items() if mark in log]
    return str(activities[-1]).format(step=min(done + 1, steps), steps=steps)


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"^\([\w.:+]+ pid=\d+(?:, ip=[\d.]+)?\) ")

#: The last line of a traceback: an exception's name, perhaps with modules, perhaps with a message.
_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|NotFound|Failure)\b(?::|$)"
)
_FILE_LINE = re.compile(r'^\s+File "(.+?)", line (\d+)')

#: How Ray and Hydra report an error of another process.
_REPORT = re.compile(r"^ray\.exceptions\.|^Error executing job")


def first_error(log: str, scorer: str = "") -> str:
    """Return the error that ended a run, as `Name: message (file.py:line)`; "" without one.

    An error that crosses Ray's actors is printed several times. The first error in a traceback is
    the cause; the others passed it on. One in the scorer's file may end the run by another one.
    """
    lines = _plain_lines(log)
    starts = [i for i, line in enumerate(lines) if line.startswith("Error executing job with over")]
    own = (error for error in _errors(lines) if f" ({Path(scorer).name}:" in error)
    reported = _errors(lines[starts[-1] :]) if starts else ()
    return next(chain(own, reported, _errors(lines)), "")


def last_lines(log: str) -> str:
    """Return the last three lines that are not empty, joined into one."""
    lines = [" ".join(line.split()) for line in _plain_lines(log)]
    return " | ".join([line[:200] for line in lines if line][-3:])


def _plain_lines(log: str) -> list[str]:
    """Return the lines of a log without colours and without Ray's prefixes."""
    return [_PREFIX.sub("", _COLOURS.sub("", line)) for line in log.splitlines()]


def _errors(lines: Iterable[str]) -> Iterator[str]:
    location, is_inside = "", False
    for line in lines:
        is_inside = is_inside or line.startswith("Traceback ") or "ray::" in line
        if match := _FILE_LINE.match(line):
            location = f" ({match[1].rpartition('/')[2]}:{match[2]})"
        elif is_inside and _ERROR.match(line) and not _REPORT.match(line):
            yield line.strip()[:MAX_LINE_CHARACTERS] + location


#: Metrics of every step of training.
EXPECTED_METRICS = ("critic/score/mean", "actor/pg_loss", "response_length/mean")

_LENGTH = re.compile(r"(filter )?dataset len: (\d+)")


@dataclass(frozen=True)
class RehearsalCheck:
    """The result of one check: the numbers, or what to do if it failed."""

    name: str
    ok: bool
    detail: str


def check_rehearsal(
    plan: RehearsalPlan, log: str, run: TrainingRun | None, calls: Sequence[ScorerCall]
) -> tuple[RehearsalCheck, ...]:
    """Return the results of all checks of a run that ended with exit code 0."""
    names = run.table if run else ()
    values = {name: [value for _, value in run.series(name)] for name in names} if run else {}
    steps, log_file = len(run.steps) if run else 0, plan.folder / "metrics.jsonl"
    checks = {
        "rows read": _rows(plan, log),
        "scorer called": _scorer_calls(calls),
        "rewards": _rewards(plan, values.get("critic/score/mean", []), calls),
        "metrics": _metrics(values, calls),
        "validation": _validation(values),
        "checkpoint": _checkpoint(plan.folder / "checkpoint" / f"global_step_{plan.steps}"),
        "log": (steps == plan.steps, f"{steps} of {plan.steps} steps in {log_file}"),
    }
    if plan.images is not None:
        checks["images"] = _images(plan, plan.images)
    return tuple(RehearsalCheck(name, *result) for name, result in checks.items())


def _rows(plan: RehearsalPlan, log: str) -> tuple[bool, str]:
    """Compare the rows that verl read and kept, as its log has them, with the sample."""
    read: list[int] = []
    for filtered, count in _LENGTH.findall(log):
        read = [*read[: -1 if filtered else None], int(count)]
    if len(read) < 2:
        return False, "verl's log does not say how many rows it read"
    train, val = plan.train, plan.val
    is_whole = read[:2] == [train.rows, val.rows]
    return is_whole, (
        f"{read[0]:,} of {train.rows:,} to train on, {read[1]:,} of {val.rows:,} to validate on"
        f"{'' if is_whole else ': verl left rows out as too long'}; the longest prompt has "
        f"{train.longest:,} bytes"
    )


def _scorer_calls(calls: Sequence[ScorerCall]) -> tuple[bool, str]:
    if not calls:
        return False, "the scorer was never called: verl does not use the one you set"
    if failures := [call["error"] for call in calls if call.get("error")]:
        return False, f"{len(failures):,} of {len(calls):,} calls failed; first: {failures[0]}"
    if all(call["ground_truth"] is None for call in calls):
        return False, "every ground_truth is None: set reward_model.ground_truth in the rows"
    sources = Counter(call["data_source"] or "(none)" for call in calls).most_common(4)
    slowest = max(call.get("seconds", 0.0) for call in calls) * 1000
    info = calls[0]["extra_info"]
    return True, (
        f"{len(calls):,} calls, slowest {slowest:,.1f} ms; data_source "
        f"{', '.join(f'{name} x {count:,}' for name, count in sources)}; extra_info: "
        f"{info if isinstance(info, str) else ', '.join(info) or 'no keys'}"
    )


def _rewards(
    plan: RehearsalPlan, values: Sequence[float], calls: Sequence[ScorerCall]
) -> tuple[bool, str]:
    if len(values) < plan.steps:
        return False, f"{len(values)} of {plan.steps} steps logged critic/score/mean"
    if not all(map(math.isfinite, values)):
        return False, "a step's mean reward is not a number: the scorer returns NaN or infinity"
    means = ", ".join(f"{value:.3f}" for value in (*values[:3], *values[3:][-3:]))
    manager = plan.config.get("reward.reward_manager.name")
    by = f" by the reward manager {manager}" if manager else ""
    is_same = len({call.get("score") for call in calls}) == 1
    note = "; every response got the same score: the model is random" if is_same else ""
    return True, f"mean by step {means}{by}{note}"


def _metrics(
    values: Mapping[str, Sequence[float]], calls: Sequence[ScorerCall]
) -> tuple[bool, str]:
    """Check that every number of the scorer is a metric of the validation."""
    if missing := [name for name in EXPECTED_METRICS if name not in values]:
        return False, f"not logged: {', '.join(missing)}"
    broken = [
        f"{name} at step {step}"
        for name in EXPECTED_METRICS
        for step, value in enumerate(values[name], 1)
        if not math.isfinite(value)
    ]
    if broken:
        return False, f"not a number: {', '.join(broken)}"
    shapes = [{*call["keys"]} for call in calls if "keys" in call]
    if mixed := set().union(*shapes) - set.intersection(*shapes or [set()]):
        lacking = ", ".join(sorted(mixed))
        return False, f"return the same keys for every response; some lack {lacking}"
    numbers = dict.fromkeys(key for call in calls for key in call.get("numbers", ()))
    expected = [key for key in numbers if key not in {"score", "reward"}]
    lost = [key for key in expected if not any(f"/{key}/" in name for name in values)]
    if lost:
        return False, f"the scorer returns {', '.join(lost)}, but verl logs no metric of it"
    own = f"; of the scorer: {', '.join(expected)}" if expected else ""
    return True, f"{len(values):,} metrics{own}"


def _validation(values: Mapping[str, Sequence[float]]) -> tuple[bool, str]:
    """Check that verl validated, and that every metric of the validation is a number."""
    last = {name: row[-1] for name, row in sorted(values.items()) if row and name[:4] == "val-"}
    core = [name for name in last if name.startswith("val-core/")]
    if not core:
        return False, "no val-core/... metric was logged"
    if broken := [
        name for name in {**dict.fromkeys(core), **last} if not math.isfinite(last[name])
    ]:
        names = ", ".join(f"{name}={last[name]}" for name in broken[:3])
        more = f" and {len(broken) - 3:,} more" if len(broken) > 3 else ""
        return False, f"not a number: {names}{more}; the scorer returns NaN or infinity"
    return True, ", ".join(f"{name}={last[name]:.3f}" for name in core[:3])


def _checkpoint(folder: Path) -> tuple[bool, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    if not any(file.suffix in {".pt", ".safetensors", ".distcp"} for file in files):
        return False, f"{folder}: no weights were written"
    size = sum(file.stat().st_size for file in files) / 1e6
    return True, f"{len(files)} files, {size:.1f} MB in {folder}"


def _images(plan: RehearsalPlan, images: ImageTokens) -> tuple[bool, str]:
    """Check that the model got images, and that they fit the plan."""
    file, seen = plan.folder / "images.jsonl", Counter[str]()
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        record = json.loads(line)
        seen[record["part"]] += record["images"]
    if not seen["actor"]:
        return False, "no image reached the model: verl trained on the text alone"
    has_tokens = QWEN2_VL.fullmatch(str(plan.config.get(f"{A}model.path")))
    most, limit = max(images.planned), has_tokens and plan.config["data.max_prompt_length"]
    if limit and most >= limit:
        return False, (
            f"the images of a row have {most:,} tokens, and data.max_prompt_length is {limit:,}: "
            "raise it, or scale the images down"
        )
    of = f" of data.max_prompt_length {limit:,}" if limit else ""
    parts = ", ".join(f"the {part} got {count:,}" for part, count in sorted(seen.items()))
    have = f"{sum(map(bool, images.planned)):,} of {len(images.planned):,} rows have images"
    return True, f"{have}, with up to {most:,} tokens{of}; {parts}"
