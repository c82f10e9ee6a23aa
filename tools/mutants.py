"""Make the small faults of `mutate`, and run the tests for them in pytest.

The operators are those of mutmut, which skips the tables of a module, and of cosmic-ray, which cannot
sample. Docstrings, annotations, raised errors, log messages and sizes of caches are not changed.
"""

from __future__ import annotations

import ast
import functools
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

#: A description of the change, then the object, its attribute and the new value.
Change: TypeAlias = tuple[str, ast.AST, str, Any]

PAIRS = "Lt LtE|Gt GtE|Eq NotEq|In NotIn|Is IsNot|Add Sub|Mult Div|BitAnd BitOr|LShift RShift|And Or|Break Continue"
SWAPS = {a: b for pair in PAIRS.split("|") for a, b in (pair.split(), pair.split()[::-1])}
SWAPS |= {"Mod": "Mult", "Pow": "Mult", "FloorDiv": "Mult", "USub": "UAdd"}
CONDITIONS = (ast.Name, ast.Call, ast.Attribute, ast.NamedExpr)
FLAGS = ("-xq", "--tb=line", "-pno:cacheprovider", "-pno:xdist")
CACHED = functools.lru_cache


def mutants(node: ast.AST, outer: Any = None) -> Iterator[tuple[Any, int, Change]]:
    """Yield (outermost function, line, change) of each mutant of a tree, in order."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    alias = isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation)
    function = getattr(getattr(node, "func", None), "id", "")
    if docstring or alias or isinstance(node, ast.Raise) or function in ("_log_once", "cast", "TypeVar", "lru_cache"):  # fmt: skip
        return
    outer = outer or (node if isinstance(node, ast.FunctionDef) else None)
    for change in (*_signs(node), *_parts(node, inside=outer is not None)):
        yield outer, getattr(node, "lineno", 0), change
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list", "format_spec"):
            for child in value if isinstance(value, list) else [value]:
                yield from mutants(child, outer) if isinstance(child, ast.AST) else ()


def _signs(node: ast.AST) -> Iterator[Change]:
    """Replace an operator, a number, a string or a truth value."""
    operators = getattr(node, "ops", [])
    for n, name in enumerate(type(op).__name__ for op in operators):
        swapped = [*operators[:n], getattr(ast, SWAPS[name])(), *operators[n + 1 :]]
        yield f"{name} -> {SWAPS[name]}", node, "ops", swapped
    if (name := type(getattr(node, "op", None)).__name__) in SWAPS:
        yield f"{name} -> {SWAPS[name]}", node, "op", getattr(ast, SWAPS[name])()
    if (name := type(node).__name__) in ("Break", "Continue"):
        yield f"{name} -> {SWAPS[name]}", node, "__class__", getattr(ast, SWAPS[name])
    if isinstance(old := getattr(node, "value", None), str | int | float):  # a bool is an int
        new = f"XX{old}XX" if isinstance(old, str) else not old if isinstance(old, bool) else old + 1  # fmt: skip
        yield f"{old!r:.50} -> {new!r:.50}", node, "value", new


def _parts(node: ast.AST, *, inside: bool) -> Iterator[Change]:
    """Negate a condition; leave out a value, call or argument; do not catch an error."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not removed", node, "operand", ast.UnaryOp(ast.Not(), node.operand)
    if isinstance(test := getattr(node, "test", None), CONDITIONS):
        yield "condition negated", node, "test", ast.UnaryOp(ast.Not(), test)
    nothing = getattr(getattr(node, "value", None), "value", 0) is None
    if isinstance(node, ast.Expr) or (isinstance(node, ast.Assign) and inside and not nothing):
        yield f"{type(node).__name__} of None", node, "value", ast.Constant(None)
    for key in node.keywords if isinstance(node, ast.Call) else ():
        others = [other for other in node.keywords if other is not key]
        yield f"argument {key.arg} dropped", node, "keywords", others
    for kind in ast.walk(node.type) if isinstance(node, ast.ExceptHandler) and node.type else ():
        if isinstance(kind, ast.Name):
            yield f"{kind.id} not caught", kind, "id", "FloatingPointError"


class TestSelection:
    """A pytest plugin that runs the tests of `seconds`, quick ones first, and notes times and calls.

    Without `seconds` it runs all tests and traces which functions each test calls.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds
        self.notes: dict[str, tuple[float, list[Any]]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.seconds:
            items[:] = [item for item in items if item.nodeid in self.seconds]
            items.sort(key=lambda item: self.seconds[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        calls: set[tuple[str, int]] = set()
        self.notes[nodeid] = time.monotonic(), [calls]
        if not self.seconds:
            sys.settrace(lambda frame, *_: calls.add((frame.f_code.co_filename, frame.f_code.co_firstlineno)))  # fmt: skip

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        started, [calls] = self.notes[nodeid]
        ours = [call for call in calls if "/rewardkit/" in call[0]]
        self.notes[nodeid] = time.monotonic() - started, ours


def _uncached(first: Any = 0, **_: Any) -> Any:
    return CACHED(maxsize=0)(first) if callable(first) else CACHED(maxsize=0)


def in_pytest() -> None:
    """Run the tests that standard input names, in this folder; without names, run all and write `notes.json`."""
    import pytest

    plugin = TestSelection(json.load(sys.stdin))
    functools.lru_cache = CACHED if plugin.seconds else _uncached  # no cache may hide a call
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
    files = sorted(
        {test.partition("::")[0] for test in plugin.seconds or ("tests/answers", "tests/scorers")}
    )
    status = pytest.main([*FLAGS, *files], plugins=[plugin])
    assert Path(str(sys.modules["rewardkit"].__file__)).is_relative_to(Path.cwd())
    if not plugin.seconds:
        Path("notes.json").write_text(json.dumps(plugin.notes))
    sys.exit(status)
