"""The policy of a comparison, and whether two single values are equal by it.

The policy, row by row, is in docs/reference/answers.md; each row is a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

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
from rewardkit.answers.parsing.tree import MINUS_ONE, PI, Node, mul, num, subtrees, symbols


class Policy(NamedTuple):
    """What counts as equal beyond the same value.

    Attributes:
        significant_digits: accept the gold correctly rounded to at least this number of digits; 0
            accepts only the roundings of exact values.
        convert_units: accept equal quantities in different units of one dimension.
    """

    significant_digits: int = 0
    convert_units: bool = False


STRICT: Final = Policy()


def scalar_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two values are the same by the policy."""
    if "base" in (pred[0], gold[0]):
        return _same_digits(pred, gold)
    readings = _value_pairs(pred, gold)
    return any(value_equal(p, g, policy) for p, g in readings) or _is_rounded_percentage(pred, gold)


def _is_rounded_percentage(pred: Node, gold: Node) -> bool:
    """Whether a percentage with more digits rounds to the gold's decimal: `57.14%` is 0.571."""
    if pred[0] != "percent" or not is_decimal(pred[1]) or not is_decimal(gold):
        return False
    difference = abs(pred[1][1] / 100 - gold[1])
    return _significant_digits(gold) >= 3 and bool(2 * difference <= _last_place(gold))


def _same_digits(pred: Node, gold: Node) -> bool:
    """Compare numerals by their digits; an answer may omit the base of the gold."""
    bare = pred[0] == "num" and gold[0] == "base" and str(pred[1]) == gold[1]
    return bare or pred == gold


def _value_pairs(pred: Node, gold: Node) -> list[tuple[Node, Node]]:
    """Return the pairs of plain values that two values may stand for."""
    if pred[0] == gold[0] and pred[0] in ("degree", "percent"):
        return [(pred[1], gold[1])]
    if {pred[0], gold[0]} == {"degree", "percent"}:
        return []
    return [(p, g) for p in _plain_values(pred) for g in _plain_values(gold)]


def _plain_values(node: Node) -> list[Node]:
    """Return a percentage as its number and its share, an angle as its number and its radians."""
    if node[0] == "percent":
        return [node[1], _divide_by_100(node[1])]
    if node[0] == "degree":
        bare = [] if exact_value(node[1]) is None else [node[1]]  # the number of degrees
        return [*bare, to_radians(node)]
    return [node]


def to_radians(node: Node) -> Node:
    """Return an angle in degrees in radians."""
    return mul(node[1], PI, num(Fraction(1, 180)))


def _divide_by_100(node: Node) -> Node:
    if node[0] == "num":
        return num(node[1] / 100, None if node[2] is None else node[2] + 2)
    return mul(node, num(Fraction(1, 100)))


def value_equal(pred: Node, gold: Node, policy: Policy = STRICT) -> bool:
    """Whether two plain values are equal, exactly or as correct roundings of each other."""
    if pred == gold:
        return True
    pred_exact, gold_exact = exact_value(pred), exact_value(gold)
    if pred_exact is not None and gold_exact is not None:
        return (
            pred_exact == gold_exact
            or _is_rounding(pred, pred_exact, gold, gold_exact)
            or (_may_be_rounded(gold) and _is_gold_rounded(pred, gold_exact, policy))
        )
    if symbols(pred) or symbols(gold) or _has_unknown_function(pred) or _has_unknown_function(gold):
        return equal_everywhere(pred, gold)
    return _constants_equal(pred, gold, policy)


def _has_unknown_function(node: Node) -> bool:
    """Whether a tree holds the value of an unknown function, such as `f(2)`."""
    return any(part[0] == "fn" and not is_known_function(part[1]) for part in subtrees(node))


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
    return _is_rounding_of_real(pred, p, gold, g, policy)


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
    inside = [canonical_text(p) if _is_node(p) else str(p) for p in node[1:]]
    return f"{node[0]}({', '.join(inside)})"


def _is_node(part: object) -> bool:
    return isinstance(part, tuple) and bool(part) and isinstance(part[0], str)


#: Relative difference of doubles below which fifty digits decide, because terms that cancel lose
#: half of the sixteen digits of a double.
NEAR_RELATIVE = 1e-6


def equal_everywhere(pred: Node, gold: Node) -> bool:
    """Whether two expressions agree at the points at which both are real.

    Complex values decide only if both are real at no point. So the branches of roots and logarithms
    outside an expression's domain do not count.
    """
    if same_tree(pred, gold):
        return True
    charge_steps(pred, gold, times=SAMPLE_POINTS)
    real_agreements = 0
    complex_agreements: list[bool] = []
    for point in sample_points(pred, gold):
        for real in (True, False):
            try:
                p, g = (evaluate_double(node, point, real=real) for node in (pred, gold))
            except UndefinedError:
                continue
            near = abs(p - g) <= NEAR_RELATIVE * max(abs(p), abs(g), 1e-3)
            if real and not near and _equal_at_point(pred, gold, point) is False:
                return False
            real_agreements += real
            if not real:
                complex_agreements.append(near)
            break
    if real_agreements < 2 and (len(complex_agreements) < 2 or not all(complex_agreements)):
        return False
    return _agree_precisely(pred, gold)


