r"""Trees of answers: one closed family of frozen values. A node is a tuple with its kind first.

| type | kinds, and their parts | example |
|---|---|---|
| number | `num`: a `Fraction`, and the digits after the point of a decimal, else None | `0.50` |
| expression | `sym` name; `const` (`pi`, `e`, `i`, `inf`); `add`, `mul` parts; `pow` base, exponent; `fn` name, arguments; `pm` value | `2\sqrt{x}`, `1 \pm i` |
| percent, angle | `percent`, `degree`: a value | `5\%`, `30^\circ` |
| quantity | `quantity`: a value, a `Unit` | `5\text{ cm}` |
| compound | `compound`: quantities | `5 feet 6 inches` |
| ratio | `ratio`, or `to` if it may be a range: parts | `2:3`, `2 to 3` |
| clock | `clock`: the text | `2:30 PM` |
| relation | `rel`: operators, with blanks between, then one more sides than operators | `1 < x \le 2` |
| list | `list`, `or`, `and`: items without brackets, by what joins them | `1, 2` |
| tuple, set | `tuple`, `set`: items | `(1, 2)` |
| region | `interval` low, high, whether each end is open; `union`, `meet`, `minus` parts; `builder` conditions | `(1, 2]` |
| matrix | `matrix`: `row`s of entries | |
| piecewise | `cases`: `branch`es of a value and its condition | |
| congruence | `congruence`: a value, a modulus | `3 \pmod 7` |
| numeral | `base`: digits, base | `1010_2` |
| restricted | `where`: a value, the folded clause, whether it restricts, names it binds | `2k, k \in Z` |
| words | `text`: the folded tokens, with blanks between | `Monday` |
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

Node: TypeAlias = tuple[Any, ...]

#: Most bits of a number that the parser computes.
MAX_BITS = 4096

INF: Node = ("const", "inf")
PI: Node = ("const", "pi")
ONE: Node = ("num", Fraction(1), None)
MINUS_ONE: Node = ("num", Fraction(-1), None)


def _bit_length(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


def num(value: int | Fraction, places: int | None = None) -> Node:
    """Return an exact number; `places` is the number of digits after the point of a decimal."""
    return ("num", Fraction(value), places)


def neg(node: Node) -> Node:
    """Return the negative of a node."""
    if node[0] == "num":
        return ("num", -node[1], node[2])
    if node[0] in ("quantity", "percent", "degree"):
        return (node[0], neg(node[1]), *node[2:])
    return mul(MINUS_ONE, node)


def mul(*factors: Node) -> Node:
    """Return a product without products among its factors."""
    flat: list[Node] = []
    for factor in factors:
        flat.extend(factor[1:] if factor[0] == "mul" else (factor,))
    return flat[0] if len(flat) == 1 else ("mul", *flat)


def add(*terms: Node) -> Node:
    """Return a sum without sums among its terms."""
    flat: list[Node] = []
    for term in terms:
        flat.extend(term[1:] if term[0] == "add" else (term,))
    return flat[0] if len(flat) == 1 else ("add", *flat)


def multiply(left: Node, right: Node) -> Node:
    r"""Return a product; `2.5 \times 10^{-3}` becomes one decimal."""
    scientific = (
        left[0] == "num"
        and right[0] == "pow"
        and right[1] == ("num", Fraction(10), None)
        and right[2][0] == "num"
    )
    small = scientific and right[2][1].denominator == 1 and abs(right[2][1]) <= 300
    if small and _bit_length(left[1]) <= MAX_BITS:
        shift = int(right[2][1])
        return num(left[1] * Fraction(10) ** shift, None if left[2] is None else left[2] - shift)
    return mul(left, right)


def divide(top: Node, bottom: Node) -> Node:
    """Return a quotient; a quotient of two numbers without a point becomes an exact number."""
    exact = bottom[0] == top[0] == "num" and top[2] is None and bottom[2] is None
    if exact and bottom[1] != 0 and _bit_length(top[1]) + _bit_length(bottom[1]) <= MAX_BITS:
        return ("num", top[1] / bottom[1], None)
    return mul(top, ("pow", bottom, MINUS_ONE))


def fn(name: str, *arguments: Node) -> Node:
    """Return the value of a function at arguments."""
    return ("fn", name, *arguments)


def is_node(part: object) -> bool:
    """Whether a part of a node is a node itself, and not a name, a number or a unit."""
    return isinstance(part, tuple) and isinstance(part[0], str)


def children(node: Node) -> Iterator[Node]:
    """Yield the child nodes of a node."""
    return filter(is_node, node[1:])


def map_children(function: Callable[[Node], Any], node: Node) -> Node:
    """Return a node with a function applied to its child nodes."""
    return tuple(function(part) if is_node(part) else part for part in node)


def subtrees(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it, in preorder."""
    yield node
    for child in children(node):
        yield from subtrees(child)


def symbols(node: Node) -> set[str]:
    """Return the names of the symbols of a tree."""
    return {part[1] for part in subtrees(node) if part[0] == "sym"}


def substitute(node: Node, others: dict[Node, Node]) -> Node:
    """Return a tree with nodes replaced, all at once."""
    if node in others:
        return others[node]
    return map_children(lambda part: substitute(part, others), node)
