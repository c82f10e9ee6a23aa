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
    read_gold,
    read_question,
)
from rewardkit.answers.open_answers.matching import match
from rewardkit.answers.open_answers.rivals import follows_answer, has_rival, is_guess, says_another
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    Sentence,
    Span,
    Words,
    sentences,
    words,
)
from rewardkit.answers.parsing.vocabulary import split_words

#: Most words of an answer: 999 of 1,000 sentences that people called right have fewer.
MAX_ANSWER_WORDS, MAX_ANSWER_CHARS = 160, 1500
#: Most alternative golds; characters of those that are read, 99 of 100 lists of aliases have fewer; and
#: wordings that are looked for. Of longer lists, those that share most words with the answer are taken;
#: the other golds are only compared as texts.
MAX_GOLDS, MAX_READ_CHARS, MAX_WORDINGS = 400, 1000, 20
#: Most places of golds in an answer that are weighed.
MAX_SPANS = 4

#: Words before an answer: `The answer is Paris`.
_LEAD = re.compile(
    r"\W{0,5}(?:(?:so|the|my|final|correct) ){0,4}answer(?: is| was)?:? ?|\W{0,5}答案?[:：是为]{1,2} ?",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


class Outcome(Enum):
    """What an answer does with the golds."""

    RIGHT = "right"
    WRONG = "wrong"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    DENIED = "denied"  # a gold is denied, asked or doubted
    GUESSES = "guesses"  # a gold is one of several guesses
    SECOND = "second"  # a gold follows another answer


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
    statement = answer.strip(" .*_\n")
    if statement and statement in golds:
        return Outcome.RIGHT
    if len(answer) > MAX_ANSWER_CHARS:
        return Outcome.TOO_LONG
    golds = _nearest(golds, answer)
    if (forms := _forms(statement)) and any(forms == _forms(gold) for gold in golds):
        return Outcome.RIGHT
    parts = sentences(answer)
    if not parts:
        return Outcome.EMPTY
    every = Sentence(answer, tuple(word for part in parts for word in part.words))
    if len(every.words) > MAX_ANSWER_WORDS:
        return Outcome.TOO_LONG
    question = read_question(question_text)
    if _is_copy(every.words, question):
        return Outcome.WRONG
    wordings = sorted(_wordings(golds), key=lambda gold: -_share(gold.stems, every.stems))
    wordings = wordings[:MAX_WORDINGS]
    is_plain = all(word.form not in ("not", "never", "or") for word in every.words)
    if is_plain and any(gold.is_list and match(gold, every, question) for gold in wordings):
        return Outcome.RIGHT  # all parts of a list, also in several sentences
    return _judge_sentences(parts, wordings, question)


def _forms(text: str) -> list[str]:
    return [word.form for word in words(text[:MAX_GOLD_CHARS])]


def _share(mine: frozenset[str], theirs: frozenset[str]) -> float:
    return len(mine & theirs) / max(1, len(mine))


def _nearest(golds: Sequence[str], answer: str) -> Sequence[str]:
    """Return the golds that are read; no more are left out than the limit asks for."""
    golds = [gold[:MAX_GOLD_CHARS] for gold in golds]
    if sum(map(len, golds)) > MAX_READ_CHARS:
        theirs = frozenset(_WORD.findall(answer.lower()))
        golds.sort(key=lambda gold: -_share(frozenset(_WORD.findall(gold.lower())), theirs))
    ends = accumulate(map(len, golds))
    return [gold for gold, end in zip(golds, ends, strict=True) if end <= MAX_READ_CHARS]


def _judge_sentences(
    parts: Sequence[Sentence], wordings: Sequence[Gold], question: QuestionFacts
) -> Outcome:
    outcome = Outcome.WRONG
    spans: set[tuple[int, Span]] = set()
    for index, sentence in enumerate(parts):
        for gold in wordings:
            span = match(gold, sentence, question)
            if span and (index, span) not in spans and len(spans) < MAX_SPANS:
                spans.add((index, span))
                outcome = _weigh(span, parts, index, wordings, question)
                if outcome is Outcome.RIGHT:
                    return outcome
    return outcome


def _is_copy(answer: Words, question: QuestionFacts) -> bool:
    """Whether an answer repeats the words of the question, but not one or two of them once more."""
    content = [word for word in answer if word.form not in FUNCTION_WORDS]
    more = len(content) - len(question.forms)
    return len(content) >= 3 and (more == 0 or more > 2) and all(map(question.has, content))


def _wordings(golds: Sequence[str]) -> list[Gold]:
    wordings = [gold for text in golds for gold in read_gold(text)]
    dates = [gold.date for gold in wordings if gold.date and gold.date.month]
    fuller = {(d.year, 0) for d in dates} | {(d.year, d.month) for d in dates if d.day}
    return [
        gold._replace(is_coarse=bool(gold.date and not gold.date.day and gold.date[:2] in fuller))
        for gold in wordings
    ]


def _weigh(
    span: Span,
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
    if (
        has_rival(parts, index, span, golds, question)
        or is_guess(sentence.words, span, golds, question)
        or any(says_another(part, sentence, span) for part in parts)
    ):
        return Outcome.GUESSES
    return Outcome.SECOND if follows_answer(parts, index, span, question) else Outcome.RIGHT


# --- what a sentence states


#: Words before and after an answer that are searched for a denial.
REACH, MAX_DENIAL_AFTER = 7, 4

_DENIALS = split_words(
    "not never neither nor cannot isnt wasnt arent werent aint dont doesnt didnt cant couldnt wouldnt"
    " hasnt havent hadnt wont false wrong incorrect wrongly incorrectly mistakenly falsely hardly"
    " scarcely doubt doubts myth misconception refuse nobody unlikely hoax untrue mistaken 不是 并非 不为 没有 是错 不对 错误"
)
#: Words that deny only what directly follows them.
_CLOSE_DENIALS = split_words("no non without")
_CONTRASTS = split_words("but however actually although though yet others")
#: Words that open a sentence which takes back the one before.
_RETRACTIONS = split_words("no wait actually correction oops sorry hmm alternatively")
#: Words and pairs of words in a sentence that takes back an earlier one.
_TAKEN_BACK = frozenset(
    "kidding;joking;scratch;reflection;false;incorrect;retract;was mistaken;am mistaken"
    ";final answer;correct answer;right answer;all wrong".split(";")
)


def _is_stated(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    """Whether a sentence states the words of a span, and does not ask or deny them."""
    after = sentence.words[span.end :]
    if sentence.text.rstrip(" .\"')]").endswith("?"):
        return False
    if _is_denied_before(sentence.words, span.start, question):
        return False
    rest = after[:MAX_DENIAL_AFTER]
    is_denied = any(word.form in _DENIALS - question.every for word in rest)
    if is_denied and rest[0].form != "not" and not rest[0].gap.strip("\"')"):
        return False
    turn = next((at for at, word in enumerate(after) if word.form in _CONTRASTS), None)
    return turn is None or not _answers(after[turn:], question)


def _answers(clause: Words, question: QuestionFacts) -> bool:
    """Whether a clause such as `but it is Rome` or `but Rome is the capital` answers the question."""
    has_name = any(
        w.is_name and w.form not in FUNCTION_WORDS and not question.has(w) for w in clause
    )
    is_about_it = len(clause) < 6 and any(word.form == "it" for word in clause[:2])
    return has_name and (is_about_it or any(map(question.has, clause)))


def _is_denied_before(parts: Words, start: int, question: QuestionFacts) -> bool:
    for at in range(start - 1, max(-1, start - 1 - REACH), -1):
        word, before = parts[at], parts[at - 1].form if at else ""
        if word.form == "but" or (word.form == "doubt" and before in _CLOSE_DENIALS):
            return False
        is_in_title = word.is_name and at > 0  # as in `Can't Buy Me Love`
        if word.form in _DENIALS - question.every and not is_in_title:
            return parts[at + 1].form != "only"
        if word.form in _CLOSE_DENIALS and start - at <= 2 and not is_in_title:
            return True
        if word.gap.strip("\"'()"):
            return False
    return False


def _takes_back(sentence: Sentence, is_next: bool) -> bool:
    """Whether a later sentence takes back an earlier one, as `No, wait` and `Scratch that` do."""
    forms = [word.form for word in sentence.words]
    phrases = {*forms, *(f"{a} {b}" for a, b in pairwise(forms))}
    return (is_next and forms[0] in _RETRACTIONS) or not phrases.isdisjoint(_TAKEN_BACK)
