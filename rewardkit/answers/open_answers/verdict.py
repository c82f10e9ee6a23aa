"""Whether an answer in words gives one of the gold answers of an open question.

A sentence that has a gold must state it as its only answer. It does not if it denies, asks or doubts the
gold, or if the gold is one of several guesses: `Paris, London or Rome`, `London / Paris`.
"""

import re
from collections.abc import Sequence
from enum import Enum
from itertools import accumulate, pairwise

from rewardkit.answers.open_answers.golds import (
    MAX_GOLD_CHARS,
    Gold,
    QuestionFacts,
    dates_in,
    forms_of,
    is_year,
    read_gold,
    read_question,
)
from rewardkit.answers.open_answers.matching import MatchedWords, Words, is_same_word, match
from rewardkit.answers.open_answers.words import (
    COMPARATIVES,
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    HEDGES,
    JOINTS,
    NAME_PARTICLES,
    NAME_SUFFIXES,
    TITLES,
    Sentence,
    Word,
    fold,
    sentences,
    stem,
    words,
)
from rewardkit.answers.parsing.vocabulary import split_words

#: Most words of an answer: 999 of 1,000 sentences that people called right have fewer.
MAX_ANSWER_WORDS = 160
MAX_ANSWER_CHARS = 1500
#: Most alternative golds that are compared; lists of aliases have some hundred.
MAX_GOLDS = 400
#: Most words of all wordings of all golds: 400 aliases have some 2,000. Each is compared with each of
#: an answer.
MAX_GOLD_WORDS = 4000
#: Fraction of a question's words with which a sentence answers it.
ECHO = 0.7
#: Words of its own of a sentence that elaborates on the one before.
OWN_WORDS = 2

#: Words before an answer: `The answer is Paris`.
_LEAD = re.compile(
    r"\W{0,5}(?:(?:so|the|my|final|correct) ){0,4}answer(?: is| was)?:? ?", re.IGNORECASE
)
_FILLERS = split_words("yes no sure certainly hello hi ok okay well answer actually wait")


class Outcome(Enum):
    """What an answer does with the golds."""

    RIGHT = "right"
    WRONG = "wrong"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    #: A gold is denied, asked or doubted.
    DENIED = "denied"
    #: A gold is one of several guesses.
    GUESSES = "guesses"
    #: A gold follows another answer.
    SECOND = "second"


def judge(answer: str, golds: Sequence[str], question_text: str = "") -> Outcome:
    """Return whether an answer gives one of several alternative golds.

    Args:
        answer: a short answer, or a few sentences. Longer text than `MAX_ANSWER_WORDS` is not read.
        golds: the alternatives, each of which is right.
        question_text: the question, whose words are no evidence; "" if unknown.
    """
    golds = golds[:MAX_GOLDS]
    if lead := _LEAD.match(answer):
        answer = answer[lead.end() :]
    if _is_equal(answer, golds):
        return Outcome.RIGHT
    parts = sentences(answer[: MAX_ANSWER_CHARS + 1])
    if not parts and len(answer) <= MAX_ANSWER_CHARS:
        return Outcome.EMPTY
    everything = tuple(word for part in parts for word in part.words)
    if len(answer) > MAX_ANSWER_CHARS or len(everything) > MAX_ANSWER_WORDS:
        return Outcome.TOO_LONG
    question = read_question(question_text)
    content = [word for word in everything if word.form not in FUNCTION_WORDS]
    if len(content) >= max(3, len(question.forms) - 1) and all(map(question.has, content)):
        return Outcome.WRONG  # a copy of the question
    wordings = _wordings(golds)
    if _is_bare_list(parts, wordings, question):
        return Outcome.GUESSES
    is_plain = len(parts) > 1 and all(w.form not in ("not", "never", "or") for w in everything)
    lists = [gold for gold in wordings if gold.is_list] if is_plain else []
    if any(match(gold, everything, question) for gold in lists):
        return Outcome.RIGHT  # all parts of a list, in several sentences
    return _judge_sentences(parts, wordings, question)


