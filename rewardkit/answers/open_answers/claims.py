"""Whether a sentence states the words at a place in it: not if it denies, asks, or doubts them."""

from __future__ import annotations

from itertools import pairwise

from rewardkit.answers.open_answers.golds import QuestionFacts
from rewardkit.answers.open_answers.vocabulary import HEDGES
from rewardkit.answers.open_answers.words import Sentence, Word
from rewardkit.answers.parsing.vocabulary import split_words

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
_PAIRS = frozenset(
    {
        *(("instead", "of"), ("rather", "than"), ("other", "than"), ("apart", "from")),
        *(("aside", "from"), ("opposed", "to"), ("confused", "with"), ("mistaken", "for")),
        *(("contrary", "to"), ("far", "from"), ("but", "not")),
        *(("anything", "but"), ("everything", "but"), ("used", "to")),
    }
)
#: Pairs that affirm: `without a doubt`, `none other than`.
_AFFIRMING = frozenset(
    {("without", "doubt"), ("no", "doubt"), ("none", "other"), ("beyond", "doubt")}
)
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
_OTHER_ANSWERS = frozenset(
    {("final", "answer"), ("correct", "answer"), ("right", "answer"), ("all", "wrong")}
)


def is_stated(sentence: Sentence, start: int, end: int, question: QuestionFacts) -> bool:
    """Whether a sentence states the words from `start` to `end`.

    It does not if it is a question, if a denial governs the words (`not X`, `rather than X`,
    `X is wrong`), if it gives them as an example (`such as X`), or as what some say before `but`.
    """
    parts = sentence.words
    if sentence.text.rstrip(" .\"')]").endswith("?"):
        return False
    before = [word.form for word in parts[max(0, start - MAX_EXAMPLE_WORDS) : start]]
    if ("such", "as") in pairwise(before):
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
    forms = [word.form for word in sentence.words]
    if is_next and forms[0] in _RETRACTIONS:
        return True
    return not _TAKEN_BACK.isdisjoint(forms) or any(
        pair in _OTHER_ANSWERS for pair in pairwise(forms)
    )


def is_hedged(sentence: Sentence) -> bool:
    """Whether a sentence only guesses: `It might be Paris`."""
    return any(
        word.form in HEDGES or (word.form == "may" and not word.is_name) for word in sentence.words
    )


def _is_denied_before(parts: tuple[Word, ...], start: int, question: QuestionFacts) -> bool:
    for at in range(start - 1, max(-1, start - 1 - REACH), -1):
        word, following = parts[at], parts[at + 1]
        if (word.form, following.form) in _PAIRS and at + 1 < start:
            return at == 0 or (parts[at - 1].form, word.form) not in _AFFIRMING
        if word.form == "but":
            return False
        is_in_title = word.is_name and at > 0  # as in `Can't Buy Me Love`
        if (parts[at - 1].form if at else "", word.form) in _AFFIRMING:
            return False
        if word.form in _DENIALS and word.form not in question.every and not is_in_title:
            return not (following.form in _NOT_ONLY and at + 1 < start)
        if word.form in _CLOSE_DENIALS and start - at <= 2 and not is_in_title:
            return True
        if word.form.endswith(_DENIES_IN_CHINESE):
            return True
        if word.gap.strip("\"'()"):
            return False
    return False


def _is_denied_after(parts: tuple[Word, ...], end: int, question: QuestionFacts) -> bool:
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


def _is_opinion(parts: tuple[Word, ...], start: int) -> bool:
    before = [word.form for word in parts[:start]]
    has_opinion = any(a in _SOME and b in _OPINIONS for a, b in pairwise(before))
    return has_opinion and any(word.form in _CONTRASTS for word in parts[start:])
