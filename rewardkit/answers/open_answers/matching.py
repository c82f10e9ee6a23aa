"""Where a sentence has a gold answer, in the same words or in words that people count as the same.

A name is another one if the words beside it make it so (`New Mexico`, `Iron Man 2`), and so is a
number (`before 1969`, `half of 206`).
"""

from collections.abc import Iterator
from functools import lru_cache

from rewardkit.answers.open_answers.golds import Date, Gold, QuestionFacts, dates_in
from rewardkit.answers.open_answers.roles import Span, Words, is_in_other_role
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NAME_PARTICLES,
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
#: Letters of the shortest acronym.
MIN_ACRONYM = 3
#: Most words that are joined to one: `bee keeper` and `beekeeper`.
MAX_JOINED = 6
#: Fraction of the words of a gold that suffices, and of common words in an answer that says nothing else.
MOST = 0.66
HALF = 0.5
#: Most words of a name of a person, and of an answer without a sentence, in which two names side by
#: side are two answers.
MAX_NAME_WORDS = 5
MAX_BARE_WORDS = 4
#: Most letters of initials that are written together: `JRR`.
MAX_INITIALS = 3


def match(gold: Gold, sentence: Words, question: QuestionFacts) -> Span | None:
    """Return where a sentence has a gold as its answer; None if it does not."""
    spans = _matches(gold, sentence, question)
    return next((span for span in spans if not is_in_other_role(sentence, span, question)), None)


def _matches(gold: Gold, sentence: Words, question: QuestionFacts) -> Iterator[Span]:
    if gold.date is not None:
        yield from _match_date(gold.date, gold.is_coarse, sentence, question)
        return
    if gold.is_head and len(sentence) > len(gold.words) + 2:
        return
    runs = [*_runs(gold.words, sentence)]
    if all(map(question.has, gold.words)):
        # only in a short answer, if the question is a choice, or once more than in the question
        is_short = question.is_choice or len(sentence) <= len(gold.words) + 3
        in_question = len([*_runs(gold.words, question.words)])
        yield from runs if is_short else runs[in_question:]
        return
    if _has_content(gold.words):
        yield from runs
    else:
        yield from (span for span in runs if _is_title(sentence, span))
    for matcher in (_match_joined, _match_acronym, _match_name, _match_spelling, _match_words):
        if span := matcher(gold, sentence, question):
            yield span


def is_same_word(word: Word, gold: Word) -> bool:
    """Whether two words are the same: a common word in any form, a name exactly, a number by value."""
    if word.form == gold.form:
        return True
    if word.is_number or gold.is_number or (word.is_name and gold.is_name):
        return False
    return stem(word.form) == stem(gold.form)


def _runs(parts: Words, sentence: Words) -> Iterator[Span]:
    """Yield where words stand in a row, apart from function words unless there are no others."""
    ignored = FUNCTION_WORDS if _has_content(parts) else frozenset()
    content = [index for index, word in enumerate(sentence) if word.form not in ignored]
    for at in range(len(content) - len(parts) + 1):
        indices = content[at : at + len(parts)]
        if all(is_same_word(sentence[i], part) for i, part in zip(indices, parts, strict=True)):
            yield Span(indices[0], indices[-1] + 1)


def _has_content(parts: Words) -> bool:
    return any(word.form not in FUNCTION_WORDS for word in parts)


def _is_title(sentence: Words, span: Span) -> bool:
    """Whether function words are a name, such as `The Who` and `It`, or quoted."""
    title = sentence[slice(*span)]
    is_name = span.start > 0 and all(word.is_name and word.text != "I" for word in title)
    return is_name or title[0].gap[-1:] in ("'", '"') or len(sentence) == len(title)


def _match_date(
    gold: Date, is_coarse: bool, sentence: Words, question: QuestionFacts
) -> Iterator[Span]:
    """Match a date in any order, or with less or more of its parts.

    A year alone counts for a full date unless the question has the year or the sentence also has a
    fuller date.
    """
    dates = dates_in(sentence)
    is_dated = any(date.month for date, _ in dates)
    for date, span in dates:
        is_year_alone = gold.month and not date.month
        if (
            not date.agrees(gold)
            or (is_coarse and date != gold)
            or (is_year_alone and question.every & {"month", "day", "date"})
        ):
            continue
        is_vague = is_year_alone or (gold.day and not date.day)
        if is_vague and (str(date.year) in question.forms or (is_dated and not date.month)):
            continue
        yield Span(*span)


# --- golds in other spellings and with other words


def _match_joined(gold: Gold, sentence: Words, _: QuestionFacts) -> Span | None:
    whole = "".join(word.form for word in gold.words)
    if gold.words[0].is_number or len(whole) < 3:
        return None
    for start in range(len(sentence)):
        text = ""
        for end in range(start, min(start + MAX_JOINED, len(sentence))):
            text += sentence[end].form
            if text == whole:
                return Span(start, end + 1)
            if not whole.startswith(text):
                break
    return None


def _match_acronym(gold: Gold, sentence: Words, question: QuestionFacts) -> Span | None:
    """Match the initials of a name, or a name whose initials are the gold: `WHO`."""
    golden = [word for word in gold.words if word.form not in FUNCTION_WORDS]
    initials = _initials_of(golden)
    for at, word in enumerate(sentence):
        if len(initials) >= MIN_ACRONYM and word.text == initials and not question.has(word):
            return Span(at, at + 1)
    acronym = gold.words[0].text
    if len(gold.words) > 1 or len(acronym) < MIN_ACRONYM or not acronym.isupper():
        return None
    content = [at for at, word in enumerate(sentence) if word.form not in FUNCTION_WORDS]
    for first in range(len(content) - len(acronym) + 1):
        indices = content[first : first + len(acronym)]
        if _initials_of([sentence[at] for at in indices]) == acronym:
            return Span(indices[0], indices[-1] + 1)
    return None


