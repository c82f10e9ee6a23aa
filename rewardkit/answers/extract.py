r"""Where a response states its answer: text -> candidate text, or None.

Every function is linear in the length of the response and returns the last candidate: a model
that states several answers is taken at its last word. Candidates come back stripped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Marks that are looked at, from the last one back.
MAX_MARKS = 20

_QUOTES = ('"', "'", "`", "“")
_OPEN_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*\{")
_BETWEEN_BOXES = re.compile(
    r"[\s$,;.&]|\\[()\[\],;: ]|\\q?quad|\\text\s*\{\s*(?:and|or)?\s*\}|and|or|和|与|或|/|\(|maybe|perhaps|possibly|\\text\s*\{\s*(?:maybe|perhaps|possibly)\s*\}"
)
_FEW_WORDS = re.compile(r"(?!.*\b(?:then|also|not?|but)\b)[A-Za-z ,]{1,14}")
_ANSWER_WORDS = (
    "answer", "Answer", "ANSWER", "答案", "Antwort", "Réponse", "Respuesta", "Ответ",
)  # fmt: skip
_PHRASE = re.compile(
    r"(?:(?:Antwort|Réponse|Respuesta|Ответ)[*_ ]*[:：]"
    r"|answer\b(?:\s+(?:is|are|=)(?:\s*[:：])?|[*_\"' ]*[:：=])"
    r"|答案(?:是|为|[:：])[:：]?)[*_\"'\s]*",
    re.IGNORECASE,
)
_MATH = re.compile(
    r"\$\$(.{1,500}?)\$\$|\$([^$]{1,500})\$|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]", re.DOTALL
)
_STATES = re.compile(r"\banswer is\b|\bAnswer:", re.IGNORECASE)
_GOES_ON = re.compile(r"\s*(?:[,%]|\\%|[(;]?\s*(?:or|and|maybe|perhaps)\b)")
_SENTENCE = re.compile(
    r"[.。；!?](?:\s|$)|;(?!\s*or\b)(?:\s|$)|,\s+(?:because|since|so|which|where)\b"
)
#: Where Markdown's bold ends that began right before.
_BOLD_END = re.compile(r"\A([^*\n]{1,200})(?<!\s)\*\*(?![\w*])")
_LAST_NUMBER = re.compile(r"-?[$]?\d[\d,]*(?:\.\d+)?%?")
_PLAIN_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")

#: Characters at the end of a response that are searched for an answer without a mark.
TAIL_CHARS = 2000
#: Characters behind its opening in which a box must close; what is longer is never compared.
BOX_CHARS = 5000
#: Characters of a line behind `####` that are searched for a digit.
LINE_CHARS = 4096
#: Characters at the end that are searched for `the answer is`.
PHRASE_CHARS = 20_000

_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?: +([^\s{}$\\]{1,40}?)|(\d))(?=[.,]?(?:[\s$]|$))")
_BRACES = re.compile(r"\\{1,2}(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)


def last_hash(text: str) -> str | None:
    """What the last `####` with a number behind it says, as GSM8K's solutions end.

    The rest of its line, or the next line with text where nothing is left on it. Without any
    number behind a mark, what the last mark says; None without a mark.
    """
    end, last = len(text), None
    for _ in range(MAX_MARKS):
        at = text.rfind("####", 0, end)
        if at < 0:
            break
        if text[at - 1 : at] in _QUOTES:  # the form is quoted, not used
            end = at
            continue
        said = text[at + 4 : end].strip("# \t\r\n").partition("\n")[0].strip()
        if any(map(str.isdigit, said[:LINE_CHARS])):
            return said
        last = said if last is None else last
        end = at
    return last


class Found(NamedTuple):
    """A candidate and where it was found: `box`, `tag`, `phrase`, `hash`, `math`, `line`, `number`."""

    text: str
    where: str


def final_answer(text: str) -> Found | None:
    """The answer of a response, by the most explicit mark it has; None without any.

    In this order: the last box or run of boxes; `<answer>` tags; `the answer is`, `Answer:`;
    `####`; and where nothing is marked, in the last `TAIL_CHARS` characters, the last line if it
    is no prose, the last mathematics in it, the last number. Only what follows the last `</think>`
    counts; inside a thought or a box that was never finished nothing does.
    """
    text = after_thought(text)
    if boxed := boxes(text):
        return Found(", ".join(boxed), "box")
    if (said := last_tag(text)) is not None:
        return Found(said, "tag")
    if (said := last_phrase(text)) is not None:
        return Found(said, "phrase")
    if (said := last_hash(text)) is not None:
        return Found(said, "hash")
    if r"\boxed{" in text or "####" in text:
        return None
    return unmarked(text[-TAIL_CHARS:])


def after_thought(text: str) -> str:
    """What a response says after its last `</think>`; nothing if the thought is never finished."""
    _, end, rest = text.rpartition("</think>")
    if end:
        return rest
    return "" if "<think>" in text else text


def boxes(text: str) -> list[str]:
    """The contents of the last boxes, those with only `,`, `and` and the like between them."""
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return []
    before = max(0, start - TAIL_CHARS)
    alone = max(text.rfind("boxed", before, start), text.rfind("fbox", before, start)) < 0
    bare = _BARE_BOX.match(text, start)
    if alone and bare:
        return [bare[1] or bare[2]]
    if alone and (only := _closing(text, start)):
        return [text[slice(*only)].strip()]
    found = sorted(_balanced_boxes(text, before, start + BOX_CHARS))
    if bare:
        found.append(bare.span(1 if bare[1] else 2))
    if not found:  # the last box is cut off
        found = sorted(_balanced_boxes(text, max(0, start - 2 * BOX_CHARS), start))
    run: list[tuple[int, int]] = []
    for begin, end in reversed(found):
        if run and not (end < run[-1][0] and _is_between(text[end + 1 : run[-1][0]])):
            break
        run.append((begin, end))
    return [text[begin:end].strip() for begin, end in reversed(run)]


def _is_between(text: str) -> bool:
    text = text[: text.rfind("\\")]
    left = _BETWEEN_BOXES.sub("", text)
    return len(text) < 60 and (not left or bool(_FEW_WORDS.fullmatch(text)))


def last_tag(text: str) -> str | None:
    """What the last `<answer>...</answer>` holds; None without one."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    return text[start + 8 : end].strip() if start >= 0 else None


