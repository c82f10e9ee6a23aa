r"""Families of solutions: answers that hold for every value of a parameter.

The values of `\frac{\pi}{4} + k\pi` for all integers k are a progression, and so are the residues of
a congruence and intervals that repeat. Two lists of progressions are the same family if they have the
same members, wherever their parameters start and however their periods are split. Any other family is
the same under other names of its parameters.
"""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from rewardkit.answers.parsing.tree import (
    PI,
    Node,
    add,
    mul,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.relations import (
    equation_value,
    is_equation,
    solution_of,
)
from rewardkit.answers.scalar import (
    PRECISE_STEPS,
    STRICT,
    Policy,
    UndefinedError,
    canonical_text,
    charge_steps,
    evaluate_digits,
    value_equal,
)
from rewardkit.answers.simplification import question_formulas
from rewardkit.answers.type_rules import normal_form, same_answer, same_normal_forms, value_type

#: Names of variables, which are never parameters, and names that stand for integers.
_VARIABLES = frozenset({"x", "y", "z"})
_FUNCTION_VARIABLES = _VARIABLES | frozenset({"t", "u", "v", "s", "r", "w", "theta"})
_INTEGER_NAMES = frozenset("knml")
#: Most progressions of one step into which the periods of a family are split.
MAX_TURNS = 60


def same_answer_or_family(pred: Node, gold: Node, question: str, policy: Policy) -> bool:
    """Whether two values are the same answer, also under other names of their parameters."""
    is_of_naturals = pred[0] == "where" and pred[5] == "N" and gold[0] != "where"
    if is_of_naturals and any(map(_turn_parameters, _items(equation_value(gold, STRICT)))):
        return False  # turns are of all integers
    p, g = normal_form(pred), normal_form(gold)
    if same_normal_forms(p, g, policy):
        return True
    if is_equation(pred) and _is_asked(pred[2], question) and not any(map(symbols, pred[3:])):
        named = (*pred[:2], ("sym", "value"), *pred[3:])  # m + n = 34
        return value_type(gold) == "value" and same_answer(named, gold, policy)
    if not symbols(gold) and gold[0] != "congruence":
        return False
    if products := _functions_as_products(pred, gold):
        return same_answer(substitute(pred, products), substitute(gold, products), policy)
    free = parameters(g, question)
    is_congruence = any(part[0] == "congruence" for node in (p, g) for part in subtrees(node))
    if (free or is_congruence) and have_same_members(p, g, free, question):
        return True
    return bool(free) and (
        _same_up_to_a_constant(p, g, free)
        or any(same_answer(other, g, policy) for other in renamings(p, g, free, question))
    )


def _is_asked(node: Node, question: str) -> bool:
    """Whether a question may ask for a combination of several names, which are not coordinates.

    Without the question, a combination of three names or more may be an equation left unsolved.
    """
    names = symbols(node)
    if node[0] not in ("add", "mul", "pow") or len(names) < 2 or names & _VARIABLES:
        return False
    return canonical_text(node) in question_formulas(question) if question else len(names) == 2


def _functions_as_products(pred: Node, gold: Node) -> dict[Node, Node]:
    """Return the product for every `g(h+R)` of two values that also have the name `g` alone."""
    names = symbols(pred) | symbols(gold)
    return {
        part: mul(("sym", part[1]), part[2])
        for node in (pred, gold)
        for part in subtrees(node)
        if part[0] == "fn" and len(part) == 3 and part[1] in names and symbols(part[2])
    }


# --- parameters


def parameters(gold: Node, question: str) -> set[str]:
    r"""Return the parameters of a gold, which are names that stand for any number.

    They are the names that a clause declares; the integer in a term of numbers and `\pi` or degrees
    (`\frac{\pi}{4} + k\pi`); constants of integration. Names of the question are not parameters.
    """
    is_declared = gold[0] == "where" and not gold[3]
    node, bound = (gold[1], gold[4].split()) if is_declared else (gold, [])
    value = equation_value(node, STRICT)
    free = symbols(node) & set(bound) | _integration_constants(node, value)
    free = free.union(*map(_turn_parameters, _items(value)))
    return {name for name in free - _VARIABLES if not _occurs_in(name, question)}


def _items(node: Node) -> Iterator[Node]:
    if node[0] in ("where", "list", "and", "or", "tuple", "set", "union", "interval", "rel"):
        for part in node[1:]:
            if isinstance(part, tuple):
                yield from _items(part)
    else:
        yield node


def _turn_parameters(value: Node) -> set[str]:
    r"""Return the integers of terms such as `2k\pi`, which have no other name."""
    turns: set[str] = set()
    for term in value[1:] if value[0] == "add" else (value,):
        parts, names = list(subtrees(term)), symbols(term)
        is_angular = any(part == PI or part[0] == "degree" for part in parts)
        is_linear = {"mul", "add", "sym", "degree"}.issuperset(p[0] for p in parts if symbols(p))
        turns |= names & _INTEGER_NAMES if is_angular and is_linear and len(names) == 1 else set()
    return turns


def _integration_constants(node: Node, value: Node) -> set[str]:
    """Return constants of integration: a term `C`, or factors of the terms of a function `y(x)`."""
    constants = {name for name in symbols(value) if re.fullmatch(r"[Cc](_.*)?", name)}
    others = symbols(value) - constants
    if len(others) != 1 or not others <= _FUNCTION_VARIABLES:
        return set()
    terms = value[1:] if value[0] == "add" else (value,)
    is_function = node[0] == "rel" and node[2][0] in ("sym", "fn") and node[2][1] in set("yufx")
    if is_function or constants - {"C", "c"}:
        terms = tuple(f for t in terms for f in (t[1:] if t[0] == "mul" else (t,)))
    return constants.intersection(term[1] for term in terms if term[0] == "sym")


def _occurs_in(name: str, question: str) -> bool:
    return re.search(rf"(?<![^\W\d_]){re.escape(name)}(?![^\W\d_])", question) is not None


# --- other names


def renamings(pred: Node, gold: Node, free: set[str], question: str) -> Iterator[Node]:
    """Yield the answer with its own names replaced by the gold's free names, in every order.

    A name that the question uses keeps its meaning and is not replaced.
    """
    ours, theirs = _value_names(pred) - symbols(gold), _value_names(gold) - symbols(pred)
    if not ours and not theirs:  # so that c_1 and c_2 may be exchanged
        ours = theirs = {name for name in free & _value_names(pred) if "_" in name}
    if not 0 < len(ours) == len(theirs) <= 3 or not theirs <= free or ours & _VARIABLES:
        return
    if any(_occurs_in(name, question) for name in ours - theirs):
        return
    symbols_of_gold = [("sym", name) for name in sorted(theirs)]
    for order in permutations(("sym", name) for name in sorted(ours)):
        yield substitute(pred, dict(zip(order, symbols_of_gold, strict=True)))


def _value_names(node: Node) -> set[str]:
    node = node[1] if node[0] == "where" else node
    return symbols(equation_value(node, STRICT))


def _same_up_to_a_constant(pred: Node, gold: Node, free: set[str]) -> bool:
    p, g = (equation_value(node, STRICT) for node in (pred, gold))
    terms = [value[1:] if value[0] == "add" else () for value in (p, g)]
    constants = [{("sym", "C"), ("sym", "c")}.intersection(each) for each in terms]
    if [len(names) for names in constants] != [1, 1] or not {n for _, n in constants[1]} <= free:
        return False
    zeros = dict.fromkeys(set.union(*constants), num(0))
    difference = substitute(add(p, neg(g)), zeros)
    elsewhere = {("sym", name): ("sym", f"{name}'") for name in symbols(difference)}
    return value_equal(difference, substitute(difference, elsewhere))


# --- progressions


class Progression(NamedTuple):
    """The points, excluded points or intervals that repeat after a step, without end.

    The shape says which, and which ends are open. The starts are a point, or the ends of an interval.
    """

    label: str
    shape: tuple[object, ...]
    starts: tuple[Any, ...]
    step: Any


class NoProgressionError(ValueError):
    """A tree is not made of progressions."""


def have_same_members(pred: Node, gold: Node, free: set[str], question: str = "") -> bool:
    """Whether two lists of progressions have the same members; False for any other trees.

    The parameter is one of the gold's `free` names, or in an answer also a usual name of integers.
    """
    ours = {name for name in _INTEGER_NAMES | free if not _occurs_in(name, question)}
    theirs = free or (ours if pred[0] == "congruence" else set())
    try:
        p, g = list(_progressions(pred, ours)), list(_progressions(gold, theirs))
        if len({each.label for each in (*p, *g)} - {""}) > 1:
            return False
        period = _common_period([*p, *g])
        return _members(p, period) == _members(g, period)
    except (NoProgressionError, UndefinedError):
        return False


def _progressions(node: Node, names: set[str]) -> Iterator[Progression]:
    match node:
        case ("where", inner, _, is_restricting, bound, kind):
            if is_restricting or kind not in ("", "Z"):
                raise NoProgressionError("not of all integers")
            yield from _progressions(inner, names | {*bound.split()} - _VARIABLES)
        case ("list" | "and" | "or" | "set" | "union", *items):
            for item in items:
                yield from _progressions(item, names)
        case ("congruence", residue, modulus):
            label, shape, ends = _ends(residue)
            starts = tuple(_real_value(end, {}) for end in ends)
            yield Progression(label, shape, starts, _real_value(modulus, {}))
        case _:
            yield from _progressions_of_one(node, names)


def _progressions_of_one(node: Node, names: set[str]) -> Iterator[Progression]:
    r"""Yield the progression of ends that are linear in one parameter, or two, as of `(-1)^k`."""
    label, shape, ends = _ends(node)
    name, *others = set().union(*map(symbols, ends)) or ("",)
    if others or name not in names:
        raise NoProgressionError("no parameter")
    charge_steps(*ends, times=6 * PRECISE_STEPS)
    rows = [[_real_value(end, {name: float(k)}) for k in range(6)] for end in ends]
    for turn in [slice(6)] if _is_linear(rows) else [slice(0, 6, 2), slice(1, 6, 2)]:
        cut = [row[turn] for row in rows]
        if not _is_linear(cut):
            raise NoProgressionError("not linear, or of different steps")
        yield Progression(label, shape, tuple(row[0] for row in cut), cut[0][1] - cut[0][0])


def _is_linear(rows: list[list[Any]]) -> bool:
    step = rows[0][1] - rows[0][0]
    return all(abs(b - a - step) < 1e-30 for row in rows for a, b in pairwise(row))


def _ends(node: Node) -> tuple[str, tuple[object, ...], tuple[Node, ...]]:
    """Return the label, the shape and the ends of what repeats."""
    match node:
        case ("rel", *_) if is_equation(node) and (solution := solution_of(node, STRICT)):
            return canonical_text(solution.label) if solution.label else "", (), (solution.value,)
        case ("interval", low, high, *are_open):
            return "", tuple(are_open), (low, high)
        case ("tuple", low, high):
            return "", (True, True), (low, high)
    return "", (), (node,)


def _real_value(node: Node, point: dict[str, float]) -> Any:
    value = evaluate_digits(node, point)
    if value.imag:
        raise NoProgressionError("not real")
    return value.real


def _common_period(progressions: list[Progression]) -> Any:
    """Return the least common multiple of all steps."""
    unit = progressions[0].step
    ratios = [abs(each.step / unit) if unit else 0 for each in progressions]
    if not all(1 / MAX_TURNS <= ratio <= MAX_TURNS for ratio in ratios):
        raise NoProgressionError("a step of zero, or too many turns")
    steps = [Fraction(float(ratio)).limit_denominator(MAX_TURNS) for ratio in ratios]
    pairs = zip(ratios, steps, strict=True)
    if any(abs(ratio * step.denominator - step.numerator) > 1e-25 for ratio, step in pairs):
        raise NoProgressionError("the steps have no common multiple")
    tops, bottoms = zip(*(step.as_integer_ratio() for step in steps), strict=True)
    period = Fraction(math.lcm(*tops), math.gcd(*bottoms))
    if sum(period / step for step in steps) > MAX_TURNS:
        raise NoProgressionError("too many turns")
    return abs(unit) * period.numerator / period.denominator


def _members(progressions: list[Progression], period: Any) -> set[tuple[object, ...]]:
    """Return what a family repeats in one period: shapes, and places as whole parts of the period."""
    parts = 10**25
    members: set[tuple[object, ...]] = set()
    for _, shape, starts, step in progressions:
        if abs(starts[0]) > 10**15 * period:
            raise NoProgressionError("more digits than are evaluated")
        widths = tuple(int((start - starts[0]) / period * parts + 0.5) for start in starts)
        for turn in range(int(period / abs(step) + 0.5)):
            place = (starts[0] + turn * step) / period % 1
            members.add((shape, int(place * parts + 0.5) % parts, widths))
    return members
