"""Measure `rewardkit prep` on a user's jsonl of growing size: rows per second, and memory.

    .venv/bin/python benchmarks/prep_rows.py                              # 100,000 and 1,000,000
    .venv/bin/python benchmarks/prep_rows.py --rows 1000000 10000000      # minutes, 1.5 GB of disk
    .venv/bin/python benchmarks/prep_rows.py --sets deepmath nq           # rows of datasets

With `--sets` it measures the CPU time of a row of a dataset, relative to the same question and gold
in a user's file; the rows are those of the packaged samples, repeated with numbers before them.

The rows are distinct arithmetic questions that this script writes. Peaks are the `VmHWM` of each
process, read every 50 ms, because `getrusage` counts the memory of the parent at the start of a child.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import rewardkit

#: Rows of a dataset, and measurements of which the fastest counts.
SET_ROWS = 6_000
RUNS = 4

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
    parser.add_argument("--sets", nargs="+", default=[], help="datasets to measure instead")
    options = parser.parse_args()

    if options.sets:
        print_sets(options.sets)
        return
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


def print_sets(names: list[str]) -> None:
    """Print the CPU time per row of each dataset, and of its problems in a user's file."""
    print("| dataset | rows | µs a row | in a user's file | ratio |")
    print("|---|---|---|---|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            rows, own, set_seconds, own_seconds = 0, 0, [], []
            for _ in range(RUNS):  # in turn, so that both see the same machine
                rows, seconds = prepare_set(name, Path(folder))
                set_seconds.append(seconds)
                own, seconds = prepare_own(Path(folder))
                own_seconds.append(seconds)
            if rows != own:
                sys.exit(f"{name}: {rows} rows, but {own} in a user's file")
            per_row, per_own = (1e6 * min(s) / rows for s in (set_seconds, own_seconds))
            ratio = per_row / per_own
            print(
                f"| `{name}` | {rows:,} | {per_row:.0f} | {per_own:.0f} | {ratio:.2f} |", flush=True
            )


def prepare_set(name: str, folder: Path) -> tuple[int, float]:
    """Prepare the repeated sample of a dataset; return the rows that were written, and CPU seconds."""
    from rewardkit.preprocess.load import card_of, load_dataset
    from rewardkit.preprocess.source import RawRows, find_source

    card = card_of(load_dataset(name))
    split, source = next(iter(card.splits)), folder / "set.jsonl"
    if not source.exists():
        files = find_source(card, split, path=None, hub="huggingface", sample=True).files
        raws = [raw for _, raw in RawRows(files, [*map(tuple, card.columns)])]
        where = card.maps[0]["question"][-1].column.split(".")
        with source.open("w") as file:
            for i in range(SET_ROWS // len(raws)):
                file.writelines(json.dumps(numbered(raw, where, i)) + "\n" for raw in raws)
    return timed(name, folder / "set.parquet", split=split, source=source, template="none")


def prepare_own(folder: Path) -> tuple[int, float]:
    """Prepare the same questions and golds as a user's file."""
    from rewardkit.preprocess.card_dataset import dataset_from_file
    from rewardkit.row import read_rows

    source = folder / "own.jsonl"
    if not source.exists():
        with source.open("w") as file:
            for row in read_rows(folder / "set.parquet"):
                own = {"question": row["extra_info"]["question"]}
                own["answer"] = row["reward_model"]["ground_truth"]
                file.write(json.dumps(own) + "\n")
    scorer = json.loads(pq.read_schema(folder / "set.parquet").metadata[b"rewardkit"])["scorer"]
    return timed(
        dataset_from_file(source),
        folder / "own.parquet",
        source=source,
        scorer=scorer,
        template="none",
    )


def timed(dataset: Any, out: Path, **options: Any) -> tuple[int, float]:
    started = time.process_time()
    report = rewardkit.prep(dataset, out, overwrite=True, **options)
    return report.splits[0].written, time.process_time() - started


def numbered(value: Any, path: list[str], number: int) -> Any:
    """Return a copy of a raw row whose question begins with a number."""
    if not path:
        return f"({number}) {value}"
    copy = list(value) if isinstance(value, list) else dict(value)
    key: Any = int(path[0]) if isinstance(value, list) else path[0]
    copy[key] = numbered(value[key], path[1:], number)
    return copy


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
