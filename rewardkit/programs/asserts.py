"""Assertions as data: the arguments of a call, and what its result has to satisfy.

A sandbox that is not ours gets the arguments only. A row can be read so if its tests are assertions
with one call of the program each, and with nothing else but literals, `_OPERATORS` and `_FUNCTIONS`, as
in `assert abs(f(2) - 0.5) < 1e-6`. Nothing of the row is run here. An assertion without a call, such as
the `assert True` of HumanEval, is not a test.
"""

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isclose
from typing import Any

from rewardkit.programs.inside.wire import spread
from rewardkit.programs.problem import Problem

#: Characters of the tests of a row that are read; a parser needs about 100 bytes for each.
MAX_CHARACTERS = 4_000_000


def _product(one: Any, other: Any) -> Any:
    if not isinstance(one, (int, float)) or not isinstance(other, (int, float)):
        raise TypeError  # a text times a number may have any length
    return one * other


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
    ast.Is: lambda one, other: type(one) is type(other) and one == other,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _product,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Tuple: lambda *values: values,
    ast.List: lambda *values: [*values],
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (abs, float, len, list, round, sorted, tuple, isclose)},
    "set": lambda items=(): set(spread([*items])),
    "math.isclose": isclose,
}


@dataclass(frozen=True, repr=False)
class Assertion:
    """What the result of a call has to satisfy."""

    expression: ast.expr
    function: Callable[[Any], Any]

    def holds(self, result: Any) -> bool:
        """Whether a result, which is data without classes, satisfies it."""
        try:
            return bool(self.function(result))
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            return False  # as in `abs("a" - 1) < 1e-6`

    def __repr__(self) -> str:
        """Return the assertion's own text."""
        return ast.unparse(self.expression)


def as_calls(problem: Problem) -> Problem | None:
    """Return a problem of kind `tests` as one of kind `assert`; None if its tests need to be run."""
    texts = tuple(text for text, _ in problem.tests)
    tests, entry_point = _read(texts, problem.entry_point)
    if not tests or not entry_point:
        return None
    return replace(problem, kind="assert", tests=tests, entry_point=entry_point)


@lru_cache(maxsize=64)  # the responses to a row come together
def _read(
    texts: tuple[str, ...], entry_point: str
) -> tuple[tuple[tuple[Any, Assertion], ...], str]:
    reader = _Reader(entry_point)
    if sum(map(len, texts)) > MAX_CHARACTERS:
        return (), ""
    try:
        tests = [reader.test(each) for text in texts for each in reader.assertions(ast.parse(text))]
    except (SyntaxError, ValueError, TypeError, KeyError, MemoryError, RecursionError):
        return (), ""
    return tuple(each for each in tests if each), reader.entry_point


class _Reader:
    """Reads assertions about one function. Its methods raise an error for what it does not read."""

    def __init__(self, entry_point: str) -> None:
        self.entry_point = entry_point
        self.names = {entry_point} - {""}
        self.calls: list[ast.Call] = []

    def assertions(self, tree: ast.Module | ast.FunctionDef) -> Iterator[ast.Assert]:
        """Return the assertions of a test, also those in its `check(candidate)`."""
        for statement in tree.body:
            match statement:
                case ast.Assert():
                    yield statement
                case ast.FunctionDef(name="check", args=ast.arguments(args=[argument])):
                    self.names.add(argument.arg)
                    yield from self.assertions(statement)
                case ast.Expr(value=ast.Call(func=ast.Name(id="check")) | ast.Constant()):
                    pass
                case ast.Import() | ast.ImportFrom(module="math") | ast.Pass():
                    pass
                case ast.Assign(targets=[ast.Name(id="METADATA")]):  # HumanEval
                    pass
                case _:
                    raise ValueError

    def test(self, assertion: ast.Assert) -> tuple[Any, Assertion] | None:
        """Return the arguments and the assertion on the result; None if it is true without a call."""
        self.calls = []
        function = self.function(assertion.test)
        if not self.calls and function(None):
            return None
        (call,) = self.calls
        arguments = [self.function(each)(None) for each in call.args]
        keywords = self.keywords(call)
        if len(self.calls) > 1:
            raise ValueError
        return (arguments, keywords), Assertion(assertion.test, function)

    def keywords(self, call: ast.Call) -> dict[str, Any]:
        """Return the keyword arguments of a call."""
        if not all(each.arg for each in call.keywords):
            raise ValueError
        return {str(each.arg): self.function(each.value)(None) for each in call.keywords}

    def function(self, node: ast.expr) -> Callable[[Any], Any]:
        """Return an expression as a function of the program's result."""
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if not self.names and name not in _FUNCTIONS:
                self.names, self.entry_point = {name}, name  # the first assertion names it
            if name in self.names or name == f"Solution().{self.entry_point}":
                self.calls.append(node)
                return lambda result: result
            keywords, parts = self.keywords(node), [self.function(each) for each in node.args]
            called = _FUNCTIONS[name]
            return lambda result: called(*(part(result) for part in parts), **keywords)
        with suppress(ValueError):
            value = ast.literal_eval(node)
            return lambda _: value
        operands: list[ast.expr]
        kind: ast.AST = node
        match node:
            case ast.Name(id="inf"):  # LeetCode
                return lambda _: inf
            case ast.Compare(left=left, ops=[kind], comparators=[right]):
                operands = [left, right]
            case ast.BinOp(left=left, op=kind, right=right):
                operands = [left, right]
            case ast.UnaryOp(op=kind, operand=operand):
                operands = [operand]
            case ast.Tuple(elts=operands) | ast.List(elts=operands):
                pass
            case _:
                raise ValueError
        function, values = _OPERATORS[type(kind)], [self.function(each) for each in operands]
        return lambda result: function(*(each(result) for each in values))
