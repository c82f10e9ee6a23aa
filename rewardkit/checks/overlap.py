"""Contamination: find evaluation items in training rows.

The first rule is the share of one item's word n-grams that are in one row. It finds copies, also in
part. A single common n-gram is not enough: "where m and n are relatively prime positive integers,
find m + n" is in a quarter of all AIME problems, so that rule would drop hundreds of rows that
contain none of them.

Eight words in a row break at every changed word, so a reworded problem has few of the item's
n-grams. The second rule is a finer look, at the rows that have rare sequences of three words in
common with an item. A row states the item in other words, and not a variant of it, if three things
hold:

- It has most of the item's words, in the same order or in the same pairs: people change phrases,
  not every word.
- It has the same numbers. A problem with other numbers is a variant with another answer.
- The numbers say something: a number n counts log2(n + 1) bits, so that 2024 is evidence and 1, 2
  and 3 are hardly any. Without numbers two problems of one kind cannot be told from one problem.

A pair with only the first property is a near miss, for a person to judge.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise, product, repeat
from math import ceil, log2
from typing import Literal, TypeAlias

from rewardkit.checks.word_splitting import ngram_hashes, ngrams, split_words
from rewardkit.errors import UsageError

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

#: Words per sequence by which candidates of the second rule are looked up, and the maximum number of
#: distinct texts that a sequence may be in. The maximum bounds the work per row.
SEQUENCE = 3
MAX_HOLDERS = 4

#: Minimum number of an item's sequences that a candidate has, and their minimum share: of a
#: candidate with the item's numbers, and of one without them, which can only be a near miss.
MIN_SEQUENCES = 4
MIN_SHARED = 0.1
MIN_SHARED_OF_VARIANT = 0.25

#: Minimum number of words of an item of the second rule: short problems of one kind differ by a
#: single word. And the maximum: comparing takes the product of the words of both texts.
MIN_WORDS = 20
MAX_WORDS = 1000

#: Minimum share of the item's words in the row, and of the row's words in the item.
MIN_COMMON = 0.65
MIN_COMMON_OF_ROW = 0.4

#: Minimum bits of the item's distinct numbers, and minimum similarity (Dice) of all numbers of both
#: texts, weighted by their bits.
MIN_BITS = 6.5
MIN_SAME_NUMBERS = 0.85

#: Numbers that may be in words, and those that are in formulas for many reasons: 1 and 0.
_NUMBER_WORDS = {
    word: str(i)
    for i, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
}
_WEAK = frozenset("01")

_FIGURE = re.compile(r"[\[<]asy[\]>].*?(?:[\[<]/asy[\]>]|\Z)", re.DOTALL)
_SHORT_FRACTION = re.compile(r"(\\[dt]?frac) ?(\d) ?(\d)")
_THOUSANDS = re.compile(r"(?<=\d)(?:,(?:\\!)?|\{,\}|\\,)(?=\d{3}(?!\d))")


@dataclass(frozen=True)
class EvalItem:
    """One problem of an evaluation set."""

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
class _Words:
    """The words of a text without figures, and its numbers with how often it has each."""

    words: Sequence[str]

    @cached_property
    def numbers(self) -> Counter[str]:
        return Counter(word for word in self.words if word.isdecimal())

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The places of each word, as the bits of a number."""
        places = dict[str, int]()
        for i, word in enumerate(self.words):
            places[word] = places.get(word, 0) | 1 << i
        return places

    @cached_property
    def pairs(self) -> AbstractSet[tuple[str, str]]:
        return set(pairwise(self.words))


