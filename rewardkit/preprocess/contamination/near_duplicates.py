"""Near-duplicates within a training set: rows that share most of their word n-grams.

Candidates come from the prefix filter of all-pairs search (Bayardo, Ma and Srikant, WWW 2007), not
from MinHash: with every set's n-grams in one order, rarest first, two sets at or above the
threshold have an n-gram in common among the first few of both. Nothing is estimated and nothing
missed below the cap, there are no seeds, no parameters to tune and no library to install; n-grams
that no other row has, nearly all of them in real problems, are never looked up.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil

from rewardkit.errors import UsageError
from rewardkit.preprocess.contamination.overlap import ngrams
from rewardkit.preprocess.contamination.word_splitting import split_words

#: Words in an n-gram; shorter than for contamination, as both texts are whole problems.
NGRAM = 5

#: An n-gram in more than this share of the distinct rows is boilerplate and does not count ...
COMMON_SHARE = 0.1

#: ... unless it is in no more rows than this: a small file may well be full of near-duplicates.
COMMON_ROWS = 100

#: Rows kept under one n-gram, those nearest in size. What bounds the work on a row.
CAP = 32

#: Slots of the table that counts in how many rows n-grams are: fixed memory (16 MB), whatever
#: comes. N-grams that share a slot are counted together, which moves their order and, one in
#: 100,000, takes one for boilerplate.
_SLOTS = 1 << 22


@dataclass(frozen=True)
class _Set:
    """The n-grams of a row that count, rarest first; the first `alone` are in no other row."""

    grams: array[int]
    alone: int


class _Numbers(dict[str, int]):
    """A number for each word that depends on the word alone, so that row order cannot matter."""

    def __missing__(self, word: str) -> int:
        digest = blake2b(word.encode(), digest_size=7).digest()
        return self.setdefault(word, int.from_bytes(digest, "little"))


def near_duplicates(texts: Iterable[str], threshold: float = 0.8) -> list[list[int]]:
    """Clusters of two or more row numbers, ascending, by the first of each.

    Two rows are joined when the Jaccard similarity of their word n-grams is at least `threshold`,
    which is computed exactly, or when all their n-grams are the same. Joining is transitive: a
    chain of small changes is one cluster, so its ends may be less alike than `threshold`.

    Boilerplate (see `COMMON_SHARE`) does not count, so a prompt template makes no two rows alike;
    equal rows count as one in finding it. A row shorter than an n-gram is one n-gram, a row
    without a word is like no other. Where more than `CAP` rows share a rare n-gram, some pairs of
    them are not compared; what is joined is right all the same.

    Time and memory are linear in the rows: 8 bytes for each n-gram of each distinct row. The
    result does not depend on the order of the rows, but for their numbers.

    Args:
        texts: the rows, taken one at a time.
        threshold: above 0, at most 1.

    Raises:
        UsageError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"threshold {threshold} is not above 0 and at most 1")
    rows = _rows_by_grams(texts)
    sets = _kept(list(rows))
    leaders = list(range(len(sets)))
    for one, other in _candidates(sets, threshold, leaders):
        if _similar(sets[one].grams, sets[other].grams, threshold):
            leaders[_leader(leaders, one)] = _leader(leaders, other)
    clusters = defaultdict[int, list[int]](list)
    for i, same in enumerate(rows.values()):
        clusters[_leader(leaders, i)].extend(same)
    return sorted(sorted(rows) for rows in clusters.values() if len(rows) > 1)


def _rows_by_grams(texts: Iterable[str]) -> dict[bytes, list[int]]:
    """Row numbers by the n-grams of the row, packed: equal rows share an entry."""
    numbers = _Numbers()
    rows: dict[bytes, list[int]] = {}
    for row, text in enumerate(texts):
        own = [numbers[word] for word in split_words(text)]
        grams = ngrams(own, NGRAM) or {hash(tuple(own))}
        if own:
            rows.setdefault(array("q", sorted(grams)).tobytes(), []).append(row)
    return rows


def _kept(packed: Sequence[bytes]) -> list[_Set]:
    """Of each distinct row, the n-grams that count."""
    counts = array("I", bytes(array("I").itemsize * _SLOTS))
    for grams in packed:
        for key in _unpacked(grams):
            counts[key % _SLOTS] += 1
    most = max(COMMON_ROWS, COMMON_SHARE * len(packed))
    return [_ranked(grams, counts, most) for grams in packed]


def _ranked(grams: bytes, counts: array[int], most: float) -> _Set:
    ranked = sorted((counts[key % _SLOTS], key) for key in _unpacked(grams))
    kept = [(count, key) for count, key in ranked if count <= most]
    return _Set(array("q", [key for _, key in kept]), sum(count == 1 for count, _ in kept))


def _candidates(
    sets: Sequence[_Set], threshold: float, leaders: list[int]
) -> Iterator[tuple[int, int]]:
    """Pairs that may be similar and are not joined yet, the smaller set second.

    Of two sets at the threshold the larger has at most `1 - threshold` of its n-grams for itself,
    so one of the prefix, which is one longer, is in the other set, and in its prefix.
    """
    holders = defaultdict[int, list[int]](list)
    for one in sorted(range(len(sets)), key=lambda i: (len(sets[i].grams), sets[i].grams)):
        size = len(sets[one].grams)
        prefix = sets[one].grams[: size - ceil(threshold * size - 1e-9) + 1]
        tried = set[int]()
        for key in prefix[sets[one].alone :]:
            for other in holders[key]:
                if other not in tried and len(sets[other].grams) >= threshold * size:
                    tried.add(other)
                    if _leader(leaders, one) != _leader(leaders, other):
                        yield one, other
            holders[key].append(one)
            del holders[key][:-CAP]


def _similar(one: array[int], other: array[int], threshold: float) -> bool:
    shared = len(frozenset(one).intersection(other))
    return shared >= threshold * (len(one) + len(other) - shared)


def _leader(leaders: list[int], i: int) -> int:
    """The set that stands for the cluster of set `i`; halves the way to it for the next time."""
    while leaders[i] != i:
        leaders[i] = leaders[leaders[i]]
        i = leaders[i]
    return i


def _unpacked(grams: bytes) -> memoryview[int]:
    return memoryview(grams).cast("q")
