"""Where a sentence has a gold answer, in the same words or in words that people count as the same.

A name is another one if the words beside it make it so (`New Mexico`, `Iron Man 2`), and so is a
number (`before 1969`, `half of 206`).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rewardkit.answers.open_answers.dates import Date, dates_in
from rewardkit.answers.open_answers.golds import Gold, QuestionFacts
from rewardkit.answers.open_answers.vocabulary import (
    BOUNDS,
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    KINDS_OF_PLACES,
    NAME_SUFFIXES,
    NUMBER_CHANGERS_AFTER,
    NUMBER_CHANGERS_BEFORE,
    PLACE_MODIFIERS,
    RELATIVES,
    TITLES,
    UNIT_NAMES,
)
from rewardkit.answers.open_answers.words import Word, stem

#: Letters of the shortest word in which a slip is accepted, and of the shortest gold of one word.
MIN_SLIP_LETTERS = 6
MIN_SLIP_LETTERS_ALONE = 8
#: Letters of a word that are compared for slips.
MAX_SLIP_LETTERS = 40
#: Most words that are joined to one: `bee keeper` and `beekeeper`.
MAX_JOINED = 6
#: Share of the words of a gold that suffices.
MOST = 0.75
#: Most words of a name of a person, of an answer that is one name, perhaps with the surname first,
#: and of an answer without a sentence, in which two names side by side are two answers.
MAX_NAME_WORDS = 5
MAX_INDEX_WORDS = 3
MAX_BARE_WORDS = 4
#: Most letters of initials that are written together: `JRR`.
MAX_INITIALS = 3

Words: TypeAlias = tuple[Word, ...]


class MatchedWords(NamedTuple):
    """The words of a sentence that are a gold: the indices of the first one and after the last one."""

    start: int
    end: int


def match(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Return where a sentence has a gold, and not as a bound or a range; None if it does not."""
    place = _match(gold, sentence, question)
    return place if place and not _is_other_number(sentence, place, question) else None


