"""Measure the agreement of scorer `code` with labelled programs and with the peers' own tests. Prints tables.

    python benchmarks/code_agreement.py --cases ../shared/cases --json verdicts.jsonl

A case agrees if a program that its authors call right is paid, and one that they call wrong is not.
`--json` writes every case with its verdict and the first test that fails. `--only` takes names of
sets. README.md explains every disagreement.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import indent
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from code_suites import SUITES, Case

from rewardkit.programs.extract import program_of
from rewardkit.scorers.code import grade


def probe(cases: Path) -> Iterator[Case]:
    """Yield the programs that code rewards get wrong."""
    for row in rows(cases / "code_probe.jsonl"):
        yield Case(row["id"], row["code"], row["tests"], row["label"])


def refactory(cases: Path) -> Iterator[Case]:
    """Yield the students' programs; `prelude` is code that the course puts before each of them."""
    questions = json.loads((cases / "code_refactory_tests.json").read_text(encoding="utf-8"))
    for row in rows(cases / "code_refactory.jsonl"):
        question = questions[str(row["question_id"])]
        tests = [f"assert {each['expression']} == {each['output']}" for each in question["tests"]]
        truth = {"assert_case": tests, "prelude": question["prelude"]}
        yield Case(row["id"], f"{row['code']}\n{question['append']}", truth, row["label"])


def humanevalpack(cases: Path) -> Iterator[Case]:
    """Yield right solutions of HumanEval, and the same with a bug."""
    for row in rows(cases / "code_humanevalpack.jsonl"):
        truth = {"test": row["test"], "entry_point": row["entry_point"]}
        yield Case(row["id"], row["code"], truth, row["label"])


def quixbugs(cases: Path) -> Iterator[Case]:
    """Yield classic algorithms, and the same with a bug, which makes some of them endless."""
    folder = cases / "code_quixbugs"
    node = (folder / "python_testcases/node.py").read_text(encoding="utf-8")
    for file in sorted((folder / "python_testcases").glob("test_*.py")):
        name = file.stem.removeprefix("test_")
        data = folder / f"json_testcases/{name}.json"
        lines = data.read_text(encoding="utf-8").splitlines() if data.exists() else []
        test = quixbugs_test(file, [json.loads(line) for line in lines if line.strip()])
        for label in (True, False):
            source = folder / f"{'correct_' * label}python_programs/{name}.py"
            truth = {"test": test, "entry_point": name, "prelude": node}
            yield Case(
                f"{name}:{label}", source.read_text("utf-8"), truth, label, {"total_seconds": 4.0}
            )


def quixbugs_test(file: Path, data: list[Any]) -> str:
    """Return a test of QuixBugs without pytest's parameters; one that it calls too slow is left out."""
    lines = []
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.FunctionDef) and data:
            body = indent("\n".join(map(ast.unparse, statement.body)), "    ")
            lines.append(f"for input_data, expected in testdata:\n{body}")
        elif not isinstance(statement, (ast.Import, ast.ImportFrom, ast.If)):
            lines.append(ast.unparse(statement))
    text = "\n".join(lines).replace(f"load_json_testcases({file.stem[5:]}.__name__)", repr(data))
    text = re.sub(r"pytest\.skip\(.*\)", "continue", text.replace("pytest.run_slow", "False"))
    return "import pytest\n" * ("approx" in text) + text


def leetcode(cases: Path) -> Iterator[Case]:
    """Yield right solutions of LeetCode's problems after July 2024."""
    file = cases / "code_leetcode/LeetCodeDataset-v0.3.1-test.jsonl.gz"
    for row in map(json.loads, gzip.decompress(file.read_bytes()).decode().splitlines()):
        truth = {"test": row["test"], "entry_point": row["entry_point"], "prelude": row["prompt"]}
        yield Case(row["task_id"], row["completion"], truth, True)


def humaneval(cases: Path) -> Iterator[Case]:
    """Yield the solutions of HumanEval, which continue the prompt."""
    file = cases / "code_suites/openai+human-eval/data_HumanEval.jsonl.gz"
    for row in map(json.loads, gzip.decompress(file.read_bytes()).decode().splitlines()):
        truth = {key: row[key] for key in ("test", "entry_point", "prompt")}
        yield Case(row["task_id"], row["canonical_solution"], truth, True)


SETS: dict[str, Callable[[Path], Iterator[Case]]] = {
    "code_probe": probe,
    "code_refactory": refactory,
    "code_humanevalpack": humanevalpack,
    "code_quixbugs": quixbugs,
    "code_leetcode": leetcode,
    "human-eval": humaneval,
}


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def verdict(case: Case) -> dict[str, Any]:
    """Return a case with our verdict, which is that of an extraction if it names a program."""
    if case.program is not None:
        got = program_of(case.response)
        paid, failure = got.strip() == case.program.strip(), {"got": got}
    else:
        score, result = grade(case.response, json.dumps(case.ground_truth), **case.options)
        paid, failure = score.score == 1.0, {"status": score.status, **result.failure}
    return {"id": case.id, "label": case.label, "paid": paid, "failure": failure}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=Path, required=True, help="folder of the labelled cases")
    parser.add_argument("--json", type=Path, help="file to write each case and its verdict to")
    parser.add_argument("--only", nargs="+", default=[*SETS, *SUITES], metavar="SET")
    parser.add_argument("--limit", type=int, help="cases of each set")
    options = parser.parse_args()
    print("| set | right | paid | wrong | paid | agreement |\n|---|---|---|---|---|---|")
    found, misses = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in options.only:
            if name in SETS:
                cases = [*SETS[name](options.cases)]
            else:
                cases = [*SUITES[name](options.cases / "code_suites" / name)]
            verdicts = [*pool.map(verdict, cases[: options.limit])]
            right, wrong = ([v["paid"] for v in verdicts if v["label"] == x] for x in (True, False))
            agreed = sum(right) + len(wrong) - sum(wrong)
            print(
                f"| `{name}` | {len(right)} | {sum(right)} | {len(wrong)} | {sum(wrong)} "
                f"| {agreed / len(verdicts):.4f} |",
                flush=True,
            )
            found += [{"set": name, **v} for v in verdicts]
    misses = [each for each in found if each["label"] != each["paid"]]
    share = 1 - len(misses) / len(found)
    print(f"\n{len(found):,} cases, {share:.4f} in agreement. Those that disagree:\n")
    for each in misses:
        what = "paid" if each["paid"] else f"not paid: {each['failure']}"
        print(f"- `{each['set']}` `{each['id']}`: {what[:300]}")
    if options.json:
        options.json.write_text("".join(f"{json.dumps(each)}\n" for each in found), "utf-8")


if __name__ == "__main__":
    main()