@dataclass(frozen=True)
class _Wording:
    """A text of evaluation items, for the second rule."""

    items: Sequence[int]
    text: _Words
    rare: int


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
        wordings: the texts that are long enough for the second rule.
        sequences: the texts with a sequence of words, by the hash of the sequence.
    """

    items: Sequence[EvalItem]
    sizes: Sequence[int]
    numbers: Mapping[str, int]
    holders: Mapping[int, Sequence[int]]
    whole: Mapping[int, Sequence[int]]
    lengths: Collection[int]
    wordings: Sequence[_Wording]
    sequences: Mapping[int, Sequence[int]]


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
    distinct = defaultdict[str, set[tuple[int, ...]]](set)  # an AIME file has each text 32 times
    for item in items:
        words = split_words(item.text)
        if words:
            own = tuple(numbers.setdefault(word, len(numbers) + 1) for word in words)
            indexed.append(item)
            numbered.append(own)
            distinct[item.source].add(own)
    common = dict[str, set[int]]()
    for source, texts in distinct.items():
        counts = Counter(key for own in texts for key in ngrams(own, NGRAM))
        most = max(COMMON_ITEMS, COMMON_SHARE * len(texts))
        common[source] = {key for key, count in counts.items() if count > most}
    sizes, holders, whole = [], defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for i, (item, own) in enumerate(zip(indexed, numbered, strict=True)):
        grams = set[int]()  # of the prose, or of everything if these are too few
        for part in _FIGURE.split(item.text):
            grams |= ngrams([numbers.get(word, 0) for word in split_words(part)], NGRAM)
        grams -= common[item.source]
        if len(grams) < MIN_GRAMS:
            grams = ngrams(own, NGRAM) - common[item.source]
        sizes.append(len(grams) if len(grams) >= MIN_GRAMS else 0)
        for key in grams if sizes[i] else ():
            holders[key].append(i)
        if not sizes[i]:
            whole[hash(own)].append(i)
    lengths = {len(numbered[i]) for same in whole.values() for i in same}
    wordings, sequences = _index_wordings([item.text for item in indexed], numbers)
    return EvalIndex(indexed, sizes, numbers, holders, whole, sorted(lengths), wordings, sequences)


def find_overlaps(
    texts: Iterable[str], index: EvalIndex, threshold: float = 0.5, *, near_misses: bool = False
) -> Iterator[Overlap]:
    """Yield the evaluation items in each training row, row by row, in the index's order.

    A row contains an item if it has at least `threshold` of the item's n-grams, and all of them or
    the item's numbers: with other numbers it is a variant, which is a near miss. A row contains an
    item with too few n-grams (see `index_items`) if the row, or consecutive lines of it, have
    exactly the item's words, for any `threshold`: "Find x." within a sentence says nothing. Such an
    item has the coverage 1. It is missed if a template adds words to the question's line, so pass
    questions rather than prompts. A row also contains an item, for any `threshold`, if it states the
    item in other words with the same numbers.

    Time is linear in the rows, which are read one at a time.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold}: it must be above 0 and at most 1.")
    needed = [ceil(threshold * size - 1e-9) for size in index.sizes]
    for row, text in enumerate(texts):
        words = [split_words(line) for line in text.splitlines()]
        lines = [list(map(index.numbers.get, line, repeat(0))) for line in words]
        own = [number for line in lines for number in line]
        shared = set(filter(index.holders.__contains__, ngram_hashes(own, NGRAM)))
        counts = Counter(chain.from_iterable(map(index.holders.__getitem__, shared)))
        copies = {i: count / index.sizes[i] for i, count in counts.items() if count >= needed[i]}
        copies.update((i, 1.0) for i in _short_items_in_row(lines, own, index))
        likenesses = dict(_like_items(text, words, own, index, copies))
        near = {i for i, count in counts.items() if count >= max(1, NEAR * needed[i])}
        for i in sorted({*near, *copies, *likenesses}):
            item, (common, same_numbers) = index.items[i], likenesses.get(i, (0.0, False))
            coverage = copies.get(i) or counts[i] / max(index.sizes[i], 1)
            rule: Rule = "reworded" if same_numbers else "near_miss"
            if i in copies and coverage >= 1:
                rule = "copy"
            elif i in copies and not _has_other_numbers(item.text, text):
                rule = "part"
            if near_misses or rule != "near_miss":
                yield Overlap(row, item.source, item.item, coverage, item.text, text, rule, common)


def differing_words(item: str, row: str) -> tuple[list[str], list[str]]:
    """Return the words that only the item has, and those that only the row has, in their order."""
    one, other = split_words(_plain(item)), split_words(_plain(row))
    return _without(one, other), _without(other, one)


def _short_items_in_row(
    lines: Sequence[Sequence[int]], own: Sequence[int], index: EvalIndex
) -> Iterator[int]:
    """Yield the short items that are word for word on consecutive lines of a row."""
    ends = {0, *accumulate(map(len, lines))}
    for start, length in product(ends, index.lengths):
        if start + length in ends:
            yield from index.whole.get(hash(tuple(own[start : start + length])), ())


def _index_wordings(
    texts: Sequence[str], numbers: Mapping[str, int]
) -> tuple[list[_Wording], dict[int, tuple[int, ...]]]:
    items = defaultdict[tuple[str, ...], list[int]](list)
    for i, text in enumerate(texts):
        items[tuple(split_words(_plain(text)))].append(i)
    long = [words for words in items if MIN_WORDS <= len(words) <= MAX_WORDS]
    holders = dict[int, tuple[int, ...]]()
    for i, words in enumerate(long):
        own = (i,)  # one tuple for all sequences of a text, to save memory
        for key in ngrams([numbers.get(word, 0) for word in words], SEQUENCE):
            others = holders.get(key)
            if others is None:
                holders[key] = own
            elif len(others) <= MAX_HOLDERS:
                holders[key] = others + own
    holders = {key: same for key, same in holders.items() if len(same) <= MAX_HOLDERS}
    rare = Counter(i for same in holders.values() for i in same)
    return [_Wording(items[words], _Words(words), rare[i]) for i, words in enumerate(long)], holders


