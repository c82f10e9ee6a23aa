r"""Reads the one number that a short answer states, exactly.

`$1,000.00`, `**18** dollars.`, `10 + 8 = 18` and `\frac{3}{4}` state one number; `18 or 20`, `5 + 3` and
`3,4` several. Only words, currency, markup and punctuation may surround a number: `5\pi`, `2x`, `not 5` and
`5 million` do not state 5. Units and currency are ignored, never converted: `40%` is 40.
"""

import re
from fractions import Fraction
from itertools import pairwise

from rewardkit.answers import doubt
from rewardkit.answers.parsing.vocabulary import DISJUNCTIONS, HALF_WIDTH, split_words

MAX_CHARS = 256  # most characters of an answer. The longest gold of MATH-500 has 159.
MAX_EXPONENT = 999  # largest power of ten in scientific notation
AMBIGUOUS = object()  # marks an answer that states more than one number
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)"
_NUMBER = re.compile(
    rf"(?ai)(?<![A-Za-z_\d.])(?P<sign>[-+]?) ?[$€£¥]? ?(?P<sign_after_currency>-?)"
    rf"(?P<number>{_DIGITS}(?:\.\d+)?|\.\d+)(?:e(?P<exponent>[-+]?\d+)(?!\w))?"
    rf"(?: ?/ ?(?P<denominator>{_DIGITS})(?![\d.]))?"
)
_HYPHEN = re.compile(r"(?:^|(?<=[^\W_]))-(?=[^\W\d_])|(?<=[^\W_])-$")
_WORD = re.compile(r"[^\W\d_]+")
_RANGE = re.compile(r"\s*(?:to\b|[到至,;，；])")
_FRAC = re.compile(r"\\[dtc]?frac\{?(-?\d+)\}?(?:\{(\d+)\}|(\d))", re.ASCII)
_MIXED = re.compile(r"(?<![\d.])(\d{1,50})\s*\\[dtc]?frac\{(\d{1,50})\}\{(\d{1,50})\}", re.ASCII)
_THIN_SPACE = re.compile(r"(?<=\d)(?:\{,\}|\\[,!])(?=\d{3}(?!\d))", re.ASCII)
_MARKUP = re.compile(r"<[^<>]{0,40}>|(?<![\d*_])[*_`]+|[*_`]+(?![\d*_])", re.ASCII)
_TEX_MARKUP = re.compile(
    r"\\(?:text|mathrm|mbox|textbf|mathbf|boxed)(?=\{)|\\[!,;: ()\[\]]|[{}]|\\(?=[$%])"
)
#: Signs, besides words, that may surround a number.
_NEUTRAL_SIGNS = frozenset(" \t\n.,;:!?()'\"#~&@%$€£¥°…。，；：！？（）|")
#: Words that bound a number, join two numbers, or change the number beside them.
_BOUND_WORDS = doubt.BOUNDS | {"or"}
_JOINING_WORDS = DISJUNCTIONS | doubt.BOUNDS | doubt.OPERATIONS | split_words("and if else")
_JOINS = re.compile("[或和与及加减乘除]|または|もしくは|또는|혹은")
_CHANGING_WORDS = doubt.DENIALS | doubt.OPERATIONS | split_words(
    "isn hundred thousand million billion trillion dozen squared cubed ln log lg exp sin cos tan sqrt pi"
)  # fmt: skip
#: Words before an equation that leave its answer open or retract it.
_HEDGES = doubt.DENIALS | doubt.HEDGES | {"or", "either"}
_CHINESE_HEDGE = re.compile(f"或|不是|{doubt.CJK_WRONG}|{doubt.CJK_HEDGE}")
#: Chinese characters that change or bound the number beside them.
_CHANGING_CHARS = frozenset("不负非或百千万亿于至超错误")
#: Single letters that are a unit or a word; any other letter is a name, as in `2x` and `f(5)`.
_UNIT_LETTERS = frozenset("aCFgGhIJlLmMNsVW")

#: Most characters of a sentence that may state a number; a problem's text is longer.
MAX_SENTENCE = 160
_EQUALS = re.compile(r"(?<![<>!])=")
_FORMULA_SIGN = re.compile(r"[\\^_{}+*/<>]|[a-z]\d|\d[a-z]")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
#: Start of a sentence that states a number: the number itself, or these words and names before it.
_STATEMENT_LEAD = re.compile(
    r"[\s\"'(*$]{0,8}(?:(?:(?i:therefore|thus|hence|so|then|there|it|he|she|they|we|you|this|that|is|are|was|were|be"
    r"|will|would|has|have|had|gets?|got|makes?|made|takes?|took|needs?|needed|spends?|spent|pays?|paid"
    r"|saves?|saved|earns?|earned|sells?|sold|buys?|bought|costs?|eats?|ate|reads?|uses?|used|gives?"
    r"|gave|left|a|an|the|total|of|altogether|all|in|sum|amount|number|answer|cost|price|profit|and"
    r"|can|must|should|also|now|still|only|equals?|approximately|about|[a-z]{1,20}(?:ed|ing))"
    r"|[A-Z][a-z]{1,20}(?:'s)?)[\s,]{1,4}){0,12}"
    r"[-$€£¥]{0,3}\s{0,3}\d"
    r"|[^\W\d不非没无未至超第a-zA-Z]{0,12}[共有是为得]\s?\d"
)
#: Words and signs that leave open whether a number in a sentence is the answer.
_OPEN_WORDS = (doubt.LABEL_DOUBTS | doubt.RETRACTIONS | doubt.MONTHS) - {"used"} | split_words(
    "or ou oder или либо lub either alternatively otherwise where but if assuming given what how over exceed"
    " exceeds square reciprocal multiple divisible base bound discard reject fail contradict sept"
) | {month[:3] for month in doubt.MONTHS}  # fmt: skip
_CHINESE_MODIFIERS = "|".join(sorted({*doubt.CHINESE_NUMBER_MODIFIERS} - {*"和与及到"}))
_CHINESE_OPEN = (
    r"[?？年月日]|不是|并非|错误|不等|舍去|增根|不符|余数|倍是|中的?\s?\d"
    rf"|\d\s*[^\W\d_]{{0,2}}\s?(?:から|{_CHINESE_MODIFIERS})"
)
_OPEN_PHRASES = (
    r"up to|at least|at most|out of|less \d+|too (?:small|large|big|high|low)|\d ?[ap]\.?m"
    r"|and (?:more|up|above|over|below|less)|(?:and|for) (?:one|two|three|four|five|six|seven|eight|nine|ten)"
    r"|(?:problem|step|question|exercise|see|case|part|page|figure) \d+|\d[\d.,]*%?(?: [a-z]+)? (?:of|by) \d+"
)
_NOT_STATED = re.compile(rf"{_CHINESE_OPEN}|\b(?:{_OPEN_PHRASES})\b", re.IGNORECASE)


