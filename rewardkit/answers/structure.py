r"""Whether two trees state the same answer: their structure part by part, values by `scalar`.

Labels (`x =`, `f(x) =`) are taken off, `\pm` is written out, and lists are compared without order,
tuples and matrices with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rewardkit.answers.budget import PRECISE, spend
from rewardkit.answers.evaluate import POINTS, UndefinedError, numeric, points, precise
from rewardkit.answers.latex.tree import MINUS_ONE, Node, add, mul, neg, symbols, walk
from rewardkit.answers.matrices import folded
from rewardkit.answers.regions import region_equal
from rewardkit.answers.scalar import is_restatement, scalar_equal, value_equal

#: Most items of a list or set that are compared without order.
MAX_ITEMS: Final = 60

_REGIONS = frozenset({"interval", "union", "minus", "builder"})
_GROUPS = frozenset({"list", "set", "tuple", "matrix"})


def structure_equal(pred: Node, gold: Node) -> bool:
    """Whether two trees state the same answer. Neither may be what is left to solve."""
    pred, gold = _one_by_one(_members(pred)), _one_by_one(_members(gold))
    if _is_equation(gold) or _is_equation(pred):
        return _equations(pred, gold)
    return _same(pred, gold)


def _members(node: Node) -> Node:
    r"""`x \in S` is S."""
    value: Node = node[3] if node[:2] == ("rel", ("in",)) and len(node) == 4 else node
    return value


def _one_by_one(node: Node) -> Node:
    """`(x, y) = (2, 1)` is `x = 2, y = 1`."""
    if node[:2] != ("rel", ("=",)) or len(node) != 4 or len(node[2]) != len(node[3]):
        return node
    names, values = node[2], node[3]
    if names[0] != "tuple" or values[0] != "tuple" or any(n[0] != "sym" for n in names[1:]):
        return node
    pairs = zip(names[1:], values[1:], strict=True)
    return ("list", *(("rel", ("=",), name, value) for name, value in pairs))


def several(node: Node) -> bool:
    """Whether an answer states several values."""
    return node[0] in ("list", "union", "set") or any(part[0] == "pm" for part in walk(node))


def _same(pred: Node, gold: Node) -> bool:
    if pred[0] == gold[0] == "rel":
        if _other_variable(pred, gold):
            return False
        if _chains(pred, gold):
            return True
    if _is_region(pred) or _is_region(gold):
        verdict = region_equal(pred, gold)
        if verdict is not None:
            return verdict
    pred, gold = _written_out(_flat(folded(pred))), _written_out(_flat(folded(gold)))
    kinds = {pred[0], gold[0]}
    if kinds <= {"list", "set"} or (kinds == {"list", "tuple"}):
        ordered = "tuple" in kinds or _is_labelled(pred) != _is_labelled(gold)
        return _items(pred, gold, ordered=ordered)
    if not kinds & (_GROUPS | _REGIONS | {"rel"}):
        return scalar_equal(pred, gold)
    if len(kinds) == 1:
        return _alike(pred, gold)
    return _one_item(pred, gold) or _column(pred, gold)


def _other_variable(pred: Node, gold: Node) -> bool:
    """`x > 5` does not answer `y > 5`."""
    p, g = symbols(pred), symbols(gold)
    return len(p) == len(g) == 1 and p != g


def _flat(node: Node) -> Node:
    """`21, 16 or 11`: an `or` between values that are no sets makes a list."""
    if node[0] == "union":
        return _flat(("list", *node[1:]))
    if node[0] != "list" or not any(part[0] in ("union", "list") for part in node[1:]):
        return node
    parts = [part[1:] if part[0] in ("union", "list") else (part,) for part in node[1:]]
    return ("list", *(item for part in parts for item in part))


def _is_region(node: Node) -> bool:
    if node == ("sym", "R"):
        return True
    return node[0] in _REGIONS or (node[0] == "rel" and node[1] != ("=",) and "~" not in node[1])


def _alike(pred: Node, gold: Node) -> bool:
    """Two trees of one kind, part by part."""
    if pred[0] == "rel":
        return _chains(pred, gold)
    if pred[0] == "interval" and pred[3:] != gold[3:]:
        return False
    if pred[0] == "matrix":
        return len(pred) == len(gold) and all(map(_rows, pred[1:], gold[1:]))
    return _items(pred, gold, ordered=pred[0] not in ("union", "set"))


def _rows(pred: Node, gold: Node) -> bool:
    return _items(pred, gold, ordered=True)


def _items(pred: Node, gold: Node, *, ordered: bool) -> bool:
    p = [part for part in pred[1:] if isinstance(part, tuple)]
    g = [part for part in gold[1:] if isinstance(part, tuple)]
    if len(p) != len(g):
        return False
    return all(map(part_equal, p, g)) if ordered else _matched(p, g)


def _is_labelled(node: Node) -> bool:
    """Whether every item has its own variable: `x = 1, y = 2`, which `2, 1` is not."""
    labels = [
        part[2]
        for part in node[1:]
        if _is_equation(part) and part[2][0] in ("sym", "fn") and _is_letter(part[2][1])
    ]
    return 1 < len(node[1:]) == len(set(labels))


def _is_letter(name: str) -> bool:
    return len(name.partition("_")[0]) == 1


def _matched(pred: list[Node], gold: list[Node]) -> bool:
    """Whether every item has its own equal item on the other side."""
    if len(gold) > MAX_ITEMS:
        return pred == gold
    left = list(gold)
    rest = [item for item in pred if not _removed(item, left)]
    for item in rest:
        found = next((other for other in left if part_equal(item, other)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _removed(item: Node, items: list[Node]) -> bool:
    """Whether an item was there as it stands, and is taken out."""
    if item not in items:
        return False
    items.remove(item)
    return True


def part_equal(pred: Node, gold: Node) -> bool:
    """Whether two items of a list are the same; each may have its own label."""
    spend(pred, gold, times=3)
    return structure_equal(pred, gold)


def _one_item(pred: Node, gold: Node) -> bool:
    """A set or list of one item is that item only where the other side is no group."""
    for group, other in ((pred, gold), (gold, pred)):
        if group[0] in ("list", "set") and len(group) == 2 and other[0] not in _GROUPS:
            return part_equal(group[1], other) if group is pred else part_equal(other, group[1])
    return False


def _column(pred: Node, gold: Node) -> bool:
    """A vector may be written as a tuple, a row or a column."""
    p, g = _vector(pred), _vector(gold)
    return p is not None and g is not None and len(p) == len(g) and all(map(part_equal, p, g))


def _vector(node: Node) -> tuple[Node, ...] | None:
    if node[0] == "tuple":
        return node[1:]
    if node[0] == "matrix" and len(node) == 2:
        return tuple(node[1][1:])
    if node[0] == "matrix" and all(len(row) == 2 for row in node[1:]):
        return tuple(row[1] for row in node[1:])
    return None


def _written_out(node: Node) -> Node:
    r"""`\pm` as two values, inside lists and sets too; one value stays as it is."""
    if node[0] in ("list", "set"):
        items = [each for part in node[1:] for each in _signs(part)]
        return (node[0], *items)
    both = _signs(node)
    return ("list", *both) if len(both) > 1 else both[0]


def _signs(node: Node) -> list[Node]:
    if not any(part[0] == "pm" for part in walk(node)):
        return [node]
    plus, minus = _with_sign(node, negative=False), _with_sign(node, negative=True)
    return [plus, minus] if plus != minus else [plus]


def _with_sign(node: Node, *, negative: bool) -> Node:
    if node[0] == "pm":
        inside = _with_sign(node[1], negative=negative)
        return neg(inside) if negative else inside
    return tuple(
        _with_sign(part, negative=negative)
        if isinstance(part, tuple) and part and isinstance(part[0], str) and part[0].isalpha()
        else part
        for part in node
    )


# --- relations


def _is_equation(node: Node) -> bool:
    return node[0] == "rel" and set(node[1]) <= {"=", "~"}


def _equations(pred: Node, gold: Node) -> bool:
    """Equations: a solved one is its value, others are equal up to a factor."""
    p, g = _solved(pred), _solved(gold)
    if p is not None and g is not None:
        if _is_equation(pred) and _is_equation(gold) and _other_name(pred, gold):
            return _proportional(pred, gold)
        return _same(*_renamed(pred, p, gold, g))
    if p is None and g is None:
        return _is_equation(pred) and _is_equation(gold) and _proportional(pred, gold)
    curve = gold if p is None else pred
    return (
        _is_equation(pred)
        and _is_equation(gold)
        and len(symbols(curve)) > 1
        and _proportional(pred, gold)
    )


def _solved(node: Node) -> Node | None:
    """The value of `x = value`, of `a = b = value` with equal sides, or of no equation at all."""
    if not _is_equation(node):
        return node
    sides = list(node[2:])
    while len(sides) > 1 + _is_label(sides[0], sides[1:]) and node[1][len(sides) - 2] == "~":
        sides.pop()  # a rounded value behind an exact one says nothing more
    first, last = _is_label(sides[0], sides[1:]), _is_label(sides[-1], sides[:-1])
    if len(sides) == 2 and last and not first:
        sides.reverse()
    while len(sides) > 1 and _is_label(sides[0], sides[1:]):
        sides = sides[1:]
    if len(sides) == 1:
        only: Node = sides[0]
        return only
    known = [side for side in sides if _has_value(side)]
    if symbols(sides[-1]) or len(known) < 1 or known[-1] is not sides[-1]:
        return None
    worked_out = all(value_equal(_bare(side), _bare(sides[-1])) for side in known[:-1])
    value: Node = sides[-1]
    return value if worked_out and not any(map(_is_open, sides)) else None


def _bare(side: Node) -> Node:
    """A value without its unit."""
    value: Node = side[1] if side[0] in ("unit", "percent") else side
    return value


def _has_value(side: Node) -> bool:
    spend(side)
    try:
        numeric(_bare(side), {})
    except (UndefinedError, KeyError):
        return False
    return True


def _is_open(side: Node) -> bool:
    """Whether a side has names that are no function's: what is left of a problem to solve."""
    return any(part[0] == "sym" for part in walk(side))


