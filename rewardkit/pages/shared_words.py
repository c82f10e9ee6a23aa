"""The words that two texts share, marked in both."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from rewardkit.pages.formulas import find_formulas
from rewardkit.pages.text import MAX_CHARACTERS, clean

#: Shortest run of shared words that is marked: any two texts share single words.
MIN_RUN_WORDS = 3

#: Characters of a text that are compared; bounds the time that hostile texts take.
MAX_COMPARED_CHARACTERS = 100_000

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

#: Each Chinese or Japanese character is a word; operators distinguish formulas.
_WORD = re.compile(rf"[{_CJK}]|\d+|[^\W\d_{_CJK}]+|[-+*/^=<>]")

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Excerpt:
    """The part of a text that a page shows.

    Attributes:
        before: number of characters left out before it.
        parts: its pieces in order, each with whether the other text has it too.
        after: number of characters left out after it.
    """

    before: int
    parts: tuple[tuple[str, bool], ...]
    after: int


def mark_shared_words(left: str, right: str) -> tuple[Excerpt, Excerpt]:
    """Mark the runs of `MIN_RUN_WORDS` words or more that both texts have.

    Case, space and punctuation do not count. The time is linear in the lengths. Of a long text the
    part with the longest run is shown.
    """
    words = _words(left), _words(right)
    size = max(1, min(MIN_RUN_WORDS, len(words[0]), len(words[1])))
    grams = _word_grams(words[0], size), _word_grams(words[1], size)
    return (
        _excerpt(left, list(_shared_runs(left, words[0], grams[0], frozenset(grams[1])))),
        _excerpt(right, list(_shared_runs(right, words[1], grams[1], frozenset(grams[0])))),
    )


def _words(text: str) -> list[re.Match[str]]:
    return list(_WORD.finditer(text[:MAX_COMPARED_CHARACTERS]))


def _word_grams(words: Sequence[re.Match[str]], size: int) -> list[tuple[str, ...]]:
    plain = [word[0].casefold() for word in words]
    return [tuple(plain[i : i + size]) for i in range(len(plain) - size + 1)]


def _shared_runs(
    text: str,
    words: Sequence[re.Match[str]],
    grams: Sequence[tuple[str, ...]],
    other_grams: AbstractSet[tuple[str, ...]],
) -> Iterator[_Span]:
    """Spans of text covered by grams that are in `other_grams`, with neighbours joined."""
    size = len(words) - len(grams) + 1
    shared = bytearray(len(words))
    for i, gram in enumerate(grams):
        if gram in other_grams:
            shared[i : i + size] = b"\1" * size
    starts, ends = _shared_formulas(text, words, shared)
    for is_shared, run in groupby(range(len(words)), key=lambda i: bool(shared[i])):
        if is_shared:
            indices = list(run)
            first, last = indices[0], indices[-1]
            yield starts.get(first, words[first].start()), ends.get(last, words[last].end())


def _shared_formulas(
    text: str, words: Sequence[re.Match[str]], shared: bytearray
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the start of each wholly shared formula by its first word, and its end by its last.

    A mark that takes its signs as well does not cut it, so that the page can show it.
    """
    places = [word.start() for word in words]
    starts, ends = {}, {}
    for formula in find_formulas(text[:MAX_COMPARED_CHARACTERS]):
        first, after = bisect_left(places, formula.start), bisect_left(places, formula.end)
        if first < after and all(shared[first:after]):
            starts[first], ends[after - 1] = formula.start, formula.end
    return starts, ends


def _excerpt(text: str, runs: Sequence[_Span]) -> Excerpt:
    start = 0
    first, last = max(runs, key=lambda run: run[1] - run[0], default=(0, 0))
    if last > MAX_CHARACTERS:
        start = max(0, first - MAX_CHARACTERS // 4)
    end = min(start + MAX_CHARACTERS, len(text))
    return Excerpt(start, tuple(_marked_pieces(text, runs, start, end)), len(text) - end)


def _marked_pieces(
    text: str, runs: Sequence[_Span], start: int, end: int
) -> Iterator[tuple[str, bool]]:
    place = start
    for run_start, run_end in runs:
        first, last = max(run_start, start), min(run_end, end)
        if first < last:
            yield from ((clean(text[a:b]), b == last) for a, b in ((place, first), (first, last)))
            place = last
    yield clean(text[place:end]), False
