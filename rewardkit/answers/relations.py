"""Equations: the value of a labelled equation or a chain, and equality of equations."""

from typing import Any, NamedTuple

from rewardkit.answers.parsing.tree import (
    MINUS_ONE,
    Node,
    add,
    children,
    neg,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.parsing.vocabulary import ACCENTS, FLIPPED_OPERATORS, split_words
from rewardkit.answers.scalar import (
    PRECISE_STEPS,
    SAMPLE_POINTS,
    Policy,
    UndefinedError,
    canonical_text,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    sample_points,
    scalar_equal,
    value_equal,
)
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

    A chain whose values differ contradicts itself and has no solution.
    """
    sides = list(node[2:])
    is_alone = len(sides) == 2
    if is_alone and not _is_label(*sides) and _is_label(sides[1], sides[0]):
        sides.reverse()
    label = None
    while len(sides) > 1 and _is_label(sides[0], sides[-1], is_alone=is_alone):
        label = label or sides[0]
        del sides[0]
    rounding = sides.pop() if len(sides) > 1 and node[1].endswith("~") else None
    value = sides[-1]
    closed_sides = [side for side in sides if _has_value(side)]
    if not all(_agree(side, value, policy) for side in sides):
        return None
    if rounding is not None and closed_sides and not _is_rounding(rounding, value):
        return None
    if label is None:
        is_chain = len(sides) > 1 or rounding is not None
        if not is_chain or len(closed_sides) < len(sides):
            return None
    if not is_simplified(value):
        value = next(filter(is_simplified, closed_sides), value)
    return Solution(label, value, rounding)


def equation_value(node: Node, policy: Policy) -> Node:
    """Return the value of a solved equation; any other node unchanged."""
    answer = solution_of(node, policy) if is_equation(node) else None
    return node if answer is None else answer.value


def _agree(side: Node, value: Node, policy: Policy) -> bool:
    """Whether a side of a chain may be its last one: numbers must be equal, `1/2 = 50%`."""
    if not (_has_value(side) and _has_value(value)):
        return True
    if "percent" in (side[0], value[0]):
        return scalar_equal(side, value, policy)
    return value_equal(_without_unit(side), _without_unit(value), policy)


def _is_rounding(rounding: Node, value: Node) -> bool:
    r"""Whether the value after `\approx` is within 1% of the exact one."""
    try:
        r, v = (evaluate_double(_without_unit(side), {}) for side in (rounding, value))
    except UndefinedError:
        return True
    return abs(r - v) <= 0.01 * max(abs(v), abs(r))


def _without_unit(side: Node) -> Node:
    value: Node = side[1] if side[0] in ("quantity", "percent") else side
    return value


def _has_value(side: Node) -> bool:
    bare = _without_unit(side)
    if symbols(bare):
        return False
    charge_steps(bare)
    try:
        evaluate_double(bare, {})
    except UndefinedError:
        return False
    return True


# --- labels

#: Functions whose application may be a label: an angle, a length, a part, an inverse.
_VALUE_FUNCTIONS = split_words(
    "angle measuredangle triangle odot square overarc abs norm re im arg deg dim det"
) | {mark[1:] for mark in ACCENTS}
#: Accents that do not change the named quantity, unlike a bar (the conjugate or the mean).
_NEUTRAL_ACCENTS = frozenset({"widehat", "widetilde", "overrightarrow"})


def _is_label(side: Node, value: Node, *, is_alone: bool = True) -> bool:
    """Whether one side names the value of the other: `x`, `f(x)`, `P(A)`, `AB`, `|AB|`, `dy/dx`."""
    if _is_unevaluated(side):
        return not _is_unevaluated(value)
    names = symbols(side)
    match side[0]:
        case "sym":
            index = side[1].partition("_")[2]  # a_{n+1} is not the general member
            is_shifted = any(map(index.__contains__, "+-")) and any(map(str.isalpha, index))
            return side[1] not in symbols(value) and side[1] != "..." and not is_shifted
        case "tuple":
            are_names = all(part[0] == "sym" for part in side[1:])
            is_same_size = value[0] != "tuple" or len(value) == len(side)
            return are_names and is_same_size and not names & symbols(value)
        case "ratio":
            return all(_is_label(part, value) for part in side[1:])
        case "fn" if _is_function_name(side[1]):
            is_plain = all(part[0] in ("sym", "num", "const", "tuple") for part in side[2:])
            return (is_plain or side[1] in ("P", "Pr", "E", "p")) and side not in subtrees(value)
        case "fn":
            is_value = side[1] in _VALUE_FUNCTIONS or (is_alone and not symbols(value))
            return is_value and not _has_number(side) and side not in subtrees(value)
        case "mul" | "pow":
            are_points = all(len(name) == 1 and name.isupper() for name in names or {"x"})
            return _is_measure(side) or (are_points and not _has_number(side))
    return False


def _is_unevaluated(side: Node) -> bool:
    return any(part[0] == "fn" and part[1] in UNEVALUATED for part in subtrees(side))


def _is_measure(side: Node) -> bool:
    return side[:2] == ("mul", ("sym", "m")) and side[2][:2] == ("fn", "angle")


def _has_number(side: Node) -> bool:
    """Whether a tree holds a number, a sum or a relation, apart from the exponent of a quotient."""
    if side[0] == "pow" and side[2] == MINUS_ONE:
        return _has_number(side[1])
    return side[0] in ("num", "const", "add", "pm", "rel") or any(map(_has_number, children(side)))


def _is_function_name(name: str) -> bool:
    """Whether a function has a name of the question, such as `f`, `f'`, `P`, `f^-1` or `a_n`."""
    return len(name.partition("^")[0].rstrip("'").partition("_")[0]) == 1 or name == "Pr"


def labels_agree(ours: Solution, theirs: Solution) -> bool:
    """Whether two labels may name one thing: `y` differs from `x`; a word may mean any name."""
    if ours.label is None or theirs.label is None:
        return True
    p, g = _without_accent(ours.label), _without_accent(theirs.label)
    if (p[0] == "sym" and is_word(p[1])) != (g[0] == "sym" and is_word(g[1])):
        return True
    if p[0] == g[0] == "fn":
        is_same = canonical_text(p) == canonical_text(g)
        return bool(p[1] == g[1]) and (is_same or _are_same_definition(ours, theirs))
    if {p[0], g[0]} == {"sym", "fn"}:  # y and f(x)
        name, function = (p[1], g[1]) if p[0] == "sym" else (g[1], p[1])
        return bool(name == function) or (name == "y" and function in "fgh")
    return canonical_text(p) == canonical_text(g)


def _without_accent(label: Node) -> Node:
    is_accented = label[0] == "fn" and label[1] in _NEUTRAL_ACCENTS
    name: Node = label[2] if is_accented or _is_measure(label) else label
    return name


def is_word(name: str) -> bool:
    """Whether a name is a word of plain text, not a letter with its index."""
    is_marked = name.startswith(("vec ", "Delta "))
    return len(name) > 2 and not is_marked and name.replace(" ", "").isalpha()


def rename_arguments(ours: Solution, theirs: Solution) -> list[Node]:
    """Return the answer's values with the gold's argument names: `f(m) = 2m` is `f(n) = 2n`."""
    if ours.label and theirs.label and _are_same_definition(ours, theirs):
        pairs = dict(zip(ours.label[2:], theirs.label[2:], strict=True))
        return [substitute(value, pairs) for value in ours.values]
    return ours.values


def _are_same_definition(ours: Solution, theirs: Solution) -> bool:
    p, g = ours.label or (), theirs.label or ()
    if p[:1] != ("fn",) or g[:1] != ("fn",) or len(p) != len(g):
        return False
    names = [{part[1] for part in label[2:] if part[0] == "sym"} for label in (p, g)]
    if not all(len(group) == len(p) - 2 for group in names):
        return False
    used_names = names[0] & symbols(ours.value), names[1] & symbols(theirs.value)
    return all(used_names) or (not any(used_names) and p[1][:1] in "fgh")


# --- equations and inequalities up to a factor


def are_proportional(pred: Node, gold: Node) -> bool:
    """Whether two equations are the same up to a nonzero constant factor."""
    return _constant_factor(pred, gold) is not None


def inequalities_equal(pred: Node, gold: Node) -> bool:
    """Whether two inequalities are the same up to rearrangement and a constant factor."""
    factor = _constant_factor(pred, gold)
    if factor is None or abs(factor.imag) > 1e-30:
        return False
    return bool(gold[1] == (pred[1] if factor.real > 0 else FLIPPED_OPERATORS.get(pred[1])))


def _constant_factor(pred: Node, gold: Node) -> Any:
    """Return the constant ratio of the differences of two relations' sides; None without one."""
    p, g = (add(node[2], neg(node[3])) for node in (pred, gold))
    if not len(pred) == len(gold) == 4 or not symbols(p) or symbols(p) != symbols(g):
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
    is_constant = all(abs(f - factors[0]) <= 1e-25 * abs(factors[0]) for f in factors)
    return factors[0] if is_constant else None
