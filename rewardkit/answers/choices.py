"""Reads where a response states its choice: the last box or `<answer>`, else its own words.

What a text picks is read by `rewardkit.answers.letters`, whose names are here too.

Of a response's own words, which count only if that is asked for, go in this order:

* a last line of letters alone;
* the last statement of the answer: `The answer is (B)`, `Solution: Choice_B`, `it must be (D)`,
  `Choice B is the correct answer`, `答案：AC`, `本题选B`, `B是正确答案`. One that is doubted (`if the
  answer is B`, `不应选B`) or asked for is none, and one whose letter is denied after it is ambiguous;
* where the options are known, a last line that is an option's text;
* verdicts on single options, if all the affirmed ones agree: `B is correct`, `B项正确`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from rewardkit.answers.extract import boxes
from rewardkit.answers.letters import (
    AMBIGUOUS,
    DEFAULT_LETTERS,
    MAX_CHARS,
    Letters,
    after_lead,
    denies,
    has_or,
    is_gap,
    is_text_of,
    list_letters,
    option_of,
    option_texts,
    read_gold,
    read_letters,
    undress,
)

__all__ = [
    "AMBIGUOUS",
    "DEFAULT_LETTERS",
    "MAX_GAP",
    "final_choice",
    "option_texts",
    "read_gold",
    "read_letters",
]

#: Longest line that is read after `The answer is`, and longest box beside another.
MAX_LINE: Final = 200
#: Longest text between two answers that stand side by side.
MAX_GAP: Final = 80
#: How many of the last statements or `<answer>` blocks are looked at.
MAX_STATEMENTS: Final = 16
MAX_BLOCKS: Final = 4
#: Characters at the end that are searched for statements.
STATEMENT_CHARS: Final = 20_000
#: Characters at the end that are searched first: most statements are there.
TAIL_CHARS: Final = 500
#: Characters before a statement that may cast doubt on it or hold its letters, and characters
#: after it in which its letter may be denied.
BEFORE_CHARS: Final = 60
DENIAL_CHARS: Final = 1000

_CAPITALS = r"[(\[{*]{0,3}[A-Z]{1,10}(?![A-Za-z0-9])[)\]}*]{0,3}"
_RUN = r"[(\[{]{0,3}(?:[A-Z]{1,10}|[a-z])(?![A-Za-z0-9])[)\]}]{0,3}(?:选?项)?"
_JOINT = r" ?(?:[,;、&/|] ?)?(?:(?:and(?![a-z])|or(?![a-z])|以及|或者?|还是|[和及与跟]) ?)?"
_BE = (
    r"(?:is|are|must be|should be|has to be|would be)"
    r"(?: (?:therefore|thus|hence|indeed|clearly|definitely|certainly|likely|most likely|both))?"
)
_GOOD = (
    r"(?:only|single|most|best|correct|right|true|proper|valid|final|likely|suitable|appropriate"
    r"|accurate|logical|plausible|reasonable)"
)
_CAPITAL_NEXT = r"(?=[ (（\[【*$]{0,3}[A-ZＡ-Ｚ]{1,10}(?![A-Za-z0-9]))"
_NO_QUESTION = (
    r"(?!\*{0,2} ?(?:[?？吗:：=]|if\b|only (?:if|when)\b|unless\b|to\b"
    r"|(?:is|are|must|should|would|will|has)\b))"
)

#: Words that state the answer before its letter, or, in the group `after`, after it. Their first
#: characters stand in front, so that not every alternative is tried at every place.
_STATEMENT = re.compile(
    r"(?=[AaSsOoCcRrBbmIWwHhTti答正故应我可则即因所综最本该此选\n项才是为都均])(?:"
    r"(?:[Aa]nswers?|ANSWER|[Ss]olutions?|SOLUTION|[Oo]ption|OPTION|[Cc]hoice|CHOICE"
    r"|(?:[Cc]orrect|[Rr]ight|[Bb]est) (?:options|choices)|[Aa]ns\.?)(?![A-Za-z])[*_】)\]]{0,4}"
    r"(?: (?:to|of|for) (?:the|this|that) (?:question|problem))?"
    r" ?(?:[:：=]|(?:is|IS|are|ARE|(?:must|should|has to|would|will) be)\b)"
    r"|(?:must be|(?:I|We|we)(?:['’](?:ll|d)| will| would)? (?:choose|pick|select|go with))"
    rf"(?= )(?: [Oo]ption| [Cc]hoice| answer)?{_CAPITAL_NEXT}"
    r"|(?:[Ss]o|[Hh]ence|[Tt]hus|[Tt]herefore),? (?=(?:[Oo]ption |[Cc]hoice )?"
    r"[(\[*$]{0,3}[A-Z][)\]*$]{0,3}\.?(?:\n|$))"
    r"|(?:答案|正确选项|正确的(?=[是为选答]))[*_】)\]]{0,4} ?(?:选项|应该?|就)?(?:[是为]|选择?)?[:：]?"
    r"|(?:[故应我可则即]|因此|所以|综上|最终|[本该此]题)[,，]?(?:[本该此]题)?应?选择?[:：]?|答[:：]"
    rf"|选择?[:：]?{_CAPITAL_NEXT}|\n选择?[:：]?"
    rf"|(?P<after>(?:{_BE} )?(?:the|my)(?: {_GOOD}){{0,3}} (?:answer|choice|option|solution)s?\b{_NO_QUESTION}"
    rf"|(?:选?项)?(?:才?[是为]|[都均]是)(?:最?(?:正确|佳|终)|本题)?的?(?:答案|选项){_NO_QUESTION}))"
)
#: Words that affirm the option before them, or, in the group `option`, name it, which is an answer
#: only if no other option is affirmed.
_VERDICT = re.compile(
    r"(?=[iamshwbc选项是为都均正符])(?:"
    rf"{_BE} (?:correct\b|right(?=[.,;!*]|$)){_NO_QUESTION}"
    rf"|(?:选?项)?(?:[是为都均])?(?:正确|符合题意){_NO_QUESTION}"
    r"|(?:is|be|matches|corresponds to) (?:[Cc]hoice|[Oo]ption)[ _\\]{0,2}"
    rf"(?P<option>{_CAPITALS}))"
)
_BEFORE = re.compile(rf"(?<![A-Za-z0-9])({_CAPITALS}(?:{_JOINT}{_CAPITALS}){{0,9}}) ?$")
#: What makes a statement none, right before it.
_DOUBT = re.compile(
    r"(?:(?<![A-Za-z])(?:if|whether|unless|suppos(?:e|ing)|assum(?:e|ing)|cannot|never|neither|nor"
    r"|doubt|not|each|every|which|except(?: for)?|other than|(?:all|any|every|no)(?:thing|one)?(?: options| choices)? but)"
    r"|n['’]t)"
    r"(?: (?:think|believe|say|mean|be|sure|certain|clear|convinced|the case))?(?: (?:that|if|whether))?"
    r"(?: (?:to|the|my|correct|right|final|best|option|choice|answer|only|either|both))*[ _*(]*$"
    r"|(?:[不非没勿别误错未若]|如果|假[如设]|是否|难道|为什么|为何)[有是选应该能可要会的正确答案项]*$"
    r"|(?:(?<![A-Za-z])(?:statement|proposition|claim|conclusion|figure|graph|point|set|event)s?"
    r"|说法|结论|命题|图|点) ?$",
    re.IGNORECASE,
)
_LEADING = re.compile(
    rf"({_RUN}(?:{_JOINT}{_RUN})*)"
    r"(?: ?(?:$|[.;:!。<]|[,、](?! ?[A-Z](?![A-Za-z ]))|(?:because|since|as|for|due|which|where)(?![a-z])"
    r"|因|由于|正确|不是|not (?=\(?[A-Z](?![A-Za-z])))| [-–—(])"
)
_UNSURE = re.compile(rf"({_CAPITALS}),? ?(?:(?:and/)?or(?![a-z])|或者?|还是|/)")
_OPTION_WORD = re.compile(r"(?:[Oo]ption|[Cc]hoice|选项)[ _:]*")
_THING = re.compile(r"(?:letter|figure|picture|diagram|image|graph) (?=[(\[]?[A-Z](?![A-Za-z]))")
_ITEM = re.compile(r"\n\s*[(\[*]{0,3}(?:[A-Za-z]|\d)[.)、:：]|\n\s*[-*•]")
_SENTENCE_END = re.compile(r"[.;。](?: |$)")
_NAME = re.compile(r"(?<![A-Za-z0-9])([A-Z])(?![A-Za-z0-9])[)*]{0,3}(?:选?项)?")
_SPACE = re.compile(r"\s+")


class _Question(NamedTuple):
    """What is known of a question: `final_choice` describes it."""

    legal: frozenset[str]
    options: Mapping[str, str] | None
    plus: bool

    def read(self, text: str) -> Letters:
        """The letters that an answer picks."""
        return read_letters(text, self.legal, self.options, plus=self.plus)

    def letters_of(self, text: str) -> Letters:
        """The letters of a text that has nothing else."""
        return list_letters(undress(text), self.legal, plus=self.plus)


class _Statement(NamedTuple):
    """A text that states an answer, its letters, and where the words that make it one lie."""

    text: str
    letters: frozenset[str] | object
    start: int
    end: int


def final_choice(
    response: str,
    legal: frozenset[str],
    options: Mapping[str, str] | None = None,
    *,
    final_letter: bool = False,
    plus: bool = False,
) -> tuple[str, Letters]:
    r"""The text of a response's final answer, "" without one, and the letters it picks.

    The final answer is the last balanced box, or every `<answer>` block and the last box after
    them. Answers that stand side by side (`\boxed{A} or \boxed{B}`) and differ are ambiguous.
    What follows `</think>` goes before what was thought.

    Args:
        response: the model's text.
        legal: the letters there are.
        options: the text of each option, where the row tells it.
        final_letter: whether lines such as `The answer is (B)` and `答案：AC`, and a last line of
            letters alone, count where no box or block tells a choice.
        plus: whether `A+C` is a list, as it is where the answer is known to be a choice.
    """
    answer = response.rpartition("</think>")[2] if "</think>" in response else response
    texts = _marks(answer) or (_marks(response) if answer is not response else [])
    question = _Question(legal, options, plus)
    choice = _last(texts, [question.read(text) for text in texts])
    if choice[1] is None and final_letter:
        statement = _in_words(answer[-STATEMENT_CHARS:], question)
        return choice if statement[1] is None else statement
    return choice


def _marks(text: str) -> list[str]:
    """The texts of the final answers in boxes and `<answer>` blocks, the last one last."""
    blocks = _last_blocks(text)
    if not blocks:
        return _boxes(text)
    texts = [answer for block in blocks for answer in _boxes(block[-MAX_CHARS:]) or [block]]
    texts += _boxes(text.rpartition("</answer>")[2])
    return [answer.strip() for answer in texts if answer.strip()]


def _last_blocks(text: str) -> list[str]:
    """What the last `<answer>` blocks hold, in order."""
    blocks: list[str] = []
    start = len(text)
    while len(blocks) < MAX_BLOCKS:
        end = text.rfind("</answer>", 0, start)
        start = text.rfind("<answer>", 0, end) if end >= 0 else -1
        if start < 0:
            break
        blocks.append(text[start + 8 : end])
    return blocks[::-1]


def _boxes(text: str) -> list[str]:
    """The last balanced box, after the box right before it, if there is one."""
    *_, last = None, *boxes(text)
    if last is None:
        return []
    start = _last_opening(text, 0, len(text))
    end = text.rfind("}", max(start - MAX_GAP, 0), start)
    opening = _last_opening(text, max(end - MAX_LINE, 0), end) if end > 0 else -1
    if opening < 0 or not is_gap(text[end + 1 : start]):
        return [last]
    *_, before = None, *boxes(text[opening : end + 1])
    if before is not None and has_or(text[end + 1 : start]):
        return [f"{before} or {last}"]
    beside = before is not None and text[opening:end].rstrip().endswith(before)
    return [before, last] if before is not None and beside else [last]


def _last_opening(text: str, start: int, end: int) -> int:
    at = text.rfind("\\boxed", start, end)
    return max(at, text.rfind("\\fbox", max(at, start), end))


def _last(texts: list[str], readings: list[Letters]) -> tuple[str, Letters]:
    """The last of the answers, ambiguous if another says something else."""
    if not texts:
        return "", None
    last = readings[-1]
    others = [reading for reading in readings if reading is not None and reading != last]
    return texts[-1], AMBIGUOUS if others and last is not None else last


def _in_words(text: str, question: _Question) -> tuple[str, Letters]:
    """The choice that a text states in its own words."""
    line = text.rstrip().rpartition("\n")[2][-MAX_LINE - 1 :].strip()
    bare = _OPTION_WORD.sub("", undress(line), count=1)
    if bare.isupper() and after_lead(bare) == bare:
        letters = question.letters_of(bare)
        if letters is not None:
            return line, letters
    statements = _statements(text, question)
    last = next(statements, None)
    if last is None:
        letters = question.read(line) if question.options else None
        return (line, letters) if letters is not None else _verdict(text, question)
    before = next(statements, None)
    if (before is not None and _contradicts(before, last, text, question)) or _has_denial(
        last, text
    ):
        return last.text, AMBIGUOUS
    return last.text, last.letters


def _contradicts(before: _Statement, last: _Statement, text: str, question: _Question) -> bool:
    """Whether two statements differ, and only letters and words that say nothing part them."""
    if before.letters == last.letters or last.start - before.end > MAX_GAP:
        return False
    between = text[before.end : last.start]
    return is_gap(between) or question.letters_of(between) == before.letters


def _has_denial(statement: _Statement, text: str) -> bool:
    """Whether a text says after a statement that its letter is wrong."""
    rest = text[statement.end : statement.end + DENIAL_CHARS]
    return isinstance(statement.letters, frozenset) and any(
        name[1] in statement.letters and denies(rest[name.end() : name.end() + MAX_GAP])
        for name in _NAME.finditer(rest)
    )


def _statements(text: str, question: _Question) -> Iterator[_Statement]:
    """The last statements that tell letters, the last one first."""
    until = len(text)
    for match in _matches(_STATEMENT, text):
        start, end = match.span()
        if match["after"]:
            line, start = _letters_before(text, start)
            letters = question.letters_of(line)
        else:
            line = _line(text[end : min(until, end + MAX_LINE)])
            letters = _read_line(undress(line), question)
        if letters is not None and not _DOUBT.search(text[max(0, start - BEFORE_CHARS) : start]):
            yield _Statement(line, letters, start, end)
            until = start


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The last matches that do not begin within a word, the last one first."""
    cut = max(text.rfind("\n", 0, max(0, len(text) - TAIL_CHARS)), 0)  # no pattern goes on past \n
    last = (pattern.finditer(text, start, end) for start, end in ((cut, len(text)), (0, cut)))
    matches = (match for some in last for match in reversed(deque(some, maxlen=MAX_STATEMENTS)))
    for match in islice(matches, MAX_STATEMENTS):
        within = text[max(0, match.start() - 1) : match.start() + 1]
        if not (len(within) == 2 and within.isascii() and within.isalpha()):
            yield match


