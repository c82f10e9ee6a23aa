r"""Rewriting of trees into the form that the rules of `type_rules` compare.

`\pm` becomes two values, `(x, y) = (1, 2)` two equations, a sum or product of matrices one matrix, and
a set of integers by a condition its members.
"""

from __future__ import annotations

from functools import reduce

from rewardkit.answers.evaluate import charge_steps
from rewardkit.answers.parsing.tree import (
    Node,
    add,
    map_children,
    mul,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.regions import enumerate_members
from rewardkit.answers.scalar import value_equal

#: Most matrices of a product that is evaluated, because symbolic entries grow with each factor.
MAX_FACTORS = 3


def normal_form(node: Node) -> Node:
    """Return a tree in the form that the rules compare."""
    node = _expand_plus_minus(_evaluate_matrices(node))
    node = _split_exclusions(_split_tuple_equation(node))
    return _unit_vectors_to_tuple(enumerate_members(node))


def _expand_plus_minus(node: Node) -> Node:
    r"""Return `\pm` as two values, inside lists and sets too; a tree without `\pm` unchanged."""
    if not any(part[0] == "pm" for part in subtrees(node)):
        return node
    if node[0] in ("list", "and", "or", "set"):
        return (node[0], *(each for part in node[1:] for each in _sign_choices(part)))
    choices = _sign_choices(node)
    return ("list", *choices) if len(choices) > 1 else choices[0]


def _sign_choices(node: Node) -> list[Node]:
    return list(dict.fromkeys((_with_sign(node, is_minus=False), _with_sign(node, is_minus=True))))


def _with_sign(node: Node, *, is_minus: bool) -> Node:
    if node[0] == "pm":
        inside = _with_sign(node[1], is_minus=is_minus)
        return neg(inside) if is_minus else inside
    return map_children(lambda part: _with_sign(part, is_minus=is_minus), node)


def _split_tuple_equation(node: Node) -> Node:
    """Return `(x, y) = (2, 1)` as `x = 2, y = 1`; any other node unchanged."""
    if node[:2] != ("rel", "=") or len(node) != 4:
        return node
    names, values = node[2:]
    are_tuples = names[0] == values[0] == "tuple" and len(names) == len(values)
    if not are_tuples or any(name[0] not in ("sym", "fn") for name in names[1:]):
        return node
    pairs = zip(names[1:], values[1:], strict=True)
    return ("list", *(("rel", "=", name, value) for name, value in pairs))


def _split_exclusions(node: Node) -> Node:
    r"""Return `x \ne 1, 2` as `x \ne 1, x \ne 2`; any other node unchanged."""
    if node[0] not in ("list", "and", "or") or len(node) < 3:
        return node
    first, *others = node[1:]
    if first[:2] != ("rel", "!=") or any(symbols(n) or n[0] == "rel" for n in (first[3], *others)):
        return node
    return ("and", first, *(("rel", "!=", first[2], item) for item in others))


def _unit_vectors_to_tuple(node: Node) -> Node:
    r"""Return `2\mathbf{i} + 3\mathbf{j}` as `(2, 3)`; any other node unchanged."""
    if node[0] not in ("add", "mul"):
        return node
    named = substitute(node, _UNIT_VECTORS)
    names = symbols(named)
    if "j" not in names or not names <= {"i", "j", "k"}:
        return node
    axes = "ijk" if "k" in names else "ij"
    entries = [substitute(named, {("sym", a): num(int(a == axis)) for a in "ijk"}) for axis in axes]
    # The sum must be linear in the unit vectors: it is compared at i = 2, j = 3, k = 4.
    value = substitute(named, {("sym", a): num(i) for i, a in enumerate("ijk", start=2)})
    linear_value = add(*(mul(num(i), entry) for i, entry in enumerate(entries, start=2)))
    return ("tuple", *entries) if value_equal(value, linear_value) else node


_UNIT_VECTORS: dict[Node, Node] = {
    ("const", "i"): ("sym", "i"),
    ("fn", "widehat", ("const", "i")): ("sym", "i"),
    ("fn", "widehat", ("sym", "j")): ("sym", "j"),
    ("fn", "widehat", ("sym", "k")): ("sym", "k"),
    **{("sym", f"vec {axis}"): ("sym", axis) for axis in "ijk"},
}


# --- matrices


def _evaluate_matrices(node: Node) -> Node:
    """Return a sum or product of matrices or tuples as one of them; any other node unchanged."""
    if node[0] not in ("add", "mul"):
        return node
    if any(map(_has_tuple, node[1:])):
        rows = _evaluate_matrices((node[0], *map(_tuple_to_row, node[1:])))
        return ("tuple", *rows[1][1:]) if rows[0] == "matrix" and len(rows) == 2 else node
    if node[0] == "add":
        node = ("add", *map(_evaluate_matrices, node[1:]))
        return reduce(_add, node[1:]) if all(part[0] == "matrix" for part in node[1:]) else node
    matrices = sum(part[0] == "matrix" for part in node[1:])
    return reduce(_multiply, node[1:]) if 0 < matrices <= MAX_FACTORS else node


def _has_tuple(node: Node) -> bool:
    return node[0] == "tuple" or (node[0] == "mul" and any(part[0] == "tuple" for part in node[1:]))


def _tuple_to_row(node: Node) -> Node:
    if node[0] == "tuple":
        return ("matrix", ("row", *node[1:]))
    return ("mul", *map(_tuple_to_row, node[1:])) if _has_tuple(node) else node


def _add(a: Node, b: Node) -> Node:
    if len(a) < 2 or [*map(len, a[1:])] != [*map(len, b[1:])]:
        return ("add", a, b)
    rows = (("row", *map(add, p[1:], q[1:])) for p, q in zip(a[1:], b[1:], strict=True))
    return ("matrix", *rows)


def _multiply(a: Node, b: Node) -> Node:
    if "matrix" not in (a[0], b[0]):
        return mul(a, b)
    if a[0] != b[0]:
        factor, matrix = (b, a) if a[0] == "matrix" else (a, b)
        rows = (("row", *(mul(factor, cell) for cell in row[1:])) for row in matrix[1:])
        return ("matrix", *rows)
    if len(a) == 1 or len(b) == 1 or len(a[1]) != len(b):
        return ("mul", a, b)
    columns = list(zip(*(row[1:] for row in b[1:]), strict=False))
    charge_steps(a, b, times=len(columns))
    rows = (("row", *(add(*map(mul, row[1:], column)) for column in columns)) for row in a[1:])
    return ("matrix", *rows)
