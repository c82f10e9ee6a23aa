"""What `rehearsal_calls.py` recorded of the calls of the scorer, and what failed in a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Characters of a line in a message.
MAX_LINE_CHARACTERS = 400


@dataclass(frozen=True)
class ScorerCall:
    """One call of the scorer.

    Attributes:
        data_source: the argument; "" where it is not known.
        ground_truth: the first characters of the argument; None for None.
        extra_info: the keys of the argument, or its type if it is not a mapping.
        response: the first characters of the response.
        returned: the type of the result; "" if the call raised.
        keys: the keys of the result, if it is a mapping.
        numbers: the keys that have a number.
        score: the number under `score`, or the result itself; None if neither is a number.
        error: the exception; "" if the call returned.
        thread: the name of the thread of the call.
        seconds: the duration.
    """

    data_source: str
    ground_truth: str | None
    extra_info: tuple[str, ...] | str
    response: str
    returned: str = ""
    keys: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    score: float | None = None
    error: str = ""
    thread: str = ""
    seconds: float = 0.0


def read_calls(folder: Path) -> list[ScorerCall]:
    """Return the calls of a rehearsal that have ended."""
    return [_call(record) for record in read_records(folder) if "seconds" in record]


def _call(record: Mapping[str, Any]) -> ScorerCall:
    info, result = record["extra_info"], record.get("result")
    values = result if isinstance(result, dict) else {"": result}
    numbers = {key: value for key, value in values.items() if isinstance(value, (int, float))}
    trace = record.get("traceback", "")
    names = ("data_source", "ground_truth", "response", "returned", "thread", "seconds")
    return ScorerCall(
        **{name: record[name] for name in names},
        extra_info=tuple(info) if isinstance(info, list) else info,
        keys=tuple(filter(None, values)),
        numbers=tuple(filter(None, numbers)),
        score=numbers.get("score", numbers.get("")),
        error=first_error(trace) or last_lines(trace, 1),
    )


def read_records(folder: Path) -> Iterable[dict[str, Any]]:
    """Return the records of all calls of a rehearsal; the lines of a call are one record."""
    records: dict[str, dict[str, Any]] = {}
    file = folder / "calls.jsonl"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    for line in text.split("\n"):
        with suppress(ValueError):  # the last line of a process that was ended
            record = json.loads(line)
            records.setdefault(record["call"], {}).update(record)
    return records.values()


def select_examples(calls: Sequence[ScorerCall], count: int = 5) -> tuple[ScorerCall, ...]:
    """Return calls to show: first those with different sources and results, then the earliest."""
    kinds = {(call.data_source, call.returned, call.keys, call.error): call for call in calls[::-1]}
    return tuple(dict.fromkeys([*reversed(kinds.values()), *calls]))[:count]


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


def last_lines(log: str, count: int = 3) -> str:
    """Return the last lines that are not empty, joined into one."""
    lines = [" ".join(line.split()) for line in _plain_lines(log)]
    return " | ".join([line[:200] for line in lines if line][-count:])


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
