"""Sums and products of matrices, evaluated entry by entry."""

from __future__ import annotations

from functools import reduce

from rewardkit.answers.evaluate import charge_steps
from rewardkit.answers.parsing.tree import Node, add, mul

#: Most matrices of a product that is evaluated, because symbolic entries grow with each factor.
MAX_FACTORS = 3


def evaluate_matrix_arithmetic(node: Node) -> Node:
    """Return a sum or product of matrices or tuples as one of them; any other node unchanged."""
    if node[0] in ("add", "mul") and any(_has_tuple(part) for part in node[1:]):
        rows = evaluate_matrix_arithmetic((node[0], *map(_tuple_to_row, node[1:])))
        one_row = rows[0] == "matrix" and len(rows) == 2
        return ("tuple", *rows[1][1:]) if one_row else node
    if node[0] == "add":
        node = ("add", *map(evaluate_matrix_arithmetic, node[1:]))
    if node[0] == "add" and all(part[0] == "matrix" for part in node[1:]):
        return reduce(_add, node[1:])
    matrices = sum(part[0] == "matrix" for part in node[1:]) if node[0] == "mul" else 0
    if 0 < matrices <= MAX_FACTORS:
        return reduce(_multiply, node[1:])
    return node


def _has_tuple(node: Node) -> bool:
    return node[0] == "tuple" or (node[0] == "mul" and any(part[0] == "tuple" for part in node[1:]))


def _tuple_to_row(node: Node) -> Node:
    if node[0] == "tuple":
        return ("matrix", ("row", *node[1:]))
    return ("mul", *map(_tuple_to_row, node[1:])) if _has_tuple(node) else node


def _add(a: Node, b: Node) -> Node:
    if (
        len(a) < 2
        or len(a) != len(b)
        or any(len(p) != len(q) for p, q in zip(a[1:], b[1:], strict=True))
    ):
        return ("add", a, b)
    rows = (("row", *map(add, p[1:], q[1:])) for p, q in zip(a[1:], b[1:], strict=True))
    return ("matrix", *rows)


def _multiply(a: Node, b: Node) -> Node:
    if a[0] == b[0] == "matrix":
        return _matrix_product(a, b)
    if "matrix" not in (a[0], b[0]):
        return mul(a, b)
    factor, matrix = (b, a) if a[0] == "matrix" else (a, b)
    return ("matrix", *(("row", *(mul(factor, cell) for cell in row[1:])) for row in matrix[1:]))


def _matrix_product(a: Node, b: Node) -> Node:
    if len(a) == 1 or len(b) == 1:
        return ("mul", a, b)
    columns = list(zip(*(row[1:] for row in b[1:]), strict=False))
    if len(a[1]) != len(b):
        return ("mul", a, b)
    charge_steps(a, b, times=len(columns))
    rows = (("row", *(add(*map(mul, row[1:], column)) for column in columns)) for row in a[1:])
    return ("matrix", *rows)
