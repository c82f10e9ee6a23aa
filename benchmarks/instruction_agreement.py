"""Compare the verdicts of `instructions` with published ones of IFEval's and IFBench's checkers. Prints tables.

    python benchmarks/instruction_agreement.py --cases ../shared/cases

A verdict is that on one constraint of one response. README.md explains the disagreements.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rewardkit.scorers.instructions import score

MODES = ("strict", "loose")


class Case(NamedTuple):
    """A response, its constraints, and the published verdict on each."""

    prompt: str
    response: str
    ids: list[str]
    kwargs: list[Any]
    verdicts: list[bool]


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def ifeval(cases: Path, mode: str) -> Iterator[Case]:
    for row in rows(cases / "if_ifeval.jsonl"):
        ids, kwargs = row["instruction_id_list"], row["kwargs"]
        yield Case(row["prompt"], row.get("response") or "", ids, kwargs, row[mode])


def ifbench(cases: Path, mode: str) -> Iterator[Case]:
    folder = cases / "if_tests/allenai+IFBench"
    problems = {row["prompt"].strip(): row for row in rows(folder / "data_IFBench_test.jsonl")}
    responses = {
        row["prompt"]: row["response"] for row in rows(folder / "data_sample_output.jsonl")
    }
    for row in rows(folder / f"eval_eval_results_{mode}.jsonl"):
        if problem := problems.get(row["prompt"].strip()):
            ids, kwargs = problem["instruction_id_list"], problem["kwargs"]
            verdicts = row["follow_instruction_list"]
            yield Case(row["prompt"], responses[row["prompt"]], ids, kwargs, verdicts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    cases = parser.parse_args().cases
    print("| set | mode | verdicts | agree | agreement |")
    print("|---|---|---|---|---|")
    differ = Counter[tuple[str, str, bool]]()
    for name, read in (("IFEval", ifeval), ("IFBench", ifbench)):
        for mode in MODES:
            counts = Counter[bool]()
            for case in read(cases, mode):
                for id_, kwargs, verdict in zip(case.ids, case.kwargs, case.verdicts, strict=True):
                    gold = json.dumps({"instruction_id_list": [id_], "kwargs": [kwargs]})
                    ours = score(case.response, gold, {"question": case.prompt}, mode=mode).correct
                    counts[ours == verdict] += 1
                    differ[name, id_, verdict] += ours != verdict
            total = counts.total()
            share = f"{counts[True] / total:.4f}"
            print(f"| {name} | {mode} | {total:,} | {counts[True]:,} | {share} |")
    print("\n| set | constraint | published | here | verdicts |\n|---|---|---|---|---|")
    for (name, id_, verdict), count in sorted(differ.items()):
        words = ("not followed", "followed")
        if count:
            print(f"| {name} | `{id_}` | {words[verdict]} | {words[not verdict]} | {count} |")


if __name__ == "__main__":
    main()
