"""What golds and questions tell: the wordings of a gold, dates, and what kind of thing a question asks for."""

import re
from functools import lru_cache
from typing import NamedTuple

from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    NAME_PARTICLES,
    Word,
    month,
    stem,
    words,
)
from rewardkit.answers.parsing.vocabulary import split_words

# --- dates: `5 September 2016`, `Sept. 5, 2016`, `2016-09-05`, `15/04/1912`, `May 1990`, `1990`

#: Most words of a date, as in `5th of September of 2016`.
MAX_DATE_WORDS = 5
_NO_WORDS = (Word("", False, False, False, "", ""),) * MAX_DATE_WORDS


class Date(NamedTuple):
    """A date; 0 for a part that is not given."""

    year: int
    month: int
    day: int

    def agrees(self, gold: "Date") -> bool:
        """Whether no part contradicts a gold; a gold without a year needs all of its parts."""
        if gold.year:
            pairs = ((self.month, gold.month), (self.day, gold.day))
            return self.year == gold.year and all(a == b or not (a and b) for a, b in pairs)
        return self.month == gold.month and gold.day in (0, self.day)


def dates_in(parts: tuple[Word, ...]) -> list[tuple[Date, tuple[int, int]]]:
    """Return the dates in words, each with the indices of its first word and after its last one."""
    dates: list[tuple[Date, tuple[int, int]]] = []
    start = 0
    while start < len(parts):
        date, length = _first_date(*parts[start : start + MAX_DATE_WORDS], *_NO_WORDS)
        if date:
            dates.append((date, (start, start + length)))
        start += length
    return dates


def _whole_number(word: Word) -> str:
    return word.form if word.is_number and word.form.isdecimal() else ""


def is_year(word: Word) -> bool:
    """Whether a word may be a year from 1000 to 2100."""
    return len(_whole_number(word)) == 4 and "," not in word.text and word.form <= "2100"


def _is_day(word: Word) -> bool:
    return 1 <= int(_whole_number(word)[:3] or 0) <= 31


def _first_date(*parts: Word) -> tuple[Date | None, int]:
    """Return the date at the start of words and the number of its words; None if there is none."""
    first, second, third, *_ = parts
    is_in_figures = {second.gap, third.gap} <= {"-", "/", "."}
    if is_year(first):
        if is_in_figures and _is_day(second) and _is_day(third):
            return Date(int(first.form), int(second.form), int(third.form)), 3
        return Date(int(first.form), 0, 0), 1
    if is_in_figures and _is_day(first) and _is_day(second) and is_year(third):
        number, day = sorted((int(first.form), int(second.form)))
        is_clear = number <= 12 < day  # unlike `3/4/1912`, of which only the year counts
        return Date(int(third.form), *((number, day) if is_clear else (0, 0))), 3
    end = day = 0
    if _is_day(first):
        day, end = int(first.form), 1 + (second.form == "of")
    name = parts[end]
    number = month(name)
    if not number:
        return None, 1
    end += 1
    if not day and _is_day(parts[end]):
        day, end = int(parts[end].form), end + 1
    year_at = end + (parts[end].form in ("of", "in"))
    year = parts[year_at]
    if is_year(year) or (day and len(_whole_number(year)) == 3):
        return Date(int(year.form), number, day), year_at + 1
    is_month = day or name.form not in ("may", "march", "mar", "jan") or name.is_name
    return (Date(0, number, day), end) if is_month else (None, 1)


# --- golds

#: Most characters of a gold that are read.
MAX_GOLD_CHARS = 400
#: Most other wordings of a gold.
MAX_WORDINGS = 8

_BRACKETS = re.compile(r"\([^()]{0,200}\)|\[[^\[\]]{0,200}\]")
_ACRONYM = re.compile(r"\(([A-Z]{3,8})\)")
#: A name after a description: `Norwegian botanist Carl Lind`.
_DESCRIBED_NAME = re.compile(
    r"^(?:.*\s)?(?!(?:of|and|in|for|to|by|the|with|from|at|on|or|as|[a-z]{1,12}ern)\b)[a-z]{2,20}"
    r" ([A-Z][a-z][\w.'-]{1,30}(?: [A-Z][\w.'-]{0,30}){1,3})$"
)
_TURNS = frozenset({"of", "in", "at", "from", "for", "who", "which"})
_OR = re.compile(r"\sor\s|/|;\s")
#: What follows a name in `Thomas Hobbes in his Leviathan`, `Berg, the painter`.
_CLAUSE = re.compile(
    r",?\s(?:in|who|which|from|as|for|during|where|near|that)\s.*|,\s(?:the|an?|at|on)\s[^,]*$"
)


