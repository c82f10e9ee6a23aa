r"""Tokens -> folded tokens: what is left of a text when typography is taken off.

Two texts with the same folded tokens are one answer set in two ways. Nothing is left out that a
reader would miss: only braces around one token, blanks, fonts, and the full stop at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewardkit.answers.parsing.tokens import Token, UnreadableError, tokenize
from rewardkit.answers.parsing.units import UNITS

#: What is folded of a text: its tokens' texts, in order.
FoldedTokens = tuple[str, ...]

_ARTICLES = frozenset({"a", "an", "the"})
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_END_SIGNS = frozenset({".", ",", ";", ":"})
_LETTERS = frozenset({"word", "text", "han"})


def fold(tokens: Sequence[Token]) -> FoldedTokens:
    """The folded tokens of a whole text, `end` left out."""
    parts: list[str] = []
    depth = 0
    for token in tokens:
        depth += token.is_sign("(", "[", r"\{") - token.is_sign(")", "]", r"\}")
        digits = _UNBRACED_DIGITS.get(parts[-1], 0) if parts and token.kind == "num" else 0
        if digits and len(token.text) > 1:
            parts += [*token.text[:digits], *([token.text[digits:]] if token.text[digits:] else [])]
        elif token.text == r"\circ" and parts[-1:] == ["^"]:
            parts[-1] = r"\degree"
        elif token.kind != "end":
            parts.append(token.text if token.kind == "num" and depth > 0 else _fold_token(token))
    folded = _without_end(_without_braces(_without_end(parts)))
    return tuple(_SAME_SIGNS.get(part, part) for part in folded)


def _without_end(parts: list[str]) -> list[str]:
    while parts and parts[-1] in _END_SIGNS:
        parts.pop()
    return parts


def canonical_spelling(text: str) -> str:
    """One text for all the ways to set an answer; itself where it is over a limit or all dress."""
    try:
        folded = fold(tokenize(text.strip()))
    except UnreadableError:
        folded = ()
    return " ".join(folded) or text.strip()


def fold_words(tokens: Sequence[Token]) -> FoldedTokens | None:
    """The folded words of a text that is nothing but words: without case, articles, stops and quotes.

    None where it holds anything else, or only single letters, whose case matters.
    """
    words = [fold_case(t.text) for t in tokens if t.kind in _LETTERS]
    if not _MONTHS.isdisjoint(words):  # a date is its words and numbers
        return tuple(fold_case(t.text) for t in tokens if t.kind in (*_LETTERS, "num"))
    others = {t.text for t in tokens if t.kind not in _LETTERS and t.kind != "end"}
    if not any(len(word) > 1 for word in words) or not others <= set(".,!'\"-;"):
        return None
    if any(len(word) == 1 and word != "a" for word in words):
        return tuple(words)  # names, of which one may be `a`
    return tuple([word for word in words[:-1] if word not in _ARTICLES] + words[-1:])


def fold_case(word: str) -> str:
    """A word without its case; a name or a symbol, `Co`, keeps it."""
    low = word.casefold()
    mixed = not (word[1:].islower() or word.isupper())
    unspoken = low.isascii() and not set("aeiouy") & set(low)
    short = len(word) <= 2 and low not in ("no", "ok", "if", "is", "a", "an", "it", "to")
    return word if mixed or unspoken or short else low


def _fold_token(token: Token) -> str:
    if token.kind in ("text", "word"):
        long = len(token.text) > (2 if token.kind == "text" else 4)
        is_word = long and token.text[1:].islower() and token.text not in UNITS
        return token.text.casefold() if is_word else token.text  # MPa is not mPa, Mgh not mgh
    if token.kind == "num":
        return token.text.replace(",", "")
    return token.text


def _without_braces(parts: list[str]) -> list[str]:
    """Braces around one sign, around primes, around braces and around everything say nothing."""
    partner: dict[int, int] = {}
    open_braces: list[int] = []
    unmatched: set[int] = set()
    for place, part in enumerate(parts):
        if part == "{":
            open_braces.append(place)
        elif part == "}" and open_braces:
            partner[open_braces.pop()] = place
        elif part == "}":
            unmatched.add(place)
    dropped = unmatched | set(open_braces)
    first, last = 0, len(parts) - 1
    while partner.get(first) == last:
        dropped |= {first, last}
        first, last = first + 1, last - 1
    for start, end in partner.items():
        inside = set(parts[start + 1 : end])
        if end - start <= 2 or inside == {"'"} or partner.get(start + 1) == end - 1:
            dropped |= {start, end}
        if inside == {"'"} and parts[start - 1] == "^":
            dropped.add(start - 1)
    return [part for place, part in enumerate(parts) if place not in dropped]


#: How many digits of a number commands take where no brace stands behind them.
_UNBRACED_DIGITS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1}
_SAME_SIGNS = {r"\surd": r"\sqrt", r"\mid": "|", r"\langle": "(", r"\rangle": ")"}
