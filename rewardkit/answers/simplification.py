r"""Whether an answer is simplified, and whether it only repeats a formula of the question.

If the gold is a plain number, an answer must be simplified: it may not leave arithmetic to do,
which is a product or quotient of numbers (`23 \times 31`), a factorial or binomial coefficient
(`7!`), a sum of roots or other values of functions (`\sqrt{25}-\sqrt{4}`), arithmetic on complex
numbers (`\frac{5+14i}{2+3i}`), or an operator that is not evaluated (a limit, a sum, a determinant,
`\gcd`).

Simplified are a number, a fraction, a power (`2^{10}`), a root, one value of a function
(`\log_2 8`), a number times a power of ten, a product of prime powers (`2^4 \cdot 3^2`), and a sum
or difference of numbers, fractions and powers (`1+\frac34`, `3^4-1`). For any other gold the form
is free.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from rewardkit.answers.evaluate import UndefinedError, evaluate_double, exact_value
from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import Token, UnreadableError, tokenize
from rewardkit.answers.parsing.tree import MINUS_ONE, Node, children, subtrees, symbols
from rewardkit.answers.parsing.typography import fold
from rewardkit.answers.parsing.vocabulary import RELATION_SIGNS, UNEVALUATED_OPERATORS
from rewardkit.answers.scalar import canonical_text

#: Functions that an answer must have evaluated.
UNEVALUATED = UNEVALUATED_OPERATORS | {"det", "gcd", "lcm", "max", "min", "fact", "binom"}
#: Characters at the end of a question whose formulas are read.
MAX_QUESTION_CHARS = 4_000
#: Most formulas of a question that are read, from the last one back.
MAX_FORMULAS = 25


def is_simplified(node: Node) -> bool:
    """Whether a tree leaves no arithmetic on numbers to do."""
    return not any(_is_unsimplified(part) for part in subtrees(node))


def leaves_arithmetic(pred: Node, gold: Node) -> bool:
    """Whether `pred` leaves arithmetic to do whose result `gold` states, item by item."""
    if gold[0] in ("percent", "degree", "quantity"):
        gold = gold[1]
    if gold[0] in _GROUP_KINDS:
        is_gold_plain = all(
            _is_plain_number(item)
            or item[0] in _GROUP_KINDS
            or (gold[0] == "rel" and item[0] == "sym")
            for item in children(gold)
        )
        items = list(children(pred)) if pred[0] in _GROUP_KINDS else [pred]
        return is_gold_plain and not all(map(is_simplified, items))
    return _is_plain_number(gold) and not is_simplified(pred)


_GROUP_KINDS = frozenset(
    {"tuple", "set", "list", "and", "or", "matrix", "row", "interval", "ratio", "rel"}
)


def _is_plain_number(node: Node) -> bool:
    """Whether a node is a rational, a rational multiple of `i`, or the sum of the two."""
    if node[0] == "num":
        return True
    parts = node[1:] if node[0] == "add" else (node,)
    if len(parts) > 2 or sum(part[0] == "num" for part in parts) > 1:
        return False
    return all(
        all(f[0] == "num" or f == _IMAGINARY_UNIT for f in (p[1:] if p[0] == "mul" else (p,)))
        for p in parts
    )


_IMAGINARY_UNIT: Node = ("const", "i")


def _is_unsimplified(node: Node) -> bool:
    kind = node[0]
    if kind == "fn":
        return node[1] in UNEVALUATED
    if kind == "add":
        return _is_unsimplified_sum(node)
    if kind == "mul":
        return _is_unsimplified_product(node)
    if kind == "pow":  # a power of i or of a sum, as (1+i)^4
        of_i = node[1] == _IMAGINARY_UNIT and node[2] != MINUS_ONE
        return of_i or (node[1][0] == "add" and not symbols(node))
    return False


def _is_unsimplified_sum(node: Node) -> bool:
    imaginary = [part for part in node[1:] if _is_complex(part)]
    values = [part for part in node[1:] if _is_rational(part)]
    return len(imaginary) > 1 or (len(values) > 1 and not all(map(_is_numeral, values)))


def _is_numeral(node: Node) -> bool:
    """Whether a node is a number, its power or its reciprocal, with or without a sign."""
    if node[0] == "mul":
        return all(map(_is_numeral, node[1:])) and not _is_unsimplified_product(node)
    return node[0] == "num" or (node[0] == "pow" and _is_numeral(node[1]) and node[2][0] == "num")


def _is_unsimplified_product(node: Node) -> bool:
    factors = [factor for factor in node[1:] if factor != MINUS_ONE]
    values = [factor for factor in factors if _is_rational(factor)]
    complex_parts = [factor for factor in factors if _is_complex(factor)]
    if complex_parts and len(factors) > 1 and any(_is_complex_sum(factor) for factor in factors):
        return True
    if len(values) < 2:
        return False
    if len(values) == 2 and any(_is_power_of_ten(factor) for factor in factors):
        return False
    return not (_is_fraction(factors) or _is_factorization(factors))


def _is_factorization(factors: list[Node]) -> bool:
    r"""Whether factors are powers of different primes, one of them with an exponent: `2^4 \cdot 3`."""
    bases = [factor[1] if factor[0] == "pow" else factor for factor in factors]
    primes = [base[1] for base in bases if base[0] == "num" and _is_prime(base[1])]
    has_exponent = any(factor[0] == "pow" and factor[2] != MINUS_ONE for factor in factors)
    return has_exponent and len(set(primes)) == len(factors)


def _is_prime(value: Fraction) -> bool:
    n = value.numerator
    return (
        value.denominator == 1
        and 1 < n < 10_000
        and all(n % d for d in range(2, math.isqrt(n) + 1))
    )


def _is_rational(node: Node) -> bool:
    r"""Whether a closed value is rational, a function's value to twelve digits (`\log_2 8`)."""
    if node[0] == "pow" and node[2] == MINUS_ONE:
        return _is_rational(node[1])
    if exact_value(node) is not None:
        return True
    if symbols(node) or not any(part[0] == "fn" for part in subtrees(node)):
        return False
    try:
        value = evaluate_double(node, {})
    except UndefinedError:
        return False
    twelve_times = 12 * value.real
    return abs(value.imag) < 1e-12 and abs(twelve_times - round(twelve_times)) < 1e-10


