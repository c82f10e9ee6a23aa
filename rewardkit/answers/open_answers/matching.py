"""Where a sentence has a gold as its answer, in the same words or in words that people count as the same.

A gold has another role than that of the answer as a point of reference (`larger than Jupiter`), if it
tells whose or of what something is (`Jupiter's moon`, `a moon of Jupiter`), and as a part of another
name or number (`New Mexico`, `half of 206`).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rewardkit.answers.open_answers.golds import Date, Gold, QuestionFacts, dates_in
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    KINDS,
    NAME_PARTICLES,
    TITLES,
    UNIT_NAMES,
    Word,
    stem,
)
from rewardkit.answers.parsing.vocabulary import split_words

Words: TypeAlias = tuple[Word, ...]


#: Letters of the shortest word in which a slip is accepted, and of the shortest gold of one word; and
#: letters of a word that are compared for slips.
MIN_SLIP_LETTERS, MIN_SLIP_LETTERS_ALONE, MAX_SLIP_LETTERS = 6, 8, 40
#: Letters of the shortest acronym, and most words that are joined to one: `bee keeper`, `beekeeper`.
MIN_ACRONYM, MAX_JOINED = 3, 6
#: Fraction of the words of a gold that suffices, and of common words in an answer that says nothing else.
MOST, HALF = 0.66, 0.5
#: Most words of a name of a person, and of an answer without a sentence, in which two names side by
#: side are two answers; and most letters of initials that are written together: `JRR`.
MAX_NAME_WORDS, MAX_BARE_WORDS, MAX_INITIALS = 5, 4, 3


class Span(NamedTuple):
    """Words of a sentence: the indices of the first one and after the last one."""

    start: int
    end: int


def split_phrases(text: str) -> frozenset[str]:
    """Return the phrases of a text between semicolons."""
    return frozenset(text.split(";"))


#: Words and pairs of words after which something is only what another thing is compared with or placed by.
_REFERENCES = split_words(
    "than like unlike near beyond behind beside besides opposite outside except excluding until versus"
)
#: Those that say so only in an answer without a verb: `He died after an explosion` tells how.
_LOOSE_REFERENCES = split_words("against after before over")
_REFERENCE_PAIRS = split_phrases(
    "instead of;apart from;aside from;opposed to;confused with;mistaken for;contrary to;far from"
    ";west of;east of;north of;south of;km from;kilometer from;mile from;next to;second to;close to"
    ";similar to;related to;prior to;compared to;compared with;followed by;preceded by;descent of;lost to"
    ";anything but;everything but;everywhere but;anyone but;everyone but;nothing like"
)
#: Words that bound the number after them, and that make another number of the one beside them.
_BOUNDS = (
    split_words("pre post under below above nearly almost least most")
    | _REFERENCES
    | _LOOSE_REFERENCES
)
_CHANGERS_BEFORE = split_words("half twice double triple minus plus times third quarter root")
_CHANGERS_AFTER = split_words(
    "percent dozen dozens pair pairs plus minus times squared cubed bc bce ago thousandth millionth"
)
#: Words for somebody or something related, as in `the wife of X`.
_RELATIVES = split_words(
    "wife husband son daughter father mother brother sister widow widower friend uncle aunt cousin"
    " nephew niece grandson granddaughter grandfather grandmother opposite rival successor"
    " predecessor student pupil teacher contemporary imitator parent parents suburb outskirts colleague"
    " assistant biographer admirer moon tributary neighbour neighbor competitor variant"
)
#: Words that make another name of the name that they precede.
_PLACE_MODIFIERS = split_words(
    "new north south east west northern southern eastern western northeast northwest southeast"
    " southwest upper lower central great little old inner outer"
)
#: Words of a sentence with a verb.
_VERBS = split_words(
    "is are was were be been has have had do does did will would can could may might he she they i we it"
    " his her their"
)
#: Most words of an answer without a verb, and of an attribute before a name.
MAX_FRAGMENT_WORDS = 12
MAX_ATTRIBUTES = 3


def is_in_other_role(sentence: Words, span: Span, question: QuestionFacts) -> bool:
    """Whether a gold in a sentence is not what the sentence is about."""
    return (
        _is_other_name(sentence, span, question)
        or _is_reference(sentence, span.start, question)
        or _is_owner(sentence, span, question)
        or _is_other_number(sentence, span, question)
    )


def is_fragment(sentence: Words, question: QuestionFacts) -> bool:
    """Whether a sentence has no verb, as far as common words and those of the question tell."""
    echo = len({stem(word.form) for word in sentence} & question.stems)
    return (
        len(sentence) <= MAX_FRAGMENT_WORDS
        and all(w.form not in _VERBS for w in sentence)
        and (3 * echo < len(question.stems) or len(sentence) <= 4)
    )


def phrase_start(sentence: Words, start: int) -> int:
    """Return where the noun phrase of a gold begins: `the Swedish chemist Alfred Nobel`."""
    least = max(0, start - MAX_ATTRIBUTES)
    while (
        start > least
        and not sentence[start].gap.strip("\"'")
        and _is_attribute(sentence[start - 1])
    ):
        start -= 1
    return start


def _is_attribute(word: Word) -> bool:
    is_verb = word.form.endswith(("ing", "ed")) and not word.is_name
    return not is_verb and word.form not in FUNCTION_WORDS | _REFERENCES | _LOOSE_REFERENCES


def _is_reference(sentence: Words, start: int, question: QuestionFacts) -> bool:
    references = _REFERENCES | _LOOSE_REFERENCES if is_fragment(sentence, question) else _REFERENCES
    for at in {start, phrase_start(sentence, start)} - {0}:
        word = sentence[at - 1]
        before = sentence[at - 2].form if at > 1 else ""
        is_pair = f"{before} {word.form}" in _REFERENCE_PAIRS and before not in question.every
        is_alone = word.form in references - question.every and before != "other"
        if (is_pair or is_alone) and not sentence[at].gap.strip("\"'("):
            return True
    return False


def _is_owner(sentence: Words, span: Span, question: QuestionFacts) -> bool:
    """Whether a gold only says who or what something else is: `the wife of X`, `X's wife`."""
    start, (_, end) = phrase_start(sentence, span.start), span
    things = [
        sentence[at - 2]
        for at in {start, span.start}
        if at > 1 and sentence[at - 1].form == "of" and not sentence[at - 2].is_name
    ]
    others = [word for word in sentence[end : end + 1] if not word.gap]
    if any(word.form in _RELATIVES - question.every for word in things + others):
        return True
    if not is_fragment(sentence, question):
        return False
    is_last = end + 1 >= len(sentence) or sentence[end + 1].gap
    if others and not (is_last and _is_compound(sentence[end - 1], others[0])):
        others = []
    known = FUNCTION_WORDS | question.every
    return any(
        not (word.form in known or word.is_number or question.has(word))
        for word in (
            *(w for w in things if w.form not in KINDS),
            *(w for w in others if w.form not in GENERIC_NOUNS),
        )
    )


def _is_compound(last: Word, after: Word) -> bool:
    """Whether the word after a gold takes it as an attribute: `hydrogen peroxide`, `Toto's owner`."""
    is_verb = after.form.endswith(("ed", "ing", "ly"))
    return last.is_owner or not (
        last.is_name or last.is_number or after.is_name or after.is_number or is_verb
    )


def _is_other_name(sentence: Words, span: Span, question: QuestionFacts) -> bool:
    """Whether the words beside a name make another one of it: `New Mexico`, `University of Georgia`."""
    start, end = span
    first, last = sentence[start], sentence[end - 1]
    before = sentence[start - 1] if start and not first.gap else None
    after = sentence[end] if end < len(sentence) and sentence[end].gap in ("", "-") else None
    owner = sentence[start - 2] if start > 1 and before and before.form == "of" else None
    if not (first.is_name and last.is_name):
        return False
    if before and before.is_name and before.form in _PLACE_MODIFIERS:
        return before.form not in question.forms
    if after and after.is_number and len(after.form) <= 2 and after.form not in question.forms:
        is_verse = sentence[end + 1 : end + 2] and sentence[end + 1].gap == ":"
        is_mark = question.asks_person and after.text.isdecimal()
        return not (last.is_number or is_verse or is_mark)
    known = question.forms | FUNCTION_WORDS
    is_followed = after and after.is_name and after.form not in known
    is_abbreviation = after and after.text.isupper() and len(after.text) < 5  # `Real Madrid CF`
    follower = after.form if after and is_followed and not is_abbreviation else ""
    if end - start > 1:
        own = {word.form for word in sentence[start:end]} | TITLES
        own |= frozenset() if question.asks_person else GENERIC_NOUNS
        return bool(follower) and follower not in own and is_fragment(sentence, question)
    if len(first.form) <= 2 and any(word and word.is_name for word in (before, after)):
        return True  # because `A B C D` is not `B`
    if question.asks_person:
        return False
    return bool(follower) or bool(
        owner and owner.is_name and owner.form not in KINDS | question.forms
    )


def _is_other_number(sentence: Words, span: Span, question: QuestionFacts) -> bool:
    """Whether a number is a bound, an end of a range, one of several in a row, or changed.

    The words beside a number change it in `half of 206`, `206 dozen`, `206 plus 12`.
    """
    start, end = span
    if not any(word.is_number for word in sentence[start:end]):
        return False
    before, after = sentence[max(0, start - 2) : start], sentence[end : end + 1]
    forms = [word.form for word in before]
    units = UNIT_NAMES if question.every & UNIT_NAMES else frozenset()
    if question.every & {"many", "old"}:
        units = UNIT_NAMES - {"year"}
    changers = {*forms[-1:]} & (_BOUNDS | _CHANGERS_BEFORE)
    if forms[1:] == ["of"]:
        changers |= {forms[0]} & _CHANGERS_BEFORE
    for word in after:
        if not word.gap.strip("%-"):
            changers |= {word.form} & (_CHANGERS_AFTER | units)
    beside = [(word, sentence[start].gap) for word in before[-1:]]
    beside += [(word, word.gap) for word in after]
    is_in_row = end - start == 1 and any(w.is_number and gap in ("", "-") for w, gap in beside)
    is_end_of_range = forms[-1:] in (["to"], ["through"]) and before[0].is_number
    return bool(changers - question.every) or is_in_row or is_end_of_range


# --- where a sentence has a gold


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
        if part := next((part for part in rest if is_same_word(word, part)), None):
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
