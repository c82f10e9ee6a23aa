"""Whether a gold in a sentence has another role than that of the answer.

It is a point of reference in `larger than Jupiter`, tells whose or of what something is in `Jupiter's
moon` and `a moon of Jupiter`, and is a part of another name or number in `New Mexico` and `half of 206`.
"""

from typing import NamedTuple, TypeAlias

from rewardkit.answers.open_answers.golds import QuestionFacts
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    KINDS,
    PLACE_MODIFIERS,
    TITLES,
    UNIT_NAMES,
    Word,
    stem,
)
from rewardkit.answers.parsing.vocabulary import split_words

Words: TypeAlias = tuple[Word, ...]


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
    if before and before.is_name and before.form in PLACE_MODIFIERS:
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
