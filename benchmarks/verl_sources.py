"""Compare verl's default reward with ours, by `data_source`, on the same responses. Prints a table.

    python benchmarks/verl_sources.py --shared ../shared --verl-python .venv-verl-0.9.1/bin/python

Every data source of `default_compute_score` is called as verl calls it, and our scorer is the one that `auto`
takes for a row of that name. The rows are those of `data`, of `cases` and of the packaged samples. The
responses are the row's own solution, its gold in several forms, a wrong neighbour of the gold, and
labelled responses of models; programs are the row's solution, that of another row, and labelled ones.

A verdict is "paid" if verl's `acc`, or a score of at least 0.9, says so, and if our `correct` does.
Below the table stands each kind of response on which the two differ, with an example.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import half_of, load
from peers.graders import Answers, ask

from rewardkit.answers.extract import gold_answer
from rewardkit.launch.preflight.reward import VERL_SOURCES
from rewardkit.preprocess.source import SAMPLES
from rewardkit.registry import DATA_SOURCES
from rewardkit.row_files import rows_in
from rewardkit.scorers.gold import another_answer
from rewardkit.scorers.load import scorer_for

Row = dict[str, Any]

#: Forms of an answer; the first two of a source are those that its prompts ask for and the box.
HASHES, BOX, LINE, TAGS = "#### @", "\\boxed{@}", "Answer: @", "<answer>@</answer>"
THOUGHT, STATED = "<think>So.</think> \\boxed{@}", "The answer is @."
#: Seconds that a call of verl may take: it runs a program up to eleven times.
CALL_SECONDS = 20


class Call(NamedTuple):
    """A response to a row, with what it is; no example is printed of the half that is held out."""

    kind: str
    response: str
    gold: Any
    label: bool | None = None
    half: str = "build"
    info: Row | None = None


def read(path: Path, limit: int) -> Iterator[Row]:
    yield from islice((row for _, row in rows_in(path)), limit)


def answers(rows: Iterable[tuple[str, str, str]], *forms: str) -> Iterator[Call]:
    """Yield the solution of each row, its gold in each form, and a wrong answer in the first form."""
    for question, solution, gold in rows:
        info = {"question": question} if question else {}
        if solution:
            yield Call("the row's solution", solution, gold, True, info=info)
        for form in forms:
            yield Call(f"gold as {form}", form.replace("@", gold), gold, True, info=info)
        other = another_answer(gold)
        wrong = {"a wrong neighbour": other, "the gold or another": f"{gold} or {other}"}
        if gold.isdigit() and int(gold):
            wrong["a hundredth of the gold"] = f"{int(gold) / 100:.2f}"
        for kind, text in wrong.items():
            yield Call(kind, forms[0].replace("@", text), gold, False, info=info)


def labelled(files: Iterable[Path], limit: int) -> Iterator[Call]:
    """Yield labelled responses with one gold."""
    for file in files:
        cases = (case for case in load(file) if len(case.golds) == 1)
        for case in islice(cases, limit):
            kind = f"labelled {'right' if case.label else 'wrong'}, {file.stem}"
            yield Call(kind, case.response, case.golds[0], case.label, case.half)


def open_answers(shared: Path, limit: int, prefix: str) -> Iterator[Call]:
    """Yield short labelled answers to open questions, in the tags that Search-R1's prompt asks for."""
    file = shared / "cases/qa_evouna.jsonl"
    rows = (json.loads(line) for line in file.open(encoding="utf-8"))
    short = (r for r in rows if r["id"].startswith(prefix) and r["kind"] == "qa_short")
    for row in islice((row for row in short if row["label"] is not None), limit):
        kind = f"labelled {'right' if row['label'] else 'wrong'}, {file.stem}"
        text, gold = TAGS.replace("@", row["solution_str"]), {"target": row["ground_truth"]}
        yield Call(kind, text, gold, row["label"], half_of(row), {"question": row["question"]})


def program(kind: str, code: str, tests: Any, label: bool, half: str = "build") -> Call:
    return Call(kind, f"```python\n{code}\n```", json.dumps(tests), label, half)


def packaged_programs() -> Iterator[Call]:
    """Yield a right program for each packaged row of Eurus-2 that has one, and that of another row."""
    solutions = [
        (row["question"].partition("\n")[0], json.loads(row["solutions"])[-1])
        for split in ("train", "test")
        for row in read(SAMPLES / f"apps/{split}.jsonl", 100)
        if row["solutions"]
    ]
    for split in ("train", "validation"):
        for row in read(SAMPLES / f"eurus-2-code/{split}.jsonl", 100):
            prompt, truth = row["prompt"][-1]["content"], row["reward_model"]["ground_truth"]
            for question, code in solutions if row["ability"] == "code" else ():
                is_right = prompt.startswith(question)
                if is_right and ("input()" in code) == ("fn_name" not in truth):
                    yield program("the row's program", code, json.loads(truth), label=True)
                    other = solutions[0][1] if code != solutions[0][1] else solutions[-1][1]
                    yield program("that of another row", other, json.loads(truth), label=False)


