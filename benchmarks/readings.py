"""Read answers as values, items, intervals, equations and matrices, where that is certain.

Expressions are read by `plain_reader`.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from plain_reader import Value, differ, is_constant, value

#: Units by dimension: a change of the unit must not be a conversion.
UNITS = {
    "length": "cm mm km m in inches feet ft miles meters metres centimeters kilometers 米 厘米",
    "mass": "kg mg g grams kilograms pounds 千克",
    "time": "s seconds min minutes h hr hours days weeks years 小时",
    "money": "dollars cents euros yuan 元",
    "speed": "m/s km/h mph",
    "other": "J kJ N Pa kPa W K mol Hz V eV L mL liters people students apples ways",
}
DIMENSIONS = {unit: dimension for dimension, units in UNITS.items() for unit in units.split()}
_UNIT = "|".join(map(re.escape, sorted(DIMENSIONS, key=len, reverse=True)))
_LONG_UNIT = "|".join(unit for unit in _UNIT.split("|") if len(unit) > 1)  # 5 m may be a product
_POWER = r"(?:\^(?:\{[23]\}|[23]))?"
_QUANTITY = re.compile(
    r"(?P<number>[^\s].*?)(?:\\[,; ]|~|\s)*"
    rf"(?:\\(?:text|mathrm)\{{(?:\s|~|\\[ ,])*(?P<set>{_UNIT})\s*\}}|(?<=\s)(?P<plain>{_LONG_UNIT}))"
    rf"(?P<power>{_POWER})"
)
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)")
_GROUPED = re.compile(r"-?\d{1,3}(?:(?:,|\{,\}|\\,|\\!)\d{3})+(?:\.\d+)?")
_FACTOR = re.compile(r"[-+]?\s*(?:\d+\s*)?\\[dt]?frac|[-+]?\d|[-+]?\\sqrt")
RELATION = re.compile(
    r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne|in|equiv|approx|to|mid)(?![A-Za-z])|[<>=≤≥≠∈≡|:]"
)
_INEQUALITIES = {"\\le": "≤", "\\leq": "≤", "≤": "≤", "\\leqslant": "≤", "<": "<", "\\lt": "<"}
_INEQUALITIES |= {"\\ge": "≥", "\\geq": "≥", "≥": "≥", "\\geqslant": "≥", ">": ">", "\\gt": ">"}
LATEX = {"<": "<", ">": ">", "≤": r"\le", "≥": r"\ge"}
MIRROR = str.maketrans("<>≤≥", "><≥≤")
_NAME = re.compile(r"(?:[A-Za-z]|\\(?:alpha|beta|theta|lambda|mu|phi|omega))(?:_(?:\w|\{\w+\}))?")
_FUNCTION = re.compile(r"[fghFGHPpTu]\s*\([a-z](?:,\s*[a-z])*\)")
_MATRIX = re.compile(
    r"\\begin\{(?P<kind>[pbB]?matrix)\}(?P<body>(?:(?!\\begin).)*)\\end\{(?P=kind)\}", re.DOTALL
)
_FAMILY = re.compile(
    r"(?P<body>.+?),?(?:\\[,; ]|\\quad|~|\s)*(?:\\text\{\s*(?:for|where)\s*\}|\(|where)?\s*"
    r"(?P<letter>[knm])\s*(?:\\in|∈)\s*(?:\\mathbb\{?\s*Z\s*\}?|\\Z|Z|ℤ)\)?"
)
_BRACKETS = {"(": ")", "[": "]", "\\{": "\\}", "\\langle": "\\rangle"}
_OPEN = re.compile(
    r"\\begin\{[a-zB]+\}|\\langle|\\lfloor|\\lceil|\\\{|[(\[{]|"
    r"(?P<close>\\end\{[a-zB]+\}|\\rangle|\\rfloor|\\rceil|\\\}|[)\]}])"
)


class Reading(NamedTuple):
    """The kind of an answer, and its parts."""

    kind: str
    parts: tuple[Any, ...]


def bare(text: str) -> str:
    r"""Remove the dollars around a text, `\left`, `\right`, and spaces and a full stop at its ends."""
    text = text.strip()
    if len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1]:
        text = text[1:-1]
    if not re.search(r"\\(?:left|right)\s*\.", text):
        text = re.sub(r"\\(?:left|right|displaystyle)(?![A-Za-z])\s*", "", text).strip()
    return text[:-1].strip() if re.search(r"(?<![\\.m])\.$", text) else text


def at_depth_0(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the matches of a pattern outside all brackets."""
    inside, depth, start = [], 0, 0
    for bracket in _OPEN.finditer(text):
        if bracket["close"]:
            depth -= 1
            if depth == 0:
                inside.append((start, bracket.end()))
        else:
            start = bracket.start() if depth == 0 else start
            depth += 1
    return [m for m in pattern.finditer(text) if not any(a <= m.start() < b for a, b in inside)]


