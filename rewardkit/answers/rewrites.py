r"""Rewriting of trees into equivalent ones: `\pm` as two values, `(x, y) = (1, 2)` as two equations."""

from __future__ import annotations

import math
from fractions import Fraction

from rewardkit.answers.evaluate import UndefinedError, exact_value
from rewardkit.answers.matrices import evaluate_matrix_arithmetic
from rewardkit.answers.parsing.tree import Node, add, mul, neg, num, substitute, subtrees, symbols
from rewardkit.answers.regions import NoRegionError, endpoint_value, read_intervals, region_equal
from rewardkit.answers.relations import equation_value, is_function_name, is_word
from rewardkit.answers.scalar import Policy, value_equal


def normal_form(node: Node) -> Node:
    r"""Return a tree in the form that the rules of `type_rules` compare."""
    node = expand_plus_minus(evaluate_matrix_arithmetic(node))
    node = split_exclusions(split_tuple_equation(node))
    return unit_vectors_to_tuple(enumerate_members(node))


def split_tuple_equation(node: Node) -> Node:
    """Return `(x, y) = (2, 1)` as `x = 2, y = 1`; any other node unchanged."""
    if node[0] != "rel" or node[1] != "=" or len(node) != 4 or len(node[2]) != len(node[3]):
        return node
    names, values = node[2], node[3]
    if (
        names[0] != "tuple"
        or values[0] != "tuple"
        or any(n[0] not in ("sym", "fn") for n in names[1:])
    ):
        return node
    pairs = zip(names[1:], values[1:], strict=True)
    return ("list", *(("rel", "=", name, value) for name, value in pairs))


def expand_plus_minus(node: Node) -> Node:
    r"""Return `\pm` as two values, inside lists and sets too; a tree without `\pm` unchanged."""
    if not any(part[0] == "pm" for part in subtrees(node)):
        return node
    if node[0] in ("list", "and", "or", "set"):
        return (node[0], *(each for part in node[1:] for each in _sign_choices(part)))
    both = _sign_choices(node)
    return ("list", *both) if len(both) > 1 else both[0]


def split_exclusions(node: Node) -> Node:
    r"""Return `x \ne 1, 2` as `x \ne 1, x \ne 2`; any other node unchanged."""
    first = node[1] if node[0] in ("list", "and", "or") and len(node) > 2 else node
    if first[0] != "rel" or first is node or first[1] != "!=" or symbols(first[3]):
        return node
    if any(symbols(item) or item[0] == "rel" for item in node[2:]):
        return node
    return ("and", first, *(("rel", "!=", first[2], item) for item in node[2:]))


def name_function_values(node: Node) -> Node:
    """Return `0 < f(x) < 1` with one name for `f(x)`, so that it is a set of the function's values."""
    if node[0] != "rel":
        return node
    sides = [side for side in node[2:] if side[0] == "fn" and is_function_name(side[1])]
    return substitute(node, dict.fromkeys(sides, ("sym", "value")))


def _sign_choices(node: Node) -> list[Node]:
    if not any(part[0] == "pm" for part in subtrees(node)):
        return [node]
    plus, minus = _with_sign(node, negative=False), _with_sign(node, negative=True)
    return [plus, minus] if plus != minus else [plus]


def _with_sign(node: Node, *, negative: bool) -> Node:
    if node[0] == "pm":
        inside = _with_sign(node[1], negative=negative)
        return neg(inside) if negative else inside
    return tuple(
        _with_sign(part, negative=negative)
        if isinstance(part, tuple) and isinstance(part[0], str)
        else part
        for part in node
    )


def compound_totals(node: Node) -> dict[object, Node]:
    """Return the sum of a compound quantity per dimension, in base units."""
    totals: dict[object, Node] = {}
    for _, value, unit in node[1:] if node[0] == "compound" else (node,):
        part = exact_value(value)
        scaled = mul(num(unit.factor), value) if part is None else num(part * unit.factor)
        before = totals.get(unit.dimension)
        totals[unit.dimension] = scaled if before is None else ("add", before, scaled)
    return totals


def clock_to_ratio(node: Node) -> Node | None:
    """Return a time of day such as `2:30` as a ratio; None with `PM` after it."""
    parts = node[1].split(":")
    return ("ratio", *(num(int(part)) for part in parts)) if all(map(str.isdigit, parts)) else None


def item_labels(node: Node) -> list[str] | None:
    """Return the labels of `x = 1, y = 2`; None unless every item has a label of its own."""
    items = node[1:]
    if not all(
        part[0] == "rel" and part[1].startswith("=") and part[2][0] in ("sym", "fn")
        for part in items
    ):
        return None
    labels = [repr(part[2]) if part[2][0] == "fn" else part[2][1] for part in items]
    if all(part[2][0] == "sym" and is_word(part[2][1]) for part in items):
        return None
    return labels if 1 < len(items) == len(set(labels)) else None


def are_indexed_names(names: list[str]) -> bool:
    """Whether names are one name with indices, as `x_1` and `x_2`, whose order does not count."""
    return len({name.partition("_")[0] for name in names}) == 1 and all("_" in x for x in names)


