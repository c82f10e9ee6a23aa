r"""Whether an answer is a finished form, and whether it only repeats a formula of the question.

If the gold consists of plain numbers, an answer may not leave arithmetic to do. Finished forms are a
number, a fraction, a power of a whole number or a fraction (`2^{10}`), a root of a number, a number
times a power of ten, a product or quotient of powers without common factors (`2^4 \cdot 3^2`), a sum of these (`1+\frac34`), and a
complex number over a whole one. Any other product, quotient or sum is not finished, nor is `\pi` or
`e` if the gold is exact, because it cancels.

A function of numbers (`\log_2 8`, `|3+4i|`, `7!`) is finished only if the gold has one of its kind.
For golds with names the form is free.
"""

import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import Token, UnreadableError, fold, tokenize
from rewardkit.answers.parsing.tree import MINUS_ONE, PI, Node, children, subtrees, symbols
from rewardkit.answers.parsing.vocabulary import RELATION_SIGNS, UNEVALUATED_OPERATORS, split_words
from rewardkit.answers.scalar import canonical_text, exact_value, is_known_function

_I: Node = ("const", "i")
_E: Node = ("const", "e")
_GROUP_KINDS = split_words("tuple set list and or matrix row interval ratio rel")
#: Operators and functions whose value a question asks for.
UNEVALUATED = UNEVALUATED_OPERATORS | {"det", "gcd", "lcm", "max", "min", "fact", "binom"}
#: Functions that are a finished form of a number, and kinds of functions that can replace each other.
_ROOTS = split_words("sqrt root exp")
_KINDS = {
    name: kind
    for kind in (
        "sin cos tan cot sec csc",
        "arcsin arccos arctan arccot arcsec arccsc",
        "ln lg arcsinh arccosh arctanh",
        "fact binom",
    )
    for name in kind.split()
}
#: Characters at the end of a question whose formulas are read.
MAX_QUESTION_CHARS = 4_000
#: Most formulas of a question that are read, from the last one back.
MAX_FORMULAS = 25


def is_simplified(node: Node) -> bool:
    """Whether a tree leaves no arithmetic on numbers to do."""
    return not (_function_kinds(node) or any(map(_is_unfinished, subtrees(node))))


def leaves_arithmetic(pred: Node, gold: Node) -> bool:
    """Whether `pred` leaves arithmetic to do whose result `gold` states, item by item."""
    is_exact = gold[0] != "degree" and all(n[0] != "num" or n[2] is None for n in subtrees(gold))
    if gold[0] in ("percent", "degree", "quantity"):
        gold = gold[1]
    golds, preds = list(_items(gold)), list(_items(pred))
    is_complex = _I in subtrees(gold)  # which admits the polar form of the same number
    has_name = bool(symbols(gold)) and gold[0] != "rel"
    kinds = set().union(*map(_function_kinds, preds))
    if not (is_complex or has_name or kinds <= _function_kinds(gold)):
        return True
    if not all(map(_is_plain_number, golds)):
        return False
    parts = [part for item in preds for part in subtrees(item)]
    cancels = any(part in (PI, _E) or _combines_roots(part) for part in parts)
    return (is_exact and not is_complex and cancels) or any(map(_is_unfinished, parts))


def _items(node: Node) -> Iterator[Node]:
    r"""Yield the values of a group, without labels; of `12 \cdot 13 = 156` the last side."""
    if node[:2] == ("rel", "=") and node[2][0] != "add":
        node = node[-1]
    if node[0] not in _GROUP_KINDS:
        yield node
        return
    for child in children(node):
        if (node[0], child[0]) != ("rel", "sym"):
            yield from _items(child)


def _function_kinds(node: Node) -> set[str]:
    """Return the kinds of the functions of numbers in a tree, other than roots."""
    names = {part[1] for part in subtrees(node) if part[0] == "fn" and not symbols(part)}
    return {_KINDS.get(name, name) for name in filter(is_known_function, names - _ROOTS)}


def _is_plain_number(node: Node) -> bool:
    node = _numerator(node)
    parts = [p[1] if p[0] == "pm" else p for p in (node[1:] if node[0] == "add" else (node,))]
    factors = [f for part in parts for f in (part[1:] if part[0] == "mul" else (part,))]
    is_sum = len(parts) <= 2 and sum(part[0] == "num" for part in parts) <= 1
    return is_sum and all(factor[0] == "num" or factor == _I for factor in factors)


def _numerator(node: Node) -> Node:
    r"""Return the top of a complex number over a whole number, as in `\frac{3-4i}{5}`."""
    factors = [factor for factor in node[1:] if factor != MINUS_ONE] if node[0] == "mul" else []
    tops = [factor for factor in factors if factor[0] == "add" and _is_plain_number(factor)]
    bottoms = [exact_value(factor) for factor in factors if factor not in tops]
    is_whole = len(tops) == len(bottoms) == 1 and bottoms[0] and bottoms[0].numerator == 1
    return tops[0] if is_whole else node


