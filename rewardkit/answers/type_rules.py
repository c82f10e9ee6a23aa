"""Whether two values are the same answer, by a rule for their pair of types.

`_RULES` holds a rule for every pair of types that can be equal; every other pair is different. Both
values are brought to their normal form first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Final

from rewardkit.answers.evaluate import charge_steps, exact_value, may_be_equal, probe_value
from rewardkit.answers.parsing.tree import Node, subtrees, symbols
from rewardkit.answers.parsing.vocabulary import FLIPPED_OPERATORS
from rewardkit.answers.quantity_rules import (
    compounds_equal,
    equal_without_unit,
    quantities_equal,
    ratio_equals_value,
    ratios_equal,
)
from rewardkit.answers.relations import (
    are_proportional,
    inequalities_equal,
    is_equation,
    labels_agree,
    rename_arguments,
    solution_of,
)
from rewardkit.answers.rewrites import (
    are_indexed_names,
    clock_to_ratio,
    drop_root_names,
    item_labels,
    name_function_values,
    normal_form,
    residues,
    same_region,
    vector_entries,
)
from rewardkit.answers.scalar import Policy, scalar_equal

#: Most items of a list or set that are compared in any order.
MAX_ITEMS: Final = 60

#: Type of a node by its kind; every other kind has the type `value`.
_TYPES: Mapping[str, str] = {
    **{kind: kind for kind in ("quantity", "compound", "ratio", "clock", "tuple", "set", "matrix")},
    **{kind: kind for kind in ("cases", "congruence", "where", "text")},
    **dict.fromkeys(("list", "and", "or"), "list"),
    **dict.fromkeys(("interval", "union", "meet", "minus", "builder"), "region"),
}

Rule = Callable[[Node, Node, Policy], bool]


def value_type(node: Node) -> str:
    """Return the type of a tree: `value`, `quantity`, `equation`, `list`, `region`, ..."""
    if node[0] == "rel":
        return "equation" if is_equation(node) else "relation"
    return _TYPES.get(node[0], "value")


def same_answer(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two values are the same answer."""
    pred, gold = normal_form(pred), normal_form(gold)
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
    is_group = node[0] in ("list", "and", "or", "set")
    return is_group or any(part[0] == "pm" for part in subtrees(node))


# --- single values


def _clock_equals_ratio(pred: Node, gold: Node, policy: Policy) -> bool:
    """Read a time such as `2:30` as a ratio, because the other side is a ratio."""
    p, g = (clock_to_ratio(node) if node[0] == "clock" else node for node in (pred, gold))
    return p is not None and g is not None and same_answer(p, g, policy)


def _identical(pred: Node, gold: Node, _: Policy) -> bool:
    return pred == gold


def _point_equals_tuple(pred: Node, gold: Node, policy: Policy) -> bool:
    """`M(0, -2)` equals the point `(0, -2)`."""
    if ("sym", "R") in (pred, gold):
        return bool(same_region(pred, gold))
    point, other = (pred, gold) if gold[0] == "tuple" else (gold, pred)
    if point[0] != "fn" or not point[1][:1].isupper() or len(point) < 4:
        return False
    items: Node = ("tuple", *point[2:])
    return _equal_in_order(items, other, policy)


def _equal_in_order(pred: Node, gold: Node, policy: Policy) -> bool:
    return len(pred) == len(gold) and all(map(same_item, pred[1:], gold[1:], repeat(policy)))


