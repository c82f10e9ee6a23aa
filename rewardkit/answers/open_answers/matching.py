"""Where a sentence has a gold answer, in the same words or in words that people count as the same."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rewardkit.answers.open_answers.comparison import (
    MatchedWords,
    content_places,
    is_same_word,
    match_joined,
    match_origin,
    match_spelling,
    runs,
)
from rewardkit.answers.open_answers.dates import Date, dates_in
from rewardkit.answers.open_answers.golds import Gold
from rewardkit.answers.open_answers.names import match_name
from rewardkit.answers.open_answers.neighbours import is_other_name, is_other_number
from rewardkit.answers.open_answers.questions import QuestionFacts
from rewardkit.answers.open_answers.vocabulary import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    TITLES,
    UNIT_NAMES,
)
from rewardkit.answers.open_answers.words import Word, stem

#: Share of the words of a gold that suffices.
MOST: Final = 0.75

Words = tuple[Word, ...]


def match(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Return where a sentence has a gold, and not as a bound or a range; None if it does not."""
    place = _match(gold, sentence, question)
    if place is None or (not gold.has_bound and is_other_number(sentence, place, question)):
        return None
    return place


def _match(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    if gold.date is not None:
        return _match_date(gold.date, sentence, question)
    if gold.is_head and len(sentence) > len(gold.words) + 2:
        return None
    if all(map(question.has, gold.words)):
        return _match_in_question(gold, sentence, question)
    for place in (*_runs_of(gold.words, sentence), match_joined(gold.words, sentence)):
        if place and not is_other_name(gold.words, sentence, place, question):
            return place
    if place := match_name(gold, sentence, question):
        return None if is_other_name(gold.words, sentence, place, question) else place
    if place := match_spelling(gold.words, sentence):
        return None if is_other_name(gold.words, sentence, place, question) else place
    return (
        (match_origin(gold.words, sentence) if question.asks_origin else None)
        or _match_known(gold, sentence, question)
        or _match_count(gold, sentence, question)
        or _match_most(gold, sentence, question)
        or _match_part(gold, sentence, question)
    )


def _match_date(gold: Date, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a date in any order, or with less or more of its parts.

    A year alone counts for a full date unless the question has the year or the sentence also has a
    fuller date.
    """
    dates = dates_in(sentence)
    is_dated = any(date.month for date, _ in dates)
    for date, (start, end) in dates:
        if not date.agrees(gold):
            continue
        is_year_alone = gold.month and not date.month
        if is_year_alone and question.every & {"month", "day", "date"}:
            continue
        is_vague = (gold.month and not date.month) or (gold.day and not date.day)
        if is_vague and (str(date.year) in question.forms or (is_dated and not date.month)):
            continue
        return MatchedWords(start, end)
    return None


def _match_in_question(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a gold whose words the question has: in a short answer, or if the question is a choice."""
    if not question.is_choice and len(sentence) > len(gold.words) + 3:
        return None
    for start, end in runs(gold.words, sentence, content_places(sentence, gold.words)):
        return MatchedWords(start, end)
    return None


def _runs_of(gold: Words, sentence: Words) -> Iterator[MatchedWords]:
    """Yield where the words of a gold stand one after the other."""
    is_content = any(word.form not in FUNCTION_WORDS for word in gold)
    for start, end in runs(gold, sentence, content_places(sentence, gold)):
        if is_content or _is_title(sentence, start, end):
            yield MatchedWords(start, end)


def _is_title(sentence: Words, start: int, end: int) -> bool:
    """Whether function words are a name, such as `The Who` and `It`."""
    return len(sentence) == end - start or (
        start > 0 and all(word.is_name and word.text != "I" for word in sentence[start:end])
    )


def _match_part(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match half of a gold in common words if the sentence says nothing else: `imperial` for `imperial rule`."""
    if gold.is_list or gold.is_head or any(w.is_name or w.is_number for w in gold.words[1:]):
        return None
    places = [
        place
        for place, word in enumerate(sentence)
        if not (word.form in FUNCTION_WORDS or question.has(word))
    ]
    needed = [word for word in gold.words if not question.has(word)]
    hits = {
        place for place in places if any(is_same_word(sentence[place], part) for part in needed)
    }
    if not places or len(hits) < len(places) or 2 * len(hits) < len(needed):
        return None
    return MatchedWords(places[0], places[-1] + 1)


def _has_other_word(gold: Gold, sentence: Words, places: list[int]) -> bool:
    """Whether a name stands in place of a missing word of a gold: `2008 Winter Olympic Games`."""
    start, end = max(0, min(places) - 1), max(places) + 2
    golden = {word.form for word in gold.words}
    return any(
        word.is_name and word.form not in golden | FUNCTION_WORDS | TITLES
        for word in sentence[start:end]
    )


def _is_kind(word: Word) -> bool:
    return word.form in GENERIC_NOUNS or stem(word.form) in GENERIC_NOUNS


def _match_known(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a gold without units, the words that the question has, and words of kind such as `city`."""
    rest = tuple(w for w in gold.words if not question.has(w) and w.form not in UNIT_NAMES)
    needed = tuple(word for word in rest if not _is_kind(word))
    if all(word.is_number for word in needed):
        needed = rest  # because `1812` is not `the War of 1812`
    if not needed or len(needed) == len(gold.words):
        return None
    for start, end in runs(needed, sentence, content_places(sentence, needed)):
        place = MatchedWords(start, end)
        if not (
            is_other_name(needed, sentence, place, question)
            or _has_other_unit(gold.words, sentence, place)
        ):
            return place
    return None


def _has_other_unit(gold: Words, sentence: Words, place: MatchedWords) -> bool:
    """Whether a unit beside a place is not the gold's: `5 months` for `5 years`, `€5` for `$5`."""
    beside = {word.form for word in sentence[max(0, place.start - 1) : place.end + 2]} & UNIT_NAMES
    return not beside <= {word.form for word in gold}


def _match_count(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the number alone where the question asks how many."""
    numbers = tuple(word for word in gold.words if word.is_number)
    if not question.asks_number or len(numbers) != 1 or len(sentence) != 1 or gold.is_head:
        return None
    has_unit = any(word.form in UNIT_NAMES for word in gold.words)
    return MatchedWords(0, 1) if not has_unit and is_same_word(sentence[0], numbers[0]) else None


@lru_cache(maxsize=256)
def _stems(sentence: Words) -> frozenset[str]:
    return frozenset(stem(word.form) for word in sentence)


def _match_most(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the words of a gold in another order, or most words of a long one, close together.

    All of its numbers are needed, and all parts of a list.
    """
    needed = tuple(word for word in gold.words if not question.has(word)) or gold.words
    if len(needed) < 2 or gold.is_head:
        return None
    stems = _stems(sentence)  # words that are the same have the same stem
    if sum(stem(part.form) in stems for part in needed) < MOST * len(needed):
        return None
    is_hit = [False] * len(needed)
    places: list[int] = []
    for place, word in enumerate(sentence):
        if word.form in FUNCTION_WORDS:
            continue
        for k, part in enumerate(needed):
            if not is_hit[k] and is_same_word(word, part):
                is_hit[k] = True
                places.append(place)
                break
    hits = sum(is_hit)
    if any(part.is_number and not hit for part, hit in zip(needed, is_hit, strict=True)):
        return None
    is_enough = hits == len(needed) or (
        len(needed) >= 3 and hits >= MOST * len(needed) and not gold.is_list
    )
    if not is_enough or places[-1] - places[0] >= 3 * len(needed) + 6:
        return None
    if hits < len(needed) and _has_other_word(gold, sentence, places):
        return None
    return MatchedWords(places[0], places[-1] + 1)
