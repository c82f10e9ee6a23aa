"""Contamination and near-duplicates: rows, time and memory at 1, 2 and 4 times DAPO, and peers.

    python benchmarks/overlap.py --shared ../shared [--peers-python /tmp/peers/bin/python]

Whole processes. 1x is DAPO-Math-17k's distinct prompts, against MATH-500, AIME 2024 and 2025 and
MATH's test split. For contamination the rows are repeated; for near-duplicates the words of every
copy are renamed, as equal rows would cost next to nothing. Peers, in the same run: the rule "any
common 8-gram" (open-r1's), for what it drops, and MinHash with LSH of datasketch and rensa where
`--peers-python` has them, on words already split. `kept` is the rows left when one of each
cluster stays; MinHash's keep what an estimate says.
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

from measure import run

SCALES = (1, 2, 4)
PEERS = ("datasketch", "rensa")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, help="the folder of real data")
    parser.add_argument("--peers-python", help="an interpreter that has datasketch and rensa")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        what, *files = options.worker
        print(WORKERS[what](*map(Path, files)))
    elif options.shared:
        with tempfile.TemporaryDirectory() as folder:
            table(options.shared / "data", Path(folder), options.peers_python)
    else:
        parser.error("--shared is needed")


def table(data: Path, folder: Path, peers_python: str | None) -> None:
    # Prepared in a process of its own: a small parent, as a child's peak is never below it.
    run([sys.executable, __file__, "--worker", "prepare", str(data), str(folder)])
    print("| what | scale | result | CPU s | wall s | peak MB |\n|---|---|---|---|---|---|")
    for scale in SCALES:
        line("only reading", scale, sys.executable, "read", folder / f"{scale}.json")
        files = folder / f"{scale}.json", folder / "evals.json"
        line("overlap", scale, sys.executable, "overlap", *files)
        line("near-duplicates", scale, sys.executable, "near", folder / f"renamed{scale}.json")
        for peer in PEERS if peers_python else ():
            file = folder / f"split{scale}.json"
            line(f"{peer}, words split before", scale, str(peers_python), peer, file)
    files = folder / "1.json", folder / "few.json"
    line("overlap, no MATH test", 1, sys.executable, "overlap", *files)
    line("any common 8-gram, no MATH test", 1, sys.executable, "any-hit", *files)


def line(name: str, scale: int, python: str, what: str, *files: Path) -> None:
    command = [python, __file__, "--worker", what, *map(str, files)]
    cost = run(command)
    result = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    costs = f"{cost.cpu:.2f} | {cost.wall:.2f} | {cost.rss:.0f}"
    print(f"| {name} | {scale}x | {result} | {costs} |", flush=True)


def prepare(data: Path, folder: Path) -> str:
    rows, evals = load(data)
    write(folder / "evals.json", evals)
    write(folder / "few.json", {name: evals[name] for name in evals if name != "MATH test"})
    for scale in SCALES:
        write(folder / f"{scale}.json", rows * scale)
        write(folder / f"renamed{scale}.json", copies(rows, scale))
        write(folder / f"split{scale}.json", split(copies(rows, scale)))
    return ""


def load(data: Path) -> tuple[list[str], dict[str, list[str]]]:
    """DAPO's distinct prompts, and the problems of each evaluation set."""
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
    """The rows, and the same in other words."""
    renamed = [
        [re.sub(r"[a-z]{3,}", rf"\g<0>{'q' * k}", row) for row in rows] for k in range(1, times)
    ]
    return rows + [row for copy in renamed for row in copy]


def split(rows: list[str]) -> list[str]:
    from rewardkit.preprocess.words import words

    return [" ".join(words(row)) for row in rows]


def write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value))


def read(file: Path) -> Any:
    return json.loads(file.read_text())


def read_only(file: Path) -> str:
    return f"{len(read(file))} rows"


def overlap(file: Path, evals: Path) -> str:
    from rewardkit.preprocess.overlap import EvalItem, find_overlaps, index_items

    sets = read(evals).items()
    items = (EvalItem(name, str(i), text) for name, texts in sets for i, text in enumerate(texts))
    found = [(o.row, o.source, o.item) for o in find_overlaps(read(file), index_items(items))]
    return f"{len({f[0] for f in found})} rows, {len({f[1:] for f in found})} items"


def near(file: Path) -> str:
    from rewardkit.preprocess.near import near_duplicates

    rows = read(file)
    return f"kept {len(rows) - sum(len(c) - 1 for c in near_duplicates(rows))}"


def any_hit(file: Path, evals: Path) -> str:
    """Lower-case words by spaces and signs, any 8 in a row in common."""

    def grams(text: str) -> Iterable[tuple[str, ...]]:
        found = re.findall(r"\w+", text.lower())
        return zip(*(found[i:] for i in range(8)), strict=False)

    known = {gram for texts in read(evals).values() for t in texts for gram in grams(t)}
    return f"{sum(not known.isdisjoint(grams(row)) for row in read(file))} rows"


def shingles(file: Path) -> Iterable[list[str]]:
    for row in read(file):
        own = row.split()
        yield [" ".join(own[i : i + 5]) for i in range(max(1, len(own) - 4))]


def datasketch(file: Path) -> str:
    from datasketch import MinHash, MinHashLSH

    lsh = MinHashLSH(threshold=0.8, num_perm=128)
    kept = 0
    for i, row in enumerate(shingles(file)):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([gram.encode() for gram in row])
        if not lsh.query(sketch):
            lsh.insert(str(i), sketch)
            kept += 1
    return f"kept {kept}"


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
