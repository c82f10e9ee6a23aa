"""Where a page comes from: the version, the date and the command, which its footer names."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rewardkit.pages.text import brief
from rewardkit.redact import process_redactor
from rewardkit.versions import VERSION

#: Characters of a command that a page shows.
MAX_COMMAND_CHARACTERS = 400


@dataclass(frozen=True)
class Provenance:
    """The origin of a page.

    Attributes:
        version: version of rewardkit.
        date: date and time in UTC: `2026-03-01 12:00 UTC`.
        command: the command line, without secrets; "" for a page that a library call wrote.
    """

    version: str
    date: str
    command: str


def provenance() -> Provenance:
    """Return the origin of a page that this process writes now.

    The time is that of `SOURCE_DATE_EPOCH` if it is set (reproducible-builds.org), so that the same
    command writes the same bytes.
    """
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(_epoch_seconds()))
    return Provenance(VERSION, date, _command())


def _epoch_seconds() -> float:
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    is_valid = text.isascii() and text.isdecimal() and len(text) <= 11  # up to the year 5138
    return float(text) if is_valid else time.time()


def _command() -> str:
    """Return the command line if it is ours, with secrets hidden."""
    program = Path(sys.argv[0] if sys.argv else "")
    is_ours = program.stem == "rewardkit" or program.parts[-2:] == ("rewardkit", "__main__.py")
    if not is_ours:
        return ""
    redactor = process_redactor()
    line = shlex.join(["rewardkit", *(redactor.text(argument) for argument in sys.argv[1:])])
    return brief(redactor.text(line), MAX_COMMAND_CHARACTERS)
