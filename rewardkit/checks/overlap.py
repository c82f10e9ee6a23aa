"""Contamination: find evaluation items in training rows.

The first rule is the fraction of one item's word n-grams that are in one row. It finds copies, also in
part. A single common n-gram is not enough: "where m and n are relatively prime positive integers,
find m + n" is in a quarter of all AIME problems.

The second rule looks finer at rows that have rare sequences of three words in common with an item,
because eight words in a row break at every word that somebody changes. A row states the item in
other words if it has most of its words, in the same order or in the same pairs, and the same
numbers: with other numbers it is a variant with another answer. The numbers must say something: a
number n counts log2(n + 1) bits, so that 2024 is evidence, and 1, 2 and 3 are hardly any. A pair
with the same words only is a near miss, for a person to judge.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise, product, repeat
from math import log2
from typing import Literal, TypeAlias

from rewardkit.errors import UsageError

Rule: TypeAlias = Literal["copy", "part", "reworded", "near_miss"]

#: Words per n-gram, as in open-r1; the GPT-3 family uses 8 to 13.
NGRAM = 8

#: An n-gram in more than this fraction of a set's items, and in more than this number of items, is
#: boilerplate and does not count. Two problems may be variants of each other.
COMMON_FRACTION = 0.05
COMMON_ITEMS = 2

#: Fraction of the threshold from which on a coverage below it is a near miss.
NEAR = 0.5

#: Minimum number of n-grams that count. An item with fewer must be in the row word for word.
MIN_GRAMS = 8

#: Words per sequence by which candidates of the second rule are looked up, and the maximum number of
#: distinct texts that a sequence may be in. The maximum bounds the work per row.
SEQUENCE = 3
MAX_HOLDERS = 4

#: Minimum number of an item's sequences that a candidate has, and their minimum fraction: of a
#: candidate with the item's numbers, and of one without them, which can only be a near miss.
MIN_SEQUENCES = 4
MIN_SHARED = 0.1
MIN_SHARED_OF_VARIANT = 0.25

#: Minimum number of words of an item of the second rule: short problems of one kind differ by a
#: single word. And the maximum: comparing takes the product of the words of both texts.
MIN_WORDS = 20
MAX_WORDS = 1000

#: Minimum fraction of the item's words in the row, and of the row's words in the item.
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

#: Commands that change how a formula looks, not what it means; `cdot` and `times` are among them
#: because a product is often written without a sign.
_LAYOUT = re.compile(
    r"\\(?:left|right|bigg?[lrm]?|displaystyle|textstyle|limits|quad|qquad|hspace|vspace|phantom"
    r"|text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|it|rm|sf|tt|bb|cal|frak|scr|op)|operatorname|mbox"
    r"|emph|boldsymbol|cdot|times|begin|end)(?![a-z])"
    r"|\^(?=\{?\\circ(?![a-z]))"  # of degrees: the Unicode sign has no ^
)

_SHORT_FRACTION = re.compile(r"(\\[dt]?frac) ?(\d) ?(\d)")
_THOUSANDS = re.compile(r"(?<=\d)(?:,(?:\\!)?|\{,\}|\\,)(?=\d{3}(?!\d))")

#: Han with its extensions, kana with their marks, and compatibility forms that NFKC keeps.
_CJK = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

#: A hyphen or dash that is not part of a word: `two-digit` has a hyphen, `x-y` has a minus.
_MINUS = r"(?<![^\W\d_]{2})[-\u2013\u2212]|[-\u2013\u2212](?![^\W\d_]{2})"

#: Arrows and mathematical operators, except the dots and asterisks that mean a product.
_SIGNS = (
    r"+/^=<>!|%\u00ac\u00b0\u00b1\u00f7\u2044\u2190-\u2211\u2213-\u2216\u221a-\u22c3\u22c8-\u22ff"
)

_WORD = re.compile(rf"[^\W\d_{_CJK}]+|\d+|[{_CJK}]|[{_SIGNS}]|{_MINUS}")

#: Signs and commands with the same meaning, mapped to one name.
_SYNONYMS = {
    "leq": "le", "leqslant": "le", "\u2264": "le", "\u2a7d": "le",
    "geq": "ge", "geqslant": "ge", "\u2265": "ge", "\u2a7e": "ge",
    "neq": "ne", "\u2260": "ne", "lt": "<", "gt": ">",
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom",
    "\u00b1": "pm", "\u00b0": "circ", "\u00f7": "/", "div": "/", "\u2044": "/", "\u221a": "sqrt",
    "\u2220": "angle", "\u2261": "equiv", "\u2208": "in", "\u221e": "infty", "\u2211": "sum",
    "mid": "|", "vert": "|", "lvert": "|", "rvert": "|", "\u2223": "|",
    "\u2013": "-", "\u2212": "-",
}  # fmt: skip

#: Maximum number of consecutive combining marks. Normalization sorts them, which takes the square
#: of their number; Unicode's stream-safe text format (UAX 15) has the same limit.
_MAX_MARKS = 30
_LONG_NON_ASCII = re.compile(r"[^\x00-\x7f]{31}")

_FIGURE = re.compile(r"[\[<]asy[\]>].*?(?:[\[<]/asy[\]>]|\Z)", re.DOTALL)


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
        coverage: fraction of the item's n-grams that are in the row, 0 to 1.
        item_text: text of the item.
        row_text: text of the row.
        rule: why the pair is reported: `copy` (all of the item), `part` (the coverage reaches the
            threshold), `reworded` (the item with its numbers in other words), or `near_miss`, which
            does not count as an overlap: the texts are alike, but may be two problems.
        common: fraction of the item's words that are in the row, 0 to 1; 0 if it was not counted.
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
class _Prose:
    """The words of a text without figures, and its numbers with how often it has each."""

    words: Sequence[str]

    @cached_property
    def numbers(self) -> Counter[str]:
        return Counter(word for word in self.words if word.isdecimal())

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The positions of each word, as the bits of a number."""
        positions = dict[str, int]()
        for i, word in enumerate(self.words):
            positions[word] = positions.get(word, 0) | 1 << i
        return positions

    @cached_property
    def pairs(self) -> AbstractSet[tuple[str, str]]:
        return set(pairwise(self.words))


