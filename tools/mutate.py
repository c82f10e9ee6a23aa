"""Mutation testing: what share of small faults in answers and scorers do their tests notice?

    python tools/mutate.py drawn.jsonl 500 9   # 500 mutants, seed 9: 40 minutes on one core
    python tools/mutate.py drawn.jsonl         # again: those that survived, with today's tests

Works on a copy in a temporary folder, and writes a line per mutant to the file. A mutant is one
change (`changes`: the operators of mutmut, which leaves tables of modules out, and cosmic-ray, which
cannot draw a sample). Every file gives its share, 8 at least; a seed draws the same. A mutant runs
those of `TESTS` that call the function it is in (for a table: its module), the quick ones first,
`SECONDS` long, hypothesis with 15 examples; a failure or a hang kills it. Left out: docstrings,
annotations, what is raised or logged, caches. The figure is the share killed, files weighted by
their number of mutants: an estimate from below, for some mutants change nothing that shows.
"""

import ast
import functools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = [p.relative_to(ROOT) for d in ("answers", "scorers") for p in sorted(ROOT.glob(f"rewardkit/{d}/**/*.py"))]  # fmt: skip
TESTS, SECONDS = ["tests/answers", "tests/scorers"], 15
PAIRS = "Lt LtE|Gt GtE|Eq NotEq|In NotIn|Is IsNot|Add Sub|Mult Div|BitAnd BitOr|LShift RShift|And Or|Break Continue"
SWAPS = {a: b for pair in PAIRS.split("|") for a, b in (pair.split(), pair.split()[::-1])}
SWAPS |= {"Mod": "Mult", "Pow": "Mult", "FloorDiv": "Mult", "USub": "UAdd"}
#: Modules that run in another process, by the module that starts it.
CALLERS = {"_worker_process.py": "worker.py", "_math_verify_target.py": "math_verify.py"}


def changes(node, function):
    """(what, object, attribute, new value) of each small fault in a node."""
    if isinstance(node, ast.Compare):
        for n, name in enumerate(type(op).__name__ for op in node.ops):
            yield f"{name} -> {SWAPS[name]}", node, "ops", [*node.ops[:n], getattr(ast, SWAPS[name])(), *node.ops[n + 1 :]]  # fmt: skip
    if (name := type(getattr(node, "op", None)).__name__) in SWAPS:
        yield f"{name} -> {SWAPS[name]}", node, "op", getattr(ast, SWAPS[name])()
    if (name := type(node).__name__) in ("Break", "Continue"):
        yield f"{name} -> {SWAPS[name]}", node, "__class__", getattr(ast, SWAPS[name])
    if isinstance(old := getattr(node, "value", None), bool | int | float | str):
        new = not old if isinstance(old, bool) else f"XX{old}XX" if isinstance(old, str) else old + 1  # fmt: skip
        yield f"{old!r:.50} -> {new!r:.50}", node, "value", new
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not removed", node, "operand", ast.UnaryOp(ast.Not(), node.operand)
    if isinstance(getattr(node, "test", None), ast.Name | ast.Call | ast.Attribute | ast.NamedExpr):
        yield "condition negated", node, "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.Expr | ast.Assign) and (function or isinstance(node, ast.Expr)):
        yield f"{type(node).__name__} of None", node, "value", ast.Constant(None)
    for key in node.keywords if isinstance(node, ast.Call) else ():
        yield f"argument {key.arg} dropped", node, "keywords", [k for k in node.keywords if k is not key]  # fmt: skip
    for kind in ast.walk(node.type) if isinstance(node, ast.ExceptHandler) else ():
        if isinstance(kind, ast.Name):
            yield f"{kind.id} not caught", kind, "id", "FloatingPointError"


def mutants(node, function=None):
    """(outermost function around it, line, *change) of each mutant of a tree, in order."""
    name, said = getattr(getattr(node, "func", None), "id", ""), getattr(node, "value", None)
    words = isinstance(node, ast.Expr) and isinstance(said, ast.Constant)
    alias = isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation)
    if words or alias or isinstance(node, ast.Raise) or name in ("_log_once", "cast", "TypeVar", "lru_cache"):  # fmt: skip
        return
    function = function or (node if isinstance(node, ast.FunctionDef) else None)
    yield from ((function, getattr(node, "lineno", 0), *change) for change in changes(node, function))  # fmt: skip
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list", "format_spec"):
            for child in value if isinstance(value, list) else [value]:
                yield from mutants(child, function) if isinstance(child, ast.AST) else ()


class Plugin:
    """In pytest: runs the tests of `seconds`, the quick ones first; without them, notes calls."""

    def __init__(self, seconds):
        from hypothesis import HealthCheck, settings

        settings.register_profile("mutate", max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))  # fmt: skip
        self.seconds, self.notes, cached = seconds, {}, functools.lru_cache
        if not seconds:  # no cache may hide a call
            functools.lru_cache = lambda maxsize=0, typed=False: cached(maxsize=0)

    def pytest_collection_modifyitems(self, items):
        if self.seconds:
            items[:] = sorted((i for i in items if i.nodeid in self.seconds), key=lambda i: self.seconds[i.nodeid])  # fmt: skip

    def pytest_runtest_logstart(self, nodeid):
        self.calls, self.started = set(), time.monotonic()
        if not self.seconds:
            sys.settrace(lambda frame, *_: self.calls.add((frame.f_code.co_filename, frame.f_code.co_firstlineno)))  # fmt: skip

    def pytest_runtest_logfinish(self, nodeid):
        sys.settrace(None)
        self.notes[nodeid] = time.monotonic() - self.started, [c for c in self.calls if "/rewardkit/" in c[0]]  # fmt: skip


