"""Check four properties that every gold must have. Prints a table.

    python benchmarks/metamorphic.py --golds ../shared/cases/golds.jsonl --misses 5
    python benchmarks/metamorphic.py --peers-python .venv-peers/bin/python   # beside math-verify

identity        the gold in a box is right
restyling       the gold in an equivalent spelling is right (`restyle.py`)
perturbation    the gold with one change is wrong (`perturb.py`)
copy            a formula of the question that is not the answer is wrong (`copies.py`)

A line of the file has `gold`, `question` and `source`; the default file is `golds.jsonl` beside this
script, our own golds of every type. A transformation is made only where it is certain to keep, or to
change, the answer. The exit code is 1 if `rewardkit` is below a floor in either half. `--misses` lists
the misses of the half `build` (for our own golds: all misses); `held` is only measured.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import HALVES, half_of
from copies import copies
from peers.graders import ask
from perturb import perturbations
from restyle import restylings

from rewardkit.scorers import math

OWN_GOLDS = Path(__file__).resolve().parent / "golds.jsonl"

#: Minimum share of calls that must have the property.
FLOORS = {"identity": 0.998, "restyling": 0.997, "perturbation": 0.9998, "copy": 0.995}


class Gold(NamedTuple):
    """A gold, its question, and its half (`build` or `held`)."""

    text: str
    question: str
    half: str


class Call(NamedTuple):
    """A response, and the verdict that its property requires."""

    kind: str
    transformation: str
    answer: str
    gold: Gold
    right: bool

    @property
    def response(self) -> str:
        """The answer in a box, between dollars unless the answer contains some."""
        box = f"\\boxed{{{self.answer}}}"
        return f"The final answer is {box if '$' in self.answer else f'${box}$'}."


def load(path: Path) -> list[Gold]:
    """Read the golds of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Gold(str(row["gold"]), row.get("question") or "", half_of(row)) for row in rows]


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def fits_a_box(text: str) -> bool:
    """Return whether braces balance; a damaged gold closes its box too early, or never."""
    depth = 0
    for brace in _BRACE.findall(text):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            return False
    return depth == 0


def calls_of(gold: Gold) -> Iterator[Call]:
    """Yield all transformations of a gold; none if it does not fit a box."""
    if not fits_a_box(gold.text):
        return
    yield Call("identity", "the gold", gold.text.strip(), gold, right=True)
    for name, text in restylings(gold.text, gold.question):
        yield Call("restyling", name, text, gold, right=True)
    for name, text in perturbations(gold.text):
        yield Call("perturbation", name, text, gold, right=False)
    for name, text in copies(gold.question, gold.text):
        yield Call("copy", name, text, gold, right=False)


def holds(call: Call) -> bool:
    """Return whether `math` gives the verdict that the property requires."""
    score = math.score(call.response, call.gold.text, {"question": call.gold.question})
    return score.correct == call.right


def shares(calls: Sequence[Call], verdicts: Sequence[bool]) -> dict[str, float]:
    """Return the share of calls that have each property."""
    total: Counter[str] = Counter(call.kind for call in calls)
    counts = Counter(call.kind for call, verdict in zip(calls, verdicts, strict=True) if verdict)
    return {name: counts[name] / total[name] for name in FLOORS if total[name]}


def below_floor(calls: Sequence[Call], verdicts: Sequence[bool]) -> list[str]:
    """Return a line for each property whose share is below its floor."""
    return [
        f"{name} {share:.4%} is below {FLOORS[name]:.2%}"
        for name, share in shares(calls, verdicts).items()
        if share < FLOORS[name]
    ]


def peer_verdicts(python: Path, calls: Sequence[Call], golds: set[Gold]) -> list[bool | None] | str:
    """Return whether math-verify has the properties on calls of some golds, or why it is left out."""
    chosen = [n for n, call in enumerate(calls) if call.gold in golds]
    cases = [{"response": calls[n].response, "gold": calls[n].gold.text} for n in chosen]
    answers = ask(python, "math-verify", cases)
    if isinstance(answers, str):
        return answers
    verdicts: list[bool | None] = [None] * len(calls)
    for n, verdict in zip(chosen, answers.verdicts, strict=True):
        verdicts[n] = verdict.right == calls[n].right
    return verdicts


