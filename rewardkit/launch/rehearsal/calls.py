"""What a rehearsal's processes write while they run: the calls of the scorer, stacks, and verl's log."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.isolate.loading import line_in_stacks
from rewardkit.launch.rehearsal.settings import table

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


def select_examples(calls: Sequence[ScorerCall], count: int = 5) -> tuple[ScorerCall, ...]:
    """Return calls to show: first those with different sources and results, then the earliest."""
    kinds = {
        str((call["data_source"], call.get("keys"), call.get("error"))): call
        for call in calls[::-1]
    }
    first = [*kinds.values()][::-1]
    return (*first, *(call for call in calls if call not in first))[:count]


def hanging_call(folder: Path, scorer: str) -> str:
    """Return a message about a call that exceeded its limit, with its line and row; "" without one.

    Args:
        folder: the folder of the rehearsal.
        scorer: the scorer's file; "" for verl's own.
    """
    for path in folder.glob("stacks-*.txt"):
        if not path.stat().st_size:
            continue
        time.sleep(STACKS_SECONDS)
        stacks, process = path.read_text(encoding="utf-8", errors="replace"), path.stem[7:]
        calls = [call for call in read_calls(folder) if call["call"].startswith(f"{process}-")]
        for call in sorted(calls, key=lambda call: float(call["started"])):
            if "seconds" not in call:
                stack = stacks.partition(f"hread 0x{call['stack']:016x} ")[2].partition("hread 0x")[
                    0
                ]
                line = call.get("line") or (scorer and line_in_stacks(stack, scorer))
                index = "" if call["index"] is None else f"extra_info.index {call['index']}, "
                return (
                    f"{scorer or 'verl'}{f':{line}' if line else ''}: a call of the scorer has not "
                    f"returned after {time.monotonic() - call['started']:,.0f} s; its row has {index}"
                    f"data_source {call['data_source']!r}, ground_truth {call['ground_truth']!r}; the "
                    f"response begins with {call['response'][:60]!r}. Fix the scorer, or raise "
                    "--rehearse-call-seconds if it is only slow"
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
_PLACE = re.compile(r'^\s+File "(.+?)", line (\d+)')

#: How Ray and Hydra report an error of another process.
_REPORT = re.compile(r"^ray\.exceptions\.|^Error executing job")


def first_error(log: str) -> str:
    """Return the error that ended a run, as `Name: message (file.py:line)`; "" without one.

    An error that crosses Ray's actors is printed several times. The first error in a traceback is
    the cause; the others passed it on.
    """
    lines = _plain_lines(log)
    starts = [i for i, line in enumerate(lines) if line.startswith("Error executing job with over")]
    reported = next(_errors(lines[starts[-1] :]), "") if starts else ""
    return reported or next(_errors(lines), "")


def last_lines(log: str) -> str:
    """Return the last three lines that are not empty, joined into one."""
    lines = [" ".join(line.split()) for line in _plain_lines(log)]
    return " | ".join([line[:200] for line in lines if line][-3:])


def _plain_lines(log: str) -> list[str]:
    """Return the lines of a log without colours and without Ray's prefixes."""
    return [_PREFIX.sub("", _COLOURS.sub("", line)) for line in log.splitlines()]


def _errors(lines: Iterable[str]) -> Iterator[str]:
    place, is_inside = "", False
    for line in lines:
        is_inside = is_inside or line.startswith("Traceback ") or "ray::" in line
        if match := _PLACE.match(line):
            place = f" ({match[1].rpartition('/')[2]}:{match[2]})"
        elif is_inside and _ERROR.match(line) and not _REPORT.match(line):
            yield line.strip()[:MAX_LINE_CHARACTERS] + place
