"""Contamination: find evaluation items in training rows.

The first rule is the share of one item's word n-grams that are in one row. It finds copies, also in
part. The second rule finds items in other words; see `rewording`. A single common n-gram is not
enough: "where m and n are relatively prime positive integers, find m + n" is in a quarter of all
AIME problems, so that rule would drop hundreds of rows that contain none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import ceil
from typing import Literal, TypeAlias

from rewardkit.errors import UsageError
from rewardkit.preprocess.contamination.rewording import (
    Likeness,
    WordingIndex,
    differing_words,
    has_other_numbers,
    index_wordings,
    like_items,
)
from rewardkit.preprocess.contamination.word_splitting import (
    count_holders,
    ngrams,
    split_words,
)

Rule: TypeAlias = Literal["copy", "part", "reworded", "near_miss"]

#: Words per n-gram, as in open-r1; the GPT-3 family uses 8 to 13.
NGRAM = 8

#: An n-gram in more than this share of a set's items, and in more than this number of items, is
#: boilerplate and does not count. Two problems may be variants of each other.
COMMON_SHARE = 0.05
COMMON_ITEMS = 2

#: Share of the threshold from which on a coverage below it is a near miss.
NEAR = 0.5

#: Minimum number of n-grams that count. An item with fewer must be in the row word for word.
MIN_GRAMS = 8


@dataclass(frozen=True)
class EvalItem:
    """One problem of an evaluation set.

    Attributes:
        source: name of the set.
        item: id or row number of the problem.
        text: text of the problem.
    """

    source: str
    item: str
    text: str


@dataclass(frozen=True)
class Overlap:
    """An evaluation item found in a training row.

    Attributes:
        row: number of the training row, from 0.
        source: name of the evaluation set.
        item: id of the item in the set.
        coverage: share of the item's n-grams that are in the row, 0 to 1.
        item_text: text of the item.
        row_text: text of the row.
        rule: why the pair is reported: `copy` (all of the item), `part` (the coverage reaches the
            threshold), `reworded` (the item with its numbers in other words), or `near_miss`, which
            does not count as an overlap: the texts are alike, but may be two problems.
        common: share of the item's words that are in the row, 0 to 1; 0 if it was not counted.
    """

    row: int
    source: str
    item: str
    coverage: float
    item_text: str
    row_text: str
    rule: Rule = "copy"
    common: float = 0.0

    @property
    def differing_words(self) -> tuple[list[str], list[str]]:
        """The words that only the item has, and those that only the row has."""
        return differing_words(self.item_text, self.row_text)

    @property
    def summary(self) -> str:
        """How much of which item the row has, in a few words."""
        where = f"{self.source} {self.item}"
        if self.rule == "reworded":
            return f"{where} in other words: {self.common:.0%} of its words, the same numbers"
        if self.common:
            return f"{self.common:.0%} of the words of {where}"
        return f"{self.coverage:.0%} of {where}"


@dataclass(frozen=True)
class EvalIndex:
    """Evaluation items, indexed for `find_overlaps`. `index_items` builds it.

    Attributes:
        items: the items that have words.
        sizes: number of n-grams of each item that count; 0 for an item that must be in a row word
            for word.
        numbers: number of each word of the items, from 1; 0 stands for any other word.
        holders: the items with an n-gram, by the hash of the n-gram.
        whole: the items that must be in a row word for word, by the hash of all their words.
        lengths: lengths of those items, in words.
        wordings: the items' words, for the search for items in other words.
    """

    items: Sequence[EvalItem]
    sizes: Sequence[int]
    numbers: Mapping[str, int]
    holders: Mapping[int, Sequence[int]]
    whole: Mapping[int, Sequence[int]]
    lengths: Collection[int]
    wordings: WordingIndex


def index_items(items: Iterable[EvalItem]) -> EvalIndex:
    """Index evaluation items; the index may contain several sets, and one set repeatedly.

    An n-gram that is in more than `COMMON_SHARE` of a set's distinct texts, and in more than
    `COMMON_ITEMS`, is boilerplate and does not count, such as a prompt template or the last
    sentence of an exam's problems. The Asymptote code of figures does not count either, because
    most figures draw the same axes, unless an item has too few n-grams without it. An item with
    fewer than `MIN_GRAMS` n-grams that count must be in a row word for word. Memory is proportional
    to the items' text.
    """
    indexed, numbered, numbers = [], [], dict[str, int]()
    for item in items:
        words = split_words(item.text)
        if words:
            indexed.append(item)
            numbered.append(tuple(numbers.setdefault(word, len(numbers) + 1) for word in words))
    common = _boilerplate(indexed, numbered)
    sizes, holders, whole = [], defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for i, (item, own) in enumerate(zip(indexed, numbered, strict=True)):
        grams = _counted_grams(item.text, own, numbers, common[item.source])
        sizes.append(len(grams) if len(grams) >= MIN_GRAMS else 0)
        for key in grams if sizes[i] else ():
            holders[key].append(i)
        if not sizes[i]:
            whole[hash(own)].append(i)
    lengths = {len(numbered[i]) for same in whole.values() for i in same}
    wordings = index_wordings([item.text for item in indexed], numbers)
    return EvalIndex(indexed, sizes, numbers, holders, whole, sorted(lengths), wordings)


def find_overlaps(
    texts: Iterable[str], index: EvalIndex, threshold: float = 0.5, *, near_misses: bool = False
) -> Iterator[Overlap]:
    """Yield the evaluation items in each training row, row by row, in the index's order.

    A row contains an item if it has at least `threshold` of the item's n-grams, and all of them or
    the item's numbers: with other numbers it is a variant, which is a near miss. A row contains an
    item with too few n-grams (see `index_items`) if the row, or consecutive lines of it, have
    exactly the item's words, for any `threshold`: "Find x." within a sentence says nothing. Such an
    item has the coverage 1. It is missed if a template adds words to the question's line, so pass
    questions rather than prompts.

    A row also contains an item, for any `threshold`, if it states the item in other words with the
    same numbers; see `rewording`.

    Time is linear in the rows, which are read one at a time.

    Args:
        texts: texts of the training rows.
        index: the evaluation items.
        threshold: share of an item's n-grams, above 0 and at most 1.
        near_misses: also yield the pairs of a row and an item that are alike, or have at least
            half the threshold, but are no overlaps.

    Raises:
        UsageError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold}: it must be above 0 and at most 1.")
    needed = [ceil(threshold * size - 1e-9) for size in index.sizes]
    for row, text in enumerate(texts):
        for i, coverage, rule, common in _items_in_row(text, index, needed):
            if near_misses or rule != "near_miss":
                item = index.items[i]
                yield Overlap(row, item.source, item.item, coverage, item.text, text, rule, common)


