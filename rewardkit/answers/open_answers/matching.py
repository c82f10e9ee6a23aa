"""Where a sentence has a gold answer, in the same words or in words that people count as the same.

A name is another one if the words beside it make it so (`New Mexico`, `Iron Man 2`), and so is a
number (`before 1969`, `half of 206`).
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeAlias

from rewardkit.answers.open_answers.golds import Date, Gold, QuestionFacts, dates_in
from rewardkit.answers.open_answers.words import (
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
    Word,
    stem,
)

#: Letters of the shortest word in which a slip is accepted, and of the shortest gold of one word.
MIN_SLIP_LETTERS = 6
MIN_SLIP_LETTERS_ALONE = 8
#: Letters of a word that are compared for slips.
MAX_SLIP_LETTERS = 40
#: Most words that are joined to one: `bee keeper` and `beekeeper`.
MAX_JOINED = 6
#: Fraction of the words of a gold that suffices.
MOST = 0.75
#: Most words of a name of a person, and of an answer without a sentence, in which two names side by
#: side are two answers.
MAX_NAME_WORDS = 5
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
    span = _match(gold, sentence, question)
    is_other = span and (
        _is_relative(sentence, span, question) or _is_other_number(sentence, span, question)
    )
    return None if is_other else span


def _match(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    if gold.date is not None:
        return _match_date(gold.date, sentence, question)
    if gold.is_head and len(sentence) > len(gold.words) + 2:
        return None
    if all(map(question.has, gold.words)):  # only in a short answer, or if the question is a choice
        is_short = question.is_choice or len(sentence) <= len(gold.words) + 3
        return next(_runs(gold.words, sentence), None) if is_short else None
    for span in (*_runs(gold.words, sentence), _match_joined(gold.words, sentence)):
        is_whole = span and (_has_content(gold.words) or _is_title(sentence, span))
        if span and is_whole and not _is_other_name(gold.words, sentence, span, question):
            return span
    span = _match_name(gold, sentence, question) or _match_spelling(gold.words, sentence)
    return span or (
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
    """Yield where words stand in a row, apart from function words unless there are no others."""
    ignored = FUNCTION_WORDS if _has_content(parts) else frozenset()
    content = [index for index, word in enumerate(sentence) if word.form not in ignored]
    for at in range(len(content) - len(parts) + 1):
        indices = content[at : at + len(parts)]
        if all(is_same_word(sentence[i], part) for i, part in zip(indices, parts, strict=True)):
            yield MatchedWords(indices[0], indices[-1] + 1)


def _has_content(parts: Words) -> bool:
    return any(word.form not in FUNCTION_WORDS for word in parts)


def _is_title(sentence: Words, span: MatchedWords) -> bool:
    """Whether function words are a name, such as `The Who` and `It`."""
    title = sentence[slice(*span)]
    is_name = span.start > 0 and all(word.is_name and word.text != "I" for word in title)
    return is_name or len(sentence) == len(title)


def _match_date(gold: Date, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match a date in any order, or with less or more of its parts.

    A year alone counts for a full date unless the question has the year or the sentence also has a
    fuller date.
    """
    dates = dates_in(sentence)
    is_dated = any(date.month for date, _ in dates)
    for date, span in dates:
        is_year_alone = gold.month and not date.month
        if not date.agrees(gold) or (is_year_alone and question.every & {"month", "day", "date"}):
            continue
        is_vague = is_year_alone or (gold.day and not date.day)
        if is_vague and (str(date.year) in question.forms or (is_dated and not date.month)):
            continue
        return MatchedWords(*span)
    return None


# --- golds in other spellings and with other words


def _match_joined(gold: Words, sentence: Words) -> MatchedWords | None:
    whole = "".join(word.form for word in gold)
    if gold[0].is_number or len(whole) < 3:
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
    both = min(len(a), len(b))
    if word.is_number or gold.is_number or a[:1] != b[:1] or both < MIN_SLIP_LETTERS:
        return False
    at = next((at for at in range(both) if a[at] != b[at]), both)
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
    for span in _runs(needed, sentence):
        beside = {word.form for word in sentence[max(0, span.start - 1) : span.end + 2]}
        has_same_unit = beside & UNIT_NAMES <= {word.form for word in gold.words}
        if has_same_unit and not _is_other_name(needed, sentence, span, question):
            return span
    return None


