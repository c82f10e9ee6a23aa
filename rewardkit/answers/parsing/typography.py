r"""Tokens -> folded tokens, which do not depend on typography.

Two texts with the same folded tokens are the same answer in two typesettings. Folding removes only
what carries no meaning: braces around one token, blanks, fonts, and the full stop at the end.
"""

from collections.abc import Sequence

from rewardkit.answers.parsing.tokens import Token, UnreadableError, tokenize
from rewardkit.answers.parsing.units import UNITS
from rewardkit.answers.parsing.vocabulary import split_words

#: Texts of the folded tokens of a text, in order.
FoldedTokens = tuple[str, ...]

_ARTICLES = frozenset({"a", "an", "the"})
_MONTHS = split_words(
    "january february march april may june july august september october november december"
)
_END_SIGNS = frozenset({".", ",", ";", ":"})
_LETTERS = frozenset({"word", "text", "han"})


def fold(tokens: Sequence[Token]) -> FoldedTokens:
    """Return the folded tokens of a whole text, without the end token."""
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
    parts_left = _without_end(_without_braces(_without_end(parts)))
    return tuple(_SAME_SIGNS.get(part, part) for part in parts_left)


def _without_end(parts: list[str]) -> list[str]:
    while parts and parts[-1] in _END_SIGNS:
        parts.pop()
    return parts


def canonical_spelling(text: str) -> str:
    """Return one text for all typesettings of an answer; the text itself if it is over a limit."""
    try:
        parts_left = fold(tokenize(text.strip()))
    except UnreadableError:
        parts_left = ()
    return " ".join(parts_left) or text.strip()


def fold_words(tokens: Sequence[Token]) -> FoldedTokens | None:
    """Return the words of a text that consists of words, without case, articles and punctuation.

    None if the text holds anything else, or only single letters, whose case matters.
    """
    words = [fold_case(t.text) for t in tokens if t.kind in _LETTERS]
    if not _MONTHS.isdisjoint(words):  # the numbers of a date belong to its words
        return tuple(fold_case(t.text) for t in tokens if t.kind in (*_LETTERS, "num"))
    others = {t.text for t in tokens if t.kind not in _LETTERS and t.kind != "end"}
    if not any(len(word) > 1 for word in words) or not others <= set(".,!'\"-;"):
        return None
    if any(len(word) == 1 and word != "a" for word in words):
        return tuple(words)  # `a` may be a name here, not an article
    return tuple([word for word in words[:-1] if word not in _ARTICLES] + words[-1:])


def fold_case(word: str) -> str:
    """Return a word without its case; a name or a symbol such as `Co` keeps its case."""
    low = word.casefold()
    is_mixed_case = not (word[1:].islower() or word.isupper())
    has_no_vowel = low.isascii() and not set("aeiouy") & set(low)
    is_short = len(word) <= 2 and low not in ("no", "ok", "if", "is", "a", "an", "it", "to")
    return word if is_mixed_case or has_no_vowel or is_short else low


def _fold_token(token: Token) -> str:
    if token.kind in ("text", "word"):
        long = len(token.text) > (2 if token.kind == "text" else 4)
        is_word = long and token.text[1:].islower() and token.text not in UNITS
        return (
            token.text.casefold() if is_word else token.text
        )  # MPa differs from mPa, Mgh from mgh
    if token.kind == "num":
        return token.text.replace(",", "")
    return token.text


def _without_braces(parts: list[str]) -> list[str]:
    """Remove braces around one token, primes, other braces or everything: they carry no meaning."""
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
    dropped_places = unmatched | set(open_braces)
    first, last = 0, len(parts) - 1
    while partner.get(first) == last:
        dropped_places |= {first, last}
        first, last = first + 1, last - 1
    for start, end in partner.items():
        inside = set(parts[start + 1 : end])
        if end - start <= 2 or inside == {"'"} or partner.get(start + 1) == end - 1:
            dropped_places |= {start, end}
        if inside == {"'"} and parts[start - 1] == "^":
            dropped_places.add(start - 1)
    return [part for place, part in enumerate(parts) if place not in dropped_places]


#: Number of digits that a command takes as arguments without braces.
_UNBRACED_DIGITS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1}
_SAME_SIGNS = {r"\surd": r"\sqrt", r"\mid": "|", r"\langle": "(", r"\rangle": ")"}
