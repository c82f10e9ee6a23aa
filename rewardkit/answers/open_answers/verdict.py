"""Whether an answer in words gives one of the gold answers of an open question.

A sentence that has a gold must state it as its only answer. It does not if it denies, asks or doubts the
gold, or if the gold is one of several guesses: `Paris, London or Rome`, `London / Paris`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from heapq import nlargest
from itertools import accumulate, pairwise

from rewardkit.answers.open_answers.golds import (
    MAX_GOLD_CHARS,
    Gold,
    QuestionFacts,
    forms_of,
    read_gold,
    read_question,
)
from rewardkit.answers.open_answers.matching import Span, Words, match, split_phrases
from rewardkit.answers.open_answers.rivals import follows_answer, has_rival, is_guess, says_another
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    HEDGES,
    Sentence,
    fold,
    sentences,
    stem,
    words,
)
from rewardkit.answers.parsing.vocabulary import split_words

#: Most words of an answer: 999 of 1,000 sentences that people called right have fewer.
MAX_ANSWER_WORDS, MAX_ANSWER_CHARS = 160, 1500
#: Most alternative golds that are compared, and most words of all their wordings: lists of aliases
#: have some hundred, with 2,000 words. Each is compared with each of an answer.
MAX_GOLDS, MAX_GOLD_WORDS = 400, 4000
#: Most golds that are looked for in an answer.
MAX_NEAREST = 12
#: Most places of golds in an answer that are weighed.
MAX_SPANS = 12

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
    if _is_equal(answer, golds):
        return Outcome.RIGHT
    parts = sentences(answer[: MAX_ANSWER_CHARS + 1])
    if not parts and len(answer) <= MAX_ANSWER_CHARS:
        return Outcome.EMPTY
    everything = tuple(word for part in parts for word in part.words)
    if len(answer) > MAX_ANSWER_CHARS or len(everything) > MAX_ANSWER_WORDS:
        return Outcome.TOO_LONG
    question = read_question(question_text)
    wordings = _wordings(_nearest(golds, answer))
    if _is_copy(everything, wordings, question):
        return Outcome.WRONG
    is_plain = len(parts) > 1 and all(w.form not in ("not", "never", "or") for w in everything)
    lists = [gold for gold in wordings if gold.is_list] if is_plain else []
    if any(match(gold, everything, question) for gold in lists):
        return Outcome.RIGHT  # all parts of a list, in several sentences
    return _judge_sentences(parts, wordings, question)


def _nearest(golds: Sequence[str], answer: str) -> Sequence[str]:
    """Return the golds of which most is in an answer; the others can only be equal to it."""
    if len(golds) <= MAX_NEAREST:
        return golds
    own = set(_WORD.findall(answer.lower()))

    def share(gold: str) -> float:
        words = _WORD.findall(gold[:MAX_GOLD_CHARS].lower())
        return len(own.intersection(words)) / (len(words) + 1)

    return nlargest(MAX_NEAREST, golds, key=share)


def _judge_sentences(
    parts: Sequence[Sentence], wordings: Sequence[Gold], question: QuestionFacts
) -> Outcome:
    outcome = Outcome.WRONG
    spans: set[tuple[int, Span]] = set()
    for index, sentence in enumerate(parts):
        for gold in wordings:
            span = match(gold, sentence.words, question)
            if span and (index, span) not in spans and len(spans) < MAX_SPANS:
                spans.add((index, span))
                outcome = _weigh(span, parts, index, wordings, question)
                if outcome is Outcome.RIGHT:
                    return outcome
    return outcome


def _is_copy(answer: Words, golds: Sequence[Gold], question: QuestionFacts) -> bool:
    """Whether an answer only repeats words of the question, and not those of a gold once more."""
    content = [word for word in answer if word.form not in FUNCTION_WORDS]
    if len(content) < max(3, len(question.forms) - 1) or not all(map(question.has, content)):
        return False
    more = Counter(stem(word.form) for word in content)
    more.subtract(stem(word.form) for word in question.words)
    repeated = {form for form, count in more.items() if count > 0}
    return not any(repeated and repeated <= {stem(w.form) for w in gold.words} for gold in golds)


def _is_equal(answer: str, golds: Sequence[str]) -> bool:
    statement = answer.strip(" .*_\n")
    if len(statement) > MAX_GOLD_CHARS:
        return statement in golds
    if forms := tuple(word.form for word in words(statement)):
        return any(forms == forms_of(gold) for gold in golds)
    return bool(statement) and fold(statement) in (fold(gold).strip(" .*_\n") for gold in golds)


def _wordings(golds: Sequence[str]) -> list[Gold]:
    wordings = [gold for text in golds for gold in read_gold(text)]
    dates = [gold.date for gold in wordings if gold.date and gold.date.month]
    fuller = {(d.year, 0) for d in dates} | {(d.year, d.month) for d in dates if d.day}
    wordings = [
        gold._replace(is_coarse=bool(gold.date and not gold.date.day and gold.date[:2] in fuller))
        for gold in wordings
    ]
    ends = accumulate(len(gold.words) for gold in wordings)
    return [gold for gold, end in zip(wordings, ends, strict=True) if end <= MAX_GOLD_WORDS]


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
    hedges = sum(_is_hedged(part, question) for part in parts)
    if (
        (hedges > 1 and _is_hedged(sentence, question))
        or has_rival(parts, index, span, golds, question)
        or is_guess(sentence.words, span, golds, question)
        or any(says_another(part, sentence, span) for part in parts)
    ):
        return Outcome.GUESSES
    return Outcome.SECOND if follows_answer(parts, index, span, question) else Outcome.RIGHT


# --- what a sentence states


#: Words before an answer that are searched for a denial.
REACH = 7

_DENIALS = split_words(
    "not never neither nor cannot isnt wasnt arent werent aint dont doesnt didnt cant couldnt wouldnt"
    " hasnt havent hadnt wont false wrong incorrect wrongly incorrectly mistakenly falsely hardly"
    " scarcely doubt doubts myth misconception refuse nobody unlikely hoax 不是 并非 不为 没有"
)
#: Words that deny only what directly follows them.
_CLOSE_DENIALS = split_words("no non without")
_WRONG = split_words("wrong incorrect false untrue mistaken 是错 不对 错误")
_CONTRASTS = split_words("but however actually although though yet others")
#: Words that open a sentence which takes back the one before.
_RETRACTIONS = split_words("no wait actually correction oops sorry hmm alternatively")
#: Words and pairs of words in a sentence that takes back an earlier one.
_TAKEN_BACK = split_phrases(
    "kidding;joking;scratch;reflection;false;incorrect;retract;was mistaken;am mistaken"
    ";final answer;correct answer;right answer;all wrong"
)


def _is_stated(sentence: Sentence, span: Span, question: QuestionFacts) -> bool:
    """Whether a sentence states the words of a span, and does not ask or deny them."""
    after = sentence.words[span.end :]
    if sentence.text.rstrip(" .\"')]").endswith("?"):
        return False
    if _is_denied_before(sentence.words, span.start, question):
        return False
    if any(word.form in _WRONG - question.every for word in after):
        return False
    rest = after[:3]
    is_denied = any(word.form in _DENIALS for word in rest) and "not" not in question.every
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


def _is_hedged(sentence: Sentence, question: QuestionFacts) -> bool:
    return any(
        word.form in HEDGES - question.every or (word.form == "may" and not word.is_name)
        for word in sentence.words
    )
