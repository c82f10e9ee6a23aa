"""Find the evaluation items that a training row states in other words.

Eight words in a row break at every changed word, so a reworded problem has few of the item's
n-grams. This is a second, finer look, at the rows that have rare sequences of three words in common
with an item. A row states the item in other words, and not a variant of it, if three things hold:

- It has most of the item's words, in the same order or in the same pairs: people change phrases,
  not every word.
- It has the same numbers. A problem with other numbers is a variant with another answer.
- The numbers say something: a number n counts log2(n + 1) bits, so that 2024 is evidence and 1, 2
  and 3 are hardly any. Without numbers two problems of one kind cannot be told from one problem.

A pair with only the first property is a near miss, for a person to judge.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, repeat
from math import log2

from rewardkit.preprocess.contamination.word_splitting import (
    ngram_hashes,
    ngrams,
    split_words,
)

#: Words per sequence by which candidates are looked up, and the maximum number of distinct texts
#: that a sequence may be in. The maximum bounds the work per row.
NGRAM = 3
MAX_HOLDERS = 4

#: Minimum number of an item's sequences that a candidate has, and their minimum share: of a
#: candidate with the item's numbers, and of one without them, which can only be a near miss.
MIN_SEQUENCES = 4
MIN_SHARED = 0.1
MIN_SHARED_OF_VARIANT = 0.25

#: Minimum number of words of an item. Short problems of one kind differ by a single word.
MIN_WORDS = 20

#: Maximum number of words of an item: comparing takes the product of the words of both texts.
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
class Likeness:
    """How much a row is like an item.

    Attributes:
        common: share of the item's words that are in the row, in their order or in their pairs.
        same_numbers: whether both texts have the same numbers, and these are evidence.
    """

    common: float
    same_numbers: bool


@dataclass(frozen=True)
class Wording:
    """A text of evaluation items.

    Attributes:
        items: the items with this text.
        words: words of the text without figures.
        numbers: its numbers and how often it has each.
        rare: number of its sequences that are in few texts.
    """

    items: Sequence[int]
    words: Sequence[str]
    numbers: Mapping[str, int]
    rare: int


@dataclass(frozen=True)
class WordingIndex:
    """The texts of evaluation items. `index_wordings` builds it.

    Attributes:
        wordings: the texts that are long enough.
        numbers: number of each word of the items.
        holders: the texts with a sequence of `NGRAM` words, by the hash of the numbered words.
    """

    wordings: Sequence[Wording]
    numbers: Mapping[str, int]
    holders: Mapping[int, Sequence[int]]


def index_wordings(texts: Sequence[str], numbers: Mapping[str, int]) -> WordingIndex:
    """Index the texts of items, equal texts once.

    Args:
        texts: the texts, in the order of the items.
        numbers: number of each word of the items.
    """
    items = defaultdict[tuple[str, ...], list[int]](list)
    for i, text in enumerate(texts):
        items[tuple(split_words(_plain(text)))].append(i)
    long = [words for words in items if MIN_WORDS <= len(words) <= MAX_WORDS]
    holders = dict[int, tuple[int, ...]]()
    for i, words in enumerate(long):
        own = (i,)  # one tuple for all sequences of a text, to save memory
        for key in ngrams([numbers.get(word, 0) for word in words], NGRAM):
            others = holders.get(key)
            if others is None:
                holders[key] = own
            elif len(others) <= MAX_HOLDERS:
                holders[key] = others + own
    holders = {key: same for key, same in holders.items() if len(same) <= MAX_HOLDERS}
    rare = Counter(i for same in holders.values() for i in same)
    wordings = [
        Wording(items[words], words, _numbers_of(words), rare[i]) for i, words in enumerate(long)
    ]
    return WordingIndex(wordings, numbers, holders)


def like_items(
    text: str,
    lines: Sequence[Sequence[str]],
    own: Sequence[int],
    index: WordingIndex,
    skip: Collection[int],
) -> Iterator[tuple[int, Likeness]]:
    """Yield the items that a row is like, and how much; less than `MIN_COMMON` is left out.

    Args:
        text: text of the row.
        lines: the words of each of its lines.
        own: all of these words, numbered; 0 for a word that no item has.
        index: the items.
        skip: items that need not be compared.
    """
    holders = filter(None, map(index.holders.get, ngram_hashes(own, NGRAM)))
    shared = Counter(chain.from_iterable(holders))
    row: _Row | None = None
    for i, count in shared.items():
        if count < MIN_SEQUENCES:
            continue
        wording = index.wordings[i]
        if count < MIN_SHARED * wording.rare or wording.items[0] in skip:
            continue
        row = row or _read_row(text, lines, index)
        if MIN_COMMON_OF_ROW * len(row.words) > len(wording.words):
            continue
        same_numbers = _same_numbers(wording, row)
        if same_numbers or count >= MIN_SHARED_OF_VARIANT * wording.rare:
            common = _common(wording.words, row)
            size = common * len(wording.words)
            if common >= MIN_COMMON and size >= MIN_COMMON_OF_ROW * len(row.words):
                yield from ((item, Likeness(common, same_numbers)) for item in wording.items)


def differing_words(item: str, row: str) -> tuple[list[str], list[str]]:
    """Return the words that only the item has, and those that only the row has, in their order."""
    one, other = split_words(_plain(item)), split_words(_plain(row))
    return _without(one, Counter(other)), _without(other, Counter(one))


def has_other_numbers(item: str, row: str) -> bool:
    """Return whether a row has other numbers in the place of some of an item's: it is a variant.

    A number may be in words. 0 and 1 do not count, because they are in formulas for many reasons.
    """
    one, other = (
        [number for word in words if (number := _NUMBER_WORDS.get(word, word)).isdecimal()]
        for words in differing_words(item, row)
    )
    missing, extra = _without(one, Counter(other)), _without(other, Counter(one))
    return not _WEAK.issuperset(missing) and not _WEAK.issuperset(extra)


def _without(words: Sequence[str], others: Counter[str]) -> list[str]:
    rest = []
    for word in words:
        if others[word]:
            others[word] -= 1
        else:
            rest.append(word)
    return rest


@dataclass(frozen=True)
class _Row:
    """A row that is compared.

    Attributes:
        words: words of the row without figures and a prompt's template.
        numbers: its numbers and how often it has each.
    """

    words: Sequence[str]
    numbers: Mapping[str, int]

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The places of each word, as the bits of a number."""
        places = dict[str, int]()
        for i, word in enumerate(self.words):
            places[word] = places.get(word, 0) | 1 << i
        return places

    @cached_property
    def pairs(self) -> AbstractSet[tuple[str, str]]:
        """The pairs of neighbouring words."""
        return set(pairwise(self.words))


