"""Describe the circumstances of a result: machine, load, date, revision and versions."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Runs in the interpreter that has the packages.
PRINT_VERSIONS = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(versions))
"""


def machine(started: datetime) -> str:
    """Return two lines: date and revision, then the machine, with a warning if it is busy."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.+)", info)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    quiet = "" if load < cores / 4 else ": NOT QUIET, the machine is busy"
    return (
        f"- {started:%Y-%m-%d %H:%M} UTC, rewardkit {version('rewardkit')}, revision {revision()}, "
        f"Python {platform.python_version()}\n"
        f"- {model[1] if model else platform.machine()}, {cores} cores, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, load {load:.1f} at the start{quiet}"
    )


def revision() -> str:
    """Return git's name of the commit, with `-dirty` if the tree has changes."""
    command = ["git", "describe", "--always", "--dirty", "--match", "v*"]
    try:
        output = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return output.strip()


def versions(packages: str, pythons: set[str]) -> str:
    """Return name and version of each package that one of the interpreters has."""
    numbers_by_name: dict[str, set[str]] = {}
    for python in sorted(pythons):
        if packages and Path(python).exists():
            command = [python, "-c", PRINT_VERSIONS, *packages.split()]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for name, number in json.loads(done.stdout).items():
                numbers_by_name.setdefault(name, set()).add(number)
    return ", ".join(
        f"{name} {' and '.join(sorted(numbers))}" for name, numbers in numbers_by_name.items()
    )
