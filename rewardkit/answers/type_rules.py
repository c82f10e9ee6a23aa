r"""Whether two values are the same answer, by a rule for their pair of types.

`_RULES` holds a rule for every pair of types that can be equal; every other pair is different. Both
values are brought to their normal form first: `\pm` becomes two values, a sum or product of matrices
one matrix, and a set of integers by a condition its members.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from itertools import product

from rewardkit.answers.parsing.tree import (
    MINUS_ONE,
    Node,
    add,
    divide,
    map_children,
    mul,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.parsing.units import UNITS
from rewardkit.answers.parsing.vocabulary import FLIPPED_OPERATORS
from rewardkit.answers.relations import (
    are_proportional,
    is_equation,
    is_function_name,
    is_word,
    labels_agree,
    rename_arguments,
    same_region,
    solution_of,
)
from rewardkit.answers.scalar import (
    Policy,
    canonical_text,
    charge_steps,
    exact_value,
    may_be_equal,
    probe_value,
    scalar_equal,
    value_equal,
)

#: Most matrices of a product that is evaluated, because symbolic entries grow with each factor.
MAX_FACTORS = 3
_GRIDS = ("tuple", "matrix")
#: Most signs of a tuple of which every combination is compared.
MAX_SIGNS = 4
#: Most items of a list or set that are compared in any order.
MAX_ITEMS = 60

#: Type of a node by its kind; every other kind has the type `value`.
_OWN = "quantity compound ratio clock tuple set matrix cases congruence where text".split()
_TYPES = {
    **dict(zip(_OWN, _OWN, strict=True)),
    **dict.fromkeys(("list", "and", "or"), "list"),
    "to": "ratio",
    **dict.fromkeys(("interval", "union", "meet", "minus", "builder"), "region"),
}
_GROUPS = ("list", "and", "or", "set")

Rule = Callable[[Node, Node, Policy], bool]


def value_type(node: Node) -> str:
    """Return the type of a tree: `value`, `quantity`, `equation`, `list`, `region`, ..."""
    if node[0] == "rel":
        return "equation" if is_equation(node) else "relation"
    return _TYPES.get(node[0], "value")


def same_answer(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two values are the same answer."""
    return same_normal_forms(normal_form(pred), normal_form(gold), policy)