def quixbugs(cases: Path) -> Iterator[Call]:
    """Yield classic algorithms and the same with a bug, with their calls as TACO's rows have them."""
    folder = cases / "code_quixbugs"
    for file in sorted((folder / "json_testcases").glob("*.json")):
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        calls = [(each if isinstance(each, list) else [each], wanted) for each, wanted in lines]
        tests = {
            "fn_name": file.stem,
            "inputs": ["\n".join(map(json.dumps, given)) for given, _ in calls],
            "outputs": [json.dumps(wanted) for _, wanted in calls],
        }
        for label in (True, False):
            name = f"{'correct_' * label}python_programs/{file.stem}.py"
            kind = f"labelled {'right' if label else 'wrong'}, QuixBugs"
            half = half_of({"question": file.stem})
            yield program(kind, (folder / name).read_text("utf-8"), tests, label, half)


def probe(cases: Path) -> Iterator[Call]:
    for row in read(cases / "code_probe.jsonl", 100):
        if "inputs" in row["tests"]:
            kind = f"labelled {'right' if row['label'] else 'wrong'}, code_probe"
            yield program(kind, row["code"], row["tests"], row["label"])


def columns(path: Path, limit: int, names: tuple[str, str, str], *forms: str) -> Iterator[Call]:
    """Yield the calls of a file, whose columns have question, solution and gold."""
    triples = (tuple(str(row.get(name) or "") for name in names) for row in read(path, limit))
    yield from answers(((q, s, gold_answer(gold)) for q, s, gold in triples), *forms)


def sets(shared: Path, limit: int, *names: str) -> Iterator[Call]:
    yield from labelled((shared / f"cases/{name}.jsonl" for name in names), limit)


def gsm8k(shared: Path, limit: int) -> Iterator[Call]:
    file, names = shared / "data/gsm8k/main/test-00000-of-00001.parquet", ("question", "answer")
    forms = (HASHES, BOX, LINE, STATED, "#### $@", "#### **@**")
    yield from columns(file, limit, (*names, "answer"), *forms)
    yield from sets(shared, limit, "real_gsm8k_openai", "real_gsm8k_abel", "real_gsm8k_gsmplus")


def lighteval(shared: Path, limit: int) -> Iterator[Call]:
    file, names = shared / "data/math/data/test-00000-of-00001.parquet", ("problem", "solution")
    yield from columns(file, limit, (*names, "solution"), BOX, LINE, STATED)
    yield from sets(shared, limit, "mathl5_pairs", "real_tora_rho")


def math500(shared: Path, limit: int) -> Iterator[Call]:
    file, names = shared / "data/math-500/test.jsonl", ("problem", "solution", "answer")
    yield from columns(file, limit, names, BOX, LINE, STATED)
    yield from sets(shared, limit, "real_math500_pairs", "real_math_qwen25")


def dapo(shared: Path, limit: int) -> Iterator[Call]:
    rows = read(shared / "data/dapo-math-17k/data/dapo-math-17k-dedup.parquet", limit)
    triples = ((r["prompt"][0]["content"], "", r["reward_model"]["ground_truth"]) for r in rows)
    yield from answers(triples, LINE, BOX, STATED, "Answer: $@$", "Answer: **@**", "Answer: @.")


def aime(shared: Path, limit: int) -> Iterator[Call]:
    file = shared / "data/aime_2024/Maxwell-Jia/aime_2024_problems.parquet"
    names = ("Problem", "Solution", "Answer")
    yield from columns(file, limit, names, BOX, LINE, STATED, "Answer: **@**")


def numina(shared: Path, limit: int) -> Iterator[Call]:
    for split in ("train", "validation"):
        rows = read(SAMPLES / f"eurus-2/{split}.jsonl", limit)
        golds = (row["reward_model"]["ground_truth"] for row in rows if row["ability"] == "math")
        yield from answers((("", "", gold) for gold in golds), BOX, LINE, STATED)
    yield from sets(shared, limit, "hardverify")


def geometry3k(shared: Path, limit: int) -> Iterator[Call]:
    for file in sorted((shared / "data/geometry3k/data").glob("*.parquet")):
        forms = (THOUGHT, BOX, STATED, "<think>\\boxed{@}</think> That is all.")
        yield from columns(file, limit, ("problem", "", "answer"), *forms)


