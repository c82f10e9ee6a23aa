"""Whether two answers are equal: a ladder of rungs, cheapest first.

| rung | settles |
|---|---|
| `text` | the same text, up to spacing and TeX's decoration |
| `number` | both are plain numbers: exact |
| `words` | one of them is no mathematics: the same words |
| `structure` | lists, sets, tuples, intervals, relations, matrices, compared part by part; their atoms and single values by exact arithmetic, rounding, and evaluation at fixed points |

The policy is in docs/answers.md. No rung runs longer than the static limits of `latex.tokens` and
`evaluate` allow, and none depends on anything but the two texts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from rewardkit.answers.budget import TooMuchWorkError, bounded
from rewardkit.answers.latex.grammar import parse
from rewardkit.answers.latex.tokens import MAX_DIGITS, UnreadableError
from rewardkit.answers.latex.tree import Node
from rewardkit.answers.normalize import clean, words
from rewardkit.answers.number import AMBIGUOUS, read_number
from rewardkit.answers.structure import several, structure_equal

Rung: TypeAlias = Literal["text", "number", "words", "structure"]
Outcome: TypeAlias = Literal["equal", "different", "ambiguous", "unreadable"]

#: Longest answer, in characters, that is looked at.
MAX_CHARS: Final = 4096
#: Longest sentence, in characters, that may state a number; a problem's text is longer.
MAX_SENTENCE: Final = 160
#: In longer texts, in characters of both, a comma is not read in a second way.
LONG_LIST: Final = 800

_PLAIN = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
_TEXT_WRAP = re.compile(r"\\(?:text\w*|mathrm|mbox|mathbf|operatorname)(?=\s*\{)|[{}$]")
_SIGNS = re.compile(r"[\\^_=+*/!'<>|\[\]]")
_BRACKET = re.compile(r"[(\[{]")
_WORDY = re.compile(r"(?:\\text\w*\s*\{[^{}\\]*\}|[A-Za-z'.\s-])+")
_DATE = re.compile(
    r"\b(?:january|february|march|april|june|july|august|september|october|november|december"
    r"|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec)\b|\bmay \d|\d may\b"
    r"|\d{4}[-/]\d\d?[-/]\d|\d[:.]\d\d ?[ap]\.?m|[年月日]",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"[0-2]?\d:[0-5]\d", re.ASCII)
_OPPOSITES = re.compile(r"\b(?:even|odd|positive|negative)\b")
_QUESTION = re.compile(
    r"[?？]\W*$|^\W*(?:let|find|what|how|determine|compute|calculate|evaluate|suppose|given|if)\b",
    re.IGNORECASE,
)
_SIGN_OR_WORD = re.compile(r"[\\^_{}=+*/]|(?<![A-Za-z])[A-Za-z]{2,}")
_LETTER = re.compile(r"(?<!\\)(?<![A-Za-z])[A-Za-z]")
_SPACING = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[,;:! ]|[\s$]")


class Verdict(NamedTuple):
    """What the ladder said, and the rung that said it.

    `ambiguous`: the answer states several values where one is asked for. `unreadable`: it is over
    a limit or no expression we know, and its words are not those of the gold.
    """

    outcome: Outcome
    rung: Rung


def equal(pred: str, gold: str) -> bool:
    """Whether `pred` and `gold` state the same answer."""
    return compare(pred, gold).outcome == "equal"


def compare(pred: str, gold: str) -> Verdict:
    """The verdict on a predicted answer against a gold answer, both as bare text."""
    if pred == gold:
        return Verdict("equal", "text")
    if len(pred) + len(gold) < MAX_DIGITS and _PLAIN.fullmatch(pred) and _PLAIN.fullmatch(gold):
        same = _plain_number(pred) == _plain_number(gold)
        if same or "." not in pred + gold:
            return Verdict("equal" if same else "different", "number")
    if len(pred) > MAX_CHARS or len(gold) > MAX_CHARS:
        return Verdict("unreadable", "text")
    return _compare(pred, gold)


@lru_cache(maxsize=4096)
def _compare(pred: str, gold: str) -> Verdict:
    """The slow rungs. Cached, because rollouts of one prompt repeat their answers."""
    if (said := _as_text(pred, gold)) is not None:
        return said
    if _DATE.search(pred) or _DATE.search(gold):
        return _words(pred.replace(".", ""), gold.replace(".", ""))
    if _PLAIN.fullmatch(gold) and _is_prose(pred):
        return _sentence(pred, gold)
    for commas_group in (True, False):
        trees = read(pred, commas_group=commas_group), read(gold, commas_group=commas_group)
        verdict = _structure(*trees) if None not in trees else _words(pred, gold)
        if verdict.outcome == "equal" or "," not in pred + gold or len(pred + gold) > LONG_LIST:
            break
    if verdict.outcome == "unreadable":
        verdict = _sentence(pred, gold)
    if (
        verdict.outcome != "equal"
        and _PLAIN.fullmatch(gold)
        and "." in gold
        and _COMMA.search(pred)
        and not _BRACKET.search(pred)
    ):
        return _sentence(_COMMA.sub(".", pred), gold)
    return verdict


def _as_text(pred: str, gold: str) -> Verdict | None:
    """What the texts alone settle."""
    if bare(pred) == bare(gold) != "":
        return Verdict("equal", "text")
    if _WORDY.fullmatch(pred) and _WORDY.fullmatch(gold) and words(pred) == words(gold) != "":
        return Verdict("equal", "words")
    if _opposed(pred, gold):
        return Verdict("different", "words")
    if _CLOCK.fullmatch(pred) and _CLOCK.fullmatch(gold):
        return Verdict("equal" if pred.lstrip("0") == gold.lstrip("0") else "different", "words")
    return None


def read(text: str, *, commas_group: bool = True) -> Node | None:
    """The tree of an answer, None if it is not read as mathematics."""
    try:
        return parse(clean(text), commas_group=commas_group)
    except (UnreadableError, RecursionError):
        return None


def bare(text: str) -> str:
    """The text without spaces and without TeX that only arranges."""
    return _SPACING.sub("", text).removesuffix(".")


def _plain_number(text: str) -> Fraction | int:
    text = text.replace(",", "")
    return Fraction(text) if "." in text else int(text)


def _structure(pred: Node | None, gold: Node | None) -> Verdict:
    if pred is None or gold is None:
        return Verdict("unreadable", "structure")
    try:
        same = bounded(structure_equal, pred, gold)
        too_many = not same and several(pred) and not several(gold)
    except (TooMuchWorkError, RecursionError):
        return Verdict("unreadable", "structure")
    return Verdict("equal" if same else "ambiguous" if too_many else "different", "structure")


def _opposed(pred: str, gold: str) -> bool:
    """Whether both say where they hold, in other words: `2^n for even n`, `2^n for odd n`."""
    p, g = _OPPOSITES.findall(pred), _OPPOSITES.findall(gold)
    return bool(p and g) and set(p) != set(g)


def _is_prose(text: str) -> bool:
    """Two words or more, and no sign of mathematics."""
    found = _SIGN_OR_WORD.findall(text)
    return len(found) >= 2 and all(len(part) > 1 for part in found)


def _sentence(pred: str, gold: str) -> Verdict:
    """A number that is said in a sentence, where the gold is nothing but a number."""
    if len(pred) > MAX_SENTENCE or _QUESTION.search(pred):
        return Verdict("unreadable", "words")
    asked = read_number(clean(gold)) if not _LETTER.search(clean(gold)) else None
    if asked is None or asked is AMBIGUOUS:
        return Verdict("unreadable", "words")
    value = read_number(clean(pred))
    if value is None or value is AMBIGUOUS:
        return Verdict("unreadable" if value is None else "ambiguous", "number")
    return Verdict("equal" if value == asked else "different", "number")


def _words(pred: str, gold: str) -> Verdict:
    if _SIGNS.search(_TEXT_WRAP.sub("", pred)) or _SIGNS.search(_TEXT_WRAP.sub("", gold)):
        return Verdict("unreadable", "words")
    same = words(pred) == words(gold) != ""
    return Verdict("equal" if same else "unreadable", "words")
