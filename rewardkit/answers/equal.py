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
from itertools import chain, pairwise
from typing import Literal, NamedTuple, TypeAlias

from rewardkit.answers.chinese_numerals import chinese_to_digits
from rewardkit.answers.families import same_answer_or_family
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
from rewardkit.answers.parsing.tree import Node, num, subtrees, symbols
from rewardkit.answers.relations import equation_value, is_equation
from rewardkit.answers.scalar import STRICT, Policy, TooMuchWorkError, run_with_budget
from rewardkit.answers.simplification import has_same_form, leaves_arithmetic, repeats_question
from rewardkit.answers.type_rules import states_several_values
from rewardkit.answers.words import in_asked_scale, same_words, value_without_remark

#: The steps of a comparison, which `rewardkit explain` calls rungs.
Rung: TypeAlias = Literal["text", "number", "words", "value"]
Outcome: TypeAlias = Literal["equal", "different", "ambiguous", "unreadable"]

MAX_CHARS = 4096  # most characters of an answer

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
    if verdict.outcome == "equal" or (value := value_without_remark(pred, question)) == pred:
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
    is_same = _same_statements(pred, gold)
    if g.value is None or is_same is not None:
        outcomes: dict[bool | None, Outcome] = {True: "equal", False: "different"}
        return EqualityVerdict(outcomes.get(is_same, "unreadable"), "text")
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
        return EqualityVerdict("equal" if value == _plain_number(number) else "different", "number")
    return EqualityVerdict(outcome, "value")


def _value_pairs(text: str, pred: ParsedAnswer, gold: ParsedAnswer) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs of trees to compare; the gold decides how an answer may be parsed."""
    p, g = pred.value, gold.value
    if g is None:
        return
    if p is not None:
        yield p, g
    if _has_unit(g) or (p is not None and _has_unit(p)):
        are_names = p and (_has_unit(p) == _has_unit(g) or symbols(p) or symbols(g))
        for are_units in (True, False) if are_names else (True,):
            p_read, g_read = (
                _parse_or_none(side.tokens, letters_are_units=are_units) for side in (pred, gold)
            )
            if p_read is not None and g_read is not None and (p_read, g_read) != (p, g):
                yield p_read, g_read
    if g[0] == "num" and g[2] is not None and _DECIMAL_COMMA.fullmatch(text):
        yield num(Fraction(text.replace(",", ".")), 1), g


def _has_unit(node: Node) -> bool:
    return any(part[0] == "quantity" for part in subtrees(node))


def _compare_values(pred: Node, gold: Node, question: str, policy: Policy) -> Outcome:
    try:
        if run_with_budget(lambda p, g: same_answer_or_family(p, g, question, policy), pred, gold):
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
    split_tokens = _split_grouped_digits(tokens)
    value = _parse_parts(split_tokens) or _parse_or_none(split_tokens)
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


def _split_grouped_digits(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with `1,234` in brackets as two items."""
    split_tokens: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[", r"\{") - token.is_sign(")", "]", r"\}")
        is_split = token.kind == "num" and depth > 0
        first, *others = token.text.split(",") if is_split else [token.text]
        split_tokens.append(token._replace(text=first))
        for part in others:
            split_tokens += [Token("op", ","), Token("num", part)]
    return split_tokens


def _plain_number(text: str) -> Fraction | int:
    text = text.replace(",", "")
    return Fraction(text) if "." in text else int(text)


# --- parts and statements

#: Marks of the parts of an answer.
_PART_MARKS = ("a b c d e f".split(), "1 2 3 4 5 6".split(), "i ii iii iv v vi".split())


def _parse_parts(tokens: Sequence[Token]) -> Node | None:
    """Return `(a) 5, (b) 7` as a list in the order of its marks; None without marks of parts."""
    if not (tokens[0].is_sign("(") and tokens[2 % len(tokens)].is_sign(")")):
        return None
    starts = [
        at
        for at, sign in enumerate(tokens[:-2])
        if sign.is_sign("(") and tokens[at + 2].is_sign(")")
        if not at
        or sign.follows_space
        or tokens[at + 1].kind == "num"
        or tokens[at - 1].text in ",;"
    ]
    marks = [tokens[at + 1].low for at in starts]
    if len(marks) < 2 or sorted(marks) not in [each[: len(marks)] for each in _PART_MARKS]:
        return None
    parts: dict[str, Node | None] = {}
    for mark, start, stop in zip(marks, starts, [*starts[1:], len(tokens) - 1], strict=True):
        end = stop - tokens[stop - 1].is_sign(",", ";", ".")
        parts[mark] = _parse_or_none([*tokens[start + 3 : end], tokens[-1]])
    ordered = [part for mark in sorted(marks) if (part := parts[mark])]
    if len(ordered) < len(marks):
        return None
    if all(map(is_equation, ordered)):
        return ("list", *ordered)
    return ("list", *(("rel", "=", ("sym", f"part {i}"), part) for i, part in enumerate(ordered)))


_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_MARKED = rf"[{_CIRCLED}]|[(（]\d\d?[)）]"
_NUMBERS = re.compile(rf"{_MARKED}|\d{{1,2}}")
_JOINTS = re.compile(r"[\s,，、;；$和与及{}]|and|\\text")


def _same_statements(pred: str, gold: str) -> bool | None:
    """Whether two texts number the same statements; None if neither marks numbers as ①③ or (1)(3).

    A gold whose numbers do not ascend is an order.
    """
    sides = [_JOINTS.sub(" ", side) for side in (pred, gold) if len(side) < MAX_DIGITS]
    marks = [re.sub(rf"(?:{_MARKED})\s*", "#", side).strip() for side in sides]
    is_marked = (
        len(sides) == 2
        and {"#"} in map(set, marks)
        and (marks[0] != "#" or _CIRCLED.find(pred.strip("$ ")) >= 0)
    )
    if not is_marked or any(_NUMBERS.sub("", side).strip() for side in sides):
        return None
    own, other = (
        [_CIRCLED.find(each) + 1 or int(each.strip("()（）")) for each in _NUMBERS.findall(side)]
        for side in sides
    )
    return (sorted(own) if other == sorted(other) else own) == other
