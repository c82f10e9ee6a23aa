"""Compare the verdicts of `function_call` with BFCL's own checker and with verl's `rlla`. Prints two tables.

    python benchmarks/call_agreement.py --gorilla ../gorilla/.git --rlla test.parquet \\
        --verl-python .venv-verl-0.9.1/bin/python

Each gold is answered rightly, and with changes of one thing. `--gorilla` is the git directory of a clone of
ShishirPatil/gorilla, whose checker runs in this process; `--rlla` rows of ToolRL's rlla_4k. `rlla` pays if its part
for accuracy is the highest. README.md explains the disagreements.
"""

from __future__ import annotations

import argparse
import ast
import enum
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow.parquet as pq

from rewardkit.scorers.function_call import score
from rewardkit.structures.calls import Call
from rewardkit.structures.gold_calls import read_golds

BFCL = "berkeley-function-call-leaderboard/bfcl_eval"
SETS = "simple_python multiple parallel parallel_multiple live_simple live_multiple".split()
KINDS = "drop extra name value type case argless swap copy float quote".split()
#: Changes of each gold of BFCL, and of each one of rlla.
CHANGES = 6

#: What runs in verl's environment: pairs of response and gold on its input, rewards on its output.
RLLA = """
import contextlib, io, json, sys
from verl.utils.reward_score.rlla import compute_score
rewards = []
for response, gold in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()):
        info = {"experiment_name": "qwen"}
        rewards.append(compute_score("rlla", response, gold, info)["accuracy_reward"])
json.dump(rewards, sys.stdout)
"""


class Language(enum.Enum):
    """The languages that BFCL's checker knows, under the names that it uses."""

    PYTHON, JAVA, JAVASCRIPT = "python", "java", "javascript"


