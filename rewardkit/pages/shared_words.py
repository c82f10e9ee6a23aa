"""The words that two texts share, marked in both."""

import re
from difflib import SequenceMatcher
from itertools import pairwise

from rewardkit.pages.text import MAX_CHARACTERS, clean

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
            place
            for starts, count in runs
            for place in (own[starts[side]].start(), own[starts[side] + count - 1].end())
        ]
        places = [0, *ends, min(len(text), MAX_CHARACTERS)]
        pieces = ((clean(text[a:b]), i % 2 == 1) for i, (a, b) in enumerate(pairwise(places)))
        sides.append([piece for piece in pieces if piece[0]])
    return sides
