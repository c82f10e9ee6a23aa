"""Switch off the rules of the answer engine one after another. Prints a table of what moves.

    python benchmarks/ablation.py --cases ../shared/cases [--json]

In a process of its own, each rule is replaced by one that finds or changes nothing, and the halves `build` are
scored. `refused` and `paid`: how many more right answers are refused and wrong ones paid than with all rules.
The sets listed are those whose share of correct verdicts moves by 0.2 points or more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import qa
from accuracy import our_score
from cases import SETS, load


def constant(value: object) -> Callable[..., object]:
    return lambda *_, **__: value


def same(first: object, *_: object) -> object:
    return first


NO, NONE = constant(False), constant(None)

#: What replaces rules, and the rules by their names below `rewardkit.answers`.
REPLACEMENTS: list[tuple[Any, str]] = [
    (NO, """denial.is_box_denied denial.is_denied_after words.same_words
        families.have_same_members relations.are_proportional scalar.equal_everywhere
        scalar._constants_equal scalar._is_rounding simplification.leaves_arithmetic
        simplification.repeats_question type_rules._equal_without_unit choices._is_in_doubt
        choices._is_revised open_answers.matching._is_owner
        open_answers.matching._is_other_name open_answers.matching._is_reference open_answers.rivals.has_rival
        open_answers.rivals.is_guess open_answers.rivals.follows_answer"""),
    (NONE, """extract.last_tag extract.last_hash prose.last_statement number.number_of_sentence
        equal._same_statements equal._parse_parts relations.solution_of relations.same_region
        parsing.units.lookup_unit open_answers.matching._match_name open_answers.matching._match_words"""),
    (same, """chinese_numerals.chinese_to_digits words.value_without_remark open_answers.words.stem
        type_rules._expand_plus_minus type_rules._evaluate_matrices type_rules._builder_to_clause"""),
    (constant(()), "words.in_asked_scale families.renamings"),
    (constant(True), "open_answers.verdict._is_stated"),
    (constant(""), "denial.governs"),
    (constant((None, 0)), "extract._phrase"),
    (constant(("", None)), "choices._read_words"),
    (constant(frozenset()), "choices.matching_options"),
    (re.compile("(?!)"), "extract._HIDDEN"),
]  # fmt: skip
NEUTRAL = {rule: neutral for neutral, rules in REPLACEMENTS for rule in rules.split()}
SWITCHES = sorted(NEUTRAL)
#: The label and the call of every response of a set's half `build`; child processes inherit it.
CALLS: dict[str, list[tuple[bool, Callable[[], bool]]]] = {}


def errors(rule: str) -> dict[str, tuple[int, int]]:
    """Return how many right answers are refused and wrong ones paid without a rule, by set."""
    if rule:
        module, _, attribute = f"rewardkit.answers.{rule}".rpartition(".")
        old = getattr(import_module(module), attribute)
        for user in [vars(m) for name, m in sys.modules.items() if name.startswith("rewardkit.")]:
            for table in (user, *(v for v in [*user.values()] if isinstance(v, dict))):
                table.update({key: NEUTRAL[rule] for key in [*table] if table[key] is old})
    missed = {name: Counter(y for y, call in calls if call() != y) for name, calls in CALLS.items()}
    return {name: (counts[True], counts[False]) for name, counts in missed.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument("--json", action="store_true", help="print the counts of every set instead")
    options = parser.parse_args()
    for name in SETS:
        cases = [case for case in load(options.cases / f"{name}.jsonl") if case.half == "build"]
        CALLS[name] = [(c.label, lambda c=c: our_score("rewardkit", c).correct) for c in cases]
    for name in qa.SETS:
        rows = qa.load(options.cases / f"{name}.jsonl")
        build = [row for row in rows if qa.half_of(row) == "build"]
        CALLS[name] = [(row["label"], partial(qa.verdict, "robust", row)) for row in build]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        everything, *results = pool.map(errors, ["", *SWITCHES], chunksize=1)
    if options.json:
        print(json.dumps({"": everything, **dict(zip(SWITCHES, results, strict=True))}))
        return
    print("| without | refused | paid | sets that move |\n|---|---|---|---|")
    for rule, counts in zip(SWITCHES, results, strict=True):
        refused, paid = (sum(counts[n][i] - everything[n][i] for n in CALLS) for i in (0, 1))
        points = {
            n: 100 * (sum(everything[n]) - sum(counts[n])) / (len(CALLS[n]) or 1) for n in CALLS
        }
        moved = ", ".join(f"{n} {by:+.1f}" for n, by in points.items() if abs(by) >= 0.2)
        print(f"| `{rule}` | {refused:+} | {paid:+} | {moved} |", flush=True)


if __name__ == "__main__":
    main()