def _agree_precisely(pred: Node, gold: Node) -> bool:
    """Whether expressions that agree in double precision agree in all digits, at three points.

    One is below 1, one above 10, one negative, because no term is tiny or zero at all three.
    """
    candidates = sample_points(pred, gold)
    real = [point for point in candidates if _is_real_at(pred, point) and _is_real_at(gold, point)]
    chosen_points = (
        [point for point in (candidates[0], candidates[4], candidates[5]) if point in real]
        or real
        or candidates
    )
    verdicts = (_equal_at_point(pred, gold, point) for point in chosen_points)
    decisions = [verdict for verdict in verdicts if verdict is not None]
    return all(decisions[:3])


def _is_real_at(node: Node, point: Mapping[str, float]) -> bool:
    try:
        evaluate_double(node, point, real=True)
    except UndefinedError:
        return False
    return True


# --- rounding


def _may_be_rounded(gold: Node) -> bool:
    """Whether a gold is a decimal or a fraction, because a gold that is an integer is exact."""
    return gold[0] != "num" or gold[2] is not None or gold[1].denominator != 1


def _is_gold_rounded(pred: Node, gold: Fraction, policy: Policy) -> bool:
    """Whether an answer is the gold correctly rounded to as many digits as the policy asks for."""
    digits = policy.significant_digits
    if not digits or pred[0] != "num" or not (is_decimal(pred) or pred[1].denominator == 1):
        return False
    place = _last_place(pred) if is_decimal(pred) else Fraction(1)
    has_enough_digits = abs(pred[1]) >= Fraction(10) ** (digits - 1) * place
    return bool(has_enough_digits and 2 * abs(pred[1] - gold) <= place)


def _is_rounding(pred: Node, pred_exact: Fraction, gold: Node, gold_exact: Fraction) -> bool:
    """Whether one of two rationals is a decimal that rounds the other."""
    if is_decimal(pred) and is_decimal(gold):
        return _is_float_noise(pred, gold)
    if is_decimal(gold) and pred_exact.denominator != 1:
        return _has_enough_digits(gold) and _is_rounded_or_truncated(
            pred_exact, gold_exact, _last_place(gold)
        )
    if is_decimal(pred) and 10**4 % gold_exact.denominator:
        return _has_enough_digits(pred) and 2 * abs(pred_exact - gold_exact) <= _last_place(pred)
    return False


def _is_rounding_of_real(pred: Node, p: complex, gold: Node, g: complex, policy: Policy) -> bool:
    """Whether a decimal rounds an irrational value; as an answer it needs five significant digits."""
    if abs(p.imag) > 1e-12 or abs(g.imag) > 1e-12:
        return False
    if is_decimal(gold):
        return _has_enough_digits(gold) and _is_rounded_or_truncated(
            Fraction(p.real), gold[1], _last_place(gold)
        )
    if is_decimal(pred) and _significant_digits(pred) >= 5:
        return abs(p.real - g.real) <= 0.500001 * float(_last_place(pred))
    return _is_gold_rounded(pred, Fraction(g.real), policy)


def _is_rounded_or_truncated(value: Fraction, decimal: Fraction, place: Fraction) -> bool:
    """Whether a decimal is a value rounded or truncated at its last place."""
    if 2 * abs(value - decimal) <= place:
        return True
    same_sign = (value < 0) == (decimal < 0)
    return same_sign and abs(decimal) >= 100 * place and 0 <= abs(value) - abs(decimal) < place


def is_decimal(node: Node) -> bool:
    """Whether a node is a number written with a point."""
    return bool(node[0] == "num" and node[2] is not None)


def _last_place(node: Node) -> Fraction:
    return Fraction(Fraction(10) ** -node[2])


def _significant_digits(node: Node) -> int:
    return len(str(int(abs(node[1]) * Fraction(10) ** node[2])).lstrip("0"))


def _has_enough_digits(node: Node) -> bool:
    places: int = node[2]
    return _significant_digits(node) >= 2 and (places >= 2 or _significant_digits(node) >= 3)


def _is_float_noise(pred: Node, gold: Node) -> bool:
    """Whether two decimals are equal up to noise (`0.30000000000000004`), or round from six digits."""
    difference = abs(pred[1] - gold[1])
    p, g = _significant_digits(pred), _significant_digits(gold)
    if min(p, g) >= 6 and max(p, g) < 15:
        return bool(2 * difference <= max(_last_place(pred), _last_place(gold)))
    return max(p, g) >= 15 and bool(difference <= abs(gold[1]) / 10**14)