def _is_fraction(factors: list[Node]) -> bool:
    r"""Whether two factors are a fraction in lowest terms, as in `\frac{2^{10}}{3}`."""
    values = [exact_value(factor) for factor in factors]
    denominators = [factor for factor in factors if factor[0] == "pow" and factor[2] == MINUS_ONE]
    are_plain = all(factor[0] in ("num", "pow") for factor in factors)
    if len(factors) != 2 or None in values or len(denominators) != 1 or not are_plain:
        return False
    numerators = [value for value in values if value is not None and value.denominator == 1]
    denominator_values = [value for value in values if value is not None and value.numerator == 1]
    return (
        bool(numerators and denominator_values)
        and math.gcd(numerators[0].numerator, denominator_values[-1].denominator) == 1
    )


def _is_complex(node: Node) -> bool:
    return _IMAGINARY_UNIT in subtrees(node) and not symbols(node)


def _is_complex_sum(node: Node) -> bool:
    base = node[1] if node[0] == "pow" else node
    return base[0] == "add" and _is_complex(base)


def _is_power_of_ten(node: Node) -> bool:
    value = node[1] if node[0] == "pow" else node
    return value == ("num", Fraction(10), None) or (
        node[0] == "num" and node[1] > 1 and re.fullmatch("10+", str(node[1])) is not None
    )


# --- formulas of the question

_FORMULA = re.compile(
    r"\$\$(.{1,400}?)\$\$|\$([^$]{1,400})\$|\\\((.{1,400}?)\\\)|\\\[(.{1,400}?)\\\]"
    r"|\\begin\{(?:align|equation|gather)\*?\}(.{1,400}?)\\end\{"
    r"|((?<![\w.])[\w.()^√\\]{1,40}(?: ?[-+*/^=×÷] ?[\w.()^√\\]{1,40}){1,12})",
    re.DOTALL,
)