def between(text: str, start: str, end: str) -> list[str]:
    """What stands between each `start` and the next `end`, as `re.findall("start(.*?)end")`.

    Linear in the text, which the regular expression is not where `end` is missing.
    """
    found = []
    at = text.find(start)
    while at >= 0:
        stop = text.find(end, at + len(start))
        if stop < 0:
            break
        found.append(text[at + len(start) : stop])
        at = text.find(start, stop + len(end))
    return found


def last_phrase(text: str) -> str | None:
    """What follows the last `answer is`, `Answer:` or `答案：`, up to the end of its sentence."""
    floor, end = max(0, len(text) - PHRASE_CHARS), len(text)
    for _ in range(MAX_MARKS):
        at = max(text.rfind(word, floor, end) for word in _ANSWER_WORDS)
        if at < 0:
            return None
        mark = _PHRASE.match(text, at)
        if mark and not text[at - 1 : at].isalnum() and (said := _said(text, mark.end())):
            return said
        end = at
    return None


def _said(text: str, at: int) -> str:
    """The statement that begins at a place: its mathematics, or the rest of its sentence."""
    rest = text[at : at + TAIL_CHARS].lstrip("*_ \t\n")
    if text[at - 2 : at] == "**":
        rest = _BOLD_END.sub(r"\1", rest)
    if math := _MATH.match(rest):
        rest_of_line = rest[math.end() :].partition("\n")[0]
        if not _GOES_ON.match(rest_of_line):
            stated: str = next(filter(None, math.groups()))
            return stated.strip()
        return _sentence(rest)
    return _sentence(rest.partition("\n")[0])


def _sentence(text: str) -> str:
    """Up to the end of the sentence; a stop between digits is no end."""
    end = _SENTENCE.search(text)
    return (text[: end.start()] if end else text).strip(" *_`#\t\r\n\"'")


def unmarked(text: str) -> Found | None:
    """The last line, mathematics or number of a text in which no answer is marked."""
    line = text.strip().rpartition("\n")[2].strip()
    spans = [(m.end(), next(filter(None, m.groups())).strip()) for m in _MATH.finditer(text)]
    prose = _PLAIN_WORD.findall(_MATH.sub(" ", line))
    if line and len(prose) < 2 and not (prose and spans):
        return Found(line, "line")
    begins = text.rfind(line) if line else 0
    numbers = [(begins + m.end(), m[0]) for m in _LAST_NUMBER.finditer(line)]
    if spans and spans[-1:] >= numbers[-1:]:
        return Found(spans[-1][1], "math")
    return Found(numbers[-1][1], "number") if numbers else None


def last_boxed(text: str) -> str | None:
    r"""The content of the last balanced `\boxed{}` (or `\fbox{}`); None without one.

    A box left open, as in a truncated response, is passed over. Escaped braces (`\{`) do not
    count as grouping.
    """
    found = boxes(text)
    return found[-1] if found else None


def _closing(text: str, start: int) -> tuple[int, int] | None:
    """(start, end) of the content of the box that opens at a place; None if it does not close."""
    if not _OPEN_BOX.match(text, start):
        return None
    begin, depth = 0, 0
    for token in _BRACES.finditer(text, start, start + BOX_CHARS):
        sign = token[0]
        if sign[-1] == "{" and sign != r"\{":
            begin = begin or token.end()
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth <= 0:
                return begin, token.start()
    return None


def _balanced_boxes(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    """(start, end) of the content of every balanced box in `text[start:stop]`, in one pass."""
    found: list[tuple[int, int]] = []
    open_braces: list[int] = []
    for token in _BRACES.finditer(text, start, stop):
        if _OPEN_BOX.match(token[0]):
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(-1)
        elif token[0] == "}" and open_braces and (begin := open_braces.pop()) >= 0:
            found.append((begin, token.start()))
    return found


def gold_answer(text: str) -> str:
    """The gold answer itself: of a text with boxes what is in them, of a solution what it ends on."""
    if "\\boxed" in text and (boxed := boxes(text)):
        return ", ".join(boxed)
    text = text[-PHRASE_CHARS:]
    if _STATES.search(text) and (said := last_phrase(text)):
        return said
    return text.strip()
