r"""The words of a text, as overlap and near-duplicates compare them.

What does not change a problem goes, what does stays:

- Case and Unicode's compatibility forms go (NFKC, then casefold): full-width digits are digits.
- Punctuation, brackets, dollars and subscript marks go. So do LaTeX's commands of layout
  (`\left`, `\text`, `\quad`) and signs of multiplication: `2*3`, `2\cdot 3` and `2\times 3` are
  the words 2, 3.
- Other LaTeX commands are words like any other: `\sin x` is `sin x`.
- Every other operator is a word: `x+1` is not `x-1`, nor is `9!` 9, nor `x^2` x with an index 2.
  Spellings of one operator are one word: `\le`, `\leq` and the sign itself. A hyphen between two
  words of two letters or more is punctuation.
- Digits and letters are words apart, so `2x` is `2 x`.
- A Chinese or Japanese character is a word by itself: nothing there separates words.
"""

from __future__ import annotations

import re
import unicodedata

#: Commands that change how a formula looks and not what it says; `cdot` and `times` are here
#: because a product is often written without a sign.
_LAYOUT = re.compile(
    r"\\(?:left|right|bigg?[lrm]?|displaystyle|textstyle|limits|quad|qquad|hspace|vspace|phantom"
    r"|text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|it|rm|sf|tt|bb|cal|frak|scr|op)|operatorname|mbox"
    r"|emph|boldsymbol|cdot|times|begin|end)(?![a-z])"
    r"|\^(?=\{?\\circ(?![a-z]))"  # degrees: what a Unicode sign does not have
)

#: Han (with its extensions), kana and their marks, and the compatibility forms NFKC leaves.
_CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

#: A hyphen or dash outside a word: `x-y` has a minus, `two-digit` has none.
_MINUS = r"(?<![^\W\d_]{2})[-\u2013\u2212]|[-\u2013\u2212](?![^\W\d_]{2})"

#: Arrows and mathematical operators without the dots and asterisks that mean a product.
_SIGNS = (
    r"+/^=<>!|%\u00ac\u00b0\u00b1\u00f7\u2044\u2190-\u2211\u2213-\u2216\u221a-\u22c3\u22c8-\u22ff"
)

_WORD = re.compile(rf"[^\W\d_{_CJK}]+|\d+|[{_CJK}]|[{_SIGNS}]|{_MINUS}")

#: Signs and commands that say the same, under one name.
_SAME = {
    "leq": "le", "leqslant": "le", "\u2264": "le", "\u2a7d": "le",
    "geq": "ge", "geqslant": "ge", "\u2265": "ge", "\u2a7e": "ge",
    "neq": "ne", "\u2260": "ne", "lt": "<", "gt": ">",
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom",
    "\u00b1": "pm", "\u00b0": "circ", "\u00f7": "/", "div": "/", "\u2044": "/", "\u221a": "sqrt",
    "\u2220": "angle", "\u2261": "equiv", "\u2208": "in", "\u221e": "infty", "\u2211": "sum",
    "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "\u2223": "|",
    "\u2013": "-", "\u2212": "-",
}  # fmt: skip

#: Marks in a row that are kept. Putting marks into their order takes the square of their number,
#: so Unicode cuts longer rows as well (UAX 15, stream-safe text format).
_MARKS = 30
_LONG_ROW = re.compile(r"[^\x00-\x7f]{31}")


def split_words(text: str) -> list[str]:
    """The words of a text in their order; never raises, and takes time linear in its length.

    Args:
        text: anything, lone surrogates too (they are no words).
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _stream_safe(text))
    text = text.casefold()
    if "\\" in text:  # the commands are in lower case now, whatever they were
        text = _LAYOUT.sub(" ", text)
    return [_SAME.get(word, word) for word in _WORD.findall(text)]


def _stream_safe(text: str) -> str:
    """The text with no more than `_MARKS` combining marks in a row."""
    if not _LONG_ROW.search(text):
        return text
    kept, row = [], 0
    for character in text:
        row = row + 1 if unicodedata.combining(character) else 0
        if row <= _MARKS:
            kept.append(character)
    return "".join(kept)
