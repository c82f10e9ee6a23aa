"""Finds where a response states its choice: in the last box or `<answer>`, else in words.

`rewardkit.answers.option_letters` reads which options a text picks.

Words count only with `final_letter`. They are searched in this order:

* a last line of letters alone;
* the last statement of the answer: `The answer is (B)`, `Solution: Choice_B`, `it must be (D)`,
  `Choice B is the correct answer`, `答案：AC`, `本题选B`, `B是正确答案`. A statement
  that is doubted (`if the answer is B`, `不应选B`) or asked does not count, and one whose letter is
  denied after it is ambiguous;
* a last line that is an option's text, if the options are known;
* verdicts on single options, if all affirmed ones agree: `B is correct`, `B项正确`.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rewardkit.answers.extract import boxes
from rewardkit.answers.option_letters import (
    AMBIGUOUS,
    DEFAULT_LETTERS,
    JOINT,
    Letters,
    denies_letter,
    matching_options,
    read_gold,
    read_letter_list,
    read_letters,
    strip_lead_words,
    strip_markup,
)

__all__ = ["AMBIGUOUS", "DEFAULT_LETTERS", "final_choice", "read_gold", "read_letters"]

#: Most characters of a line after `The answer is`, and of a box beside another one.
MAX_LINE = 200
#: Most characters between two statements side by side, and of a denial after a letter.
MAX_GAP = 80
#: Most statements and `<answer>` blocks that are read, from the last one back.
MAX_STATEMENTS = 16
MAX_BLOCKS = 4
#: Characters at the end that are searched for statements.
STATEMENT_CHARS = 20_000
#: Characters before a statement that may cast doubt on it or hold its letters, and characters
#: after it in which its letter may be denied.
BEFORE_CHARS = 60
DENIAL_CHARS = 1000

# These patterns match text after `strip_markup`.
_LETTERS = r"[(\[{*]{0,3}[A-Z]{1,10}(?![A-Za-z0-9])[)\]}*]{0,3}"
_LETTER_RUN = r"[(\[{]{0,3}(?:[A-Z]{1,10}|[a-z])(?![A-Za-z0-9])[)\]}]{0,3}(?:选?项)?"
_JOINT = rf"(?: ?(?:{JOINT})){{0,2}} ?"
_COPULA = (
    r"(?:is|are|(?:must|should|has to|would) be)"
    r"(?: (?:therefore|thus|hence|indeed|clearly|definitely|certainly|likely|most likely|both))?"
)
_PRAISE = (
    r"(?:only|single|most|best|correct|right|true|proper|valid|final|likely|suitable|appropriate"
    r"|accurate|logical|plausible|reasonable)"
)
_BEFORE_LETTERS = rf"(?= ?{_LETTERS})"
_NOT_A_QUESTION = (
    r"(?!\*? ?(?:[?吗:=]|if\b|only (?:if|when)\b|unless\b|to\b"
    r"|(?:is|are|must|should|would|will|has)\b))"
)

#: Words that state the answer before its letter, or, in a group, after it. A lookahead for their
#: first characters comes first, so that the alternatives are not tried at every position.
_STATEMENT = re.compile(
    r"(?<![A-Za-z])(?=[AaSsOoCcRrBbmIWwHhTti])(?:"
    r"(?i:answers?|solutions?|option|choice|(?:correct|right|best) (?:options|choices)|ans\.?)"
    r"(?![A-Za-z])[*_)\]】]{0,2}(?: (?:to|of|for) (?:the|this|that) (?:question|problem))?"
    r" ?(?:[:=]|(?i:is|are|(?:must|should|has to|would|will) be)\b)"
    r"|(?:must be|(?:I|We|we)(?:['’](?:ll|d)| will| would)? (?:choose|pick|select|go with))"
    rf"(?= )(?: [Oo]ption| [Cc]hoice| answer)?{_BEFORE_LETTERS}"
    r"|(?:[Ss]o|[Hh]ence|[Tt]hus|[Tt]herefore),? "
    r"(?=(?:[Oo]ption |[Cc]hoice )?[(\[*]{0,2}[A-Z][)\]*]{0,2}\.?(?:\n|$))"
    rf"|((?:{_COPULA} )?(?:the|my)(?: {_PRAISE}){{0,3}} (?:answer|choice|option|solution)s?\b{_NOT_A_QUESTION}))"
    r"|(?=[答正故应我可则即因所综最本该此选\n项才是为都均])(?:"
    r"(?:答案|正确选项|正确的(?=[是为选答]))[*_)\]】]{0,2} ?(?:选项|应该?|就)?(?:[是为]|选择?)?:?"
    r"|(?:[故应我可则即]|因此|所以|综上|最终|[本该此]题),?(?:[本该此]题)?应?选择?:?|答:"
    rf"|选择?:?{_BEFORE_LETTERS}|\n选择?:?"
    rf"|((?:选?项)?(?:才?[是为]|[都均]是)(?:最?(?:正确|佳|终)|本题)?的?(?:答案|选项){_NOT_A_QUESTION}))"
)
#: Words that affirm the option before them, or name it; it counts if no other option is affirmed.
_OPTION_VERDICT = re.compile(
    rf"(?<![A-Za-z])(?:({_COPULA} (?:correct\b|right(?=[.,;!*]|$)){_NOT_A_QUESTION})"
    rf"|(?:is|be|matches|corresponds to) (?:[Cc]hoice|[Oo]ption)[ _]{{0,2}}(?P<name>{_LETTERS}))"
    rf"|(?=[选项是为都均正符])((?:选?项)?[是为都均]?(?:正确|符合题意){_NOT_A_QUESTION})"
)
_LETTERS_BEFORE = re.compile(rf"(?<![A-Za-z0-9])({_LETTERS}(?:{_JOINT}{_LETTERS}){{0,9}}) ?$")
#: Words right before a statement that keep it from counting.
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
#: Letters at the start of a line and what may follow them; a group holds what leaves them open.
_LEADING_LETTERS = re.compile(
    rf"({_LETTER_RUN}(?:{_JOINT}{_LETTER_RUN})*)"
    r"(?:(,? ?(?:and/)?(?:or(?![a-z])|或者?|还是|/))"
    r"| ?(?:$|[.;:!。<]|[,、](?! ?[A-Z](?![A-Za-z ]))|(?:because|since|as|for|due|which|where)(?![a-z])"
    r"|因|由于|正确|不是|not (?=\(?[A-Z](?![A-Za-z])))| [-–—(])"
)
#: Letters at the start of a line in a list that names others too: `A, B and others`, `A、B等`.
_OPEN_LIST = re.compile(
    rf"{_LETTER_RUN}(?:{_JOINT}{_LETTER_RUN})+"
    r"(?:,? (?:(?:and|or) (?:(?:the |some )?others?|so (?:on|forth))|etc)(?![a-z])"
    r"(?! (?:\w+ )?(?:is|are|was|were|can|could|do|does|must|would)(?![a-z]))|等(?!于))"
)
_OPTION_WORD = re.compile(r"(?:[Oo]ption|[Cc]hoice|选项)[ _:]*")
_LIST_ITEM = re.compile(r"\n\s*(?:[-*•]|[(\[]?\w[.)、:])")
_SINGLE_LETTER = re.compile(r"(?<![A-Za-z0-9])([A-Z])(?![A-Za-z0-9])[)*]{0,3}(?:选?项)?")


class _Statement(NamedTuple):
    text: str
    letters: Letters
    start: int
    end: int


def final_choice(
    response: str,
    legal: frozenset[str],
    options: Mapping[str, str] | None = None,
    *,
    final_letter: bool = False,
) -> tuple[str, Letters]:
    r"""Return the text of a response's final answer, "" without one, and the letters it picks.

    The final answer is the last run of boxes, or all `<answer>` blocks and the boxes after them.
    Different answers side by side (`\boxed{A} or \boxed{B}`) are ambiguous. What follows `</think>`
    takes precedence over the thought.

    Args:
        response: the model's text.
        legal: the letters of the question.
        options: the text of each option, if the row has it.
        final_letter: whether lines such as `The answer is (B)` and `答案：AC`, and a last line of
            letters alone, count if no box or block states a choice.
    """
    options = options or {}
    answer = response.rpartition("</think>")[2]
    marked = _marked_answers(answer) or _marked_answers(response)
    picks = [read_letters(text, legal, options) for text in marked]
    text, letters = (marked[-1], picks[-1]) if marked else ("", None)
    if letters is not None and {*picks} - {letters, None}:
        letters = AMBIGUOUS
    if letters is None and final_letter:
        words = strip_markup(answer[-STATEMENT_CHARS:], STATEMENT_CHARS)
        statement = _read_statements(words, legal, options)
        return (text, None) if statement[1] is None else statement
    return text, letters


def _marked_answers(text: str) -> list[str]:
    parts = [part.partition("</answer>") for part in text.rsplit("<answer>", MAX_BLOCKS)[1:]]
    blocks = [block for block, close, _ in parts if close]
    answers = [answer for block in blocks for answer in _last_boxes(block) or [block.strip()]]
    answers += _last_boxes(text.rpartition("</answer>")[2] if blocks else text)
    return [answer for answer in answers if answer]


def _last_boxes(text: str) -> list[str]:
    r"""Return the last run of boxes, after A in `\boxed{A}. The answer is \boxed{B}`."""
    if not (last := " or ".join(boxes(text))):
        return []
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    head, brace, gap = text[max(0, start - MAX_LINE - MAX_GAP) : max(0, start)].rpartition("}")
    *_, before = None, *boxes(head[-MAX_LINE:] + brace)
    if not before or len(gap) >= MAX_GAP or not head.rstrip().endswith(before):
        return [last]
    is_filler = read_letter_list(strip_markup(f"A {gap} B"), DEFAULT_LETTERS) is not None
    return [before, last] if is_filler and " or " not in last else [last]


def _read_statements(
    text: str, legal: frozenset[str], options: Mapping[str, str]
) -> tuple[str, Letters]:
    """Return the text and the letters of the choice that a text without markup states in words."""
    line = text.rpartition("\n")[2][-MAX_LINE:].strip()
    bare = _OPTION_WORD.sub("", line, count=1)
    is_bare = bare.isupper() and strip_lead_words(bare) == bare
    letters = read_letter_list(bare, legal) if is_bare else None
    if letters is not None:
        return line, letters
    statements = _statements(_STATEMENT, text, legal, options)
    last, before = next(statements, None), next(statements, None)
    if last is not None:
        between = text[before.end : last.start] if before else ""
        differ = before is not None and before.letters != last.letters and len(between) <= MAX_GAP
        # If only letters and filler words separate two statements, neither is the last one.
        if differ and read_letter_list(f"A {between} A", legal) is not None:
            return last.text, AMBIGUOUS
        return last.text, AMBIGUOUS if _has_denial(last, text) else last.letters
    letters = read_letters(line, legal, options) if options else None
    if letters is not None:
        return line, letters
    verdicts = list(_statements(_OPTION_VERDICT, text, legal, options))
    if len({verdict.letters for verdict in verdicts}) > 1:
        return verdicts[0].text, AMBIGUOUS
    return (verdicts[0].text, verdicts[0].letters) if verdicts else ("", None)


def _has_denial(statement: _Statement, text: str) -> bool:
    rest = text[statement.end : statement.end + DENIAL_CHARS]
    return isinstance(statement.letters, frozenset) and any(
        name[1] in statement.letters and denies_letter(rest[name.end() : name.end() + MAX_GAP])
        for name in _SINGLE_LETTER.finditer(rest)
    )


def _statements(
    pattern: re.Pattern[str], text: str, legal: frozenset[str], options: Mapping[str, str]
) -> Iterator[_Statement]:
    until = len(text)
    for match in reversed(deque(pattern.finditer(text), maxlen=MAX_STATEMENTS)):
        start, end = match.span()
        if match.lastgroup:
            line = match["name"]
            letters = read_letter_list(line, legal)
        elif match.lastindex:
            before = _LETTERS_BEFORE.search(text, max(0, start - BEFORE_CHARS), start)
            line, start = (before[1], before.start()) if before else ("", start)
            letters = read_letter_list(line, legal)
        else:
            line = _rest_of_line(text[end : min(until, end + MAX_LINE)])
            letters = _read_leading_letters(line, legal, options)
        if letters is not None and not _DOUBT.search(text, max(0, start - BEFORE_CHARS), start):
            yield _Statement(line, letters, start, end)
            until = start


def _rest_of_line(text: str) -> str:
    line, _, more = text.partition("\n")
    if not line.strip(" *_:") and not _LIST_ITEM.search(more.lstrip()):
        line = more.lstrip().partition("\n")[0]
    return line.strip()


def _read_leading_letters(line: str, legal: frozenset[str], options: Mapping[str, str]) -> Letters:
    """Return the letters at the start of a line, or those of the whole line."""
    text = " ".join(strip_lead_words(line).split())
    if _OPEN_LIST.match(text):
        return AMBIGUOUS
    match = _LEADING_LETTERS.match(text)
    letters = read_letter_list(match[1], legal) if match else None
    if match is None or letters is None:
        letters = read_letters(line, legal, options)
        if letters is None:
            same = matching_options(text.partition(". ")[0], options, by_value=True)
            letters = AMBIGUOUS if len(same) > 1 else same or None
        return letters
    rest = text[match.end(1) :].lstrip(" .:,、。-–—")
    if match[2]:  # "B or 8 kg" picks B if 8 kg is its text
        own = matching_options(text[match.end() :], options, by_value=True)
        return letters if own == letters else AMBIGUOUS
    if denies_letter(rest):
        return None
    same = matching_options(rest, options) or matching_options(line, options)
    return letters if not same or same == letters else AMBIGUOUS