def _combines_roots(node: Node) -> bool:
    """Whether a node is a sum or product with a root of a number in it."""
    parts = [part for part in node[1:] if part != MINUS_ONE] if node[0] in ("add", "mul") else []
    roots = (n for part in parts for n in subtrees(part) if n[:1] == ("fn",) and n[1] in _ROOTS)
    return len(parts) > 1 and not all(map(symbols, roots))


def _is_unfinished(node: Node) -> bool:
    match node[0]:
        case "fn":
            return node[1] in _ROOTS and node[2][0] == "add" and exact_value(node[2]) is not None
        case "add":
            return sum(_I in subtrees(part) for part in node[1:]) > 1
        case "mul":
            return _is_unfinished_product(node)
        case "pow":  # a power of a sum, of i, of a decimal
            is_sum = node[1][0] == "add" and not symbols(node)
            is_decimal = node[1][0] == "num" and node[1][2] is not None
            return is_sum or ((node[1] == _I or is_decimal) and node[2] != MINUS_ONE)
    return False


def _is_unfinished_product(node: Node) -> bool:
    factors = [factor for factor in node[1:] if factor != MINUS_ONE]
    if len(factors) < 2 or _numerator(node) is not node:
        return False
    if _I in subtrees(node) and any(_base(factor)[0] == "add" for factor in factors):
        return True
    rationals = [f for f in factors if exact_value(f[1] if f[0] == "pow" else f) is not None]
    bases = [_base(factor) for factor in rationals]
    numbers = [int(n[1]) for n in bases if n[0] == "num" and n[1].denominator == 1]
    has_power = any(f[0] == "pow" and (f[2] != MINUS_ONE or f[1][0] == "pow") for f in rationals)
    if len(rationals) == 2:
        if any(re.fullmatch("10+", str(number)) for number in numbers):
            return False
        has_power |= "pow" in (rationals[0][0], rationals[1][0])  # a fraction
    are_coprime = len(numbers) == len(bases) and math.lcm(*numbers) == abs(math.prod(numbers))
    return len(rationals) > 1 and not (has_power and are_coprime)


def _base(factor: Node) -> Node:
    return _base(factor[1]) if factor[0] == "pow" else factor


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
    spellings = {" ".join(fold(tokens)), canonical_text(value)}
    return not question_formulas(question).isdisjoint(spellings)


def has_same_form(tokens: Sequence[Token], gold: Sequence[Token]) -> bool:
    """Whether an answer has the gold's own form, with its terms and factors in any order."""
    p, g = (sorted(each for each in fold(s) if each not in _SIGNS) for s in (tokens, gold))
    return p == g


#: Signs whose place changes with the order of terms and factors.
_SIGNS = frozenset({"+", "*", r"\cdot", r"\times", "(", ")", "{", "}"})


def _without_label_and_unit(node: Node) -> Node:
    """Return a value without its clause, label and unit, and the only item of a set or list."""
    if node[0] in ("where", "quantity") or (node[0] in ("set", "list") and len(node) == 2):
        return _without_label_and_unit(node[1])
    is_equation = node[:2] == ("rel", "=") and len(node) == 4
    if is_equation and (node[2][0] in ("sym", "fn") or node[2] == node[3]):
        return _without_label_and_unit(node[3])
    return node


@lru_cache(maxsize=256)
def question_formulas(question: str) -> frozenset[str]:
    """Return the formulas of a question and their sides, as folded tokens and as canonical text."""
    spellings: set[str] = set()
    for match in deque(_FORMULA.finditer(question[-MAX_QUESTION_CHARS:]), maxlen=MAX_FORMULAS):
        span = next(filter(None, match.groups()))
        try:
            *tokens, end = tokenize(span.strip(" .,;:?&"))
        except UnreadableError:
            continue
        for part in (tokens, *_sides(tokens)):
            spellings.add(" ".join(fold(part)))
            try:
                spellings.add(canonical_text(_without_label_and_unit(parse([*part, end]))))
            except UnreadableError:
                continue
    return frozenset(spellings)


def _sides(tokens: list[Token]) -> Iterator[list[Token]]:
    side: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("{", "(", "[", r"\{", r"\begin")
        depth -= token.is_sign("}", ")", "]", r"\}", r"\end")
        if depth == 0 and (token.is_sign(",", ";") or token.text in RELATION_SIGNS):
            yield side
            side = []
        else:
            side.append(token)
    yield side


_OPERATIONS = (r"\div", r"\times", r"\cdot", "*", "^", r"\sqrt", r"\frac", "/", "+")
_PLAIN_KINDS = split_words(
    "num sym const text clock base percent degree quantity list and or tuple set compound ratio to"
)


def _is_plain_value(node: Node, tokens: Sequence[Token]) -> bool:
    if node[0] == "num" and any(token.is_sign(*_OPERATIONS) for token in tokens):
        is_fraction = any(token.is_sign(r"\frac", "/") for token in tokens)
        return is_fraction and _is_in_lowest_terms(node[1], tokens)
    return _PLAIN_KINDS.issuperset(part[0] for part in subtrees(node))


def _is_in_lowest_terms(value: Fraction, tokens: Sequence[Token]) -> bool:
    *_, denominator = (part for part in fold(tokens) if part.isdigit())
    return value.denominator > 1 and denominator == str(value.denominator)