def _equal_in_any_order(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether every item has an equal item of its own on the other side."""
    if len(pred) != len(gold):
        return False
    if len(gold) - 1 > MAX_ITEMS:
        return pred[1:] == gold[1:]
    left = list(gold[1:])
    rest = [item for item in pred[1:] if not _remove_identical(item, left)]
    marks = {id(item): probe_value(item) for item in (*rest, *left)}
    for item in rest:
        likely = [other for other in left if may_be_equal(marks[id(item)], marks[id(other)])]
        match = next((other for other in likely if same_item(item, other, policy)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _remove_identical(item: Node, items: list[Node]) -> bool:
    """Remove an identical item from `items`; return whether there was one."""
    if item not in items:
        return False
    items.remove(item)
    return True


def _lists_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare in any order, or in order if only one side labels its items."""
    roots = drop_root_names(pred), drop_root_names(gold)
    if (
        roots[0] is not pred
        and roots[1] is not gold
        and None in (item_labels(pred), item_labels(gold))
    ):
        return _equal_in_any_order(*roots, policy)
    joints_differ = (pred[0] == "or") != (gold[0] == "or")
    if joints_differ and not (_is_joint_irrelevant(pred) and _is_joint_irrelevant(gold)):
        return False
    region = same_region(pred, gold) if _has_conditions(pred, gold) else None
    if region is not None:
        return region
    pred_labels, gold_labels = item_labels(pred), item_labels(gold)
    if (pred_labels is None) != (gold_labels is None):
        return _equal_in_order(pred, gold, policy) or (
            are_indexed_names(pred_labels or gold_labels or [])
            and _equal_in_any_order(pred, gold, policy)
        )
    return _equal_in_any_order(pred, gold, policy)


def _is_joint_irrelevant(node: Node) -> bool:
    """Whether `or` and `and` mean the same in a list: it holds values, or values of one name."""
    if any(value_type(part) == "value" and symbols(part) for part in node[1:]):
        return False
    names = {repr(part[2]) for part in node[1:] if part[0] == "rel"}
    kinds = {value_type(part) for part in node[1:]}
    return kinds <= {"value", "equation", "tuple", "region"} and len(names) < 2


def _list_equals_tuple(pred: Node, gold: Node, policy: Policy) -> bool:
    by_conditions = _has_conditions(pred, gold) and same_region(pred, gold)
    return bool(by_conditions) or _equal_in_order(pred, gold, policy)


def _equals_only_item(pred: Node, gold: Node, policy: Policy) -> bool:
    """A set or list of one item equals that item."""
    groups = ("list", "set", "and", "or")
    if pred[0] in groups and len(pred) == 2:
        return same_item(pred[1], gold, policy)
    return gold[0] in groups and len(gold) == 2 and same_item(pred, gold[1], policy)


def _matrices_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    return len(pred) == len(gold) and all(map(_equal_in_order, pred[1:], gold[1:], repeat(policy)))


def _vectors_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """A vector may be written as a tuple, a row or a column."""
    p, g = vector_entries(pred), vector_entries(gold)
    return p is not None and g is not None and _equal_in_order(("tuple", *p), ("tuple", *g), policy)


def _piecewise_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare branches in any order; `otherwise` matches the only branch that is left over."""
    conditions = [sum(branch[2] != _OTHERWISE for branch in node[1:]) for node in (pred, gold)]
    if len(pred) != len(gold) or min(conditions) < len(gold) - 2:
        return False
    left = list(gold[1:])
    rest = []
    for branch in pred[1:]:
        same_conditions = [
            b for b in left if b[2] == branch[2] or same_item(branch[2], b[2], policy)
        ]
        if not same_conditions:
            rest.append(branch)
        elif same_item(branch[1], same_conditions[0][1], policy):
            left.remove(same_conditions[0])
        else:
            return False
    if not rest:
        return True
    is_one_left = len(rest) == len(left) == 1 and _OTHERWISE in (rest[0][2], left[0][2])
    return is_one_left and same_item(rest[0][1], left[0][1], policy)


_OTHERWISE = ("sym", "otherwise")


def _congruences_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether modulus and name are the same, and the residues are the same modulo it."""
    names = [node[1][2] for node in (pred, gold) if node[1][0] == "rel"]
    if len(names) == 2 and names[0] != names[1]:
        return False
    modulus = exact_value(gold[2])
    if modulus is None or not modulus or exact_value(pred[2]) != modulus:
        return same_item(pred[1], gold[1], policy) and same_item(pred[2], gold[2], policy)
    p, g = residues(pred[1], modulus, policy), residues(gold[1], modulus, policy)
    return p is not None and p == g


def _residue_equals_value(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`3 \pmod 7` equals 3; `x \equiv 3 \pmod 7` does not."""
    congruence, other = (gold, pred) if gold[0] == "congruence" else (pred, gold)
    residue, modulus = exact_value(congruence[1]), exact_value(congruence[2])
    if residue is None or modulus is None or not 0 <= residue < modulus:
        return False
    return same_answer(other, congruence[1], policy)


# --- relations and regions


def _has_conditions(pred: Node, gold: Node) -> bool:
    return any(value_type(part) == "relation" for part in (*pred[1:], *gold[1:]))


def _regions_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    is_same = same_region(pred, gold)
    return _regions_equal_by_parts(pred, gold, policy) if is_same is None else is_same


def _regions_equal_by_parts(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare two regions of one kind part by part, because they are not sets of reals."""
    if pred[0] != gold[0] or len(pred) != len(gold):
        return False
    if pred[0] == "interval":
        return pred[3:] == gold[3:] and _equal_in_order(pred[:3], gold[:3], policy)
    if pred[0] in ("union", "meet"):
        return _equal_in_any_order(pred, gold, policy)
    return pred[0] in ("minus", "builder") and _equal_in_order(pred, gold, policy)


def _members_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`x \in S` equals S, whatever its members are."""
    p, g = (n[3] if n[0] == "rel" and n[1] == "in" and len(n) == 4 else n for n in (pred, gold))
    if (p, g) != (pred, gold):
        return same_answer(p, g, policy)
    return bool(same_region(pred, name_function_values(gold)))


def _is_all_reals(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`x \in \mathbb{R}` equals the set of all reals; no other name stands for a set."""
    return ("sym", "R") in (pred, gold) and _members_equal(pred, gold, policy)


def _relations_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether both describe one set, or have equal sides and operators, flipped or not."""
    if gold[1] == pred[1] == "in":
        return same_answer(pred[2], gold[2], policy) and same_answer(pred[3], gold[3], policy)
    if (is_same := same_region(pred, gold)) is not None:
        return is_same
    if "in" in (pred[1], gold[1]):
        return _members_equal(pred, gold, policy)
    if len(symbols(gold)) > 1 and inequalities_equal(pred, gold):
        return True
    operators = pred[1].split()
    forms = [pred]
    if all(operator in FLIPPED_OPERATORS for operator in operators):
        flipped = " ".join(FLIPPED_OPERATORS[operator] for operator in reversed(operators))
        forms.append(("rel", flipped, *reversed(pred[2:])))
    return any(
        p[1] == gold[1] and _equal_in_order(("tuple", *p[2:]), ("tuple", *gold[2:]), policy)
        for p in forms
    )


def _equations_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare solved equations by label and value, other equations up to a constant factor."""
    p, g = solution_of(pred, policy), solution_of(gold, policy)
    if p is not None and g is not None:
        if labels_agree(p, g) and any(
            same_answer(value, gold_value, policy)
            for value in rename_arguments(p, g)
            for gold_value in g.values
        ):
            return True
        return len(symbols(gold)) > 1 and are_proportional(pred, gold)
    if p is None and g is None:
        return are_proportional(pred, gold) or _chains_equal(pred, gold, policy)
    return len(symbols(pred if p is None else gold)) > 1 and are_proportional(pred, gold)


def _chains_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare chains such as `a = b = c` side by side."""
    return (
        len(pred) == len(gold) > 4
        and pred[1] == gold[1]
        and _equal_in_order(("tuple", *pred[2:]), ("tuple", *gold[2:]), policy)
    )


def _equation_equals_value(pred: Node, gold: Node, policy: Policy) -> bool:
    """`x = 5` equals 5; an unsolved equation equals no value."""
    node, other = (pred, gold) if is_equation(pred) else (gold, pred)
    answer = solution_of(node, policy)
    if answer is None:
        return False
    if node is pred:
        return any(same_answer(value, other, policy) for value in answer.values)
    return any(same_answer(other, value, policy) for value in answer.values)


def _restricted_equal(pred: Node, gold: Node, policy: Policy) -> bool:
    """Compare answers with clauses.

    Restricting clauses must be the same; a clause that only says what its names are may be missing.
    For a region the kind of its variable restricts: the integers of an interval are another set.
    """
    p, g = (n if n[0] == "where" else ("where", n, "", False, "", "") for n in (pred, gold))
    if p[2] != g[2] and (p[3] or g[3] or (p[5] and g[5] and p[5] != g[5])):
        return False
    of_reals = any(value_type(n[1]) in ("relation", "region") for n in (p, g))
    if of_reals and not {p[5], g[5]} <= {"", "R"} and p[5] != g[5]:
        return False
    return same_answer(p[1], g[1], policy)


def _both_ways(rule: Rule, first: str, others: str) -> dict[tuple[str, str], Rule]:
    """Map the pairs of the first type with each other type, in both orders, to a rule."""
    return {pair: rule for other in others.split() for pair in ((first, other), (other, first))}


_COMMON_TYPES = "value quantity equation ratio region tuple matrix text relation"
_EQUATION_VALUES = "value quantity compound ratio tuple set matrix list region cases text clock"

#: (type of the gold, type of the answer) -> rule.
_RULES: Mapping[tuple[str, str], Rule] = {
    **_both_ways(_equals_only_item, "list", _COMMON_TYPES),
    **_both_ways(_equals_only_item, "set", "value quantity equation ratio text tuple"),
    **_both_ways(_equation_equals_value, "equation", _EQUATION_VALUES),
    **_both_ways(_members_equal, "relation", "set list tuple region"),
    **_both_ways(_is_all_reals, "relation", "value"),
    **_both_ways(_regions_equal, "region", "tuple set list value"),
    **_both_ways(_restricted_equal, "where", f"{_COMMON_TYPES} list set compound cases clock"),
    **_both_ways(ratio_equals_value, "ratio", "value"),
    **_both_ways(_clock_equals_ratio, "clock", "ratio"),
    **_both_ways(equal_without_unit, "quantity", "value"),
    **_both_ways(compounds_equal, "compound", "quantity"),
    **_both_ways(_list_equals_tuple, "list", "tuple"),
    **_both_ways(_vectors_equal, "tuple", "matrix"),
    **_both_ways(_point_equals_tuple, "tuple", "value"),
    **_both_ways(_residue_equals_value, "congruence", "value"),
    **_both_ways(_lists_equal, "list", "set"),
    ("value", "value"): scalar_equal,
    ("quantity", "quantity"): quantities_equal,
    ("compound", "compound"): compounds_equal,
    ("ratio", "ratio"): ratios_equal,
    ("clock", "clock"): _identical,
    ("text", "text"): _identical,
    ("equation", "equation"): _equations_equal,
    ("relation", "relation"): _relations_equal,
    ("list", "list"): _lists_equal,
    ("set", "set"): _equal_in_any_order,
    ("tuple", "tuple"): _equal_in_order,
    ("region", "region"): _regions_equal,
    ("matrix", "matrix"): _matrices_equal,
    ("cases", "cases"): _piecewise_equal,
    ("congruence", "congruence"): _congruences_equal,
    ("where", "where"): _restricted_equal,
}
