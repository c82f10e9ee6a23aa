r"""Split a text into words for the comparison of problems.

Markup that does not change a problem is removed:

- Case and Unicode's compatibility forms are removed (NFKC, then casefold): full-width digits become
  digits.
- Punctuation, brackets, dollars and subscript marks are removed. So are LaTeX's layout commands
  (`\left`, `\text`, `\quad`) and multiplication signs: `2*3`, `2\cdot 3` and `2\times 3` all have
  the words 2 and 3.
- Other LaTeX commands are words: `\sin x` has the words `sin` and `x`.
- Every other operator is a word, because `x+1` is not `x-1`, `9!` is not 9, and `x^2` is not x with
  the index 2. All spellings of an operator are one word: `\le`, `\leq` and the sign itself. A hyphen
  between two words of at least two letters is punctuation.
- A number has one spelling: `1,000` is 1000, and `\frac12` is `\frac{1}{2}`.
- Digits and letters are separate words: `2x` has the words 2 and x.
- A Chinese or Japanese character is a word, because nothing separates words in these scripts.
"""

import re
import unicodedata

#: Commands that change how a formula looks, not what it means; `cdot` and `times` are among them
#: because a product is often written without a sign.
_LAYOUT = re.compile(
    r"\\(?:left|right|bigg?[lrm]?|displaystyle|textstyle|limits|quad|qquad|hspace|vspace|phantom"
    r"|text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|it|rm|sf|tt|bb|cal|frak|scr|op)|operatorname|mbox"
    r"|emph|boldsymbol|cdot|times|begin|end)(?![a-z])"
    r"|\^(?=\{?\\circ(?![a-z]))"  # of degrees: the Unicode sign has no ^
)

_SHORT_FRACTION = re.compile(r"(\\[dt]?frac) ?(\d) ?(\d)")
_THOUSANDS = re.compile(r"(?<=\d)(?:,(?:\\!)?|\{,\}|\\,)(?=\d{3}(?!\d))")

#: Han with its extensions, kana with their marks, and compatibility forms that NFKC keeps.
_CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

#: A hyphen or dash that is not part of a word: `two-digit` has a hyphen, `x-y` has a minus.
_MINUS = r"(?<![^\W\d_]{2})[-\u2013\u2212]|[-\u2013\u2212](?![^\W\d_]{2})"

#: Arrows and mathematical operators, except the dots and asterisks that mean a product.
_SIGNS = (
    r"+/^=<>!|%\u00ac\u00b0\u00b1\u00f7\u2044\u2190-\u2211\u2213-\u2216\u221a-\u22c3\u22c8-\u22ff"
)

_WORD = re.compile(rf"[^\W\d_{_CJK}]+|\d+|[{_CJK}]|[{_SIGNS}]|{_MINUS}")

#: Signs and commands with the same meaning, mapped to one name.
_SYNONYMS = {
    "leq": "le", "leqslant": "le", "\u2264": "le", "\u2a7d": "le",
    "geq": "ge", "geqslant": "ge", "\u2265": "ge", "\u2a7e": "ge",
    "neq": "ne", "\u2260": "ne", "lt": "<", "gt": ">",
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom",
    "\u00b1": "pm", "\u00b0": "circ", "\u00f7": "/", "div": "/", "\u2044": "/", "\u221a": "sqrt",
    "\u2220": "angle", "\u2261": "equiv", "\u2208": "in", "\u221e": "infty", "\u2211": "sum",
    "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "\u2223": "|",
    "\u2013": "-", "\u2212": "-",
}  # fmt: skip

#: Maximum number of consecutive combining marks. Normalization sorts them, which takes the square
#: of their number; Unicode's stream-safe text format (UAX 15) has the same limit.
_MAX_MARKS = 30
_LONG_NON_ASCII = re.compile(r"[^\x00-\x7f]{31}")


def split_words(text: str) -> list[str]:
    """Return the words of a text in their order; never raises, and takes linear time.

    Args:
        text: any text, also with lone surrogates, which are not words.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _stream_safe(text))
    text = text.casefold()
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if "\\" in text:  # casefold has made all commands lower case
        text = _SHORT_FRACTION.sub(r"\1{\2}{\3}", text)
        text = _LAYOUT.sub(" ", text)
    words = _WORD.findall(text)
    return list(map(_SYNONYMS.get, words, words))


def _stream_safe(text: str) -> str:
    """Return the text with at most `_MAX_MARKS` consecutive combining marks."""
    if not _LONG_NON_ASCII.search(text):
        return text
    characters, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MAX_MARKS:
            characters.append(character)
    return "".join(characters)
