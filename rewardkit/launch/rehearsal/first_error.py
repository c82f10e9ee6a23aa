"""The one line of verl's log that says what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: Characters of the line.
SHOWN = 400

_DRESS = re.compile(r"\x1b\[[0-9;]*m")
_PREFIX = re.compile(r"^\([\w.:+]+ pid=\d+(?:, ip=[\d.]+)?\) ")

#: The last line of a traceback: an exception's name, perhaps with modules, perhaps with a message.
_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|NotFound|Failure)\b(?::|$)"
)
_PLACE = re.compile(r'^\s+File "(.+?)", line (\d+)')

#: What Ray and Hydra say of an error that happened elsewhere.
_OF_OTHERS = re.compile(r"^ray\.exceptions\.|^Error executing job")

#: Where Hydra begins to tell of the error that ended the run.
_START = "Error executing job with overrides"


def undressed(text: str) -> list[str]:
    """The lines without colours and without Ray's prefixes."""
    return [_PREFIX.sub("", _DRESS.sub("", line)) for line in text.splitlines()]


def first_error(text: str) -> str:
    """The error that ended a run, as `Name: message (file.py:line)`; "" if none is told.

    An error that crosses Ray's actors and is raised again is printed several times. The first in
    a traceback is the cause; what follows are those who passed it on.
    """
    lines = undressed(text)
    starts = [i for i, line in enumerate(lines) if line.startswith(_START)]
    told = next(_errors(lines[starts[-1] :]), "") if starts else ""
    return told or next(_errors(lines), "")


def _errors(lines: Iterable[str]) -> Iterator[str]:
    place, inside = "", False
    for line in lines:
        if line.startswith("Traceback ") or "ray::" in line:
            inside = True
        if found := _PLACE.match(line):
            place = f" ({found[1].rpartition('/')[2]}:{found[2]})"
        elif inside and _ERROR.match(line) and not _OF_OTHERS.match(line):
            yield line.strip()[:SHOWN] + place


def last_lines(text: str, count: int = 3) -> str:
    """The last lines that say something, in one."""
    lines = [" ".join(line.split()) for line in undressed(text)]
    return " | ".join([line[:200] for line in lines if line][-count:])
