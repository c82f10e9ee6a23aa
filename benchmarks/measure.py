"""Run a command and take its CPU time, wall time and peak memory, children included."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """CPU and wall seconds and peak resident memory (MB) of one process."""

    cpu: float
    wall: float
    rss: float


def run(command: list[str]) -> Cost:
    """The cost of one run; a run that fails ends the benchmark."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{error.decode()[-2000:]}")
    wall = time.perf_counter() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def there(python: str | Path) -> bool:
    """Whether a peer's interpreter exists; the table says that the peer is left out if not."""
    if Path(python).exists():
        return True
    print(f"- no interpreter {python}: what needs it is left out\n")
    return False


def best(command: list[str], times: int) -> Cost:
    """The run with the least CPU time: the one the machine disturbed least."""
    return min((run(command) for _ in range(times)), key=lambda cost: cost.cpu)
