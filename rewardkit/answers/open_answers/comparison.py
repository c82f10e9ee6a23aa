"""Comparison of words: the same word, a slip in its spelling, a run of words in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rewardkit.answers.open_answers.vocabulary import DEMONYM_ENDINGS, FUNCTION_WORDS
from rewardkit.answers.open_answers.words import Word, stem

#: Letters of the shortest word in which a slip is accepted, and of the shortest with two slips.
MIN_SLIP_LETTERS: Final = 6
MIN_TWO_SLIPS_LETTERS: Final = 9
#: Letters of the shortest gold of one word in which a slip is accepted.
MIN_SLIP_LETTERS_ALONE: Final = 8
#: Letters of a word that are compared for slips.
MAX_SLIP_LETTERS: Final = 40
#: Most words that are joined to one: `bee keeper` and `beekeeper`.
MAX_JOINED: Final = 6


class MatchedWords(NamedTuple):
    """The words of a sentence that are a gold: the places of the first one and after the last one."""

    start: int
    end: int


def is_same_word(word: Word, gold: Word) -> bool:
    """Whether two words are the same: a common word in any form, a name exactly, a number by value."""
    if word.form == gold.form:
        return True
    if word.is_number or gold.is_number or (word.is_name and gold.is_name):
        return False
    return stem(word.form) == stem(gold.form)


def content_places(sentence: tuple[Word, ...], gold: tuple[Word, ...]) -> list[int]:
    """Return the places of the words that count beside a gold: function words only if it has no others."""
    if all(word.form in FUNCTION_WORDS for word in gold):
        return list(range(len(sentence)))
    return [place for place, word in enumerate(sentence) if word.form not in FUNCTION_WORDS]


def runs(
    parts: tuple[Word, ...], sentence: tuple[Word, ...], places: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield where words stand one after the other among the places of a sentence."""
    first, rest = parts[0], parts[1:]
    for at in range(len(places) - len(rest)):
        if is_same_word(sentence[places[at]], first) and all(
            is_same_word(sentence[places[at + k]], part) for k, part in enumerate(rest, start=1)
        ):
            yield places[at], places[at + len(rest)] + 1


def match_joined(gold: tuple[Word, ...], sentence: tuple[Word, ...]) -> MatchedWords | None:
    """Match a compound that one side writes as one word: `bee keeper`, `beekeeper`; `B 12`, `B12`."""
    if gold[0].is_number:
        return None
    whole = "".join(word.form for word in gold)
    if len(whole) < 3 and whole.isalpha():
        return None
    for start, word in enumerate(sentence):
        if not whole.startswith(word.form):
            continue
        text = ""
        for end in range(start, min(start + MAX_JOINED, len(sentence))):
            text += sentence[end].form
            if text == whole:
                return MatchedWords(start, end + 1)
            if len(text) >= len(whole):
                break
    return None


def match_spelling(gold: tuple[Word, ...], sentence: tuple[Word, ...]) -> MatchedWords | None:
    """Match a gold with slips in the spelling of its long words."""
    if len(gold) == 1 and len(gold[0].form) < MIN_SLIP_LETTERS_ALONE:
        return None  # because `Austin` is not `Austen`
    if all(len(word.form) < MIN_SLIP_LETTERS for word in gold):
        return None
    for start in range(len(sentence) - len(gold) + 1):
        if all(_is_same_spelling(sentence[start + k], part) for k, part in enumerate(gold)):
            return MatchedWords(start, start + len(gold))
    return None


def _is_same_spelling(word: Word, gold: Word) -> bool:
    if is_same_word(word, gold):
        return True
    a, b = word.form[:MAX_SLIP_LETTERS], gold.form[:MAX_SLIP_LETTERS]
    shorter = min(len(a), len(b))
    if word.is_number or gold.is_number or shorter < MIN_SLIP_LETTERS or abs(len(a) - len(b)) > 2:
        return False
    if a[0] != b[0] or (a[:3] != b[:3] and a[-3:] != b[-3:]):
        return False
    return edit_distance(a, b) <= 1


def edit_distance(a: str, b: str) -> int:
    """Return how many letters of a word are added, left out, replaced or swapped in another."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


def match_origin(gold: tuple[Word, ...], sentence: tuple[Word, ...]) -> MatchedWords | None:
    """Match the adjective of a place, such as `Colombian`, for the place."""
    if len(gold) != 1 or not gold[0].is_name or len(gold[0].form) < 4:
        return None
    place = gold[0].form
    root = place.rstrip("aeiouy")
    adjectives = {start + ending for start in (place, root) for ending in DEMONYM_ENDINGS}
    for at, word in enumerate(sentence):
        if word.is_name and word.form in adjectives - {place}:
            return MatchedWords(at, at + 1)
    return None
