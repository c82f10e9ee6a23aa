"""`rewardkit prep dapo-math-17k` on all 1,791,700 rows, beside other ways to deduplicate them.

    make test-verl        # builds .venv-verl-0.9.1, whose interpreter runs the peers
    .venv/bin/python benchmarks/prep_dapo.py --source dapo-math-17k.parquet --peers all

SOURCE is the file as published, or its distinct rows, which are then repeated a hundred times
first. Every run is a process of its own with an empty cache; of `--times` runs the one with the
least CPU time counts. open-r1's and verl's ways take minutes and run once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from measure import Cost, run, there

HERE = Path(__file__).parent
PEERS = HERE / "peers/dapo.py"

#: The jobs of peers/dapo.py; `bare` is what all are measured against.
NAMES = {
    "bare": "bare dedup: pyarrow, prompts first",
    "pandas": "pandas `drop_duplicates`",
    "filter_seen": "`datasets.filter`, a set of prompts",
    "open_r1": "open-r1's script: `map`, pandas",
    "verl": "verl's script: `map`, no dedup",
}
SLOW = ("open_r1", "verl")

#: Fewer rows than this are the distinct ones.
PUBLISHED = 1_000_000

#: What prep may cost: CPU time of bare dedup, and MB.
MAX_RATIO = 1.5
MAX_MB = 500


@dataclass(frozen=True)
class Result:
    """What one way cost, and how many rows it left."""

    name: str
    cost: Cost
    rows: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--verl-python", default=HERE.parent / ".venv-verl-0.9.1/bin/python")
    parser.add_argument("--peers", nargs="*", choices=[*NAMES, "all"], default=["pandas"])
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        source = published(options.source, Path(folder))
        ours = [sys.executable, "-m", "rewardkit", "prep", "dapo-math-17k", "--source", str(source)]
        prep = least("`rewardkit prep`", [*ours, "--out"], options.times)
        bare = least(NAMES["bare"], job(sys.executable, "bare", source), options.times)
        peers = [
            least(
                title, job(options.verl_python, name, source), 1 if name in SLOW else options.times
            )
            for name, title in wanted(options).items()
        ]
    print_results([prep, bare, *peers], bare.cost)
    print_targets(prep.cost, bare.cost)


def wanted(options: argparse.Namespace) -> dict[str, str]:
    """The peers asked for, if there is an interpreter for them."""
    asked = {
        name: title
        for name, title in NAMES.items()
        if name != "bare" and not {name, "all"}.isdisjoint(options.peers)
    }
    return asked if asked and there(options.verl_python) else {}


def published(source: Path, folder: Path) -> Path:
    """The file with all the copies, built if it was not given."""
    if pq.read_metadata(source).num_rows >= PUBLISHED:
        return source
    out = folder / "dapo-math-17k.parquet"
    run([*job(sys.executable, "build", source), str(out)])
    return out


def job(python: object, name: str, source: Path) -> list[str]:
    return [str(python), str(PEERS), name, str(source)]


def least(name: str, command: list[str], times: int) -> Result:
    """The run with the least CPU time; every one has a fresh folder for its output and cache."""
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
