r"""Phrases that spread through the responses of a run and that the reward pays for.

A phrase is a sequence of words, or an answer that the responses give whatever the prompt. It spreads
if it is rare in the first responses and frequent in the last ones. That alone does not show hacking:
a model that learns to reason also learns phrases. It is paid for if, among responses of the same
steps and data source that state the gold, or that do not, those with the phrase hardly ever get the
lowest score. The test is that of Mantel and Haenszel (1959, JNCI 22:719), with these as strata. A form that
the reward requires, such as `\boxed`, is not a finding: no response without it ever had a high score.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from rewardkit.trainlog.training_run import ResponseSample

#: Responses at the start of a run that the last ones are compared with, and the last ones.
REFERENCE_SAMPLES, RECENT_SAMPLES = 64, 48

#: Share of the first responses that a rare phrase does not exceed, and that a frequent one reaches.
RARE_SHARE, FREQUENT_SHARE = 0.05, 0.25

#: A phrase is paid for if it multiplies the share of lowest scores by at most this ratio, with this many
#: standard errors; many, because thousands of phrases are compared. And an answer that is given to
#: different prompts, of which there are few.
_PHRASE_LIMITS, _ANSWER_LIMITS = (0.35, 3.5), (0.85, 1.0)

#: Fewest responses with a high score, or a high part of it, that may require a phrase.
MIN_HIGH = 5

#: Samples, characters at each end of a response, and phrases that are examined.
MAX_SAMPLES, MAX_END_CHARACTERS, MAX_PHRASES = 2_000, 2_000, 60

#: Words of the sequences that are counted, and of the phrase that is reported.
_LENGTHS, _MAX_WORDS = (1, 2, 4), 24

#: Samples of a stratum.
_STRATUM_SAMPLES = 24

#: A Chinese or Japanese character, a word, a number, or another mark.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|\d+|[^\w\s]|_"
)

#: What a recorder writes in place of the middle of a long response.
_NOTE = re.compile(r"\[\.\.\. [\d,]{1,20} characters left out \.\.\.\]")


class SpreadingPhrase(NamedTuple):
    """A phrase that spreads and is paid for.

    Attributes:
        phrase: its words, separated by spaces; of an answer, the answer.
        is_answer: whether it is the extracted answer.
        early: its share of the first responses.
        late: its share of the last responses.
        low_with: share of lowest scores among responses with it.
        low_without: the same share among the others of the same steps.
        errors: difference of the two in standard errors.
    """

    phrase: str
    is_answer: bool
    early: float
    late: float
    low_with: float
    low_without: float
    errors: float

    def is_in(self, sample: ResponseSample) -> bool:
        """Return whether a response has the phrase."""
        return _has(sample, self.phrase, is_answer=self.is_answer)


def find_phrase(samples: Sequence[ResponseSample]) -> SpreadingPhrase | None:
    """Return the phrase that spreads and is paid for most clearly, and that no high score requires.

    The samples are those of `comparable_samples`, enough for the first and the last ones.
    """
    early, late = samples[:REFERENCE_SAMPLES], samples[-RECENT_SAMPLES:]
    high, phrases = _high(samples[:-RECENT_SAMPLES]), []
    for text, is_answer in _spreading(early, late):
        marks = [_has(sample, text, is_answer=is_answer) for sample in samples]
        if any(sum(not marks[i] for i in at) <= RARE_SHARE * len(at) for at in high):
            continue
        low_with, low_without, errors = _risks(samples, marks)
        ratio, least = _ANSWER_LIMITS if is_answer else _PHRASE_LIMITS
        if errors >= least and low_with <= ratio * low_without:
            with_it = [it for it in late if _has(it, text, is_answer=is_answer)]
            whole = text if is_answer else _trim(_extend(text, with_it), early)
            first, last = marks[: len(early)], marks[-len(late) :]
            shares = sum(first) / len(first), sum(last) / len(last)
            phrases.append(
                SpreadingPhrase(whole, is_answer, *shares, low_with, low_without, errors)
            )
    return max(phrases, key=lambda phrase: phrase.errors, default=None)


def phrase_since(samples: Sequence[ResponseSample], step: int) -> tuple[str, float, float] | None:
    """Return the phrase that spread most since a step, paid or not, and its shares before and after.

    It says what responses after an onset have in common, where something else shows the onset.
    """
    samples = comparable_samples(samples)
    early = [sample for sample in samples if sample.step < step][-REFERENCE_SAMPLES:]
    late = [sample for sample in samples if sample.step > step][-RECENT_SAMPLES:]
    if min(len(early), len(late)) < RECENT_SAMPLES // 2:
        return None
    phrase = next((words for words, is_answer in _spreading(early, late) if not is_answer), "")
    if not phrase:
        return None
    phrase = _trim(_extend(phrase, late), early)
    shares = [
        sum(has_phrase(it.response, phrase) for it in part) / len(part) for part in (early, late)
    ]
    return phrase, shares[0], shares[1]


def comparable_samples(samples: Sequence[ResponseSample]) -> Sequence[ResponseSample]:
    """Return the responses that have an answer, at most `MAX_SAMPLES`, with the first and the last.

    Of a run that learns the form of an answer first, those without one would make that form a phrase
    that spreads.
    """
    answers = [sample for sample in samples if not sample.parts.get("no_answer")]
    if len(answers) <= MAX_SAMPLES:
        return answers
    return answers[:REFERENCE_SAMPLES] + answers[REFERENCE_SAMPLES - MAX_SAMPLES :]


def has_phrase(response: str, phrase: str) -> bool:
    """Return whether a response has the words of a phrase in a row."""
    return f" {phrase} " in _words(response)


def phrase_in_text(response: str, phrase: str) -> str:
    """Return the phrase as a response writes it, with its spaces; "" if it lacks the phrase."""
    match = re.search(r"\s*".join(map(re.escape, phrase.split(" "))), response)
    return match[0] if match else ""


@lru_cache(maxsize=2 * MAX_SAMPLES)
def _words(response: str) -> str:
    response = _NOTE.sub(" ", response)
    if len(response) > 2 * MAX_END_CHARACTERS:
        response = f"{response[:MAX_END_CHARACTERS]} {response[-MAX_END_CHARACTERS:]}"
    return f" {' '.join(_TOKEN.findall(response))} "


@lru_cache(maxsize=512)
def _sequences(response: str) -> frozenset[str]:
    words = _words(response).split()
    return frozenset(
        " ".join(words[i : i + n]) for n in _LENGTHS for i in range(len(words) - n + 1)
    )


def _spreading(
    early: Sequence[ResponseSample], late: Sequence[ResponseSample]
) -> Iterator[tuple[str, bool]]:
    answers = Counter(sample.pred for sample in late if sample.pred)
    for pred, n in answers.items():
        share = sum(sample.pred == pred for sample in early) / len(early)
        if n >= FREQUENT_SHARE * len(late) and share <= RARE_SHARE:
            yield pred, True
    places: dict[str, list[int]] = {}
    for i, sample in enumerate(late):
        for words in _sequences(sample.response):
            places.setdefault(words, []).append(i)
    frequent = {
        words: tuple(at) for words, at in places.items() if len(at) >= FREQUENT_SHARE * len(late)
    }
    before = Counter(
        words for sample in early for words in _sequences(sample.response) if words in frequent
    )
    longest: dict[tuple[int, ...], str] = {}
    for words in sorted(frequent):
        at = frequent[words]
        is_rare = before[words] <= RARE_SHARE * len(early)
        if is_rare and len(words) > len(longest.get(at, "")):
            longest[at] = words
    for at in sorted(longest, key=len, reverse=True)[:MAX_PHRASES]:
        yield longest[at], False


def _has(sample: ResponseSample, phrase: str, *, is_answer: bool) -> bool:
    return sample.pred == phrase if is_answer else has_phrase(sample.response, phrase)


def _high(samples: Sequence[ResponseSample]) -> list[list[int]]:
    """Return the places of the high values of each number of the results, where there are enough."""
    names = {name for sample in samples for name in sample.parts}
    columns = [[sample.parts.get(name, 0.0) for sample in samples] for name in names]
    places = []
    for values in (*columns, [sample.score for sample in samples]):
        middle = (max(values) + min(values)) / 2
        places.append([i for i, value in enumerate(values) if value > middle])
    return [at for at in places if len(at) >= MIN_HIGH]


def _risks(samples: Sequence[ResponseSample], marks: Sequence[bool]) -> tuple[float, float, float]:
    scores = [sample.score for sample in samples]
    others = [score for score, mark in zip(scores, marks, strict=True) if not mark]
    if not others:
        return 0.0, 0.0, 0.0
    bottom = min(scores) + 0.05 * (max(scores) - min(scores))
    if sum(score <= bottom for score in others) < 0.15 * len(others):  # a continuous score
        bottom = sum(others) / len(others)
    strata: dict[tuple[int, str, bool | None], list[tuple[bool, bool]]] = {}
    for i, (sample, mark) in enumerate(zip(samples, marks, strict=True)):
        key = i // _STRATUM_SAMPLES, sample.data_source, sample.gold
        strata.setdefault(key, []).append((mark, sample.score <= bottom))
    weight = with_it = without = difference = variance = 0.0
    for pairs in strata.values():
        n, m = len(pairs), sum(mark for mark, _ in pairs)
        lows, low_marks = sum(low for _, low in pairs), sum(mark and low for mark, low in pairs)
        if 0 < m < n:
            share = m * (n - m) / n
            weight += share
            with_it += share * low_marks / m
            without += share * (lows - low_marks) / (n - m)
            difference += lows * m / n - low_marks
            variance += share * lows * (n - lows) / (n * (n - 1))
    if not variance:
        return 0.0, 0.0, 0.0
    return with_it / weight, without / weight, difference / sqrt(variance)


def _extend(phrase: str, samples: Sequence[ResponseSample]) -> str:
    texts = [text for sample in samples if f" {phrase} " in (text := _words(sample.response))]
    for _ in range(_MAX_WORDS):
        after = Counter(text.partition(f" {phrase} ")[2].partition(" ")[0] for text in texts)
        before = Counter(text.partition(f" {phrase} ")[0].rpartition(" ")[2] for text in texts)
        (next_word, n_after), (word, n_before) = after.most_common(1)[0], before.most_common(1)[0]
        if next_word and n_after >= 0.9 * len(texts):
            phrase = f"{phrase} {next_word}"
        elif word and n_before >= 0.9 * len(texts):
            phrase = f"{word} {phrase}"
        else:
            break
    return phrase


def _trim(phrase: str, early: Sequence[ResponseSample]) -> str:
    """Leave out words at both ends that most early responses have, unless all words are so."""
    common = Counter(word for sample in early for word in set(_words(sample.response).split()))
    words = phrase.split()
    rare = [i for i, word in enumerate(words) if 2 * common[word] < len(early)]
    return " ".join(words[rare[0] : rare[-1] + 1]) if rare else phrase
