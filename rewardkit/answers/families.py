r"""Families of solutions: `\frac{\pi}{4} + k\pi` with any integer for `k`, `x^2 + C` with any `C`.

The name of a parameter says nothing, so the answer's parameters are renamed to the gold's; and a
family that runs through the same values from another start is the same family.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from rewardkit.answers.budget import PRECISE, spend
from rewardkit.answers.evaluate import exact, precise
from rewardkit.answers.fields import UndefinedError
from rewardkit.answers.policy import STRICT
from rewardkit.answers.reading.tree import PI, Node, num, substitute, symbols, walk
from rewardkit.answers.relations import answer_of

#: Names of constants of integration, and the names that no parameter has.
_INDEXED = frozenset(f"{name}_{i}" for name in "Cc" for i in range(5))
_VARIABLES = frozenset({"x", "y", "z"})
_INTEGERS = frozenset("knml")


def parameters(gold: Node, question: str) -> set[str]:
    r"""The names of a gold that may be any number: constants, and integers times `\pi` or 360°."""
    declared = gold[0] == "where" and not gold[3]
    node, bound = (gold[1], gold[4].split()) if declared else (gold, [])
    if node[0] == "sym" or (gold[0] == "where" and not declared):
        return set()
    names = symbols(node)
    free = (names & {*bound, *_INDEXED}) | _added_constants(node)
    for part in walk(node):
        if part[0] == "degree" or (part[0] == "mul" and (PI in part or _has_degrees(part))):
            free |= _INTEGERS & {factor[1] for factor in part[1:] if factor[0] == "sym"}
    return {name for name in free - _VARIABLES if not _is_in(name, question)}


def _has_degrees(product: Node) -> bool:
    return any(part[0] == "degree" for part in product[1:])


def _added_constants(node: Node) -> set[str]:
    """`C` where it is a term of its own, or the factor of a solution `y(x)` of one variable."""
    value = answer_of(node, STRICT)
    terms = value[1:] if value[0] == "add" else ()
    added = {term[1] for term in terms if term in (("sym", "C"), ("sym", "c"))}
    others = symbols(value) - {"C", "c"}
    of_solution = node[0] == "rel" and node[2][0] in ("sym", "fn") and node[2][1] in ("y", "u", "f")
    return added | (symbols(value) & {"C"} if of_solution and len(others) == 1 else set())


def _is_in(name: str, question: str) -> bool:
    """Whether a name stands in the question as a name of its own."""
    at = question.find(name)
    while at >= 0:
        beside = question[at - 1 : at] + question[at + len(name) : at + len(name) + 1]
        if not any(char.isalpha() for char in beside):
            return True
        at = question.find(name, at + 1)
    return False


def renamings(pred: Node, gold: Node, free: set[str], question: str) -> Iterator[Node]:
    """The answer with its own names in the place of the gold's free ones, in every order.

    A name that the question uses keeps its meaning.
    """
    ours, theirs = _own_names(pred) - symbols(gold), _own_names(gold) - symbols(pred)
    if not ours and not theirs:  # c_1 and c_2 in the other order
        ours = theirs = free & _own_names(pred)
    if not 0 < len(ours) == len(theirs) <= 3 or not theirs <= free or ours & _VARIABLES:
        return
    if any(_is_in(name, question) for name in ours):
        return
    for order in permutations(sorted(ours)):
        pairs = zip(order, sorted(theirs), strict=True)
        yield substitute(pred, {("sym", name): ("sym", other) for name, other in pairs})


def _own_names(node: Node) -> set[str]:
    """The names of a tree without its label and its clause."""
    node = node[1] if node[0] == "where" else node
    return symbols(answer_of(node, STRICT))


def same_family(pred: Node, gold: Node, name: str) -> bool:
    """Whether `a + bk` and `c + dk` run through the same values: `b = ±d`, `(a - c) / b` whole."""
    if symbols(pred) != {name} or symbols(gold) != {name}:
        return False
    spend(pred, gold, times=3 * PRECISE)
    try:
        p = [precise(pred, {name: float(k)}) for k in range(3)]
        g = [precise(gold, {name: float(k)}) for k in range(3)]
    except UndefinedError:
        return False
    step, other = p[1] - p[0], g[1] - g[0]
    affine = abs(p[2] - p[0] - 2 * step) < 1e-30 and abs(g[2] - g[0] - 2 * other) < 1e-30
    if not affine or not step or min(abs(step - other), abs(step + other)) > 1e-30:
        return False
    turns = (p[0] - g[0]) / step
    return bool(abs(turns - round(float(turns.real))) < 1e-25)


def as_congruence(node: Node) -> Node:
    r"""`x = 7k + 3` with any integer `k` as `x \equiv 3 \pmod 7`; any other node as it is."""
    inner, free = (node[1], node[4].split()) if node[0] == "where" else (node, [*_INTEGERS])
    value = answer_of(inner, STRICT)
    names = symbols(value)
    if value is inner or len(names) != 1 or not names <= set(free):
        return node
    p = [exact(substitute(value, {("sym", next(iter(names))): num(k)})) for k in range(3)]
    if None in p or p[2] - p[1] != p[1] - p[0] or p[1] == p[0]:  # type: ignore[operator]
        return node
    return ("congruence", ("rel", "=", inner[2], num(p[0])), num(abs(p[1] - p[0])))  # type: ignore[operator,arg-type]
