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

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from rewardkit.answers import doubt
from rewardkit.answers.chinese_numerals import chinese_to_digits
from rewardkit.answers.evaluate import TooMuchWorkError, run_with_budget
from rewardkit.answers.families import (
    as_congruence,
    parameters,
    renamings,
    same_family,
    same_up_to_a_constant,
)
from rewardkit.answers.number import AMBIGUOUS, read_number
from rewardkit.answers.parsing.grammar import parse
from rewardkit.answers.parsing.tokens import MAX_DIGITS, Token, UnreadableError, tokenize
from rewardkit.answers.parsing.tree import Node, substitute, subtrees, symbols
from rewardkit.answers.parsing.typography import fold, fold_words
from rewardkit.answers.relations import equation_value, is_equation
from rewardkit.answers.scalar import STRICT, Policy
from rewardkit.answers.simplification import has_same_form, leaves_arithmetic, repeats_question
from rewardkit.answers.type_rules import same_answer, states_several_values, value_type

#: The steps of a comparison, which `rewardkit explain` calls rungs.
Rung: TypeAlias = Literal["text", "number", "words", "value"]
Outcome: TypeAlias = Literal["equal", "different", "ambiguous", "unreadable"]

#: Most characters of an answer.
MAX_CHARS: Final = 4096
#: Most characters of a sentence that may state a number; a problem's text is longer.
MAX_SENTENCE: Final = 160

_PLAIN_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"-?\d+,\d{1,2}|-?\d+,\d{4,}", re.ASCII)
_DATE = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b|\bmay \d|\d may\b|[年月日]",
    re.IGNORECASE,
)
_EQUALS = re.compile(r"(?<![<>!])=")
_FORMULA_SIGN = re.compile(r"[\\^_{}+*/<>]|[a-z]\d|\d[a-z]")
#: Start of a sentence that states a number: the number itself, or these words and names before it.
_STATEMENT_LEAD = re.compile(
    r"[\s\"'(*$]{0,8}(?:(?:(?i:therefore|thus|hence|so|then|there|it|he|she|they|we|you|this|that|is|are|was|were|be"
    r"|will|would|has|have|had|gets?|got|makes?|made|takes?|took|needs?|needed|spends?|spent|pays?|paid"
    r"|saves?|saved|earns?|earned|sells?|sold|buys?|bought|costs?|eats?|ate|reads?|uses?|used|gives?"
    r"|gave|left|a|an|the|total|of|altogether|all|in|sum|amount|number|answer|cost|price|profit|and"
    r"|can|must|should|also|now|still|only|equals?|approximately|about|[a-z]{1,20}(?:ed|ing))"
    r"|[A-Z][a-z]{1,20}(?:'s)?)[\s,]{1,4}){0,12}"
    r"[-$€£¥]{0,3}\s{0,3}\d"
)
_WORD = re.compile(r"[a-z']+")
#: Words and signs that leave open whether a number in a sentence is the answer.
_NOT_STATED = re.compile(
    r"[?？]|不是|并非|不等|错误|舍去|增根|不符|余数|倍是"
    r"|\d\s*(?:[折成半多倍的几]|个半|分之|次方|平方|左右|以上|以下|以内|除外|为负|进制)"
    r"|\b(?:or|either|alternatively|otherwise|could|might|may|maybe|perhaps|possibly|not|no|never|cannot|can't|isn't|besides"
    r"|except|up to|upwards|exceeds?|at least|at most|below|impossible|wrong|over|root|square|reciprocal"
    r"|multiple|divisible|loss|where|but|instead|bound|let|find|determine|compute|calculate|evaluate"
    r"|suppose|given|what|how|extraneous|invalid|discard(?:ed)?|reject(?:ed)?|ruled out|fails?"
    r"|contradicts?|too (?:small|large|big|high|low)|if|unless|assuming|less \d+|out of|(?:problem|step|question|exercise|see|case|part|page|figure) \d+"
    r"|\d ?[ap]\.?m|and (?:more|up|above|over|below|less)|\d[\d.,]*%?(?: [a-z]+)? (?:of|by) \d+"
    r"|(?:and|for) (?:one|two|three|four|five|six|seven|eight|nine|ten))\b",
    re.IGNORECASE,
)


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
    if (
        len(pred) + len(gold) < MAX_DIGITS
        and _PLAIN_NUMBER.fullmatch(pred)
        and _PLAIN_NUMBER.fullmatch(gold)
    ):
        equal_numbers = _plain_number(pred) == _plain_number(gold)
        if equal_numbers or not (
            policy.significant_digits or "." in pred + gold or "," in pred + gold
        ):
            return EqualityVerdict("equal" if equal_numbers else "different", "number")
    if len(pred) > MAX_CHARS or len(gold) > MAX_CHARS:
        return EqualityVerdict("unreadable", "text")
    return _compare(pred, gold, question, policy)