def bfcl_checker(show: Callable[[str], str]) -> Callable[[str, Any, Any, str], object]:
    """Return a function from a response, functions, gold and set to BFCL's verdict, or its exception."""
    source = show("eval_checker/ast_eval/ast_checker.py")
    tables = {"JAVA_TYPE_CONVERSION": {}, "JS_TYPE_CONVERSION": {}}
    model = type("Model", (), {"underscore_to_dot": False})
    names: dict[str, Any] = {"Language": Language, "MODEL_CONFIG_MAPPING": {"m": model}, **tables}
    tree = ast.parse(source)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.ImportFrom) and str(node.module).startswith("bfcl_eval"))
    ]
    exec(compile(tree, "ast_checker.py", "exec"), names)
    decoder = [
        node
        for node in ast.parse(show("model_handler/utils.py")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("resolve_ast")
    ]
    names["ast"] = ast
    exec(compile(ast.Module(decoder, []), "utils.py", "exec"), names)

    def check(response: str, functions: Any, gold: Any, name: str) -> object:
        try:
            parsed: Any = ast.parse(response, mode="eval").body
            calls = [names["resolve_ast_call"](item) for item in parsed.elts]
            return names["ast_checker"](functions, calls, gold, Language.PYTHON, name, "m")["valid"]
        except Exception as error:  # noqa: BLE001 - of a checker that is measured
            return type(error).__name__

    return check


def first(value: Any, place: int = 0) -> Any:
    """Return the value of a gold that lists values, at a place of each list."""
    if isinstance(value, dict) and all(isinstance(each, list) for each in value.values()):
        items = {key: [each for each in item if each != ""] for key, item in value.items()}
        return {key: first(item[place], place) for key, item in items.items() if item}
    return [first(item, place) for item in value] if isinstance(value, list) else value


def right_calls(text: str, place: int = 0) -> list[Call]:
    """Return the calls of a gold."""
    golds = read_golds(text)
    return [
        Call(g.name, first(g.arguments, place) if g.lists_values else g.arguments) for g in golds
    ]


def change(calls: list[Call], rng: Random) -> tuple[str, list[Call]]:
    """Return calls with a change of one thing, and its name."""
    calls = [Call(call.name, dict(call.arguments)) for call in calls]
    kind, index = rng.choice(KINDS), rng.randrange(len(calls))
    name, arguments = calls[index]
    if kind == "drop":
        calls.pop(index)
    elif kind == "copy":
        calls.append(calls[index])
    elif kind == "name":
        calls[index] = Call(f"{name}s", arguments)
    elif kind == "extra":
        arguments["zzz"] = 1
    elif kind == "swap":
        rng.shuffle(calls)
    elif arguments:
        key = rng.choice(list(arguments))
        if kind == "argless":
            del arguments[key]
        else:
            arguments[key] = other_value(arguments[key], kind)
    return kind, calls


def other_value(value: Any, kind: str) -> Any:
    """Return a value with another type or spelling, or another value where it has none of that kind."""
    if kind == "type":
        return [value] if isinstance(value, str) else str(value)
    if kind == "float" and type(value) in (int, float):
        return float(value) if type(value) is int else int(value)
    if isinstance(value, str):
        spellings = {"case": value.upper(), "quote": value.replace(" ", "-").replace(".", "")}
        return spellings.get(kind, f"{value}x")
    if type(value) is bool:
        return not value
    if isinstance(value, dict):
        return {**value, "zzz": 1}
    return [*value, 1] if isinstance(value, list) else 7 if value is None else value + 1


def other_flag(value: Any) -> Any:
    """Return `true` for 1 and 1 for `true`, and so for 0; any other value unchanged."""
    if type(value) is bool:
        return int(value)
    return bool(value) if type(value) is int and value in (0, 1) else value


def python_text(calls: list[Call]) -> str:
    """Return calls as BFCL asks for them."""
    return f"[{', '.join(f'{n}({arguments_text(a)})' for n, a in calls)}]"


def arguments_text(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items())


def rlla_block(calls: list[Call], key: str = "parameters") -> str:
    lines = [json.dumps({"name": call.name, key: call.arguments}) for call in calls]
    return "\n".join(("<tool_call>", *lines, "</tool_call>"))


def rlla_responses(calls: list[Call], rng: Random) -> Iterator[tuple[str, str]]:
    """Yield responses to a gold of rlla, each with what is changed in it."""
    thought, block = "<think>so</think>\n", rlla_block(calls)
    flags = [Call(n, {key: other_flag(value) for key, value in a.items()}) for n, a in calls]
    values = [{"name": call.name, "parameters": call.arguments} for call in calls]
    yield "nothing", thought + block
    for _ in range(CHANGES):
        kind, changed = change(calls, rng)
        yield f"changed: {kind}", thought + rlla_block(changed)
    if rlla_block(flags) != block:
        yield "`true` for 1, 1 for `true`", thought + rlla_block(flags)
    yield "`arguments` for `parameters`", thought + rlla_block(calls, "arguments")
    yield "a block for each call", thought + "\n".join(rlla_block([call]) for call in calls)
    yield "a JSON list", f"{thought}<tool_call>\n{json.dumps(values)}\n</tool_call>"
    yield "the call in the thought", f"<think>{block}</think>\n<response>no</response>"
    yield "a second block", f"{thought}{block}\n{block}"
    yield "a repeated name", thought + block.replace('"name"', '"name": "x", "name"')
    yield "no call", f"{thought}<response>ok</response>"


def table(verdicts: Counter[tuple[str, bool, bool]], theirs: str) -> None:
    print(f"| response | number | paid by {theirs} | paid by `function_call` | differ |")
    print("|---|---|---|---|---|")
    for kind in dict.fromkeys(kind for kind, _, _ in verdicts):
        rows = {pair: verdicts[(kind, *pair)] for pair in _PAIRS}
        counts = (
            sum(rows.values()),
            rows[True, True] + rows[True, False],
            rows[True, True] + rows[False, True],
            rows[True, False] + rows[False, True],
        )
        print(f"| {kind} | {' | '.join(f'{count:,}' for count in counts)} |")
    total = sum(verdicts.values())
    differ = sum(n for (_, one, other), n in verdicts.items() if one != other)
    print(f"\n{total:,} responses, {differ:,} verdicts differ.\n")


_PAIRS = [(one, other) for one in (True, False) for other in (True, False)]


def show_file(folder: Path, path: str) -> str:
    command = ["git", "--git-dir", str(folder), "show", f"HEAD:{BFCL}/{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def golds_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return [
        *map(
            json.loads, show_file(folder, f"data/possible_answer/BFCL_v4_{name}.json").splitlines()
        )
    ]


def compare_bfcl(folder: Path) -> None:
    show = partial(show_file, folder)
    check, rng = bfcl_checker(show), Random(5)
    verdicts, raised = Counter[tuple[str, bool, bool]](), Counter[str]()
    for name in SETS:
        lines = map(json.loads, show(f"data/BFCL_v4_{name}.json").splitlines())
        functions = {row["id"]: row["function"] for row in lines}
        for row in golds_of(folder, name):
            gold, truth = json.dumps(row["ground_truth"]), row["ground_truth"]
            calls = right_calls(gold)
            responses = [("nothing", calls), ("nothing", right_calls(gold, -1))]
            for _ in range(CHANGES):
                kind, changed = change(calls, rng)
                responses.append((f"changed: {kind}", changed))
            for kind, answer in responses:
                text = python_text(answer)
                theirs = check(text, functions[row["id"]], truth, name)
                raised.update([] if isinstance(theirs, bool) else [str(theirs)])
                verdicts[kind, theirs is True, bool(score(text, gold).correct)] += 1
    table(verdicts, "BFCL")
    print(f"BFCL's checker raised: {dict(raised) or 'nothing'}\n")


def rlla_golds(parquet: Path | None, gorilla: Path | None) -> Iterator[str]:
    """Yield the golds of rlla_4k, and those of a set of BFCL in its form, which have numbers and flags."""
    for row in pq.read_table(parquet).to_pylist() if parquet else ():  # type: ignore[no-untyped-call]
        if "<tool_call>" in row["reward_model"]["ground_truth"]:
            yield row["reward_model"]["ground_truth"]
    for row in golds_of(gorilla, "parallel_multiple") if gorilla else ():
        yield rlla_block(right_calls(json.dumps(row["ground_truth"])))


def compare_rlla(golds: Iterable[str], python: Path) -> None:
    rng, samples = Random(5), list[tuple[str, str, str]]()
    for gold in golds:
        samples += [(kind, text, gold) for kind, text in rlla_responses(right_calls(gold), rng)]
    pairs = json.dumps([(f"<|im_start|>assistant{text}", gold) for _, text, gold in samples])
    command = [str(python), "-c", RLLA]
    done = subprocess.run(command, input=pairs, capture_output=True, text=True, check=True)
    rewards = json.loads(done.stdout.splitlines()[-1])
    verdicts = Counter(
        (kind, reward > 3 - 1e-9, bool(score(text, gold).correct))
        for (kind, text, gold), reward in zip(samples, rewards, strict=True)
    )
    table(verdicts, "`rlla`")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gorilla", type=Path, help="git directory of BFCL's repository")
    parser.add_argument("--rlla", type=Path, help="parquet of rlla_4k")
    parser.add_argument("--verl-python", type=Path, help="Python of an environment with verl")
    options = parser.parse_args()
    if options.gorilla:
        compare_bfcl(options.gorilla)
    if options.verl_python:
        compare_rlla(rlla_golds(options.rlla, options.gorilla), options.verl_python)


if __name__ == "__main__":
    main()