def _counted_grams(
    text: str, own: Sequence[int], numbers: Mapping[str, int], common: Collection[int]
) -> set[int]:
    """Return the n-grams of an item that count: those of its prose, or all if these are too few."""
    prose = set[int]()
    for part in _prose(text):
        prose |= ngrams([numbers.get(word, 0) for word in split_words(part)], NGRAM)
    prose.difference_update(common)
    return prose if len(prose) >= MIN_GRAMS else ngrams(own, NGRAM).difference(common)


def _prose(text: str) -> Iterator[str]:
    """Yield the text before, between and after the figures `[asy] ... [/asy]`."""
    first, *others = text.split("[asy]")
    yield first
    yield from (other.partition("[/asy]")[2] for other in others)


def _boilerplate(
    items: Sequence[EvalItem], numbered: Sequence[tuple[int, ...]]
) -> dict[str, set[int]]:
    """Return the boilerplate of each set. Equal texts count once: an AIME file has each 32 times."""
    distinct = defaultdict[str, set[tuple[int, ...]]](set)
    for item, own in zip(items, numbered, strict=True):
        distinct[item.source].add(own)
    return {source: _frequent_grams(texts) for source, texts in distinct.items()}


def _frequent_grams(texts: Collection[tuple[int, ...]]) -> set[int]:
    counts = Counter(key for own in texts for key in ngrams(own, NGRAM))
    most = max(COMMON_ITEMS, COMMON_SHARE * len(texts))
    return {key for key, count in counts.items() if count > most}


def _items_in_row(
    text: str, index: EvalIndex, needed: Sequence[int]
) -> Iterator[tuple[int, float, Rule, float]]:
    """Yield number, coverage, rule and share of common words of the items in a row."""
    words = [split_words(line) for line in text.splitlines()]
    lines = [list(map(index.numbers.get, line, repeat(0))) for line in words]
    own = [number for line in lines for number in line]
    counts = count_holders(own, NGRAM, index.holders)
    copies = {i: count / index.sizes[i] for i, count in counts.items() if count >= needed[i]}
    copies.update((i, 1.0) for i in _short_items_in_row(lines, own, index))
    likenesses = dict(like_items(text, words, own, index.wordings, copies))
    near = {i for i, count in counts.items() if count >= max(1, NEAR * needed[i])}
    for i in sorted({*near, *copies, *likenesses}):
        likeness = likenesses.get(i, Likeness(0.0, same_numbers=False))
        coverage = copies.get(i) or counts[i] / max(index.sizes[i], 1)
        rule: Rule = "reworded" if likeness.same_numbers else "near_miss"
        if i in copies and coverage >= 1:
            rule = "copy"
        elif i in copies and not has_other_numbers(index.items[i].text, text):
            rule = "part"
        yield i, coverage, rule, likeness.common


def _short_items_in_row(
    lines: Sequence[Sequence[int]], own: Sequence[int], index: EvalIndex
) -> Iterator[int]:
    """Yield the short items that are word for word on consecutive lines of a row."""
    edges, end = [0], 0
    for line in lines:
        end += len(line)
        edges.append(end)
    ends = set(edges)
    for start in ends:
        for length in index.lengths:
            if start + length in ends:
                yield from index.whole.get(hash(tuple(own[start : start + length])), ())
