r"""Whether an answer is worked out, and whether it only repeats a formula of the question.

An answer is worked out unless arithmetic on its numbers was left undone. Left undone are, where
the gold is a plain number: a sum of rational terms (`3+4`, `\sqrt{25}-\sqrt{4}`), a product or
quotient of rational factors (`23 \times 31`, `100!/98!`), arithmetic on complex numbers
(`\frac{5+14i}{2+3i}`), and what nobody has evaluated (a limit, a sum, a determinant, `\gcd`).
Worked out are one number, one fraction, one power, one root, one factorial or binomial coefficient
of plain numbers (`2^{10}`, `\frac{10}{4}`, `7!`, `\binom{10}{3}`), a number times a power of ten, and
a whole number with a proper fraction beside it (`1+\frac34`, `1-\frac{1}{2^{10}}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from rewardkit.answers.evaluate import exact
from rewardkit.answers.reading.names import NOT_EVALUATED, RELATIONS
from rewardkit.answers.reading.tokens import Token, UnreadableError, tokenize
from rewardkit.answers.reading.tree import MINUS_ONE, Node, symbols, walk
from rewardkit.answers.reading.typography import Folded, fold

#: Functions whose value is the answer, not the function.
UNEVALUATED = NOT_EVALUATED | {"det", "gcd", "lcm", "max", "min"}
#: Longest question, in characters, whose formulas are looked at: its end.
MAX_QUESTION = 20_000


def is_worked_out(node: Node) -> bool:
    """Whether no arithmetic on numbers is left to do in a tree."""
    return not any(_is_undone(part) for part in walk(node))


def leaves_work(pred: Node, gold: Node) -> bool:
    """Whether `pred` leaves to be worked out what `gold` states as a number."""
    gold = gold[1] if gold[0] in ("percent", "degree", "quantity") else gold
    return _is_plain_number(gold) and not is_worked_out(pred)


def _is_plain_number(node: Node) -> bool:
    """A rational, or a sum of a rational and a rational multiple of `i`."""
    if node[0] == "num":
        return True
    parts = node[1:] if node[0] == "add" else (node,)
    return all(
        all(f[0] == "num" or f == _I for f in (p[1:] if p[0] == "mul" else (p,))) for p in parts
    )


_I: Node = ("const", "i")


def _is_undone(node: Node) -> bool:
    kind = node[0]
    if kind == "fn":
        return node[1] in UNEVALUATED
    if kind == "add":
        return _is_undone_sum(node)
    if kind == "mul":
        return _is_undone_product(node)
    if kind == "pow":  # the power of a sum or of i, (1+i)^4
        of_i = node[1] == _I and node[2] != MINUS_ONE
        return of_i or (node[1][0] == "add" and not symbols(node))
    return False


def _is_undone_sum(node: Node) -> bool:
    values = [value for part in node[1:] if (value := exact(part)) is not None]
    imaginary = [part for part in node[1:] if _I in walk(part) and not symbols(part)]
    if len(imaginary) > 1:
        return True
    if len(values) < 2:
        return False
    whole = [value for value in values if value.denominator == 1]
    return not (
        len(values) == len(node) - 1 == 2 and len(whole) == 1 and abs(sum(values, -whole[0])) < 1
    )


def _is_undone_product(node: Node) -> bool:
    factors = [factor for factor in node[1:] if factor != MINUS_ONE]
    values = [factor for factor in factors if _is_rational(factor)]
    complex_parts = [factor for factor in factors if _is_complex(factor)]
    if complex_parts and len(factors) > 1 and any(_is_complex_sum(factor) for factor in factors):
        return True
    if len(values) < 2:
        return False
    if len(values) == 2 and any(_is_power_of_ten(factor) for factor in factors):
        return False
    return not _is_fraction(factors)


def _is_rational(node: Node) -> bool:
    if node[0] == "fn" and node[1] in ("fact", "binom"):
        return not symbols(node)
    if node[0] == "pow" and node[2] == MINUS_ONE:
        return _is_rational(node[1])
    return exact(node) is not None


def _is_fraction(factors: list[Node]) -> bool:
    r"""`\frac{2^{10}}{3}`: a number over a number."""
    below = [f for f in factors if f[0] == "pow" and f[2] == MINUS_ONE]
    plain = all(f[0] in ("num", "pow") for f in factors)
    return len(factors) == 2 and len(below) == 1 and plain


def _is_complex(node: Node) -> bool:
    return _I in walk(node) and not symbols(node)


def _is_complex_sum(node: Node) -> bool:
    inside = node[1] if node[0] == "pow" else node
    return inside[0] == "add" and _is_complex(inside)


def _is_power_of_ten(node: Node) -> bool:
    value = node[1] if node[0] == "pow" else node
    return value == ("num", Fraction(10), None) or (
        node[0] == "num" and node[1] > 1 and re.fullmatch("10+", str(node[1])) is not None
    )


# --- formulas of the question

_MATH = re.compile(
    r"\$\$(.{1,400}?)\$\$|\$([^$]{1,400})\$|\\\((.{1,400}?)\\\)|\\\[(.{1,400}?)\\\]", re.DOTALL
)


def restates(tokens: Sequence[Token], value: Node, question: str) -> bool:
    """Whether an answer is a formula of the question, or one side of it, set in any way.

    A plain value is no formula: the question may hold it, and the answer may be it.
    """
    if not question or _is_plain(value, tokens):
        return False
    return fold(tokens) in formulas(question[-MAX_QUESTION:])


@lru_cache(maxsize=256)
def formulas(question: str) -> frozenset[Folded]:
    """The folded formulas of a question, and the sides of its relations."""
    folded: set[Folded] = set()
    for match in _MATH.finditer(question):
        span = next(filter(None, match.groups()))
        try:
            tokens = tokenize(span.strip(" .,;:?"))[:-1]
        except UnreadableError:
            continue
        for part in (tokens, *_sides(tokens)):
            folded.add(fold(part))
    return frozenset(folded)


def _sides(tokens: list[Token]) -> Iterator[list[Token]]:
    """What stands between the relations and commas of a formula."""
    side: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("{", "(", "[", r"\{", r"\begin") - token.is_sign(
            "}", ")", "]", r"\}", r"\end"
        )
        if depth == 0 and (token.is_sign(",", ";") or token.text in RELATIONS):
            yield side
            side = []
        else:
            side.append(token)
    yield side


def _is_plain(node: Node, tokens: Sequence[Token]) -> bool:
    """Whether an answer is a number, a name, words, or a group of them, with a label or a unit."""
    kind = node[0]
    if kind in ("percent", "degree", "quantity"):
        return _is_plain(node[1], tokens)
    if kind in ("list", "and", "or", "tuple", "set", "compound", "ratio"):
        return all(_is_plain(part, tokens) for part in node[1:])
    if kind == "rel" and node[1] == "=" and len(node) == 4:
        return bool(node[2][0] == "sym" and node[3][0] == "num")
    if kind == "mul" and len(node) == 3 and node[1] == MINUS_ONE:
        return _is_plain(node[2], tokens)
    if kind == "num":
        return not any(token.is_sign(*_OPERATIONS) for token in tokens) and _is_lowest(node, tokens)
    return kind in ("sym", "const", "text", "clock", "base")


_OPERATIONS = (r"\div", r"\times", r"\cdot", "*", "^", r"\sqrt")


def _is_lowest(node: Node, tokens: Sequence[Token]) -> bool:
    """Whether a fraction is in lowest terms as it is written."""
    if not any(token.is_sign(r"\frac", "/") for token in tokens):
        return True
    bottom = [token.text for token in tokens if token.kind == "num"][-1]
    return bool(node[1].denominator > 1 and bottom == str(node[1].denominator))
