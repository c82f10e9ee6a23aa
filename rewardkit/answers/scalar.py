"""The policy of a comparison, and whether two single values are equal by it.

The policy, row by row, is in docs/reference/answers.md; each row is a test.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from mpmath import MPContext

from rewardkit.answers.evaluate import (
    MORE_DIGITS,
    PRECISE_STEPS,
    SAMPLE_POINTS,
    UndefinedError,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    exact_value,
    is_known_function,
    sample_points,
)
from rewardkit.answers.parsing.tree import MINUS_ONE, PI, Node, map_children, mul, num, subtrees


class Policy(NamedTuple):
    """What counts as equal beyond the same value.

    Attributes:
        significant_digits: accept the gold correctly rounded to at least this number of digits; 0
            accepts only the roundings of exact values.
        convert_units: accept equal quantities in different units of one dimension.
    """

    significant_digits: int = 0
    convert_units: bool = False


STRICT = Policy()


def scalar_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two values are the same by the policy."""
    if "base" in (pred[0], gold[0]):  # an answer may omit the base of the gold
        return pred == gold or (pred[0] == "num" and gold[:2] == ("base", str(pred[1])))
    if pred[0] == gold[0] and pred[0] in ("degree", "percent"):
        return value_equal(pred[1], gold[1], policy)
    if {pred[0], gold[0]} == {"degree", "percent"}:
        return False
    pairs = ((p, g) for p in _plain_values(pred) for g in _plain_values(gold))
    return any(value_equal(p, g, policy) for p, g in pairs) or _is_rounded_percentage(pred, gold)


def _is_rounded_percentage(pred: Node, gold: Node) -> bool:
    """Whether a percentage with more digits rounds to the gold's decimal: `57.14%` is 0.571."""
    if pred[0] != "percent" or not is_decimal(pred[1]) or not is_decimal(gold):
        return False
    return _significant_digits(gold) >= 3 and _rounds_to(pred[1][1] / 100, gold)


def _plain_values(node: Node) -> list[Node]:
    """Return a percentage as its number and its fraction, an angle as its number and its radians."""
    if node[0] == "percent":
        value = node[1]
        if value[0] != "num":
            return [value, mul(value, num(Fraction(1, 100)))]
        return [value, num(value[1] / 100, None if value[2] is None else value[2] + 2)]
    if node[0] == "degree":
        is_number = exact_value(node[1]) is not None
        return [*([node[1]] if is_number else []), to_radians(node)]
    return [node]


def to_radians(node: Node) -> Node:
    """Return an angle in degrees in radians."""
    return mul(node[1], PI, num(Fraction(1, 180)))


