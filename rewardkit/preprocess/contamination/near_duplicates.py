"""Find near-duplicates in a training set: rows that share most of their word n-grams.

Candidates come from the prefix filter of all-pairs search (Bayardo, Ma and Srikant, WWW 2007), not
from MinHash. If the n-grams of every set are in one order, rarest first, two sets at or above the
threshold have an n-gram in common among the first few of both. Nothing is estimated, no pair is
missed unless more than `MAX_HOLDERS` rows share an n-gram, and there are no seeds, parameters or
libraries. N-grams that only one row has, nearly all n-grams of real problems, are never looked up.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from math import ceil

from rewardkit.errors import UsageError
from rewardkit.preprocess.contamination.word_splitting import ngrams, split_words

#: Words per n-gram; fewer than for contamination, because both texts are complete problems.
NGRAM = 5

#: An n-gram in more than this share of the distinct rows, and in more than this number of rows, is
#: boilerplate and does not count. Many rows of a small file may be near-duplicates.
COMMON_SHARE = 0.1
COMMON_ROWS = 100

#: Maximum number of rows that are looked up by one n-gram, those of the nearest size. It bounds the
#: work per row.
MAX_HOLDERS = 32

#: Slots of the table that counts the rows of each n-gram: 16 MB for any number of n-grams. N-grams
#: that share a slot are counted together. That changes their order, and one n-gram in 100,000 is
#: taken for boilerplate.
_SLOTS = 1 << 22


@dataclass(frozen=True)
class _RowGrams:
    """The n-grams of a row that count, rarest first; the first `unique` are in no other row."""

    grams: array[int]
    unique: int


class _WordNumbers(dict[str, int]):
    """A number for each word that depends only on the word, so that the row order has no effect."""

    def __missing__(self, word: str) -> int:
        digest = blake2b(word.encode(), digest_size=7).digest()
        return self.setdefault(word, int.from_bytes(digest, "little"))


def near_duplicates(texts: Iterable[str], threshold: float = 0.8) -> list[list[int]]:
    """Return clusters of two or more row numbers, both in ascending order.

    Two rows are joined if the Jaccard similarity of their word n-grams, which is computed exactly,
    is at least `threshold`, or if all their n-grams are the same. Joining is transitive: a chain of
    small changes is one cluster, and its ends may have a lower similarity than `threshold`.

    Boilerplate (see `COMMON_SHARE`) does not count, so that a prompt template does not make rows
    similar; equal rows count once in the search for it. A row shorter than an n-gram is one
    n-gram, and a row without words is in no cluster. If more than `MAX_HOLDERS` rows share a rare
    n-gram, some pairs of them are not compared; rows that are joined are always similar.

    Time and memory are linear in the rows: 8 bytes for each n-gram of each distinct row. The order
    of the rows changes only their numbers.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold}: it must be above 0 and at most 1.")
    rows = _rows_by_grams(texts)
    sets = _counted_grams(list(rows))
    leaders = list(range(len(sets)))
    for one, other in _candidates(sets, threshold, leaders):
        if _similar(sets[one].grams, sets[other].grams, threshold):
            leaders[_leader(leaders, one)] = _leader(leaders, other)
    clusters = defaultdict[int, list[int]](list)
    for i, same in enumerate(rows.values()):
        clusters[_leader(leaders, i)].extend(same)
    return sorted(sorted(rows) for rows in clusters.values() if len(rows) > 1)


def _rows_by_grams(texts: Iterable[str]) -> dict[bytes, list[int]]:
    """Return row numbers by the packed n-grams of the row; equal rows share an entry."""
    numbers = _WordNumbers()
    rows: dict[bytes, list[int]] = {}
    for row, text in enumerate(texts):
        own = [numbers[word] for word in split_words(text)]
        grams = ngrams(own, NGRAM) or {hash(tuple(own))}
        if own:
            rows.setdefault(array("q", sorted(grams)).tobytes(), []).append(row)
    return rows


def _counted_grams(packed: Sequence[bytes]) -> list[_RowGrams]:
    counts = array("I", bytes(array("I").itemsize * _SLOTS))
    for key in chain.from_iterable(map(_unpacked, packed)):
        counts[key % _SLOTS] += 1
    most, rows = max(COMMON_ROWS, COMMON_SHARE * len(packed)), list[_RowGrams]()
    for grams in packed:
        ranked = sorted((counts[key % _SLOTS], key) for key in _unpacked(grams))
        rare = [(count, key) for count, key in ranked if count <= most]
        unique = sum(count == 1 for count, _ in rare)
        rows.append(_RowGrams(array("q", [key for _, key in rare]), unique))
    return rows


def _candidates(
    sets: Sequence[_RowGrams], threshold: float, leaders: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield pairs that may be similar and are not joined yet, with the smaller set second.

    If two sets reach the threshold, at most `1 - threshold` of the larger one's n-grams are not in
    the smaller one. The prefix is one n-gram longer than that, so one of its n-grams is in the
    other set, and also in the prefix of that set.
    """
    holders = defaultdict[int, list[int]](list)
    for one in sorted(range(len(sets)), key=lambda i: (len(sets[i].grams), sets[i].grams)):
        size = len(sets[one].grams)
        prefix = sets[one].grams[: size - ceil(threshold * size - 1e-9) + 1]
        tried = set[int]()
        for key in prefix[sets[one].unique :]:
            for other in holders[key]:
                if other not in tried and len(sets[other].grams) >= threshold * size:
                    tried.add(other)
                    if _leader(leaders, one) != _leader(leaders, other):
                        yield one, other
            holders[key].append(one)
            del holders[key][:-MAX_HOLDERS]


def _similar(one: array[int], other: array[int], threshold: float) -> bool:
    shared = len(frozenset(one).intersection(other))
    return shared >= threshold * (len(one) + len(other) - shared)


def _leader(leaders: list[int], i: int) -> int:
    """Return the set that represents the cluster of set `i`, and shorten the path to it (halving)."""
    while leaders[i] != i:
        leaders[i] = leaders[leaders[i]]
        i = leaders[i]
    return i


def _unpacked(grams: bytes) -> memoryview[int]:
    return memoryview(grams).cast("q")
