r"""Whether two answers are equal, decided in steps, the cheapest first.

| step | decides |
|---|---|
| `text` | the texts are the same, up to typography |
| `number` | both are plain numbers, which are compared exactly |
| `words` | the words are the same |
| `value` | the trees are equal by the rule for their types (`type_rules`) |

A gold that cannot be parsed is compared as text only, never in part. docs/answers.md is the policy.
Static limits bound every step. A step depends only on the two texts, the question and the policy.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import chain, islice, pairwise, permutations
from typing import Literal, NamedTuple, TypeAlias

from rewardkit.answers.chinese_numerals import chinese_to_digits
from rewardkit.answers.number import AMBIGUOUS, number_of_sentence
from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import (
    MAX_DIGITS,
    Token,
    UnreadableError,
    fold,
    fold_words,
    tokenize,
)
from rewardkit.answers.parsing.tree import (
    PI,
    Node,
    add,
    mul,
    neg,
    num,
    substitute,
    subtrees,
    symbols,
)
from rewardkit.answers.relations import equation_value
from rewardkit.answers.scalar import (
    PRECISE_STEPS,
    STRICT,
    Policy,
    TooMuchWorkError,
    UndefinedError,
    charge_steps,
    evaluate_digits,
    evaluate_double,
    linear_coefficients,
    run_with_budget,
    sample_points,
)
from rewardkit.answers.simplification import has_same_form, leaves_arithmetic, repeats_question
from rewardkit.answers.type_rules import same_answer, states_several_values, value_type
from rewardkit.answers.words import in_asked_scale, same_words, value_without_remark

#: The steps of a comparison, which `rewardkit explain` calls rungs.
Rung: TypeAlias = Literal["text", "number", "words", "value"]
Outcome: TypeAlias = Literal["equal", "different", "ambiguous", "unreadable"]

#: Most characters of an answer.
MAX_CHARS = 4096

_PLAIN_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"-?\d+,\d{1,2}|-?\d+,\d{4,}", re.ASCII)


class EqualityVerdict(NamedTuple):
    """Outcome of a comparison, and the step that decided it.

    `ambiguous`: the answer states several values, the gold one. `unreadable`: the answer is over a
    limit, cannot be parsed, is not simplified, or repeats a formula of the question.
    """

    outcome: Outcome
    rung: Rung


class ParsedAnswer(NamedTuple):
    """A text's tokens, its folded tokens, its folded words if it consists of words, and its tree."""

    tokens: tuple[Token, ...]
    folded: tuple[str, ...]
    words: tuple[str, ...] | None
    value: Node | None


def equal(pred: str, gold: str) -> bool:
    """Whether `pred` and `gold` state the same answer."""
    return compare(pred, gold).outcome == "equal"


def compare(pred: str, gold: str, question: str = "", policy: Policy = STRICT) -> EqualityVerdict:
    """Compare a predicted answer with a gold answer, both as text without their marks.

    Args:
        pred: the predicted answer.
        gold: the gold answer.
        question: the question, whose formulas are not answers; empty if it is not known.
        policy: what counts as equal beyond the same value.
    """
    if pred == gold:
        return EqualityVerdict("equal", "text")
    are_short = len(pred) + len(gold) < MAX_DIGITS
    if are_short and _PLAIN_NUMBER.fullmatch(pred) and _PLAIN_NUMBER.fullmatch(gold):
        if _plain_number(pred) == _plain_number(gold):
            return EqualityVerdict("equal", "number")
        if not (policy.significant_digits or {".", ","} & {*pred, *gold}):
            return EqualityVerdict("different", "number")
    if max(len(pred), len(gold)) > MAX_CHARS:
        return EqualityVerdict("unreadable", "text")
    return _compare(pred, gold, question, policy)


@lru_cache(maxsize=4096)
def _compare(pred: str, gold: str, question: str, policy: Policy) -> EqualityVerdict:
    """Run the slow steps. Cached, because rollouts of one prompt repeat their answers."""
    verdict = _compare_texts(pred, gold, question, policy)
    value = pred if verdict.outcome == "equal" else value_without_remark(pred, question)
    if value == pred:
        return verdict
    without_remark = _compare_texts(value, gold, question, policy)
    return without_remark if without_remark.outcome == "equal" else verdict


