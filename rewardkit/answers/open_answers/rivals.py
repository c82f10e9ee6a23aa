"""Whether a gold is only one of several answers: of a row, of a list, or after an earlier answer."""

from collections.abc import Sequence

from rewardkit.answers.open_answers.golds import Gold, QuestionFacts, dates_in, is_year
from rewardkit.answers.open_answers.matching import Span, Words, is_fragment, phrase_start
from rewardkit.answers.open_answers.words import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    HEDGES,
    TITLES,
    UNIT_NAMES,
    Sentence,
    Word,
    stem,
)
from rewardkit.answers.parsing.vocabulary import split_words

#: Most items of a list where the question asks for several things, and where it asks for one; most
#: words of an item; and most descriptions after an answer without a verb: `Salzburg, in Austria`.
MAX_ITEMS_OF_SEVERAL, MAX_ITEMS, MAX_ITEM_WORDS, MAX_DESCRIPTIONS = 8, 2, 5, 2
#: Fraction of a question's words with which a sentence answers it, and words of its own of a sentence
#: that elaborates on the one before.
ECHO, OWN_WORDS = 0.7, 2

#: Words that are no answer by themselves.
_NAMELESS = GENERIC_NOUNS | TITLES | FUNCTION_WORDS
_FILLERS = split_words(
    "yes no sure certainly hello hi ok okay well answer actually wait correct final"
)
#: Words between alternatives, also in other languages.
_JOINTS = split_words(
    "and or versus plus then else alternatively otherwise oder und ou et o y e x или и か と as well"
)
#: Words after `or` that widen a number instead of replacing it: `18 or older`.
_COMPARATIVES = split_words(
    "older younger more less fewer later earlier above below over under higher lower greater so"
)
#: The last item of a list that goes on.
_OPEN_ENDS = split_words("others etc")
_LIST_JOINTS = split_words("and or 或 和 还是")
_CHOICES = split_words("or 或 还是 maybe perhaps possibly probably 可能 也许")
#: Punctuation before names that describe an answer: `London, England`, `Clemens (Mark Twain, a writer)`.
_DESCRIPTIONS: tuple[list[str], ...] = ([], [","], ["("], ["(", ","])
#: Words after a comma that name parts of what precedes: `Utah, including Provo and Ogden`.
_PARTS = split_words("including such especially with")


def has_rival(
    parts: Sequence[Sentence],
    index: int,
    span: Span,
    golds: Sequence[Gold],
    question: QuestionFacts,
) -> bool:
    """Whether another answer stands beside a gold in an answer without a verb.

    What stands first is the answer: `Saturn, next to Jupiter`. One description may follow it after a
    comma or in brackets, and two after prepositions.
    """
    sentence = parts[index].words
    if not is_fragment(sentence, question):
        return False
    start, answer = phrase_start(sentence, span.start), sentence[slice(*span)]
    is_bare = all(is_fragment(part.words, question) for part in parts)
    earlier = [part.words for part in parts[:index] if is_bare] + [sentence[:start]]
    later = [part.words for part in parts[index + 1 :] if is_bare]
    first, rest, last = (
        [mark for words in phrases for mark in _marks_of_others(words, answer, golds, question)]
        for phrases in (earlier, [sentence[span.end :]], later)
    )
    if question.asks_several:
        return len(first + rest + last) >= MAX_ITEMS_OF_SEVERAL
    is_common = not any(word.is_name or word.is_number for word in answer)
    if is_common and sentence[start].gap.strip("\"'"):
        first += [word.form for word in sentence[:start] if _is_own(word, question)]
    is_described = len(rest) <= MAX_DESCRIPTIONS and [*filter(None, rest)] in _DESCRIPTIONS
    if not (first or last) and is_described:
        return False
    mine = sum(any(_is_part_of(part.words, gold) for gold in golds) for part in parts)
    return mine < 2 or 2 * mine < len(parts)


def _marks_of_others(
    parts: Words, answer: Words, golds: Sequence[Gold], question: QuestionFacts
) -> list[str]:
    """Return what precedes each row of names, or of numbers, that is neither a gold nor of the question."""
    is_number = any(word.is_number for word in answer)
    if not (is_number or any(word.is_name for word in answer)):
        return []
    in_dates = {at for _, (start, end) in dates_in(parts) for at in range(start + 1, end)}
    rows: list[list[Word]] = []
    marks: list[str] = []
    is_open = False
    for at, word in enumerate(parts):
        after = parts[at + 1] if at + 1 < len(parts) else None
        is_item = word.is_number if is_number else word.is_name or _is_figure(word, after)
        is_inside = word.gap in ("", "-", "'") or at in in_dates
        if is_item and is_open and is_inside:
            rows[-1].append(word)
        elif is_item := is_item and (word.is_number or len(word.text) > 1):  # unlike `(b) London`
            before = parts[at - 1].form if at else "|"
            rows.append([word])
            is_spam = word.gap and word.is_number and not is_number
            marks.append(before if before in _JOINTS else "#" if is_spam else word.gap.strip("\"'"))
        is_open = is_item
    return [
        mark
        for mark, row in zip(marks, rows, strict=True)
        if any(_is_own(word, question) for word in row)
        and not any(_is_part_of(row, gold) for gold in golds)
    ]


