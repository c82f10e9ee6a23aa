"""Read the peers' own tests of code rewards as cases for scorer `code`, without running or copying them.

A test file is parsed, and the literals that its tests assign are followed by name. A test that mocks the
sandbox, builds its data in a loop, or needs a language other than Python is left out.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A response, its tests, and whether its authors call it right.

    `program` is set for a test of the extraction: the program that the peer takes from the response.
    """

    id: str
    response: str
    ground_truth: Any
    label: bool
    options: Mapping[str, Any] = MappingProxyType({})
    program: str | None = None


class Test:
    """A test function, with the names of its module, of its parameters and of what it has assigned."""

    def __init__(self, function: Any, names: dict[str, Any]) -> None:
        self.function, self.names = function, names

    def nodes(self) -> Iterator[ast.AST]:
        """Yield the statements one after another, and keep the literals that they assign."""
        queue = [*self.function.body]
        while queue:
            node = queue.pop(0)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                queue = [*getattr(node, "body", ()), *queue]
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = self.value(node.value)
            yield node

    def value(self, node: ast.AST | None) -> Any:
        """Return the value of a literal that may have names in it; None for anything else."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(each) for each in items]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(map(self.value, keys), map(self.value, values), strict=True)
                return dict(pairs)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
                return -value
            case ast.BinOp(left=ast.List() as items, op=ast.Mult()):
                return self.value(items)
            case ast.Subscript(value=whole, slice=index):
                key, value = self.value(index), self.value(whole)
                return value.get(key) if isinstance(value, dict) else None
            case ast.Call(func=ast.Attribute(attr="dumps"), args=[text]):
                return json.dumps(self.value(text))
            case ast.Call(func=ast.Name(id="Message"), keywords=keywords):
                return {each.arg: self.value(each.value) for each in keywords}
        return None

    def call(self, node: ast.AST, name: str) -> tuple[list[Any], dict[str, Any]] | None:
        """Return the arguments of the first call of a function below a node; None if there is none."""
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and name == getattr(
                each.func, "attr", getattr(each.func, "id", "")
            ):
                keywords = {
                    keyword.arg or "": self.value(keyword.value) for keyword in each.keywords
                }
                return [self.value(argument) for argument in each.args], keywords
        return None

    def expected(self, node: ast.AST, attribute: str) -> Any:
        """Return what an assertion compares an attribute with: a value, or "less"; None if it does not."""
        if not isinstance(node, ast.Assert):
            return None
        for each in ast.walk(node):
            match each:
                case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(attr=name)) if (
                    name == attribute
                ):
                    return False
                case ast.Compare(left=left, ops=ops, comparators=right) if attribute in (
                    getattr(side, "attr", getattr(side, "id", "")) for side in (left, *right)
                ):
                    return "less" if isinstance(ops[-1], ast.Lt) else self.value(right[0])
        return True if getattr(node.test, "attr", "") == attribute else None


def tests(file: Path) -> Iterator[Test]:
    """Yield the test functions of a file, once for each row of their parameters."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    module = Test(tree, {})
    for node in [*module.nodes()]:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or "test" not in node.name:
            continue
        names = [each.arg for each in node.args.args if each.arg != "self"]
        rows: list[Any] = [[]]
        for each in node.decorator_list:
            if isinstance(each, ast.Call) and isinstance((each.args or [0])[-1], ast.List):
                rows = module.value(each.args[-1])
        for row in rows:
            yield Test(node, {**module.names, **dict(zip(names, row, strict=False))})


def pairs(tests: Any) -> dict[str, Any]:
    """Return the ground truth of tests in any of the peers' layouts."""
    if isinstance(tests, str):
        return {"test": tests}
    if isinstance(tests, dict) and "functional" in tests:
        name = re.search(r"check\((.+)\)\s*$", tests["functional"])
        return {"test": tests["functional"], "entry_point": name[1] if name else ""}
    if isinstance(tests, dict):  # TACO puts the result of a call into a list
        wrapped = tests.get("fn_name") and all(isinstance(each, list) for each in tests["outputs"])
        return {**tests, "outputs": [each[0] for each in tests["outputs"]]} if wrapped else tests
    truth = {
        "inputs": [each["input"] for each in tests],
        "outputs": [each.get("output", each.get("expected_output")) for each in tests],
    }
    name = tests[0].get("metadata", {}).get("func_name") if tests else None
    return {**truth, "fn_name": name} if name else truth