@lru_cache(maxsize=256)
def _stems(sentence: Words) -> frozenset[str]:
    return frozenset(stem(word.form) for word in sentence)


def _match_most(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the words of a gold in another order, or most words of a long one, close together.

    All of its numbers are needed, and all parts of a list.
    """
    needed = [word for word in gold.words if not question.has(word)]
    stems = _stems(sentence)  # words that are the same have the same stem
    if len(needed) < 2 or sum(stem(w.form) in stems for w in needed) < MOST * len(needed):
        return None
    rest, indices = [*needed], []
    for index, word in enumerate(sentence):
        if part := _first_same(word, rest):
            rest.remove(part)
            indices.append(index)
    is_partial = len(indices) >= MOST * len(needed) and not gold.is_list
    if any(part.is_number for part in rest) or (rest and not is_partial):
        return None
    start, end = indices[0], indices[-1] + 1
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
    if gold.is_list or any(word.is_name or word.is_number for word in gold.words[1:]):
        return None
    own = [
        index
        for index, word in enumerate(sentence)
        if not (word.form in FUNCTION_WORDS or question.has(word))
    ]
    needed = [word for word in gold.words if not question.has(word)]
    if not own or 2 * len(own) < len(needed):
        return None
    are_golden = all(_first_same(sentence[index], needed) for index in own)
    return MatchedWords(own[0], own[-1] + 1) if are_golden else None


# --- the words beside a gold


def _is_other_name(
    gold: Words, sentence: Words, span: MatchedWords, question: QuestionFacts
) -> bool:
    """Whether the words beside a name make another one of it: `New Mexico`, `University of Georgia`."""
    start, end = span
    first, last = sentence[start], sentence[end - 1]
    before = sentence[start - 1] if start and not first.gap else None
    after = sentence[end] if end < len(sentence) and sentence[end].gap in ("", "-") else None
    owner = sentence[start - 2] if start > 1 and before and before.form == "of" else None
    if not (first.is_name and last.is_name):
        return False
    if before and before.is_name and before.form in PLACE_MODIFIERS:
        return before.form not in question.forms
    if after and after.is_number and len(after.form) <= 2 and after.form not in question.forms:
        return not last.is_number
    if len(gold) > 1:
        return False
    if len(first.form) <= 2 and any(word and word.is_name for word in (before, after)):
        return True  # because `A B C D` is not `B`
    if question.asks_person:
        return False
    if owner and owner.is_name and owner.form not in KINDS_OF_PLACES | question.forms:
        return True
    known = question.forms | FUNCTION_WORDS
    return after is not None and after.is_name and after.form not in known


def _is_relative(sentence: Words, span: MatchedWords, question: QuestionFacts) -> bool:
    """Whether a name only says who somebody else is: `the wife of X`, `X's wife`."""
    start, end = span
    is_owned = start > 1 and sentence[start - 1].form == "of"
    beside = [sentence[start - 2]] if is_owned else []
    beside += [word for word in sentence[end : end + 1] if not word.gap]
    return any(word.form in RELATIVES - question.every for word in beside)


def _is_other_number(sentence: Words, span: MatchedWords, question: QuestionFacts) -> bool:
    """Whether a number is a bound, an end of a range, one of several in a row, or changed.

    The words beside a number change it in `half of 206`, `206 dozen`, `206 plus 12`.
    """
    start, end = span
    if not any(word.is_number for word in sentence[start:end]):
        return False
    before, after = sentence[max(0, start - 2) : start], sentence[end : end + 1]
    forms = [word.form for word in before]
    units = UNIT_NAMES if question.every & UNIT_NAMES else frozenset()
    changers = {*forms[-1:]} & (BOUNDS | NUMBER_CHANGERS_BEFORE)
    if forms[1:] == ["of"]:
        changers |= {forms[0]} & NUMBER_CHANGERS_BEFORE
    for word in after:
        if not word.gap.strip("%-"):
            changers |= {word.form} & (NUMBER_CHANGERS_AFTER | units)
    beside = [(word, sentence[start].gap) for word in before[-1:]]
    beside += [(word, word.gap) for word in after]
    is_in_row = end - start == 1 and any(w.is_number and gap in ("", "-") for w, gap in beside)
    is_end_of_range = forms[-1:] in (["to"], ["through"]) and before[0].is_number
    return bool(changers - question.every) or is_in_row or is_end_of_range


# --- names of people


def _match_name(gold: Gold, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    """Match the name of a person in another form.

    The forms are: without a title or, if the question asks for a person, without a description
    (`Carl Linnaeus` for `Swedish botanist Carl Linnaeus`); with fewer or more middle names, where an
    initial stands for a name. If the question asks for a person, the surname also counts alone, or
    after a short form or the initials of the given names.
    """
    if not gold.is_name:
        core = _name_core(gold) if question.asks_person else ()
        is_new = core and not all(map(question.has, core))
        return next(_runs(core, sentence), None) if is_new else None
    parts = tuple(w for w in gold.words if w.form not in TITLES | NAME_SUFFIXES)
    is_titled = parts and len(parts) < len(gold.words) and (len(parts) > 1 or question.asks_person)
    if is_titled and (span := next(_runs(parts, sentence), None)):
        return span
    is_whole = 2 <= len(parts) <= MAX_NAME_WORDS and not gold.is_list
    return _match_surname(parts, sentence, question) if is_whole else None


def _name_core(gold: Gold) -> Words:
    if any(word.is_number for word in gold.words):
        return ()  # because `Elizabeth` is not `Elizabeth II`
    core: Words = ()
    has_title = False
    for is_name, run in groupby(gold.words, lambda w: w.is_name and w.form not in TITLES):
        parts = tuple(run)
        has_title |= any(word.form in TITLES for word in parts)
        if is_name and len(parts) > max(not has_title, len(core)):
            core = parts
    return core


def _match_surname(parts: Words, sentence: Words, question: QuestionFacts) -> MatchedWords | None:
    *golden, surname = parts
    for at, word in enumerate(sentence):
        after = sentence[at + 1] if at + 1 < len(sentence) else None
        is_followed = after and after.is_name and not (after.gap and len(sentence) > MAX_BARE_WORDS)
        if word.form != surname.form or not word.is_name or is_followed:
            continue
        start = at
        while start > max(0, at - MAX_NAME_WORDS) and not sentence[start].gap.strip(".\"'()"):
            before = sentence[start - 1]
            if not before.is_name or before.form in TITLES | FUNCTION_WORDS:
                break
            start -= 1
        given = [*sentence[start:at]]
        for first in range(len(given)):
            if _is_same_person(given[first:], golden):
                return MatchedWords(at - len(given) + first, at + 1)
        is_middle = given and any(_is_short_form(given[-1].form, w.form) for w in golden)
        if is_middle and question.asks_person:  # `Paul McCartney` is `James Paul McCartney`
            return MatchedWords(at - 1, at + 1)
        if not given and question.asks_person and surname.form not in question.forms:
            return MatchedWords(at, at + 1)
    return None


def _is_same_person(given: list[Word], golden: list[Word]) -> bool:
    """Whether two lists of given names may be one person's: `Anna M.`, `Ann`, `A. M.`, `Anna Maria`."""
    mine, theirs = ("".join(map(_initials, names)) for names in (given, golden))
    if _is_short_form(given[0].form, golden[0].form):
        return mine.startswith(theirs) or theirs.startswith(mine)
    has_initials = any(all(map(_is_initials, names)) for names in (given, golden))
    return mine == theirs and has_initials


def _is_short_form(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return short == long or (len(short) >= 3 and long.startswith(short))


def _is_initials(name: Word) -> bool:
    return len(name.text) <= MAX_INITIALS and name.text.isupper()


def _initials(name: Word) -> str:
    return name.text if _is_initials(name) else name.text[:1].upper()
