r"""The policy: whether two values are the same answer, as a function of their two types.

`_RULES` has a rule for every pair of types that can be equal; a pair that is not there is
different. `\pm` is written out first, and a clause that says where an answer holds is compared
apart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Final

from rewardkit.answers.budget import spend
from rewardkit.answers.evaluate import exact, fingerprint, may_match
from rewardkit.answers.forms import (
    are_indexed,
    as_ratio,
    as_vector,
    enumerated,
    labels,
    named_by_value,
    one_by_one,
    region_of,
    residues,
    shared_operator,
    unnamed_roots,
    vector,
    written_out,
)
from rewardkit.answers.matrices import folded
from rewardkit.answers.measures import compounds, quantities, ratio_and_value, ratios, unit_left_out
from rewardkit.answers.policy import Policy
from rewardkit.answers.reading.names import FLIPPED
from rewardkit.answers.reading.tree import Node, symbols, walk
from rewardkit.answers.relations import (
    is_equation,
    proportional,
    renamed,
    same_inequality,
    same_label,
    solved,
)
from rewardkit.answers.scalar import scalar_equal

#: Most items of a list or set that are compared without order.
MAX_ITEMS: Final = 60

#: The type of a node by its kind; any other kind is a value.
_TYPES: Mapping[str, str] = {
    **{kind: kind for kind in ("quantity", "compound", "ratio", "clock", "tuple", "set", "matrix")},
    **{kind: kind for kind in ("cases", "congruence", "where", "text")},
    **dict.fromkeys(("list", "and", "or"), "list"),
    **dict.fromkeys(("interval", "union", "meet", "minus", "builder"), "region"),
}

Rule = Callable[[Node, Node, Policy], bool]


def type_of(node: Node) -> str:
    """The type of a value: `value`, `quantity`, `equation`, `relation`, `list`, `region`, ..."""
    if node[0] == "rel":
        return "equation" if is_equation(node) else "relation"
    return _TYPES.get(node[0], "value")


def same(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two values are the same answer."""
    pred, gold = written_out(folded(pred)), written_out(folded(gold))
    pred, gold = (as_vector(enumerated(shared_operator(one_by_one(node)))) for node in (pred, gold))
    rule = _RULES.get((type_of(gold), type_of(pred)))
    return rule is not None and rule(pred, gold, policy)