def value_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two plain values are equal, exactly or as correct roundings of each other."""
    if pred == gold:
        return True
    p, g = exact_value(pred), exact_value(gold)
    if p is not None and g is not None:
        return p == g or _is_rounding(pred, p, gold, g) or _is_gold_rounded(pred, gold, g, policy)
    if any(
        part[0] == "sym" or (part[0] == "fn" and not is_known_function(part[1]))
        for node in (pred, gold)
        for part in subtrees(node)
    ):
        return equal_everywhere(pred, gold)
    return _constants_equal(pred, gold, policy)


def _constants_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    charge_steps(pred, gold)
    try:
        p, g = evaluate_double(pred, {}), evaluate_double(gold, {})
    except UndefinedError:
        return same_tree(pred, gold)
    if abs(p - g) <= NEAR_RELATIVE * max(1, abs(p), abs(g)):
        verdict = _equal_at_point(pred, gold, {})
        if verdict is None:
            return abs(p - g) <= 1e-12 * max(abs(p), abs(g))
        if verdict:
            return True
    if abs(p.imag) > 1e-12 or abs(g.imag) > 1e-12:
        return False
    exact = Fraction(g.real)
    if is_decimal(gold):
        return _is_rounding(pred, Fraction(p.real), gold, gold[1])
    if is_decimal(pred) and _significant_digits(pred) >= 5:
        return _rounds_to(exact, pred)
    return _is_gold_rounded(pred, gold, exact, policy)


def _equal_at_point(pred: Node, gold: Node, point: Mapping[str, float]) -> bool | None:
    """Whether two close values are equal in all digits; None if one has no value.

    Fifty digits decide for values of ordinary size, `MORE_DIGITS` for huge and tiny ones, because
    fifty are too few if terms cancel or if one term absorbs another.
    """
    charge_steps(pred, gold, times=PRECISE_STEPS)
    try:
        p, g = evaluate_digits(pred, point), evaluate_digits(gold, point)
        if 1e-12 < max(abs(p), abs(g)) < 1e12:
            return bool(abs(p - g) <= 1e-30 * max(abs(p), abs(g)))
        charge_steps(pred, gold, times=PRECISE_STEPS)
        p, g = evaluate_digits(pred, point, MORE_DIGITS), evaluate_digits(gold, point, MORE_DIGITS)
    except UndefinedError:
        return None
    return bool(abs(p - g) <= max(abs(p), abs(g), 1) * _CANCELLATION_ERROR)


#: Rounding error of `MORE_DIGITS` digits if terms cancel.
_CANCELLATION_ERROR = MPContext().mpf(10) ** -330


def same_tree(pred: Node, gold: Node) -> bool:
    """Whether two trees are the same up to the order of terms and factors."""
    return canonical_text(pred) == canonical_text(gold)


def canonical_text(node: Node) -> str:
    """Return a tree as text, with sorted terms and factors, without zero terms and unit factors."""
    if node[0] in ("add", "mul"):
        neutral_elements = (num(0),) if node[0] == "add" else (num(1), ("pow", num(1), MINUS_ONE))
        remaining = [part for part in node[1:] if part not in neutral_elements]
        while node[0] == "mul" and remaining.count(MINUS_ONE) > 1:
            remaining.remove(MINUS_ONE)
            remaining.remove(MINUS_ONE)
        parts = sorted(map(canonical_text, remaining)) or [canonical_text(neutral_elements[0])]
        return parts[0] if len(parts) == 1 else f"{node[0]}({', '.join(parts)})"
    if node[0] == "num":
        return str(node[1])
    if node[:2] == ("fn", "sqrt"):
        return canonical_text(("pow", node[2], num(Fraction(1, 2))))
    if node[0] == "pow" and node[2] == num(1):
        return canonical_text(node[1])
    return f"{node[0]}({', '.join(map(str, map_children(canonical_text, node)[1:]))})"


#: Relative difference of doubles below which fifty digits decide, because terms that cancel lose
#: half of the sixteen digits of a double.
NEAR_RELATIVE = 1e-6


def equal_everywhere(pred: Node, gold: Node) -> bool:
    """Whether two expressions agree at the points at which both are real.

    Complex values decide only if both are real at no point. So the branches of roots and logarithms
    outside an expression's domain do not count. Three points are compared in all digits: one below
    1, one above 10, one negative, because no term is tiny or zero at all three.
    """
    if same_tree(pred, gold):
        return True
    charge_steps(pred, gold, times=SAMPLE_POINTS)
    points = sample_points(pred, gold)
    real_points = []
    complex_agreements = []
    for point in points:
        is_near = _are_near(pred, gold, point, real=True)
        if is_near is None:
            complex_agreements.append(_are_near(pred, gold, point, real=False))
        elif not is_near and _equal_at_point(pred, gold, point) is False:
            return False
        else:
            real_points.append(point)
    agreements = [agrees for agrees in complex_agreements if agrees is not None]
    if len(real_points) < 2 and (len(agreements) < 2 or not all(agreements)):
        return False
    decisive = [point for point in (points[0], points[4], points[5]) if point in real_points]
    verdicts = (_equal_at_point(pred, gold, point) for point in decisive or real_points or points)
    return all(islice((verdict for verdict in verdicts if verdict is not None), 3))


def _are_near(pred: Node, gold: Node, point: Mapping[str, float], *, real: bool) -> bool | None:
    try:
        p, g = (evaluate_double(node, point, real=real) for node in (pred, gold))
    except UndefinedError:
        return None
    return abs(p - g) <= NEAR_RELATIVE * max(abs(p), abs(g), 1e-3)


# --- rounding


def is_decimal(node: Node) -> bool:
    """Whether a node is a number written with a point."""
    return bool(node[0] == "num" and node[2] is not None)


def _is_gold_rounded(pred: Node, gold: Node, exact: Fraction, policy: Policy) -> bool:
    """Whether an answer is the gold correctly rounded to as many digits as the policy asks for.

    A gold that is an integer is exact.
    """
    is_integer = gold[0] == "num" and gold[2] is None and gold[1].denominator == 1
    if not policy.significant_digits or is_integer or pred[0] != "num":
        return False
    if not is_decimal(pred) and pred[1].denominator != 1:
        return False
    place = _last_place(pred)
    has_enough_digits = abs(pred[1]) >= Fraction(10) ** (policy.significant_digits - 1) * place
    return bool(has_enough_digits and _rounds_to(exact, pred))


def _is_rounding(pred: Node, p: Fraction, gold: Node, g: Fraction) -> bool:
    if is_decimal(pred) and is_decimal(gold):
        return _is_float_noise(pred, gold)
    if is_decimal(gold) and p.denominator != 1:
        place = _last_place(gold)
        is_cut_off = (p < 0) == (g < 0) and abs(g) >= 100 * place and 0 <= abs(p) - abs(g) < place
        return _has_enough_digits(gold) and (is_cut_off or _rounds_to(p, gold))
    if is_decimal(pred) and 10**4 % g.denominator:
        return _has_enough_digits(pred) and _rounds_to(g, pred)
    return False


def _rounds_to(value: Fraction, decimal: Node) -> bool:
    return bool(2 * abs(value - decimal[1]) <= _last_place(decimal))


def _last_place(node: Node) -> Fraction:
    return Fraction(Fraction(10) ** -(node[2] or 0))


def _significant_digits(node: Node) -> int:
    return len(str(int(abs(node[1]) / _last_place(node))).lstrip("0"))


def _has_enough_digits(node: Node) -> bool:
    digits = _significant_digits(node)
    return digits >= 3 or (digits >= 2 and node[2] >= 2)


def _is_float_noise(pred: Node, gold: Node) -> bool:
    """Whether two decimals are equal up to noise (`0.30000000000000004`), or round from six digits."""
    difference = abs(pred[1] - gold[1])
    p, g = _significant_digits(pred), _significant_digits(gold)
    if min(p, g) >= 6 and max(p, g) < 15:
        return bool(2 * difference <= max(_last_place(pred), _last_place(gold)))
    return max(p, g) >= 15 and bool(difference <= abs(gold[1]) / 10**14)