def _compare_texts(pred: str, gold: str, question: str, policy: Policy) -> EqualityVerdict:
    g, p = parse_answer(gold), parse_answer(pred)
    if g is None or p is None:
        return EqualityVerdict("unreadable", "text")
    if p.folded == g.folded != ():
        return EqualityVerdict("equal", "text")
    if (p.words is not None and p.words == g.words) or same_words(pred, gold, question):
        return EqualityVerdict("equal", "words")
    if g.value is None:
        return EqualityVerdict("unreadable", "text")
    outcome: Outcome = "unreadable"
    scaled = in_asked_scale(pred, p.value, question) if question and p.value else ()
    pairs = chain(_value_pairs(pred.strip(" $"), p, g), ((value, g.value) for value in scaled))
    for pair in pairs:
        outcome = _compare_values(*pair, question, policy)
        if outcome == "equal":
            is_copy = not has_same_form(p.tokens, g.tokens) and repeats_question(
                p.tokens, pair[0], question
            )
            return EqualityVerdict("unreadable" if is_copy else "equal", "value")
    has_words = p.value is None or any(part[0] in ("text", "where") for part in subtrees(p.value))
    if has_words and _PLAIN_NUMBER.fullmatch(number := gold.strip(" $")):
        value = number_of_sentence(pred)
        if value is None:
            return EqualityVerdict("unreadable", "words")
        if value is AMBIGUOUS:
            return EqualityVerdict("ambiguous", "number")
        is_same = value == _plain_number(number)
        return EqualityVerdict("equal" if is_same else "different", "number")
    return EqualityVerdict(outcome, "value")