@lru_cache(maxsize=4096)
def _compare(pred: str, gold: str, question: str, policy: Policy) -> EqualityVerdict:
    """Run the slow steps. Cached, because rollouts of one prompt repeat their answers."""
    gold_answer, pred_answer = parse_answer(gold), parse_answer(pred)
    if gold_answer is None or pred_answer is None:
        return EqualityVerdict("unreadable", "text")
    if pred_answer.folded == gold_answer.folded != ():
        return EqualityVerdict("equal", "text")
    if pred_answer.words is not None and pred_answer.words == gold_answer.words:
        return EqualityVerdict("equal", "words")
    if gold_answer.value is None:
        return EqualityVerdict("unreadable", "text")
    verdict = EqualityVerdict("unreadable", "value")
    for p, g in _value_pairs(pred, pred_answer, gold, gold_answer):
        verdict = _compare_values(p, g, question, policy)
        if verdict.outcome == "equal":
            if not has_same_form(pred_answer.tokens, gold_answer.tokens) and repeats_question(
                pred_answer.tokens, p, question
            ):
                return EqualityVerdict("unreadable", "value")
            return verdict
    has_words = pred_answer.value is None or any(
        part[0] in ("text", "where") for part in subtrees(pred_answer.value)
    )
    if has_words and _PLAIN_NUMBER.fullmatch(gold.strip(" $")):
        return _compare_sentence(pred, gold.strip(" $"))
    return verdict


def _value_pairs(
    pred: str, pred_answer: ParsedAnswer, gold: str, gold_answer: ParsedAnswer
) -> Iterator[tuple[Node, Node]]:
    """Yield the pairs of trees to compare; the gold decides how an answer may be parsed."""
    if gold_answer.value is None:
        return
    if pred_answer.value is not None:
        yield pred_answer.value, gold_answer.value
    if _has_unit(gold_answer.value) or (
        pred_answer.value is not None and _has_unit(pred_answer.value)
    ):
        p, g = (
            _parse_or_none(side.tokens, letters_are_units=True)
            for side in (pred_answer, gold_answer)
        )
        if p is not None and g is not None and (p, g) != (pred_answer.value, gold_answer.value):
            yield p, g
    for side, other in ((pred_answer, gold_answer), (gold_answer, pred_answer)):
        is_group = other.value is not None and value_type(other.value) in _GROUP_TYPES
        split_tokens = _split_grouped_digits(side.tokens) if is_group else None
        value = _parse_or_none(split_tokens) if split_tokens else None
        if value is not None and other.value is not None:
            yield (value, other.value) if side is pred_answer else (other.value, value)
    if gold_answer.value[0] == "num" and "." in gold and _DECIMAL_COMMA.fullmatch(pred.strip(" $")):
        decimal = parse_answer(pred.replace(",", "."))
        if decimal and decimal.value:
            yield decimal.value, gold_answer.value


_GROUP_TYPES = frozenset({"list", "tuple", "set"})


def _has_unit(node: Node) -> bool:
    """Whether a value, or the value of an equation, has a unit."""
    value = node[-1] if is_equation(node) else node
    return value_type(value) in ("quantity", "compound")


def _compare_values(pred: Node, gold: Node, question: str, policy: Policy) -> EqualityVerdict:
    try:
        are_equal = run_with_budget(
            lambda p, g: _same_answer_or_family(p, g, question, policy), pred, gold
        )
        if are_equal and leaves_arithmetic(
            equation_value(pred, policy), equation_value(gold, policy)
        ):
            return EqualityVerdict("unreadable", "value")
        is_ambiguous = (
            not are_equal and states_several_values(pred) and not states_several_values(gold)
        )
    except (TooMuchWorkError, RecursionError):
        return EqualityVerdict("unreadable", "value")
    return EqualityVerdict(
        "equal" if are_equal else "ambiguous" if is_ambiguous else "different", "value"
    )