def _like_items(
    text: str,
    lines: Sequence[Sequence[str]],
    own: Sequence[int],
    index: EvalIndex,
    skip: Collection[int],
) -> Iterator[tuple[int, tuple[float, bool]]]:
    """Yield the items that a row is like, with the share of common words and whether the numbers agree."""
    holders = filter(None, map(index.sequences.get, ngram_hashes(own, SEQUENCE)))
    row: _Words | None = None
    for i, count in Counter(chain.from_iterable(holders)).items():
        if count < MIN_SEQUENCES:
            continue
        wording = index.wordings[i]
        if count < MIN_SHARED * wording.rare or wording.items[0] in skip:
            continue
        row = row or _read_row(text, lines, index)
        item = wording.text
        if MIN_COMMON_OF_ROW * len(row.words) > len(item.words):
            continue
        same_numbers = _same_numbers(item, row)
        if same_numbers or count >= MIN_SHARED_OF_VARIANT * wording.rare:
            in_order = _common_subsequence(item.words, row) / len(item.words)
            common = max(in_order, len(item.pairs & row.pairs) / len(item.pairs))
            is_most_of_row = common * len(item.words) >= MIN_COMMON_OF_ROW * len(row.words)
            if common >= MIN_COMMON and is_most_of_row:
                yield from ((each, (common, same_numbers)) for each in wording.items)


def _has_other_numbers(item: str, row: str) -> bool:
    """Return whether a row has other numbers in the place of some of an item's: it is a variant."""
    one, other = (
        [number for word in words if (number := _NUMBER_WORDS.get(word, word)).isdecimal()]
        for words in differing_words(item, row)
    )
    return not _WEAK.issuperset(_without(one, other)) and not _WEAK.issuperset(_without(other, one))


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    return list((Counter(words) - Counter(others)).elements())


def _read_row(text: str, lines: Sequence[Sequence[str]], index: EvalIndex) -> _Words:
    """Return a row without the lines that have neither a number nor a sequence of any item."""
    plain = _plain(text)
    if plain != text:
        lines = [split_words(line) for line in plain.splitlines()]
    words = list[str]()
    for line in lines:
        own = list(map(index.numbers.get, line, repeat(0))) if len(lines) > 1 else []
        if (
            len(lines) == 1
            or any(word.isdecimal() for word in line)
            or not index.sequences.keys().isdisjoint(ngrams(own, SEQUENCE))
        ):
            words += line
    return _Words(words)


def _plain(text: str) -> str:
    r"""Return a text without figures, and with numbers in one spelling: `\frac12`, `1,000`."""
    if "asy" in text:
        text = _FIGURE.sub(" ", text)
    if "frac" in text:
        text = _SHORT_FRACTION.sub(r"\1{\2}{\3}", text)
    return _THOUSANDS.sub("", text) if "," in text else text


def _same_numbers(item: _Words, row: _Words) -> bool:
    """Return whether two texts have the same numbers, and whether these are enough evidence."""
    for one, other in ((item, row), (row, item)):
        missing = one.numbers.keys() - other.numbers.keys() - _WEAK
        if missing and not missing <= {_NUMBER_WORDS[w] for w in other.words if w in _NUMBER_WORDS}:
            return False
    if sum(map(_bits, item.numbers)) < MIN_BITS:
        return False
    both = _weight(item.numbers & row.numbers)
    return 2 * both >= MIN_SAME_NUMBERS * (_weight(item.numbers) + _weight(row.numbers))


def _weight(numbers: Mapping[str, int]) -> float:
    return sum(_bits(word) * count for word, count in numbers.items())


def _bits(number: str) -> float:
    """The information in a number: that of its value, which a long number has in its length."""
    return log2(int(number) + 1) if len(number) <= 15 else len(number) * log2(10)


def _common_subsequence(words: Sequence[str], row: _Words) -> int:
    """Return the length of the longest common subsequence, all places of the row at a time.

    The method is Hyyrö's (2004): a zero bit is a place of the row where the subsequence grows.
    """
    ones = (1 << len(row.words)) - 1
    state = ones
    for word in words:
        places = row.places.get(word)
        if places:
            matches = state & places
            state = (state + matches | state - matches) & ones
    return len(row.words) - state.bit_count()
