"""Where a sentence has a gold as its answer, in the same words or in words that people count as the same.

A gold has another role than that of the answer as a point of reference (`larger than Jupiter`), if it
tells whose or of what something is (`Jupiter's moon`, `a moon of Jupiter`), and as a part of another
name or number (`New Mexico`, `half of 206`).
"""

from collections.abc import Iterator

from rewardkit.answers.open_answers.golds import Date, Gold, QuestionFacts, dates_in
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    KINDS,
    NAME_PARTICLES,
    TITLES,
    UNIT_NAMES,
    Sentence,
    Span,
    Word,
    Words,
    is_name,
    stem,
)
from rewardkit.answers.parsing.vocabulary import split_words

#: Fraction of the words of a gold that suffices, and of common words in an answer that says nothing else.
MOST, HALF = 0.66, 0.5
#: Most words of a name of a person, and of an answer without a sentence, in which two names side by
#: side are two answers.
MAX_NAME_WORDS, MAX_BARE_WORDS = 5, 4
#: Most words of an answer without a verb, and of an attribute before a name.
MAX_FRAGMENT_WORDS, MAX_ATTRIBUTES = 12, 3

#: Words and pairs of words after which something is only what another thing is compared with or placed by.
_REFERENCES = split_words(
    "than before like unlike near beyond behind beside besides opposite outside except excluding until versus"
)
_REFERENCE_PAIRS = frozenset(
    "instead of;apart from;aside from;opposed to;confused with;mistaken for;contrary to;far from"
    ";west of;east of;north of;south of;km from;kilometer from;mile from;next to;second to;close to"
    ";similar to;related to;prior to;compared to;compared with;followed by;preceded by;descent of;lost to"
    ";anything but;everything but;everywhere but;anyone but;everyone but;nothing like".split(";")
)
#: Words that bound the number after them, and that make another number of the one beside them.
_BOUNDS = split_words(
    "pre post under below above nearly almost least most against after before over until"
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


def match(gold: Gold, sentence: Sentence, question: QuestionFacts) -> Span | None:
    """Return where a sentence has a gold as its answer; None if it does not."""
    other_roles = (_is_other_name, _is_reference, _is_owner, _is_other_number)
    for span in _matches(gold, sentence, question):
        if not any(is_other(sentence, span, question) for is_other in other_roles):
            return span
    return None


def is_fragment(sentence: Sentence, question: QuestionFacts) -> bool:
    """Whether a sentence has no verb, as far as common words and those of the question tell."""
    return (
        len(sentence.words) <= MAX_FRAGMENT_WORDS
        and all(word.form not in _VERBS for word in sentence.words)
        and 3 * len(sentence.stems & question.stems) < max(1, len(question.stems))
    )


def phrase_start(parts: Words, start: int) -> int:
    """Return where the noun phrase of a gold begins: `the Swedish chemist Alfred Nobel`."""
    ends = FUNCTION_WORDS | _REFERENCES
    for _ in range(min(start, MAX_ATTRIBUTES)):
        if parts[start].gap.strip("\"'") or parts[start - 1].form in ends:
            break
        start -= 1
    return start


def _is_reference(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    parts = sentence.words
    for at in {span.start, phrase_start(parts, span.start)} - {0}:
        word = parts[at - 1].form
        before = parts[at - 2].form if at > 1 else ""
        is_pair = f"{before} {word}" in _REFERENCE_PAIRS and before not in question.every
        is_alone = word in _REFERENCES - question.every and before != "other"
        if (is_pair or is_alone) and not parts[at].gap.strip("\"'("):
            return True
    return False


def _is_owner(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    """Whether a gold only says who or what something else is: `the wife of X`, `X's wife`."""
    parts, (start, end) = sentence.words, span
    things = [
        parts[at - 2]
        for at in {start, phrase_start(parts, start)}
        if at > 1 and parts[at - 1].form == "of" and not parts[at - 2].is_name
    ]
    others = [word for word in parts[end : end + 1] if not word.gap]
    if any(word.form in _RELATIVES - question.every for word in things + others):
        return True
    if not is_fragment(sentence, question):
        return False
    things = [word for word in things if word.form not in KINDS]
    if end + 1 >= len(parts) or parts[end + 1].gap:  # `hydrogen peroxide`, `Toto's owner`
        things += [word for word in others if _takes(parts[end - 1], word)]
    known = FUNCTION_WORDS | question.every
    return not all(w.form in known or w.is_number or question.has(w) for w in things)


def _takes(last: Word, after: Word) -> bool:
    are_names = last.is_name or last.is_number or after.is_name or after.is_number
    is_verb = after.form.endswith(("ed", "ing", "ly"))
    return (last.is_owner or not (are_names or is_verb)) and after.form not in GENERIC_NOUNS


def _is_other_name(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    """Whether the words beside a name make another one of it: `New Mexico`, `University of Georgia`."""
    parts, (start, end) = sentence.words, span
    if not (parts[start].is_name and parts[end - 1].is_name):
        return False
    before = parts[max(0, start - 2) : start] if not parts[start].gap else ()
    if before and before[-1].form in _PLACE_MODIFIERS:
        return before[-1].form not in question.forms
    followers = {
        word.form
        for word in parts[end : end + 1]
        if word.gap in ("", "-") and word.is_name and not word.text.isupper()  # `Real Madrid CF`
    }
    followers -= question.forms | FUNCTION_WORDS
    if end - start > 1:
        own = {word.form for word in parts[start:end]} | TITLES
        own |= frozenset() if question.asks_person else GENERIC_NOUNS
        return bool(followers - own) and is_fragment(sentence, question)
    if question.asks_person:
        return False
    is_part = [word.form for word in before[1:]] == ["of"] and before[0].is_name
    return bool(followers) or (is_part and before[0].form not in KINDS | question.forms)


def _is_other_number(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    """Whether a number is a bound, the end of a range, or changed by the words beside it.

    Those are `half of 206`, `206 dozen`, `206 plus 12` and the like.
    """
    parts, (start, end) = sentence.words, span
    if not any(word.is_number for word in parts[start:end]):
        return False
    before = parts[max(0, start - 2) : start]
    forms = [word.form for word in before]
    if forms[-1:] in (["to"], ["through"]) and before[0].is_number:
        return True
    changers = ({*forms[-1:]} & _BOUNDS) | ({*forms} & _CHANGERS_BEFORE)
    units = UNIT_NAMES - {"year"} if question.every & {"many", "old"} else frozenset()
    for word in parts[end : end + 1]:
        if not word.gap.strip("%-"):
            changers |= {word.form} & (_CHANGERS_AFTER | units)
    return bool(changers - question.every)


# --- where a sentence has a gold


def _matches(gold: Gold, sentence: Sentence, question: QuestionFacts) -> Iterator[Span]:
    if gold.date is not None:
        yield from _match_date(gold.date, gold.is_coarse, sentence.words, question)
        return
    parts = sentence.words
    runs = [] if gold.stems.isdisjoint(sentence.stems) else [*_runs(gold.words, sentence)]
    if all(map(question.has, gold.words)):
        # only in a short answer, if the question is a choice, or once more than in the question
        is_short = question.is_choice or len(parts) <= len(gold.words) + 3
        yield from runs if is_short else runs[len([*_runs(gold.words, question.sentence)]) :]
        return
    if not _has_content(gold.words):  # a title, such as `The Who` and `It`
        for span in runs:
            title = parts[slice(*span)]
            if (span.start and is_name(title)) or title[0].gap[-1:] in ("'", '"'):
                yield span
        return
    yield from runs
    for spelling in gold.spellings:
        place = sentence.spellings.get(spelling)
        if place and not all(map(question.has, parts[slice(*place)])):
            yield place
    for matcher in (_match_name, _match_words) if gold.stems & sentence.stems else ():
        if place := matcher(gold, sentence, question):
            yield place


def is_same_word(word: Word, gold: Word) -> bool:
    """Whether two words are the same: a common word in any form, a name exactly, a number by value."""
    if word.form == gold.form:
        return True
    if word.is_number or gold.is_number or (word.is_name and gold.is_name):
        return False
    return stem(word.form) == stem(gold.form)


def _runs(golden: Words, sentence: Sentence) -> Iterator[Span]:
    """Yield where words stand in a row, apart from function words unless there are no others."""
    parts = sentence.words
    content = sentence.content if _has_content(golden) else range(len(parts))
    for first in range(len(content) - len(golden) + 1):
        row = content[first : first + len(golden)]
        if all(is_same_word(parts[at], part) for at, part in zip(row, golden, strict=True)):
            yield Span(row[0], row[-1] + 1)


def _has_content(parts: Words) -> bool:
    return any(word.form not in FUNCTION_WORDS for word in parts)


def _match_date(
    gold: Date, is_coarse: bool, parts: Words, question: QuestionFacts
) -> Iterator[Span]:
    """Match a date in any order, or with less or more of its parts.

    A year alone counts for a full date unless the question has the year or the sentence also has a
    fuller date.
    """
    dates = dates_in(parts)
    is_dated = any(date.month for date, _ in dates)
    for date, span in dates:
        is_year_alone = gold.month and not date.month
        if not date.agrees(gold) or (is_coarse and date != gold):
            continue
        if is_year_alone and (is_dated or question.every & {"month", "day", "date"}):
            continue
        is_vague = is_year_alone or (gold.day and not date.day)
        if not (is_vague and str(date.year) in question.forms):
            yield Span(*span)


def _match_words(gold: Gold, sentence: Sentence, question: QuestionFacts) -> Span | None:
    """Match the words of a gold in any order, close together, or most words of a long one.

    Units, words of kind such as `city` and those that the question has may be missing; numbers and
    parts of a list may not.
    """
    parts = sentence.words
    known = [word for word in gold.words if not question.has(word)]
    omissible = UNIT_NAMES | GENERIC_NOUNS
    needed = [w for w in known if omissible.isdisjoint((w.form, w.form.removesuffix("s")))]
    if all(word.is_number for word in needed):
        needed = known  # because `1812` is not `the War of 1812`
    rest = {stem(word.form): word for word in needed}
    least, indices = len(rest), []
    for index, word in enumerate(parts):
        part = rest.get(stem(word.form))
        if part and is_same_word(word, part):
            del rest[stem(word.form)]
            indices.append(index)
    own = [w for w in parts if w.form not in FUNCTION_WORDS and not question.has(w)]
    is_common = not any(word.is_name for word in gold.words[1:] + gold.words[-1:])
    has_head = stem(gold.head.form) not in rest
    is_alone = is_common and has_head and len(own) <= len(indices)
    if not indices or len(indices) < (HALF if is_alone else MOST) * least:
        return None
    is_whole = gold.is_list or (gold.is_name and not (question.asks_person and has_head))
    if any(part.is_number for part in rest.values()) or (rest and is_whole):
        return None
    start, end = indices[0], indices[-1] + 1
    golden = {word.form for word in gold.words} | {"0"}
    beside = parts[max(0, start - 1) : end + 2]
    others = [word for word in beside if word.form not in golden]
    has_other = any(w.form in UNIT_NAMES or (w.is_number and w in parts[start:end]) for w in others)
    names = [w for w in others if w.is_name and w.form not in FUNCTION_WORDS | TITLES]
    if end - start > 3 * least + 6 or has_other or (rest and names):
        return None
    return Span(start, end)


# --- names of people


def _match_name(gold: Gold, sentence: Sentence, question: QuestionFacts) -> Span | None:
    """Match the name of a person without its title, or with fewer or more middle names or initials.

    If the question asks for a person, the surname also counts alone, or after a short form or the
    initials of the given names.
    """
    parts = tuple(word for word in gold.words if word.form not in TITLES)
    if not (gold.is_name and parts):
        return None
    if len(parts) < len(gold.words) and (span := next(_runs(parts, sentence), None)):
        return span
    is_person = question.asks_person or not question.every
    is_whole = is_person and 2 <= len(parts) <= MAX_NAME_WORDS
    return _match_surname(parts, sentence.words, question) if is_whole else None


def _match_surname(golden: Words, parts: Words, question: QuestionFacts) -> Span | None:
    *theirs, surname = golden
    for at, word in enumerate(parts):
        after = parts[at + 1] if at + 1 < len(parts) else None
        is_followed = after and after.is_name and not (after.gap and len(parts) > MAX_BARE_WORDS)
        if word.form != surname.form or not word.is_name or is_followed:
            continue
        start = at
        while start > max(0, at - MAX_NAME_WORDS) and not parts[start].gap.strip(".\"'()"):
            before = parts[start - 1]
            is_part = before.is_name and before.form not in TITLES | FUNCTION_WORDS
            if not (is_part or before.form in NAME_PARTICLES - {"of", "y"}):
                break
            start -= 1
        for first in range(start, at):
            if _is_same_person(parts[first:at], theirs):
                return Span(first, at + 1)
        if start == at and question.asks_person and surname.form not in question.forms:
            return Span(at, at + 1)
    return None


def _is_same_person(given: Words, golden: list[Word]) -> bool:
    """Whether two lists of given names may be one person's: `Anna M.`, `Ann`, `A. M.`, `Anna Maria`."""
    mine, theirs = ("".join(map(_initials, names)) for names in (given, golden))
    short, long = sorted((given[0].form, golden[0].form), key=len)
    if short == long or (len(short) >= 3 and long.startswith(short)):
        return mine.startswith(theirs) or theirs.startswith(mine)
    return mine == theirs and any(all(w.text.isupper() for w in names) for names in (given, golden))


def _initials(name: Word) -> str:
    return name.text if name.text.isupper() else name.text[:1].upper()