def _initials_of(names: list[Word]) -> str:
    is_name = all(word.is_name for word in names)
    return "".join(word.text[:1] for word in names) if is_name else ""


def _match_spelling(gold: Gold, sentence: Words, _: QuestionFacts) -> Span | None:
    """Match a gold with slips in the spelling of its long words; `Austin` is not `Austen`."""
    parts = gold.words
    least = MIN_SLIP_LETTERS_ALONE if len(parts) == 1 else MIN_SLIP_LETTERS
    if all(len(word.form) < least for word in parts):
        return None
    for start in range(len(sentence) - len(parts) + 1):
        if all(_is_same_spelling(sentence[start + k], part) for k, part in enumerate(parts)):
            return Span(start, start + len(parts))
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


@lru_cache(maxsize=256)
def _stems(sentence: Words) -> frozenset[str]:
    return frozenset(stem(word.form) for word in sentence)


def _match_words(gold: Gold, sentence: Words, question: QuestionFacts) -> Span | None:
    """Match the words of a gold in any order, close together, or most words of a long one.

    Units, words of kind such as `city` and those that the question has may be missing; numbers and
    parts of a list may not.
    """
    known = [word for word in gold.words if not question.has(word)]
    needed = [
        w
        for w in known
        if w.form not in UNIT_NAMES and not {w.form, w.form.removesuffix("s")} & GENERIC_NOUNS
    ]
    has_unit = any(word.form in UNIT_NAMES for word in gold.words)
    if not has_unit and all(word.is_number for word in needed):
        needed = known  # because `1812` is not `the War of 1812`
    stems = _stems(sentence)  # words that are the same have the same stem
    if not _has_content(tuple(needed)) or sum(stem(w.form) in stems for w in needed) < HALF * len(
        needed
    ):
        return None
    rest, indices = [*needed], []
    for index, word in enumerate(sentence):
        if part := _first_same(word, rest):
            rest.remove(part)
            indices.append(index)
    own = [w for w in sentence if w.form not in FUNCTION_WORDS and not question.has(w)]
    is_common = not any(word.is_name for word in gold.words[1:] + gold.words[-1:])
    is_whole = gold.is_name and not (question.asks_person and gold.head not in rest)
    is_alone = gold.head not in rest and len(own) <= len(indices)
    is_partial = len(indices) >= (HALF if is_alone and is_common else MOST) * len(needed)
    if any(part.is_number for part in rest) or (
        rest and (gold.is_list or is_whole or not is_partial)
    ):
        return None
    start, end = indices[0], indices[-1] + 1
    golden = {word.form for word in gold.words} | {"0"}
    beside = range(max(0, start - 1), min(len(sentence), end + 2))
    others = [
        sentence[at] for at in beside if at not in indices and sentence[at].form not in golden
    ]
    has_other = any(
        w.form in UNIT_NAMES or (w.is_number and w in sentence[start:end]) for w in others
    )
    names = [w for w in others if w.is_name and w.form not in FUNCTION_WORDS | TITLES]
    if end - start > 3 * len(needed) + 6 or has_other or (rest and names):
        return None
    return Span(start, end)


def _first_same(word: Word, parts: list[Word]) -> Word | None:
    return next((part for part in parts if is_same_word(word, part)), None)


# --- names of people


def _match_name(gold: Gold, sentence: Words, question: QuestionFacts) -> Span | None:
    """Match the name of a person without its title, or with fewer or more middle names or initials.

    If the question asks for a person, the surname also counts alone, or after a short form or the
    initials of the given names.
    """
    if not gold.is_name:  # `The Babylonian king Nabonidus`
        titles = [at for at, word in enumerate(gold.words) if word.form in TITLES]
        core = gold.words[titles[-1] + 1 :] if titles and question.asks_person else ()
        is_new = any(not question.has(word) for word in core)
        return next(_runs(core, sentence), None) if is_new else None
    parts = tuple(w for w in gold.words if w.form not in TITLES)
    is_titled = parts and len(parts) < len(gold.words) and (len(parts) > 1 or question.asks_person)
    if is_titled and (span := next(_runs(parts, sentence), None)):
        return span
    is_whole = 2 <= len(parts) <= MAX_NAME_WORDS and not gold.is_list
    is_whole &= question.asks_person or not question.words
    return _match_surname(parts, sentence, question) if is_whole else None


def _match_surname(parts: Words, sentence: Words, question: QuestionFacts) -> Span | None:
    *golden, surname = parts
    for at, word in enumerate(sentence):
        after = sentence[at + 1] if at + 1 < len(sentence) else None
        is_followed = after and after.is_name and not (after.gap and len(sentence) > MAX_BARE_WORDS)
        if word.form != surname.form or not word.is_name or is_followed:
            continue
        start = at
        while start > max(0, at - MAX_NAME_WORDS) and not sentence[start].gap.strip(".\"'()"):
            before = sentence[start - 1]
            is_part = before.is_name and before.form not in TITLES | FUNCTION_WORDS
            if not (is_part or before.form in NAME_PARTICLES - {"of", "y"}):
                break
            start -= 1
        given = [*sentence[start:at]]
        for first in range(len(given)):
            if _is_same_person(given[first:], golden):
                return Span(at - len(given) + first, at + 1)
        is_middle = given and any(_is_short_form(given[-1].form, w.form) for w in golden)
        if is_middle and question.asks_person:  # `Paul McCartney` is `James Paul McCartney`
            return Span(at - 1, at + 1)
        if not given and question.asks_person and surname.form not in question.forms:
            return Span(at, at + 1)
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
