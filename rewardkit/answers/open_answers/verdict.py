"""Whether an answer in words gives one of the gold answers of an open question."""

import re
from collections.abc import Sequence
from enum import Enum
from itertools import accumulate

from rewardkit.answers.open_answers.claims import (
    is_bare_list,
    is_guess,
    is_hedged,
    is_stated,
    takes_back,
)
from rewardkit.answers.open_answers.golds import (
    MAX_GOLD_CHARS,
    Gold,
    QuestionFacts,
    forms_of,
    read_gold,
    read_question,
)
from rewardkit.answers.open_answers.matching import MatchedWords, match
from rewardkit.answers.open_answers.vocabulary import FUNCTION_WORDS
from rewardkit.answers.open_answers.words import Sentence, fold, sentences, stem, words
from rewardkit.answers.parsing.vocabulary import split_words

#: Most words of an answer: 999 of 1,000 sentences that people called right have fewer.
MAX_ANSWER_WORDS = 160
MAX_ANSWER_CHARS = 1500
#: Most alternative golds that are compared; lists of aliases have some hundred.
MAX_GOLDS = 400
#: Most words of all wordings of all golds: 400 aliases have some 2,000. Each is compared with each of
#: an answer.
MAX_GOLD_WORDS = 4000
#: Share of a question's words with which a sentence answers it.
ECHO = 0.7
#: Words of its own of a sentence that elaborates on the one before.
OWN_WORDS = 2
#: Most words of a sentence that answers without an echo of the question.
BARE_WORDS = 3

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
    if len(content) >= max(3, len(question.words) - 1) and all(map(question.has, content)):
        return Outcome.WRONG  # a copy of the question
    wordings = _wordings(golds)
    if is_bare_list(parts, wordings, question):
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
            if place := match(gold, sentence.words, question):
                outcome = _weigh(place, parts, index, wordings, question)
                if outcome is Outcome.RIGHT:
                    return outcome
    return outcome


def _is_equal(answer: str, golds: Sequence[str]) -> bool:
    lead = _LEAD.match(answer)
    statement = (answer[lead.end() :] if lead else answer).strip(" .*_\n")
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
    place: MatchedWords,
    parts: Sequence[Sentence],
    index: int,
    golds: Sequence[Gold],
    question: QuestionFacts,
) -> Outcome:
    sentence = parts[index]
    if not is_stated(sentence, place.start, place.end, question):
        return Outcome.DENIED
    if any(takes_back(part, index + 1 == at) for at, part in enumerate(parts) if at > index):
        return Outcome.DENIED
    if is_hedged(sentence) and sum(map(is_hedged, parts)) > 1:
        return Outcome.GUESSES
    if is_guess(sentence, place.start, place.end, golds, question):
        return Outcome.GUESSES
    if any(_says_another(part, sentence, place) for part in parts):
        return Outcome.GUESSES
    before = [part for part in parts[:index] if _answers_before(part, sentence, place, question)]
    if len(before) > 1 or (before and not _elaborates(sentence, place, question)):
        return Outcome.SECOND
    return Outcome.RIGHT


def _says_another(other: Sentence, sentence: Sentence, place: MatchedWords) -> bool:
    mine, theirs = ([word.form for word in part.words] for part in (sentence, other))
    start, end = place
    rest = theirs[start:end]
    return start > 1 and mine[:start] == theirs[:start] and rest not in ([], mine[start:end])


def _answers_before(
    earlier: Sentence, sentence: Sentence, place: MatchedWords, question: QuestionFacts
) -> bool:
    """Whether an earlier sentence answers the question with something of the kind of a gold.

    It does if it is bare (`London.`), or repeats the question, and has a number for a number, a
    name for a name, or another word for common words that the question does not have.
    """
    if earlier.text.rstrip().endswith((":", "?")):
        return False
    is_bare = len(earlier.words) <= BARE_WORDS or all(
        word.is_name or word.is_number for word in earlier.words
    )
    share = _echo(earlier, question)
    if not is_bare and (share < ECHO or share < _echo(sentence, question)):
        return False
    gold = sentence.words[place.start : place.end]
    is_number = any(word.is_number for word in gold)
    is_name = any(word.is_name for word in gold)
    for at, word in enumerate(earlier.words):
        if question.has(word) or word.form in FUNCTION_WORDS or word.form in _FILLERS:
            continue
        if is_number:
            is_alike = word.is_number
        else:
            is_alike = not is_name or (word.is_name and (at > 0 or is_bare))
        if is_alike:
            return True
    return False


def _elaborates(sentence: Sentence, place: MatchedWords, question: QuestionFacts) -> bool:
    """Whether a sentence tells something besides an answer: `It was shot in Paris in two weeks`.

    `It is Paris` and `The capital is Paris` do not; after another answer they are a second guess.
    """
    others = (*sentence.words[: place.start], *sentence.words[place.end :])
    own = [w for w in others if w.form not in FUNCTION_WORDS and not question.has(w)]
    return len(own) >= OWN_WORDS


def _echo(sentence: Sentence, question: QuestionFacts) -> float:
    if not question.words:
        return 0.0
    stems = {stem(word.form) for word in sentence.words}
    return sum(stem(word.form) in stems for word in question.words) / len(question.words)
