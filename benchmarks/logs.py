"""Reading a console log: rewardkit against the loop over lines that people write. Prints a table.

`python benchmarks/logs.py [megabytes] [runs]` writes logs of that size (400 if not said) into a
temporary folder: step lines of 80 metrics among what else a run prints, with much of it between
two steps (as where every worker talks), little, and none. Both readers read the same file in the
same run and must find the same numbers; each is timed in a process of its own, so that its peak
memory is its own too.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from pathlib import Path

from measure import best

from rewardkit.trainlog.export import rows
from rewardkit.trainlog.model import Run
from rewardkit.trainlog.read import read_run

METRICS = 80

#: Lines between two steps.
NOISE = {"much between steps": 4000, "little": 40, "steps only": 0}

RUNS = 3

_STEP = re.compile(r"step:(\d+) - (.*)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def write_log(path: Path, size: int, between: int) -> int:
    """Write a log of about `size` bytes; how many steps it has."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz      0123456789:.-/()[]"
    noise = [
        "\x1b[36m(TaskRunner pid=4242)\x1b[0m "
        + "".join(rng.choices(letters, k=rng.randint(20, 200)))
        for _ in range(3000)
    ]
    step = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < size:
            step += 1
            file.write("\n".join(rng.choices(noise, k=between)))
            pairs = " - ".join(f"group_{i}/metric/mean:{rng.random()}" for i in range(METRICS))
            file.write(f"\n\x1b[36m(TaskRunner pid=4242)\x1b[0m step:{step} - {pairs}\n")
    return step


def loop(path: Path) -> dict[int, dict[str, float]]:
    """The usual way: every line, colours off, one regular expression, split."""
    table: dict[int, dict[str, float]] = {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            match = _STEP.search(_ANSI.sub("", line))
            if match:
                row = table.setdefault(int(match[1]), {})
                for pair in match[2].split(" - "):
                    key, _, value = pair.rpartition(":")
                    row[key] = float(value)
    return table


def rewardkit(path: Path) -> Run:
    """The same with rewardkit."""
    return read_run(path)


def main(size: int, runs: int) -> None:
    print("| log | reader | MB/s of CPU time | wall s | peak MB |\n|---|---|---:|---:|---:|")
    for kind, between in NOISE.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.log"
            steps = write_log(path, size, between)
            compare(f"{kind}, {steps:,} steps", path, steps, runs)


def compare(kind: str, path: Path, steps: int, runs: int) -> None:
    """Time both readers on a file."""
    megabytes = path.stat().st_size / 1e6
    rates = []
    for name in ("loop", "rewardkit"):
        cost = best([sys.executable, __file__, "--read", name, str(path), str(steps)], runs)
        rates.append(megabytes / cost.cpu)
        print(f"| {kind} | {name} | {rates[-1]:,.0f} | {cost.wall:.1f} | {cost.rss:,.0f} |")
    print(f"| {kind} | ratio | {rates[1] / rates[0]:.1f} | | |")


def check(folder: Path) -> None:
    """Both find the same, or the figures mean nothing."""
    path = folder / "small.log"
    write_log(path, 2_000_000, 40)
    table = {int(row.pop("step")): row for row in rows(rewardkit(path))}
    if json.dumps(loop(path)) != json.dumps(table):
        sys.exit("the two readers disagree")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        log = Path(sys.argv[3])
        found = len(loop(log)) if sys.argv[2] == "loop" else len(rewardkit(log).steps)
        sys.exit(found != int(sys.argv[4]))
    with tempfile.TemporaryDirectory() as temporary:
        check(Path(temporary))
    main(int((sys.argv[1:] or ["400"])[0]) * 1_000_000, int((sys.argv[2:] or [str(RUNS)])[0]))