def _is_label(side: Node, others: list[Node]) -> bool:
    """A name, `f(x)` or a tuple of names, which does not occur in the value."""
    if side[0] == "sym":
        return all(side[1] not in symbols(other) for other in others)
    if side[0] == "fn":
        return len(side[1].rstrip("'")) == 1 and side not in [p for o in others for p in walk(o)]
    return side[0] == "tuple" and all(_is_label(part, others) for part in side[1:])


def _label(node: Node) -> Node:
    first: Node = node[2]
    second: Node = node[3]
    return first if first[0] in ("sym", "fn", "tuple") else second


def _other_name(pred: Node, gold: Node) -> bool:
    """`y = 3` does not answer `x = 3`; a function may be given with another argument."""
    p, g = _label(pred), _label(gold)
    if p[0] == g[0] == "fn":
        same = len(p) == len(g) and all(map(part_equal, p[2:], g[2:]))
        return p[1] != g[1] or not (same or _are_arguments(p, g))
    if p[0] == g[0] == "sym":
        letters = {_is_letter(name[1]) for name in (p, g)}
        return p != g and len(letters) == 1  # a word may stand for any name
    return p[0] == g[0] == "tuple" and p != g


def _renamed(pred: Node, p: Node, gold: Node, g: Node) -> tuple[Node, Node]:
    """`f(m) = 2m` is `f(n) = 2n`: the argument's name is the definition's own."""
    if not (_is_equation(pred) and _is_equation(gold)):
        return p, g
    ours, theirs = _label(pred), _label(gold)
    if ours[0] == theirs[0] == "fn" and _are_arguments(ours, theirs):
        return _substitute(p, dict(zip(ours[2:], theirs[2:], strict=True))), g
    return p, g


