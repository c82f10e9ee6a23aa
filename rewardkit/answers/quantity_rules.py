"""Rules for quantities, compound quantities and ratios."""

from __future__ import annotations

from rewardkit.answers.evaluate import exact_value
from rewardkit.answers.parsing.tree import Node, divide, mul, num
from rewardkit.answers.parsing.units import UNITS
from rewardkit.answers.rewrites import compound_totals
from rewardkit.answers.scalar import Policy, scalar_equal, to_radians, value_equal


def quantities_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare quantities; the policy decides whether a unit of the same dimension is converted."""
    unit, gold_unit = pred[2], gold[2]
    if unit == gold_unit:
        return scalar_equal(pred[1], gold[1], policy)
    if not policy.convert_units or unit.dimension != gold_unit.dimension:
        return False
    scale = gold_unit.factor / unit.factor
    value = exact_value(gold[1])
    converted = mul(num(scale), gold[1]) if value is None else num(value * scale)
    return value_equal(pred[1], converted, policy)


def equal_without_unit(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare two values, one of which omits its unit; `%` and degrees are units of their own."""
    p, g = _without_unit(pred), _without_unit(gold)
    if "degree" in (p[0], g[0]) and _RADIANS in (pred[-1], gold[-1]):
        p, g = (to_radians(n) if n[0] == "degree" else n for n in (p, g))
        return value_equal(p, g, policy)
    if "percent" in (p[0], g[0]) or "degree" in (p[0], g[0]):
        return False
    return scalar_equal(p, g, policy)


_RADIANS = UNITS["rad"]


def _without_unit(node: Node) -> Node:
    value: Node = node[1] if node[0] == "quantity" else node
    return value


def compounds_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare compound quantities by their sum per dimension: `2 h 90 min` is `3 h 30 min`."""
    p, g = compound_totals(pred), compound_totals(gold)
    one = "quantity" in (pred[0], gold[0])
    if one and not (policy.convert_units and len(p) == 1):
        return False
    return p.keys() == g.keys() and all(value_equal(p[key], g[key], policy) for key in p)


def ratios_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare ratios up to a common factor: `4:6` is `2:3`."""
    if len(pred) != len(gold):
        return False
    return all(
        value_equal(mul(p, gold[1]), mul(g, pred[1]), policy)
        for p, g in zip(pred[2:], gold[2:], strict=True)
    )


def ratio_equals_value(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare a ratio of two parts, as its quotient, with a value."""
    p, g = (
        divide(*node[1:]) if node[0] == "ratio" and len(node) == 3 else node
        for node in (pred, gold)
    )
    return "ratio" not in (p[0], g[0]) and scalar_equal(p, g, policy)
