"""Compare `rewardkit prep dapo-math-17k` on all 1,791,700 rows with other ways to deduplicate.

    make test-verl        # builds .venv-verl-0.9.1, whose interpreter runs the peers
    .venv/bin/python benchmarks/prep_dapo.py --source dapo-math-17k.parquet --peers all

SOURCE is the published file, or its distinct rows, which are then repeated a hundred times. Every run
is a separate process with an empty cache; of `--times` runs the one with the least CPU time counts.
open-r1's and verl's scripts take minutes and run once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from measure import Cost, interpreter_exists, run

HERE = Path(__file__).parent
PEERS = HERE / "peers/dapo.py"

#: The jobs of peers/dapo.py and their titles; the others are compared with `bare`.
NAMES = {
    "bare": "bare dedup: pyarrow, prompts first",
    "pandas": "pandas `drop_duplicates`",
    "filter_seen": "`datasets.filter`, a set of prompts",
    "open_r1": "open-r1's script: `map`, pandas",
    "verl": "verl's script: `map`, no dedup",
}
SLOW = ("open_r1", "verl")

#: A file with fewer rows than this has only the distinct ones.
MIN_PUBLISHED_ROWS = 1_000_000

#: Targets of prep: CPU time relative to bare dedup, and peak memory in MB.
MAX_RATIO = 1.5
MAX_MB = 500


@dataclass(frozen=True)
class Result:
    """The cost of one job, and the number of rows it kept."""

    name: str
    cost: Cost
    rows: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--source", type=Path, required=True, help="the published parquet, or its distinct rows"
    )
    parser.add_argument(
        "--verl-python",
        default=HERE.parent / ".venv-verl-0.9.1/bin/python",
        help="interpreter that runs the peers",
    )
    parser.add_argument(
        "--peers", nargs="*", choices=[*NAMES, "all"], default=["pandas"], help="peers to measure"
    )
    parser.add_argument("--times", type=int, default=3, help="runs of each job")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        source = published_file(options.source, Path(folder))
        ours = [sys.executable, "-m", "rewardkit", "prep", "dapo-math-17k", "--source", str(source)]
        prep = best_run("`rewardkit prep`", [*ours, "--out"], options.times)
        bare = best_run(NAMES["bare"], job(sys.executable, "bare", source), options.times)
        peers = [
            best_run(
                title, job(options.verl_python, name, source), 1 if name in SLOW else options.times
            )
            for name, title in selected_peers(options).items()
        ]
    print_results([prep, bare, *peers], bare.cost)
    print_targets(prep.cost, bare.cost)


def selected_peers(options: argparse.Namespace) -> dict[str, str]:
    """Return the peers of `--peers` with their titles, or none if their interpreter is missing."""
    peers = {
        name: title
        for name, title in NAMES.items()
        if name != "bare" and not {name, "all"}.isdisjoint(options.peers)
    }
    return peers if peers and interpreter_exists(options.verl_python) else {}


def published_file(source: Path, folder: Path) -> Path:
    """Return the file with all the copies; build it if `source` has only the distinct rows."""
    if pq.read_metadata(source).num_rows >= MIN_PUBLISHED_ROWS:
        return source
    out = folder / "dapo-math-17k.parquet"
    run([*job(sys.executable, "build", source), str(out)])
    return out


def job(python: object, name: str, source: Path) -> list[str]:
    return [str(python), str(PEERS), name, str(source)]


def best_run(name: str, command: list[str], times: int) -> Result:
    """Return the run with the least CPU time; each run has a new folder for output and cache."""
    results = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.parquet"
            cost = run([*command, str(out)])
            results.append(Result(name, cost, pq.read_metadata(out).num_rows))
    print(f"{name}: {min(r.cost.cpu for r in results):.2f} s", file=sys.stderr)
    return min(results, key=lambda result: result.cost.cpu)


def print_results(results: list[Result], bare: Cost) -> None:
    print("| what | CPU s | wall s | peak MB | rows out | CPU, bare = 1 |")
    print("|---|---|---|---|---|---|")
    for name, cost, rows in ((r.name, r.cost, r.rows) for r in results):
        figures = f"{cost.cpu:.2f} | {cost.wall:.2f} | {cost.rss:,.0f} | {rows:,}"
        print(f"| {name} | {figures} | {cost.cpu / bare.cpu:.1f} |")


def print_targets(ours: Cost, bare: Cost) -> None:
    ratio = ours.cpu / bare.cpu
    print(f"\nCPU at most {MAX_RATIO} times bare dedup: {ratio:.2f}, {_met(ratio <= MAX_RATIO)}")
    print(f"peak at most {MAX_MB} MB: {ours.rss:.0f}, {_met(ours.rss <= MAX_MB)}")


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"


if __name__ == "__main__":
    main()
