"""Prepare texts of any kind and length for a page. The templates escape them."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

#: Characters of a text that a page holds.
MAX_CHARACTERS = 2000

#: Characters and lines of a text that is shown without being unfolded.
SHORT_CHARACTERS = 240
SHORT_LINES = 5

#: Characters that Unicode calls not printable, which readers expect unchanged.
_ALLOWED = frozenset("\n\t\N{NO-BREAK SPACE}\N{IDEOGRAPHIC SPACE}\N{ZERO WIDTH JOINER}")


@dataclass(frozen=True)
class ClippedText:
    """A text to show.

    Attributes:
        head: what is visible at first; the whole text if it is short.
        body: what unfolding shows; empty if there is nothing to unfold.
        cut: number of characters that even `body` leaves out.
    """

    head: str
    body: str = ""
    cut: int = 0


def clean(text: str) -> str:
    """Escape characters that a page cannot contain or a reader would not see.

    These are NUL and other controls, lone surrogates (which no file can contain), and marks that
    change the direction of writing or have no width.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _ALLOWED else ascii(c)[1:-1] for c in text)


def brief(text: str, most: int = 160) -> str:
    """Return the start of a text on one line, where nothing can be unfolded."""
    line = " ".join(text[: 2 * most].split())
    is_whole = len(line) <= most and len(text) <= 2 * most
    return clean(line) if is_whole else f"{clean(line[:most])}…"


def clip(text: str) -> ClippedText:
    """Return a short text unchanged, of a longer one its start and up to `MAX_CHARACTERS`."""
    if len(text) <= SHORT_CHARACTERS and text.count("\n") < SHORT_LINES:
        return ClippedText(clean(text))
    return ClippedText(
        brief(text), clean(text[:MAX_CHARACTERS]), max(0, len(text) - MAX_CHARACTERS)
    )


def sentence(text: str) -> str:
    """Return a text as a sentence, with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def row_count(n: int) -> str:
    """Return `1 row` or `1,200 rows`."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def percentage(part: int, whole: int) -> str:
    """Return a percentage such as `12.3%`; only 0 of `whole` is 0.0%, and only all of it is 100.0%."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "< 0.1%"
    if 99.9 < percent < 100:
        return "> 99.9%"
    return f"{percent:.1f}%"


#: Shortest run of shared words that is marked: any two texts share single words.
MIN_RUN_WORDS = 3

#: Words of a text that are compared: difflib takes quadratic time for hostile texts.
MAX_COMPARED_WORDS = 500

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

#: Each Chinese or Japanese character is a word; operators distinguish formulas.
_WORD = re.compile(rf"[{_CJK}]|\d+|[^\W\d_{_CJK}]+|[-+*/^=<>]")


def mark_shared_words(left: str, right: str) -> list[list[tuple[str, bool]]]:
    """Return the pieces of the start of both texts, each with whether the other text has it, too.

    A piece that both have is a run of `MIN_RUN_WORDS` words or more, in the same order in both. Case,
    space and punctuation do not count.
    """
    words = [
        list(_WORD.finditer(text[:MAX_CHARACTERS]))[:MAX_COMPARED_WORDS] for text in (left, right)
    ]
    plain = [[word[0].casefold() for word in own] for own in words]
    size = max(1, min(MIN_RUN_WORDS, *map(len, plain)))
    blocks = SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_matching_blocks()
    runs = [(block[:2], block.size) for block in blocks if block.size >= size]
    sides = []
    for side, text in enumerate((left, right)):
        own = words[side]
        ends = [
            offset
            for starts, count in runs
            for offset in (own[starts[side]].start(), own[starts[side] + count - 1].end())
        ]
        offsets = [0, *ends, min(len(text), MAX_CHARACTERS)]
        pieces = ((clean(text[a:b]), i % 2 == 1) for i, (a, b) in enumerate(pairwise(offsets)))
        sides.append([piece for piece in pieces if piece[0]])
    return sides
