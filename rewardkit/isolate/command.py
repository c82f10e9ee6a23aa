"""Run a command that ends with this process, however this process ends, and with its deadline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rewardkit.isolate.child_process import ChildProcess


class CommandResult(NamedTuple):
    """How a command ended: its exit code and its output."""

    code: int
    stdout: str
    stderr: str


def run_command(
    words: Sequence[str], text: str, environment: Mapping[str, str], seconds: float
) -> CommandResult:
    """Run a command; end it and what it started at the deadline, or if this process ends.

    Args:
        words: the program and its arguments.
        text: its standard input.
        environment: environment variables to add to those of this process.
        seconds: the timeout.

    Raises:
        ChildTimeoutError: it takes longer.
        ChildCrashError: the process that runs it was ended.
    """
    process = ChildProcess("rewardkit.isolate.command_child")
    try:
        request = list(words), text, {**os.environ, **environment}
        return CommandResult(*process.exchange(request, seconds))
    finally:
        process.close()
