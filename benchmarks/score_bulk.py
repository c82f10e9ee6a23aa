"""Compare `rewardkit score` on 100,000 real responses with other ways to score. Prints tables.

    make test-verl        # builds .venv-verl-0.9.1, whose interpreter runs verl's way
    .venv/bin/python benchmarks/score_bulk.py --cases ../shared/cases

The dump repeats the responses of CASES, each with a sentence of its own and every third with another
digit near its end. Every way runs in a separate process. Ours and the loop are timed from start to
exit, including reading and writing files. For the others only the scoring counts, without start,
imports and files, on a sample spread over the dump; per row the whole dump costs them no less. Of
`--times` runs the shortest counts. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measure import interpreter_exists
from peers.bulk import CORES, tree

HERE = Path(__file__).parent
NAMES = {
    "ours": f"`rewardkit score --scorer math --jobs {CORES}`",
    "loop": "`scorers.math.score`, a plain loop in one process",
    "user": f"`rewardkit score --jobs {CORES}`, a trivial scorer of a user's",
    "user-loop": "that scorer, a plain loop in one process",
    "main_eval": "verl's `main_eval`: `math_dapo`, a Ray task a row",
    "bare": "the same without its configuration and file",
    "verify-1": f"math-verify, a pool of {CORES}, chunksize 1",
    "verify-64": f"math-verify, a pool of {CORES}, chunksize 64",
}
MIN_RATIO = {"main_eval": 20, "bare": 20, "verify-64": 25}

#: Maximum wall time of ours relative to a plain loop: with `math`, and with a user's scorer, which
#: runs in separate processes.
MAX_SHARE = {"loop": ("ours", 0.65), "user-loop": ("user", 2.0)}
MAX_MB = 400

ON_RAY = ("main_eval", "bare")
#: The slow ways score one row in this many.
EVERY = {
    "loop": 1,
    "user": 1,
    "user-loop": 1,
    "main_eval": 33,
    "bare": 33,
    "verify-1": 25,
    "verify-64": 25,
}


@dataclass
class Run:
    """A run: rows scored, wall and CPU seconds, peak MB of the process and of its largest child."""

    name: str
    rows: int
    wall: float
    cpu: float
    main: float
    child: float


def write_dump(cases: Path, dump: Path, rows: int) -> None:
    """Write rows in the format of verl's dumps, in random order."""
    files = [cases / "real_zeroeval_mathl5.jsonl", *sorted(cases.glob("real_gsm8k_*.jsonl"))]
    real = [row for f in files for row in map(json.loads, f.open()) if row["solution_str"]]
    rng = random.Random(0)
    order = rng.sample([n % len(real) for n in range(rows)], rows)
    with dump.open("w") as out:
        for number, case in enumerate(real[n] for n in order):
            text = f"Attempt {number} at this.\n{case['solution_str']}"
            digits = [m.start() for m in re.finditer(r"\d", text[-60:])]
            if digits and rng.random() < 1 / 3:
                at = max(len(text) - 60, 0) + rng.choice(digits)
                text = f"{text[:at]}{rng.randrange(10)}{text[at + 1 :]}"
            row = {"input": case["question"], "output": text, "gts": str(case["ground_truth"])}
            out.write(json.dumps({**row, "score": 0.0, "step": number // 4096}) + "\n")


def shortest(name: str, rows: int, command: list[str], folder: Path, times: int) -> Run:
    return min((run(name, rows, command, folder) for _ in range(times)), key=lambda r: r.wall)


def run(name: str, rows: int, command: list[str], folder: Path) -> Run:
    """Run a way and read its peak memory ten times a second.

    The peers print their own times as the last line of their output.
    """
    peaks: dict[int, float] = {}
    with (folder / "output").open("w+") as output, (folder / "errors").open("w+") as errors:
        started = time.perf_counter()
        pid = subprocess.Popen(command, stdout=output, stderr=errors, cwd=folder).pid
        while (status := os.wait4(pid, os.WNOHANG))[0] == 0:
            for each in tree(pid):
                try:
                    text = Path(f"/proc/{each}/status").read_text()
                except OSError:
                    continue
                if peak := re.search(r"VmHWM:\s+(\d+)", text):
                    peaks[each] = int(peak[1]) / 1024
            time.sleep(0.1)
        wall = time.perf_counter() - started
        output.seek(0), errors.seek(0)
        if status[1]:
            sys.exit(f"{name} failed:\n{errors.read()[-2000:]}")
        last = output.read().rpartition("\nTIMES ")[2]
    times = {"wall": wall, "cpu": status[2].ru_utime + status[2].ru_stime}
    if name not in ("ours", "loop", "user", "user-loop"):
        times = json.loads(last)
        rows = int(times.pop("rows"))
    print(f"{name}: {times}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    children = [peak for each, peak in peaks.items() if each != pid]
    return Run(name, rows, times["wall"], times["cpu"], peaks[pid], max(children, default=0.0))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument(
        "--verl-python",
        default=HERE.parent / ".venv-verl-0.9.1/bin/python",
        help="interpreter with verl",
    )
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the dump")
    parser.add_argument("--times", type=int, default=3, help="runs of each way")
    parser.add_argument(
        "--ways", nargs="+", choices=EVERY, default=[*EVERY], help="ways to compare ours with"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, n = Path(name), options.rows
        dump, scored, looped = (folder / f"{x}.jsonl" for x in ("dump", "scored", "looped"))
        write_dump(options.cases, dump, n)
        ours = [sys.executable, "-m", "rewardkit", "score", str(dump), "--scorer", "math"]
        ours += ["--jobs", str(CORES), "--out", str(scored), "--overwrite"]
        runs = [shortest("ours", n, ours, folder, options.times)]
        ways = options.ways
        trivial = f"{HERE / 'peers/trivial_scorer.py'}:score"
        if not set(ways).isdisjoint(ON_RAY) and not interpreter_exists(options.verl_python):
            ways = [kind for kind in ways if kind not in ON_RAY]
        for kind in ways:
            outs = {"loop": looped, "user-loop": folder / "user-looped.jsonl"}
            python = options.verl_python if kind in ON_RAY else sys.executable
            command = [str(python), str(HERE / "peers/bulk.py"), kind, str(dump)]
            command.append(str(outs.get(kind, EVERY[kind])))
            if kind == "user":
                swaps = {"math": trivial, str(scored): str(folder / "user.jsonl")}
                command = [swaps.get(part, part) for part in ours]
            runs.append(shortest(kind, n, command, folder, options.times))
        differences = count_differences(scored, looped) if "loop" in ways else None
        print_results(runs, dump.stat().st_size / 1e6, differences)


def count_differences(scored: Path, looped: Path) -> tuple[int, int]:
    """Return the number of rows, and of those whose verdicts differ; both files have all rows."""
    with scored.open() as ours, looped.open() as theirs:
        pairs = zip(map(json.loads, ours), map(json.loads, theirs), strict=True)
        same = [all(a[key] == value for key, value in b.items()) for a, b in pairs]
    return len(same), same.count(False)


def print_results(runs: list[Run], size: float, differ: tuple[int, int] | None) -> None:
    ours = runs[0]
    print(f"{ours.rows:,} rows, {size:,.0f} MB\n")
    print(
        "| what | rows | wall s | CPU s | rows/s | ours is | by CPU | main MB | largest child MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = {}
    walls = {r.name: r.wall for r in runs}
    for r in runs:
        ratios[r.name] = r.wall / r.rows * ours.rows / ours.wall
        by_cpu = r.cpu / r.rows * ours.rows / ours.cpu
        figures = f"{r.rows:,} | {r.wall:.1f} | {r.cpu:.1f} | {r.rows / r.wall:,.0f}"
        times = f"{ratios[r.name]:.1f} x | {by_cpu:.1f} x | {r.main:.0f} | {r.child:.0f}"
        print(f"| {NAMES[r.name]} | {figures} | {times} |")
    print("\n| target | measured | met |\n|---|---|---|")
    for name, least in MIN_RATIO.items():
        if name not in ratios:
            continue
        met = _met(ratios[name] >= least)
        print(f"| at least {least} times {NAMES[name]} | {ratios[name]:.1f} | {met} |")
    for name, (way, most) in MAX_SHARE.items():
        if {name, way} <= walls.keys():
            share = walls[way] / walls[name]
            text = f"at most {most} of the wall time of {NAMES[name]}"
            print(f"| {NAMES[way]}: {text} | {share:.2f} | {_met(share <= most)} |")
    peak = max(ours.main, ours.child)
    print(f"| peak below {MAX_MB} MB, each process | {peak:.0f} MB | {_met(peak < MAX_MB)} |")
    if differ:
        count = f"{differ[1]:,} of {differ[0]:,} differ"
        print(f"| verdicts identical to one at a time | {count} | {_met(not differ[1])} |")


def _met(yes: bool) -> str:
    return "yes" if yes else "NO"


if __name__ == "__main__":
    main()
