"""The words that two texts share, to be marked in both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from rewardkit.pages.text import KEPT, clean

#: Words in a row that make a run in common: any two texts share single words.
RUN = 3

#: Characters of a text that are looked at; bounds the time that hostile texts take.
LOOKED_AT = 100_000

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

#: Chinese and Japanese have a word to a character here; operators tell formulas apart.
_WORD = re.compile(rf"[{_CJK}]|\d+|[^\W\d_{_CJK}]+|[-+*/^=<>]")

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Excerpt:
    """As much of a text as a page keeps.

    Attributes:
        before: characters left out before it.
        parts: its pieces in order, each with whether the other text has it too.
        after: characters left out after it.
    """

    before: int
    parts: tuple[tuple[str, bool], ...]
    after: int


def compare(left: str, right: str) -> tuple[Excerpt, Excerpt]:
    """Both texts with what they share told apart: runs of `RUN` words or more that are in both.

    Case, space and punctuation do not count. The time is linear in the lengths. Of a long text the
    part is kept that has the longest run.
    """
    words = _words(left), _words(right)
    size = max(1, min(RUN, len(words[0]), len(words[1])))
    grams = _grams(words[0], size), _grams(words[1], size)
    return (
        _excerpt(left, list(_runs(words[0], grams[0], frozenset(grams[1])))),
        _excerpt(right, list(_runs(words[1], grams[1], frozenset(grams[0])))),
    )


def _words(text: str) -> list[re.Match[str]]:
    return list(_WORD.finditer(text[:LOOKED_AT]))


def _grams(words: Sequence[re.Match[str]], size: int) -> list[tuple[str, ...]]:
    plain = [word[0].casefold() for word in words]
    return [tuple(plain[i : i + size]) for i in range(len(plain) - size + 1)]


def _runs(
    words: Sequence[re.Match[str]],
    grams: Sequence[tuple[str, ...]],
    others: AbstractSet[tuple[str, ...]],
) -> Iterator[_Span]:
    """Where the words of grams that are in `others` begin and end, neighbours joined."""
    size = len(words) - len(grams) + 1
    shared = bytearray(len(words))
    for i, gram in enumerate(grams):
        if gram in others:
            shared[i : i + size] = b"\1" * size
    for is_shared, run in groupby(range(len(words)), key=lambda i: bool(shared[i])):
        if is_shared:
            places = list(run)
            yield words[places[0]].start(), words[places[-1]].end()


def _excerpt(text: str, runs: Sequence[_Span]) -> Excerpt:
    start = 0
    first, last = max(runs, key=lambda run: run[1] - run[0], default=(0, 0))
    if last > KEPT:
        start = max(0, first - KEPT // 4)
    end = min(start + KEPT, len(text))
    return Excerpt(start, tuple(_parts(text, runs, start, end)), len(text) - end)


def _parts(text: str, runs: Sequence[_Span], start: int, end: int) -> Iterator[tuple[str, bool]]:
    place = start
    for run_start, run_end in runs:
        first, last = max(run_start, start), min(run_end, end)
        if first < last:
            yield from ((clean(text[a:b]), b == last) for a, b in ((place, first), (first, last)))
            place = last
    yield clean(text[place:end]), False
