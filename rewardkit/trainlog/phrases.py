r"""Phrases that spread through the responses of a run and that the reward pays for, and examples of them.

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
from typing import Any, NamedTuple

from rewardkit.trainlog.conditions import RuleEvidence
from rewardkit.trainlog.training_run import ResponseSample, TrainingRun

#: Responses at the start of a run that the last ones are compared with, and the last ones.
REFERENCE_SAMPLES, RECENT_SAMPLES = 64, 48

#: Fraction of the first responses that a rare phrase does not exceed, and of the last ones that a
#: frequent one reaches.
RARE, FREQUENT = 0.05, 0.25

#: A phrase is paid for if it multiplies the fraction of lowest scores by at most this ratio, with this many
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

#: Examples on each side of the onset, and prompts from whose responses they are chosen.
MAX_EXAMPLES, MAX_PROMPTS = 4, 64

#: Characters before and after a phrase that an example has.
CONTEXT_CHARACTERS = 600

#: A Chinese or Japanese character, a word, a number, or another mark.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|\d+|[^\w\s]|_"
)

#: What a recorder writes in place of the middle of a long response.
_NOTE = re.compile(r"\[\.\.\. [\d,]{1,20} characters left out \.\.\.\]")


class SpreadingPhrase(NamedTuple):
    """A phrase that spreads and is paid for: words separated by spaces, or an answer.

    `early` and `late` are its fractions of the first and the last responses; `low_with` and `low_without`
    the fractions of lowest scores with it and without it in the same steps, `errors` standard errors apart.
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
        if any(sum(not marks[i] for i in indices) <= RARE * len(indices) for indices in high):
            continue
        low_with, low_without, errors = _risks(samples, marks)
        ratio, least = _ANSWER_LIMITS if is_answer else _PHRASE_LIMITS
        if errors >= least and low_with <= ratio * low_without:
            with_it = [it for it in late if _has(it, text, is_answer=is_answer)]
            whole = text if is_answer else _whole_phrase(text, with_it, early)
            first, last = marks[: len(early)], marks[-len(late) :]
            fractions = sum(first) / len(first), sum(last) / len(last)
            phrases.append(
                SpreadingPhrase(whole, is_answer, *fractions, low_with, low_without, errors)
            )
    return max(phrases, key=lambda phrase: phrase.errors, default=None)


