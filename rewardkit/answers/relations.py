"""Equations: the value that a label or a chain gives, and whether two equations are the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from rewardkit.answers.budget import PRECISE, spend
from rewardkit.answers.evaluate import POINTS, UndefinedError, numeric, points, precise
from rewardkit.answers.policy import Policy
from rewardkit.answers.reading.names import FLIPPED, MARKS
from rewardkit.answers.reading.tree import MINUS_ONE, Node, add, mul, substitute, symbols, walk
from rewardkit.answers.scalar import value_equal
from rewardkit.answers.worked_out import UNEVALUATED, is_worked_out


class Solved(NamedTuple):
    r"""What an equation says: `label` is None where there is none; `rounded` follows an `\approx`."""

    label: Node | None
    value: Node
    rounded: Node | None = None

    @property
    def values(self) -> list[Node]:
        """The value, and its rounding where one stands beside it."""
        return [self.value] if self.rounded is None else [self.value, self.rounded]


def is_equation(node: Node) -> bool:
    r"""Whether a relation holds `=` and `\approx` only."""
    return node[0] == "rel" and set(node[1].split()) <= {"=", "~"}


def solved(node: Node, policy: Policy) -> Solved | None:
    r"""The value of `x = 5`, of `V = 4\pi r^2 = 36\pi`, of `2 + 3 = 5`; None if nothing is solved.

    The closed values of a chain must be equal, or it contradicts itself.
    """
    operators, sides = node[1].split(), list(node[2:])
    if len(sides) == 2 and not _is_label(*sides) and _is_label(sides[1], sides[0]):
        sides.reverse()
    label = None
    while len(sides) > 1 and _is_label(sides[0], sides[-1], alone=len(node) == 4):
        label, sides, operators = sides[0], sides[1:], operators[1:]
    rounded = None
    if len(sides) > 1 and operators[-1] == "~":
        rounded = sides.pop()
    closed = [side for side in sides if _has_value(side)]
    if not all(_consistent(side, sides[-1], policy) for side in closed[:-1]):
        return None
    if any(_contradicts(side, sides[-1], policy) for side in sides[:-1]):
        return None
    if rounded is not None and closed and not _rounds(rounded, sides[-1]):
        return None
    if label is None and (len(closed) < len(sides) or len(sides) + (rounded is not None) < 2):
        return None
    value = sides[-1]
    if not is_worked_out(value):
        value = next((side for side in closed if is_worked_out(side)), value)
    return Solved(label, value, rounded)


def answer_of(node: Node, policy: Policy) -> Node:
    """The value of a solved equation, any other node as it is."""
    answer = solved(node, policy) if is_equation(node) else None
    return node if answer is None else answer.value


def _consistent(side: Node, value: Node, policy: Policy) -> bool:
    return not _has_value(value) or value_equal(_bare(side), _bare(value), policy)


def _contradicts(side: Node, value: Node, policy: Policy) -> bool:
    """Whether an expression in the middle of a chain is another than the last one."""
    both = symbols(side) and symbols(value) and side[0] in _EXPRESSIONS and value[0] in _EXPRESSIONS
    return bool(both) and not value_equal(side, value, policy)


_EXPRESSIONS = frozenset({"sym", "add", "mul", "pow", "fn"})


def _rounds(rounded: Node, value: Node) -> bool:
    r"""Whether a value behind `\approx` is near the exact one: within its last place."""
    try:
        r, v = numeric(_bare(rounded), {}), numeric(_bare(value), {})
    except UndefinedError:
        return True
    return abs(r - v) <= 0.01 * max(abs(v), abs(r))


def _bare(side: Node) -> Node:
    """A value without its unit."""
    value: Node = side[1] if side[0] in ("quantity", "percent") else side
    return value


def _has_value(side: Node) -> bool:
    bare = _bare(side)
    if symbols(bare) or bare[0] not in ("num", "const", "add", "mul", "pow", "fn", "degree"):
        return False
    spend(bare)
    try:
        numeric(bare, {})
    except UndefinedError:
        return False
    return True


#: Functions whose value a label may be: an angle, a length, a part, an inverse.
_NAMES_A_VALUE = frozenset(
    [
        "angle",
        "measuredangle",
        "triangle",
        "odot",
        "square",
        "overarc",
        "abs",
        "norm",
        "re",
        "im",
        "arg",
        "deg",
        "dim",
        "det",
    ]
) | {mark[1:] for mark in MARKS}


def _is_label(side: Node, value: Node, *, alone: bool = True) -> bool:
    """Whether one side names what the other is: `x`, `f(x)`, `P(A)`, `AB`, `|AB|`, `dy/dx`."""
    if any(part[0] == "fn" and part[1] in UNEVALUATED for part in walk(side)):
        return not any(part[0] == "fn" and part[1] in UNEVALUATED for part in walk(value))
    if side[0] == "sym":
        return side[1] not in symbols(value) and side[1] != "..."
    if side[0] == "tuple":
        return all(part[0] == "sym" for part in side[1:]) and not symbols(side) & symbols(value)
    if side[0] == "ratio":
        return all(_is_label(part, value) for part in side[1:])
    if side[0] == "fn":
        marks_a_value = side[1] in _NAMES_A_VALUE and not _has_number(side)
        of_names = alone and not _has_number(side) and not symbols(value)  # \sin A = 1/2
        return (_is_name(side[1]) or marks_a_value or of_names) and side not in list(walk(value))
    lengths = side[0] in ("mul", "pow") and not _has_number(side)
    return lengths and all(
        len(n) == 1 and n.isupper() for n in symbols(side) - symbols(value) or "x"
    )


def _has_number(side: Node) -> bool:
    """Whether anything but names stands in a tree; the exponent of a quotient is none."""
    if side[0] == "pow" and side[2] == MINUS_ONE:
        return _has_number(side[1])
    if side[0] in ("num", "const", "add", "pm", "rel"):
        return True
    return any(_has_number(part) for part in side[1:] if isinstance(part, tuple))


def _is_application(side: Node) -> bool:
    return side[0] == "fn" and _is_name(side[1])


def _is_name(name: str) -> bool:
    """Whether a function is an unknown one, `f`, `f'`, `P`, `f^-1`, `a_n`, and none of the table."""
    return len(name.removesuffix("^-1").rstrip("'").partition("_")[0]) == 1


def same_label(ours: Node | None, theirs: Node | None) -> bool:
    """Whether two labels may name one thing: `y` is not `x`; a word may stand for any name."""
    if ours is None or theirs is None:
        return True
    ours, theirs = _without_mark(ours), _without_mark(theirs)
    if ours == theirs:
        return True
    if ours[0] == theirs[0] == "fn":
        return ours[1] == theirs[1] and (_are_arguments(ours, theirs) or ours[2:] == theirs[2:])
    if ours[0] == theirs[0] == "sym":
        return is_word(ours[1]) != is_word(theirs[1])
    if {ours[0], theirs[0]} == {"sym", "fn"}:  # y = and f(x) =
        return (
            _is_application(ours)
            or _is_application(theirs)
            or is_word(ours[1])
            or is_word(theirs[1])
        )
    words = [label for label in (ours, theirs) if label[0] == "sym" and is_word(label[1])]
    return bool(words) or _alike(ours, theirs)


def _without_mark(label: Node) -> Node:
    r"""`\hat{y}` is named `y`."""
    marked: Node = label[2] if label[0] == "fn" and f"\\{label[1]}" in MARKS else label
    return marked


def _alike(ours: Node, theirs: Node) -> bool:
    return ours[0] == theirs[0] and sorted(map(repr, walk(ours))) == sorted(map(repr, walk(theirs)))


def is_word(name: str) -> bool:
    """Whether a name is a word of plain text, not a letter with its index."""
    return len(name.rstrip("'").partition("_")[0]) > 2


def renamed(value: Node, ours: Node | None, theirs: Node | None) -> Node:
    """`f(m) = 2m` is `f(n) = 2n`: the argument's name is the definition's own."""
    if ours and theirs and ours[0] == theirs[0] == "fn" and _are_arguments(ours, theirs):
        return substitute(value, dict(zip(ours[2:], theirs[2:], strict=True)))
    return value


def _are_arguments(ours: Node, theirs: Node) -> bool:
    """Whether two functions have as many arguments, all of them different names."""
    p = {part for part in ours[2:] if part[0] == "sym"}
    g = {part for part in theirs[2:] if part[0] == "sym"}
    return len(ours) == len(theirs) == len(p) + 2 == len(g) + 2


def proportional(pred: Node, gold: Node) -> bool:
    """Whether two equations are the same up to a constant factor that is not zero."""
    return _factor(pred, gold) is not None


def same_inequality(pred: Node, gold: Node) -> bool:
    """Whether two inequalities are the same up to a positive factor, with the sides rearranged."""
    factor = _factor(pred, gold)
    if factor is None or abs(factor.imag) > 1e-30:
        return False
    operator = pred[1] if factor.real > 0 else FLIPPED.get(pred[1], "")
    return bool(operator == gold[1])


def _factor(pred: Node, gold: Node) -> Any:
    """The constant by which the difference of one relation's sides is the other's; or None."""
    if len(pred) != 4 or len(gold) != 4:
        return None
    p = add(pred[2], mul(MINUS_ONE, pred[3]))
    g = add(gold[2], mul(MINUS_ONE, gold[3]))
    if not symbols(p) or symbols(p) != symbols(g):
        return None
    spend(p, g, times=POINTS * PRECISE)
    factors = []
    for point in points(p, g):
        try:
            factors.append(precise(p, point) / precise(g, point))
        except (UndefinedError, ZeroDivisionError):
            continue
    if len(factors) < 3 or not factors[0]:
        return None
    constant = all(abs(f - factors[0]) <= 1e-25 * abs(factors[0]) for f in factors[1:])
    return factors[0] if constant else None
