"""Prepare texts of any kind and length for a page. The templates escape them."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from rewardkit.text import brief, printable

#: Characters of a text that a page holds.
MAX_CHARACTERS = 2000

#: Characters and lines of a text that is shown without being unfolded.
SHORT_CHARACTERS = 240
SHORT_LINES = 5


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


def clip(text: str) -> ClippedText:
    """Return a short text unchanged, of a longer one its start and up to `MAX_CHARACTERS`."""
    if len(text) <= SHORT_CHARACTERS and text.count("\n") < SHORT_LINES:
        return ClippedText(printable(text))
    return ClippedText(
        brief(text), printable(text[:MAX_CHARACTERS]), max(0, len(text) - MAX_CHARACTERS)
    )


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
        pieces = ((printable(text[a:b]), i % 2 == 1) for i, (a, b) in enumerate(pairwise(offsets)))
        sides.append([piece for piece in pieces if piece[0]])
    return sides