def _match(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    if gold.date is not None:
        return _match_date(gold.date, sentence, question)
    if gold.is_head and len(sentence) > len(gold.words) + 2:
        return None
    if all(map(question.has, gold.words)):  # only in a short answer, or if the question is a choice
        is_short = question.is_choice or len(sentence) <= len(gold.words) + 3
        return next(_runs(gold.words, sentence), None) if is_short else None
    is_content = any(word.form not in FUNCTION_WORDS for word in gold.words)
    for place in (*_runs(gold.words, sentence), _match_joined(gold.words, sentence)):
        is_whole = place and (is_content or _is_title(sentence, *place))
        if place and is_whole and not _is_other_name(gold.words, sentence, place, question):
            return place
    place = _match_name(gold, sentence, question) or _match_spelling(gold.words, sentence)
    if place:
        return None if _is_other_name(gold.words, sentence, place, question) else place
    return (
        _match_known(gold, sentence, question)
        or _match_most(gold, sentence, question)
        or _match_part(gold, sentence, question)
    )


def is_same_word(word: Word, gold: Word) -> bool:
    """Whether two words are the same: a common word in any form, a name exactly, a number by value."""
    if word.form == gold.form:
        return True
    if word.is_number or gold.is_number or (word.is_name and gold.is_name):
        return False
    return stem(word.form) == stem(gold.form)


def _runs(parts: Words, sentence: Words) -> Iterator[MatchedWords]:
    """Yield where words stand one after the other in a sentence, apart from its function words.

    Function words count only beside a gold that has no others.
    """
    is_content = any(word.form not in FUNCTION_WORDS for word in parts)
    places = [
        at for at, word in enumerate(sentence) if not (is_content and word.form in FUNCTION_WORDS)
    ]
    for at in range(len(places) - len(parts) + 1):
        if all(is_same_word(sentence[places[at + k]], part) for k, part in enumerate(parts)):
            yield MatchedWords(places[at], places[at + len(parts) - 1] + 1)


def _is_title(sentence: Words, start: int, end: int) -> bool:
    """Whether function words are a name, such as `The Who` and `It`."""
    return len(sentence) == end - start or (
        start > 0 and all(word.is_name and word.text != "I" for word in sentence[start:end])
    )


def _match_date(gold: Date, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a date in any order, or with less or more of its parts.

    A year alone counts for a full date unless the question has the year or the sentence also has a
    fuller date.
    """
    dates = dates_in(sentence)
    is_dated = any(date.month for date, _ in dates)
    for date, span in dates:
        if not date.agrees(gold):
            continue
        is_year_alone = gold.month and not date.month
        if is_year_alone and question.every & {"month", "day", "date"}:
            continue
        is_vague = is_year_alone or (gold.day and not date.day)
        if is_vague and (str(date.year) in question.forms or (is_dated and not date.month)):
            continue
        return MatchedWords(*span)
    return None


# --- golds in other spellings and with other words


def _match_joined(gold: Words, sentence: Words) -> MatchedWords | None:
    whole = "".join(word.form for word in gold)
    if gold[0].is_number or (len(whole) < 3 and whole.isalpha()):
        return None
    for start in range(len(sentence)):
        text = ""
        for end in range(start, min(start + MAX_JOINED, len(sentence))):
            text += sentence[end].form
            if text == whole:
                return MatchedWords(start, end + 1)
            if not whole.startswith(text):
                break
    return None


def _match_spelling(gold: Words, sentence: Words) -> MatchedWords | None:
    """Match a gold with slips in the spelling of its long words; `Austin` is not `Austen`."""
    least = MIN_SLIP_LETTERS_ALONE if len(gold) == 1 else MIN_SLIP_LETTERS
    if all(len(word.form) < least for word in gold):
        return None
    for start in range(len(sentence) - len(gold) + 1):
        if all(_is_same_spelling(sentence[start + k], part) for k, part in enumerate(gold)):
            return MatchedWords(start, start + len(gold))
    return None


def _is_same_spelling(word: Word, gold: Word) -> bool:
    if is_same_word(word, gold):
        return True
    a, b = word.form[:MAX_SLIP_LETTERS], gold.form[:MAX_SLIP_LETTERS]
    if word.is_number or gold.is_number or min(len(a), len(b)) < MIN_SLIP_LETTERS:
        return False
    if a[0] != b[0] or (a[:3] != b[:3] and a[-3:] != b[-3:]):
        return False
    at = next(
        (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    x, y = a[at:], b[at:]  # one letter is added, left out, replaced or swapped with the next one
    return x[1:] == y or x == y[1:] or x[1:] == y[1:] or (x[1::-1], x[2:]) == (y[:2], y[2:])


def _match_known(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a gold without units, the words that the question has, and words of kind such as `city`."""
    rest = tuple(w for w in gold.words if not question.has(w) and w.form not in UNIT_NAMES)
    needed = tuple(w for w in rest if not {w.form, stem(w.form)} & GENERIC_NOUNS)
    if all(word.is_number for word in needed):
        needed = rest  # because `1812` is not `the War of 1812`
    if not needed or len(needed) == len(gold.words):
        return None
    for place in _runs(needed, sentence):
        beside = {word.form for word in sentence[max(0, place.start - 1) : place.end + 2]}
        has_same_unit = beside & UNIT_NAMES <= {word.form for word in gold.words}
        if has_same_unit and not _is_other_name(needed, sentence, place, question):
            return place
    return None


@lru_cache(maxsize=256)
def _stems(sentence: Words) -> frozenset[str]:
    return frozenset(stem(word.form) for word in sentence)


def _match_most(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the words of a gold in another order, or most words of a long one, close together.

    All of its numbers are needed, and all parts of a list.
    """
    needed = [word for word in gold.words if not question.has(word)] or [*gold.words]
    if len(needed) < 2 or gold.is_head:
        return None
    stems = _stems(sentence)  # words that are the same have the same stem
    if sum(stem(part.form) in stems for part in needed) < MOST * len(needed):
        return None
    rest, places = [*needed], []
    for at, word in enumerate(sentence):
        part = None if word.form in FUNCTION_WORDS else _first_same(word, rest)
        if part:
            rest.remove(part)
            places.append(at)
    is_partial = len(needed) >= 3 and len(places) >= MOST * len(needed) and not gold.is_list
    if any(part.is_number for part in rest) or (rest and not is_partial):
        return None
    start, end = places[0], places[-1] + 1
    golden = {word.form for word in gold.words} | FUNCTION_WORDS | TITLES
    has_other_name = any(  # as in `2008 Winter Olympic Games`
        word.is_name and word.form not in golden for word in sentence[max(0, start - 1) : end + 1]
    )
    if end - start > 3 * len(needed) + 6 or (rest and has_other_name):
        return None
    return MatchedWords(start, end)


def _first_same(word: Word, parts: list[Word]) -> Word | None:
    return next((part for part in parts if is_same_word(word, part)), None)


def _match_part(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match half of a gold in common words if the sentence says nothing else: `imperial` for `imperial rule`."""
    if gold.is_list or gold.is_head or any(w.is_name or w.is_number for w in gold.words[1:]):
        return None
    places = [
        at
        for at, word in enumerate(sentence)
        if not (word.form in FUNCTION_WORDS or question.has(word))
    ]
    needed = [word for word in gold.words if not question.has(word)]
    are_golden = all(_first_same(sentence[at], needed) for at in places)
    if not places or not are_golden or 2 * len(places) < len(needed):
        return None
    return MatchedWords(places[0], places[-1] + 1)


# --- the words beside a gold


def _is_other_name(
    gold: Words, sentence: Words, place: MatchedWords, question: QuestionFacts
) -> bool:
    start, end = place
    first, last = sentence[start], sentence[end - 1]
    before = sentence[start - 1] if start and not first.gap else None
    after = sentence[end] if end < len(sentence) and sentence[end].gap in ("", "-") else None
    relatives = [sentence[start - 2]] if start > 1 and sentence[start - 1].form == "of" else []
    relatives += [after] if after and not after.gap else []
    if any(word.form in RELATIVES - question.every for word in relatives):
        return True  # `the wife of X`, `X's wife`
    if not (first.is_name and last.is_name):
        return False
    if before and before.is_name and before.form in PLACE_MODIFIERS:
        return before.form not in question.forms
    if after and after.is_number and len(after.form) <= 2 and after.form not in question.forms:
        return not last.is_number
    return (
        len(gold) == 1 and not last.is_number and _is_part(sentence, start, before, after, question)
    )


def _is_part(
    sentence: Words, start: int, before: Word | None, after: Word | None, question: QuestionFacts
) -> bool:
    """Whether one word is a part of a longer name: `Georgia Tech`, `University of Georgia`."""
    if len(sentence[start].form) <= 2 and any(word and word.is_name for word in (before, after)):
        return True  # because `A B C D` is not `B`
    if question.asks_person:
        return False
    if before and before.form == "of" and start > 1 and not before.gap:
        owner = sentence[start - 2]
        if owner.is_name and owner.form not in KINDS_OF_PLACES | question.forms:
            return True
    known = question.forms | FUNCTION_WORDS
    if before and before.is_name and len(sentence) <= MAX_BARE_WORDS:
        return before.form not in known | TITLES | GENERIC_NOUNS
    return after is not None and after.is_name and after.form not in known


def _is_other_number(sentence: Words, place: MatchedWords, question: QuestionFacts) -> bool:
    """Whether a number is a bound, an end of a range, one of several in a row, or changed.

    The words beside a number change it in `half of 206`, `206 dozen`, `206 plus 12`.
    """
    start, end = place
    if not any(word.is_number for word in sentence[start:end]):
        return False
    before, after = sentence[max(0, start - 2) : start], sentence[end : end + 1]
    forms = [word.form for word in before]
    units = UNIT_NAMES if question.every & UNIT_NAMES else frozenset()
    changers = {*forms[-1:]} & BOUNDS
    changers |= {*(forms[:1] if forms[1:] == ["of"] else forms[-1:])} & NUMBER_CHANGERS_BEFORE
    for word in after:
        changers |= (
            {word.form} & (NUMBER_CHANGERS_AFTER | units) if not word.gap.strip("%-") else set()
        )
    beside = [(word, sentence[start].gap) for word in before[-1:]]
    beside += [(word, word.gap) for word in after]
    is_in_row = end - start == 1 and any(w.is_number and gap in ("", "-") for w, gap in beside)
    is_end_of_range = forms[-1:] in (["to"], ["through"]) and before[0].is_number
    return bool(changers - question.every) or is_in_row or is_end_of_range


# --- names of people


def _match_name(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Return where a sentence has the name of a person in another form.

    The forms are: without a title; with fewer or more middle names, where an initial stands for a
    name; initials or a short form for the given names. If the question asks for a person, the
    surname alone counts, unless another given name precedes it, and so does a name without its
    description (`Carl Linnaeus` for `Swedish botanist Carl Linnaeus`).
    """
    if question.asks_person and not gold.is_name:
        core = _name_core(gold)
        if (
            core
            and not all(map(question.has, core))
            and (place := next(_runs(core, sentence), None))
        ):
            return place
    parts = tuple(w for w in gold.words if w.form not in TITLES | NAME_SUFFIXES)
    if not gold.is_name or not parts or any(word.is_number for word in parts):
        return None
    is_titled = len(parts) < len(gold.words) and (len(parts) > 1 or question.asks_person)
    if is_titled and (place := next(_runs(parts, sentence), None)):
        return place
    if not 2 <= len(parts) <= MAX_NAME_WORDS or gold.is_list:
        return None
    return _match_middle(parts, sentence) or (
        _match_surname(parts, sentence, question) if question.asks_person else None
    )


def _name_core(gold: Gold) -> Words:
    if gold.is_list or " as " in gold.text or any(word.is_number for word in gold.words):
        return ()  # because `Elizabeth` is not `Elizabeth II`
    best: Words = ()
    run: Words = ()
    has_title = False
    for word in gold.words:
        has_title |= word.form in TITLES
        run = (*run, word) if word.is_name and word.form not in TITLES else ()
        if len(run) > max(0 if has_title else 1, len(best)):
            best = run
    return best if len(best) < len(gold.words) else ()


def _match_middle(parts: Words, sentence: Words) -> MatchedWords | None:
    """Match the first and the last name with some of the middle names, or initials, between them."""
    for start, word in enumerate(sentence):
        if word.form != parts[0].form:
            continue
        for end in range(start + 1, min(start + MAX_NAME_WORDS, len(sentence))):
            name = sentence[end]
            if not name.is_name or name.gap.strip(".\"'()"):
                break
            mine, theirs = (
                _initials([w.text for w in middle])
                for middle in (sentence[start + 1 : end], parts[1:-1])
            )
            is_same = not theirs or mine.startswith(theirs) or theirs.startswith(mine)
            if name.form == parts[-1].form and is_same:
                return MatchedWords(start, end + 1)
    return None


def _match_surname(parts: Words, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the surname alone, or after a short form or the initials of the given names."""
    surname = parts[-1].form
    if surname in question.forms:
        return None
    is_index = len(sentence) <= MAX_INDEX_WORDS  # as in `Armstrong, Louis`
    for at, word in enumerate(sentence):
        if word.form != surname or not word.is_name:
            continue
        after = sentence[at + 1] if at + 1 < len(sentence) else None
        is_joined = after is not None and (not after.gap or is_index)
        if after and is_joined and after.is_name and after.form not in FUNCTION_WORDS:
            continue
        before = sentence[at - 1] if at and not word.gap.strip(".\"'") else None
        is_beside_name = before is not None and (before.is_name or is_index)
        if before is None or not is_beside_name or before.form in TITLES | FUNCTION_WORDS:
            return MatchedWords(at, at + 1)
        if any(_is_short_form(before.form, part.form) for part in parts[:-1]) or (
            _have_same_initials(_given_names(sentence, at), [part.text for part in parts[:-1]])
        ):
            return MatchedWords(at - 1, at + 1)
    return None


def _is_short_form(a: str, b: str) -> bool:
    """Whether one given name is a short form of the other: `Rob` and `Robert`, `Johnny` and `John`."""
    short, long = sorted((a, b), key=len)
    return len(short) >= 3 and long.startswith(short)


def _given_names(sentence: Words, surname: int) -> list[str]:
    names: list[str] = []
    for at in range(surname - 1, max(-1, surname - 5), -1):
        if not sentence[at].is_name:
            break
        names.insert(0, sentence[at].text)
        if sentence[at].gap:
            break
    return names


def _have_same_initials(names: list[str], golds: list[str]) -> bool:
    """Whether one side has only the initials of the other's given names."""
    return any(
        _initials(mine) == _initials(golds) and (_are_initials(mine) or _are_initials(golds))
        for mine in (names[k:] for k in range(len(names)))
    )


def _are_initials(names: list[str]) -> bool:
    return all(len(name) <= MAX_INITIALS and name.isupper() for name in names)


def _initials(names: list[str]) -> str:
    return "".join(name if _are_initials([name]) else name[:1].upper() for name in names)
