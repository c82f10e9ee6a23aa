"""Measure the search for evaluation items at 1, 2 and 4 times DAPO, beside a simpler rule.

    python benchmarks/overlap.py --shared ../shared

Costs are those of whole processes. 1x is DAPO-Math-17k's distinct prompts, compared with MATH-500,
AIME 2024 and 2025 and MATH's test split; the rows are repeated. The rule "any common 8-gram"
(open-r1's) shows what it drops.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measure import Cost, run

#: A row of the table: its title, its worker, and the files of the worker at a scale.
Way = tuple[str, str, tuple[str, ...]]

OURS: tuple[Way, ...] = (
    ("only reading", "read", ("{}",)),
    ("overlap", "overlap", ("{}", "evals")),
)
#: These show what each rule drops; they run at the first scale only.
WITHOUT_MATH: tuple[Way, ...] = (
    ("overlap, no MATH test", "overlap", ("{}", "few")),
    ("any common 8-gram, no MATH test", "any-hit", ("{}", "few")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, help="folder of the real data")
    parser.add_argument(
        "--scales",
        type=int,
        nargs="+",
        default=[1, 2, 4],
        help="how many times the rows are repeated",
    )
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        what, *files = options.worker
        print(WORKERS[what](*map(Path, files)))
    elif options.shared:
        with tempfile.TemporaryDirectory() as folder:
            print_table(options.shared / "data", Path(folder), options.scales)
    else:
        parser.error("--shared is needed")


def print_table(data: Path, folder: Path, scales: list[int]) -> None:
    # Files are prepared in another process: the peak of a child is never below that of its parent.
    arguments = ["--worker", "prepare", str(data), str(folder), *map(str, scales)]
    run([sys.executable, __file__, *arguments])
    ways = [(way, scales) for way in OURS]
    ways += [(way, scales[:1]) for way in WITHOUT_MATH]
    print("| CPU s / peak MB |", " | ".join(f"{n}x" for n in scales), "|")
    print("|---" * (1 + len(scales)) + "|")
    results = []
    for way, way_scales in ways:
        runs = [measure(way, folder, n) for n in way_scales]
        cells = [f"{cost.cpu:.2f} / {cost.rss:.0f}" for cost, _ in runs]
        print(
            f"| {way[0]} |",
            " | ".join(cells + [""] * (len(scales) - len(way_scales))),
            "|",
            flush=True,
        )
        results.append(f"- {way[0]}: {'; '.join(result for _, result in runs)}")
    print("", *results, sep="\n")


def measure(way: Way, folder: Path, scale: int) -> tuple[Cost, str]:
    """Return the cost of a row of the table at a scale, and its result."""
    files = [str(folder / f"{file.format(scale)}.json") for file in way[2]]
    command = [sys.executable, __file__, "--worker", way[1], *files]
    cost = run(command)
    result = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    return cost, result


def prepare(data: Path, folder: Path, *scales: Path) -> str:
    rows, evals = load(data)
    write(folder / "evals.json", evals)
    write(folder / "few.json", {name: evals[name] for name in evals if name != "MATH test"})
    for scale in map(int, map(str, scales)):
        write(folder / f"{scale}.json", rows * scale)
    return ""


def load(data: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Read DAPO's distinct prompts and the problems of each evaluation set."""
    import pyarrow.parquet as pq

    def column(pattern: str, name: str) -> list:
        [file] = data.glob(pattern)
        return pq.read_table(file, columns=[name])[name].to_pylist()

    def problems(file: str) -> list[str]:
        lines = (data / file).read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["problem"] for line in lines]

    prompts = (prompt[0]["content"] for prompt in column("dapo-math-17k/data/*.parquet", "prompt"))
    return list(dict.fromkeys(prompts)), {
        "MATH-500": problems("math-500/test.jsonl"),
        "AIME 2024": column("aime_2024/HuggingFaceH4/data/*.parquet", "problem"),
        "AIME 2025": problems("aime_2025/math-ai/test.jsonl"),
        "MATH test": column("math/data/test*.parquet", "problem"),
    }


def write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value))


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def read_only(file: Path) -> str:
    return f"{len(read(file))} rows"


def overlap(file: Path, evals: Path) -> str:
    from rewardkit.checks.overlap import EvalItem, find_overlaps, index_items

    sets = read(evals).items()
    items = (EvalItem(name, str(i), text) for name, texts in sets for i, text in enumerate(texts))
    overlaps = [(o.row, o.source, o.item) for o in find_overlaps(read(file), index_items(items))]
    return f"{len({o[0] for o in overlaps})} rows, {len({o[1:] for o in overlaps})} items"


def any_hit(file: Path, evals: Path) -> str:
    """Count rows that share any 8 consecutive words, in lower case, with an item."""

    def grams(text: str) -> Iterable[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return zip(*(words[i:] for i in range(8)), strict=False)

    known = {gram for texts in read(evals).values() for t in texts for gram in grams(t)}
    return f"{sum(not known.isdisjoint(grams(row)) for row in read(file))} rows"


WORKERS = {
    "prepare": prepare,
    "read": read_only,
    "overlap": overlap,
    "any-hit": any_hit,
}

if __name__ == "__main__":
    main()