def _read_row(text: str, lines: Sequence[Sequence[str]], index: WordingIndex) -> _Row:
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
            or not index.holders.keys().isdisjoint(ngrams(own, NGRAM))
        ):
            words += line
    return _Row(words, _numbers_of(words))


def _plain(text: str) -> str:
    r"""Return a text without figures, and with numbers in one spelling: `\frac12`, `1,000`."""
    if "asy" in text:
        text = _FIGURE.sub(" ", text)
    if "frac" in text:
        text = _SHORT_FRACTION.sub(r"\1{\2}{\3}", text)
    return _THOUSANDS.sub("", text) if "," in text else text


def _numbers_of(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if word.isdecimal())


def _same_numbers(wording: Wording, row: _Row) -> bool:
    """Return whether the numbers are the same and enough evidence."""
    one, other = wording.numbers, row.numbers
    if not _has(one, other, row.words) or not _has(other, one, wording.words):
        return False
    if sum(map(_bits, one)) < MIN_BITS:
        return False
    both = sum(_bits(word) * min(count, other.get(word, 0)) for word, count in one.items())
    return 2 * both >= MIN_SAME_NUMBERS * (_weight(one) + _weight(other))


def _has(numbers: Mapping[str, int], others: Mapping[str, int], words: Collection[str]) -> bool:
    """Return whether the other text has these numbers, as digits or as words."""
    missing = numbers.keys() - others.keys() - _WEAK
    return not missing or missing <= {_NUMBER_WORDS[w] for w in words if w in _NUMBER_WORDS}


def _weight(numbers: Mapping[str, int]) -> float:
    return sum(_bits(word) * count for word, count in numbers.items())


def _bits(number: str) -> float:
    """The information in a number: that of its value, which a long number has in its length."""
    return log2(int(number) + 1) if len(number) <= 15 else len(number) * log2(10)


def _common(words: Sequence[str], row: _Row) -> float:
    """Return the share of words in their order or of pairs that are in a row, the larger one."""
    pairs = set(pairwise(words))
    return max(_in_order(words, row) / len(words), len(pairs & row.pairs) / len(pairs))


def _in_order(words: Sequence[str], row: _Row) -> int:
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
