"""Right verdicts on labelled cases that nobody here wrote, ours and the peers'. Prints a table.

    make .venv-peers/.ready .venv-verl-0.9.1/.ready      # the peers, and verl
    python benchmarks/accuracy.py --cases ../shared/cases --peers-python .venv-peers/bin/python

verl's own scorers run in the interpreter of `make test-verl`, or `--verl-python`; a peer that is
not there is left out and named. `--sets a,b` and `--peers a,b` for some of them, `--notes` for our
misses.

A response is fed as it stands, a bare answer in a box (and to verl's math_dapo, which compares a
box letter by letter, on an `Answer:` line), unless its suite wrote it as a response.
Every call has a process and 5 s of wall time; a time-out or an exception is the verdict "wrong".
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.graders import Answers, ask

from rewardkit.scorers import gsm8k, math, mcq
from rewardkit.scorers.base import Score

#: The sets, and what their responses hold.
SETS = {
    "hardverify": "boxed",
    "tests": "any",
    "exploits": "any",
    "real_gsm8k_openai": "hashes",
    "real_gsm8k_abel": "hashes",
    "real_gsm8k_gsmplus": "hashes",
    "real_zeroeval_gsm8k": "hashes",
    "real_mrgsm8k": "hashes",
    "real_tora_rho": "boxed",
    "real_math_qwen25": "boxed",
    "real_math500_pairs": "boxed",
    "mathl5_pairs": "boxed",
    "real_mcq_gaokao": "letters",
    "real_mcq_mmlupro": "letters",
    "real_financemath": "free",
}

#: What each peer reads; on the other sets it would only count the wrong answers.
PEERS = {
    "math-verify": ("any", "boxed", "hashes", "letters", "free"),
    "math-verify boxed": ("any", "boxed", "hashes", "letters", "free"),
    "inspect_ai": ("any", "boxed", "hashes", "letters", "free"),
    "mathruler": ("any", "boxed", "letters"),
    "lm-eval minerva": ("any", "boxed", "letters"),
    "verl prime_math": ("any", "boxed", "letters", "free"),
    "verl math_reward": ("any", "boxed", "letters"),
    "verl math_dapo": ("any", "boxed", "letters"),
    "verl gsm8k": ("hashes",),
}

#: Kinds of cases whose bare `pred` is the whole response.
RESPONSES = {"mv_text", "response", "mcq_text", "list", "mcq"}

OUR_SCORERS: dict[str, tuple[str, ...]] = {
    "math": tuple(set(SETS.values())),
    "mcq": ("letters",),
    "gsm8k robust": ("hashes",),
}


class Case(NamedTuple):
    """One labelled response, with every gold it may match."""

    id: str
    response: str
    bare: str | None
    golds: tuple[str, ...]
    label: bool
    choice: bool


class Tally(NamedTuple):
    """How the verdicts on a set compare with its labels."""

    cases: int
    false_positives: int
    false_negatives: int

    def __str__(self) -> str:
        right = 1 - (self.false_positives + self.false_negatives) / self.cases
        # 0.9995 is not 1.000
        shown = min(right, 0.999) if right < 1 else right
        return f"{shown:.3f} ({self.false_positives}/{self.false_negatives})"


def main() -> None:
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="the folder of labelled cases")
    parser.add_argument("--peers-python", type=Path, help="has benchmarks/peers/requirements.txt")
    parser.add_argument(
        "--verl-python", type=Path, default=here.parent / ".venv-verl-0.9.1/bin/python"
    )
    parser.add_argument("--sets", default=",".join(SETS), help="some of them, by commas")
    parser.add_argument("--peers", default=",".join(PEERS), help="some of them, by commas")
    parser.add_argument("--notes", action="store_true", help="also list what `math` misses")
    options = parser.parse_args()

    sets = {name: load(options.cases / f"{name}.jsonl") for name in options.sets.split(",")}
    columns = {name: our_verdicts(name, sets) for name in OUR_SCORERS}
    peers, left_out = peer_verdicts(options, sets)
    print_table(sets, columns | peers)
    for line in left_out:
        print(line)
    if options.notes:
        print_misses(sets, columns["math"])


def load(path: Path) -> list[Case]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [to_case(row, path.stem) for row in rows if row["label"] is not None]


def to_case(row: dict[str, object], name: str) -> Case:
    response = row.get("solution_str")
    if response is None:
        said = str(row["pred"])
        response = said if row["kind"] in RESPONSES else f"\\boxed{{{said}}}"
    gold = row["ground_truth"]
    golds = [str(g) for g in gold] if isinstance(gold, list) else [str(gold)]
    if name.startswith("real_zeroeval_gsm"):
        golds = [g.removeprefix("# ") for g in golds]
    choice = SETS[name] == "letters" or str(row["kind"]).startswith("mcq")
    bare = str(row["pred"]) if str(row["kind"]).startswith("equiv") else None
    return Case(str(row["id"]), str(response), bare, tuple(golds), bool(row["label"]), choice)


def response_for(peer: str, case: Case) -> str:
    if peer == "verl math_dapo" and case.bare is not None:
        return f"Answer: {case.bare}"
    return case.response


# --- verdicts -------------------------------------------------------------------------------------


def our_verdicts(scorer: str, sets: dict[str, list[Case]]) -> dict[str, list[bool]]:
    judge: dict[str, Callable[[str, str], Score]] = {
        "math": math.score,
        "mcq": mcq.score,
        "gsm8k robust": lambda response, gold: gsm8k.score(response, gold, method="robust"),
    }
    return {
        name: [
            any(judge[scorer](case.response, gold).correct for gold in case.golds) for case in cases
        ]
        for name, cases in sets.items()
        if SETS[name] in OUR_SCORERS[scorer]
    }


def peer_verdicts(
    options: argparse.Namespace, sets: dict[str, list[Case]]
) -> tuple[dict[str, dict[str, list[bool]]], list[str]]:
    """The verdicts of every peer that is there, and a line for each that is not or that failed."""

    def verdicts(peer: str) -> tuple[dict[str, list[bool]], str]:
        python = options.verl_python if peer.startswith("verl") else options.peers_python
        wanted = {name: cases for name, cases in sets.items() if SETS[name] in PEERS[peer]}
        calls = [
            {"response": response_for(peer, case), "gold": gold, "choice": case.choice}
            for cases in wanted.values()
            for case in cases
            for gold in case.golds
        ]
        answers = ask(python, peer, calls) if python else "no --peers-python"
        if isinstance(answers, str):
            return {}, f"- {peer} is left out: {answers}"
        return by_set(wanted, answers), f"- {peer}: {said_of(answers)}"

    asked = [peer for peer in PEERS if peer in options.peers.split(",")]
    with ThreadPoolExecutor(2) as pool:
        order = sorted(asked, key=lambda peer: peer != "inspect_ai")  # the slowest first
        said = dict(zip(order, pool.map(verdicts, order), strict=True))
    said = {peer: said[peer] for peer in asked}
    return {peer: right for peer, (right, _) in said.items() if right}, [
        s for _, s in said.values()
    ]


def by_set(sets: dict[str, list[Case]], answers: Answers) -> dict[str, list[bool]]:
    rights = iter([verdict.right for verdict in answers.verdicts])
    return {
        name: [any(list(islice(rights, len(case.golds)))) for case in cases]
        for name, cases in sets.items()
    }


def said_of(answers: Answers) -> str:
    problems = Counter(v.problem for v in answers.verdicts if v.problem)
    listed = ", ".join(f"{count} {problem}" for problem, count in problems.most_common())
    seconds = sum(verdict.ns for verdict in answers.verdicts) / 1e9
    calls = f"{len(answers.verdicts)} calls in {seconds:.0f} s"
    return f"{answers.version}, {calls}, {listed or 'no problem'}"


# --- printing -------------------------------------------------------------------------------------


def print_table(sets: dict[str, list[Case]], columns: dict[str, dict[str, list[bool]]]) -> None:
    print("| set | n |", " | ".join(columns), "|")
    print("|---" * (2 + len(columns)) + "|")
    for name, cases in sets.items():
        cells = [
            str(tally(cases, verdicts[name])) if name in verdicts else ""
            for verdicts in columns.values()
        ]
        print(f"| {name} | {len(cases)} |", " | ".join(cells), "|")
    print()


def tally(cases: Sequence[Case], verdicts: Sequence[bool]) -> Tally:
    pairs = Counter(zip((case.label for case in cases), verdicts, strict=True))
    return Tally(len(cases), pairs[False, True], pairs[True, False])


def print_misses(sets: dict[str, list[Case]], ours: dict[str, list[bool]]) -> None:
    for name, cases in sets.items():
        print(f"\n### {name}\n")
        for case, right in zip(cases, ours[name], strict=True):
            if right != case.label:
                score = math.score(case.response, case.golds[0])
                what = "FP" if right else "FN"
                said = " ".join((score.pred or case.response[-80:]).split())[:80]
                print(f"- {what} {score.status.value} {case.id}: {said} | {case.golds[0][:80]}")


if __name__ == "__main__":
    main()
