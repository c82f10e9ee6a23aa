r"""Extraction of the answer that a response states at a mark; `answers.prose` reads responses without one.

Every function is linear in the length of the response and returns the last statement, because the
last of several answers is the one that the model means.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from rewardkit.answers import denial, prose
from rewardkit.answers.denial import ALTERNATIVELY, governs
from rewardkit.answers.doubt import CJK_HEDGE, HENCE, OR
from rewardkit.answers.prose import TAIL_CHARS, strip_statement

MAX_MARKS = 20  # most marks that are read, from the last one back
#: Characters after its opening in which a box must close; a longer answer is never compared.
BOX_CHARS = 5000
PHRASE_CHARS = 20_000  # characters at the end that are searched for `the answer is`

_THOUGHTS = (
    ("<think>", "</think>"), ("<thinking>", "</thinking>"), ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)  # fmt: skip
#: What a reader does not see: comments of HTML and TeX, struck text, phantoms.
_HIDDEN = re.compile(
    r"(?sm)<!--(?:(?!<!--|-->).)*-->|^[ \t]*%[^\n]*"
    r"|~~[^~\n]{1,300}~~|<(s|del|strike)>[^<\n]{1,300}</\1>|\\[hv]?phantom\{(?:[^{}\n]|\{[^{}\n]{0,100}\}){0,200}\}"
)
_DIGITS = re.compile(r"\d+")

_OPEN_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*\{")
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?: +([^\s{}$\\]{1,40}?)|(\d))(?=[.,]?(?:[\s$]|$))")
_BRACES = re.compile(rf"{_OPEN_BOX.pattern}|\\.|[{{}}]", re.DOTALL)
#: Text between two boxes of one answer: signs, `or`, or a few words.
_BOX_JOINTS = re.compile(
    rf"(?:[\s$,;.&/({{}}]|\\[()\[\],;: ]|\\q?quad|\\text|and|和|与|或|{ALTERNATIVELY})*"
    r"(?:[A-Za-z](?:_\{?\w\}?)?\s*=\s*)?"
    r"|(?!.*\b(?:then|also|not?|but)\b)[A-Za-z ,]{1,14}"
)
#: An integer after `or`, or that a phrase below a box states or denies: `\boxed{12}. The answer is not 12.`
_RIVAL = re.compile(
    r"(?i)(?:\A[\s$)]{0,4}(?:or|或)|(?:answer|答案)\s{0,2}(?:is|是|应?为)\s?(?:actually|really)?)\s?(not|不是)?\s?"
    r"\$?(\d{1,20})(?![\d.,/^]\w|\s?[a-z%\\])"
)

#: A tag before the last one, and the word between them.
_TAG_JOINT = re.compile(r"<answer>([^<>]{1,200})</answer>\s*(or|and|或者?|和|,)\s*$")
#: Words after `####`, as in a Markdown heading.
_HEADING = re.compile(r"[^\W\d_]{2}|\d{1,2}[.)]\s+[^\W\d_]{2}")

_ANSWER_WORDS = (
    "answer Answer ANSWER 答 답은 Antwort Réponse réponse Respuesta respuesta Ответ ответ".split()
)
_HENCE = rf"(?:so|then|{HENCE})"
_SUBJECT = (  # `answer to the second part`, `answer, therefore,`
    r"(?<![A-Za-z0-9])answers?\b"
    r"(?:\s+(?:to|of|for|in)\s[^.\n:：=$]{1,80}?(?=\s(?:is|are|was|equals)\b))?"
    rf"(?:,?\s*{_HENCE},?)?"
)
_OPEN_VERB = r"\s*\b\w{1,6}(?:\s*not\b|n['’]t\b)|\s*\b(?:could|might|may|can|cannot)\b"
_VERB = (
    r"\s+(?:is|are|was|equals|(?:would|should|must|will)\s+be|comes\s+(?:out\s+)?to|turns\s+out\s+to\s+be)\b"
    rf"(?:\s+(?:{_HENCE}|indeed|simply|just|equal\s+to)\b)?\s*[:：]?"
    r"|(?:\s*\([^()\n]{0,40}\))?[*_\"' ]*(?:=>|-+>|[:：=→])"
)
_EUROPEAN = (
    r"(?:Antwort|Réponse|Respuesta|Ответ)[*_ ]*"
    r"(?:[:：]|(?:ist|est|es)\b(?!\s+(?:nicht|no)\b)(?:\s+(?:donc|also|entonces)\b)?)"
)
_CHINESE_OPEN = rf"不|并不|并非|{CJK_HEDGE}|至[少多]|最[少多]|[小大]于"
_CHINESE = (
    rf"答案(?:应该|应当|应|就|便|也|即)?(?:({_CHINESE_OPEN})|[是为](?!否)|[：:=】]|等于)[:：]?"
    r"|(?:答|答え|답은)[:：]|答えは|답은"
)
#: `answer is`, `Answer:` and the like; a group matches if the answer is denied or only possible.
_PHRASE = re.compile(
    rf"(?i)(?:{_SUBJECT}(?:({_OPEN_VERB})|{_VERB})|{_EUROPEAN}|{_CHINESE})[*_\"'`\s]*"
)
#: Words after a quoted answer that is not the only one.
_ALTERNATIVE = re.compile(r"\s*(?:or|and)\b")
#: Words before a phrase at the start of a box or a tag.
_PHRASE_LEAD = re.compile(
    r"(?i)(?:\W|text|mathrm|mbox|the\b|my\b|final\b|correct\b|[故则即]|所以|因此|最终|正确|最后)*(?=answer|答)"
)
#: A sentence to its end.
_AFTER_SENTENCE = re.compile(r"[^\n。！？]{0,300}?(?:[.!?](?=\s)|[。！？\n]|$)")
_VALUE = (
    r"(?:[A-Za-z]\w?\s?=\s?)?[-+]?"
    r"(?:\$[^$\n]{1,60}\$|\\[a-z]{1,10}\{[^\n]{1,60}|[\d(][\d\s.,/()^{}%°]{0,30})"
    r"(?:;\s?[A-Za-z]\w?\s?=[^;=\n]{1,20}){0,8}"
)
#: The rest of a line that is a value and nothing else, and a second value on the next line.
_VALUE_ALONE = re.compile(
    rf"(?i)[^\w$\\(-]*(?:(?:{ALTERNATIVELY}|also)\b[,:]?\s*|或者?|也许|可能是)?({_VALUE})\W*"
)
_VALUE_BELOW = re.compile(
    rf"(?i)[ \t]*\n\s*(?:{ALTERNATIVELY}|或者?|也可能是)[\s,:$]*([-+]?[\d\\][^\n]{{0,60}})"
)


class ExtractedAnswer(NamedTuple):
    """The answer that a response states, stripped; several values stay together: `12 or 13`."""

    text: str
    mark: Literal["box", "tag", "phrase", "hash", "line", "sentence"]


def final_answer(response: str, gold: str = "") -> ExtractedAnswer | None:
    """Return the answer of a response at its most explicit mark; None if it states no answer.

    The marks in order: the last run of boxes; `<answer>`; `the answer is`, `Answer:`, `答案：`; `####`.
    Without a mark, the last line or sentence counts if it states a result, words only if the gold is words.
    """
    contents, text = _boxed(text_after_thought(response))
    if contents is not None:
        return ExtractedAnswer(contents, "box")
    if (statement := last_tag(text)) is not None:
        return ExtractedAnswer(_without_phrase(statement), "tag")
    if "box" in text and _OPEN_BOX.search(text):
        return None
    statement, rest = _phrase(text)
    if statement is not None:
        return ExtractedAnswer(statement, "phrase")
    if (statement := last_hash(text)) is not None:
        more_below = not text.rstrip("# \t\r\n").endswith(statement)
        if not (more_below and _HEADING.match(statement)):
            return ExtractedAnswer(statement, "hash")
    unmarked = prose.last_statement(text[rest:], gold)
    return ExtractedAnswer(*unmarked) if unmarked else None


def gold_answer(text: str) -> str:
    """Return the gold answer: that of a solution at its box, `####` or `the answer is`, else the whole text."""
    tail = text[-PHRASE_CHARS:]
    return ", ".join(boxes(text)) or last_hash(tail) or last_phrase(tail) or text.strip()


def text_after_thought(text: str) -> str:
    """Return the text after the last thought that a reader sees; "" if a thought never ends."""
    has_tag = "<" in text or "◁" in text
    for begin, end in _THOUGHTS if has_tag else ():
        text = text.rpartition(end)[2]
        if begin in text:
            return ""
    may_hide = has_tag or "~~" in text or "%" in text or "phantom" in text
    return _HIDDEN.sub("", text) if may_hide else text


def _boxed(text: str) -> tuple[str | None, str]:
    """Return what the last boxes state, and the text in which to search for another mark: that below a denied box."""
    run = box_run(text)
    if not run:
        return None, text
    before, after = text[: text.rfind("\\", 0, run[0].start)], text[run[-1].stop + 1 :]
    joint = " or " if len(run) > 1 and re.search(OR, text[run[0].stop : run[-1].start]) else ", "
    contents = joint.join(_without_phrase(text[box].strip()) for box in run)
    rival = _RIVAL.search(after, 0, TAIL_CHARS) if contents.isdecimal() and len(after) > 2 else None
    if rival and not governs(after[: rival.start()]) and (rival[2] == contents) == bool(rival[1]):
        return (None, "") if rival[1] else (f"{contents}; {rival[2]}", text)
    return (None, after) if denial.is_box_denied(before, after) else (contents, text)


def boxes(text: str) -> list[str]:
    """Return the contents of the last run of boxes, separated only by `,`, `and` or the like."""
    return [text[box].strip() for box in box_run(text)]


def box_run(text: str) -> list[slice]:
    """Return where the contents of the last run of boxes stand."""
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return []
    before = max(0, start - TAIL_CHARS)
    if text.rfind("box", before, start) < 0:
        before = start
    spans = sorted(_balanced_boxes(text, before, start + BOX_CHARS))
    if bare_box := _BARE_BOX.match(text, start):
        spans.append(bare_box.span(bare_box.lastindex or 0))
    if not spans:  # the last box is cut off
        spans = sorted(_balanced_boxes(text, max(0, start - 2 * BOX_CHARS), start))
    run = spans[-1:]
    for begin, end in reversed(spans[:-1]):
        between_boxes = text[end + 1 : run[0][0]].rpartition("\\")[0]
        if end >= run[0][0] or len(between_boxes) >= 60 or not _BOX_JOINTS.fullmatch(between_boxes):
            break
        run.insert(0, (begin, end))
    for begin, end in spans:  # a box around the run that holds more: `\boxed{13 \boxed{12}}`
        if begin < run[0][0] and run[-1][1] < end and len(run) == 1:
            rest = text[begin : run[0][0]].rpartition("\\")[0] + text[run[0][1] + 1 : end]
            run = [(begin, end)] if _DIGITS.search(rest) else run
    return [slice(begin, end) for begin, end in run]


def _balanced_boxes(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    open_braces: list[int] = []
    for token in _BRACES.finditer(text, start, stop):
        if token[0].endswith("{") and token[0] != r"\{":
            open_braces.append(token.end() if "box" in token[0] else -1)
        elif token[0] == "}" and open_braces and (begin := open_braces.pop()) >= 0:
            yield begin, token.start()


def last_tag(text: str) -> str | None:
    """Return the content of the last `<answer>...</answer>`, with one that `or` joins to it; None without one."""
    before, start, content = text.rpartition("</answer>")[0].rpartition("<answer>")
    if not start:
        return None
    joint = _TAG_JOINT.search(before, max(0, len(before) - BOX_CHARS))
    return f"{joint[1].strip()} {joint[2]} {content.strip()}" if joint else content.strip()


def texts_between(text: str, start: str, end: str) -> list[str]:
    """Return the texts between each `start` and the next `end`."""
    text = text[: text.rfind(end) + len(end)]  # without an end the search would not be linear
    return re.findall(f"{re.escape(start)}(.*?){re.escape(end)}", text, re.DOTALL)


def last_hash(text: str) -> str | None:
    """Return the line after the last `####` with a number, else after the last one; None without one.

    A line without text is skipped, and so is a quoted mark.
    """
    last = None
    for before, after in reversed([*pairwise(text.rsplit("####", MAX_MARKS))]):
        if not before.endswith(('"', "'", "`", "“")):
            statement = after.strip("# \t\r\n").partition("\n")[0].strip()
            if any(map(str.isdigit, statement)):
                return statement
            last = statement if last is None else last
    return last


def last_phrase(text: str) -> str | None:
    """Return the sentence after the last `answer is` or `答案：`; None without one, and if it denies or asks."""
    return _phrase(text)[0]


def _phrase(text: str) -> tuple[str | None, int]:
    """Return the statement of the last phrase, and where the text after a phrase that denies begins."""
    floor, end = max(0, len(text) - PHRASE_CHARS), len(text)
    for _ in range(MAX_MARKS):
        end = max(text.rfind(word, floor, end) for word in _ANSWER_WORDS)
        if end < 0:
            return None, 0
        mark = _PHRASE.match(text, end)
        clause = mark and governs(text[max(0, end - denial.CLAUSE_CHARS) : end])
        if not mark or clause == "supposes":
            continue
        rest = _AFTER_SENTENCE.match(text, mark.end())
        after_phrase = rest.end() if rest else len(text)
        if mark.lastindex:
            return None, after_phrase
        statement = _read_statement(text, mark.end())
        after = text[max(mark.end(), text.find(statement, mark.end())) :].removeprefix(statement)
        if clause == "denies" or denial.is_denied_after(after) or statement.endswith(("?", "？")):
            return None, after_phrase
        if statement and not ("\n" in mark[0] and prose.PROSE_WORDS.search(statement)):
            return statement, 0
    return None, 0


def _read_statement(text: str, at: int) -> str:
    """Return the statement that begins at a position: mathematics, or the rest of a sentence."""
    rest = prose.DECORATION.sub("", text[at : at + TAIL_CHARS]).lstrip("*_ }\t\n")
    if (quote := text[at - 1]) in '"`' and (close := rest.find(quote)) > 0:
        rest = rest if _ALTERNATIVE.match(rest, close + 1) else rest[:close]
    math = prose.MATH_SPAN.match(rest)
    begin = math.end() if math else 0
    line = rest[begin:].partition("\n")[0]
    other = _VALUE_BELOW.match(rest, begin + len(line))
    if end := prose.STATEMENT_END.search(line):
        if end[0].strip() in {*".。．；;!！"}:  # although another value may follow: `19; 20`
            other = other or _VALUE_ALONE.fullmatch(line, end.start())
        line = line[: end.start()]
    statement = strip_statement(rest[:begin] + line)
    if other and (value := strip_statement(other[1])) != statement:
        return f"{statement}; {value}"
    return statement.removesuffix("}" * (statement.count("}") - statement.count("{")))


def _without_phrase(text: str) -> str:
    """Return the statement of a box or a tag without `The answer is` or `####` at its start."""
    statement = _PHRASE_LEAD.match(text) and last_phrase(text)
    is_whole = statement and _DIGITS.findall(text)[-1:] == _DIGITS.findall(statement)[-1:]
    return statement if statement and is_whole else text.removeprefix("####").strip()