# --- printing -------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--golds", type=Path, default=OWN_GOLDS, help="jsonl of golds")
    parser.add_argument(
        "--peers-python", type=Path, help="interpreter whose math-verify is also measured"
    )
    parser.add_argument(
        "--peers-golds",
        type=int,
        default=400,
        help="number of golds, evenly spread, for math-verify, which is slow",
    )
    parser.add_argument(
        "--each", action="store_true", help="also print a row for each transformation"
    )
    parser.add_argument(
        "--misses", type=int, default=0, help="number of misses to list for each transformation"
    )
    parser.add_argument("--report", action="store_true", help="exit with 0 also below a floor")
    options = parser.parse_args()
    golds = load(options.golds)
    calls = [call for gold in golds for call in calls_of(gold)]
    ours = [holds(call) for call in calls]
    columns: dict[str, list[bool | None]] = {"rewardkit": [*ours]}
    if options.peers_python:
        sample = golds[:: max(1, len(golds) // max(1, options.peers_golds))]
        verdicts = peer_verdicts(options.peers_python, calls, {*sample})
        if isinstance(verdicts, str):
            print(f"- math-verify is left out: {verdicts}\n")
        else:
            columns["math-verify"] = verdicts
    print_table(calls, columns, each=options.each)
    listed = [call.gold.half == "build" or options.golds == OWN_GOLDS for call in calls]
    print_misses(list(compress(calls, listed)), list(compress(ours, listed)), options.misses)
    lines = []
    for half in HALVES:
        chosen = [n for n, call in enumerate(calls) if call.gold.half == half]
        verdicts_of_half = [ours[n] for n in chosen]
        calls_of_half = [calls[n] for n in chosen]
        lines += [f"{half}: {line}" for line in below_floor(calls_of_half, verdicts_of_half)]
    print("\n".join(lines) or "Every floor holds in both halves.")
    return bool(lines) and not options.report


def print_table(
    calls: Sequence[Call], columns: dict[str, list[bool | None]], *, each: bool = False
) -> None:
    print("| property | transformation | half | calls |", " | ".join(columns), "|")
    print("|---" * (4 + len(columns)) + "|")
    names = [(call.kind, "all") for call in calls]
    names += [(call.kind, call.transformation) for call in calls] if each else []
    for name, transformation in sorted(dict.fromkeys(names), key=lambda n: [*FLOORS].index(n[0])):
        for half in HALVES:
            chosen = [
                n
                for n, call in enumerate(calls)
                if (call.kind, call.gold.half) == (name, half)
                and transformation in ("all", call.transformation)
            ]
            if chosen:
                cells = [f"{share([c[n] for n in chosen])}" for c in columns.values()]
                row = f"| {name} | {transformation} | {half} | {len(chosen)} |"
                print(row, " | ".join(cells), "|")
    print()


def share(verdicts: Sequence[bool | None]) -> str:
    """Format the share that holds, with the misses and, if not all, the number of judged calls."""
    judged = [verdict for verdict in verdicts if verdict is not None]
    if not judged:
        return ""
    calls = "" if len(judged) == len(verdicts) else f" of {len(judged)}"
    percent = sum(judged) / len(judged)
    return f"{percent:.2%} ({judged.count(False)}{calls})"


def print_misses(calls: Sequence[Call], verdicts: Sequence[bool], most: int) -> None:
    """List the first misses of each transformation, at most `most`."""
    counts: Counter[tuple[str, str]] = Counter()
    for call, verdict in zip(calls, verdicts, strict=True):
        key = call.kind, call.transformation
        if not verdict and counts[key] < most:
            counts[key] += 1
            answer, gold = call.answer[:90], call.gold.text[:90]
            print(f"- {call.kind}, {call.transformation}: {answer!r} for {gold!r}")


if __name__ == "__main__":
    sys.exit(main())