def _are_arguments(ours: Node, theirs: Node) -> bool:
    """Whether two functions have as many arguments, all of them different names."""
    names = (
        {part for part in ours[2:] if part[0] == "sym"},
        {part for part in theirs[2:] if part[0] == "sym"},
    )
    return len(ours) == len(theirs) == len(names[0]) + 2 == len(names[1]) + 2


def _substitute(node: Node, others: Mapping[Node, Node]) -> Node:
    if node in others:
        return others[node]
    return tuple(_substitute(p, others) if isinstance(p, tuple) else p for p in node)


def _proportional(pred: Node, gold: Node) -> bool:
    """Whether two equations are the same up to a constant factor that is not zero."""
    if len(pred) != 4 or len(gold) != 4:
        return False
    p = add(pred[2], mul(MINUS_ONE, pred[3]))
    g = add(gold[2], mul(MINUS_ONE, gold[3]))
    if not symbols(p) or symbols(p) != symbols(g):
        return False
    spend(p, g, times=POINTS * PRECISE)
    factors = []
    for point in points(frozenset(symbols(p))):
        try:
            factors.append(precise(p, point) / precise(g, point))
        except (UndefinedError, ZeroDivisionError):
            continue
    if len(factors) < 3 or not factors[0]:
        return False
    return all(abs(f - factors[0]) <= 1e-25 * abs(factors[0]) for f in factors[1:])


def _chains(pred: Node, gold: Node) -> bool:
    """`a < b <= c`: the same operators between equal sides, or all of it turned round."""
    turned = ("rel", tuple(_TURNED.get(o, o) for o in reversed(pred[1])), *reversed(pred[2:]))
    return any(
        p[1] == gold[1] and len(p) == len(gold) and all(map(_side, p[2:], gold[2:]))
        for p in (pred, turned)
    )


_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _side(pred: Node, gold: Node) -> bool:
    return not is_restatement(pred, gold) and _same(pred, gold)