def split(text: str, pattern: str) -> list[str]:
    """Split a text at the matches of a pattern outside brackets."""
    cuts = at_depth_0(text, re.compile(pattern))
    starts, ends = [0, *(m.end() for m in cuts)], [*(m.start() for m in cuts), len(text)]
    return [text[a:b].strip() for a, b in zip(starts, ends, strict=True)]


def bracketed(text: str) -> tuple[str, list[str], str] | None:
    """Return (opening, items, closing) if a text is one pair of brackets around items."""
    for opening, own in _BRACKETS.items():
        for closing in _BRACKETS.values():
            mixed = own != closing
            if mixed and (opening not in "([" or closing not in ")]"):
                continue
            if text.startswith(opening) and text.endswith(closing):
                inside = text[len(opening) : -len(closing)]
                if not _is_balanced(inside):
                    return None
                return opening, split(inside, ","), closing
    return None


def _is_balanced(text: str) -> bool:
    depth = 0
    for bracket in _OPEN.finditer(text):
        depth += -1 if bracket["close"] else 1
        if depth < 0:
            return False
    return depth == 0


def plain_number(text: str) -> Fraction | None:
    """Read an integer or a decimal, with thousands separators where they cannot be anything else."""
    if _NUMBER.fullmatch(text):
        return Fraction(text)
    if _GROUPED.fullmatch(text):
        return Fraction(re.sub(r",|\{,\}|\\,|\\!", "", text))
    return None


