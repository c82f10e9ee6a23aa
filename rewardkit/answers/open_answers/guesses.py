"""Whether a gold is only one of several answers that a sentence offers: `Paris, London or Rome`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewardkit.answers.open_answers.comparison import is_same_word
from rewardkit.answers.open_answers.dates import is_year
from rewardkit.answers.open_answers.golds import Gold
from rewardkit.answers.open_answers.questions import QuestionFacts
from rewardkit.answers.open_answers.sentences import Sentence
from rewardkit.answers.open_answers.vocabulary import COMPARATIVES, FUNCTION_WORDS, UNIT_NAMES
from rewardkit.answers.open_answers.words import Word

#: Most items of a list where the question asks for several things, and where it asks for one.
MAX_ITEMS_OF_SEVERAL: Final = 8
MAX_ITEMS: Final = 2
#: Most words of an item of a list.
MAX_ITEM_WORDS: Final = 5

_JOINTS: Final = frozenset({"and", "or"})
_HEDGES: Final = frozenset({"maybe", "perhaps", "possibly", "probably", "even", "also"})
#: Words after a comma that name parts of what precedes: `Utah, including Provo and Ogden`.
_PARTS: Final = frozenset({"including", "such", "especially", "with"})

#: Words that announce a list as guesses: `Possible answers are Paris and Rome`.
_ANNOUNCEMENTS: Final = frozenset({"answers", "candidates", "guesses"})

_NAMING: Final = frozenset({"called", "known", "termed", "named"})

Item = tuple[int, int]


def is_guess(
    sentence: Sentence, start: int, end: int, golds: Sequence[Gold], question: QuestionFacts
) -> bool:
    """Whether the words from `start` to `end` are only one of several answers in a sentence.

    They are if `or` joins them to something other than a gold, if the list is announced as one of
    answers or candidates, or if it has more than `MAX_ITEMS` alike of which fewer than half are
    golds. A bare list may not even have two, unless the gold is the first, as in `London, England`.
    """
    parts = sentence.words
    items, has_or = items_around(parts, start, end)
    others = [item for item in items if item != (start, end)]
    others = [item for item in others if not _is_gold(parts[slice(*item)], golds)]
    others = [item for item in others if not _is_conversion(parts, end, item)]
    if has_or and _are_synonyms(parts, start, end, items):
        return False
    if has_or and others and not any(parts[begin].form in COMPARATIVES for begin, _ in others):
        return True
    is_announced = any(word.form in _ANNOUNCEMENTS for word in parts[:start])
    if others and is_announced and not question.asks_several:
        return True
    golden = len(items) - len(others)
    if not others or (golden > 1 and 2 * golden >= len(items)):
        return False
    alike = [item for item in others if _is_alike(parts[slice(*item)], parts[start:end])]
    if sum(close - begin for begin, close in items) + 2 >= len(parts):
        before = [item for item in others if item[0] < start and item not in alike]
        before = [item for item in before if _ends_in_names(parts[slice(*item)])]
        figures = [item for item in others if item[0] > start and _is_figure(parts[slice(*item)])]
        return _is_guess_alone(parts, (start, end), items, [*alike, *before, *figures], question)
    most = MAX_ITEMS_OF_SEVERAL if question.asks_several else MAX_ITEMS
    has_and = any(word.form == "and" for word in parts[items[0][0] : items[-1][1]])
    return len(alike) + 1 > most + (not has_and)


def _are_synonyms(parts: tuple[Word, ...], start: int, end: int, items: list[Item]) -> bool:
    """Whether `or` joins two common names of one thing: `called a callable or redeemable bond`."""
    named = any(word.form in _NAMING for word in parts[max(0, start - 3) : start])
    has_proper = any(word.is_name or word.is_number for word in parts[start:end])
    return named and len(items) == 2 and items[0] == (start, end) and not has_proper


def _is_guess_alone(
    parts: tuple[Word, ...],
    answer: Item,
    items: list[Item],
    alike: list[Item],
    question: QuestionFacts,
) -> bool:
    """Whether an answer in a list without a sentence is a guess; `London, England` is not."""
    if question.asks_several:
        return len(alike) >= MAX_ITEMS_OF_SEVERAL
    has_name = any(word.is_name for word in parts[slice(*answer)])
    has_and = any(word.form == "and" for word in parts)
    is_described = items[0] == answer and has_name and not has_and
    has_figure = any(_is_figure(parts[slice(*item)]) for item in alike)
    return len(alike) > (MAX_ITEMS if is_described and not has_figure else 0)


def _is_conversion(parts: tuple[Word, ...], end: int, item: Item) -> bool:
    """Whether an item is the same quantity in another unit: `42 kilometres or 26 miles`."""
    unit = next((word.form for word in parts[end - 1 : end + 1] if word.form in UNIT_NAMES), "")
    others = {word.form for word in parts[slice(*item)]} & UNIT_NAMES
    return bool(unit and others) and unit not in others


def items_around(parts: tuple[Word, ...], start: int, end: int) -> tuple[list[Item], bool]:
    """Return the items of the list around the words from `start` to `end`, and whether it has `or`."""
    after, or_after = _items_after(parts, start, end)
    before, or_before = _items_before(parts, start)
    return [*before, (start, end), *after], or_before or or_after


def _items_after(parts: tuple[Word, ...], start: int, end: int) -> tuple[list[Item], bool]:
    items: list[Item] = []
    has_or = False
    is_number = all(word.is_number for word in parts[start:end])
    at = end
    while (joint := _next_joint(parts, at)) is not None and joint - at <= 1:
        begin = joint
        while begin < len(parts) and parts[begin].form in _JOINTS:
            has_or |= parts[begin].form == "or"
            begin += 1
        if begin >= len(parts) or parts[begin].form in _PARTS:
            break
        close = _next_joint(parts, begin + 1) or len(parts)
        if close - begin > MAX_ITEM_WORDS or (is_year(parts[begin]) and not is_number):
            break
        items.append((begin, close))
        at = close
    return items, has_or


def _items_before(parts: tuple[Word, ...], start: int) -> tuple[list[Item], bool]:
    items: list[Item] = []
    has_or = False
    at = start
    while at > 0 and parts[at - 1].form in _HEDGES:
        at -= 1
    while at > 0 and (_has_comma(parts[at]) or parts[at - 1].form in _JOINTS):
        close = at
        while close > 0 and parts[close - 1].form in _JOINTS:
            has_or |= parts[close - 1].form == "or"
            close -= 1
        if close == 0:
            break
        begin = close - 1
        while begin > 0 and close - begin < MAX_ITEM_WORDS and not _is_joint(parts, begin):
            begin -= 1
        items.insert(0, (begin, close))
        if not _is_joint(parts, begin):
            break
        at = begin
    return items, has_or


def _next_joint(parts: tuple[Word, ...], at: int) -> int | None:
    stop = min(at + MAX_ITEM_WORDS + 2, len(parts))
    return next((place for place in range(at, stop) if _is_joint(parts, place)), None)


def _is_joint(parts: tuple[Word, ...], at: int) -> bool:
    return _has_comma(parts[at]) or parts[at].form in _JOINTS


def _has_comma(word: Word) -> bool:
    return word.gap.strip("\"'()") in (",", "/", "|")


def _is_gold(item: tuple[Word, ...], golds: Sequence[Gold]) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    return any(
        len(content) == len(gold.words) and all(map(is_same_word, content, gold.words))
        for gold in golds
    )


def _ends_in_names(item: tuple[Word, ...]) -> bool:
    """Whether an item is names, perhaps after the beginning of a sentence: `The answer is Paris`."""
    last = max((at for at, word in enumerate(item) if word.form in FUNCTION_WORDS), default=-1)
    return last + 1 < len(item) and all(word.is_name for word in item[last + 1 :])


def _is_figure(item: tuple[Word, ...]) -> bool:
    """Whether an item is a number that is not a year, which no name has as a description."""
    return len(item) == 1 and item[0].is_number and not is_year(item[0])


def _is_alike(item: tuple[Word, ...], answer: tuple[Word, ...]) -> bool:
    """Whether an item is of the kind of an answer: a number, a name, or common words."""
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    if not content:
        return False
    if any(word.is_number for word in answer):
        return any(word.is_number for word in content)
    if any(word.is_name for word in answer):
        return all(word.is_name for word in content)
    return len(content) <= 2 and not content[0].is_name
