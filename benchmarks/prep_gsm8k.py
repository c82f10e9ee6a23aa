"""Compare `rewardkit prep gsm8k` with verl's script: CPU time and peak memory of whole processes.

    make test-verl        # builds .venv-verl-0.9.1, whose interpreter runs the peer
    .venv/bin/python benchmarks/prep_gsm8k.py --source ../shared/data/gsm8k

Every command reads the same files in the same run. Each runs `--times` times, and the run with the
least CPU time counts. Our run includes the gold self-check of every row; verl's script has none.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from measure import Cost, best, interpreter_exists

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--source", type=Path, required=True, help="folder of GSM8K with the files of the hub"
    )
    parser.add_argument(
        "--verl-python",
        default=HERE.parent / ".venv-verl-0.9.1/bin/python",
        help="interpreter that runs the peer",
    )
    parser.add_argument("--times", type=int, default=3, help="runs of each command")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        costs = {name: best(c, options.times) for name, c in commands(options, folder).items()}
    print_costs(costs)


def commands(options: argparse.Namespace, folder: str) -> dict[str, list[str]]:
    peer = [str(options.verl_python), str(HERE / "peers/verl_gsm8k.py"), str(options.source)]
    ours = [sys.executable, "-m", "rewardkit", "prep", "gsm8k", "--split", "all", "--overwrite"]
    lines = {"rewardkit prep": [*ours, "--source", str(options.source), "--out", f"{folder}/ours"]}
    if interpreter_exists(options.verl_python):
        lines["verl's script (imports verl)"] = [*peer, f"{folder}/verl", "--import-verl"]
        lines["the same without importing verl"] = [*peer, f"{folder}/bare"]
    return lines


def print_costs(costs: dict[str, Cost]) -> None:
    ours = costs["rewardkit prep"]
    print("| what | CPU s | wall s | peak MB | CPU, ours = 1 | memory, ours = 1 |")
    print("|---|---|---|---|---|---|")
    for name, cost in costs.items():
        ratios = f"{cost.cpu / ours.cpu:.1f} | {cost.rss / ours.rss:.1f}"
        print(f"| {name} | {cost.cpu:.2f} | {cost.wall:.2f} | {cost.rss:.0f} | {ratios} |")


if __name__ == "__main__":
    main()
