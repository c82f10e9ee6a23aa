"""Compare rewardkit's reader of console logs with the usual loop over lines. Prints a table.

`python benchmarks/logs.py [--megabytes 400]` writes logs of that size into a temporary folder: step
lines of 80 metrics among other output, with many lines between two steps (as if every worker printed),
few, and none. Both readers read the same file in the same run and must find the same numbers; each
runs in a separate process, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from pathlib import Path

from measure import best

from rewardkit.trainlog.read import read_run
from rewardkit.trainlog.training_run import TrainingRun

METRICS = 80

#: Lines between two steps.
NOISE = {"much between steps": 4000, "little": 40, "steps only": 0}

_STEP = re.compile(r"step:(\d+) - (.*)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def write_log(path: Path, size: int, between: int) -> int:
    """Write a log of about `size` bytes and return its number of steps."""
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
    """Read a log as most people do: strip colours, match one regular expression, split."""
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


def rewardkit(path: Path) -> TrainingRun:
    """Read a log with rewardkit."""
    return read_run(path)


def print_table(size: int, runs: int) -> None:
    print("| log | reader | MB/s of CPU time | wall s | peak MB |\n|---|---|---:|---:|---:|")
    for kind, between in NOISE.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.log"
            steps = write_log(path, size, between)
            compare(f"{kind}, {steps:,} steps", path, steps, runs)


def compare(kind: str, path: Path, steps: int, runs: int) -> None:
    """Time both readers on a file and print their rows."""
    megabytes = path.stat().st_size / 1e6
    rates = []
    for name in ("loop", "rewardkit"):
        cost = best([sys.executable, __file__, "--read", name, str(path), str(steps)], runs)
        rates.append(megabytes / cost.cpu)
        print(f"| {kind} | {name} | {rates[-1]:,.0f} | {cost.wall:.1f} | {cost.rss:,.0f} |")
    print(f"| {kind} | ratio | {rates[1] / rates[0]:.1f} | | |")


def check(folder: Path) -> None:
    """Exit if the two readers find different numbers."""
    path = folder / "small.log"
    write_log(path, 2_000_000, 40)
    table = {int(row.pop("step")): row for row in rewardkit(path).rows()}
    if json.dumps(loop(path)) != json.dumps(table):
        sys.exit("the two readers disagree")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=400, help="size of each log, in MB")
    parser.add_argument("--times", type=int, default=3, help="runs of each reader")
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        name, log, steps = options.read
        count = len(loop(Path(log))) if name == "loop" else len(rewardkit(Path(log)).steps)
        sys.exit(count != int(steps))
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))
    print_table(options.megabytes * 1_000_000, options.times)


if __name__ == "__main__":
    main()
