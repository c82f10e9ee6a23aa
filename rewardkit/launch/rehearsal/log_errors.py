"""The line of verl's log that has the error of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Characters of a line in a message.
MAX_LINE_CHARACTERS = 400

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"^\([\w.:+]+ pid=\d+(?:, ip=[\d.]+)?\) ")

#: The last line of a traceback: an exception's name, perhaps with modules, perhaps with a message.
_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|NotFound|Failure)\b(?::|$)"
)
_PLACE = re.compile(r'^\s+File "(.+?)", line (\d+)')

#: How Ray and Hydra report an error of another process.
_REPORT = re.compile(r"^ray\.exceptions\.|^Error executing job")

#: The line before Hydra's report of the error that ended the run.
_START = "Error executing job with overrides"


def plain_lines(text: str) -> list[str]:
    """Return the lines of a log without colours and without Ray's prefixes."""
    return [_PREFIX.sub("", _COLOURS.sub("", line)) for line in text.splitlines()]


def first_error(text: str) -> str:
    """Return the error that ended a run, as `Name: message (file.py:line)`; "" without one.

    An error that crosses Ray's actors is printed several times. The first error in a traceback is
    the cause; the others passed it on.
    """
    lines = plain_lines(text)
    starts = [i for i, line in enumerate(lines) if line.startswith(_START)]
    reported = next(_errors(lines[starts[-1] :]), "") if starts else ""
    return reported or next(_errors(lines), "")


def _errors(lines: Iterable[str]) -> Iterator[str]:
    place, inside = "", False
    for line in lines:
        if line.startswith("Traceback ") or "ray::" in line:
            inside = True
        if match := _PLACE.match(line):
            place = f" ({match[1].rpartition('/')[2]}:{match[2]})"
        elif inside and _ERROR.match(line) and not _REPORT.match(line):
            yield line.strip()[:MAX_LINE_CHARACTERS] + place


def last_lines(text: str, count: int = 3) -> str:
    """Return the last lines that are not empty, joined into one."""
    lines = [" ".join(line.split()) for line in plain_lines(text)]
    return " | ".join([line[:200] for line in lines if line][-count:])