@dataclass
class _EvalText:
    """A distinct text of evaluation items.

    Attributes:
        items: the items with this text.
        prose: its words, for the second rule.
        ngrams: number of its n-grams that count; 0 if it must be in a row word for word.
        sequences: number of its rare sequences; 0 if it is too short or too long for the second rule.
    """

    items: Sequence[EvalItem]
    prose: _Prose
    ngrams: int
    sequences: int = 0


@dataclass(frozen=True)
class EvalIndex:
    """Evaluation items, indexed for `find_overlaps`. `index_items` builds it.

    Attributes:
        sources: names of the items' sets.
        texts: the distinct texts of the items, without those that have no words.
        numbers: number of each word of the items, from 1; 0 stands for any other word.
        holders: the texts with an n-gram that counts, or with a rare sequence of words, by its hash.
        whole: the texts that must be in a row word for word, by the hash of all their words.
        lengths: lengths of those texts, in words.
    """

    sources: Sequence[str]
    texts: Sequence[_EvalText]
    numbers: Mapping[str, int]
    holders: Mapping[int, Sequence[int]]
    whole: Mapping[int, int]
    lengths: Collection[int]

    def count(self, row: Sequence[int], n: int) -> Counter[int]:
        """Return how many sequences of `n` words each text has in common with a row."""
        shared = filter(self.holders.__contains__, _ngrams(row, n))
        return Counter(chain.from_iterable(map(self.holders.__getitem__, shared)))


def index_items(items: Iterable[EvalItem]) -> EvalIndex:
    """Index evaluation items; the index may contain several sets, and one set repeatedly.

    Boilerplate does not count, such as a prompt template or the last sentence of an exam's problems.
    The Asymptote code of figures does not count either, because most figures draw the same axes,
    unless an item has too few n-grams without it. Memory is proportional to the items' text.
    """
    numbers = dict[str, int]()
    owners = defaultdict[tuple[int, ...], list[EvalItem]](list)  # AIME files repeat each text
    sources = defaultdict[str, dict[tuple[int, ...], None]](dict)
    for item in items:
        if words := split_words(item.text):
            own = tuple(numbers.setdefault(word, len(numbers) + 1) for word in words)
            owners[own].append(item)
            sources[item.source][own] = None
    boilerplate = {source: _boilerplate(distinct) for source, distinct in sources.items()}
    texts = list[_EvalText]()
    holders, sequences = dict[int, tuple[int, ...]](), dict[int, tuple[int, ...]]()
    whole, lengths = dict[int, int](), set[int]()
    for i, (own, same) in enumerate(owners.items()):
        parts = [split_words(part) for part in _FIGURE.split(same[0].text)]
        common = set[int]().union(*(boilerplate[item.source] for item in same))
        grams = _distinctive_ngrams(own, [_number(part, numbers) for part in parts], common)
        if not grams:
            whole[hash(own)] = i
            lengths.add(len(own))
        prose = _Prose(list(chain.from_iterable(parts)))
        texts.append(_EvalText(same, prose, len(grams)))
        holder = (i,)  # one tuple for all n-grams of a text, to save memory
        for key in grams:
            holders[key] = holders.get(key, ()) + holder
        if MIN_WORDS <= len(prose.words) <= MAX_WORDS:
            for key in _ngrams(_number(prose.words, numbers), SEQUENCE):
                if len(others := sequences.get(key, ())) <= MAX_HOLDERS:
                    sequences[key] = others + holder
    rare = {key: same for key, same in sequences.items() if len(same) <= MAX_HOLDERS}
    for i, count in Counter(chain.from_iterable(rare.values())).items():
        texts[i].sequences = count
    return EvalIndex(list(sources), texts, numbers, holders | rare, whole, sorted(lengths))