def _value_pairs(text: str, pred: ParsedAnswer, gold: ParsedAnswer) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs of trees to compare; the gold decides how an answer may be parsed."""
    p, g = pred.value, gold.value
    if g is None:
        return
    if p is not None:
        yield p, g
    if _has_unit(g) or (p is not None and _has_unit(p)):
        for are_units in (True, False):
            if are_units or (
                p is not None and (_has_unit(p) == _has_unit(g) or symbols(p) or symbols(g))
            ):
                p_read, g_read = (
                    _parse_or_none(side.tokens, letters_are_units=are_units)
                    for side in (pred, gold)
                )
                if p_read is not None and g_read is not None and (p_read, g_read) != (p, g):
                    yield p_read, g_read
    if value_type(g) in _GROUP_TYPES and (split := _parse_split_digits(pred)) is not None:
        yield split, g
    if p and value_type(p) in _GROUP_TYPES and (split := _parse_split_digits(gold)) is not None:
        yield p, split
    if g[0] == "num" and g[2] is not None and _DECIMAL_COMMA.fullmatch(text):
        yield num(Fraction(text.replace(",", ".")), 1), g


_GROUP_TYPES = frozenset({"list", "tuple", "set"})


def _has_unit(node: Node) -> bool:
    return any(part[0] == "quantity" for part in subtrees(node))


def _compare_values(pred: Node, gold: Node, question: str, policy: Policy) -> Outcome:
    try:
        are_equal = run_with_budget(
            lambda p, g: same_answer_or_family(p, g, question, policy), pred, gold
        )
        if are_equal:
            values = equation_value(pred, policy), equation_value(gold, policy)
            return "unreadable" if leaves_arithmetic(*values) else "equal"
    except (TooMuchWorkError, RecursionError):
        return "unreadable"
    is_ambiguous = states_several_values(pred) and not states_several_values(gold)
    return "ambiguous" if is_ambiguous else "different"


@lru_cache(maxsize=4096)
def parse_answer(text: str) -> ParsedAnswer | None:
    """Return the parsed answer of a text; None if the text is over a limit."""
    try:
        tokens = tokenize(text if text.isascii() else chinese_to_digits(text))
    except UnreadableError:
        return None
    split_tokens = _split_grouped_digits(tokens, everywhere=False)
    value = _parse_or_none(split_tokens)
    if value is None and any(a.kind == "num" and b.kind == "word" for a, b in pairwise(tokens)):
        value = _parse_or_none(split_tokens, letters_are_units=True)  # as in `5 in`
    return ParsedAnswer(tuple(tokens), fold(tokens), fold_words(tokens), value)


def _parse_or_none(
    tokens: Sequence[Token], *, letters_are_units: bool | None = None
) -> Node | None:
    try:
        return parse(tokens, letters_are_units=letters_are_units)
    except UnreadableError:
        return None


def _parse_split_digits(answer: ParsedAnswer) -> Node | None:
    """Return the tree with every `1,234` as two items; None if there is none."""
    tokens = _split_grouped_digits(answer.tokens)
    return _parse_or_none(tokens) if len(tokens) > len(answer.tokens) else None


def _split_grouped_digits(tokens: Sequence[Token], *, everywhere: bool = True) -> list[Token]:
    """Return the tokens with `1,234` as two items, in brackets or everywhere.

    In brackets a comma separates items. Outside brackets it groups digits, unless the parser refuses.
    """
    split_tokens: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[", r"\{") - token.is_sign(")", "]", r"\}")
        first, *others = (
            token.text.split(",")
            if token.kind == "num" and (everywhere or depth > 0)
            else [token.text]
        )
        split_tokens.append(token._replace(text=first))
        for part in others:
            split_tokens += [Token("op", ","), Token("num", part)]
    return split_tokens


def _plain_number(text: str) -> Fraction | int:
    text = text.replace(",", "")
    return Fraction(text) if "." in text else int(text)


# --- families of solutions

#: Names of variables, which are never parameters, and names that stand for integers.
_VARIABLES = frozenset({"x", "y", "z"})
_FUNCTION_VARIABLES = _VARIABLES | frozenset({"t", "u", "v", "s", "r", "w", "theta"})
_INTEGER_NAMES = frozenset("knml")


def same_answer_or_family(pred: Node, gold: Node, question: str, policy: Policy) -> bool:
    """Whether two values are the same answer, also under other names of their parameters."""
    if same_answer(pred, gold, policy):
        return True
    if "congruence" in (pred[0], gold[0]) and pred[0] != gold[0]:
        return same_answer(_as_congruence(pred), _as_congruence(gold), policy)
    arrows = [{n for n in symbols(node) if n.startswith("vec ")} for node in (pred, gold)]
    if bool(arrows[0]) != bool(arrows[1]):  # one side omits the arrows of its vectors
        bare = {("sym", name): ("sym", name[4:]) for name in set.union(*arrows)}
        return same_answer(substitute(pred, bare), substitute(gold, bare), policy)
    free = parameters(gold, question)
    if products := _functions_as_products(pred, gold):
        return same_answer(substitute(pred, products), substitute(gold, products), policy)
    if not free:
        return False
    renamed = list(renamings(pred, gold, free, question))
    return (
        _same_up_to_a_constant(pred, gold, free)
        or any(same_answer(other, gold, policy) for other in renamed)
        or any(_has_same_members(other, gold, free, policy) for other in (pred, *renamed))
    )


def _functions_as_products(pred: Node, gold: Node) -> dict[Node, Node]:
    """Return the product for every `g(h+R)` of two values that also have the name `g` alone."""
    names = symbols(pred) | symbols(gold)
    return {
        part: mul(("sym", part[1]), part[2])
        for node in (pred, gold)
        for part in subtrees(node)
        if part[0] == "fn" and len(part) == 3 and part[1] in names and symbols(part[2])
    }


def _has_same_members(pred: Node, gold: Node, free: set[str], policy: Policy) -> bool:
    name = min(free)
    if name[0] not in _INTEGER_NAMES:
        return False
    if any(node[0] == "where" and node[5] not in ("", "Z") for node in (pred, gold)):
        return False
    p, g = (node[1] if node[0] == "where" else node for node in (pred, gold))
    return same_family(equation_value(p, policy), equation_value(g, policy), name)


def parameters(gold: Node, question: str) -> set[str]:
    r"""Return the parameters of a gold, which are names that stand for any number.

    They are the names that a clause declares; the integer in a term of numbers and `\pi` or degrees
    (`\frac{\pi}{4} + k\pi`); constants of integration. Names of the question are not parameters.
    """
    is_declared = gold[0] == "where" and not gold[3]
    node, bound = (gold[1], gold[4].split()) if is_declared else (gold, [])
    value = equation_value(node, STRICT)
    free = symbols(node) & set(bound) | _integration_constants(node, value)
    for item in value[1:] if value[0] in ("list", "and", "or", "tuple", "set") else (value,):
        for term in item[1:] if item[0] == "add" else (item,):
            free |= _turn_parameter(term)
    return {name for name in free - _VARIABLES if not _occurs_in(name, question)}


def _turn_parameter(term: Node) -> set[str]:
    r"""Return the integer name of a term such as `2k\pi`; the empty set if it has other names."""
    factors = term[1:] if term[0] in ("mul", "degree") else ()
    is_angular = term[0] == "degree" or any(f == PI or f[0] == "degree" for f in factors)
    is_linear = all(part[0] in ("mul", "sym", "degree") for part in subtrees(term) if symbols(part))
    names = symbols(term)
    return names & _INTEGER_NAMES if is_angular and is_linear and len(names) == 1 else set()


def _integration_constants(node: Node, value: Node) -> set[str]:
    """Return constants of integration: a term `C`, or factors of the terms of a function `y(x)`."""
    constants = {name for name in symbols(value) if re.fullmatch(r"[Cc](_.*)?", name)}
    others = symbols(value) - constants
    if len(others) != 1 or not others <= _FUNCTION_VARIABLES:
        return set()
    terms = value[1:] if value[0] == "add" else (value,)
    terms_alone = {term[1] for term in terms if term[0] == "sym"}
    factors = {f[1] for term in terms if term[0] == "mul" for f in term[1:] if f[0] == "sym"}
    has_label = node[0] == "rel" and node[2][0] in ("sym", "fn")
    is_function = has_label and node[2][1] in ("y", "u", "f", "x")
    has_indices = bool(constants - {"C", "c"})
    return constants & (terms_alone | factors if is_function or has_indices else terms_alone)


def _occurs_in(name: str, question: str) -> bool:
    return re.search(rf"(?<![^\W\d_]){re.escape(name)}(?![^\W\d_])", question) is not None


def renamings(pred: Node, gold: Node, free: set[str], question: str) -> Iterator[Node]:
    """Yield the answer with its own names replaced by the gold's free names, in every order.

    A name that the question uses keeps its meaning and is not replaced.
    """
    ours, theirs = _value_names(pred) - symbols(gold), _value_names(gold) - symbols(pred)
    if not ours and not theirs:  # so that c_1 and c_2 may be exchanged
        ours = theirs = {name for name in free & _value_names(pred) if "_" in name}
    if not 0 < len(ours) == len(theirs) <= 3 or not theirs <= free or ours & _VARIABLES:
        return
    if any(_occurs_in(name, question) for name in ours - theirs):
        return
    for order in permutations(sorted(ours)):
        pairs = zip(order, sorted(theirs), strict=True)
        yield substitute(pred, {("sym", name): ("sym", other) for name, other in pairs})


def _value_names(node: Node) -> set[str]:
    node = node[1] if node[0] == "where" else node
    return symbols(equation_value(node, STRICT))


def same_family(pred: Node, gold: Node, name: str) -> bool:
    """Whether `a + bk` and `c + dk` have the same values: `b = ±d`, `(a - c) / b` an integer."""
    if symbols(pred) != {name} or symbols(gold) != {name}:
        return False
    charge_steps(pred, gold, times=3 * PRECISE_STEPS)
    try:
        p = [evaluate_digits(pred, {name: float(k)}) for k in range(3)]
        g = [evaluate_digits(gold, {name: float(k)}) for k in range(3)]
    except UndefinedError:
        return False
    step, other = p[1] - p[0], g[1] - g[0]
    is_affine = abs(p[2] - p[0] - 2 * step) < 1e-30 and abs(g[2] - g[0] - 2 * other) < 1e-30
    if not is_affine or not step or min(abs(step - other), abs(step + other)) > 1e-30:
        return False
    turns = (p[0] - g[0]) / step
    return bool(abs(turns - round(float(turns.real))) < 1e-25)


def _as_congruence(node: Node) -> Node:
    r"""Return `x = 7k + 3` with integer `k` as `x \equiv 3 \pmod 7`; any other node unchanged."""
    inner, free = node, {*_INTEGER_NAMES}
    if node[0] == "where" and not node[3] and node[5] in ("", "Z"):
        inner, free = node[1], {*node[4].split()}
    value = equation_value(inner, STRICT)
    names = symbols(value)
    line = linear_coefficients(value, *names) if len(names) == 1 and names <= free else None
    if value is inner or line is None:
        return node
    return ("congruence", ("rel", "=", inner[2], num(line[0])), num(abs(line[1])))


def _same_up_to_a_constant(pred: Node, gold: Node, free: set[str]) -> bool:
    p, g = (equation_value(node, STRICT) for node in (pred, gold))
    constants = [
        {part[1] for part in value[1:] if part in (("sym", "C"), ("sym", "c"))}
        for value in (p, g)
        if value[0] == "add"
    ]
    if [len(names) for names in constants] != [1, 1] or not constants[1] <= free:
        return False
    difference = add(p, neg(g))
    charge_steps(difference, times=4 * PRECISE_STEPS)
    zeros = dict.fromkeys(set.union(*constants), 0.0)
    points = (point | zeros for point in sample_points(difference))
    values = list(islice(_real_values(difference, points), 4))
    return len(values) > 2 and all(abs(value - values[0]) < 1e-30 for value in values[1:])


def _real_values(node: Node, points: Iterator[dict[str, float]]) -> Iterator[complex]:
    for point in points:
        try:
            evaluate_double(node, point, real=True)
            yield evaluate_digits(node, point)
        except UndefinedError:
            continue
