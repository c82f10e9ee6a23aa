"""Whether two single values are equal: numbers, angles, percentages, expressions.

The policy, row by row, is in docs/answers.md; each row there is a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from mpmath import MPContext

from rewardkit.answers.budget import PRECISE, spend
from rewardkit.answers.evaluate import (
    MORE_DIGITS,
    POINTS,
    exact,
    is_known,
    numeric,
    points,
    precise,
)
from rewardkit.answers.fields import UndefinedError
from rewardkit.answers.policy import STRICT, Policy
from rewardkit.answers.reading.tree import MINUS_ONE, PI, Node, mul, num, symbols, walk


def scalar_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two values are the same by the policy."""
    if "base" in (pred[0], gold[0]):
        return _same_digits(pred, gold)
    readings = _readings(pred, gold)
    return any(value_equal(p, g, policy) for p, g in readings) or _rounded_share(pred, gold)


def _rounded_share(pred: Node, gold: Node) -> bool:
    """A percentage with more digits than the gold's decimal: `57.14%` is 0.571."""
    if pred[0] != "percent" or not is_decimal(pred[1]) or not is_decimal(gold):
        return False
    difference = abs(pred[1][1] / 100 - gold[1])
    return _significant(gold) >= 3 and bool(2 * difference <= _last_place(gold))


def _same_digits(pred: Node, gold: Node) -> bool:
    """`1010_2` is itself only; the base that the gold names may be left out."""
    bare = pred[0] == "num" and gold[0] == "base" and str(pred[1]) == gold[1]
    return bare or pred == gold


def _readings(pred: Node, gold: Node) -> list[tuple[Node, Node]]:
    """The pairs of plain values that two values may stand for."""
    if pred[0] == gold[0] and pred[0] in ("degree", "percent"):
        return [(pred[1], gold[1])]
    if {pred[0], gold[0]} == {"degree", "percent"}:
        return []
    return [(p, g) for p in _plain(pred) for g in _plain(gold)]


def _plain(node: Node) -> list[Node]:
    """A percentage is its number or a hundredth of it, an angle its number or its radians."""
    if node[0] == "percent":
        return [node[1], _hundredth(node[1])]
    if node[0] == "degree":
        bare = [] if exact(node[1]) is None else [node[1]]  # a number of degrees, not of radians
        return [*bare, in_radians(node)]
    return [node]


def in_radians(node: Node) -> Node:
    """An angle in degrees as its radians."""
    return mul(node[1], PI, num(Fraction(1, 180)))


def _hundredth(node: Node) -> Node:
    if node[0] == "num":
        return num(node[1] / 100, None if node[2] is None else node[2] + 2)
    return mul(node, num(Fraction(1, 100)))


