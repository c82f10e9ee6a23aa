"""Run a command and measure its CPU time, wall time and peak memory, children included."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """CPU and wall seconds and peak resident memory of one process.

    Attributes:
        cpu: CPU seconds.
        wall: Wall seconds.
        rss: Peak resident memory, in MB.
    """

    cpu: float
    wall: float
    rss: float


def run(command: list[str]) -> Cost:
    """Run a command once and return its cost; a failing command ends the benchmark."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{error.decode()[-2000:]}")
    wall = time.perf_counter() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def interpreter_exists(python: str | Path) -> bool:
    """Return whether a peer's interpreter exists; print a line if it does not."""
    if Path(python).exists():
        return True
    print(f"- {python} does not exist: benchmarks that need it are left out\n")
    return False


def best(command: list[str], times: int) -> Cost:
    """Return the run with the least CPU time, which the machine disturbed least."""
    return min((run(command) for _ in range(times)), key=lambda cost: cost.cpu)
