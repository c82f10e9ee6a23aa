"""Measure agreement with people on answers to open questions. Prints a table.

    python benchmarks/qa.py --cases ../shared/cases

The cases are halved by a hash of the question: the rules of `robust` were written with `build` in view,
and `held out` was only measured. `containment` is the common rule that a gold is part of the answer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rewardkit.answers.open_answers.squad import normalize
from rewardkit.scorers import qa

Row = dict[str, Any]
HALVES = ("build", "held out")
SETS = ("qa_evouna", "qa_nq301")


def contains_a_gold(row: Row) -> bool:
    """Whether an answer has a gold as a part, by SQuAD's comparison of texts."""
    text = normalize(row["solution_str"])
    return any(gold in text for gold in map(normalize, row["ground_truth"]) if gold)


def verdict(method: str, row: Row) -> bool:
    """Return our verdict; `exact` reads only answers in tags."""
    response = row["solution_str"]
    response = qa.respond(response) if method == "exact" else response
    return qa.score(response, row["ground_truth"], row, method=method).correct


RULES: dict[str, Callable[[Row], bool]] = {
    "containment": contains_a_gold,
    **{f"`qa` {method}": partial(verdict, method) for method in ("exact", "f1", "robust")},
}


def load(path: Path) -> list[Row]:
    """Read the labelled rows of a file."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [row for row in map(json.loads, filter(None, lines)) if row["label"] is not None]


def half_of(row: Row) -> str:
    """Return the half of a row's question."""
    return HALVES[int(hashlib.sha256(row["question"].encode()).hexdigest(), 16) % 2]


def figures(rule: Callable[[Row], bool], rows: Sequence[Row]) -> tuple[float, float, float, float]:
    """Return the accuracy of short answers and of sentences, the share of wrong ones paid, and µs a call."""
    started = time.perf_counter()
    verdicts = [(row["kind"], row["label"], rule(row)) for row in rows]
    microseconds = (time.perf_counter() - started) / len(rows) * 1e6
    short, sentence = (
        mean([label == paid for kind, label, paid in verdicts if kind == wanted])
        for wanted in ("qa_short", "qa_sentence")
    )
    return short, sentence, mean([paid for _, label, paid in verdicts if not label]), microseconds


def mean(values: Sequence[bool]) -> float:
    """Return the share of true values."""
    return sum(values) / max(1, len(values))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=Path, required=True)
    cases = parser.parse_args().cases
    sets = [name for name in SETS if (cases / f"{name}.jsonl").exists()]
    print("| set | half | rule | short answers | sentences | wrong answers paid | µs a call |")
    print("|---|---|---|---|---|---|---|")
    for name, half in product(sets, HALVES):
        of_half = [row for row in load(cases / f"{name}.jsonl") if half_of(row) == half]
        for title, rule in RULES.items() if of_half else ():
            short, sentence, paid, microseconds = figures(rule, of_half)
            print(
                f"| {name} | {half} | {title} | {short:.3f} | {sentence:.3f} | {paid:.1%} "
                f"| {microseconds:.0f} |"
            )


if __name__ == "__main__":
    main()