def value_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two plain values are equal, exactly or as correct roundings of each other."""
    if pred == gold:
        return True
    pred_exact, gold_exact = exact(pred), exact(gold)
    if pred_exact is not None and gold_exact is not None:
        return (
            pred_exact == gold_exact
            or _rounded(pred, pred_exact, gold, gold_exact)
            or (_is_measured(gold) and _rounds_the_gold(pred, gold_exact, policy))
        )
    if symbols(pred) or symbols(gold) or _has_unknown(pred) or _has_unknown(gold):
        return same_everywhere(pred, gold)
    return _constants_equal(pred, gold, policy)


def _has_unknown(node: Node) -> bool:
    """Whether a tree has the value of a function that nobody knows, such as `f(2)`."""
    return any(part[0] == "fn" and not is_known(part[1]) for part in walk(node))


def _constants_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    spend(pred, gold)
    try:
        p, g = numeric(pred, {}), numeric(gold, {})
    except UndefinedError:
        return same_tree(pred, gold)
    if abs(p - g) <= NEAR * max(1, abs(p), abs(g)):
        verdict = _equal_at(pred, gold, {})
        if verdict is None:
            return abs(p - g) <= 1e-12 * max(abs(p), abs(g))
        if verdict:
            return True
    return _rounds_to_real(pred, p, gold, g, policy)


def _equal_at(pred: Node, gold: Node, point: Mapping[str, float]) -> bool | None:
    """Whether two values that are close are equal in all digits; None if one has no value.

    Fifty digits decide about values of ordinary size, `MORE_DIGITS` about huge and tiny ones: where
    terms cancel, and where one term swallows another, fifty are too few.
    """
    spend(pred, gold, times=PRECISE)
    try:
        p, g = precise(pred, point), precise(gold, point)
        if 1e-12 < max(abs(p), abs(g)) < 1e12:
            return bool(abs(p - g) <= 1e-30 * max(abs(p), abs(g)))
        spend(pred, gold, times=PRECISE)
        p, g = precise(pred, point, MORE_DIGITS), precise(gold, point, MORE_DIGITS)
    except UndefinedError:
        return None
    return bool(abs(p - g) <= max(abs(p), abs(g), 1) * _LEAST)


#: What rounding leaves of `MORE_DIGITS` digits where terms cancel.
_LEAST = MPContext().mpf(10) ** -330


def same_tree(pred: Node, gold: Node) -> bool:
    """Whether two trees are built alike, up to the order of terms and factors."""
    return canonical(pred) == canonical(gold)


def canonical(node: Node) -> str:
    """A tree as text: terms and factors in order, without zeros added and ones multiplied."""
    if node[0] in ("add", "mul"):
        idle = (num(0),) if node[0] == "add" else (num(1), ("pow", num(1), MINUS_ONE))
        left = [part for part in node[1:] if part not in idle]
        while node[0] == "mul" and left.count(MINUS_ONE) > 1:
            left.remove(MINUS_ONE)
            left.remove(MINUS_ONE)
        parts = sorted(map(canonical, left)) or [canonical(idle[0])]
        return parts[0] if len(parts) == 1 else f"{node[0]}({', '.join(parts)})"
    if node[0] == "num":
        return str(node[1])
    if node[:2] == ("fn", "sqrt"):
        return canonical(("pow", node[2], num(Fraction(1, 2))))
    if node[0] == "pow" and node[2] == num(1):
        return canonical(node[1])
    inside = [canonical(p) if _is_node(p) else str(p) for p in node[1:]]
    return f"{node[0]}({', '.join(inside)})"


def _is_node(part: object) -> bool:
    return isinstance(part, tuple) and bool(part) and isinstance(part[0], str)


#: Relative difference below which doubles leave the decision to fifty digits: terms that cancel
#: lose half of a double's sixteen.
NEAR = 1e-6


def same_everywhere(pred: Node, gold: Node) -> bool:
    """Whether two expressions agree at the points where both are real.

    Only where they are real nowhere do complex values decide: so the branches of roots and
    logarithms outside an expression's domain do not.
    """
    if same_tree(pred, gold):
        return True
    spend(pred, gold, times=POINTS)
    agreed = 0
    outside: list[bool] = []
    for point in points(pred, gold):
        for real in (True, False):
            try:
                p, g = (numeric(node, point, real=real) for node in (pred, gold))
            except UndefinedError:
                continue
            near = abs(p - g) <= NEAR * max(abs(p), abs(g), 1e-3)
            if real and not near and _equal_at(pred, gold, point) is False:
                return False
            agreed += real
            if not real:
                outside.append(near)
            break
    if agreed < 2 and (len(outside) < 2 or not all(outside)):
        return False
    return _agree_precisely(pred, gold)


def _agree_precisely(pred: Node, gold: Node) -> bool:
    """Whether expressions that agree in double precision agree in all digits, at three points.

    One below 1, one above 10, one negative: a term that is tiny or nothing at one is not at all.
    """
    where = points(pred, gold)
    real = [point for point in where if _is_real_at(pred, point) and _is_real_at(gold, point)]
    looked_at = (
        [point for point in (where[0], where[4], where[5]) if point in real] or real or where
    )
    verdicts = (_equal_at(pred, gold, point) for point in looked_at)
    decided = [verdict for verdict in verdicts if verdict is not None]
    return all(decided[:3])


def _is_real_at(node: Node, point: Mapping[str, float]) -> bool:
    try:
        numeric(node, point, real=True)
    except UndefinedError:
        return False
    return True


# --- rounding


def _is_measured(gold: Node) -> bool:
    """Whether a gold is a decimal or a fraction: a whole number is exact."""
    return gold[0] != "num" or gold[2] is not None or gold[1].denominator != 1


def _rounds_the_gold(pred: Node, gold: Fraction, policy: Policy) -> bool:
    """Whether an answer is the gold correctly rounded to as many digits as the policy asks for."""
    digits = policy.significant_digits
    if not digits or pred[0] != "num" or not (is_decimal(pred) or pred[1].denominator == 1):
        return False
    place = _last_place(pred) if is_decimal(pred) else Fraction(1)
    enough = abs(pred[1]) >= Fraction(10) ** (digits - 1) * place
    return bool(enough and 2 * abs(pred[1] - gold) <= place)


def _rounded(pred: Node, pred_exact: Fraction, gold: Node, gold_exact: Fraction) -> bool:
    """Whether of two rationals one is a decimal that rounds the other."""
    if is_decimal(pred) and is_decimal(gold):
        return _float_artefact(pred, gold)
    if is_decimal(gold) and pred_exact.denominator != 1:
        return _long_enough(gold) and _is_cut(pred_exact, gold_exact, _last_place(gold))
    if is_decimal(pred) and 10**4 % gold_exact.denominator:
        return _long_enough(pred) and 2 * abs(pred_exact - gold_exact) <= _last_place(pred)
    return False


def _rounds_to_real(pred: Node, p: complex, gold: Node, g: complex, policy: Policy) -> bool:
    """The same where one of the two is irrational: its decimal has five significant digits."""
    if abs(p.imag) > 1e-12 or abs(g.imag) > 1e-12:
        return False
    if is_decimal(gold):
        return _long_enough(gold) and _is_cut(Fraction(p.real), gold[1], _last_place(gold))
    if is_decimal(pred) and _significant(pred) >= 5:
        return abs(p.real - g.real) <= 0.500001 * float(_last_place(pred))
    return _rounds_the_gold(pred, Fraction(g.real), policy)


def _is_cut(value: Fraction, decimal: Fraction, place: Fraction) -> bool:
    """Whether a decimal is a value rounded, or cut off, at its last place."""
    if 2 * abs(value - decimal) <= place:
        return True
    alike = (value < 0) == (decimal < 0)
    return alike and abs(decimal) >= 100 * place and 0 <= abs(value) - abs(decimal) < place


def is_decimal(node: Node) -> bool:
    """Whether a node is a number written with a point."""
    return bool(node[0] == "num" and node[2] is not None)


def _last_place(node: Node) -> Fraction:
    return Fraction(Fraction(10) ** -node[2])


def _significant(node: Node) -> int:
    return len(str(int(abs(node[1]) * Fraction(10) ** node[2])).lstrip("0"))


def _long_enough(node: Node) -> bool:
    places: int = node[2]
    return _significant(node) >= 2 and (places >= 2 or _significant(node) >= 3)


def _float_artefact(pred: Node, gold: Node) -> bool:
    """`0.30000000000000004` is 0.3; of long decimals six significant digits must agree."""
    difference = abs(pred[1] - gold[1])
    p, g = _significant(pred), _significant(gold)
    if min(p, g) >= 6 and max(p, g) < 15:
        return bool(2 * difference <= max(_last_place(pred), _last_place(gold)))
    return max(p, g) >= 15 and bool(difference <= abs(gold[1]) / 10**14)