def _judge_sentences(
    parts: Sequence[Sentence], wordings: Sequence[Gold], question: QuestionFacts
) -> Outcome:
    outcome = Outcome.WRONG
    for index, sentence in enumerate(parts):
        for gold in wordings:
            if span := match(gold, sentence.words, question):
                outcome = _weigh(span, parts, index, wordings, question)
                if outcome is Outcome.RIGHT:
                    return outcome
    return outcome


def _is_equal(answer: str, golds: Sequence[str]) -> bool:
    statement = answer.strip(" .*_\n")
    if len(statement) > MAX_GOLD_CHARS:
        return statement in golds
    if forms := tuple(word.form for word in words(statement)):
        return any(forms == forms_of(gold) for gold in golds)
    return bool(statement) and fold(statement) in (fold(gold).strip(" .*_\n") for gold in golds)


def _wordings(golds: Sequence[str]) -> list[Gold]:
    wordings = [gold for text in golds for gold in read_gold(text)]
    ends = accumulate(len(gold.words) for gold in wordings)
    return [gold for gold, end in zip(wordings, ends, strict=True) if end <= MAX_GOLD_WORDS]


def _weigh(
    span: MatchedWords,
    parts: Sequence[Sentence],
    index: int,
    golds: Sequence[Gold],
    question: QuestionFacts,
) -> Outcome:
    sentence, later = parts[index], parts[index + 1 :]
    if not _is_stated(sentence, span, question):
        return Outcome.DENIED
    if any(_takes_back(part, is_next=part is later[0]) for part in later):
        return Outcome.DENIED
    if _is_hedged(sentence) and sum(map(_is_hedged, parts)) > 1:
        return Outcome.GUESSES
    if _is_guess(sentence.words, span, golds, question):
        return Outcome.GUESSES
    if any(_says_another(part, sentence, span) for part in parts):
        return Outcome.GUESSES
    before = [part for part in parts[:index] if _answers_before(part, sentence, span, question)]
    others = (*sentence.words[: span.start], *sentence.words[span.end :])
    own = [w for w in others if w.form not in FUNCTION_WORDS and not question.has(w)]
    # `It was shot in Paris in two weeks` tells more than another answer; `It is Paris` does not.
    if len(before) > 1 or (before and len(own) < OWN_WORDS):
        return Outcome.SECOND
    return Outcome.RIGHT


# --- what a sentence states


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split(";"))


#: Words before an answer that are searched for a denial.
REACH = 7

_DENIALS = split_words(
    "not never neither nor except excluding unlike cannot isnt wasnt arent werent aint dont doesnt"
    " didnt cant couldnt wouldnt hasnt havent hadnt wont false wrong incorrect wrongly incorrectly"
    " mistakenly falsely hardly scarcely doubt doubts myth misconception refuse nobody unlikely hoax"
)
#: Pairs of words that deny what follows them, or give it as an example.
_DENYING_PAIRS = _phrases(
    "instead of;rather than;other than;apart from;aside from;opposed to;confused with;mistaken for"
    ";contrary to;far from;but not;anything but;everything but;used to;such as"
)
#: Words that deny only what directly follows them.
_CLOSE_DENIALS = split_words("no non without")
#: Pairs that affirm: `without a doubt`, `none other than`.
_AFFIRMING_PAIRS = _phrases("without doubt;no doubt;none other;beyond doubt")
#: Words after `not` that take the denial away: `not only Paris`.
_NOT_ONLY = split_words("only just merely simply solely")
_WRONG = split_words("wrong incorrect false untrue mistaken")
#: `不是X`, `X是错的`.
_DENIES_IN_CHINESE = ("不是", "并非", "不为", "没有")
_DENIED_IN_CHINESE = ("是错", "不对", "错误")
_SOME = split_words("some many others people sources")
_OPINIONS = split_words(
    "say says said believe believed think thought claim claimed argue assume guess suspect"
)
_CONTRASTS = split_words("but however actually although though yet others")
#: Words that open a sentence which takes back the one before.
_RETRACTIONS = split_words("no wait actually correction oops sorry hmm alternatively")
#: Words and pairs of words in a sentence that takes back an earlier one.
_TAKEN_BACK = _phrases(
    "kidding;joking;scratch;reflection;false;incorrect;mistaken;retract"
    ";final answer;correct answer;right answer;all wrong"
)


