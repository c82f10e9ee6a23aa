"""Measure `rewardkit prep` on a user's jsonl of growing size: rows per second, and memory.

    .venv/bin/python benchmarks/prep_rows.py                              # 100,000 and 1,000,000
    .venv/bin/python benchmarks/prep_rows.py --rows 1000000 10000000      # minutes, 1.5 GB of disk

The rows are distinct arithmetic questions that this script writes. Peaks are the `VmHWM` of each
process, read every 50 ms, because `getrusage` counts the memory of the parent at the start of a child.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: Memory is flat if more rows take at most this ratio, from a size at which the report has stopped
#: remembering questions (`MAX_QUESTIONS`, 200,000).
MAX_FLAT_RATIO = 1.1
FLAT_FROM_ROWS = 1_000_000

_OPS: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    ("adds {b} to", lambda a, b: a + b),
    ("takes {b} from", lambda a, b: a - b),
    ("multiplies by {b}", lambda a, b: a * b),
)


@dataclass(frozen=True)
class Result:
    """A run of `prep`: seconds, and the peak MB of the process and of its largest child."""

    rows: int
    jobs: int
    cpu: float
    wall: float
    peak: float
    child: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="sizes to measure"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        nargs="+",
        default=[1, len(os.sched_getaffinity(0))],
        help="numbers of processes",
    )
    options = parser.parse_args()

    results = []
    print("| rows | jobs | CPU s | wall s | rows/s | peak MB | largest child MB |")
    print("|---|---|---|---|---|---|---|")
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "own.jsonl"
            with source.open("w") as file:
                file.writelines(lines(rows))
            for jobs in options.jobs:
                results.append(prep(source, rows, jobs))
                print_result(results[-1])
    for jobs in options.jobs:
        print_flat([r for r in results if r.jobs == jobs and r.rows >= FLAT_FROM_ROWS])


def lines(rows: int) -> Iterator[str]:
    """Yield distinct questions with their answers, as lines of a jsonl."""
    for i in range(rows):
        a, b = i + 17, i * 7919 % 9973 + 2
        words, compute = _OPS[i % len(_OPS)]
        story = f"Ana has the number {a} and {words.format(b=b)} it. What does she get?"
        yield f'{{"question": "{story}", "answer": "{compute(a, b)}"}}\n'


def prep(source: Path, rows: int, jobs: int) -> Result:
    """Run `prep`, watch the memory of its processes, and check that no row is missing."""
    out = source.with_name(f"{jobs}.parquet")
    command = [sys.executable, "-m", "rewardkit", "prep", str(source), "--out", str(out)]
    before, started = _cpu_of_children(), time.perf_counter()
    process = subprocess.Popen(
        [*command, "--jobs", str(jobs), "--json"], stdout=subprocess.PIPE, text=True
    )
    peak = child = 0.0
    while process.poll() is None:
        peak = max(peak, _peak(process.pid))
        child = max([child, *(_peak(pid) for pid in _children(process.pid))])
        time.sleep(0.05)
    wall, cpu = time.perf_counter() - started, _cpu_of_children() - before
    report = process.stdout.read() if process.stdout else ""
    if process.returncode != 0 or f'"written": {rows}' not in report:
        sys.exit(f"{' '.join(command)}: exit {process.returncode}\n{report[-2000:]}")
    out.unlink()
    return Result(rows, jobs, cpu, wall, peak, child)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _children(pid: int) -> list[int]:
    """Return the children that have started a program; before that they show their parent's memory."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        pids = [int(child) for t in tasks for child in (t / "children").read_text().split()]
        return [child for child in pids if _arguments(child) != _arguments(pid)]
    except OSError:  # the process ended
        return []


def _arguments(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _peak(pid: int) -> float:
    """Return the peak memory of a process in MB; 0 if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(s.split()[1]) / 1024 for s in status.splitlines() if "VmHWM" in s), 0.0)


def print_result(result: Result) -> None:
    figures = f"{result.cpu:.1f} | {result.wall:.1f} | {result.rows / result.wall:,.0f}"
    peaks = f"{result.peak:.0f} | {result.child:.0f}" if result.child else f"{result.peak:.0f} |"
    print(f"| {result.rows:,} | {result.jobs} | {figures} | {peaks} |", flush=True)


def print_flat(results: list[Result]) -> None:
    """Print whether the largest run took more memory than the second largest."""
    if len(results) > 1:
        before, last = sorted(results, key=lambda result: result.rows)[-2:]
        ratio = max(last.peak / before.peak, last.child / (before.child or 1))
        verdict = "flat" if ratio <= MAX_FLAT_RATIO else "NOT FLAT"
        print(
            f"\njobs {last.jobs}: {last.rows:,} rows take {ratio:.2f} times the memory of "
            f"{before.rows:,}: {verdict}"
        )


if __name__ == "__main__":
    main()
