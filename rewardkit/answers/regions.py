"""Sets of real numbers in one form: sorted pieces, each with its ends and whether they are open.

Intervals, unions, inequalities, set-builders, points and differences all become pieces, so that
`-1 < x <= 2` and `(-1, 2]` compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rewardkit.answers.budget import spend
from rewardkit.answers.evaluate import exact, numeric
from rewardkit.answers.fields import UndefinedError
from rewardkit.answers.reading.names import FLIPPED
from rewardkit.answers.reading.tree import (
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
from rewardkit.answers.scalar import value_equal


class Piece(NamedTuple):
    """An interval; a point is closed at both ends, which are the same."""

    low: Node
    high: Node
    low_open: bool
    high_open: bool


class NoRegionError(ValueError):
    """A tree is not a set of real numbers, or its ends cannot be ordered."""


_MINUS_INF = neg(INF)


def region_equal(pred: Node, gold: Node) -> bool | None:
    """Whether two trees are the same set of reals; None if one of them is not a set of reals."""
    try:
        p, g = _joined(pieces(pred)), _joined(pieces(gold))
    except (NoRegionError, UndefinedError):
        return None
    return len(p) == len(g) and all(map(_same_piece, p, g))


def pieces(node: Node) -> list[Piece]:
    """The pieces of a set, unordered.

    Raises:
        NoRegionError: the tree is not a set of reals.
    """
    read = _READERS.get(node[0])
    if read is None:
        raise NoRegionError(node[0])
    return read(node)


def _pair(node: Node) -> list[Piece]:
    """A tuple of two may be an open interval."""
    if len(node) != 3:
        raise NoRegionError("a tuple")
    return [Piece(node[1], node[2], True, True)]


def _line(node: Node) -> list[Piece]:
    if node[1] != "R":
        raise NoRegionError("a name")
    return [Piece(_MINUS_INF, INF, True, True)]


def _condition(node: Node) -> list[Piece]:
    operators, sides = node[1].split(), node[2:]
    if operators == ["in"]:
        return pieces(sides[1])
    if operators == ["notin"]:
        return _without([Piece(_MINUS_INF, INF, True, True)], pieces(sides[1]))
    if len(operators) == 2 and not symbols(sides[1]) & (symbols(sides[0]) | symbols(sides[2])):
        return _between(operators, sides)
    if len(operators) != 1:
        raise NoRegionError("a chain")
    left, right, operator = sides[0], sides[1], operators[0]
    if not symbols(left) or (right[0] == "sym" and left[0] not in ("sym", "fn")):
        left, right, operator = right, left, FLIPPED.get(operator, "")
    names = [factor for factor in left[1:] if symbols(factor)] if left[0] == "mul" else []
    if len(names) == 1 and (factor := exact(mul(*(f for f in left[1:] if f not in names)))):
        operator = operator if factor > 0 else FLIPPED.get(operator, "")
        left, right = names[0], divide(right, num(factor))
    if left[:2] == ("fn", "abs") and operator in FLIPPED:
        return _distance(operator, left[2], right)
    if left[0] != "sym" or symbols(left) & symbols(right):
        raise NoRegionError("not solved")
    return _half_line(operator, right)


def _distance(operator: str, inside: Node, end: Node) -> list[Piece]:
    """`|x - 1| < 3`: how far the variable lies from a centre."""
    center, radius = _center(inside, end)
    strict = "=" not in operator
    low, high = add(center, neg(radius)), add(center, radius)
    if operator in ("<", "<=") and place(end) > 0:
        return [Piece(low, high, strict, strict)]
    if operator in (">", ">="):
        return [Piece(_MINUS_INF, low, True, strict), Piece(high, INF, strict, True)]
    raise NoRegionError(operator)


def _center(inside: Node, end: Node) -> tuple[Node, Node]:
    """Where `x - 1` is zero, and the distance at which it is `end`, for a positive end."""
    names = symbols(inside)
    if len(names) != 1 or symbols(end) or place(end) < 0:
        raise NoRegionError("no distance")
    name = ("sym", next(iter(names)))
    at = [exact(substitute(inside, {name: num(k)})) for k in range(3)]
    if (
        at[0] is None
        or at[1] is None
        or at[2] is None
        or at[2] - at[1] != at[1] - at[0]
        or at[0] == at[1]
    ):
        raise NoRegionError("not linear")
    slope = at[1] - at[0]
    return num(-at[0] / slope), end if abs(slope) == 1 else divide(end, num(abs(slope)))


def _half_line(operator: str, end: Node) -> list[Piece]:
    if operator in ("<", "<="):
        return [Piece(_MINUS_INF, end, True, operator == "<")]
    if operator in (">", ">="):
        return [Piece(end, INF, operator == ">", True)]
    if operator == "=":
        return [Piece(end, end, False, False)]
    if operator == "!=":
        return [Piece(_MINUS_INF, end, True, True), Piece(end, INF, True, True)]
    raise NoRegionError(operator)


def _between(operators: list[str], sides: tuple[Node, ...]) -> list[Piece]:
    low, middle, high = sides
    if middle[:2] == ("fn", "abs") and operators[0][0] == operators[1][0] == "<":
        first = _distance(FLIPPED[operators[0]], middle[2], low)
        second = _distance(operators[1], middle[2], high)
        return [cut for p in first for q in second if (cut := _overlap(p, q)) is not None]
    if middle[0] != "sym":
        raise NoRegionError("not solved")
    if set(operators) <= {">", ">="}:
        low, high, operators = high, low, operators[::-1]
    elif not set(operators) <= {"<", "<="}:
        raise NoRegionError("a mixed chain")
    return [Piece(low, high, operators[0] in "<>", operators[1] in "<>")]


def _without(region: list[Piece], removed: list[Piece]) -> list[Piece]:
    """Points taken out of pieces; only points are taken out."""
    for point in removed:
        if point.low != point.high:
            raise NoRegionError("a difference of intervals")
        at = place(point.low)
        region = [cut for piece in region for cut in _cut(piece, point.low, at)]
    return region


def _cut(piece: Piece, point: Node, at: float) -> list[Piece]:
    low, high = place(piece.low), place(piece.high)
    if low == high == at:
        return []
    if at in (low, high):
        return [
            piece._replace(
                low_open=piece.low_open or at == low, high_open=piece.high_open or at == high
            )
        ]
    if not low < at < high:
        return [piece]
    return [piece._replace(high=point, high_open=True), piece._replace(low=point, low_open=True)]


def place(end: Node) -> float:
    """Where an end lies; symbolic ends have a place too, the same for equal expressions."""
    if end == INF:
        return float("inf")
    if end == _MINUS_INF or (end[0] == "mul" and INF in end):
        return float("-inf")
    if symbols(end):
        raise NoRegionError("a symbolic end")
    spend(end, times=8)
    value = numeric(end, {})
    if abs(value.imag) > 1e-9:
        raise NoRegionError("a complex end")
    return value.real


def _joined(parts: list[Piece]) -> list[Piece]:
    """Sorted, and pieces that touch or overlap joined. One piece may have symbolic ends."""
    if len(parts) == 1:
        return parts
    ordered = sorted(parts, key=lambda piece: (place(piece.low), piece.low_open))
    joined = ordered[:1]
    for piece in ordered[1:]:
        last = joined[-1]
        gap = place(piece.low) - place(last.high)
        if gap > 1e-12 or (abs(gap) <= 1e-12 and last.high_open and piece.low_open):
            joined.append(piece)
        elif place(piece.high) >= place(last.high):
            closed = piece.high_open and (last.high_open or place(piece.high) > place(last.high))
            joined[-1] = last._replace(high=piece.high, high_open=closed)
    return joined


def _same_piece(p: Piece, g: Piece) -> bool:
    open_alike = (p.low_open, p.high_open) == (g.low_open, g.high_open)
    return open_alike and _same_end(p.low, g.low) and _same_end(p.high, g.high)


def _same_end(p: Node, g: Node) -> bool:
    infinite = [end == INF or (end[0] == "mul" and INF in end) for end in (p, g)]
    if any(infinite):
        return all(infinite) and (p == INF) == (g == INF)
    return value_equal(p, g)


def _all_of(node: Node) -> list[Piece]:
    """What lies in every part."""
    first, *others = (pieces(part) for part in node[1:])
    for other in others:
        first = [cut for p in first for q in other if (cut := _overlap(p, q)) is not None]
    return first


def _builder(node: Node) -> list[Piece]:
    """The condition of a set of reals; a set of whole numbers is not a region."""
    over_others = node[1][0] == "rel" and node[1][3] != ("sym", "R")
    head = node[1][2] if node[1][0] == "rel" else node[1]
    if over_others or head[0] != "sym" or symbols(node[2]) - {head[1], "R"}:
        raise NoRegionError("not a set of reals")
    return pieces(node[2])


def _minus(node: Node) -> list[Piece]:
    """What is taken out may be one value without its brackets."""
    points = pieces(node[2]) if node[2][0] in _READERS else [Piece(node[2], node[2], False, False)]
    return _without(pieces(node[1]), points)


def _listed(node: Node) -> list[Piece]:
    """Conditions with commas or `and` between hold together; intervals are a union.

    Conditions with commas that cannot hold together are a union too: `x < -1, x > 3`.
    """
    union = [piece for part in node[1:] for piece in pieces(part)]
    if any(part[0] != "rel" for part in node[1:]):
        return union
    together = _all_of(node)
    return together if together or node[0] == "and" else union


def _overlap(p: Piece, q: Piece) -> Piece | None:
    low = max((p, q), key=lambda piece: (place(piece.low), piece.low_open))
    high = min((p, q), key=lambda piece: (place(piece.high), not piece.high_open))
    start, end = place(low.low), place(high.high)
    empty = start > end or (start == end and (low.low_open or high.high_open))
    return None if empty else Piece(low.low, high.high, low.low_open, high.high_open)


_READERS: Mapping[str, Callable[[Node], list[Piece]]] = {
    "interval": lambda node: [Piece(*node[1:])],
    "tuple": _pair,
    "set": lambda node: [Piece(item, item, False, False) for item in node[1:]],
    "union": lambda node: [piece for part in node[1:] for piece in pieces(part)],
    "or": lambda node: [piece for part in node[1:] for piece in pieces(part)],
    "and": _listed,
    "meet": _all_of,
    "list": _listed,
    "builder": _builder,
    "minus": _minus,
    "rel": _condition,
    "sym": _line,
}