def _is_stated(sentence: Sentence, span: MatchedWords, question: QuestionFacts) -> bool:
    """Whether a sentence states the words of a span, and does not ask or deny them."""
    before, after = sentence.words[: span.start], sentence.words[span.end :]
    if sentence.text.rstrip(" .\"')]").endswith("?"):
        return False
    if _is_denied_before(sentence.words, span.start, question):
        return False
    if any(word.form in _WRONG - question.every for word in after):
        return False
    rest = after[:3]
    if rest and rest[0].form.startswith(_DENIED_IN_CHINESE):
        return False
    is_denied = any(word.form in _DENIALS for word in rest) and "not" not in question.every
    if is_denied and rest[0].form != "not" and not rest[0].gap.strip("\"')"):
        return False
    # `Some say X, but`
    has_opinion = any(a.form in _SOME and b.form in _OPINIONS for a, b in pairwise(before))
    return not (has_opinion and any(word.form in _CONTRASTS for word in after))


def _is_denied_before(parts: Words, start: int, question: QuestionFacts) -> bool:
    for at in range(start - 1, max(-1, start - 1 - REACH), -1):
        word, following = parts[at], parts[at + 1]
        affirms = at > 0 and f"{parts[at - 1].form} {word.form}" in _AFFIRMING_PAIRS
        if f"{word.form} {following.form}" in _DENYING_PAIRS and at + 1 < start:
            return not affirms
        if word.form == "but" or affirms:
            return False
        is_in_title = word.is_name and at > 0  # as in `Can't Buy Me Love`
        if word.form in _DENIALS - question.every and not is_in_title:
            return following.form not in _NOT_ONLY
        if word.form in _CLOSE_DENIALS and start - at <= 2 and not is_in_title:
            return True
        if word.form.endswith(_DENIES_IN_CHINESE):
            return True
        if word.gap.strip("\"'()"):
            return False
    return False


def _takes_back(sentence: Sentence, is_next: bool) -> bool:
    """Whether a later sentence takes back an earlier one, as `No, wait` and `Scratch that` do."""
    forms = [word.form for word in sentence.words]
    phrases = {*forms, *(f"{a} {b}" for a, b in pairwise(forms))}
    return (is_next and forms[0] in _RETRACTIONS) or not phrases.isdisjoint(_TAKEN_BACK)


def _is_hedged(sentence: Sentence) -> bool:
    return any(
        word.form in HEDGES or (word.form == "may" and not word.is_name) for word in sentence.words
    )


# --- one of several guesses

#: Most items of a list where the question asks for several things, and where it asks for one.
MAX_ITEMS_OF_SEVERAL = 8
MAX_ITEMS = 2
#: Most words of an item of a list.
MAX_ITEM_WORDS = 5
#: Most words of a sentence that answers without an echo of the question.
BARE_WORDS = 3

_LIST_JOINTS = split_words("and or")
_HEDGES_BEFORE = split_words("maybe perhaps possibly probably even also")
#: Words after a comma that name parts of what precedes: `Utah, including Provo and Ogden`.
_PARTS = split_words("including such especially with")
#: Words that announce a list as guesses: `Possible answers are Paris and Rome`.
_ANNOUNCEMENTS = split_words("answers candidates guesses")