def find_overlaps(
    texts: Iterable[str], index: EvalIndex, threshold: float = 0.5, *, near_misses: bool = False
) -> Iterator[Overlap]:
    """Yield the evaluation items in each training row, row by row.

    A row contains an item if it has at least `threshold` of the item's n-grams, and all of them or
    the item's numbers. For any `threshold`, it contains an item with fewer than `MIN_GRAMS` n-grams
    if the row, or consecutive lines of it, have exactly the item's words ("Find x." within a
    sentence says nothing; pass questions, because a template adds words to the line), and an item
    that it states in other words. Time is linear in the rows, which are read one at a time.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold}: it must be above 0 and at most 1.")
    for row, text in enumerate(texts):
        words = [split_words(line) for line in text.splitlines()]
        lines = [_number(line, index.numbers) for line in words]
        own = list(chain.from_iterable(lines))
        coverages = {i: n / index.texts[i].ngrams for i, n in index.count(own, NGRAM).items()}
        coverages.update((i, 1.0) for i in _short_texts_in_row(lines, own, index))
        copies = {i for i, coverage in coverages.items() if coverage + 1e-9 >= threshold}
        near = {i for i, coverage in coverages.items() if coverage + 1e-9 >= NEAR * threshold}
        likenesses = dict(_like_texts(text, words, own, index, copies))
        for i in sorted({*near, *likenesses}):
            items, (common, same_numbers) = index.texts[i].items, likenesses.get(i, (0.0, False))
            coverage = coverages.get(i, 0.0)
            rule: Rule = "reworded" if same_numbers else "near_miss"
            if i in copies and coverage >= 1:
                rule = "copy"
            elif i in copies and not _has_other_numbers(items[0].text, text):
                rule = "part"
            if near_misses or rule != "near_miss":
                for item in items:
                    yield Overlap(
                        row, item.source, item.item, coverage, item.text, text, rule, common
                    )


def differing_words(item: str, row: str) -> tuple[list[str], list[str]]:
    """Return the words that only the item has, and those that only the row has, in their order."""
    one, other = (split_words(_FIGURE.sub(" ", text)) for text in (item, row))
    return _without(one, other), _without(other, one)


def _number(words: Sequence[str], numbers: Mapping[str, int]) -> list[int]:
    return list(map(numbers.get, words, repeat(0)))


def _ngrams(words: Sequence[int], n: int) -> set[int]:
    """Return the hashes of the sequences of `n` numbered words; none if there are fewer words."""
    return set(map(hash, zip(*(words[i:] for i in range(n)), strict=False)))


def _boilerplate(texts: Collection[Sequence[int]]) -> set[int]:
    """Return the n-grams that too many texts of a set have."""
    counts = Counter(key for text in texts for key in _ngrams(text, NGRAM))
    most = max(COMMON_ITEMS, COMMON_FRACTION * len(texts))
    return {key for key, count in counts.items() if count > most}


def _distinctive_ngrams(
    text: Sequence[int], prose: Sequence[Sequence[int]], common: Collection[int]
) -> set[int]:
    """Return the n-grams of a text that count: of its prose, or of all if these are too few."""
    grams = set[int]().union(*(_ngrams(part, NGRAM) for part in prose)).difference(common)
    if len(grams) < MIN_GRAMS:
        grams = _ngrams(text, NGRAM).difference(common)
    return grams if len(grams) >= MIN_GRAMS else set()


def _short_texts_in_row(
    lines: Sequence[Sequence[int]], own: Sequence[int], index: EvalIndex
) -> Iterator[int]:
    """Yield the short texts that are word for word on consecutive lines of a row."""
    ends = {0, *accumulate(map(len, lines))}
    for start, length in product(ends, index.lengths):
        if start + length in ends:
            i = index.whole.get(hash(tuple(own[start : start + length])))
            if i is not None:
                yield i


def _like_texts(
    text: str,
    lines: Sequence[Sequence[str]],
    own: Sequence[int],
    index: EvalIndex,
    skip: Collection[int],
) -> Iterator[tuple[int, tuple[float, bool]]]:
    """Yield the texts that a row is like, with the fraction of common words and whether the numbers agree."""
    row: _Prose | None = None
    for i, count in index.count(own, SEQUENCE).items():
        item, rare = index.texts[i].prose, index.texts[i].sequences
        if count < max(MIN_SEQUENCES, MIN_SHARED * rare) or i in skip:
            continue
        row = row or _read_row(text, lines, index)
        if MIN_COMMON_OF_ROW * len(row.words) > len(item.words):
            continue
        same_numbers = _same_numbers(item, row)
        if same_numbers or count >= MIN_SHARED_OF_VARIANT * rare:
            in_order = _common_subsequence(item.words, row) / len(item.words)
            common = max(in_order, len(item.pairs & row.pairs) / len(item.pairs))
            is_most_of_row = common * len(item.words) >= MIN_COMMON_OF_ROW * len(row.words)
            if common >= MIN_COMMON and is_most_of_row:
                yield i, (common, same_numbers)


def _has_other_numbers(item: str, row: str) -> bool:
    """Return whether a row has other numbers in the place of some of an item's: it is a variant."""
    one, other = (
        [number for word in words if (number := _NUMBER_WORDS.get(word, word)).isdecimal()]
        for words in differing_words(item, row)
    )
    return not _WEAK.issuperset(_without(one, other)) and not _WEAK.issuperset(_without(other, one))


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    return list((Counter(words) - Counter(others)).elements())


