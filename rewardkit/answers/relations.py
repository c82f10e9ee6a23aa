"""Equations, inequalities, and the sets of real numbers that they describe.

A labelled equation or a chain has a value. Intervals, unions, inequalities, set-builders, points and
differences all become a sorted list of disjoint intervals, so that `-1 < x <= 2` equals `(-1, 2]`.
"""

import math
from fractions import Fraction
from typing import NamedTuple

from rewardkit.answers.parsing.tree import (
    INF,
    MINUS_ONE,
    Node,
    add,
    children,
    divide,
    mul,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.parsing.vocabulary import (
    ACCENTS,
    ARITHMETIC_FUNCTIONS,
    FLIPPED_OPERATORS,
    LETTER_COMMANDS,
    split_words,
)
from rewardkit.answers.scalar import (
    PRECISE_STEPS,
    SAMPLE_POINTS,
    Policy,
    UndefinedError,
    canonical_text,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    exact_value,
    rounds_to,
    sample_points,
    scalar_equal,
    value_equal,
)
from rewardkit.answers.simplification import UNEVALUATED, is_simplified


class Solution(NamedTuple):
    r"""The name, the value, and the decimal after `\approx` of a solved equation."""

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
        is_identity = all(_is_expression(side) and side[0] != "sym" for side in sides)
        is_chain = len(sides) > 1 or rounding is not None
        if not is_chain or (len(closed_sides) < len(sides) and not is_identity):
            return None
    if not is_simplified(value):
        value = next(filter(is_simplified, closed_sides), value)
    return Solution(label, value, rounding)


def equation_value(node: Node, policy: Policy) -> Node:
    """Return the value of a solved equation; any other node unchanged."""
    answer = solution_of(node, policy) if is_equation(node) else None
    return node if answer is None else answer.value


def _agree(side: Node, value: Node, policy: Policy) -> bool:
    """Whether a side of a chain may be its last one: numbers are compared, and so are expressions."""
    if _is_expression(side) and _is_expression(value):
        return value_equal(side, value, policy)
    if not (_has_value(side) and _has_value(value)):
        return True
    if "percent" in (side[0], value[0]):
        return scalar_equal(side, value, policy)
    return value_equal(_without_unit(side), _without_unit(value), policy)


def _is_expression(side: Node) -> bool:
    return side[0] in ("sym", "add", "mul", "pow", "fn") and bool(symbols(side))


def _is_rounding(rounding: Node, value: Node) -> bool:
    r"""Whether the number after `\approx` is the value before it, rounded to the digits shown."""
    number = rounding[1] if rounding[0] == "degree" else _without_unit(rounding)
    if number[0] != "num" or (number[2] is None and number[1].denominator != 1):
        return False
    try:
        value_in_double = evaluate_double(_without_unit(value), {}).real
    except UndefinedError:
        return True
    exact = Fraction(math.degrees(value_in_double) if rounding[0] == "degree" else value_in_double)
    if (rounding[0] == "percent") != (value[0] == "percent"):
        exact *= 100 if rounding[0] == "percent" else Fraction(1, 100)
    zeros = len(str(number[1])) - len(str(number[1]).rstrip("0"))  # 300 may be rounded to hundreds
    return rounds_to(exact, number if number[2] is not None else num(number[1], -zeros))


def _without_unit(side: Node) -> Node:
    return tuple(side[1] if side[0] in ("quantity", "percent") else side)


def _has_value(side: Node) -> bool:
    bare = _without_unit(side)
    if symbols(bare):
        return False
    charge_steps(bare)
    try:
        return evaluate_double(bare, {}) is not None
    except UndefinedError:
        return False


# --- labels

#: Functions whose application may be a label: an angle, a length, a part, an inverse.
_VALUE_FUNCTIONS = split_words(
    "angle measuredangle triangle odot square overarc abs norm re im arg deg dim det dot cross"
) | {mark[1:] for mark in ACCENTS}


def _is_label(side: Node, value: Node, *, is_alone: bool = True) -> bool:
    """Whether one side names the value of the other: `x`, `f(x)`, `P(A)`, `AB`, `|AB|`, `dy/dx`."""
    if _is_unevaluated(side):
        return not _is_unevaluated(value)
    names = symbols(side)
    match side[0]:
        case "sym":
            index = side[1].partition("_")[2]  # a_{n+1} is not the general member
            is_shifted = any(map(index.__contains__, "+-")) and any(map(str.isalpha, index))
            is_free = {side[1], side[1].rstrip("'")}.isdisjoint(symbols(value))
            return is_free and side[1] != "..." and not is_shifted
        case "tuple":
            are_names = all(part[0] == "sym" for part in side[1:])
            is_same_size = value[0] != "tuple" or len(value) == len(side)
            return are_names and is_same_size and not names & symbols(value)
        case "ratio":
            return all(_is_label(part, value) for part in side[1:])
        case "fn" if is_function_name(side[1]):
            functions = {part[1] for part in subtrees(value) if part[0] == "fn"}
            return functions.isdisjoint((side[1], side[1].rstrip("'")))
        case "fn":
            is_value = side[1] in _VALUE_FUNCTIONS or (is_alone and not symbols(value))
            return is_value and not _has_number(side) and side not in subtrees(value)
        case "mul" if side[1] == ("sym", "nabla"):
            return not _has_number(side)
        case "mul" | "pow":
            points = names - {"m"}  # as in `m\angle A`
            are_points = all(map(str.isupper, points))
            return bool(points) and are_points and not _has_number(side)
    return False


def _is_unevaluated(side: Node) -> bool:
    return any(part[0] == "fn" and part[1] in UNEVALUATED for part in subtrees(side))


def _has_number(side: Node) -> bool:
    """Whether a tree holds a number, a sum or a relation, apart from the exponent of a quotient."""
    if side[0] == "pow" and side[2] == MINUS_ONE:
        return _has_number(side[1])
    return side[0] in ("num", "const", "add", "pm", "rel") or any(map(_has_number, children(side)))


def is_function_name(name: str) -> bool:
    """Whether a function has a name of the question, such as `f`, `f'`, `P`, `f^-1` or `a_n`."""
    base = name.partition("^")[0].rstrip("'").partition("_")[0]
    return len(base) == 1 or base == "Pr" or base in ARITHMETIC_FUNCTIONS


def labels_agree(ours: Solution, theirs: Solution) -> bool:
    """Whether two labels may name one thing: `y` differs from `x`; a word may mean any name."""
    if ours.label is None or theirs.label is None:
        return True
    p, g = ours.label, theirs.label
    if (p[0] == "sym" and is_word(p[1])) != (g[0] == "sym" and is_word(g[1])):
        return True
    if {p, g} == {("sym", "r"), ("sym", "rho")}:  # the radius of polar coordinates
        return "theta" in symbols(theirs.value)
    if p[0] == g[0] == "fn":
        is_same = canonical_text(p) == canonical_text(g)
        return bool(p[1] == g[1]) and (is_same or _are_same_definition(ours, theirs))
    if {p[0], g[0]} == {"sym", "fn"}:  # y and f(x)
        name, function = (p[1], g[1]) if p[0] == "sym" else (g[1], p[1])
        is_usual = name[0] in "yzu" and function[0] in "fghFGH" and name[1:] == function[1:]
        return bool(name == function) or is_usual
    return canonical_text(p) == canonical_text(g)


def is_word(name: str) -> bool:
    """Whether a name is a word of plain text, not a letter with its index."""
    is_marked = name.startswith(("vec ", "Delta ")) or f"\\{name}" in LETTER_COMMANDS
    return len(name) > 1 and not is_marked and name.replace(" ", "").isalpha()


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


# --- equations up to a factor


def are_proportional(pred: Node, gold: Node) -> bool:
    """Whether two equations are the same up to a nonzero constant factor."""
    p, g = (add(node[2], neg(node[3])) for node in (pred, gold))
    if not len(pred) == len(gold) == 4 or not symbols(p) or symbols(p) != symbols(g):
        return False
    charge_steps(p, g, times=SAMPLE_POINTS * PRECISE_STEPS)
    factors = []
    for point in sample_points(p, g):
        try:
            factors.append(evaluate_digits(p, point) / evaluate_digits(g, point))
        except (UndefinedError, ZeroDivisionError):
            continue
    if len(factors) < 3 or not factors[0]:
        return False
    factor = factors[0]
    return all(abs(other - factor) <= 1e-25 * abs(factor) for other in factors)


# --- sets of real numbers


class RealInterval(NamedTuple):
    """An interval; a point is the closed interval whose ends are equal."""

    low: Node
    high: Node
    is_low_open: bool
    is_high_open: bool


class NoRegionError(ValueError):
    """A tree is not a set of real numbers, or the ends of its intervals cannot be ordered."""


_MINUS_INF = neg(INF)
_ALL_REALS = RealInterval(_MINUS_INF, INF, True, True)


def same_region(pred: Node, gold: Node) -> bool | None:
    """Whether both are one set of reals in the same variable; None if one is not such a set."""
    p, g = _condition_variables(pred), _condition_variables(gold)
    if len(p) > 1 or len(g) > 1 or (p and g and p != g):
        return None
    try:
        own, other = _merge(read_intervals(pred)), _merge(read_intervals(gold))
    except (NoRegionError, UndefinedError):
        return None
    return len(own) == len(other) and all(map(_same_interval, own, other))


def _condition_variables(node: Node) -> set[str]:
    if node[0] == "builder":
        return set()
    variables = set()
    for relation in [part for part in subtrees(node) if part[0] == "rel"]:
        names = symbols(relation)
        sides = [*names] if len(names) == 1 else [s[1] for s in relation[2:] if s[0] == "sym"]
        variables.add(repr(sides[0] if sides else relation[2]))
    return variables


# --- trees to intervals

_SETS = ("set", "interval", "tuple", "union", "meet", "minus", "builder", "sym")


def read_intervals(node: Node) -> list[RealInterval]:  # noqa: C901 - one case for each kind
    """Return the intervals of a set, unordered."""
    match node:
        case ("sym", "R"):
            return [_ALL_REALS]
        case ("interval", *ends):
            return [RealInterval(*ends)]
        case ("tuple", low, high):
            return [RealInterval(low, high, True, True)]
        case ("set", *points):
            return [RealInterval(point, point, False, False) for point in points]
        case ("minus", whole, removed):
            hole: Node = removed if removed[0] in _SETS else ("set", removed)
            return _without(read_intervals(whole), read_intervals(hole))
        case ("builder", ("rel", _, ("sym", name), ("sym", "R")) | ("sym", name), condition):
            if symbols(condition) <= {name, "R"}:
                return read_intervals(condition)
        case ("and" | "list" as kind, *parts) if all(part[0] == "rel" for part in parts):
            shared = _intersect(*map(read_intervals, parts))
            # conditions with commas that cannot all hold are a union, too: `x < -1, x > 3`
            return shared if shared or kind == "and" else read_intervals(("union", *parts))
        case ("union" | "or" | "and" | "list", *parts):
            return [interval for part in parts for interval in read_intervals(part)]
        case ("rel", *_):
            return _read_condition(node)
    raise NoRegionError(node[0])


def _read_condition(node: Node) -> list[RealInterval]:
    operators, sides = node[1].split(), node[2:]
    if operators == ["in"]:
        return read_intervals(sides[1])
    if len(operators) == 2 and not symbols(sides[1]) & (symbols(sides[0]) | symbols(sides[2])):
        return _read_chain(operators, *sides)
    if len(operators) != 1:
        raise NoRegionError("a chain")
    left, right, operator = sides[0], sides[1], operators[0]
    if not symbols(left) or (right[0] == "sym" and left[0] not in ("sym", "fn")):
        left, right, operator = right, left, FLIPPED_OPERATORS.get(operator, "")
    names = [factor for factor in left[1:] if symbols(factor)] if left[0] == "mul" else []
    if len(names) == 1 and (factor := exact_value(mul(*(f for f in left[1:] if f not in names)))):
        operator = operator if factor > 0 else FLIPPED_OPERATORS.get(operator, "")
        left, right = names[0], divide(right, num(factor))
    if left[:2] == ("fn", "abs") and operator in FLIPPED_OPERATORS:
        return _read_distance(operator, left[2], right)
    if left[0] != "sym" or symbols(left) & symbols(right):
        raise NoRegionError("not solved")
    return _half_line(operator, right)


def _half_line(operator: str, end: Node) -> list[RealInterval]:
    is_open = "=" not in operator or operator == "!="
    below = RealInterval(_MINUS_INF, end, True, is_open)
    above = RealInterval(end, INF, is_open, True)
    point = RealInterval(end, end, False, False)
    regions = {"<": [below], ">": [above], "=": [point], "!=": [below, above]}
    try:
        return regions[operator if operator in regions else operator.removesuffix("=")]
    except KeyError:
        raise NoRegionError(operator) from None


def _read_distance(operator: str, inside: Node, end: Node) -> list[RealInterval]:
    """Return the intervals of `|x| < 3` or `|x| > 3`."""
    if inside[0] != "sym" or operator[0] not in "<>" or endpoint_value(end) <= 0:
        raise NoRegionError("not a distance from zero")
    if "<" in operator:
        return _intersect(
            _half_line(operator, end), _half_line(operator.replace("<", ">"), neg(end))
        )
    return [*_half_line(operator, end), *_half_line(operator.replace(">", "<"), neg(end))]


def _read_chain(operators: list[str], low: Node, middle: Node, high: Node) -> list[RealInterval]:
    if not (set(operators) <= {"<", "<="} or set(operators) <= {">", ">="}):
        raise NoRegionError("a mixed chain")
    if middle[0] != "sym":  # 1 < |x| < 3
        sides = ((low, middle), (middle, high))
        conditions = (("rel", o, *pair) for o, pair in zip(operators, sides, strict=True))
        return _intersect(*map(_read_condition, conditions))
    if ">" in operators[0]:
        low, high, operators = high, low, operators[::-1]
    return [RealInterval(low, high, "=" not in operators[0], "=" not in operators[1])]


# --- operations


def endpoint_value(end: Node) -> float:
    """Return the position of an end on the real line."""
    if end == INF:
        return math.inf
    if INF in end:
        return -math.inf
    if symbols(end):
        raise NoRegionError("a symbolic end")
    charge_steps(end, times=8)
    value = evaluate_double(end, {})
    if abs(value.imag) > 1e-9:
        raise NoRegionError("a complex end")
    return value.real


def _without(region: list[RealInterval], removed: list[RealInterval]) -> list[RealInterval]:
    for low, high, is_low_open, is_high_open in removed:
        below = RealInterval(_MINUS_INF, low, True, not is_low_open)
        region = _intersect(region, [below, RealInterval(high, INF, not is_high_open, True)])
    return region


def _intersect(*regions: list[RealInterval]) -> list[RealInterval]:
    first, *others = regions
    for other in others:
        first = [cut for p in first for q in other if (cut := _overlap(p, q)) is not None]
    return first


def _overlap(p: RealInterval, q: RealInterval) -> RealInterval | None:
    low = max(p, q, key=lambda interval: (endpoint_value(interval.low), interval.is_low_open))
    high = min(p, q, key=_high_end)
    cut = RealInterval(low.low, high.high, low.is_low_open, high.is_high_open)
    start, end = endpoint_value(cut.low), endpoint_value(cut.high)
    is_empty = start > end or (start == end and (cut.is_low_open or cut.is_high_open))
    return None if is_empty else cut


def _high_end(interval: RealInterval) -> tuple[float, bool]:
    return endpoint_value(interval.high), not interval.is_high_open


def _merge(parts: list[RealInterval]) -> list[RealInterval]:
    if len(parts) == 1:
        return parts
    merged: list[RealInterval] = []
    for interval in sorted(parts, key=lambda part: (endpoint_value(part.low), part.is_low_open)):
        last = merged[-1] if merged else None
        gap = endpoint_value(interval.low) - endpoint_value(last.high) if last else math.inf
        if last is None or gap > 1e-12 or (gap > -1e-12 and last[3] and interval.is_low_open):
            merged.append(interval)
            continue
        longest = max(last, interval, key=_high_end)
        merged[-1] = last._replace(high=longest.high, is_high_open=longest.is_high_open)
    return merged


def _same_interval(p: RealInterval, g: RealInterval) -> bool:
    return p[2:] == g[2:] and all(map(_same_endpoint, p[:2], g[:2]))


def _same_endpoint(p: Node, g: Node) -> bool:
    return p == g or (INF not in (p, g, *p, *g) and value_equal(p, g))