def _is_guess(
    parts: Words, span: MatchedWords, golds: Sequence[Gold], question: QuestionFacts
) -> bool:
    """Whether a span is only one of several answers in a sentence.

    It is if `or` joins it to something other than a gold, if the list is announced as one of answers
    or candidates, or if it has more than `MAX_ITEMS` alike of which fewer than half are golds.
    """
    answer = parts[slice(*span)]
    items = _items_around(parts, span)
    others = [parts[slice(*item)] for item in items if item != span]
    others = [item for item in others if not _is_gold(item, golds)]
    joints = {word.form for word in parts[items[0].start : items[-1].end]} & _LIST_JOINTS
    is_named = not {"called", "known", "termed", "named"}.isdisjoint(
        word.form for word in parts[max(0, span.start - 3) : span.start]
    )
    has_proper = any(word.is_name or word.is_number for word in answer)
    if is_named and not has_proper and len(items) == 2 and items[0] == span:
        return False  # `called a callable or redeemable bond`
    if "or" in joints and others and not any(item[0].form in COMPARATIVES for item in others):
        return True
    is_announced = any(word.form in _ANNOUNCEMENTS for word in parts[: span.start])
    if others and is_announced and not question.asks_several:
        return True
    golden = len(items) - len(others)
    if golden > 1 and 2 * golden >= len(items):
        return False
    alike = sum(_is_alike(item, answer) for item in others)
    if question.asks_several:
        return alike >= MAX_ITEMS_OF_SEVERAL
    is_bare = sum(item.end - item.start for item in items) + 2 >= len(parts)
    if is_bare and not any(word.is_name for word in answer):
        return alike > 0
    return alike + 1 > MAX_ITEMS + ("and" not in joints)


def _items_around(parts: Words, span: MatchedWords) -> list[MatchedWords]:
    """Return the items of the list around a span, which is one of them."""
    start, end = span
    items = [span]
    is_number = all(word.is_number for word in parts[start:end])
    segments = _segments(parts)
    is_last = any(begin < end <= close <= end + 1 for begin, close in segments)
    for begin, close in segments if is_last else ():
        if begin < end:
            continue
        is_other = parts[begin].form in _PARTS or (is_year(parts[begin]) and not is_number)
        if is_other or close - begin > MAX_ITEM_WORDS:
            break
        items.append(MatchedWords(begin, close))
    while start and parts[start - 1].form in _HEDGES_BEFORE:
        start -= 1
    is_first = any(begin == start for begin, _ in segments)
    for begin, close in reversed(segments) if is_first else ():
        if close <= start:
            items.insert(0, MatchedWords(max(begin, close - MAX_ITEM_WORDS), close))
            if close - begin > MAX_ITEM_WORDS:
                break
    return items


def _segments(parts: Words) -> list[MatchedWords]:
    segments: list[MatchedWords] = []
    begin = 0
    for at, word in enumerate(parts):
        is_joint = word.form in _LIST_JOINTS
        if is_joint or word.gap.strip("\"'()") in (",", "/", "|"):
            segments.append(MatchedWords(begin, at))
            begin = at + is_joint
    segments.append(MatchedWords(begin, len(parts)))
    return [segment for segment in segments if segment.end > segment.start]


def _is_gold(item: Words, golds: Sequence[Gold]) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    return any(
        len(content) == len(gold.words) and all(map(is_same_word, content, gold.words))
        for gold in golds
    )


def _is_alike(item: Words, answer: Words) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS]
    if any(word.is_number for word in answer):
        return any(word.is_number for word in content)
    if any(word.is_name for word in answer):
        return all(word.is_name for word in content)
    return 0 < len(content) <= 2 and not content[0].is_name


def _says_another(other: Sentence, sentence: Sentence, span: MatchedWords) -> bool:
    """Whether two sentences differ in the answer only, as `He is from Paris` and `He is from Rome`."""
    mine, theirs = ([word.form for word in part.words] for part in (sentence, other))
    start, end = span
    rest = theirs[start:end]
    return start > 1 and mine[:start] == theirs[:start] and rest not in ([], mine[start:end])


