"""Measure correct verdicts on labelled cases, ours and the peers'. Prints a table.

    make .venv-peers/.ready .venv-verl-0.9.1/.ready      # the peers, and verl
    python benchmarks/accuracy.py --cases ../shared/cases --peers-python .venv-peers/bin/python

verl's own scorers run in the interpreter of `make test-verl`, or `--verl-python`. A peer that is not
installed is left out and named. `--sets a,b` and `--peers a,b` select some of them; `--notes` lists the
misses of `rewardkit` in the half `build`.

A cell has the share of correct verdicts, then the numbers of accepted wrong responses and of rejected
right ones. Our columns: `rewardkit` is the scorer that the row or its set names (default `math`), called
as in training, with the question if the row has one; `3 digits` is the same with
`significant_digits=3` of `math`, if it has that option; `mcq` and `gsm8k robust`.

A response is passed unchanged. A bare answer is put in a box, unless its suite wrote it as a response;
verl's math_dapo, which compares a box letter by letter, gets it on an `Answer:` line. Every call has a
process and 5 s of wall time; a time-out or an exception counts as the verdict "wrong".
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import HALVES, SETS, Case, load
from peers.graders import Answers, ask

from rewardkit.scorers import gsm8k, math, math_dapo, mcq, qa
from rewardkit.scorers.base import Score

#: Answer formats that each peer reads; on other sets every response would be wrong.
PEERS = {
    "math-verify": ("any", "boxed", "hashes", "letters", "stated", "free"),
    "math-verify boxed": ("any", "boxed", "hashes", "letters", "stated", "free"),
    "inspect_ai": ("any", "boxed", "hashes", "letters", "stated", "free"),
    "mathruler": ("any", "boxed", "letters"),
    "lm-eval minerva": ("any", "boxed", "letters"),
    "verl prime_math": ("any", "boxed", "letters", "free"),
    "verl math_reward": ("any", "boxed", "letters"),
    "verl math_dapo": ("any", "boxed", "letters"),
    "verl gsm8k": ("hashes",),
}

SCORERS: dict[str, Callable[..., Score]] = {
    "math": math.score,
    "mcq": mcq.score,
    "math_dapo": math_dapo.score,
    "gsm8k": gsm8k.score,
    "qa": qa.score,
}

#: Our columns: a scorer (None: the one of the case), its options, and the formats it reads.
OURS: dict[str, tuple[str | None, dict[str, Any], tuple[str, ...]]] = {
    "rewardkit": (None, {}, tuple(set(SETS.values()))),
    "3 digits": (None, {"significant_digits": 3}, tuple(set(SETS.values()))),
    "mcq": ("mcq", {}, ("letters",)),
    "gsm8k robust": ("gsm8k", {"method": "robust"}, ("hashes",)),
}


class Tally(NamedTuple):
    """Verdicts on a set compared with its labels: numbers of responses and of errors."""

    wrong: int
    right: int
    false_positives: int
    false_negatives: int

    def __str__(self) -> str:
        share = 1 - (self.false_positives + self.false_negatives) / max(1, self.wrong + self.right)
        # 0.9995 must not round to 1.000
        share = min(share, 0.999) if self.false_positives or self.false_negatives else share
        counts = f"{self.false_positives}/{self.wrong}, {self.false_negatives}/{self.right}"
        return f"{share:.3f} ({counts})"


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument(
        "--peers-python",
        type=Path,
        help="interpreter with the packages of benchmarks/peers/requirements.txt",
    )
    parser.add_argument(
        "--verl-python", type=Path, default=here.parent / ".venv-verl-0.9.1/bin/python"
    )
    parser.add_argument(
        "--sets", default=",".join(SETS), help="sets to measure, separated by commas"
    )
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="peers to run, separated by commas"
    )
    parser.add_argument("--notes", action="store_true", help="also list our misses in `build`")
    options = parser.parse_args()

    sets = {name: load(options.cases / f"{name}.jsonl") for name in options.sets.split(",")}
    columns = {name: our_verdicts(name, sets) for name in our_columns()}
    peers, notes = peer_verdicts(options, sets)
    print_table(sets, columns | peers)
    for line in notes:
        print(line)
    if options.notes:
        print_misses(sets, columns["rewardkit"])


def response_for(peer: str, case: Case) -> str:
    if peer == "verl math_dapo" and case.bare is not None:
        return f"Answer: {case.bare}"
    return case.response


# --- verdicts -------------------------------------------------------------------------------------


def our_columns() -> list[str]:
    """Return the columns whose options the scorers have."""
    options = inspect.signature(math.score).parameters
    return [name for name in OURS if name != "3 digits" or "significant_digits" in options]


def our_verdicts(column: str, sets: dict[str, list[Case]]) -> dict[str, list[bool]]:
    return {
        name: [our_score(column, case).correct for case in cases]
        for name, cases in sets.items()
        if SETS[name] in OURS[column][2]
    }


def our_score(column: str, case: Case) -> Score:
    """Return the best score over the golds of a case."""
    scorer, options, _ = OURS[column]
    if scorer is None:
        scorer = case.scorer
        options = (options if scorer == "math" else {}) | case.options
    scores = (SCORERS[scorer](case.response, g, case.extra_info, **options) for g in case.golds)
    return max(scores, key=lambda score: score.correct)


def peer_verdicts(
    options: argparse.Namespace, sets: dict[str, list[Case]]
) -> tuple[dict[str, dict[str, list[bool]]], list[str]]:
    """Return the verdicts of every installed peer, and a line about each peer."""

    def verdicts(peer: str) -> tuple[dict[str, list[bool]], str]:
        python = options.verl_python if peer.startswith("verl") else options.peers_python
        readable = {name: cases for name, cases in sets.items() if SETS[name] in PEERS[peer]}
        calls = [
            {"response": response_for(peer, case), "gold": gold, "choice": case.choice}
            for cases in readable.values()
            for case in cases
            for gold in case.golds
        ]
        answers = ask(python, peer, calls) if python else "no --peers-python"
        if isinstance(answers, str):
            return {}, f"- {peer} is left out: {answers}"
        return by_set(readable, answers), f"- {peer}: {summary(answers)}"

    names = [peer for peer in PEERS if peer in options.peers.split(",")]
    with ThreadPoolExecutor(2) as pool:
        order = sorted(names, key=lambda peer: peer != "inspect_ai")  # the slowest first
        results = dict(zip(order, pool.map(verdicts, order), strict=True))
    columns = {peer: results[peer][0] for peer in names if results[peer][0]}
    return columns, [results[peer][1] for peer in names]


def by_set(sets: dict[str, list[Case]], answers: Answers) -> dict[str, list[bool]]:
    """Return the verdict of each case: right if it is for any of the golds."""
    rights = iter([verdict.right for verdict in answers.verdicts])
    return {
        name: [any(list(islice(rights, len(case.golds)))) for case in cases]
        for name, cases in sets.items()
    }


def summary(answers: Answers) -> str:
    problems = Counter(v.problem for v in answers.verdicts if v.problem)
    listed = ", ".join(f"{count} {problem}" for problem, count in problems.most_common())
    seconds = sum(verdict.ns for verdict in answers.verdicts) / 1e9
    calls = f"{len(answers.verdicts)} calls in {seconds:.0f} s"
    return f"{answers.version}, {calls}, {listed or 'no problem'}"


# --- printing -------------------------------------------------------------------------------------


def print_table(sets: dict[str, list[Case]], columns: dict[str, dict[str, list[bool]]]) -> None:
    print("| set | half | n |", " | ".join(columns), "|")
    print("|---" * (3 + len(columns)) + "|")
    for name, cases in sets.items():
        for half in HALVES:
            chosen = [case.half == half for case in cases]
            cells = [
                str(tally(cases, verdicts[name], chosen)) if name in verdicts else ""
                for verdicts in columns.values()
            ]
            print(f"| {name} | {half} | {sum(chosen)} |", " | ".join(cells), "|")
    print()


def tally(cases: Sequence[Case], verdicts: Sequence[bool], chosen: Sequence[bool]) -> Tally:
    """Count the verdicts on the chosen cases."""
    rows = zip(cases, verdicts, chosen, strict=True)
    pairs = Counter((case.label, verdict) for case, verdict, is_chosen in rows if is_chosen)
    wrong, right = (pairs[label, False] + pairs[label, True] for label in (False, True))
    return Tally(wrong, right, pairs[False, True], pairs[True, False])


def print_misses(sets: dict[str, list[Case]], ours: dict[str, list[bool]]) -> None:
    """List the misses of the half `build`; the other half is only measured."""
    for name, cases in sets.items():
        print(f"\n### {name}\n")
        for case, right in zip(cases, ours[name], strict=True):
            if right != case.label and case.half == "build":
                score = our_score("rewardkit", case)
                what = "FP" if right else "FN"
                answer = " ".join((score.pred or case.response[-80:]).split())[:80]
                print(f"- {what} {score.status.value} {case.id}: {answer} | {case.golds[0][:80]}")


if __name__ == "__main__":
    main()