def verl(folder: Path) -> Iterator[Case]:
    """Yield the tests of `prime_code` and of the client of SandboxFusion."""
    for test in tests(folder / "tests_utils_reward_score_test_sandbox_on_cpu.py"):
        if test.function.name == "test_prime_code":
            lists = [test.names[f"prime_code_{key}"] for key in ("answers", "gts", "scores")]
            # The list of answers is written once and repeated.
            for number, (answer, gold, score) in enumerate(
                zip(lists[0] * 2, *lists[1:], strict=True)
            ):
                yield Case(f"prime_code {number}", answer, json.loads(gold), score == 1)
    for test in tests(
        folder / "tests_utils_reward_score_reward_score_test_sandbox_fusion_on_cpu.py"
    ):
        call = None
        for node in test.nodes() if "mock" not in ast.unparse(test.function.args) else ():
            call = test.call(node, "check_correctness") or call
            results = test.expected(node, "results")
            if call and isinstance(results, list) and "language" not in call[1]:
                (_, tests_of, program), keywords = call
                known = program and None not in (tests_of or {}).get("outputs", [])
                if known or "assert_case" in (tests_of or {}):
                    right, seconds = set(results) == {True}, keywords.get("timeout", 6)
                    yield Case(test.function.name, program, tests_of, right, {"seconds": seconds})


def open_instruct(folder: Path) -> Iterator[Case]:
    """Yield each assertion of the tests of `get_successful_tests_fast` and of the server."""
    for file in sorted(folder.glob("*.py")):
        for test in tests(file):
            given: Any = None
            for node in test.nodes():
                if call := test.call(node, "get_successful_tests_fast"):
                    given = call[1]
                payload = [v for v in test.names.values() if isinstance(v, dict) and "program" in v]
                given = payload[-1] if payload else given
                equal = test.call(node, "assertEqual") if isinstance(node, ast.Expr) else None
                if not equal or not given or not isinstance(equal[0][1], list):
                    continue
                for number, (text, passes) in enumerate(
                    zip(given["tests"] or [], equal[0][1], strict=False)
                ):
                    name = f"{test.function.name} {test.names.get('name', '')} {number}"
                    yield Case(name, given["program"], {"assert_case": [text]}, passes == 1)


def nemo_gym(folder: Path) -> Iterator[Case]:
    """Yield the tests and rollouts of the servers `code_gen` and `evalplus`, without C++."""
    prefix = "resources_servers_"
    for test in tests(folder / f"{prefix}code_gen_tests_test_app.py"):
        source = [each for each in ast.walk(test.function) if isinstance(each, ast.Dict)]
        texts = [value["text"] for value in map(test.value, source) if "text" in value]
        golds = [value for value in map(test.value, source) if "unit_tests" in value]
        rewards = [test.expected(node, "reward") for node in test.nodes()]
        for reward in filter(lambda each: each is not None, rewards if texts and golds else ()):
            yield Case(test.function.name, texts[0], golds[0]["unit_tests"], reward == 1)
    for test in tests(folder / f"{prefix}evalplus_tests_test_app.py"):
        call = None
        for node in test.nodes():
            call = test.call(node, "_post_verify") or call
            reward = test.expected(node, "reward")
            if call and not call[1] and reward is not None:
                truth = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [1, 2]}
                yield Case(test.function.name, call[0][1], truth, reward == 1)
            if isinstance(node, ast.Assert) and (call := test.call(node, "extract_code_strict")):
                program = test.value(node.test.comparators[0])  # type: ignore[attr-defined]
                yield Case(test.function.name, call[0][0], None, True, {}, program)
                call = None
    golds = json_rows(folder / f"{prefix}code_gen_data_example.jsonl")
    golds = {row["responses_create_params"]["input"][-1]["content"]: row for row in golds}
    for row in json_rows(folder / f"{prefix}code_gen_data_example_rollouts.jsonl"):
        gold = golds[row["responses_create_params"]["input"][-1]["content"]]
        truth = gold["verifier_metadata"]["unit_tests"]
        yield Case(gold["hash_id"], row["extracted_model_output"], truth, row["reward"] == 1)
    data = (folder.parent / "openai+human-eval/data_HumanEval.jsonl.gz").read_bytes()
    problems = {r["task_id"]: r for r in map(json.loads, gzip.decompress(data).splitlines())}
    for row in json_rows(folder / f"{prefix}evalplus_data_example_rollouts.jsonl"):
        problem = problems[row["verifier_metadata"]["task_id"]]
        truth = {key: problem[key] for key in ("test", "entry_point", "prompt")}
        yield Case(problem["task_id"], row["extracted_model_output"], truth, row["is_correct"])