def quantity(text: str) -> tuple[str, str, str] | None:
    """Return (number, unit, power of the unit) of a number with a unit."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        return None
    number = match["number"].strip()
    known = plain_number(number) is not None or (_FACTOR.match(number) and value(number))
    return (number, match["set"] or match["plain"], match["power"]) if known else None


def is_infinite(text: str) -> bool:
    return text.strip().lstrip("+-−") in ("\\infty", "∞")


def _end(text: str) -> Value | None:
    if is_infinite(text):
        return (complex(math.copysign(1e300, -1 if text.strip()[0] in "-−" else 1)),) * 3
    return value(text)


def matrix(text: str) -> tuple[str, list[list[str]]] | None:
    """Return (environment, rows of cells) of a matrix."""
    if not (match := _MATRIX.fullmatch(text)):
        return None
    rows = [row.split("&") for row in re.split(r"\\\\(?:\[\w+\])?", match["body"]) if row.strip()]
    return match["kind"], [[cell.strip() for cell in row] for row in rows]


def family(text: str) -> tuple[str, str] | None:
    """Return (expression, integer) of a family of solutions: `x = 2\\pi k, k \\in \\mathbb{Z}`."""
    match = _FAMILY.fullmatch(text)
    return (match["body"].strip(), match["letter"]) if match else None


@lru_cache(maxsize=1 << 14)
def read(text: str) -> Reading | None:
    """Read an answer; None in case of doubt."""
    text = bare(text)
    if not text or len(text) > 400 or "$" in text:
        return None
    if (number := plain_number(text)) is not None:
        return Reading("value", (number,) * 3)
    for reader in (_matrix, _family, _relation, _union, _bracketed, _list, _quantity):
        if (reading := reader(text)) is not None:
            return reading if reading.parts else None
    known = value(text)
    return Reading("value", known) if known else None


#: The result of a reader whose shape matches while the content is in doubt.
_DOUBT = Reading("doubt", ())


def _all(kind: str, items: list[Any]) -> Reading:
    return _DOUBT if any(item is None for item in items) else Reading(kind, tuple(items))


def _matrix(text: str) -> Reading | None:
    if not (rows := matrix(text)):
        return None
    return _all("matrix", [_row([value(cell) for cell in row]) for row in rows[1]])


def _row(cells: list[Value | None]) -> tuple[Value | None, ...] | None:
    return None if None in cells else tuple(cells)


def _family(text: str) -> Reading | None:
    if not (parts := family(text)):
        return None
    body, letter = parts
    labels = at_depth_0(body, RELATION)
    if len(labels) == 1 and labels[0][0] == "=":
        body = body[labels[0].end() :]
    members = [value(body, letter, at) for at in (*range(41), *range(-40, 0))]
    return _all("family", members) if letter in body else None


def _relation(text: str) -> Reading | None:
    signs = at_depth_0(text, RELATION)
    if not signs or at_depth_0(text, re.compile(",|\\\\cup|\\\\text|;")):
        return None
    sides = split(text, RELATION.pattern)
    ops = [sign[0] for sign in signs]
    if ops == ["="]:
        return _equation(*sides)
    if all(op in _INEQUALITIES for op in ops) and len(ops) < 3:
        ops = [_INEQUALITIES[op] for op in ops]
        if ops[0] in ">≥":  # turned round, so that all signs point the same way
            sides, ops = sides[::-1], [op.translate(MIRROR) for op in ops[::-1]]
        return _all("inequality", ["".join(ops), *map(value, sides)])
    return _DOUBT


def _equation(left: str, right: str) -> Reading:
    if _FUNCTION.fullmatch(left):
        return _all("label", [left.replace(" ", ""), read(right)])
    name, one, two = _NAME.fullmatch(left), value(left), value(right)
    if name and (two is None or is_constant(two)):
        return _all("label", [left, read(right)])
    if one is None or two is None:
        return _DOUBT
    difference = tuple(x - y for x, y in zip(one, two, strict=True))
    return Reading("equation", difference)


def _interval(text: str) -> tuple[str, Value | None, Value | None, str] | None:
    parts = bracketed(text)
    if not parts or len(parts[1]) != 2 or parts[0] not in "([" or parts[2] not in ")]":
        return None
    return parts[0], _end(parts[1][0]), _end(parts[1][1]), parts[2]


def _union(text: str) -> Reading | None:
    """Read intervals that cannot be pairs: one has unequal brackets or an infinite end."""
    pieces = split(text, r"\\cup(?![A-Za-z])|∪")
    intervals = [_interval(piece) for piece in pieces]
    if None in intervals:
        return _DOUBT if len(pieces) > 1 else None
    shapes = [bracketed(piece) for piece in pieces]
    certain = len(pieces) > 1 or any(
        shape[0] + shape[2] in ("[)", "(]") or any(map(is_infinite, shape[1]))
        for shape in shapes
        if shape
    )
    if not certain:
        return None
    return _all("union", [None if i is None or None in i else i for i in intervals])


def _bracketed(text: str) -> Reading | None:
    parts = bracketed(text)
    if not parts or (len(parts[1]) < 2 and parts[0] != "\\{"):
        return None
    kind = {"(": "tuple", "\\langle": "tuple", "[": "bracket", "\\{": "set"}[parts[0]]
    if parts[0] + parts[2] in ("[)", "(]") or (kind == "set" and at_depth_0(text[2:], RELATION)):
        return _DOUBT
    return _all(kind, [read(item) for item in parts[1]])


def _list(text: str) -> Reading | None:
    items = split(text, r",|;|\\text\{\s*(?:and|or)\s*\}|、")
    if len(items) < 2:
        return None
    if re.search(r"\d,\d{3}(?!\d)", text):  # thousands, or two items
        return _DOUBT
    return _all("list", [read(item) for item in items])


def _quantity(text: str) -> Reading | None:
    if not (parts := quantity(text)):
        return None
    return _all("quantity", [read(parts[0]), parts[1] + re.sub(r"[{}]", "", parts[2])])


def surely_differ(a: Reading | None, b: Reading | None) -> bool:
    """Return whether two readings are certainly different answers; False in case of doubt."""
    if a is None or b is None:
        return False
    if a.kind != b.kind:
        if {a.kind, b.kind} == {"tuple", "value"}:
            return True
        if a.kind == "union" and b.kind in ("tuple", "bracket"):
            return _differs_as_interval(a, b)
        a, b = (r if r.kind in ("list", "set") else Reading("list", (r,)) for r in (a, b))
        return len(a.parts) != len(b.parts) and _sets_differ(a.parts, b.parts)
    return _DIFFERENCES[a.kind](a.parts, b.parts)


def _differs_as_interval(union: Reading, pair: Reading) -> bool:
    """Compare `(0, 1)` or `[0, 1]`, read as an interval, with a certain interval."""
    opening, closing = ("(", ")") if pair.kind == "tuple" else ("[", "]")
    if len(pair.parts) != 2 or any(item.kind != "value" for item in pair.parts):
        return False
    interval = opening, pair.parts[0].parts, pair.parts[1].parts, closing
    return _unions_differ(union.parts, (interval,))


def _labels_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if a[0] != b[0]:
        return "(" not in a[0]  # a function's argument has any name
    return surely_differ(a[1], b[1])


def _tuples_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) != len(b) or any(map(surely_differ, a, b))


def _sets_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Return whether an item of one set differs from all items of the other."""
    return any(
        all(surely_differ(item, other) for other in others)
        for items, others in ((a, b), (b, a))
        for item in items
    )