def same_normal_forms(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two values in their normal form are the same answer."""
    rule = _RULES.get((value_type(gold), value_type(pred)))
    return rule is not None and rule(pred, gold, policy)


def same_item(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two items of a group are the same answer; charges the comparison to the budget."""
    charge_steps(pred, gold, times=3)
    if (pred[0] == "set") != (gold[0] == "set"):
        return False  # as a member, {1} differs from 1
    return same_answer(pred, gold, policy)


def states_several_values(node: Node) -> bool:
    """Whether an answer states several values."""
    return node[0] in _GROUPS or any(part[0] == "pm" for part in subtrees(node))


def _identical(pred: Node, gold: Node, _: Policy) -> bool:
    return pred == gold


# --- quantities and ratios


def _quantities_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    (_, p, unit), (_, g, gold_unit) = pred, gold
    if unit == gold_unit:
        return scalar_equal(p, g, policy)
    is_converted = policy.convert_units and unit.dimension == gold_unit.dimension
    return is_converted and value_equal(p, _scale(g, gold_unit.factor / unit.factor), policy)


def _scale(value: Node, factor: Fraction) -> Node:
    exact = exact_value(value)
    return mul(num(factor), value) if exact is None else num(exact * factor)


def _equal_without_unit(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare two values, one of which omits its unit; `%` and degrees are units of their own."""
    p, g = (node[1] if node[0] == "quantity" else node for node in (pred, gold))
    if "degree" in (p[0], g[0]) and UNITS["rad"] in (pred[-1], gold[-1]):
        return value_equal(p, g, policy)
    if {"percent", "degree"} & {p[0], g[0]}:
        return False
    return scalar_equal(p, g, policy)


def _compounds_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare compound quantities by their sum per dimension: `2 h 90 min` is `3 h 30 min`."""
    if "quantity" in (pred[0], gold[0]) and not policy.convert_units:
        return False
    p, g = _totals(pred), _totals(gold)
    return p.keys() == g.keys() and all(value_equal(p[key], g[key], policy) for key in p)


def _totals(node: Node) -> dict[object, Node]:
    totals: dict[object, Node] = {}
    for _, value, unit in node[1:] if node[0] == "compound" else (node,):
        before = totals.get(unit.dimension, num(0))
        totals[unit.dimension] = ("add", before, _scale(value, unit.factor))
    return totals


def _ratios_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare ratios up to a common factor: `4:6` is `2:3`. Two that say `to` may be ranges."""
    if pred[0] == gold[0] == "to":
        return _equal_in_order(pred, gold, policy)
    return len(pred) == len(gold) and all(
        value_equal(mul(p, gold[1]), mul(g, pred[1]), policy)
        for p, g in zip(pred[2:], gold[2:], strict=True)
    )


def _ratio_equals_value(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare a ratio of two parts, as its quotient, with a value."""
    p, g = (divide(*n[1:]) if n[0] == "ratio" and len(n) == 3 else n for n in (pred, gold))
    return {"ratio", "to"}.isdisjoint((p[0], g[0])) and scalar_equal(p, g, policy)


# --- groups


def _equal_in_order(pred: Node, gold: Node, policy: Policy) -> bool:
    pairs = zip(pred[1:], gold[1:], strict=False)
    return len(pred) == len(gold) and all(same_item(p, g, policy) for p, g in pairs)


def _equal_in_any_order(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether every item has an equal item of its own on the other side."""
    if len(pred) != len(gold) or len(gold) - 1 > MAX_ITEMS:
        return pred[1:] == gold[1:]
    left = list(gold[1:])
    marks = {id(item): probe_value(item) for item in (*pred[1:], *left)}
    for item in sorted(pred[1:], key=lambda item: item not in gold):  # identical items first
        likely = (other for other in left if may_be_equal(marks[id(item)], marks[id(other)]))
        same = (other for other in likely if same_item(item, other, policy))
        match = item if item in left else next(same, None)
        if match is None:
            return False
        left.remove(match)
    return True


def _lists_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare lists in any order, but in order if only one side labels its items.

    The order of `x_1 = 1, x_2 = -3` does not count: they are roots, whose index may be left out.
    """
    items = [part for part in (*pred[1:], *gold[1:]) if symbols(part)]
    names = {part[2] if part[0] == "rel" else part for part in items}
    if (pred[0] == "or") != (gold[0] == "or") and len(names) > 1:
        return False
    labels = _labels(pred), _labels(gold)
    bases = [{label.partition("_")[0] for label in each if label} for each in labels]
    are_assignments = ["" not in each and 1 < len(each) == len(set(each)) for each in labels]
    if bases[0] == bases[1] and len(bases[0]) == 1 and not all(are_assignments):
        pred, gold = (("list", *map(_without_label, node[1:])) for node in (pred, gold))
    elif are_assignments[0] != are_assignments[1] and not all(map(is_word, bases[0] | bases[1])):
        own, other = (0, gold) if are_assignments[0] else (1, pred)
        if len(bases[own]) > 1 and all(part[0] != "rel" for part in other[1:]):
            return _equal_in_order(pred, gold, policy)
    return _equal_in_any_order(pred, gold, policy)


def _without_label(item: Node) -> Node:
    return item[3] if item[:2] == ("rel", "=") and item[2][0] == "sym" else item


def _labels(node: Node) -> list[str]:
    """Return the label of each item of a list; "" for an item without one."""
    heads = [part[2] if part[0] == "rel" and part[1][0] == "=" else node for part in node[1:]]
    return [
        head[1] if head[0] == "sym" else canonical_text(head) if head[0] == "fn" else ""
        for head in heads
    ]


def _list_equals_tuple(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare a list that names each coordinate at most once, or has only commas, with a tuple."""
    if _has_conditions(pred, gold):
        return bool(same_region(pred, gold)) or _equal_in_order(pred, gold, policy)
    items = gold if pred[0] == "tuple" else pred
    labels = [label for label in _labels(items) if label]
    is_hedge = items[0] == "or" or (items[0] == "and" and not labels)
    return not is_hedge and len(labels) == len(set(labels)) and _equal_in_order(pred, gold, policy)


def _equals_only_item(pred: Node, gold: Node, policy: Policy) -> bool:
    p, g = (node[1] if node[0] in _GROUPS and len(node) == 2 else node for node in (pred, gold))
    return (p, g) != (pred, gold) and same_item(p, g, policy)


# --- tuples, matrices and functions by pieces


def _point_equals_tuple(pred: Node, gold: Node, policy: Policy) -> bool:
    """`M(0, -2)` equals the point `(0, -2)`."""
    point, other = (pred, gold) if gold[0] == "tuple" else (gold, pred)
    if point[0] != "fn" or not point[1][:1].isupper():
        return bool(same_region(pred, gold))  # the reals
    return _equal_in_order(("tuple", *point[2:]), other, policy)


def _vectors_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    return _equal_in_order(_as_tuple(pred), _as_tuple(gold), policy)


def _as_tuple(node: Node) -> Node:
    if node[0] == "tuple" or len(node) == 2:
        return node if node[0] == "tuple" else ("tuple", *node[1][1:])
    is_column = all(len(row) == 2 for row in node[1:])
    return ("tuple", *(row[1] for row in node[1:] if is_column))


def _piecewise_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare branches in any order; `otherwise` matches the only branch that is left over."""
    left, rest = list(gold[1:]), []
    for branch in pred[1:]:
        same = next((other for other in left if _equal_in_order(branch, other, policy)), None)
        rest.append(branch) if same is None else left.remove(same)
    if len(rest) == len(left) == 1 and ("sym", "otherwise") in (rest[0][2], left[0][2]):
        return same_item(rest[0][1], left[0][1], policy)
    return not rest and not left


# --- relations and regions


def _has_conditions(pred: Node, gold: Node) -> bool:
    return any(value_type(part) == "relation" for part in (*pred[1:], *gold[1:]))


def _regions_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""Compare sets of reals; `x \in S` equals S, and `a < b < c` the list of its sides."""
    p, g = (node[3] if node[:2] == ("rel", "in") else node for node in (pred, gold))
    if (p, g) != (pred, gold):
        return (p[0] == "sym" or value_type(p) != "value") and same_answer(p, g, policy)
    chain, items = (p, g) if p[0] == "rel" else (g, p)
    is_order = chain[0] == "rel" and re.fullmatch("<( <)+|>( >)+", chain[1])
    if is_order and items[0] in ("list", "tuple") and len(items) == len(chain) - 1:
        return _equal_in_order(("tuple", *chain[2:]), ("tuple", *items[1:]), policy)
    if g[0] == "rel":  # `0 < f(x) < 1` is a set of the function's values
        values = [side for side in g[2:] if side[0] == "fn" and is_function_name(side[1])]
        g = substitute(g, dict.fromkeys(values, ("sym", "value")))
    if (is_same := same_region(p, g)) is not None:
        return is_same
    if p[0] != g[0] or p[0] == "interval" or value_type(p) != "region":
        return False
    return (_equal_in_order if p[0] == "minus" else _equal_in_any_order)(p, g, policy)


def _relations_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    if (is_same := same_region(pred, gold)) is not None:
        return is_same
    flipped = " ".join(FLIPPED_OPERATORS.get(each, "") for each in reversed(pred[1].split()))
    return any(
        operator == gold[1] and _equal_in_order(("tuple", *sides), ("tuple", *gold[2:]), policy)
        for operator, sides in ((pred[1], pred[2:]), (flipped, pred[:1:-1]))
    )


def _equations_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare solved equations by label and value, other equations up to a constant factor."""
    p, g = solution_of(pred, policy), solution_of(gold, policy)
    if p is not None and g is not None and labels_agree(p, g):
        pairs = ((value, other) for value in rename_arguments(p, g) for other in g.values)
        if any(same_answer(value, other, policy) for value, other in pairs):
            return True
    if p is None and g is None:
        is_chain = len(pred) > 4 and pred[1] == gold[1]
        return are_proportional(pred, gold) or (is_chain and _equal_in_order(pred, gold, policy))
    unsolved = gold if p is not None else pred
    sum_of_two = unsolved[2][0] == "add" and {part[0] for part in unsolved[2][1:]}
    is_line = sum_of_two == {"sym", "num"} and unsolved[3] == num(0)  # x + 1 = 0
    return (is_line or len(symbols(unsolved)) > 1) and are_proportional(pred, gold)


def _equation_equals_value(pred: Node, gold: Node, policy: Policy) -> bool:
    is_answer = is_equation(pred)
    solution = solution_of(pred if is_answer else gold, policy)
    pairs = ((v, gold) if is_answer else (pred, v) for v in (solution.values if solution else ()))
    return any(same_answer(*pair, policy) for pair in pairs)


def _restricted_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare answers with clauses.

    Restricting clauses must be the same; a clause that only says what its names are may be missing.
    For a region the kind of its variable restricts: the integers of an interval are another set.
    """
    p, g = (n if n[0] == "where" else ("where", n, "", False, "", "") for n in (pred, gold))
    kinds = {p[5], g[5]}
    if p[2] != g[2] and (p[3] or g[3] or len(kinds - {""}) > 1):
        return False
    of_reals = any(value_type(n[1]) in ("relation", "region") for n in (p, g))
    if of_reals and len(kinds) > 1 and not kinds <= {"", "R"}:
        return False
    return same_answer(p[1], g[1], policy)


# --- the table


def _both_ways(rule: Rule, first: str, others: str) -> dict[tuple[str, str], Rule]:
    """Map the pairs of the first type with each other type, in both orders, to a rule."""
    return {pair: rule for other in others.split() for pair in ((first, other), (other, first))}


_COMMON_TYPES = "value quantity equation ratio region tuple matrix text relation"
_EQUATION_VALUES = "value quantity compound ratio tuple set matrix list region cases text clock"

#: (type of the gold, type of the answer) -> rule.
_RULES = {
    **_both_ways(_equals_only_item, "list", _COMMON_TYPES),
    **_both_ways(_equals_only_item, "set", "value quantity equation ratio text tuple"),
    **_both_ways(_equation_equals_value, "equation", _EQUATION_VALUES),
    **_both_ways(_regions_equal, "relation", "set list tuple region value"),
    **_both_ways(_regions_equal, "region", "region tuple set list value"),
    **_both_ways(
        _restricted_equal, "where", f"where {_COMMON_TYPES} list set compound cases clock"
    ),
    **_both_ways(_ratio_equals_value, "ratio", "value"),
    **_both_ways(_equal_without_unit, "quantity", "value"),
    **_both_ways(_compounds_equal, "compound", "compound quantity"),
    **_both_ways(_list_equals_tuple, "list", "tuple"),
    **_both_ways(_vectors_equal, "tuple", "matrix"),
    **_both_ways(_point_equals_tuple, "tuple", "value"),
    **_both_ways(_lists_equal, "list", "list set"),
    ("value", "value"): scalar_equal,
    ("quantity", "quantity"): _quantities_equal,
    ("ratio", "ratio"): _ratios_equal,
    ("clock", "clock"): _identical,
    ("text", "text"): _identical,
    ("equation", "equation"): _equations_equal,
    ("relation", "relation"): _relations_equal,
    ("set", "set"): _equal_in_any_order,
    ("tuple", "tuple"): _equal_in_order,
    ("matrix", "matrix"): lambda pred, gold, policy: (
        len(pred) == len(gold)
        and all(_equal_in_order(p, g, policy) for p, g in zip(pred[1:], gold[1:], strict=True))
    ),
    ("cases", "cases"): _piecewise_equal,
    ("congruence", "congruence"): _equal_in_order,
}


# --- the normal form


def normal_form(node: Node) -> Node:
    """Return a tree in the form that the rules compare."""
    node = _expand_plus_minus(_evaluate_matrices(_builder_to_clause(node)))
    return _unit_vectors_to_tuple(_split_tuple_equation(node))


def _builder_to_clause(node: Node) -> Node:
    r"""Return `\{2k \mid k \in \mathbb{Z}\}` as `2k` with its clause, other builders with names bound.

    So is `\{x \mid x = 2k, k \in \mathbb{Z}\}`, where x only stands for the member.
    """
    if node[0] != "builder":
        return node
    head, condition = node[1][2] if node[1][:2] == ("rel", "in") else node[1], node[2]
    joint, *parts = condition if condition[0] in _GROUPS else ("list", condition)
    last = parts.pop()
    is_of_reals = head is node[1] or node[1][3] == ("sym", "R")
    clause: Node = ()
    match last:
        case ("rel", "in", ("sym", name), ("sym", kind)) if (
            kind in ("Z", "set Z", "N", "set N") and is_of_reals and last[2] != head
        ):
            clause = (f"{name} in {kind[-1]}", False, name, kind[-1])
        case _:
            parts.append(last)
    are_values = is_of_reals and all(part[:3] == ("rel", "=", head) for part in parts)
    values = [part[3] if are_values else part for part in parts] or [head]
    if clause or are_values:
        value = values[0] if len(values) == 1 else (joint, *values)
        return ("where", value, *clause) if clause else value
    names = [part for part in subtrees(head) if part[0] == "sym"]
    return substitute(node, {name: ("sym", f"bound {i}") for i, name in enumerate(names)})


def _expand_plus_minus(node: Node) -> Node:
    r"""Return `\pm` as two values, inside lists and sets too; a tree without `\pm` unchanged."""
    if not any(part[0] == "pm" for part in subtrees(node)):
        return node
    if node[0] == "where":
        return ("where", _expand_plus_minus(node[1]), *node[2:])
    is_group = node[0] in _GROUPS
    choices = [each for part in (node[1:] if is_group else [node]) for each in _sign_choices(part)]
    if is_group or len(choices) > 1:
        return (node[0] if is_group else "list", *choices)
    return choices[0]


def _sign_choices(node: Node) -> list[Node]:
    r"""Return both choices of the signs; a tuple without `\mp` has every combination of its parts."""
    signs = [part for part in subtrees(node) if part[0] == "pm"]
    has_opposite_signs = any(  # as of \mp
        MINUS_ONE in inside or (inside[0] == "num" and inside[1] < 0) for _, inside in signs
    )
    if node[0] == "tuple" and 1 < len(signs) <= MAX_SIGNS and not has_opposite_signs:
        return [("tuple", *parts) for parts in product(*map(_sign_choices, node[1:]))]
    return list(dict.fromkeys((_with_sign(node, is_minus=False), _with_sign(node, is_minus=True))))


def _with_sign(node: Node, *, is_minus: bool) -> Node:
    if node[0] != "pm":
        return map_children(lambda part: _with_sign(part, is_minus=is_minus), node)
    inside = _with_sign(node[1], is_minus=is_minus)
    return neg(inside) if is_minus else inside


def _split_tuple_equation(node: Node) -> Node:
    match node:
        case ("rel", "=", ("tuple", *names), ("tuple", *values)) if len(names) == len(values):
            if all(name[0] in ("sym", "fn") for name in names):
                return ("list", *(("rel", "=", *pair) for pair in zip(names, values, strict=True)))
    return node


_UNIT_VECTORS: dict[Node, Node] = {
    spelling: ("sym", axis)
    for axis, dotless in (("i", "imath"), ("j", "jmath"), ("k", "k"))
    for name in (("const", axis), ("sym", axis), ("sym", dotless))
    for spelling in (name, ("fn", "widehat", name), ("sym", f"vec {axis}"))
}


def _unit_vectors_to_tuple(node: Node) -> Node:
    r"""Return `2\mathbf{i} + 3\mathbf{j}` as `(2, 3)`; other nodes without j or a hat unchanged."""
    if node[0] not in ("add", "mul"):
        return node
    named = substitute(node, _UNIT_VECTORS)
    names = symbols(named)
    has_hat = any(part[:2] == ("fn", "widehat") for part in subtrees(node))
    if not ("j" in names or has_hat) or not names <= {"i", "j", "k"}:
        return node
    axes = "ijk" if "k" in names else "ij"
    entries = [substitute(named, {("sym", a): num(int(a == axis)) for a in "ijk"}) for axis in axes]
    linear = add(*(mul(("sym", a), entry) for a, entry in zip(axes, entries, strict=True)))
    return ("tuple", *entries) if value_equal(named, linear) else node


# --- matrices


def _evaluate_matrices(node: Node) -> Node:
    """Return a sum of tuples or matrices of one shape, a multiple of one, or a product of matrices."""
    if node[0] == "add":
        parts = list(map(_evaluate_matrices, node[1:]))
        if len(set(map(_shape, parts))) == 1 and parts[0][0] in _GRIDS:
            return _by_entry(add, *parts)
    if node[0] == "mul" and 0 < sum(part[0] in _GRIDS for part in node[1:]) <= MAX_FACTORS:
        return reduce(_multiply, node[1:])
    return node


def _multiply(a: Node, b: Node) -> Node:
    if a[0] not in _GRIDS or b[0] not in _GRIDS:
        factor, grid = (b, a) if a[0] in _GRIDS else (a, b)
        is_grid = grid[0] in _GRIDS
        return _by_entry(lambda entry: mul(factor, entry), grid) if is_grid else mul(a, b)
    columns = list(zip(*(row[1:] for row in b[1:] if b[0] == "matrix"), strict=False))
    if a[0] != "matrix" or {len(row) - 1 for row in a[1:]} != set(map(len, columns)):
        return ("mul", a, b)
    charge_steps(a, b, times=len(columns))
    rows = (("row", *(add(*map(mul, row[1:], column)) for column in columns)) for row in a[1:])
    return ("matrix", *rows)


def _shape(node: Node) -> tuple[object, ...]:
    return (node[0], len(node), *(len(row) for row in node[1:] if node[0] == "matrix"))


def _by_entry(function: Callable[..., Node], *grids: Node) -> Node:
    """Return the tuple or matrix of a function's values for the entries of grids of one shape."""
    parts = zip(*(grid[1:] for grid in grids), strict=True)
    if grids[0][0] == "matrix":
        return ("matrix", *(_by_entry(function, *rows) for rows in parts))
    return (grids[0][0], *(function(*entries) for entries in parts))