def in_pytest(seconds):
    """What the process that `run` starts does, in the copy."""
    import pytest

    plugin, files = Plugin(seconds), sorted({name.partition("::")[0] for name in seconds or TESTS})
    flags = ["-xq", "--tb=line", "--hypothesis-profile=mutate", "-pno:cacheprovider", "-pno:xdist", "-Wignore::pytest.PytestAssertRewriteWarning"]  # fmt: skip
    status = pytest.main([*flags, *files], plugins=[plugin])
    if not seconds:
        Path("notes.json").write_text(json.dumps(plugin.notes))
    assert Path(sys.modules["rewardkit"].__file__).is_relative_to(Path.cwd())
    sys.exit(status)


def run(copy, seconds=None, limit=1200):
    """The exit status of pytest in the copy: 0 if no test fails, -1 if it hangs."""
    code = "import json, sys, mutate; mutate.in_pytest(json.load(sys.stdin))"
    environ = {k: v for k, v in os.environ.items() if k != "REWARDKIT_SHARED"} | {"CI": "1", "PYTHONPATH": f"{copy}:{ROOT / 'tools'}"}  # fmt: skip
    environ |= {"PYTHONDONTWRITEBYTECODE": "1"} if seconds else {}
    command = ["prlimit", "--as=8589934592", sys.executable, "-c", code]
    with (copy / "log").open("w") as log:
        try:
            return subprocess.run(command, cwd=copy, env=environ, input=json.dumps(seconds), text=True, stdout=log, stderr=log, timeout=limit).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return -1


def near(notes, copy, file, function):
    """Seconds of the tests that call the function, or else anything of its module, or else of all."""
    path = str(copy / file.with_name(CALLERS.get(file.name, file.name)))
    lines = range(function.lineno - 3, function.end_lineno + 1) if function else ()
    calls = {test: {line for name, line in called if name == path} for test, (_, called) in notes.items()}  # fmt: skip
    exact = [test for test, called in calls.items() if called.intersection(lines)]
    chosen = exact or [t for t, called in calls.items() if called or not notes[t][1]] or [*notes]
    total, found = 0.0, {}
    for test in sorted(chosen, key=lambda test: notes[test][0]):
        total += notes[test][0]
        if total <= SECONDS or not found:
            found[test] = notes[test][0]
    return found


def judge(record, copy, notes):
    """A record with its verdict."""
    file, text = Path(record["file"]), (ROOT / record["file"]).read_text()
    tree, times = ast.parse(text), (copy / record["file"]).stat()
    function, line, what, *change = list(mutants(tree))[record["number"]]
    setattr(*change)
    (copy / file).write_text(ast.unparse(ast.fix_missing_locations(tree)))
    seconds = near(notes, copy, file, function)
    killed = run(copy, seconds, 20 + 2 * sum(seconds.values())) != 0
    (copy / file).write_text(text)
    os.utime(copy / file, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that its bytecode counts
    said = text.split("\n")[line - 1].strip()
    print("" if killed else f"{file}:{line}: {what}: {said}\n", end="", flush=True)
    return record | {"killed": killed, "line": line, "what": what, "said": said}


def drawn(size, seed):
    """A record of every mutant of a sample."""
    counts = {file: len(list(mutants(ast.parse((ROOT / file).read_text())))) for file in FILES}
    for file, count in counts.items():
        share = min(count, max(8, round(size * count / sum(counts.values()))))
        for number in sorted(random.Random(f"{seed} {file}").sample(range(count), share)):
            yield {"file": str(file), "number": number, "of": count}


def main(results, size="500", seed="9"):
    lines = Path(results).read_text().splitlines() if Path(results).exists() else ()
    records = [*map(json.loads, lines)] or list(drawn(int(size), int(seed)))
    copy = Path(tempfile.mkdtemp(prefix="mutate-")).resolve()
    for name in ("rewardkit", "tests", "docs", "data_cards", "pyproject.toml"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy2)(ROOT / name, copy / name)
    assert run(copy) == 0, (copy / "log").read_text()[-3000:]
    notes = json.loads((copy / "notes.json").read_text())
    for n, record in enumerate(records):
        if not record.get("killed"):
            records[n] = judge(record, copy, notes)
            Path(results).write_text("".join(json.dumps(r) + "\n" for r in records))
    rate = spread = 0.0
    for file in FILES:
        verdicts = [r["killed"] for r in records if r["file"] == str(file)]
        if verdicts:
            weight = next(r["of"] for r in records if r["file"] == str(file)) / sum({r["file"]: r["of"] for r in records}.values())  # fmt: skip
            share, near_share = sum(verdicts) / len(verdicts), (sum(verdicts) + 1) / (len(verdicts) + 2)  # fmt: skip
            print(f"{file!s:42} {sum(verdicts):3} of {len(verdicts):3} killed, {share:4.0%}")
            rate, spread = rate + weight * share, spread + weight**2 * near_share * (1 - near_share) / len(verdicts)  # fmt: skip
    print(f"{rate:.1%} +- {1.96 * math.sqrt(spread):.1%} (95 %) of all mutants are killed, by {len(records)} drawn")  # fmt: skip
    shutil.rmtree(copy)


if __name__ == "__main__":
    main(*sys.argv[1:])
