"""Dates in words: `5 September 2016`, `Sept. 5, 2016`, `2016-09-05`, `May 1990`, `1990`."""

from typing import NamedTuple

from rewardkit.answers.open_answers.vocabulary import FUNCTION_WORDS
from rewardkit.answers.open_answers.words import Word, month

#: Most words of a date, as in `5th of September of 2016`.
MOST_WORDS = 5
_NO_WORDS = (Word("", False, False, False, "", ""),) * MOST_WORDS
#: Months whose names are common words: without a day or a year they count only as names.
_COMMON_WORDS = frozenset({"may", "march", "mar", "jan"})


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


def as_date(parts: tuple[Word, ...]) -> Date | None:
    """Return the date that words are; None if they are not exactly one date."""
    content = tuple(word for word in parts if word.form not in FUNCTION_WORDS or month(word))
    dates = dates_in(content)
    return dates[0][0] if len(dates) == 1 and dates[0][1] == (0, len(content)) else None


def dates_in(parts: tuple[Word, ...]) -> list[tuple[Date, tuple[int, int]]]:
    """Return the dates in words, each with the places of its first word and after its last one."""
    dates: list[tuple[Date, tuple[int, int]]] = []
    place = 0
    while place < len(parts):
        date, end = _date_at((*parts[place : place + MOST_WORDS], *_NO_WORDS))
        if date:
            dates.append((date, (place, place + end)))
        place += end
    return dates


def _whole_number(word: Word) -> str:
    return word.form if word.is_number and word.form.isdecimal() else ""


def is_year(word: Word) -> bool:
    """Whether a word may be a year from 1000 to 2100."""
    return len(_whole_number(word)) == 4 and "," not in word.text and word.form <= "2100"


def _is_day(word: Word) -> bool:
    return 1 <= int(_whole_number(word)[:3] or 0) <= 31


def _date_at(parts: tuple[Word, ...]) -> tuple[Date | None, int]:
    """Return the date at the start of words and the number of its words; None if there is none."""
    first, second, third, *_ = parts
    if is_year(first):
        if all(part.gap in ("-", "/") and _is_day(part) for part in (second, third)):
            return Date(int(first.form), int(second.form), int(third.form)), 3
        return Date(int(first.form), 0, 0), 1
    if date := _date_in_figures(first, second, third):
        return date, 3
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
    is_early = day > 0 and len(_whole_number(year)) == 3 and not year.is_ordinal
    if is_early or is_year(year):
        return Date(int(year.form), number, day), year_at + 1
    is_month = day or name.form not in _COMMON_WORDS or name.is_name
    return (Date(0, number, day), end) if is_month else (None, 1)


def _date_in_figures(first: Word, second: Word, year: Word) -> Date | None:
    """Return the date that `15/04/1912` or `4/15/1912` is; the year alone if its order is unclear."""
    is_date = _is_day(first) and _is_day(second) and is_year(year)
    if not is_date or any(part.gap not in ("/", "-", ".") for part in (second, year)):
        return None
    a, b = int(first.form), int(second.form)
    if a > 12 >= b:
        a, b = b, a
    return Date(int(year.form), a, b) if b > 12 >= a else Date(int(year.form), 0, 0)