def _is_own(word: Word, question: QuestionFacts) -> bool:
    return word.form not in _NAMELESS | _FILLERS and not question.has(word)


def _is_figure(word: Word, after: Word | None) -> bool:
    """Whether a word is a number without a unit, no year and not the number of an item: `Paris, 7919`."""
    is_counted = after is not None and (after.form in UNIT_NAMES or after.gap[:1] in (".", ")"))
    return word.is_number and not is_year(word) and not is_counted


def _is_part_of(item: Sequence[Word], gold: Gold) -> bool:
    stems = {stem(word.form) for word in item if word.form not in FUNCTION_WORDS}
    return bool(stems) and (stems <= gold.stems or gold.stems <= stems)


# --- lists in a sentence


def is_guess(parts: Words, span: Span, golds: Sequence[Gold], question: QuestionFacts) -> bool:
    """Whether a span is only one of several answers in a sentence.

    It is if `or` joins it to something other than a gold, if the list goes on (`and others`), or if it
    has more than `MAX_ITEMS` alike of which fewer than half are golds.
    """
    answer = parts[slice(*span)]
    items = _items_around(parts, span)
    others = [parts[slice(*item)] for item in items if item != span]
    others = [item for item in others if not any(_is_part_of(item, gold) for gold in golds)]
    joints = {word.form for word in parts[items[0].start : items[-1].end]}
    is_wider = any(item[0].form in _COMPARATIVES for item in others)
    is_open = any(item[0].form in _OPEN_ENDS for item in others) and not question.asks_several
    if is_open or (others and joints & _CHOICES and not is_wider):
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


def _items_around(parts: Words, span: Span) -> list[Span]:
    """Return the items of the list around a span, which is one of them."""
    start, end = span
    items = [span]
    is_number = all(word.is_number for word in parts[start:end])
    segments = _segments(parts)
    is_last = any(begin < end <= close <= end + 1 for begin, close in segments)
    for begin, close in segments if is_last else ():
        if begin < end:
            continue
        first = parts[begin].form
        is_part = first in _PARTS or first.endswith("ly")
        is_clause = first in FUNCTION_WORDS and first != parts[start - 1].form
        is_other = is_part or is_clause or (is_year(parts[begin]) and not is_number)
        if is_other or close - begin > MAX_ITEM_WORDS:
            break
        items.append(Span(begin, close))
    while start and parts[start - 1].form in HEDGES | {"even", "also"}:
        start -= 1
    is_first = any(begin == start for begin, _ in segments)
    for begin, close in reversed(segments) if is_first else ():
        if close <= start:
            heads = [at for at in range(begin, close - 1) if parts[at].form in _PARTS | {"as"}]
            items.insert(
                0, Span(max([begin, close - MAX_ITEM_WORDS, *(at + 1 for at in heads)]), close)
            )
            if close - begin > MAX_ITEM_WORDS:
                break
    return items


def _segments(parts: Words) -> list[Span]:
    segments: list[Span] = []
    begin = 0
    for at, word in enumerate(parts):
        is_joint = word.form in _LIST_JOINTS
        if is_joint or word.gap.strip("\"'()") in (",", "/", "|", "、", "，"):
            segments.append(Span(begin, at))
            begin = at + is_joint
    segments.append(Span(begin, len(parts)))
    return [segment for segment in segments if segment.end > segment.start]


def _is_alike(item: Words, answer: Words) -> bool:
    content = [word for word in item if word.form not in FUNCTION_WORDS | _PARTS]
    if any(word.is_number for word in answer):
        return any(word.is_number for word in content)
    if any(word.is_name for word in answer):
        return all(word.is_name for word in content)
    return 0 < len(content) <= 2 and not content[0].is_name


# --- other sentences


def says_another(other: Sentence, sentence: Sentence, span: Span) -> bool:
    """Whether two sentences differ in the answer only, as `He is from Paris` and `He is from Rome`."""
    mine, theirs = ([word.form for word in part.words] for part in (sentence, other))
    start, end = span
    rest = theirs[start:end]
    return start > 1 and mine[:start] == theirs[:start] and rest not in ([], mine[start:end])


def follows_answer(
    parts: Sequence[Sentence], index: int, span: Span, question: QuestionFacts
) -> bool:
    """Whether an earlier sentence answers the question with something of the kind of a gold.

    One such sentence counts if that of the gold says little else: `It was shot in Paris in two weeks`
    tells more than another answer, `It is Paris` does not.
    """
    sentence = parts[index]
    before = [part for part in parts[:index] if _answers_before(part, sentence, span, question)]
    others = (*sentence.words[: span.start], *sentence.words[span.end :])
    own = [w for w in others if w.form not in FUNCTION_WORDS and not question.has(w)]
    is_bare = any(is_fragment(part.words, question) for part in before)
    return len(before) > 1 or is_bare or (bool(before) and len(own) < OWN_WORDS)


def _answers_before(
    earlier: Sentence, sentence: Sentence, span: Span, question: QuestionFacts
) -> bool:
    """Whether an earlier sentence is bare or repeats the question, and has an answer of its own.

    That is a number for a number, a name for a name, or another word for common words.
    """
    if earlier.text.rstrip().endswith((":", "?")):
        return False
    is_bare = len(earlier.words) <= 3 or all(word.is_name for word in earlier.words)
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
