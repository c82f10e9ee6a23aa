"""Sets of real numbers in one form: a sorted list of disjoint intervals.

Intervals, unions, inequalities, set-builders, points and differences all become intervals, so that
`-1 < x <= 2` and `(-1, 2]` can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rewardkit.answers.evaluate import UndefinedError, charge_steps, evaluate_double, exact_value
from rewardkit.answers.parsing.tree import (
    INF,
    Node,
    add,
    divide,
    mul,
    neg,
    num,
    substitute,
    symbols,
)
from rewardkit.answers.parsing.vocabulary import FLIPPED_OPERATORS
from rewardkit.answers.scalar import value_equal


class RealInterval(NamedTuple):
    """An interval; a point is the closed interval whose ends are equal."""

    low: Node
    high: Node
    is_low_open: bool
    is_high_open: bool


class NoRegionError(ValueError):
    """A tree is not a set of real numbers, or the ends of its intervals cannot be ordered."""


_MINUS_INF = neg(INF)


def region_equal(pred: Node, gold: Node) -> bool | None:
    """Whether two trees are the same set of reals; None if one of them is not a set of reals."""
    try:
        p, g = _merge(read_intervals(pred)), _merge(read_intervals(gold))
    except (NoRegionError, UndefinedError):
        return None
    return len(p) == len(g) and all(map(_same_interval, p, g))


def read_intervals(node: Node) -> list[RealInterval]:
    """Return the intervals of a set, unordered.

    Raises:
        NoRegionError: the tree is not a set of reals.
    """
    read = _READERS.get(node[0])
    if read is None:
        raise NoRegionError(node[0])
    return read(node)


def _read_pair(node: Node) -> list[RealInterval]:
    """Return a pair as an open interval."""
    if len(node) != 3:
        raise NoRegionError("a tuple")
    return [RealInterval(node[1], node[2], True, True)]


def _read_real_line(node: Node) -> list[RealInterval]:
    if node[1] != "R":
        raise NoRegionError("a name")
    return [RealInterval(_MINUS_INF, INF, True, True)]


def _read_condition(node: Node) -> list[RealInterval]:
    operators, sides = node[1].split(), node[2:]
    if operators == ["in"]:
        return read_intervals(sides[1])
    if operators == ["notin"]:
        return _remove_points([RealInterval(_MINUS_INF, INF, True, True)], read_intervals(sides[1]))
    if len(operators) == 2 and not symbols(sides[1]) & (symbols(sides[0]) | symbols(sides[2])):
        return _read_chain(operators, sides)
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


def _read_distance(operator: str, inside: Node, end: Node) -> list[RealInterval]:
    """Return the intervals of a condition such as `|x - 1| < 3`."""
    center, radius = _center_and_radius(inside, end)
    is_strict = "=" not in operator
    low, high = add(center, neg(radius)), add(center, radius)
    if operator in ("<", "<=") and endpoint_value(end) > 0:
        return [RealInterval(low, high, is_strict, is_strict)]
    if operator in (">", ">="):
        return [
            RealInterval(_MINUS_INF, low, True, is_strict),
            RealInterval(high, INF, is_strict, True),
        ]
    raise NoRegionError(operator)


def _center_and_radius(inside: Node, end: Node) -> tuple[Node, Node]:
    """Return the center and the radius of `|inside| = end`, for a linear `inside`."""
    names = symbols(inside)
    if len(names) != 1 or symbols(end) or endpoint_value(end) < 0:
        raise NoRegionError("not a distance")
    name = ("sym", next(iter(names)))
    values = [exact_value(substitute(inside, {name: num(k)})) for k in range(3)]
    if (
        values[0] is None
        or values[1] is None
        or values[2] is None
        or values[2] - values[1] != values[1] - values[0]
        or values[0] == values[1]
    ):
        raise NoRegionError("not linear")
    slope = values[1] - values[0]
    return num(-values[0] / slope), end if abs(slope) == 1 else divide(end, num(abs(slope)))


def _half_line(operator: str, end: Node) -> list[RealInterval]:
    if operator in ("<", "<="):
        return [RealInterval(_MINUS_INF, end, True, operator == "<")]
    if operator in (">", ">="):
        return [RealInterval(end, INF, operator == ">", True)]
    if operator == "=":
        return [RealInterval(end, end, False, False)]
    if operator == "!=":
        return [RealInterval(_MINUS_INF, end, True, True), RealInterval(end, INF, True, True)]
    raise NoRegionError(operator)


def _read_chain(operators: list[str], sides: tuple[Node, ...]) -> list[RealInterval]:
    low, middle, high = sides
    if middle[:2] == ("fn", "abs") and operators[0][0] == operators[1][0] == "<":
        first = _read_distance(FLIPPED_OPERATORS[operators[0]], middle[2], low)
        second = _read_distance(operators[1], middle[2], high)
        return [cut for p in first for q in second if (cut := _overlap(p, q)) is not None]
    if middle[0] != "sym":
        raise NoRegionError("not solved")
    if set(operators) <= {">", ">="}:
        low, high, operators = high, low, operators[::-1]
    elif not set(operators) <= {"<", "<="}:
        raise NoRegionError("a mixed chain")
    return [RealInterval(low, high, operators[0] in "<>", operators[1] in "<>")]


def _remove_points(region: list[RealInterval], removed: list[RealInterval]) -> list[RealInterval]:
    """Return intervals without points.

    Raises:
        NoRegionError: one of the removed intervals is not a point.
    """
    for point in removed:
        if point.low != point.high:
            raise NoRegionError("a difference of intervals")
        position = endpoint_value(point.low)
        region = [
            cut for interval in region for cut in _remove_point(interval, point.low, position)
        ]
    return region


def _remove_point(interval: RealInterval, point: Node, position: float) -> list[RealInterval]:
    low, high = endpoint_value(interval.low), endpoint_value(interval.high)
    if low == high == position:
        return []
    if position in (low, high):
        return [
            interval._replace(
                is_low_open=interval.is_low_open or position == low,
                is_high_open=interval.is_high_open or position == high,
            )
        ]
    if not low < position < high:
        return [interval]
    return [
        interval._replace(high=point, is_high_open=True),
        interval._replace(low=point, is_low_open=True),
    ]


def endpoint_value(end: Node) -> float:
    """Return the position of an end on the real line.

    Raises:
        NoRegionError: the end is symbolic or not real.
        UndefinedError: the end has no value.
    """
    if end == INF:
        return float("inf")
    if end == _MINUS_INF or (end[0] == "mul" and INF in end):
        return float("-inf")
    if symbols(end):
        raise NoRegionError("a symbolic end")
    charge_steps(end, times=8)
    value = evaluate_double(end, {})
    if abs(value.imag) > 1e-9:
        raise NoRegionError("a complex end")
    return value.real


def _merge(parts: list[RealInterval]) -> list[RealInterval]:
    """Return intervals sorted and merged. A single interval may have symbolic ends."""
    if len(parts) == 1:
        return parts
    ordered = sorted(
        parts, key=lambda interval: (endpoint_value(interval.low), interval.is_low_open)
    )
    merged = ordered[:1]
    for interval in ordered[1:]:
        last = merged[-1]
        gap = endpoint_value(interval.low) - endpoint_value(last.high)
        if gap > 1e-12 or (abs(gap) <= 1e-12 and last.is_high_open and interval.is_low_open):
            merged.append(interval)
        elif endpoint_value(interval.high) >= endpoint_value(last.high):
            is_open = interval.is_high_open and (
                last.is_high_open or endpoint_value(interval.high) > endpoint_value(last.high)
            )
            merged[-1] = last._replace(high=interval.high, is_high_open=is_open)
    return merged


def _same_interval(p: RealInterval, g: RealInterval) -> bool:
    open_alike = (p.is_low_open, p.is_high_open) == (g.is_low_open, g.is_high_open)
    return open_alike and _same_endpoint(p.low, g.low) and _same_endpoint(p.high, g.high)


def _same_endpoint(p: Node, g: Node) -> bool:
    are_infinite = [end == INF or (end[0] == "mul" and INF in end) for end in (p, g)]
    if any(are_infinite):
        return all(are_infinite) and (p == INF) == (g == INF)
    return value_equal(p, g)


def _intersection(node: Node) -> list[RealInterval]:
    """Return the intersection of all parts."""
    first, *others = (read_intervals(part) for part in node[1:])
    for other in others:
        first = [cut for p in first for q in other if (cut := _overlap(p, q)) is not None]
    return first


def _read_builder(node: Node) -> list[RealInterval]:
    """Return the intervals of a set-builder over the reals; a set of integers is not a region."""
    is_over_others = node[1][0] == "rel" and node[1][3] != ("sym", "R")
    head = node[1][2] if node[1][0] == "rel" else node[1]
    if is_over_others or head[0] != "sym" or symbols(node[2]) - {head[1], "R"}:
        raise NoRegionError("not a set of reals")
    return read_intervals(node[2])


def _read_difference(node: Node) -> list[RealInterval]:
    """Return the intervals of a difference, whose right side may be one value without braces."""
    points = (
        read_intervals(node[2])
        if node[2][0] in _READERS
        else [RealInterval(node[2], node[2], False, False)]
    )
    return _remove_points(read_intervals(node[1]), points)


def _read_list(node: Node) -> list[RealInterval]:
    """Return the intersection of conditions, or the union of intervals.

    Conditions with commas that cannot all hold are a union too: `x < -1, x > 3`.
    """
    union = [interval for part in node[1:] for interval in read_intervals(part)]
    if any(part[0] != "rel" for part in node[1:]):
        return union
    intersection = _intersection(node)
    return intersection if intersection or node[0] == "and" else union


def _overlap(p: RealInterval, q: RealInterval) -> RealInterval | None:
    low = max((p, q), key=lambda interval: (endpoint_value(interval.low), interval.is_low_open))
    high = min(
        (p, q), key=lambda interval: (endpoint_value(interval.high), not interval.is_high_open)
    )
    start, end = endpoint_value(low.low), endpoint_value(high.high)
    is_empty = start > end or (start == end and (low.is_low_open or high.is_high_open))
    return (
        None if is_empty else RealInterval(low.low, high.high, low.is_low_open, high.is_high_open)
    )


_READERS: Mapping[str, Callable[[Node], list[RealInterval]]] = {
    "interval": lambda node: [RealInterval(*node[1:])],
    "tuple": _read_pair,
    "set": lambda node: [RealInterval(item, item, False, False) for item in node[1:]],
    "union": lambda node: [interval for part in node[1:] for interval in read_intervals(part)],
    "or": lambda node: [interval for part in node[1:] for interval in read_intervals(part)],
    "and": _read_list,
    "meet": _intersection,
    "list": _read_list,
    "builder": _read_builder,
    "minus": _read_difference,
    "rel": _read_condition,
    "sym": _read_real_line,
}
