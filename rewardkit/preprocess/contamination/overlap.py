"""Contamination: evaluation items that a training row holds.

The rule is the share of ONE item's word n-grams found in ONE row, not "any n-gram in common":
"where m and n are relatively prime positive integers, find m + n" is in a quarter of all AIME
problems, and any common 8-gram drops 1,304 rows of DAPO for AIME and MATH-500 where 38 have a
problem in common.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from rewardkit.errors import UsageError
from rewardkit.preprocess.contamination.word_splitting import split_words

#: Words in an n-gram, open-r1's and the GPT-3 family's choice between 8 and 13.
NGRAM = 8

#: An n-gram in more than this share of a source's items is boilerplate and does not count ...
COMMON_SHARE = 0.05

#: ... unless it is in no more items than this: two problems may be variants of each other.
COMMON_ITEMS = 2

#: Fewer n-grams that count are no evidence, and the item must be in the row as it stands.
FEWEST = 8


@dataclass(frozen=True)
class EvalItem:
    """One problem of an evaluation set: the set's name, the problem's id or row, its text."""

    source: str
    item: str
    text: str


@dataclass(frozen=True)
class Overlap:
    """An evaluation item found in a training row.

    Attributes:
        row: number of the training row, from 0.
        source: the evaluation set.
        item: the item's id there.
        coverage: share of the item's n-grams that the row has, 0 to 1.
        item_text: the item.
        row_text: the row.
    """

    row: int
    source: str
    item: str
    coverage: float
    item_text: str
    row_text: str


@dataclass(frozen=True)
class EvalIndex:
    """Evaluation items as `find_overlaps` looks them up. Build it with `index_items`.

    Attributes:
        items: the items that have a word.
        sizes: how many n-grams of each count; 0 for an item that must be there as it stands.
        numbers: of every word of the items, from 1; 0 is any other word.
        holders: of an n-gram's hash, the items that have it.
        whole: of the hash of all of an item's words, the items that must be there as they stand.
        lengths: of those items, in words.
    """

    items: Sequence[EvalItem]
    sizes: Sequence[int]
    numbers: Mapping[str, int]
    holders: Mapping[int, Sequence[int]]
    whole: Mapping[int, Sequence[int]]
    lengths: Collection[int]


def index_items(items: Iterable[EvalItem]) -> EvalIndex:
    """Take in evaluation items; several sets, or the same set twice, may be in one index.

    An n-gram that is in more than `COMMON_SHARE` of a source's distinct texts, and in more than
    `COMMON_ITEMS`, is boilerplate and does not count: a prompt template, an exam's closing
    sentence. Neither does a figure's Asymptote code, which draws the same axes for every function,
    unless an item has too few n-grams without it. An item with fewer than `FEWEST` n-grams that
    count must be in a row as it stands. Memory is proportional to the items' text.
    """
    kept, numbered, numbers = [], [], dict[str, int]()
    for item in items:
        found = split_words(item.text)
        if found:
            kept.append(item)
            numbered.append(tuple(numbers.setdefault(word, len(numbers) + 1) for word in found))
    common = _common(kept, numbered)
    sizes, holders, whole = [], defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for i, (item, own) in enumerate(zip(kept, numbered, strict=True)):
        grams = _counted(item.text, own, numbers, common[item.source])
        sizes.append(len(grams) if len(grams) >= FEWEST else 0)
        for key in grams if sizes[i] else ():
            holders[key].append(i)
        if not sizes[i]:
            whole[hash(own)].append(i)
    lengths = {len(numbered[i]) for same in whole.values() for i in same}
    return EvalIndex(kept, sizes, numbers, holders, whole, sorted(lengths))


def find_overlaps(
    texts: Iterable[str], index: EvalIndex, threshold: float = 0.5
) -> Iterator[Overlap]:
    """The evaluation items that each training row holds, row by row, in the index's order.

    An item is held when at least `threshold` of its n-grams are in the row. An item too short for
    n-grams (see `index_items`) is held when the row, or some lines of it that follow one another,
    has exactly its words, whatever `threshold` is: "Find x." says nothing inside a
    sentence. Its coverage is 1. A template that puts words on the question's own line hides such
    items, so pass questions rather than prompts where there is a choice.

    Time is linear in the rows, whose texts are taken one at a time.

    Args:
        texts: of the training rows.
        index: of the evaluation items.
        threshold: above 0, at most 1.

    Raises:
        UsageError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold} is not above 0 and at most 1")
    needed = [ceil(threshold * size - 1e-9) for size in index.sizes]
    for row, text in enumerate(texts):
        for i, coverage in _held(text, index, needed):
            item = index.items[i]
            yield Overlap(row, item.source, item.item, coverage, item.text, text)


def _counted(
    text: str, own: Sequence[int], numbers: Mapping[str, int], common: Collection[int]
) -> set[int]:
    """The n-grams of an item that count: its prose's, or all where those are too few."""
    prose = set[int]()
    for part in _prose(text):
        prose |= ngrams([numbers.get(word, 0) for word in split_words(part)], NGRAM)
    prose.difference_update(common)
    return prose if len(prose) >= FEWEST else ngrams(own, NGRAM).difference(common)


def _prose(text: str) -> Iterator[str]:
    """What is before, between and after the figures `[asy] ... [/asy]`."""
    first, *others = text.split("[asy]")
    yield first
    yield from (other.partition("[/asy]")[2] for other in others)


def ngrams(own: Sequence[int], n: int) -> set[int]:
    """Hashes of the n-grams of numbered words; none where there are fewer than n."""
    return set(map(hash, zip(*(own[i:] for i in range(n)), strict=False)))


def _common(items: Sequence[EvalItem], numbered: Sequence[tuple[int, ...]]) -> dict[str, set[int]]:
    """Of each source, the boilerplate. Equal texts count once: AIME files repeat them 32 times."""
    distinct = defaultdict[str, set[tuple[int, ...]]](set)
    for item, own in zip(items, numbered, strict=True):
        distinct[item.source].add(own)
    return {source: _frequent(texts) for source, texts in distinct.items()}


def _frequent(texts: Collection[tuple[int, ...]]) -> set[int]:
    counts = Counter(key for own in texts for key in ngrams(own, NGRAM))
    most = max(COMMON_ITEMS, COMMON_SHARE * len(texts))
    return {key for key, count in counts.items() if count > most}


def _held(text: str, index: EvalIndex, needed: Sequence[int]) -> Iterator[tuple[int, float]]:
    """(item, coverage) of the items that a row holds."""
    lines = [
        [index.numbers.get(word, 0) for word in split_words(line)] for line in text.splitlines()
    ]
    own = [number for line in lines for number in line]
    found = Counter[int]()
    for key in ngrams(own, NGRAM) & index.holders.keys():
        found.update(index.holders[key])
    held = {i: count / index.sizes[i] for i, count in found.items() if count >= needed[i]}
    held.update((i, 1.0) for i in _whole(lines, own, index))
    yield from sorted(held.items())


def _whole(lines: Sequence[Sequence[int]], own: Sequence[int], index: EvalIndex) -> Iterator[int]:
    """The short items that some lines in a row spell out."""
    edges, end = [0], 0
    for line in lines:
        end += len(line)
        edges.append(end)
    ends = set(edges)
    for start in ends:
        for length in index.lengths:
            if start + length in ends:
                yield from index.whole.get(hash(tuple(own[start : start + length])), ())
