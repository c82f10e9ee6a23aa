"""Measure contamination and near-duplicate checks at 1, 2 and 4 times DAPO, beside peers.

    python benchmarks/overlap.py --shared ../shared [--peers-python .venv-peers/bin/python]

Costs are those of whole processes. 1x is DAPO-Math-17k's distinct prompts, compared with MATH-500,
AIME 2024 and 2025 and MATH's test split. For contamination the rows are repeated; for near-duplicates
the words of every copy are renamed, because equal rows cost almost nothing. The peers run at the same
time: the rule "any common 8-gram" (open-r1's), to show what it drops, and MinHash with LSH of
datasketch and rensa if `--peers-python` has them, on split words. `kept` is the number of rows if one
row of each cluster is kept; for MinHash the clusters are estimates.
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

from measure import Cost, interpreter_exists, run

#: A row of the table: its title, its worker, and the files of the worker at a scale.
Way = tuple[str, str, tuple[str, ...]]

OURS: tuple[Way, ...] = (
    ("only reading", "read", ("{}",)),
    ("overlap", "overlap", ("{}", "evals")),
    ("near-duplicates", "near", ("renamed{}",)),
)
PEERS: tuple[Way, ...] = (
    ("datasketch, words already split", "datasketch", ("split{}",)),
    ("rensa, words already split", "rensa", ("split{}",)),
)
#: These show what each rule drops; they run at the first scale only.
WITHOUT_MATH: tuple[Way, ...] = (
    ("overlap, no MATH test", "overlap", ("{}", "few")),
    ("any common 8-gram, no MATH test", "any-hit", ("{}", "few")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, help="folder of the real data")
    parser.add_argument("--peers-python", help="interpreter with datasketch and rensa")
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
            print_table(options.shared / "data", Path(folder), options.scales, options.peers_python)
    else:
        parser.error("--shared is needed")


def print_table(data: Path, folder: Path, scales: list[int], peers_python: str | None) -> None:
    # Files are prepared in another process: the peak of a child is never below that of its parent.
    arguments = ["--worker", "prepare", str(data), str(folder), *map(str, scales)]
    run([sys.executable, __file__, *arguments])
    peers = PEERS if peers_python and interpreter_exists(peers_python) else ()
    ways = [(sys.executable, way, scales) for way in OURS]
    ways += [(str(peers_python), way, scales) for way in peers]
    ways += [(sys.executable, way, scales[:1]) for way in WITHOUT_MATH]
    print("| CPU s / peak MB |", " | ".join(f"{n}x" for n in scales), "|")
    print("|---" * (1 + len(scales)) + "|")
    results = []
    for python, way, way_scales in ways:
        runs = [measure(python, way, folder, n) for n in way_scales]
        cells = [f"{cost.cpu:.2f} / {cost.rss:.0f}" for cost, _ in runs]
        print(
            f"| {way[0]} |",
            " | ".join(cells + [""] * (len(scales) - len(way_scales))),
            "|",
            flush=True,
        )
        results.append(f"- {way[0]}: {'; '.join(result for _, result in runs)}")
    print("", *results, sep="\n")


def measure(python: str, way: Way, folder: Path, scale: int) -> tuple[Cost, str]:
    """Return the cost of a row of the table at a scale, and its result."""
    files = [str(folder / f"{file.format(scale)}.json") for file in way[2]]
    command = [python, __file__, "--worker", way[1], *files]
    cost = run(command)
    result = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    return cost, result


def prepare(data: Path, folder: Path, *scales: Path) -> str:
    rows, evals = load(data)
    write(folder / "evals.json", evals)
    write(folder / "few.json", {name: evals[name] for name in evals if name != "MATH test"})
    for scale in map(int, map(str, scales)):
        write(folder / f"{scale}.json", rows * scale)
        write(folder / f"renamed{scale}.json", copies(rows, scale))
        write(folder / f"split{scale}.json", split(copies(rows, scale)))
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


def copies(rows: list[str], times: int) -> list[str]:
    """Return the rows, and copies of them with renamed words."""
    renamed = [
        [re.sub(r"[a-z]{3,}", rf"\g<0>{'q' * k}", row) for row in rows] for k in range(1, times)
    ]
    return rows + [row for copy in renamed for row in copy]


def split(rows: list[str]) -> list[str]:
    from rewardkit.preprocess.contamination.word_splitting import split_words

    return [" ".join(split_words(row)) for row in rows]


def write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value))


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def read_only(file: Path) -> str:
    return f"{len(read(file))} rows"


def overlap(file: Path, evals: Path) -> str:
    from rewardkit.preprocess.contamination.overlap import EvalItem, find_overlaps, index_items

    sets = read(evals).items()
    items = (EvalItem(name, str(i), text) for name, texts in sets for i, text in enumerate(texts))
    overlaps = [(o.row, o.source, o.item) for o in find_overlaps(read(file), index_items(items))]
    return f"{len({o[0] for o in overlaps})} rows, {len({o[1:] for o in overlaps})} items"


def near(file: Path) -> str:
    from rewardkit.preprocess.contamination.near_duplicates import near_duplicates

    rows = read(file)
    return f"kept {len(rows) - sum(len(c) - 1 for c in near_duplicates(rows))}"


def any_hit(file: Path, evals: Path) -> str:
    """Count rows that share any 8 consecutive words, in lower case, with an item."""

    def grams(text: str) -> Iterable[tuple[str, ...]]:
        words = re.findall(r"\w+", text.lower())
        return zip(*(words[i:] for i in range(8)), strict=False)

    known = {gram for texts in read(evals).values() for t in texts for gram in grams(t)}
    return f"{sum(not known.isdisjoint(grams(row)) for row in read(file))} rows"


def shingles(file: Path) -> Iterable[list[str]]:
    for row in read(file):
        words = row.split()
        yield [" ".join(words[i : i + 5]) for i in range(max(1, len(words) - 4))]


def datasketch(file: Path) -> str:
    from datasketch import MinHash, MinHashLSH

    lsh = MinHashLSH(threshold=0.8, num_perm=128)
    count = 0
    for i, row in enumerate(shingles(file)):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([gram.encode() for gram in row])
        if not lsh.query(sketch):
            lsh.insert(str(i), sketch)
            count += 1
    return f"kept {count}"


def rensa(file: Path) -> str:
    from rensa import RMinHashDeduplicator

    index = RMinHashDeduplicator(threshold=0.8, num_perm=128, use_lsh=True)
    return f"kept {sum(index.add_pairs((str(i), row) for i, row in enumerate(shingles(file))))}"


WORKERS = {
    "prepare": prepare,
    "read": read_only,
    "overlap": overlap,
    "near": near,
    "any-hit": any_hit,
    "datasketch": datasketch,
    "rensa": rensa,
}

if __name__ == "__main__":
    main()
