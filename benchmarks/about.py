"""What a result must be told with: the machine and its load, the date, revisions and versions."""

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

#: Run by the interpreter whose packages are asked for.
ASK = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def machine(started: datetime) -> str:
    """Two lines: when and what of ours, and where, with a warning if others are at work there."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*: (.+)", info)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    quiet = "" if load < cores / 4 else ": NOT QUIET, others are at work on it"
    return (
        f"- {started:%Y-%m-%d %H:%M} UTC, rewardkit {version('rewardkit')}, revision {revision()}, "
        f"Python {platform.python_version()}\n"
        f"- {model[1] if model else platform.machine()}, {cores} cores, {memory:.0f} GiB, "
        f"{platform.system()} {platform.release()}, load {load:.1f} at the start{quiet}"
    )


def revision() -> str:
    """Git's name of the commit, `-dirty` if the tree has changes."""
    command = ["git", "describe", "--always", "--dirty", "--match", "v*"]
    try:
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.strip()


def versions(packages: str, pythons: set[str]) -> str:
    """Name and version of each package that one of the interpreters has."""
    found: dict[str, set[str]] = {}
    for python in sorted(pythons):
        if packages and Path(python).exists():
            command = [python, "-c", ASK, *packages.split()]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            for name, number in json.loads(done.stdout).items():
                found.setdefault(name, set()).add(number)
    return ", ".join(f"{name} {' and '.join(sorted(numbers))}" for name, numbers in found.items())