def _same_answer_or_family(pred: Node, gold: Node, question: str, policy: Policy) -> bool:
    if same_answer(pred, gold, policy):
        return True
    if "congruence" in (pred[0], gold[0]) and pred[0] != gold[0]:
        return same_answer(as_congruence(pred), as_congruence(gold), policy)
    vector_names = [{n for n in symbols(node) if n.startswith("vec ")} for node in (pred, gold)]
    if bool(vector_names[0]) != bool(vector_names[1]):  # one side omits the arrows of its vectors
        without_arrows = {
            ("sym", name): ("sym", name[4:]) for name in vector_names[0] | vector_names[1]
        }
        return same_answer(
            substitute(pred, without_arrows), substitute(gold, without_arrows), policy
        )
    free = parameters(gold, question)
    if not free:
        return False
    if same_up_to_a_constant(pred, gold, free):
        return True
    candidates = [pred, *renamings(pred, gold, free, question)]
    return any(
        (number and same_answer(candidate, gold, policy))
        or _is_same_family(candidate, gold, free, policy)
        for number, candidate in enumerate(candidates)
    )


def _is_same_family(pred: Node, gold: Node, free: set[str], policy: Policy) -> bool:
    if len(free) != 1 or next(iter(free))[0] not in "knml":
        return False
    if any(node[0] == "where" and (node[3] or node[5] not in ("", "Z")) for node in (pred, gold)):
        return False
    p, g = (node[1] if node[0] == "where" else node for node in (pred, gold))
    return same_family(equation_value(p, policy), equation_value(g, policy), next(iter(free)))


@lru_cache(maxsize=4096)
def parse_answer(text: str) -> ParsedAnswer | None:
    """Return the parsed answer of a text; None if the text is over a limit."""
    try:
        tokens = tokenize(text if text.isascii() else chinese_to_digits(text))
    except UnreadableError:
        return None
    split_tokens = _split_grouped_digits(tokens, everywhere=False) or tokens
    value = _parse_or_none(split_tokens)
    if value is None and _has_letters_after_number(tokens):
        value = _parse_or_none(split_tokens, letters_are_units=True)
    return ParsedAnswer(tuple(tokens), fold(tokens), fold_words(tokens), value)


def _has_letters_after_number(tokens: Sequence[Token]) -> bool:
    """Whether letters follow right after a number, as in `5 in`."""
    return any(a.kind == "num" and b.kind == "word" for a, b in pairwise(tokens))


def _parse_or_none(tokens: Sequence[Token], *, letters_are_units: bool = False) -> Node | None:
    try:
        return parse(tokens, letters_are_units=letters_are_units)
    except UnreadableError:
        return None


def _split_grouped_digits(
    tokens: Sequence[Token], *, everywhere: bool = True
) -> list[Token] | None:
    """Return the tokens with `1,234` as two items, in brackets or everywhere; None if none changes.

    In brackets a comma separates items. Outside brackets it groups digits, unless the parser refuses.
    """
    split_tokens: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[", r"\{") - token.is_sign(")", "]", r"\}")
        if token.kind != "num" or "," not in token.text or not (everywhere or depth > 0):
            split_tokens.append(token)
            continue
        first, *others = token.text.split(",")
        split_tokens.append(token._replace(text=first))
        for part in others:
            split_tokens += [Token("op", ","), Token("num", part)]
    return split_tokens if len(split_tokens) > len(tokens) else None


def _plain_number(text: str) -> Fraction | int:
    text = text.replace(",", "")
    return Fraction(text) if "." in text else int(text)


def _compare_sentence(pred: str, gold: str) -> EqualityVerdict:
    """Compare the number that a sentence states with a gold that is a plain number.

    A sentence states a number if it begins with it (`12 apples are left`), if only the words of a
    statement precede it (`there are 12`), or if an equation ends with it.
    """
    if len(pred) > MAX_SENTENCE:
        return EqualityVerdict("unreadable", "words")
    lead = _STATEMENT_LEAD.match(pred)
    if not _EQUALS.search(pred) and (lead is None or _FORMULA_SIGN.search(pred)):
        return EqualityVerdict("unreadable", "words")
    start = next((place for place, char in enumerate(pred) if char.isdigit()), 0)
    before, after = (_WORD.findall(part.casefold()) for part in (pred[:start], pred[start:]))
    is_changed = not (
        doubt.STATEMENT_BLOCKERS.isdisjoint(before)
        and doubt.SCALING_WORDS.isdisjoint(after[:3])
        and doubt.RETRACTIONS.isdisjoint(after)
    )
    if is_changed or _NOT_STATED.search(pred) or _DATE.search(pred):
        return EqualityVerdict("unreadable", "words")
    value = read_number(pred)
    if value is None or value is AMBIGUOUS:
        return EqualityVerdict("unreadable" if value is None else "ambiguous", "number")
    return EqualityVerdict("equal" if value == _plain_number(gold) else "different", "number")