def _letters_before(text: str, end: int) -> tuple[str, int]:
    """The letters right before a place, and where they begin."""
    window = text[max(0, end - BEFORE_CHARS) : end]
    letters = _BEFORE.search(window)
    return (letters[1], end - len(window) + letters.start()) if letters else ("", end)


def _line(text: str) -> str:
    """The rest of a line, or where there is none the next one, unless a list begins there."""
    line, _, more = text.partition("\n")
    if not line.strip(" *_:：") and not _ITEM.search(more.lstrip()):
        line = more.lstrip().partition("\n")[0]
    return line.strip()


def _read_line(plain: str, question: _Question) -> Letters:
    """The letters at the beginning of a line, or those of the whole line."""
    text = _THING.sub("", _SPACE.sub(" ", after_lead(plain)), count=1)
    options = question.options
    match = _LEADING.match(text)
    letters = question.letters_of(match[1]) if match else None
    if match is None or letters is None:
        letters = _unsure(text, question) or question.read(plain)
        if letters is None and options:
            sentence = _SENTENCE_END.split(text, maxsplit=1)[0]
            letters = option_of(sentence, options, by_value=True)
        return letters
    rest = text[match.end(1) :].lstrip(" .:,、。-–—")
    if denies(rest):
        return None
    option = (option_of(rest, options) or option_of(plain, options)) if options else None
    return letters if option is None or option == letters else AMBIGUOUS


def _unsure(text: str, question: _Question) -> Letters:
    """`B or else ...` is ambiguous, unless what follows is the text of B."""
    match = _UNSURE.match(text)
    letters = question.letters_of(match[1]) if match else None
    if match is None or not isinstance(letters, frozenset):
        return None
    rest, options = text[match.end() :], question.options
    own = options and all(is_text_of(rest, letter, options) for letter in letters)
    return letters if own else AMBIGUOUS


def _verdict(text: str, question: _Question) -> tuple[str, Letters]:
    """The only option that a text affirms, `AMBIGUOUS` if it affirms several."""
    choice: tuple[str, Letters] = "", None
    for match in _matches(_VERDICT, text):
        line, start = match["option"], match.start()
        if line is None:
            line, start = _letters_before(text, start)
        letters = question.letters_of(line)
        if letters is None or _DOUBT.search(text[max(0, start - BEFORE_CHARS) : start]):
            continue
        if choice[1] not in (None, letters):
            return choice[0], AMBIGUOUS
        choice = choice if choice[1] else (line, letters)
    return choice
