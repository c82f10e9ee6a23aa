"""Sets of real numbers in one form: a sorted list of disjoint intervals.

Intervals, unions, inequalities, set-builders, points and differences all become intervals, so that
`-1 < x <= 2` and `(-1, 2]` can be compared.
"""

import math
from typing import NamedTuple

from rewardkit.answers.parsing.tree import (
    INF,
    Node,
    add,
    divide,
    mul,
    neg,
    num,
    subtrees,
    symbols,
)
from rewardkit.answers.parsing.vocabulary import FLIPPED_OPERATORS
from rewardkit.answers.scalar import (
    UndefinedError,
    charge_steps,
    evaluate_double,
    exact_value,
    linear_coefficients,
    value_equal,
)

#: Most members of a set of integers that is enumerated.
MAX_ENUMERATED_MEMBERS = 60


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
    if len(p) > 1 or len(g) > 1:
        return None
    if p and g and p != g:
        return False if len(symbols(pred)) == len(symbols(gold)) == 1 else None
    return region_equal(pred, gold)


def _condition_variables(node: Node) -> set[str]:
    if node[0] == "builder":
        return set()
    variables = set()
    for relation in [part for part in subtrees(node) if part[0] == "rel"]:
        sides = [side[1] for side in relation[2:] if side[0] == "sym"]
        names = symbols(relation)
        variables.add(repr(sides[0] if sides else relation[2]) if len(names) != 1 else repr(*names))
    return variables


def region_equal(pred: Node, gold: Node) -> bool | None:
    """Whether two trees are the same set of reals; None if one of them is not a set of reals."""
    try:
        p, g = _merge(read_intervals(pred)), _merge(read_intervals(gold))
    except (NoRegionError, UndefinedError):
        return None
    return len(p) == len(g) and all(map(_same_interval, p, g))


def enumerate_members(node: Node) -> Node:
    r"""Return `\{x \in \mathbb{Z} \mid 1 < x < 5\}` as `\{2, 3, 4\}`; any other node unchanged."""
    if node[0] != "builder" or node[1][0] != "rel" or node[1][3] not in _LEAST_MEMBERS:
        return node
    least = _LEAST_MEMBERS[node[1][3]]
    members: set[int] = set()
    try:
        for interval in read_intervals(node[2]):
            low, high = max(endpoint_value(interval.low), least), endpoint_value(interval.high)
            if high - low > MAX_ENUMERATED_MEMBERS:
                return node
            inside = set(range(math.ceil(low), math.floor(high) + 1))
            inside -= {low} if interval.is_low_open and low != least else set()
            members |= inside - ({high} if interval.is_high_open else set())
    except (NoRegionError, UndefinedError):
        return node
    return ("set", *map(num, sorted(members)))


_LEAST_MEMBERS = {
    **dict.fromkeys([("sym", "Z"), ("sym", "set Z")], -math.inf),
    **dict.fromkeys([("sym", "N"), ("sym", "set N")], 0),
    **dict.fromkeys([("sym", "set N*"), ("sym", "set N+"), ("sym", "set Z+")], 1),
}


# --- trees to intervals


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
        case ("meet", *parts):
            return _intersect(*map(read_intervals, parts))
        case ("minus", whole, removed):
            return _without(read_intervals(whole), read_intervals(removed))
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
    if operators == ["notin"]:
        return _without([_ALL_REALS], read_intervals(sides[1]))
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
    below = RealInterval(_MINUS_INF, end, True, "=" not in operator)
    above = RealInterval(end, INF, "=" not in operator, True)
    match operator:
        case "<" | "<=":
            return [below]
        case ">" | ">=":
            return [above]
        case "=":
            return [RealInterval(end, end, False, False)]
        case "!=":
            return [below._replace(is_high_open=True), above._replace(is_low_open=True)]
    raise NoRegionError(operator)


def _read_distance(operator: str, inside: Node, end: Node) -> list[RealInterval]:
    """Return the intervals of a condition such as `|x - 1| < 3`, for a linear left side."""
    names = symbols(inside)
    if len(names) != 1 or endpoint_value(end) < 0:
        raise NoRegionError("not a distance")
    line = linear_coefficients(inside, *names)
    if line is None:
        raise NoRegionError("not linear")
    start, step = line
    center, radius = num(-start / step), divide(end, num(abs(step)))
    is_open = "=" not in operator
    low, high = add(center, neg(radius)), add(center, radius)
    if operator in ("<", "<=") and endpoint_value(end) > 0:
        return [RealInterval(low, high, is_open, is_open)]
    if operator in (">", ">="):
        return [*_half_line(operator.replace(">", "<"), low), *_half_line(operator, high)]
    raise NoRegionError(operator)


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
    for interval in removed:
        rest = (
            RealInterval(_MINUS_INF, interval.low, True, not interval.is_low_open),
            RealInterval(interval.high, INF, not interval.is_high_open, True),
        )
        region = _intersect(region, list(rest))
    return region


def _intersect(*regions: list[RealInterval]) -> list[RealInterval]:
    first, *others = regions
    for other in others:
        first = [cut for p in first for q in other if (cut := _overlap(p, q)) is not None]
    return first


def _overlap(p: RealInterval, q: RealInterval) -> RealInterval | None:
    low = max(p, q, key=lambda interval: (endpoint_value(interval.low), interval.is_low_open))
    high = min(
        p, q, key=lambda interval: (endpoint_value(interval.high), not interval.is_high_open)
    )
    cut = RealInterval(low.low, high.high, low.is_low_open, high.is_high_open)
    start, end = endpoint_value(cut.low), endpoint_value(cut.high)
    is_empty = start > end or (start == end and (cut.is_low_open or cut.is_high_open))
    return None if is_empty else cut


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
        longest = max(
            last, interval, key=lambda part: (endpoint_value(part.high), not part.is_high_open)
        )
        merged[-1] = last._replace(high=longest.high, is_high_open=longest.is_high_open)
    return merged


def _same_interval(p: RealInterval, g: RealInterval) -> bool:
    is_alike = (p.is_low_open, p.is_high_open) == (g.is_low_open, g.is_high_open)
    return is_alike and _same_endpoint(p.low, g.low) and _same_endpoint(p.high, g.high)


def _same_endpoint(p: Node, g: Node) -> bool:
    are_infinite = [end == INF or INF in end for end in (p, g)]
    if any(are_infinite):
        return all(are_infinite) and (p == INF) == (g == INF)
    return value_equal(p, g)
