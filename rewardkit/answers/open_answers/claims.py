"""Whether a sentence states the words at a place in it as its only answer.

It does not if it denies, asks or doubts them, or if they are one of several guesses: `Paris, London or
Rome`, `London / Paris`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from rewardkit.answers.open_answers.dates import dates_in, is_year
from rewardkit.answers.open_answers.golds import Gold, QuestionFacts
from rewardkit.answers.open_answers.matching import Words, is_same_word
from rewardkit.answers.open_answers.vocabulary import (
    COMPARATIVES,
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    HEDGES,
    JOINTS,
    NAME_SUFFIXES,
    TITLES,
)
from rewardkit.answers.open_answers.words import Sentence, Word
from rewardkit.answers.parsing.vocabulary import split_words


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split(";"))


#: Words before a claim that are searched for a denial.
REACH = 7

#: Words of examples after `such as`.
MAX_EXAMPLE_WORDS = 12

_DENIALS = split_words(
    "not never neither nor except excluding unlike cannot isnt wasnt arent werent aint dont doesnt"
    " didnt cant couldnt wouldnt hasnt havent hadnt wont false wrong incorrect wrongly incorrectly"
    " mistakenly falsely hardly scarcely doubt doubts myth misconception refuse nobody unlikely hoax"
)
#: Words that deny only what directly follows them.
_CLOSE_DENIALS = split_words("no non without")
_PAIRS = _phrases(
    "instead of;rather than;other than;apart from;aside from;opposed to;confused with;mistaken for"
    ";contrary to;far from;but not;anything but;everything but;used to"
)
#: Pairs that affirm: `without a doubt`, `none other than`.
_AFFIRMING = _phrases("without doubt;no doubt;none other;beyond doubt")
#: Words after `not` that take the denial away: `not only Paris`.
_NOT_ONLY = split_words("only just merely simply solely")
_WRONG = split_words("wrong incorrect false untrue mistaken")
_DENIED = _WRONG | {"not", "never"}
#: `不是X`, `X是错的`.
_DENIES_IN_CHINESE = ("不是", "并非", "不为", "没有")
_DENIED_IN_CHINESE = ("是错", "不对", "错误")
_VERBS = split_words(
    "is was are were would did does has had could can isnt wasnt arent werent wouldnt didnt doesnt"
    " hasnt hadnt couldnt cannot never"
)
_SOME = split_words("some many others people sources")
_OPINIONS = split_words(
    "say says said believe believed think thought claim claimed argue assume guess suspect"
)
_CONTRASTS = split_words("but however actually although though yet others")
#: Words that open a sentence which takes back the one before.
_RETRACTIONS = split_words("no wait actually correction oops sorry hmm alternatively")
#: Words and pairs of words in a sentence that takes back an earlier one.
_TAKEN_BACK = split_words("kidding joking scratch reflection false incorrect mistaken retract")
_OTHER_ANSWERS = _phrases("final answer;correct answer;right answer;all wrong")


def is_stated(sentence: Sentence, start: int, end: int, question: QuestionFacts) -> bool:
    """Whether a sentence states the words from `start` to `end`.

    It does not if it is a question, if a denial governs the words (`not X`, `rather than X`,
    `X is wrong`), if it gives them as an example (`such as X`), or as what some say before `but`.
    """
    parts = sentence.words
    if sentence.text.rstrip(" .\"')]").endswith("?"):
        return False
    if "such as" in _pairs(parts[max(0, start - MAX_EXAMPLE_WORDS) : start]):
        return False
    return not (
        _is_denied_before(parts, start, question)
        or _is_denied_after(parts, end, question)
        or _is_opinion(parts, start)
    )


def takes_back(sentence: Sentence, is_next: bool) -> bool:
    """Whether a sentence takes back an earlier one, as `No, wait` and `Scratch that` do.

    Args:
        sentence: a later sentence.
        is_next: whether it follows directly, so that its first word tells.
    """
    if is_next and sentence.words[0].form in _RETRACTIONS:
        return True
    forms = {word.form for word in sentence.words} | _pairs(sentence.words)
    return not forms.isdisjoint(_TAKEN_BACK | _OTHER_ANSWERS)


def _pairs(words: Words) -> set[str]:
    """Return every two words in a row."""
    return {f"{a.form} {b.form}" for a, b in pairwise(words)}


def is_hedged(sentence: Sentence) -> bool:
    """Whether a sentence only guesses: `It might be Paris`."""
    return any(
        word.form in HEDGES or (word.form == "may" and not word.is_name) for word in sentence.words
    )


def _is_denied_before(parts: Words, start: int, question: QuestionFacts) -> bool:
    for at in range(start - 1, max(-1, start - 1 - REACH), -1):
        word, following = parts[at], parts[at + 1]
        affirms = at > 0 and f"{parts[at - 1].form} {word.form}" in _AFFIRMING
        if f"{word.form} {following.form}" in _PAIRS and at + 1 < start:
            return not affirms
        if word.form == "but" or affirms:
            return False
        is_in_title = word.is_name and at > 0  # as in `Can't Buy Me Love`
        if word.form in _DENIALS and word.form not in question.every and not is_in_title:
            return not (following.form in _NOT_ONLY and at + 1 < start)
        if word.form in _CLOSE_DENIALS and start - at <= 2 and not is_in_title:
            return True
        if word.form.endswith(_DENIES_IN_CHINESE):
            return True
        if word.gap.strip("\"'()"):
            return False
    return False


def _is_denied_after(parts: Words, end: int, question: QuestionFacts) -> bool:
    if any(word.form in _WRONG and word.form not in question.every for word in parts[end:]):
        return True
    if parts[end : end + 1] and parts[end].form.startswith(_DENIED_IN_CHINESE):
        return True
    rest = parts[end : end + 3]
    if not rest or rest[0].form not in _VERBS or rest[0].gap.strip("\"')"):
        return False
    if "not" in question.every:
        return False
    is_denial = rest[0].form.endswith("nt") or rest[0].form in ("cannot", "never")
    return is_denial or any(word.form in _DENIED for word in rest[1:])


def _is_opinion(parts: Words, start: int) -> bool:
    before = [word.form for word in parts[:start]]
    has_opinion = any(a in _SOME and b in _OPINIONS for a, b in pairwise(before))
    return has_opinion and any(word.form in _CONTRASTS for word in parts[start:])


# --- one of several guesses

#: Most items of a list where the question asks for several things, and where it asks for one.
MAX_ITEMS_OF_SEVERAL = 8
MAX_ITEMS = 2
#: Most words of an item of a list.
MAX_ITEM_WORDS = 5

_JOINTS = split_words("and or")
_HEDGES_BEFORE = split_words("maybe perhaps possibly probably even also")
#: Words after a comma that name parts of what precedes: `Utah, including Provo and Ogden`.
_PARTS = split_words("including such especially with")
#: Words that announce a list as guesses: `Possible answers are Paris and Rome`.
_ANNOUNCEMENTS = split_words("answers candidates guesses")
_NAMING = split_words("called known termed named")

#: The indices of the first word of an item, and after its last one.
Item: TypeAlias = tuple[int, int]


def is_guess(
    sentence: Sentence, start: int, end: int, golds: Sequence[Gold], question: QuestionFacts
) -> bool:
    """Whether the words from `start` to `end` are only one of several answers in a sentence.

    They are if `or` joins them to something other than a gold, if the list is announced as one of
    answers or candidates, or if it has more than `MAX_ITEMS` alike of which fewer than half are
    golds. A bare list may not even have two, unless the gold is the first, as in `London, England`.
    """
    parts = sentence.words
    items = _items_around(parts, start, end)
    others = [parts[slice(*item)] for item in items if item != (start, end)]
    others = [item for item in others if not _is_gold(item, golds)]
    earlier = [parts[slice(*item)] for item in items if item[1] <= start]
    joints = {word.form for word in parts[items[0][0] : items[-1][1]]} & _JOINTS
    has_proper = any(word.is_name or word.is_number for word in parts[start:end])
    if "or" in joints:
        is_named = any(word.form in _NAMING for word in parts[max(0, start - 3) : start])
        if is_named and not has_proper and len(items) == 2 and items[0] == (start, end):
            return False  # `called a callable or redeemable bond`
        if others and not any(item[0].form in COMPARATIVES for item in others):
            return True
    is_announced = any(word.form in _ANNOUNCEMENTS for word in parts[:start])
    if others and is_announced and not question.asks_several:
        return True
    golden = len(items) - len(others)
    if not others or (golden > 1 and 2 * golden >= len(items)):
        return False
    alike = sum(_is_alike(item, parts[start:end]) for item in others)
    if sum(close - begin for begin, close in items) + 2 < len(parts):
        most = MAX_ITEMS_OF_SEVERAL if question.asks_several else MAX_ITEMS
        return alike + 1 > most + ("and" not in joints)
    if question.asks_several:
        return alike >= MAX_ITEMS_OF_SEVERAL
    if any(_is_figure(item) for item in others if item not in earlier):
        return True  # no name has a figure as its description
    has_name = any(word.is_name for word in parts[start:end])
    if items[0] == (start, end) and has_name and "and" not in joints:
        return alike > MAX_ITEMS
    return alike > 0 or any(_ends_in_names(item) for item in others if item in earlier)


def _items_around(parts: Words, start: int, end: int) -> list[Item]:
    """Return the items of the list around the words from `start` to `end`, which are one of them."""
    items = [(start, end)]
    is_number = all(word.is_number for word in parts[start:end])
    segments = _segments(parts)
    is_last = any(begin < end <= close <= end + 1 for begin, close in segments)
    for begin, close in segments if is_last else ():
        if begin < end:
            continue
        is_other = parts[begin].form in _PARTS or (is_year(parts[begin]) and not is_number)
        if is_other or close - begin > MAX_ITEM_WORDS:
            break
        items.append((begin, close))
    while start and parts[start - 1].form in _HEDGES_BEFORE:
        start -= 1
    is_first = any(begin == start for begin, _ in segments)
    for begin, close in reversed(segments) if is_first else ():
        if close <= start:
            items.insert(0, (max(begin, close - MAX_ITEM_WORDS), close))
            if close - begin > MAX_ITEM_WORDS:
                break
    return items


def _segments(parts: Words) -> list[Item]:
    segments: list[Item] = []
    begin = 0
    for at, word in enumerate(parts):
        is_joint = word.form in _JOINTS
        if is_joint or word.gap.strip("\"'()") in (",", "/", "|"):
            segments.append((begin, at))
            begin = at + is_joint
    segments.append((begin, len(parts)))
    return [(begin, close) for begin, close in segments if close > begin]


def _is_gold(item: Words, golds: Sequence[Gold]) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    return any(
        len(content) == len(gold.words) and all(map(is_same_word, content, gold.words))
        for gold in golds
    )


def _is_alike(item: Words, answer: Words) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    if not content or any(word.is_number for word in answer):
        return any(word.is_number for word in content)
    if any(word.is_name for word in answer):
        return all(word.is_name for word in content)
    return len(content) <= 2 and not content[0].is_name


def _ends_in_names(item: Words) -> bool:
    """Whether an item is names, perhaps after the beginning of a sentence: `The answer is Paris`."""
    last = max((at for at, word in enumerate(item) if word.form in FUNCTION_WORDS), default=-1)
    return last + 1 < len(item) and all(word.is_name for word in item[last + 1 :])


def _is_figure(item: Words) -> bool:
    return len(item) == 1 and item[0].is_number and not is_year(item[0])


# --- answers that are only a row of names or numbers

#: Punctuation inside a name: `Jean-Paul`, `O'Neill`.
_INSIDE = ("", "-", "'")
#: Punctuation before a closer description: `London, England`, `Samuel Clemens (Mark Twain)`.
_DESCRIBING = frozenset(",()")
#: Words beside names that make no sentence of them.
_EMPTY = JOINTS | split_words("of in at on for with")
#: Words that are no name by themselves.
_NAMELESS = GENERIC_NOUNS | TITLES | NAME_SUFFIXES


def is_bare_list(parts: Sequence[Sentence], golds: Sequence[Gold], question: QuestionFacts) -> bool:
    """Whether an answer is a row of names or numbers with others than the golds among them.

    A row may begin with a gold and go on with one closer description. If the question asks for
    several things, a row may hold others, unless a gold is itself a list of fewer. An answer with
    other words, or with words of the question that are no names, is a sentence.
    """
    items: list[list[Word]] = []
    marks: set[str] = set()
    for part in parts:
        is_open = False
        in_dates = {at for _, (start, end) in dates_in(part.words) for at in range(start + 1, end)}
        for at, word in enumerate(part.words):
            is_letter = len(word.text) == 1 and not word.is_number  # as in `(b) London`
            if is_letter or word.form in _EMPTY or (word.is_name and question.has(word)):
                marks |= {word.form} & JOINTS
                is_open = False
            elif question.has(word) or not (word.is_name or word.is_number):
                return False
            elif is_open and (word.gap in _INSIDE or at in in_dates):
                items[-1].append(word)
            else:
                marks.update(word.gap.strip("\"'.") if items else "")
                items.append([word])
                is_open = True
    items = [item for item in items if any(word.form not in _NAMELESS for word in item)]
    is_golden = [any(_is_part_of(item, gold) for gold in golds) for item in items]
    if not any(is_golden):
        return False
    has_number = [any(word.is_number for word in item) for item in items]
    kind = has_number[is_golden.index(True)]
    others = sum(
        number == kind and not gold for number, gold in zip(has_number, is_golden, strict=True)
    )
    if question.asks_several:
        has_list = any(gold.is_list for gold in golds)
        return others > (sum(is_golden) if has_list else MAX_ITEMS_OF_SEVERAL - 1)
    is_described = len(parts) == 1 and is_golden[0] and bool(marks) and marks <= _DESCRIBING
    return others > (is_described and not items[0][0].gap.startswith("("))


def _is_part_of(item: list[Word], gold: Gold) -> bool:
    forms, golden = ({word.form for word in words} for words in (item, gold.words))
    return forms <= golden or golden <= forms