def repeats_question(tokens: Sequence[Token], value: Node, question: str) -> bool:
    """Whether an answer is a formula of the question, or one side of it, in any typography.

    The order of terms, a label, a clause and brackets make no difference. A plain value is not a
    formula: the answer may be a value that the question holds.
    """
    value = _without_label_and_unit(value)
    if not question or _is_plain_value(value, tokens):
        return False
    return not question_formulas(question[-MAX_QUESTION_CHARS:]).isdisjoint(
        {" ".join(fold(tokens)), canonical_text(value)}
    )


def has_same_form(tokens: Sequence[Token], gold: Sequence[Token]) -> bool:
    """Whether an answer has the gold's own form, with its terms and factors in any order."""
    pred_signs, gold_signs = (
        sorted(t for t in fold(side) if t not in _REORDERABLE_SIGNS) for side in (tokens, gold)
    )
    return pred_signs == gold_signs


_REORDERABLE_SIGNS = frozenset({"+", "*", r"\cdot", r"\times", "(", ")", "{", "}", ""})


def _without_label_and_unit(node: Node) -> Node:
    """Return a value without its clause, label and unit, and the only item of a set or list."""
    if node[0] == "quantity" or (node[0] in ("set", "list") and len(node) == 2):
        return _without_label_and_unit(node[1])
    if node[0] == "rel" and len(node) == 4 and canonical_text(node[2]) == canonical_text(node[3]):
        side: Node = node[2]
        return side
    while node[0] == "where" or (node[0] == "rel" and node[1] == "=" and len(node) == 4):
        if node[0] == "rel" and (node[2][0] not in ("sym", "fn") or "^-1" in str(node[2][1])):
            break
        node = node[1] if node[0] == "where" else node[3]
    return node


@lru_cache(maxsize=256)
def question_formulas(question: str) -> frozenset[str]:
    """Return the formulas of a question and their sides, as folded tokens and as canonical text."""
    spellings: set[str] = set()
    for match in deque(_FORMULA.finditer(question), maxlen=MAX_FORMULAS):
        span = next(filter(None, match.groups()))
        try:
            tokens = tokenize(span.strip(" .,;:?&"))
        except UnreadableError:
            continue
        for part in (tokens[:-1], *_sides(tokens[:-1])):
            spellings.add(" ".join(fold(part)))
            try:
                spellings.add(canonical_text(_without_label_and_unit(parse([*part, tokens[-1]]))))
            except UnreadableError:
                continue
    return frozenset(spellings)


def _sides(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the parts of a formula between its relations and commas."""
    side: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("{", "(", "[", r"\{", r"\begin") - token.is_sign(
            "}", ")", "]", r"\}", r"\end"
        )
        if depth == 0 and (token.is_sign(",", ";") or token.text in RELATION_SIGNS):
            yield side
            side = []
        else:
            side.append(token)
    yield side


def _is_plain_value(node: Node, tokens: Sequence[Token]) -> bool:
    """Whether an answer is a number, a name, words, or a group of them, with or without a unit."""
    kind = node[0]
    if kind in ("percent", "degree", "quantity"):
        return bool(node[1][0] == "num")
    if kind in ("list", "and", "or", "tuple", "set", "compound", "ratio"):
        return all(_is_plain_value(part, tokens) for part in node[1:])
    if kind == "rel" and node[1] == "=" and len(node) == 4:
        return bool(node[2][0] == "sym" and node[3][0] == "num")
    if kind == "mul" and len(node) == 3 and node[1] == MINUS_ONE:
        return _is_plain_value(node[2], tokens)
    if kind == "num":
        return not any(token.is_sign(*_OPERATIONS) for token in tokens) and _is_in_lowest_terms(
            node, tokens
        )
    return kind in ("sym", "const", "text", "clock", "base")


_OPERATIONS = (r"\div", r"\times", r"\cdot", "*", "^", r"\sqrt")


def _is_in_lowest_terms(node: Node, tokens: Sequence[Token]) -> bool:
    """Whether a fraction is written in lowest terms."""
    if not any(token.is_sign(r"\frac", "/") for token in tokens):
        return True
    denominator = [part for part in fold(tokens) if part.isdigit()][-1]
    return bool(node[1].denominator > 1 and denominator == str(node[1].denominator))
