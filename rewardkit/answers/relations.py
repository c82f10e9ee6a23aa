"""Equations: the value of a labelled equation or a chain, and equality of equations."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewardkit.answers.evaluate import (
    PRECISE_STEPS,
    SAMPLE_POINTS,
    UndefinedError,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    sample_points,
)
from rewardkit.answers.parsing.tree import MINUS_ONE, Node, add, mul, substitute, subtrees, symbols
from rewardkit.answers.parsing.vocabulary import ACCENTS, FLIPPED_OPERATORS
from rewardkit.answers.scalar import Policy, canonical_text, scalar_equal, value_equal
from rewardkit.answers.simplification import UNEVALUATED, is_simplified


class Solution(NamedTuple):
    r"""Label and value of a solved equation.

    Attributes:
        label: the name of the value; None without a label.
        value: the value.
        rounding: the decimal after `\approx`; None without one.
    """

    label: Node | None
    value: Node
    rounding: Node | None = None

    @property
    def values(self) -> list[Node]:
        """The value, and its rounding if there is one."""
        return [self.value] if self.rounding is None else [self.value, self.rounding]


def is_equation(node: Node) -> bool:
    r"""Whether a node is a relation with no operators but `=` and `\approx`."""
    return node[0] == "rel" and set(node[1].split()) <= {"=", "~"}


def solution_of(node: Node, policy: Policy) -> Solution | None:
    r"""Return the solution of `x = 5`, `V = 4\pi r^2 = 36\pi` or `2 + 3 = 5`; None without one.

    A chain whose closed values differ contradicts itself and has no solution.
    """
    operators, sides = node[1].split(), list(node[2:])
    if len(sides) == 2 and not _is_label(*sides) and _is_label(sides[1], sides[0]):
        sides.reverse()
    label = None
    while len(sides) > 1 and _is_label(sides[0], sides[-1], alone=len(node) == 4):
        label = sides[0] if label is None else label
        sides, operators = sides[1:], operators[1:]
    rounding = None
    if len(sides) > 1 and operators[-1] == "~":
        rounding = sides.pop()
    closed_sides = [side for side in sides if _has_value(side)]
    if not all(_is_consistent(side, sides[-1], policy) for side in closed_sides[:-1]):
        return None
    if any(_contradicts(side, sides[-1], policy) for side in sides[:-1]):
        return None
    if rounding is not None and closed_sides and not _is_rounding(rounding, sides[-1]):
        return None
    if label is None and len(closed_sides) < len(sides) and not _is_identity(sides, policy):
        return None
    if label is None and len(sides) + (rounding is not None) < 2:
        return None
    value = sides[-1]
    if not is_simplified(value):
        value = next((side for side in closed_sides if is_simplified(side)), value)
    return Solution(label, value, rounding)


def equation_value(node: Node, policy: Policy) -> Node:
    """Return the value of a solved equation; any other node unchanged."""
    answer = solution_of(node, policy) if is_equation(node) else None
    return node if answer is None else answer.value


def _is_consistent(side: Node, value: Node, policy: Policy) -> bool:
    if "percent" in (side[0], value[0]) and side[0] != value[0]:
        return scalar_equal(side, value, policy)
    return not _has_value(value) or value_equal(_without_unit(side), _without_unit(value), policy)


def _contradicts(side: Node, value: Node, policy: Policy) -> bool:
    """Whether an expression in the middle of a chain differs from the last one."""
    are_expressions = (
        symbols(side)
        and symbols(value)
        and side[0] in _EXPRESSION_KINDS
        and value[0] in _EXPRESSION_KINDS
    )
    return bool(are_expressions) and not value_equal(side, value, policy)


def _is_identity(sides: list[Node], policy: Policy) -> bool:
    """Whether all sides are equal expressions with names: `(x+1)^2 = x^2+2x+1`."""
    expressions = all(
        side[0] in _EXPRESSION_KINDS and side[0] != "sym" and symbols(side) for side in sides
    )
    return expressions and all(value_equal(side, sides[-1], policy) for side in sides[:-1])


_EXPRESSION_KINDS = frozenset({"sym", "add", "mul", "pow", "fn"})


def _is_rounding(rounding: Node, value: Node) -> bool:
    r"""Whether the value after `\approx` is within 1% of the exact one."""
    try:
        r, v = (
            evaluate_double(_without_unit(rounding), {}),
            evaluate_double(_without_unit(value), {}),
        )
    except UndefinedError:
        return True
    return abs(r - v) <= 0.01 * max(abs(v), abs(r))


def _without_unit(side: Node) -> Node:
    """Return a value without its unit."""
    value: Node = side[1] if side[0] in ("quantity", "percent") else side
    return value


def _has_value(side: Node) -> bool:
    bare = _without_unit(side)
    if symbols(bare) or bare[0] not in ("num", "const", "add", "mul", "pow", "fn", "degree"):
        return False
    charge_steps(bare)
    try:
        evaluate_double(bare, {})
    except UndefinedError:
        return False
    return True


#: Functions whose application may be a label: an angle, a length, a part, an inverse.
_VALUE_FUNCTIONS = frozenset(
    "angle measuredangle triangle odot square overarc abs norm re im arg deg dim det".split()
) | {mark[1:] for mark in ACCENTS}
#: Accents that do not change the named quantity, unlike a bar (the conjugate or the mean).
_NEUTRAL_ACCENTS = frozenset({"widehat", "widetilde", "overrightarrow"})


def _is_label(side: Node, value: Node, *, alone: bool = True) -> bool:
    """Whether one side names the value of the other: `x`, `f(x)`, `P(A)`, `AB`, `|AB|`, `dy/dx`."""
    if any(part[0] == "fn" and part[1] in UNEVALUATED for part in subtrees(side)):
        return not any(part[0] == "fn" and part[1] in UNEVALUATED for part in subtrees(value))
    if side[0] == "sym":
        return side[1] not in symbols(value) and side[1] != "..." and not _is_shifted_index(side[1])
    if side[0] == "tuple":
        is_all_names = all(part[0] == "sym" for part in side[1:]) and not symbols(side) & symbols(
            value
        )
        return is_all_names and (value[0] != "tuple" or len(value) == len(side))
    if side[0] == "ratio":
        return all(_is_label(part, value) for part in side[1:])
    if side[0] == "fn":
        return _is_value_of(side, value, alone=alone) and side not in list(subtrees(value))
    if side[0] == "mul" and len(side) == 3 and side[1] == ("sym", "m") and side[2][0] == "fn":
        return bool(side[2][1] == "angle")  # the measure of an angle
    is_length = side[0] in ("mul", "pow") and not _has_number(side)
    return is_length and all(len(n) == 1 and n.isupper() for n in symbols(side) or "x")


def _is_shifted_index(name: str) -> bool:
    """Whether a name has a shifted index, as `a_{n+1}`, so that it is not the general member."""
    index = name.partition("_")[2]
    return any(sign in index for sign in "+-") and any(map(str.isalpha, index))


def _is_value_of(side: Node, value: Node, *, alone: bool) -> bool:
    r"""Whether an application names a value: `f(x)`, `f(2)`, `P(X > 1)`, `|AB|`, `\sin A`."""
    if side[1] in _VALUE_FUNCTIONS:
        return not _has_number(side)
    if is_function_name(side[1]):
        return side[1] in ("P", "Pr", "E", "p") or all(
            part[0] in ("sym", "num", "const", "tuple") for part in side[2:]
        )
    return alone and not _has_number(side) and not symbols(value)


def _has_number(side: Node) -> bool:
    """Whether a tree holds a number, a sum or a relation, apart from the exponent of a quotient."""
    if side[0] == "pow" and side[2] == MINUS_ONE:
        return _has_number(side[1])
    if side[0] in ("num", "const", "add", "pm", "rel"):
        return True
    return any(_has_number(part) for part in side[1:] if isinstance(part, tuple))


def is_function_name(name: str) -> bool:
    """Whether a function has a name of the question, such as `f`, `f'`, `P`, `f^-1` or `a_n`."""
    return len(name.partition("^")[0].rstrip("'").partition("_")[0]) == 1 or name == "Pr"


def labels_agree(ours: Solution, theirs: Solution) -> bool:
    """Whether two labels may name one thing: `y` differs from `x`; a word may mean any name."""
    if ours.label is None or theirs.label is None:
        return True
    p, g = _without_accent(ours.label), _without_accent(theirs.label)
    words = [label[0] == "sym" and is_word(label[1]) for label in (p, g)]
    if p == g or words[0] != words[1]:
        return True
    if p[0] == g[0] == "fn":
        return bool(p[1] == g[1]) and (
            canonical_text(p) == canonical_text(g) or _are_same_definition(ours, theirs)
        )
    if {p[0], g[0]} == {"sym", "fn"}:  # y and f(x)
        name, function = (p, g) if p[0] == "sym" else (g, p)
        is_usual_name = name[1] in ("y", "z", "u") and function[1] in "fghFGH"
        return is_usual_name or bool(name[1] == function[1])
    return canonical_text(p) == canonical_text(g)


def _without_accent(label: Node) -> Node:
    r"""Return a label without a neutral accent: `y` of `\hat{y}`, and the angle of `m\angle A`."""
    if label[0] == "mul" and label[1] == ("sym", "m") and label[2][:2] == ("fn", "angle"):
        angle: Node = label[2]
        return angle
    marked: Node = label[2] if label[0] == "fn" and label[1] in _NEUTRAL_ACCENTS else label
    return marked


def is_word(name: str) -> bool:
    """Whether a name is a word of plain text, not a letter with its index."""
    is_long = len(name.rstrip("'").partition("_")[0]) > 2
    return is_long and "/" not in name and not name.startswith(("vec ", "Delta "))


def rename_arguments(ours: Solution, theirs: Solution) -> list[Node]:
    """Return the answer's values with the gold's argument names: `f(m) = 2m` is `f(n) = 2n`."""
    if ours.label and theirs.label and _are_same_definition(ours, theirs):
        pairs = dict(zip(ours.label[2:], theirs.label[2:], strict=True))
        return [substitute(value, pairs) for value in ours.values]
    return ours.values


def _are_same_definition(ours: Solution, theirs: Solution) -> bool:
    """Whether two labels define functions with the same number of named arguments."""
    p, g = ours.label or (), theirs.label or ()
    if p[:1] != ("fn",) or g[:1] != ("fn",) or len(p) != len(g):
        return False
    names = [{part[1] for part in label[2:] if part[0] == "sym"} for label in (p, g)]
    if not all(len(group) == len(p) - 2 for group in names):
        return False
    used_names = names[0] & symbols(ours.value), names[1] & symbols(theirs.value)
    return all(used_names) or (not any(used_names) and p[1][:1] in "fgh")


def are_proportional(pred: Node, gold: Node) -> bool:
    """Whether two equations are the same up to a nonzero constant factor."""
    return _constant_factor(pred, gold) is not None


def inequalities_equal(pred: Node, gold: Node) -> bool:
    """Whether two inequalities are the same up to rearrangement and a constant factor."""
    factor = _constant_factor(pred, gold)
    if factor is None or abs(factor.imag) > 1e-30:
        return False
    operator = pred[1] if factor.real > 0 else FLIPPED_OPERATORS.get(pred[1], "")
    return bool(operator == gold[1])


def _constant_factor(pred: Node, gold: Node) -> Any:
    """Return the constant ratio of the differences of two relations' sides; None without one."""
    if len(pred) != 4 or len(gold) != 4:
        return None
    p = add(pred[2], mul(MINUS_ONE, pred[3]))
    g = add(gold[2], mul(MINUS_ONE, gold[3]))
    if not symbols(p) or symbols(p) != symbols(g):
        return None
    charge_steps(p, g, times=SAMPLE_POINTS * PRECISE_STEPS)
    factors = []
    for point in sample_points(p, g):
        try:
            factors.append(evaluate_digits(p, point) / evaluate_digits(g, point))
        except (UndefinedError, ZeroDivisionError):
            continue
    if len(factors) < 3 or not factors[0]:
        return None
    constant = all(abs(f - factors[0]) <= 1e-25 * abs(factors[0]) for f in factors[1:])
    return factors[0] if constant else None