def _answers_before(
    earlier: Sentence, sentence: Sentence, span: MatchedWords, question: QuestionFacts
) -> bool:
    """Whether an earlier sentence answers the question with something of the kind of a gold.

    It does if it is bare (`London.`), or repeats the question, and has a number for a number, a
    name for a name, or another word for common words that the question does not have.
    """
    if earlier.text.rstrip().endswith((":", "?")):
        return False
    is_bare = len(earlier.words) <= BARE_WORDS or all(word.is_name for word in earlier.words)
    echo = _echo(earlier, question)
    if not is_bare and (echo < ECHO or echo < _echo(sentence, question)):
        return False
    gold = sentence.words[slice(*span)]
    is_number = any(word.is_number for word in gold)
    is_name = any(word.is_name for word in gold)
    return any(
        word.is_number if is_number else not is_name or (word.is_name and (at > 0 or is_bare))
        for at, word in enumerate(earlier.words)
        if not (question.has(word) or word.form in FUNCTION_WORDS | _FILLERS)
    )


def _echo(sentence: Sentence, question: QuestionFacts) -> float:
    stems = {stem(word.form) for word in sentence.words}
    return len(stems & question.stems) / max(1, len(question.stems))


# --- answers that are only a row of names or numbers

#: Punctuation inside a name: `Jean-Paul`, `O'Neill`.
_INSIDE = ("", "-", "'")
#: Punctuation before a closer description: `London, England`, `Samuel Clemens (Mark Twain)`.
_DESCRIBING = frozenset(",(")
#: Words beside names that make no sentence of them.
_EMPTY = JOINTS | split_words("of in at on for with")
#: Words that are no name by themselves.
_NAMELESS = GENERIC_NOUNS | TITLES | NAME_SUFFIXES


def _is_bare_list(
    parts: Sequence[Sentence], golds: Sequence[Gold], question: QuestionFacts
) -> bool:
    """Whether an answer is a row of names or numbers with others than the golds among them.

    A row may begin with a gold and go on with one closer description that is not a number. If the
    question asks for several things, a row may hold others. An answer with other words than names,
    numbers and those of golds is a sentence.
    """
    in_names = NAME_PARTICLES.union(*({word.form for word in gold.words} for gold in golds))
    items: list[list[Word]] = []
    marks: set[str] = set()
    for part in parts:
        is_open = False
        in_dates = {at for _, (start, end) in dates_in(part.words) for at in range(start + 1, end)}
        for at, word in enumerate(part.words):
            is_letter = len(word.text) == 1 and not word.is_number  # as in `(b) London`
            is_content = word.is_name or word.is_number or word.form in in_names
            if is_letter or word.form in _EMPTY or (word.is_name and question.has(word)):
                marks |= {word.form} & JOINTS
                is_open = False
            elif is_open and is_content and (word.gap in _INSIDE or at in in_dates):
                items[-1].append(word)
            elif question.has(word) or not is_content:
                return False
            else:
                marks.update(word.gap.strip("\"'.") if items else "")
                items.append([word])
                is_open = True
    items = [item for item in items if any(word.form not in _NAMELESS for word in item)]
    is_golden = [any(_is_part_of(item, gold) for gold in golds) for item in items]
    if not any(is_golden):
        return False
    kind = _has_number(items[is_golden.index(True)])
    others = [
        item
        for item, gold in zip(items, is_golden, strict=True)
        if not gold and (_has_number(item) == kind or (len(parts) == 1 and _is_figure(item)))
    ]
    if question.asks_several:
        return len(others) >= MAX_ITEMS_OF_SEVERAL
    is_described = is_golden[0] and bool(marks) and marks <= _DESCRIBING
    return len(others) > (is_described and not any(map(_is_figure, others)))


def _has_number(item: list[Word]) -> bool:
    return any(word.is_number for word in item)


def _is_figure(item: list[Word]) -> bool:
    return len(item) == 1 and item[0].is_number and not is_year(item[0])


def _is_part_of(item: list[Word], gold: Gold) -> bool:
    forms, golden = ({word.form for word in words} for words in (item, gold.words))
    return forms <= golden or golden <= forms