def phrase_since(samples: Sequence[ResponseSample], step: int) -> tuple[str, float, float] | None:
    """Return the phrase that spread most since a step, paid or not, and its fractions before and after.

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
    phrase = _whole_phrase(phrase, late, early)
    before, after = (
        sum(has_phrase(it.response, phrase) for it in part) / len(part) for part in (early, late)
    )
    return phrase, before, after


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
        fraction = sum(sample.pred == pred for sample in early) / len(early)
        if n >= FREQUENT * len(late) and fraction <= RARE:
            yield pred, True
    indices: dict[str, list[int]] = {}
    for i, sample in enumerate(late):
        for words in _sequences(sample.response):
            indices.setdefault(words, []).append(i)
    frequent = {words for words, at in indices.items() if len(at) >= FREQUENT * len(late)}
    before = Counter(words for sample in early for words in frequent & _sequences(sample.response))
    longest: dict[tuple[int, ...], str] = {}
    for words in sorted(frequent):
        at = tuple(indices[words])
        if before[words] <= RARE * len(early) and len(words) > len(longest.get(at, "")):
            longest[at] = words
    for at in sorted(longest, key=len, reverse=True)[:MAX_PHRASES]:
        yield longest[at], False


def _has(sample: ResponseSample, phrase: str, *, is_answer: bool) -> bool:
    return sample.pred == phrase if is_answer else has_phrase(sample.response, phrase)


def _high(samples: Sequence[ResponseSample]) -> list[list[int]]:
    """Return the indices of the high values of each number of the results, where there are enough."""
    names = {name for sample in samples for name in sample.parts}
    columns = [[sample.parts.get(name, 0.0) for sample in samples] for name in names]
    high = []
    for values in (*columns, [sample.score for sample in samples]):
        middle = (max(values) + min(values)) / 2
        indices = [i for i, value in enumerate(values) if value > middle]
        if len(indices) >= MIN_HIGH:
            high.append(indices)
    return high


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
            part = m * (n - m) / n
            weight += part
            with_it += part * low_marks / m
            without += part * (lows - low_marks) / (n - m)
            difference += lows * m / n - low_marks
            variance += part * lows * (n - lows) / (n * (n - 1))
    if not variance:
        return 0.0, 0.0, 0.0
    return with_it / weight, without / weight, difference / sqrt(variance)


def _whole_phrase(
    phrase: str, samples: Sequence[ResponseSample], early: Sequence[ResponseSample]
) -> str:
    """Extend a phrase by the words beside it, without words at its ends that most early responses have."""
    responses = [text for it in samples if f" {phrase} " in (text := _words(it.response))]
    for _ in range(_MAX_WORDS):
        parts = [text.partition(f" {phrase} ") for text in responses]
        after, n_after = Counter(end.partition(" ")[0] for _, _, end in parts).most_common(1)[0]
        before, n_before = Counter(top.rpartition(" ")[2] for top, _, _ in parts).most_common(1)[0]
        if after and n_after >= 0.9 * len(responses):
            phrase = f"{phrase} {after}"
        elif before and n_before >= 0.9 * len(responses):
            phrase = f"{before} {phrase}"
        else:
            break
    common = Counter(word for sample in early for word in set(_words(sample.response).split()))
    words = phrase.split()
    rare = [i for i, word in enumerate(words) if 2 * common[word] < len(early)]
    return " ".join(words[rare[0] : rare[-1] + 1]) if rare else phrase


class ResponseExample(NamedTuple):
    """A response with its text before a phrase (all of it if it has none), the phrase, and the rest."""

    sample: ResponseSample
    before: str
    phrase: str = ""
    after: str = ""


def examples_of(
    run: TrainingRun, evidence: RuleEvidence, most: int = MAX_EXAMPLES
) -> tuple[list[ResponseExample], list[ResponseExample]]:
    """Return examples from before the onset and from after it, those with high scores first.

    Those after it have the phrase that the evidence names, and those before it do not.
    """
    onset, phrase = evidence.onset, evidence.phrase
    if onset is None:
        return [], []
    before: list[ResponseExample] = []
    after: list[ResponseExample] = []
    for sample in run.samples:
        text = phrase and phrase_in_text(sample.response, phrase)
        if sample.step < onset.low and not text:
            before.append(ResponseExample(sample, sample.response))
        elif sample.step > onset.high and (text or not phrase):
            start, _, end = sample.response.partition(text) if text else (sample.response, "", "")
            if text and len(start) > CONTEXT_CHARACTERS:
                start = f"… {start[-CONTEXT_CHARACTERS:]}"
            if len(end) > CONTEXT_CHARACTERS:
                end = f"{end[:CONTEXT_CHARACTERS]} …"
            after.append(ResponseExample(sample, start, text, end))
    return _best(before[::-1], most), _best(after, most)


def example_values(run: TrainingRun, evidence: RuleEvidence) -> dict[str, list[dict[str, Any]]]:
    """Return the examples as plain values for JSON."""
    fields = ("step", "score", "response")
    return {
        name: [{field: getattr(it.sample, field) for field in fields} for it in examples]
        for name, examples in zip(("before", "after"), examples_of(run, evidence), strict=True)
    }


def _best(examples: Sequence[ResponseExample], most: int) -> list[ResponseExample]:
    """Return the examples with the highest scores, of different prompts."""
    by_prompt: dict[tuple[str, str], ResponseExample] = {}
    for example in examples:
        if len(by_prompt) < MAX_PROMPTS:
            by_prompt.setdefault((example.sample.data_source, example.sample.index), example)
    return sorted(by_prompt.values(), key=lambda example: -example.sample.score)[:most]