def _intervals_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return a[0] != b[0] or a[3] != b[3] or differ(a[1], b[1]) or differ(a[2], b[2])


def _unions_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Compare separate pieces; where pieces touch, one bracket less may be the same set."""
    for pieces in (a, b):
        ends = [end for piece in pieces for end in piece[1:3] if abs(complex(end[0])) < 1e299]
        if any(not differ(x, y) for n, x in enumerate(ends) for y in ends[:n]) and len(a) > 1:
            return False
        if any(piece[1][0].real >= piece[2][0].real for piece in pieces):
            return False
    return any(all(_intervals_differ(piece, other) for other in b) for piece in a) or any(
        all(_intervals_differ(piece, other) for other in a) for piece in b
    )


def _inequalities_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Compare inequalities with one name alone on a side; others would have to be solved."""
    places = [[n for n, side in enumerate(r[1:], 1) if not is_constant(side)] for r in (a, b)]
    if len(a) != len(b) or len(places[0]) != 1 or len(places[1]) != 1:
        return False
    (one,), (two,) = places
    if a[one] != b[two]:
        return False
    return one != two or a[0] != b[0] or any(map(differ, a[1:], b[1:]))


def _equations_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Return whether no constant factor turns one equation into the other."""
    crossed = [a[0] * b[i] for i in range(1, 3)], [b[0] * a[i] for i in range(1, 3)]
    return differ(*map(tuple, crossed))


def _matrices_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if [len(row) for row in a] != [len(row) for row in b]:
        return True
    return any(
        differ(x, y) for one, two in zip(a, b, strict=True) for x, y in zip(one, two, strict=True)
    )


def _families_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Return whether a member near zero of one family is not in the other."""
    return any(
        all(differ(one[at], each) for each in two) for one, two in ((a, b), (b, a)) for at in (0, 1)
    )


def _quantities_differ(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return a[1] == b[1] and surely_differ(a[0], b[0])


_DIFFERENCES = {
    "value": differ,
    "label": _labels_differ,
    "tuple": _tuples_differ,
    "bracket": _tuples_differ,
    "set": _sets_differ,
    "list": _sets_differ,
    "union": _unions_differ,
    "inequality": _inequalities_differ,
    "equation": _equations_differ,
    "matrix": _matrices_differ,
    "family": _families_differ,
    "quantity": _quantities_differ,
}