def _read_row(text: str, lines: Sequence[Sequence[str]], index: EvalIndex) -> _Prose:
    """Return a row without the lines that have neither a number nor a sequence of any item."""
    if "asy" in text:
        lines = [split_words(line) for line in _FIGURE.sub(" ", text).splitlines()]
    words = list[str]()
    for line in lines:
        if (
            len(lines) == 1
            or any(word.isdecimal() for word in line)
            or index.count(_number(line, index.numbers), SEQUENCE)
        ):
            words += line
    return _Prose(words)


def _same_numbers(item: _Prose, row: _Prose) -> bool:
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


def _common_subsequence(words: Sequence[str], row: _Prose) -> int:
    """Return the length of the longest common subsequence, all positions of the row at a time.

    The method is Hyyrö's (2004): a zero bit is a position of the row where the subsequence grows.
    """
    ones = (1 << len(row.words)) - 1
    state = ones
    for word in words:
        if matches := state & row.positions.get(word, 0):
            state = (state + matches | state - matches) & ones
    return len(row.words) - state.bit_count()


def split_words(text: str) -> list[str]:
    r"""Return the words of a text in their order, without markup that does not change a problem.

    Case, Unicode's compatibility forms, punctuation, brackets, dollars, LaTeX's layout commands and
    multiplication signs are removed: `2*3`, `2\cdot 3` and `2\times 3` have the words 2 and 3. Other
    commands and operators are words, because `x+1` is not `x-1`, and `x^2` is not x with the index 2;
    all spellings of an operator are one word. A hyphen between two words of at least two letters is
    punctuation. A number has one spelling: `1,000` is 1000, and `\frac12` is `\frac{1}{2}`. Digits
    and letters are separate words, and so is a Chinese or Japanese character.

    It never raises, also for lone surrogates, which are not words, and takes linear time.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _stream_safe(text))
    text = text.casefold()
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if "\\" in text:  # casefold has made all commands lower case
        text = _SHORT_FRACTION.sub(r"\1{\2}{\3}", text)
        text = _LAYOUT.sub(" ", text)
    words = _WORD.findall(text)
    return list(map(_SYNONYMS.get, words, words))


def _stream_safe(text: str) -> str:
    """Return the text with at most `_MAX_MARKS` consecutive combining marks."""
    if not _LONG_NON_ASCII.search(text):
        return text
    characters, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MAX_MARKS:
            characters.append(character)
    return "".join(characters)
