r"""Reads the one number that a short answer states, exactly.

An answer such as `$1,000.00`, `**18** dollars.` or `\frac{3}{4}` states one number; `18 or 20`,
`5 + 3` and `3,4` state several and are ambiguous. Units and currency are ignored, never
converted: `40%` is 40. Values are `Fraction`s, so that `0.1` is one tenth and integers beyond
2^53 stay exact.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

#: Longest answer, in characters, that is read. The longest gold of MATH-500 has 159.
MAX_CHARS: Final = 256
#: Largest power of ten in scientific notation. Beyond it a number is not read.
MAX_EXPONENT: Final = 999

#: Stands for an answer that states more than one number.
AMBIGUOUS: Final = object()

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)"
_NUMBER = re.compile(
    rf"""
    (?<![A-Za-z_\d.])
    (?P<sign>[-+]?)\ ?[$€£¥]?\ ?(?P<sign_after_currency>-?)
    (?P<number>{_DIGITS}(?:\.\d+)?|\.\d+)
    (?:e(?P<exponent>[-+]?\d+)(?!\w))?
    (?:\ ?/\ ?(?P<denominator>{_DIGITS})(?![\d.]))?
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_JOINING = frozenset({"or", "and", "plus", "minus", "times", "over", "或", "或者", "和"})
_RANGE = re.compile(r"\s*(?:to\b|到|至)")
_OPERATOR = re.compile(r"[+*/^=<>~|]|(?<!\w)-|-(?!\w)|\\(?:times|cdot|div)")
_FRAC = re.compile(r"\\[dtc]?frac\{?(\d+)\}?(?:\{(\d+)\}|(\d))", re.ASCII)
_THIN_SPACE = re.compile(r"(?<=\d)(?:\{,\}|\\[,!])(?=\d{3}(?!\d))", re.ASCII)
_MARKDOWN = re.compile(r"(?<![\d*_])[*_`]+|[*_`]+(?![\d*_])", re.ASCII)
_TEX_NOISE = re.compile(
    r"\\(?:text|mathrm|mbox|textbf|mathbf|boxed)(?=\{)|\\[!,;: ]|[{}]|\\(?=[$%])"
)
_LOOKALIKES = str.maketrans(
    "０１２３４５６７８９．，＋－−–﹣％＄￥／",  # full width, and the minus signs in use
    "0123456789.,+----%$¥/",
)


def read_number(text: str) -> Fraction | object | None:
    """The number that `text` states; `AMBIGUOUS` if it states several; None if it states none.

    A number followed by words and only then by others is the answer: `26 inches in 13 years` is
    26. Joined by `or`, `and`, a comma or an operator they are several: `18 or 20`.
    """
    if text.isdecimal() and text.isascii() and len(text) <= MAX_CHARS:
        return Fraction(int(text))
    if len(text) > MAX_CHARS:
        return None
    text = _plain(text)
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    if _inside_expression(matches[0]):
        return AMBIGUOUS
    if len(matches) > 1 and not (_leads(*matches[:2]) or _repeat(matches)):
        return AMBIGUOUS
    return _value(matches[0])


def _leads(first: re.Match[str], second: re.Match[str]) -> bool:
    """Whether the first number opens the text and words part it from the second."""
    between = _between(first, second)
    words = set(_WORD.findall(between.lower()))
    if first.string[: first.start()].strip() or not words or not words.isdisjoint(_JOINING):
        return False
    return not _OPERATOR.search(between) and not _RANGE.match(between)


def _repeat(matches: list[re.Match[str]]) -> bool:
    """Whether all numbers are the same one, said again in words."""
    parted = not any(map(_OPERATOR.search, map(_between, matches, matches[1:])))
    return parted and len({_value(match) for match in matches}) == 1


def _between(first: re.Match[str], second: re.Match[str]) -> str:
    """What stands between two numbers, the second's sign included."""
    return first.string[first.end() : second.start("number")]


def _plain(text: str) -> str:
    text = _THIN_SPACE.sub("", text.translate(_LOOKALIKES))
    return _MARKDOWN.sub("", _TEX_NOISE.sub(" ", _FRAC.sub(_inline_fraction, text)))


def _inline_fraction(match: re.Match[str]) -> str:
    return f"{match[1]}/{match[2] or match[3]}"


def _inside_expression(match: re.Match[str]) -> bool:
    """Whether an operator beside the number makes it a part of something unevaluated."""
    before, after = match.string[: match.start()].rstrip(), match.string[match.end() :].lstrip()
    return before.endswith(("^", "*", "/", "\\sqrt")) or after.startswith(("^", "*", "/", "!", "_"))


def _value(match: re.Match[str]) -> Fraction | None:
    exponent = (
        int(match["exponent"] or 0) if len(match["exponent"] or "") <= 4 else MAX_EXPONENT + 1
    )
    denominator = int((match["denominator"] or "1").replace(",", ""))
    if abs(exponent) > MAX_EXPONENT or denominator == 0:
        return None
    value = Fraction(match["number"].replace(",", "")) * Fraction(10) ** exponent / denominator
    return -value if (match["sign"] == "-") != (match["sign_after_currency"] == "-") else value