def sandbox_fusion(folder: Path) -> Iterator[Case]:
    """Yield its tests of cheats and of the extraction, and the solutions of its sample of MBPP."""
    prefix = "sandbox_tests_datasets_"
    for test in tests(folder / f"{prefix}test_antihack.py"):
        call = None
        for number, node in enumerate(test.nodes() if "apython" in test.function.name else ()):
            call = test.call(node, "expand_code") or call
            if (accepted := test.expected(node, "accepted")) is not None and call:
                truth = {"assert_case": ["assert True"]}
                yield Case(f"antihack {number}", call[0][0], truth, accepted)
    for test in tests(folder / f"{prefix}test_extraction.py"):
        yield from extractions(test)
    problems = json_rows(folder / f"{prefix}samples_code_eval_code_contests.jsonl")
    for test in tests(folder / f"{prefix}test_code_contests.py"):
        for node in test.nodes() if "python" in test.function.name else ():
            if call := test.call(node, "SubmitRequest"):
                texts = json.loads(next(r["test"] for r in problems if r["id"] == call[1]["id"]))
                texts = [[each["input"]["stdin"], each["output"]["stdout"]] for each in texts]
                truth = dict(zip(("inputs", "outputs"), zip(*texts, strict=True), strict=True))
                yield Case(test.function.name, call[1]["completion"], truth, False)
    for row in json_rows(folder / f"{prefix}samples_code_eval_mbpp.jsonl"):
        asserts = row["test_list"] + row["labels"]["challenge_test_list"]
        truth = {"assert_case": asserts, "prelude": row["labels"]["test_setup_code"]}
        yield Case(f"mbpp {row['id']}", row["canonical_solution"], truth, True)


def extractions(test: Test) -> Iterator[Case]:
    """Yield the programs that a test of SandboxFusion expects in responses."""
    responses: dict[str, str] = {}
    for node in test.nodes():
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=name), _])],
                value=ast.Call(args=[text, *more], keywords=keywords),
            ) if "remove_asserts" not in [each.arg for each in keywords]:
                if not more or test.value(more[0]) == "python":
                    responses[name] = test.value(text)
            case ast.Assert():
                names = re.findall(r"(\w+)\.strip\(\)", ast.unparse(node))
                if len(names) == 2 and names[0] in responses:
                    program = test.names[names[1]]
                    yield Case(names[1], responses[names[0]], None, True, {}, program)


def rllm(folder: Path) -> Iterator[Case]:
    """Yield the tests of its rewards, without SWE-bench."""
    for test in tests(folder / "tests_rewards_test_code_reward.py"):
        gold: Any = None
        for number, node in enumerate(test.nodes() if "swe" not in test.function.name else ()):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                gold = (test.value(node.value) or {}).get("ground_truth") or gold
            label = test.expected(node, "is_correct")
            if label is not None:
                response = test.names["model_response"]
                yield Case(f"{test.function.name} {number}", response, pairs(gold), label)


def skyrl(folder: Path) -> Iterator[Case]:
    """Yield the tests of its environment `lcb`."""
    for number, test in enumerate(tests(folder / "skyrl-gym_tests_test_lcb.py")):
        response, golds, reward = (
            test.names[each] for each in ("model_response", "tests", "expected_reward")
        )
        yield Case(f"lcb {number}", response, pairs(json.loads(golds)), reward == 1)


def eval_protocol(folder: Path) -> Iterator[Case]:
    """Yield the tests of its local rewards that expect all, nothing or a part."""
    names = ("fractional_code_reward", "local_code_execution_reward", "deepcoder_code_reward")
    for file in sorted(folder.glob("*.py")):
        for test in tests(file):
            call: Any = None
            for node in test.nodes():
                call = next((c for name in names if (c := test.call(node, name))), call)
                score = test.expected(node, "score")
                if not call or score not in (1.0, 0.0, "less"):
                    continue
                gold, message = call[1].get("ground_truth"), (call[1].get("messages") or [None])[-1]
                if message and gold and call[1].get("language") == "python":
                    tests_of = [{"input": "", "output": gold}] if isinstance(gold, str) else gold
                    yield Case(test.function.name, message["content"], pairs(tests_of), score == 1)
                call = None


def json_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


SUITES: dict[str, Callable[[Path], Iterator[Case]]] = {
    "verl-project+verl": verl,
    "allenai+open-instruct": open_instruct,
    "NVIDIA-NeMo+Gym": nemo_gym,
    "bytedance+SandboxFusion": sandbox_fusion,
    "rllm-org+rllm": rllm,
    "NovaSky-AI+SkyRL": skyrl,
    "eval-protocol+python-sdk": eval_protocol,
}