def hotpotqa(shared: Path, limit: int) -> Iterator[Call]:  # noqa: ARG001 - as the others
    for row in read(SAMPLES / "hotpotqa/train.jsonl", limit):
        golds = row["golden_answers"]
        for form, right in ((TAGS, True), (STATED, True), (TAGS, False)):
            text = form.replace("@", golds[0] if right else another_answer(*golds))
            kind = f"gold as {form}" if right else "a wrong neighbour"
            yield Call(kind, text, {"target": golds}, right, info={"question": row["question"]})


def programs(shared: Path, limit: int) -> Iterator[Call]:  # noqa: ARG001 - as the others
    yield from packaged_programs()
    yield from quixbugs(shared / "cases")
    yield from probe(shared / "cases")


NUMINA = " ".join(source for source in VERL_SOURCES if source.startswith("numina_"))
#: The data sources with one function of verl, and the calls of their rows.
SOURCES: dict[str, Callable[[Path, int], Iterator[Call]]] = {
    "openai/gsm8k": gsm8k,
    "lighteval/MATH DigitalLearningGmbH/MATH-lighteval": lighteval,
    "HuggingFaceH4/MATH-500": math500,
    "math_dapo math_dapo_reasoning": dapo,
    "aime* math": aime,
    NUMINA: numina,
    "codecontests apps codeforces taco": programs,
    "hiyouga/geometry3k": geometry3k,
    "searchR1_nq": lambda *place: open_answers(*place, "evouna:NQ"),
    "searchR1_triviaqa": lambda *place: open_answers(*place, "evouna:TQ"),
    "searchR1_hotpotqa": hotpotqa,
}
HEAD = (
    "| data_source | scorer | calls | both pay | none pays | only verl | only ours | wrong ones: verl pays "
    "| ours pays |\n|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--shared", type=Path, required=True, help="folder of the data and cases")
    parser.add_argument("--verl-python", type=Path, default=root / ".venv-verl-0.9.1/bin/python")
    parser.add_argument("--limit", type=int, default=300, help="rows of each file")
    parser.add_argument("--only", nargs="+", help="data sources to compare, the first of each row")
    options = parser.parse_args()
    print(HEAD)
    lines = []
    for names, make in SOURCES.items():
        if not options.only or names.split()[0] in options.only:
            calls = [*make(options.shared, options.limit)]
            line, notes = compare(names.split(), calls, options.verl_python)
            print(line, flush=True)
            lines += notes
    absent = sorted({*VERL_SOURCES} - {*" ".join(SOURCES).split()})
    print("\nWithout rows here, with the same functions:", ", ".join(absent), "\n")
    print("\n".join(lines))


def compare(names: list[str], calls: list[Call], python: Path) -> tuple[str, list[str]]:
    """Return the line of the table for some data sources, and lines on what differs."""
    source = names[0].replace("*", "24")
    requests = [{"response": call.response, "gold": [source, call.gold]} for call in calls]
    theirs = ask(python, "verl default", requests, CALL_SECONDS)
    if not isinstance(theirs, Answers):
        sys.exit(theirs)
    scorer = scorer_for(source, {})
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ours = [*pool.map(lambda c: scorer(c.response, c.gold, c.info).correct, calls)]
    pairs = [(verdict.right, paid) for verdict, paid in zip(theirs.verdicts, ours, strict=True)]
    counts = map(pairs.count, ((True, True), (False, False), (True, False), (False, True)))
    wrong = [pair for call, pair in zip(calls, pairs, strict=True) if call.label is False]
    shares = (f"{sum(pair[i] for pair in wrong)} of {len(wrong)}" for i in (0, 1))
    own = DATA_SOURCES[names[0]].partition(":")[0].rpartition(".")[2]
    cells = (", ".join(f"`{name}`" for name in names), f"`{own}`", len(calls), *counts, *shares)
    failures = [verdict.problem for verdict in theirs.verdicts if verdict.problem]
    notes = [*differences(source, calls, pairs)]
    if failures:
        notes.append(
            f"- `{source}`: verl fails {len(failures)} times, with {sorted(set(failures))}"
        )
    return f"| {' | '.join(map(str, cells))} |", notes


def differences(source: str, calls: list[Call], pairs: list[tuple[bool, bool]]) -> Iterator[str]:
    """Yield a line for each kind of response on which the verdicts differ."""
    for kind in dict.fromkeys(call.kind for call in calls):
        of_kind = [(c, p) for c, p in zip(calls, pairs, strict=True) if c.kind == kind]
        for payer, pair in (("verl", (True, False)), ("ours", (False, True))):
            matching = [call for call, each in of_kind if each == pair]
            examples = [call for call in matching if call.half == "build"][:1]
            example = "".join(f": {c.response[-90:]!r} for {str(c.gold)[:60]!r}" for c in examples)
            if matching:
                yield f"- `{source}`, {kind}: only {payer} pays {len(matching)} of {len(of_kind)}{example}"


if __name__ == "__main__":
    main()
