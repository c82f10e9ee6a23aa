"""`near_duplicates` joins only rows that are nearly equal."""

from itertools import combinations

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.errors import UsageError
from rewardkit.preprocess.contamination import near_duplicates as module
from rewardkit.preprocess.contamination.near_duplicates import NGRAM, near_duplicates
from rewardkit.preprocess.contamination.word_splitting import split_words

TEXTS = st.lists(st.sampled_from("abcde"), max_size=12).map(" ".join)
LONG = [f"{a}{b}" for a in "bcdfghjklm" for b in "aeiou"]


def grams(text):
    words = split_words(text)
    return {tuple(words[i : i + NGRAM]) for i in range(max(1, len(words) - NGRAM + 1))}


def by_hand(texts, threshold):
    """Compare every pair, and join those that are similar."""
    clusters = [{i} for i in range(len(texts)) if split_words(texts[i])]
    for i, j in combinations(range(len(texts)), 2):
        one, other = grams(texts[i]), grams(texts[j])
        if split_words(texts[i]) and len(one & other) / len(one | other) >= threshold:
            joined = [c for c in clusters if i in c or j in c]
            clusters = [c for c in clusters if c not in joined] + [set().union(*joined)]
    return sorted(sorted(c) for c in clusters if len(c) > 1)


@given(st.lists(TEXTS, max_size=12), st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]))
def test_the_clusters_are_those_of_comparing_every_pair(texts, threshold):
    assert near_duplicates(texts, threshold) == by_hand(texts, threshold)


@given(st.lists(TEXTS, max_size=15), st.randoms())
def test_permuting_rows_permutes_clusters(texts, random):
    order = list(range(len(texts)))
    random.shuffle(order)
    moved = near_duplicates([texts[i] for i in order], 0.5)
    back = sorted(sorted(order[i] for i in cluster) for cluster in moved)
    assert back == near_duplicates(texts, 0.5)


@given(st.lists(st.sampled_from(LONG), min_size=60, max_size=80), st.integers(0, 59))
def test_a_row_with_one_changed_word_is_a_near_duplicate(text, place):
    changed = [*text[:place], "another", *text[place + 1 :]]
    unique = [f"{word} {i}" for i, word in enumerate(text)]
    mine = [*unique[:place], "another", *unique[place + 1 :]]
    assert near_duplicates([" ".join(unique), "x", " ".join(mine)]) == [[0, 2]]
    assert near_duplicates([" ".join(text), " ".join(changed)], 0.01) == [[0, 1]]


@given(st.lists(st.text(), max_size=10))
def test_any_text_is_accepted(texts):
    for cluster in near_duplicates(texts):
        assert cluster == sorted(set(cluster))
        assert len(cluster) > 1


def test_equal_rows_are_joined_in_any_markup_and_empty_rows_are_not():
    assert near_duplicates(["Find $x$.", "", "$$", "find X", "Find y"]) == [[0, 3]]


def test_a_chain_of_small_changes_is_one_cluster():
    text = [f"{word} {i}" for i, word in enumerate(LONG)]
    chain = [" ".join(["other"] * k + text[k:]) for k in range(0, 20, 2)]
    assert near_duplicates(chain) == [list(range(10))]
    assert near_duplicates([chain[0], chain[-1]]) == []


def template(i):
    """A prompt of 40 words of instruction and a question of two."""
    instruction = "solve the following problem step by step and put the answer last please " * 3
    return f"{instruction}\n\nFind {LONG[i % 50]}{LONG[i // 50]}\n\n{instruction}"


def test_a_template_does_not_make_rows_similar():
    rows = [template(i) for i in range(300)]
    assert near_duplicates(rows) == []
    assert near_duplicates([*rows, rows[7].upper()]) == [[7, 300]]


def comparisons(rows, monkeypatch):
    calls = []
    similar = module._similar
    monkeypatch.setattr(module, "_similar", lambda *a: calls.append(1) or similar(*a))
    clusters = near_duplicates(rows)
    monkeypatch.setattr(module, "_similar", similar)
    return len(calls), clusters


def nearly_the_same(rows):
    """Rows of 60 words that differ in one, each word in under a tenth of the file."""
    return [
        " ".join(f"{word}x{i % 20}y {k}" if k != i % 50 else f"n{i}" for k, word in enumerate(LONG))
        for i in range(rows)
    ]


def test_nearly_equal_rows_become_one_cluster_in_linear_work(monkeypatch):
    """Each row is compared at most once; all pairs would be a million."""
    count, clusters = comparisons(nearly_the_same(2000), monkeypatch)
    assert len(clusters) == 20
    assert sum(map(len, clusters)) == 2000
    assert count < 2 * 2000


@pytest.mark.parametrize("threshold", [0, -1, 1.1, float("nan")])
def test_a_threshold_out_of_range_is_one_clear_error(threshold):
    with pytest.raises(UsageError, match="threshold"):
        near_duplicates([], threshold)


def test_real_dapo_has_about_as_many_clusters_as_in_another_implementation(shared):
    """The other one has 15,720 and ignores operators."""
    [file] = (shared / "data/dapo-math-17k/data").glob("*.parquet")
    rows = [p[0]["content"] for p in pq.read_table(file)["prompt"].to_pylist()]
    clusters = near_duplicates(rows)
    assert abs(len(rows) - sum(map(len, clusters)) + len(clusters) - 15_720) < 100
    assert max(map(len, clusters)) < 15
