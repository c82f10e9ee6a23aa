"""What golds and questions tell: the wordings of a gold, and the kind of thing that a question asks for."""

import re
from functools import lru_cache
from typing import NamedTuple

from rewardkit.answers.open_answers.dates import Date, as_date
from rewardkit.answers.open_answers.vocabulary import (
    FUNCTION_WORDS,
    NAME_PARTICLES,
    PERSON_WORDS,
    SEVERAL_WORDS,
)
from rewardkit.answers.open_answers.words import Word, stem, words

#: Most characters of a gold that are read.
MAX_GOLD_CHARS = 400
#: Most other wordings of a gold.
MAX_WORDINGS = 8

_BRACKETS = re.compile(r"\([^()]{0,200}\)|\[[^\[\]]{0,200}\]")
_OR = re.compile(r"\sor\s|/|;\s")
_APPOSITION = re.compile(r"(?:the|a|an|who|which|that|in|at|on|near|from|where)\s", re.IGNORECASE)
#: A name before a clause: `Thomas Hobbes in his Leviathan`.
_NAME_AND_CLAUSE = re.compile(
    r"((?:[^\W\d_a-z][\w.'-]{0,30} ){1,4}?)(?:in|who|which|from|as|for|during)\s"
)


class Gold(NamedTuple):
    """A wording of a gold answer.

    Attributes:
        text: the wording.
        words: its words, without function words unless it has no others.
        date: the date that it is, if it is nothing else.
        is_list: whether it has several parts, all of which are needed.
        is_name: whether it is written as the name of a person.
        is_head: whether it is the part before a comma, which counts only as a short answer.
    """

    text: str
    words: tuple[Word, ...]
    date: Date | None
    is_list: bool
    is_name: bool
    is_head: bool = False


@lru_cache(maxsize=8192)
def read_gold(text: str) -> tuple[Gold, ...]:
    """Return the wordings of a gold: the text, without brackets, each part of `X or Y`, the head."""
    text = " ".join(text[:MAX_GOLD_CHARS].split())
    outside = " ".join(_BRACKETS.sub(" ", text).split())
    wordings = [text, outside, text.replace("(", " ").replace(")", " "), *_OR.split(outside)]
    if clause := _NAME_AND_CLAUSE.match(outside):
        wordings.append(clause[1])
    before, comma, after = outside.partition(",")
    has_head = bool(comma) and "," not in after
    if has_head and _APPOSITION.match(after.strip()):
        wordings.append(before)
    golds = [_gold(wording.strip()) for wording in [*dict.fromkeys(wordings)][:MAX_WORDINGS]]
    if has_head and (head := _gold(before)).is_name:
        golds.append(head._replace(is_head=True))
    return tuple(gold for gold in golds if gold.words)


@lru_cache(maxsize=8192)
def forms_of(text: str) -> tuple[str, ...]:
    """Return the words of a gold in the form in which they are compared."""
    return tuple(word.form for word in words(text[:MAX_GOLD_CHARS]))


def _gold(text: str) -> Gold:
    every = words(text)
    content = tuple(word for word in every if word.form not in FUNCTION_WORDS) or every
    commas = sum("," in word.gap for word in every)
    starts_with_article = text[:4].lower() == "the "
    return Gold(
        text=text,
        words=content,
        date=as_date(every),
        is_list=commas > 1 or any(word.form == "and" for word in every),
        is_name=not (commas or starts_with_article)
        and all(
            (word.is_name and not word.is_number) or word.form in NAME_PARTICLES for word in every
        ),
    )


# --- questions

#: Most characters of a question that are read.
MAX_QUESTION_CHARS = 2000


class QuestionFacts(NamedTuple):
    """A question.

    Attributes:
        words: its words in order, without function words.
        every: the forms of all its words.
        forms: the forms of `words`: an answer that repeats them says nothing.
        stems: their stems.
        asks_person: whether it asks for a person.
        asks_several: whether it asks for several things.
        is_choice: whether it offers a choice: `left or right`.
    """

    words: tuple[Word, ...]
    every: frozenset[str]
    forms: frozenset[str]
    stems: frozenset[str]
    asks_person: bool
    asks_several: bool
    is_choice: bool

    def has(self, word: Word) -> bool:
        """Whether the question has a word in some form."""
        return word.form in self.forms or stem(word.form) in self.stems


@lru_cache(maxsize=1024)
def read_question(text: str) -> QuestionFacts:
    """Return what a question tells; "" is a question without words."""
    every = words(text[:MAX_QUESTION_CHARS])
    all_forms = frozenset(word.form for word in every)
    content = tuple(word for word in every if word.form not in FUNCTION_WORDS)
    forms = frozenset(word.form for word in content)
    return QuestionFacts(
        words=content,
        every=all_forms,
        forms=forms,
        stems=frozenset(map(stem, forms)),
        asks_person=bool(all_forms & PERSON_WORDS)
        or any(form.endswith(("ologist", "ician", "ographer")) for form in all_forms),
        asks_several=bool(all_forms & SEVERAL_WORDS),
        is_choice="or" in all_forms,
    )