def read_number(text: str) -> Fraction | object | None:
    """Return the number that `text` states; `AMBIGUOUS` for several, None without any.

    The first number counts if words separate it from the others: `26 inches in 13 years` is 26.
    Numbers joined by `or`, `and`, a comma or an operator are several: `18 or 20`.
    """
    if text.isdecimal() and text.isascii() and len(text) <= MAX_CHARS:
        return Fraction(int(text))
    if len(text) > MAX_CHARS:
        return None
    left, equals, text = _strip_markup(text).rpartition("=")
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    between = [text[a.end() : b.start("number")] for a, b in pairwise(matches)]
    before, after = text[: matches[0].start()], text[matches[-1].end() :]
    words_before = {word.casefold() for word in _WORD.findall(before)}
    if not all(map(_is_neutral_text, (before, after, *between))) or words_before & _BOUND_WORDS:
        return AMBIGUOUS
    if between and not (
        _is_first_number_stated(before, between[0]) or len({_value(m) for m in matches}) == 1
    ):
        return AMBIGUOUS
    value = _value(matches[0])
    return AMBIGUOUS if equals and _contradicts(left, value) else value


def _strip_markup(text: str) -> str:
    text = _THIN_SPACE.sub("", text.translate(HALF_WIDTH).replace("￥", "¥"))
    text = _MIXED.sub(lambda m: f"{int(m[1]) * int(m[3]) + int(m[2])}/{m[3]}", text)
    text = _FRAC.sub(lambda m: f"{m[1]}/{m[2] or m[3]}", text)
    return _MARKUP.sub(" ", _TEX_MARKUP.sub(" ", text))


def _is_neutral_text(text: str) -> bool:
    if not all(char.isalpha() or char in _NEUTRAL_SIGNS for char in _HYPHEN.sub("", text)):
        return False
    if not _CHANGING_CHARS.isdisjoint(text):
        return False
    words = _WORD.findall(text)
    beside = {word for word in words[:1] + words[-1:] if len(word) == 1 and word.isascii()}
    return beside <= _UNIT_LETTERS and not any(word.casefold() in _CHANGING_WORDS for word in words)


def _contradicts(left: str, value: Fraction | None) -> bool:
    """Whether the text before the last `=` hedges, or is a different number: `4 = 0`."""
    if _CHINESE_HEDGE.search(left) or not _HEDGES.isdisjoint(_WORD.findall(left.casefold())):
        return True
    side = _NUMBER.fullmatch(left.rpartition("=")[2].strip(" $"))
    return side is not None and _value(side) != value


def _is_first_number_stated(before: str, between: str) -> bool:
    """Whether the text begins with the first number and words separate it from the second."""
    words = {word.casefold() for word in _WORD.findall(between) if len(word) > 1}
    is_joined = _JOINS.search(between) or _RANGE.match(between) or words & _JOINING_WORDS
    return not (before.strip() or not words or is_joined)


def _value(match: re.Match[str]) -> Fraction | None:
    digits = match["exponent"] or "0"
    exponent = int(digits) if len(digits) <= 4 else MAX_EXPONENT + 1
    denominator = int((match["denominator"] or "1").replace(",", ""))
    if abs(exponent) > MAX_EXPONENT or denominator == 0:
        return None
    value = Fraction(match["number"].replace(",", "")) * Fraction(10) ** exponent / denominator
    return -value if (match["sign"] == "-") != (match["sign_after_currency"] == "-") else value


def number_of_sentence(text: str) -> Fraction | object | None:
    """Return the number that a sentence states; `AMBIGUOUS` for several, None without any.

    A sentence states a number if it begins with it (`12 apples are left`), if only the words of a
    statement precede it (`there are 12`), or if an equation ends with it.
    """
    text = text.replace("不同的", "") if len(text) <= MAX_SENTENCE else ""
    has_lead = _STATEMENT_LEAD.match(text) and not _FORMULA_SIGN.search(text)
    if not has_lead and not _EQUALS.search(text):
        return None
    start = next((index for index, char in enumerate(text) if char.isdigit()), 0)
    before, after = (_PLAIN_WORD.findall(part.casefold()) for part in (text[:start], text[start:]))
    is_stated = (
        doubt.STATEMENT_BLOCKERS.isdisjoint(before)
        and doubt.SCALING_WORDS.isdisjoint(after[:3])
        and _OPEN_WORDS.isdisjoint(before + after)
        and not _NOT_STATED.search(text)
    )
    return read_number(text) if is_stated else None
