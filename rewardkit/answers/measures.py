"""Quantities, compound quantities and ratios: rules of the policy that need no other rule."""

from __future__ import annotations

from rewardkit.answers.evaluate import exact
from rewardkit.answers.forms import totals
from rewardkit.answers.policy import Policy
from rewardkit.answers.reading.tree import Node, divide, mul, num
from rewardkit.answers.reading.units import TABLE
from rewardkit.answers.scalar import in_radians, scalar_equal, value_equal


def quantities(pred: Node, gold: Node, policy: Policy) -> bool:
    """The same unit, up to spelling; another one of the same dimension by the policy only."""
    ours, theirs = pred[2], gold[2]
    if ours.name == theirs.name or (ours.factor, ours.dimension) == (
        theirs.factor,
        theirs.dimension,
    ):
        return scalar_equal(pred[1], gold[1], policy)
    if not policy.convert_units or ours.dimension != theirs.dimension:
        return False
    scale = theirs.factor / ours.factor
    value = exact(gold[1])
    converted = mul(num(scale), gold[1]) if value is None else num(value * scale)
    return value_equal(pred[1], converted, policy)


def unit_left_out(pred: Node, gold: Node, policy: Policy) -> bool:
    """One side may leave its unit out; `%` and degrees are units of their own."""
    p, g = _without_unit(pred), _without_unit(gold)
    if "degree" in (p[0], g[0]) and _RADIANS in (pred[-1], gold[-1]):
        p, g = (in_radians(n) if n[0] == "degree" else n for n in (p, g))
        return value_equal(p, g, policy)
    if "percent" in (p[0], g[0]) or "degree" in (p[0], g[0]):
        return False
    return scalar_equal(p, g, policy)


_RADIANS = TABLE["rad"]


def _without_unit(node: Node) -> Node:
    value: Node = node[1] if node[0] == "quantity" else node
    return value


def compounds(pred: Node, gold: Node, policy: Policy) -> bool:
    """`2 h 90 min` is `3 h 30 min`: the sums are equal, dimension by dimension."""
    p, g = totals(pred), totals(gold)
    one = "quantity" in (pred[0], gold[0])
    if one and not (policy.convert_units and len(p) == 1):
        return False
    return p.keys() == g.keys() and all(value_equal(p[key], g[key], policy) for key in p)


def ratios(pred: Node, gold: Node, policy: Policy) -> bool:
    """`4:6` is `2:3`: every part by the first."""
    if len(pred) != len(gold):
        return False
    return all(
        value_equal(mul(p, gold[1]), mul(g, pred[1]), policy)
        for p, g in zip(pred[2:], gold[2:], strict=True)
    )


def ratio_and_value(pred: Node, gold: Node, policy: Policy) -> bool:
    """A ratio of two is its quotient."""
    p, g = (
        divide(*node[1:]) if node[0] == "ratio" and len(node) == 3 else node
        for node in (pred, gold)
    )
    return "ratio" not in (p[0], g[0]) and scalar_equal(p, g, policy)