def drop_root_names(node: Node) -> Node:
    """Return `x_1 = 1, x_2 = -3` and `x = 1, x = -3` as their values; any other node unchanged."""
    equations = node[0] in ("list", "and", "or") and all(
        part[:2] == ("rel", "=") for part in node[1:]
    )
    names = [str(part[2][1]) for part in node[1:]] if equations else []
    roots = equations and all(part[2][0] == "sym" for part in node[1:])
    one = len({name.partition("_")[0] for name in names}) == 1 and names[0][:1] == "x"
    return ("list", *(part[-1] for part in node[1:])) if roots and one else node


def vector_entries(node: Node) -> tuple[Node, ...] | None:
    """Return the entries of a tuple, a row or a column; None for any other matrix."""
    if node[0] == "tuple":
        return node[1:]
    if len(node) == 2:
        return tuple(node[1][1:])
    if all(len(row) == 2 for row in node[1:]):
        return tuple(row[1] for row in node[1:])
    return None


def residues(node: Node, modulus: Fraction, policy: Policy) -> set[Fraction] | None:
    """Return the residues of the values of a congruence; None if one is not a rational number."""
    node = equation_value(node, policy)
    items = node[1:] if node[0] in ("list", "and", "or", "set") else (node,)
    values = [exact_value(equation_value(item, policy)) for item in items]
    numbers = {value % modulus for value in values if value is not None}
    return None if None in values else numbers


def unit_vectors_to_tuple(node: Node) -> Node:
    r"""Return `2\mathbf{i} + 3\mathbf{j}` as `(2, 3)`; any other node unchanged."""
    named = substitute(node, {("const", "i"): ("sym", "i"), **_UNIT_VECTORS})
    names = symbols(named)
    if node[0] not in ("add", "mul") or "j" not in names or not names <= {"i", "j", "k"}:
        return node
    axes = "ijk" if "k" in names else "ij"
    entries = [substitute(named, {("sym", a): num(int(a == axis)) for a in "ijk"}) for axis in axes]
    # The sum must be linear in the unit vectors: it is compared at i = 2, j = 3, k = 4.
    value = substitute(named, {("sym", a): num(i + 2) for i, a in enumerate("ijk")})
    linear_value = add(*(mul(num(i + 2), entry) for i, entry in enumerate(entries)))
    return ("tuple", *entries) if value_equal(value, linear_value) else node


_UNIT_VECTORS: dict[Node, Node] = {("sym", f"vec {a}"): ("sym", a) for a in "ijk"} | {
    ("fn", "widehat", part): ("sym", a)
    for a, part in (("i", ("const", "i")), ("j", ("sym", "j")), ("k", ("sym", "k")))
}


def enumerate_members(node: Node) -> Node:
    r"""Return `\{x \in \mathbb{Z} \mid 1 < x < 5\}` as `\{2, 3, 4\}`; any other node unchanged."""
    if node[0] != "builder" or node[1][0] != "rel" or node[1][3] not in _LEAST_MEMBERS:
        return node
    try:
        bounds = [
            (endpoint_value(interval.low), endpoint_value(interval.high), interval)
            for interval in read_intervals(node[2])
        ]
    except (NoRegionError, UndefinedError):
        return node
    least = _LEAST_MEMBERS[node[1][3]]
    if any(high - max(low, least) > MAX_ENUMERATED_MEMBERS for low, high, _ in bounds):
        return node
    members = {
        k
        for low, high, interval in bounds
        for k in range(math.ceil(max(low, least)), math.floor(high) + 1)
        if not (k == low and interval.is_low_open) and not (k == high and interval.is_high_open)
    }
    return ("set", *(num(k) for k in sorted(members)))


#: Most members of a set that is enumerated.
MAX_ENUMERATED_MEMBERS = 60
_LEAST_MEMBERS: dict[Node, float] = {
    ("sym", "Z"): -math.inf, ("sym", "N"): 0, ("sym", "set Z"): -math.inf, ("sym", "set N"): 0,
    ("sym", "set N*"): 1, ("sym", "set N+"): 1, ("sym", "set Z+"): 1,
}  # fmt: skip


def same_region(pred: Node, gold: Node) -> bool | None:
    """Whether both are one set of reals in the same variable; None if one is not such a set."""
    p, g = _condition_variables(pred), _condition_variables(gold)
    if len(p) > 1 or len(g) > 1:
        return None
    if p and g and p != g:
        return False if _has_one_name(pred) and _has_one_name(gold) else None
    return region_equal(pred, gold)


def _condition_variables(node: Node) -> set[str]:
    """Return the variables of the conditions of a set."""
    if node[0] == "builder":
        return set()
    relations = [part for part in subtrees(node) if part[0] == "rel"]
    return {
        next(iter(names))
        if len(names := symbols(relation)) == 1
        else repr(_relation_subject(relation))
        for relation in relations
    }


def _has_one_name(node: Node) -> bool:
    """Whether a tree has exactly one name."""
    return len(symbols(node)) == 1


def _relation_subject(relation: Node) -> Node:
    """Return the side of a relation that is a name."""
    subject: Node = next((side for side in relation[2:] if side[0] == "sym"), relation[2])
    return subject[1] if subject[0] == "sym" else subject