class Gold(NamedTuple):
    """A wording of a gold answer."""

    words: tuple[Word, ...]  # without function words unless it has no others (`The Who`)
    stems: frozenset[str]
    head: Word  # what it is: its last word, or the one before `of` or the like
    date: Date | None  # if it is nothing else
    is_list: bool  # it has several parts, all of which are needed
    is_name: bool  # it is written as the name of a person
    is_head: bool = False  # the part before a comma, which counts only as a short answer
    is_coarse: bool = False  # another gold is a fuller date, which an answer may not contradict


@lru_cache(maxsize=8192)
def read_gold(text: str) -> tuple[Gold, ...]:
    """Return the wordings of a gold: the text, without brackets, each part of `X or Y`, the head."""
    text = " ".join(text[:MAX_GOLD_CHARS].split())
    outside = " ".join(_BRACKETS.sub(" ", text).split())
    wordings = [text, outside, text.replace("(", " ").replace(")", " "), *_OR.split(outside)]
    wordings += _ACRONYM.findall(text) + _DESCRIBED_NAME.findall(outside)
    wordings += [name for name in [_CLAUSE.sub("", outside)] if _gold(name).is_name]
    before, comma, after = outside.partition(",")
    golds = [_gold(wording.strip()) for wording in [*dict.fromkeys(wordings)][:MAX_WORDINGS]]
    if comma and "," not in after and (head := _gold(before)).is_name:
        golds.append(head._replace(is_head=True))
    return tuple(gold for gold in golds if gold.words)


@lru_cache(maxsize=8192)
def forms_of(text: str) -> tuple[str, ...]:
    """Return the words of a gold in the form in which they are compared."""
    return tuple(word.form for word in words(text[:MAX_GOLD_CHARS]))


def _gold(text: str) -> Gold:
    every = words(text)
    content = tuple(w for w in every if w.form not in FUNCTION_WORDS or month(w)) or every
    dates = dates_in(content)
    commas = sum("," in word.gap for word in every)
    turn = next((at for at, word in enumerate(every) if word.form in _TURNS and at), len(every))
    return Gold(
        words=content,
        stems=frozenset(stem(word.form) for word in content),
        head=every[turn - 1] if content else _NO_WORDS[0],
        date=dates[0][0] if len(dates) == 1 and dates[0][1] == (0, len(content)) else None,
        is_list=commas > 1 or any(word.form == "and" for word in every),
        is_name=not commas
        and text[:4].lower() != "the "
        and all(word.is_name or word.form in NAME_PARTICLES for word in every),
    )


# --- questions

#: Words of a question that asks for a person: pronouns, and persons by what they do.
_PERSON_WORDS = split_words(
    "who whom whose surname actor actress author singer president king queen person man woman"
    " scientist physicist chemist philosopher economist artist painter sculptor composer writer"
    " novelist poet playwright dramatist director comedian star dancer leader explorer inventor"
    " engineer astronaut player footballer golfer boxer cricketer athlete coach pope monarch emperor"
    " empress prince princess general admiral senator philanthropist wife husband mother father son"
    " daughter brother sister"
)
#: Words of a question that asks for several things.
_SEVERAL_WORDS = split_words(
    "list cast some several two three four five six seven eight nine ten both members names"
    " order types kinds examples countries states cities people actors players"
)
#: Most characters of a question that are read.
MAX_QUESTION_CHARS = 2000


class QuestionFacts(NamedTuple):
    """What a question tells."""

    words: tuple[Word, ...]
    every: frozenset[str]  # the forms of all words
    forms: frozenset[str]  # without function words: an answer that repeats them says nothing
    stems: frozenset[str]  # of these
    asks_person: bool
    asks_several: bool
    is_choice: bool  # as `left or right`

    def has(self, word: Word) -> bool:
        """Whether the question has a word in some form."""
        return stem(word.form) in self.stems


@lru_cache(maxsize=1024)
def read_question(text: str) -> QuestionFacts:
    """Return what a question tells; "" is a question without words."""
    parts = words(text[:MAX_QUESTION_CHARS])
    every = frozenset(word.form for word in parts)
    return QuestionFacts(
        words=parts,
        every=every,
        forms=every - FUNCTION_WORDS,
        stems=frozenset(map(stem, every - FUNCTION_WORDS)),
        asks_person=bool(every & _PERSON_WORDS)
        or any(form.endswith(("ologist", "ician", "ographer")) for form in every),
        asks_several=bool(every & _SEVERAL_WORDS),
        is_choice="or" in every,
    )
