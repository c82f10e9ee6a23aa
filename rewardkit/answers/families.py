r"""Families of solutions: `\frac{\pi}{4} + k\pi` with any integer for `k`, `x^2 + C` with any `C`.

A parameter may have any name, so the answer's parameters are renamed to the gold's. Two families
with the same values and different starts are the same family.
"""

import re
from collections.abc import Iterator
from itertools import islice, permutations

from rewardkit.answers.evaluate import (
    PRECISE_STEPS,
    UndefinedError,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    linear_coefficients,
    sample_points,
)
from rewardkit.answers.parsing.tree import (
    PI,
    Node,
    add,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.relations import equation_value
from rewardkit.answers.scalar import STRICT, Policy
from rewardkit.answers.type_rules import same_answer

#: Names of variables, which are never parameters, and names that stand for integers.
_VARIABLES = frozenset({"x", "y", "z"})
_FUNCTION_VARIABLES = _VARIABLES | frozenset({"t", "u", "v", "s", "r", "w", "theta"})
_INTEGER_NAMES = frozenset("knml")


def same_answer_or_family(pred: Node, gold: Node, question: str, policy: Policy) -> bool:
    """Whether two values are the same answer, also under other names of their parameters."""
    if same_answer(pred, gold, policy):
        return True
    if "congruence" in (pred[0], gold[0]) and pred[0] != gold[0]:
        return same_answer(_as_congruence(pred), _as_congruence(gold), policy)
    arrows = [{n for n in symbols(node) if n.startswith("vec ")} for node in (pred, gold)]
    if bool(arrows[0]) != bool(arrows[1]):  # one side omits the arrows of its vectors
        bare = {("sym", name): ("sym", name[4:]) for name in set.union(*arrows)}
        return same_answer(substitute(pred, bare), substitute(gold, bare), policy)
    free = parameters(gold, question)
    if not free:
        return False
    renamed = list(renamings(pred, gold, free, question))
    return (
        _same_up_to_a_constant(pred, gold, free)
        or any(same_answer(other, gold, policy) for other in renamed)
        or any(_has_same_members(other, gold, free, policy) for other in (pred, *renamed))
    )


def _has_same_members(pred: Node, gold: Node, free: set[str], policy: Policy) -> bool:
    name = min(free)
    if len(free) != 1 or name[0] not in _INTEGER_NAMES:
        return False
    if any(node[0] == "where" and (node[3] or node[5] not in ("", "Z")) for node in (pred, gold)):
        return False
    p, g = (node[1] if node[0] == "where" else node for node in (pred, gold))
    return same_family(equation_value(p, policy), equation_value(g, policy), name)


def parameters(gold: Node, question: str) -> set[str]:
    r"""Return the parameters of a gold, which are names that stand for any number.

    They are the names that a clause declares; the integer in a term of numbers and `\pi` or degrees
    (`\frac{\pi}{4} + k\pi`); constants of integration. Names of the question are not parameters.
    """
    is_declared = gold[0] == "where" and not gold[3]
    node, bound = (gold[1], gold[4].split()) if is_declared else (gold, [])
    if node[0] in ("sym", "where"):
        return set()
    value = equation_value(node, STRICT)
    free = symbols(node) & set(bound) | _integration_constants(node, value)
    for item in value[1:] if value[0] in ("list", "and", "or", "tuple", "set") else (value,):
        for term in item[1:] if item[0] == "add" else (item,):
            free |= _turn_parameter(term)
    return {name for name in free - _VARIABLES if not _occurs_in(name, question)}


def _turn_parameter(term: Node) -> set[str]:
    r"""Return the integer name of a term such as `2k\pi`; the empty set if it has other names."""
    factors = term[1:] if term[0] in ("mul", "degree") else ()
    is_angular = term[0] == "degree" or any(f == PI or f[0] == "degree" for f in factors)
    is_linear = all(part[0] in ("mul", "sym", "degree") for part in subtrees(term) if symbols(part))
    names = symbols(term)
    return names & _INTEGER_NAMES if is_angular and is_linear and len(names) == 1 else set()


def _integration_constants(node: Node, value: Node) -> set[str]:
    """Return constants of integration: a term `C`, or factors of the terms of a function `y(x)`."""
    constants = {name for name in symbols(value) if re.fullmatch(r"[Cc](_.*)?", name)}
    others = symbols(value) - constants
    if len(others) != 1 or not others <= _FUNCTION_VARIABLES:
        return set()
    terms = value[1:] if value[0] == "add" else (value,)
    terms_alone = {term[1] for term in terms if term[0] == "sym"}
    factors = {f[1] for term in terms if term[0] == "mul" for f in term[1:] if f[0] == "sym"}
    has_label = node[0] == "rel" and node[2][0] in ("sym", "fn")
    is_function = has_label and node[2][1] in ("y", "u", "f", "x")
    has_indices = bool(constants - {"C", "c"})
    return constants & (terms_alone | factors if is_function or has_indices else terms_alone)


def _occurs_in(name: str, question: str) -> bool:
    return re.search(rf"(?<![^\W\d_]){re.escape(name)}(?![^\W\d_])", question) is not None


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
    for order in permutations(sorted(ours)):
        pairs = zip(order, sorted(theirs), strict=True)
        yield substitute(pred, {("sym", name): ("sym", other) for name, other in pairs})


def _value_names(node: Node) -> set[str]:
    node = node[1] if node[0] == "where" else node
    return symbols(equation_value(node, STRICT))


def same_family(pred: Node, gold: Node, name: str) -> bool:
    """Whether `a + bk` and `c + dk` have the same values: `b = ±d`, `(a - c) / b` an integer."""
    if symbols(pred) != {name} or symbols(gold) != {name}:
        return False
    charge_steps(pred, gold, times=3 * PRECISE_STEPS)
    try:
        p = [evaluate_digits(pred, {name: float(k)}) for k in range(3)]
        g = [evaluate_digits(gold, {name: float(k)}) for k in range(3)]
    except UndefinedError:
        return False
    step, other = p[1] - p[0], g[1] - g[0]
    is_affine = abs(p[2] - p[0] - 2 * step) < 1e-30 and abs(g[2] - g[0] - 2 * other) < 1e-30
    if not is_affine or not step or min(abs(step - other), abs(step + other)) > 1e-30:
        return False
    turns = (p[0] - g[0]) / step
    return bool(abs(turns - round(float(turns.real))) < 1e-25)


def _as_congruence(node: Node) -> Node:
    r"""Return `x = 7k + 3` with integer `k` as `x \equiv 3 \pmod 7`; any other node unchanged."""
    inner, free = (node[1], node[4].split()) if node[0] == "where" else (node, [*_INTEGER_NAMES])
    value = equation_value(inner, STRICT)
    names = symbols(value)
    if value is inner or len(names) != 1 or not names <= set(free):
        return node
    line = linear_coefficients(value, *names)
    if line is None:
        return node
    return ("congruence", ("rel", "=", inner[2], num(line[0])), num(abs(line[1])))


def _same_up_to_a_constant(pred: Node, gold: Node, free: set[str]) -> bool:
    p, g = (equation_value(node, STRICT) for node in (pred, gold))
    constants = [
        {part[1] for part in value[1:] if part in (("sym", "C"), ("sym", "c"))}
        for value in (p, g)
        if value[0] == "add"
    ]
    if [len(names) for names in constants] != [1, 1] or not constants[1] <= free:
        return False
    difference = add(p, neg(g))
    charge_steps(difference, times=4 * PRECISE_STEPS)
    zeros = dict.fromkeys(set.union(*constants), 0.0)
    points = (point | zeros for point in sample_points(difference))
    values = list(islice(_real_values(difference, points), 4))
    return len(values) > 2 and all(abs(value - values[0]) < 1e-30 for value in values[1:])


def _real_values(node: Node, points: Iterator[dict[str, float]]) -> Iterator[complex]:
    for point in points:
        try:
            evaluate_double(node, point, real=True)
            yield evaluate_digits(node, point)
        except UndefinedError:
            continue