def part_same(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether two items of a group are the same."""
    spend(pred, gold, times=3)
    if (pred[0] == "set") != (gold[0] == "set"):
        return False  # {1} is not a member like 1
    return same(pred, gold, policy)


def several(node: Node) -> bool:
    """Whether an answer states several values."""
    return node[0] in ("list", "and", "or", "set") or any(part[0] == "pm" for part in walk(node))


# --- single values


def _clock_and_ratio(pred: Node, gold: Node, policy: Policy) -> bool:
    """What looks like a time is a ratio where the other side can only be one."""
    p, g = (as_ratio(node) if node[0] == "clock" else node for node in (pred, gold))
    return p is not None and g is not None and same(p, g, policy)


def _identical(pred: Node, gold: Node, _: Policy) -> bool:
    return pred == gold


def _point(pred: Node, gold: Node, policy: Policy) -> bool:
    """`M(0, -2)` is the point `(0, -2)`."""
    if ("sym", "R") in (pred, gold):
        return bool(region_of(pred, gold))
    point, other = (pred, gold) if gold[0] == "tuple" else (gold, pred)
    if point[0] != "fn" or not point[1][:1].isupper() or len(point) < 4:
        return False
    items: Node = ("tuple", *point[2:])
    return _ordered(items, other, policy)


def _ordered(pred: Node, gold: Node, policy: Policy) -> bool:
    return len(pred) == len(gold) and all(map(part_same, pred[1:], gold[1:], repeat(policy)))


def _unordered(pred: Node, gold: Node, policy: Policy) -> bool:
    """Whether every item has its own equal item on the other side."""
    if len(pred) != len(gold):
        return False
    if len(gold) - 1 > MAX_ITEMS:
        return pred[1:] == gold[1:]
    left = list(gold[1:])
    rest = [item for item in pred[1:] if not _removed(item, left)]
    marks = {id(item): fingerprint(item) for item in (*rest, *left)}
    for item in rest:
        likely = [other for other in left if may_match(marks[id(item)], marks[id(other)])]
        match = next((other for other in likely if part_same(item, other, policy)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _removed(item: Node, items: list[Node]) -> bool:
    """Whether an item was there as it stands, and is taken out."""
    if item not in items:
        return False
    items.remove(item)
    return True


def _lists(pred: Node, gold: Node, policy: Policy) -> bool:
    """Without order; with it where one side names its items and the other does not."""
    roots = unnamed_roots(pred), unnamed_roots(gold)
    if roots[0] is not pred and roots[1] is not gold and None in (labels(pred), labels(gold)):
        return _unordered(*roots, policy)
    of_choice = (pred[0] == "or") != (gold[0] == "or")
    if of_choice and not (_are_plain(pred) and _are_plain(gold)):
        return False
    region = _regions_if_conditions(pred, gold)
    if region is not None:
        return region
    ours, theirs = labels(pred), labels(gold)
    if (ours is None) != (theirs is None):
        return _ordered(pred, gold, policy) or (
            are_indexed(ours or theirs or []) and _unordered(pred, gold, policy)
        )
    return _unordered(pred, gold, policy)


def _are_plain(node: Node) -> bool:
    """Whether `or` and `and` say the same of a list: of values, or of values of one name."""
    if any(type_of(part) == "value" and symbols(part) for part in node[1:]):
        return False
    names = {repr(part[2]) for part in node[1:] if part[0] == "rel"}
    kinds = {type_of(part) for part in node[1:]}
    return kinds <= {"value", "equation", "tuple", "region"} and len(names) < 2


def _list_and_tuple(pred: Node, gold: Node, policy: Policy) -> bool:
    by_conditions = _has_conditions(pred, gold) and region_of(pred, gold)
    return bool(by_conditions) or _ordered(pred, gold, policy)


def _only_item(pred: Node, gold: Node, policy: Policy) -> bool:
    """A set or list of one item is that item; a list of boxes that all say one thing too."""
    for group, other in ((pred, gold), (gold, pred)):
        if group[0] in ("list", "set", "and", "or") and len(group) == 2:
            ours, theirs = (group[1], other) if group is pred else (other, group[1])
            return part_same(ours, theirs, policy)
    return False


def _matrices(pred: Node, gold: Node, policy: Policy) -> bool:
    return len(pred) == len(gold) and all(map(_ordered, pred[1:], gold[1:], repeat(policy)))


def _vectors(pred: Node, gold: Node, policy: Policy) -> bool:
    """A vector may be written as a tuple, a row or a column."""
    p, g = vector(pred), vector(gold)
    return p is not None and g is not None and _ordered(("tuple", *p), ("tuple", *g), policy)


def _piecewise(pred: Node, gold: Node, policy: Policy) -> bool:
    """Branch by branch, in any order; `otherwise` is the one branch that is left on both sides."""
    ours, theirs = ([b for b in n[1:] if b[2] != _REST] for n in (pred, gold))
    if len(pred) != len(gold) or min(len(ours), len(theirs)) < len(gold) - 2:
        return False
    left = list(gold[1:])
    rest = []
    for branch in pred[1:]:
        alike = [b for b in left if b[2] == branch[2] or part_same(branch[2], b[2], policy)]
        if not alike:
            rest.append(branch)
        elif part_same(branch[1], alike[0][1], policy):
            left.remove(alike[0])
        else:
            return False
    if not rest:
        return True
    one = len(rest) == len(left) == 1 and _REST in (rest[0][2], left[0][2])
    return one and part_same(rest[0][1], left[0][1], policy)


_REST = ("sym", "otherwise")


def _congruences(pred: Node, gold: Node, policy: Policy) -> bool:
    """The same modulus, the same name, and the same residues up to it."""
    names = [node[1][2] for node in (pred, gold) if node[1][0] == "rel"]
    if len(names) == 2 and names[0] != names[1]:
        return False
    modulus = exact(gold[2])
    if modulus is None or not modulus or exact(pred[2]) != modulus:
        return part_same(pred[1], gold[1], policy) and part_same(pred[2], gold[2], policy)
    p, g = residues(pred[1], modulus, policy), residues(gold[1], modulus, policy)
    return p is not None and p == g


def _residue_and_value(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`3 \pmod 7` is 3 where no name stands before it."""
    congruence, other = (gold, pred) if gold[0] == "congruence" else (pred, gold)
    residue, modulus = exact(congruence[1]), exact(congruence[2])
    if residue is None or modulus is None or not 0 <= residue < modulus:
        return False
    return same(other, congruence[1], policy)


# --- relations and regions


def _regions_if_conditions(pred: Node, gold: Node) -> bool | None:
    """The same for two lists of inequalities; None where they are none."""
    return region_of(pred, gold) if _has_conditions(pred, gold) else None


def _has_conditions(pred: Node, gold: Node) -> bool:
    return any(type_of(part) == "relation" for part in (*pred[1:], *gold[1:]))


def _regions(pred: Node, gold: Node, policy: Policy) -> bool:
    verdict = region_of(pred, gold)
    return _by_parts(pred, gold, policy) if verdict is None else verdict


def _by_parts(pred: Node, gold: Node, policy: Policy) -> bool:
    """Two regions of one kind that are no sets of reals, part by part."""
    if pred[0] != gold[0] or len(pred) != len(gold):
        return False
    if pred[0] == "interval":
        return pred[3:] == gold[3:] and _ordered(pred[:3], gold[:3], policy)
    if pred[0] in ("union", "meet"):
        return _unordered(pred, gold, policy)
    return pred[0] in ("minus", "builder") and _ordered(pred, gold, policy)


def _members(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`x \in S` is S, of numbers or of anything."""
    p, g = (n[3] if n[0] == "rel" and n[1] == "in" and len(n) == 4 else n for n in (pred, gold))
    if (p, g) != (pred, gold):
        return same(p, g, policy)
    return bool(region_of(pred, named_by_value(gold)))


def _all_reals(pred: Node, gold: Node, policy: Policy) -> bool:
    r"""`x \in \mathbb{R}` is the set of all reals; no other name is a set."""
    return ("sym", "R") in (pred, gold) and _members(pred, gold, policy)


def _relations(pred: Node, gold: Node, policy: Policy) -> bool:
    """`a < b <= c`: the same set, or the same operators between equal sides, or turned round."""
    if gold[1] == pred[1] == "in":
        return same(pred[2], gold[2], policy) and same(pred[3], gold[3], policy)
    if (verdict := region_of(pred, gold)) is not None:
        return verdict
    if "in" in (pred[1], gold[1]):
        return _members(pred, gold, policy)
    if len(symbols(gold)) > 1 and same_inequality(pred, gold):
        return True
    operators = pred[1].split()
    forms = [pred]
    if all(operator in FLIPPED for operator in operators):
        forms.append(
            ("rel", " ".join(FLIPPED[o] for o in reversed(operators)), *reversed(pred[2:]))
        )
    return any(
        p[1] == gold[1] and _ordered(("tuple", *p[2:]), ("tuple", *gold[2:]), policy) for p in forms
    )


def _equations(pred: Node, gold: Node, policy: Policy) -> bool:
    """Solved equations are their values under labels that agree; others are equal up to a factor."""
    p, g = solved(pred, policy), solved(gold, policy)
    if p is not None and g is not None:
        if same_label(p, g) and any(
            same(ours, theirs, policy) for ours in renamed(p, g) for theirs in g.values
        ):
            return True
        return len(symbols(gold)) > 1 and proportional(pred, gold)
    if p is None and g is None:
        return proportional(pred, gold) or _chained(pred, gold, policy)
    return len(symbols(pred if p is None else gold)) > 1 and proportional(pred, gold)


def _chained(pred: Node, gold: Node, policy: Policy) -> bool:
    """Equations with a name for a whole side, as `a = b = c`, side by side."""
    return (
        len(pred) == len(gold) > 4
        and pred[1] == gold[1]
        and _ordered(("tuple", *pred[2:]), ("tuple", *gold[2:]), policy)
    )


def _value_of_equation(pred: Node, gold: Node, policy: Policy) -> bool:
    """`x = 5` is 5, and so is 5 for `x = 5`; what is still to be solved is neither."""
    node, other = (pred, gold) if is_equation(pred) else (gold, pred)
    answer = solved(node, policy)
    if answer is None:
        return False
    if node is pred:
        return any(same(value, other, policy) for value in answer.values)
    return any(same(other, value, policy) for value in answer.values)


def _where(pred: Node, gold: Node, policy: Policy) -> bool:
    """Clauses that restrict must be the same; one that only says what a name is may be missing.

    What a region's own variable is restricts it: the whole numbers of an interval are another set.
    """
    p, g = (n if n[0] == "where" else ("where", n, "", False, "", "") for n in (pred, gold))
    if p[2] != g[2] and (p[3] or g[3] or (p[5] and g[5] and p[5] != g[5])):
        return False
    of_reals = any(type_of(n[1]) in ("relation", "region") for n in (p, g))
    if of_reals and not {p[5], g[5]} <= {"", "R"} and p[5] != g[5]:
        return False
    return same(p[1], g[1], policy)


def _pairs(rule: Rule, *types: str) -> dict[tuple[str, str], Rule]:
    """A rule for the pairs of the first type with each of the others, either way round."""
    first, *others = types
    return {pair: rule for other in others for pair in ((first, other), (other, first))}


_GROUPS = tuple("value quantity equation ratio region tuple matrix text relation".split())

#: (type of the gold, type of the answer): whether they are the same.
_RULES: Mapping[tuple[str, str], Rule] = {
    **_pairs(_only_item, "list", *_GROUPS),
    **_pairs(_only_item, "set", "value", "quantity", "equation", "ratio", "text", "tuple"),
    **_pairs(
        _value_of_equation, "equation", "value", "quantity", "compound", "ratio", "tuple", "set"
    ),
    **_pairs(_value_of_equation, "equation", "matrix", "list", "region", "cases", "text", "clock"),
    **_pairs(_members, "relation", "set", "list", "tuple", "region"),
    **_pairs(_all_reals, "relation", "value"),
    **_pairs(_regions, "region", "tuple", "set", "list", "value"),
    **_pairs(_where, "where", *_GROUPS, "list", "set", "compound", "cases", "clock"),
    **_pairs(ratio_and_value, "ratio", "value"),
    **_pairs(_clock_and_ratio, "clock", "ratio"),
    **_pairs(unit_left_out, "quantity", "value"),
    **_pairs(compounds, "compound", "quantity"),
    **_pairs(_list_and_tuple, "list", "tuple"),
    **_pairs(_vectors, "tuple", "matrix"),
    **_pairs(_point, "tuple", "value"),
    **_pairs(_residue_and_value, "congruence", "value"),
    **_pairs(_lists, "list", "set"),
    ("value", "value"): scalar_equal,
    ("quantity", "quantity"): quantities,
    ("compound", "compound"): compounds,
    ("ratio", "ratio"): ratios,
    ("clock", "clock"): _identical,
    ("text", "text"): _identical,
    ("equation", "equation"): _equations,
    ("relation", "relation"): _relations,
    ("list", "list"): _lists,
    ("set", "set"): _unordered,
    ("tuple", "tuple"): _ordered,
    ("region", "region"): _regions,
    ("matrix", "matrix"): _matrices,
    ("cases", "cases"): _piecewise,
    ("congruence", "congruence"): _congruences,
    ("where", "where"): _where,
}
