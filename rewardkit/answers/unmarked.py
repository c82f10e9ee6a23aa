r"""The answer of a response that marks none: what its last line or sentence states.

A line that is nothing but an answer, a last display of mathematics, or a sentence that states a
result: `so x = 12`, `there are 12 ways`, `故共有12种`. What is taken is the whole run of values, with
the words behind it: a time, a tuple, a power, a quantity with its unit; never the last digits.
A sentence that denies, doubts, asks or only mentions a number states nothing.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

Place: TypeAlias = Literal["line", "sentence"]

#: Characters at the end of a response that are searched.
TAIL_CHARS: Final = 2000
#: Most words around a value, or of an answer in words, that stands alone on its line.
FEW_WORDS: Final = 3

#: A span of mathematics. Dollar signs before digits are money.
MATH: Final = re.compile(
    r"\$\$(.{1,500}?)\$\$|\$(?!\s*\n|\d[^$\n]{0,100}\s\$)([^$]{1,500})\$(?!\d)"
    r"|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]",
    re.DOTALL,
)
#: Three words in a row, outside TeX.
PROSE: Final = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}(?:[\s,]+[A-Za-z]{2,}){2}")

_DECORATION = re.compile(
    r"<\|[^<>|\n]{1,30}\|>|</?(?:s|b|i|u|p|em|strong|br|div|span|center)\s?/?>"
    r"|(?<![\w)\]}])\*\*(?=\S)|(?<=\S)\*\*(?![\w(])"
)


def plain(text: str) -> str:
    """A text without special tokens, and without the emphasis of HTML and Markdown."""
    return _DECORATION.sub("", text)


_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}|\$")
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[\s,'’-]{1,3}[^\W\d_]{1,40}){0,7}\W*")


def has_words(text: str) -> bool:
    """Whether an answer is made of words: no digit, no sign of mathematics."""
    return bool(_WORDS.fullmatch(_TEXT.sub(r"\1", text[:TAIL_CHARS]).strip()))


def last_statement(response: str, gold: str = "") -> tuple[str, Place] | None:
    """What the last line or sentence of a response states, and where; None if it states nothing.

    Args:
        response: only its last `TAIL_CHARS` characters are read.
        gold: the gold answer: if it is words, words are looked for, too.
    """
    sentence = _last_sentence(_last_line(plain(response[-TAIL_CHARS:])))
    if _DOUBTED.search(sentence) or sentence.count("{") != sentence.count("}"):
        return None
    if has_words(gold) and (statement := _words(sentence)):
        return statement, "sentence"
    if _DENIED.search(sentence):
        return None
    alone = sentence[label.end() :] if (label := _LABEL.match(sentence)) else sentence
    if statement := _alone(alone):
        return statement, "line"
    statement = _stated(sentence) or ("" if gold or " " in sentence else _words(sentence))
    return (statement, "sentence") if statement else None


def value_of_prose(sentence: str) -> str:
    """The values that a sentence of prose ends on behind `is`; the sentence where there are none."""
    if not PROSE.search(sentence) or _DOUBTED.search(sentence) or _DENIED.search(sentence):
        return sentence
    *_, verb = (None, *_COPULA.finditer(sentence))
    if verb is None or re.search(r"\b(?:such that|where|when|whose)\b", sentence):
        return sentence
    return _alone(sentence[verb.end() :]) or sentence


# --- the last line and its last sentence

_FENCE_OF_TEXT = frozenset({"", "text", "txt", "output", "plaintext", "latex", "tex", "math"})
_ROWS = re.compile(
    r"\\begin\{((?:align|gather|equation|eqnarray|multline|split)(?:ed)?\*?)\}"
    r"(.{1,1500}?)\\end\{\1\}",
    re.DOTALL,
)
_STOP = re.compile(r"(?<=[.．!！?？；])(?=\s|$)|(?<=[。！？；])|;\s")
_CLOSING_WORDS = re.compile(
    r"\W*(?:i hope|hope (?:this|it)|let me know|feel free|thank)", re.IGNORECASE
)


def _last_line(text: str) -> str:
    """The last line with text; of a fence its content, of a display its last row."""
    text = text.strip()
    if text.endswith("```"):
        language, _, text = text[:-3].rpartition("```")[2].partition("\n")
        if language.strip().lower() not in _FENCE_OF_TEXT:  # a program
            return ""
    text = MATH.sub(lambda span: span[0].replace("\n", " "), _ROWS.sub(_last_row, text))
    return text.strip().rpartition("\n")[2].strip()


def _last_row(rows: re.Match[str]) -> str:
    body = rows[2] if r"\begin" in rows[2] else rows[2].rstrip(" \n\\").rpartition(r"\\")[2]
    row = body.replace("&", "").replace("\n", " ").strip().lstrip("= ")
    return row if rows[1].rstrip("*").endswith(("ed", "split")) else f"${row}$"


def _last_sentence(line: str) -> str:
    sentences = [part.strip() for part in _STOP.split(line) if re.search(r"[^\W_]", part)]
    while sentences and _CLOSING_WORDS.match(sentences[-1]):
        sentences.pop()
    return sentences[-1] if sentences else ""


# --- what a sentence states

_DENIED = re.compile(
    r"\b(?:not|cannot|never|neither|nor|wrong|incorrect)\b|n['’]t\b"
    r"|不(?:是|为|等于|能|会|可能|对|成立|存在|知道|确定)|并非|无法|没有|未必|错误",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"[?？]\W*$|\b(?:unsure|could|might|(?-i:may)|maybe|perhaps|possibly|guess|assume|suppose|let|if"
    r"|either|unless|should have|possible(?=\W*$|\s+answers?\b))\b|可能[是为]|也许|或许|如果|假设|若|^设|吗",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"[-*•>#\s]*(?:(?:the|final|my|correct)\s+)*(?:answer|result|output|solution|total|value|sum|ans)"
    r"\s*[:：=]?\s*(?=[^\s:：]*[\d$\\(])",
    re.IGNORECASE,
)
#: What follows says what comes of the rest.
_HENCE = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|finally|consequently|altogether|donc|ainsi|entonces|daher|somit"
    r"|итак|значит|поэтому)\b|^(?:and|then)\b|\bin (?:total|all|conclusion)\b|\b(?:this|that) means\b"
    r"|\bwe conclude\b|所以|因此|因而|综上所述|综上|故|从而|于是|可得|[,，]则|即|共|答|∴)[,，:：]?\s*",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:is|are|was|were|be|equals?|it['’]s|there['’]s|gives?|get|got|have|has|had|find|conclude|obtain|that|yields?|ist"
    r"|est|es|son|sind|равно|равна?|.*(?:[:=]|为|是|有|等于|得|需|要|用|剩|：))$",
    re.IGNORECASE | re.DOTALL,
)
#: `arrives at 10:45`, `comes to 12`, `costs 12 euros`.
_ENDS_ON = re.compile(
    r"at|to|(?:cost|weigh|pay|need|take|earn|spend|score|save|make|leave|measure|last|contain|require"
    r"|become|remain|use|sell|buy|collect|receive|produce)(?:s|d|ed)?|paid|took|spent|made|sold|bought"
)
#: `it will take 12 hours`, `she has to pay 12 euros`.
_MODAL = re.compile(r"will|would|can|must|should|to")
_FILLERS = re.compile(
    r"(?:a|an|the|about|approximately|approx|roughly|around|exactly|precisely|only|just|simply|"
    r"to|total|of|altogether|also|therefore|thus|then|now|number|value)"
)
_BOUNDS = re.compile(r"(?:least|most|than|between|over|under|nearly|almost|from|within)")
#: Words before a number that names something, or before a value that is not stated.
_MENTIONS = re.compile(
    r"(?:step|steps|problem|case|cases|equation|eq|theorem|lemma|figure|page|line|question|"
    r"section|chapter|part|example|table|exercise|no|formula|where|when|since|let|using|"
    r"setting|substituting|given|input|hint|note|consider|try|check|put|plug)"
)
#: Words before a setting, `for n = 12`; `sells it for 12` states it.
_SETS = re.compile(r"for|with|by|of|at|from|in")
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_TOKEN = re.compile(rf"{MATH.pattern}|[{_CJK}]+|[^\s{_CJK}]+", re.DOTALL)
_WORD = re.compile(r"\W*(?:\d+-)?[^\W\d_]{2,}(?:['’/-][^\W\d_]+)*\W*|\W*[aAI]\W*")
_VALUE = re.compile(r"[\d&=+*/^<>≤≥≈√π∞°\\$×·]|^\W*[A-Za-zΑ-ω]\W*$|^[-−÷]$")
_MONTH = re.compile(
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_LETTER = re.compile(r"\W?[A-Za-zΑ-ω]\W?")
_CONTENT = re.compile(r"[^\W_]|[∞∅]")
_JOINS = re.compile(r"and|or|to|by|[,，、和或且]")
_IS_THE_ANSWER = re.compile(
    r"\s*(?:is|are)\s+(?:the|our|my)\s+(?:(?:final|correct|required|only)\s+)?"
    r"(?:answer|result|solution)s?\W*$"
)
_IS = re.compile(r"\s*(?:is|are)\s+(?:the|our|what)\b")
_AFTERTHOUGHT = re.compile(
    r",\s+(?!or\b|and\b)[A-Za-z]{2}|\s\((?![^()]*\b(?:or|and)\b)[A-Za-z]|，|\s(?:because|since|which)\s"
)
_ARITHMETIC = re.compile(r"(?:[\d\s+\-*/×·().,%$£€^÷]|(?:(?<=[\d)])|(?<=[\d)]\s))x(?=\s?[(\d]))*")
_COPULA = re.compile(r"\b(?:is|are|was|were|be|it['’]s|there['’]s)\s+|[为是：]|:\s*", re.IGNORECASE)


class _Run(NamedTuple):
    """A run of values in a clause: from where to where, and the words before it."""

    start: int
    end: int
    before: tuple[str, ...]


def _words(sentence: str) -> str:
    """What a sentence says in words: what follows its verb, or all of a few words."""
    *_, verb = (None, *_COPULA.finditer(sentence))
    if verb is None:
        few = len(sentence.split()) <= FEW_WORDS and has_words(sentence)
        return _without_dollars(sentence) if few else ""
    statement = _without_dollars(sentence[verb.end() :])
    denied = _DENIED.search(sentence[: verb.end()])
    return statement if has_words(statement) and not denied else ""


def _alone(line: str) -> str:
    """A line that is nothing but values, with a few words behind them."""
    if _LETTER.fullmatch(line):
        return _without_dollars(line)
    runs = _runs(line)
    if len(runs) != 1 or runs[0].before or len(line[runs[0].end :].split()) > FEW_WORDS:
        return ""
    return _without_dollars(line[runs[0].start :])


def _stated(sentence: str) -> str:
    """The values that a sentence states as its result, with the words behind them; "" if none."""
    if not (runs := _runs(sentence)):
        return ""
    *_, hence = (None, *_HENCE.finditer(sentence, 0, runs[-1].start))
    clause = sentence[hence.end() :] if hence else sentence
    if not (runs := _runs(clause)):
        return ""
    last = runs[-1]
    subject = _IS if hence else _IS_THE_ANSWER
    if len(runs) == 1 and not last.before and subject.match(clause, last.end):
        return _without_dollars(clause[last.start : last.end])
    if not _is_stated(last, clause, only=bool(hence) and len(runs) == 1):
        return ""
    for earlier in runs[:-1]:  # `12 for John and 13 for Mary` are two
        between = clause[earlier.end : last.start]
        if _SAYS.match(_said_by(earlier)) and re.search(r"\b(?:and|or|but)\b|[和或且]", between):
            last = last._replace(start=earlier.start)
            break
    cut = _AFTERTHOUGHT.search(clause, last.end)
    return _without_dollars(_last_side(clause[last.start : cut.start() if cut else None]))


def _is_stated(run: _Run, clause: str, *, only: bool) -> bool:
    """Whether a clause states a run as its result; `only`: it concludes, with no other value."""
    word = _said_by(run)
    if _MENTIONS.fullmatch(word.rstrip(":")) or any(map(_BOUNDS.fullmatch, run.before[-2:])):
        return False
    if "=" in clause[run.start : run.end]:
        return not _SETS.fullmatch("".join(run.before[-1:]))
    modal = any(map(_MODAL.fullmatch, run.before[-4:-1])) and "i" not in run.before
    if only or _SAYS.match(word) or modal:
        return True
    few_behind = len(clause[run.end :].split()) <= FEW_WORDS
    return (
        few_behind
        and len(run.before) > 1
        and any(map(_ENDS_ON.fullmatch, (word, *run.before[-1:])))
    )


def _said_by(run: _Run) -> str:
    """The last word before a run that is more than a filler."""
    return next((word for word in reversed(run.before) if not _FILLERS.fullmatch(word)), "")


def _runs(clause: str) -> list[_Run]:
    """The runs of values of a clause; `and`, `or` and commas between values join them."""
    runs: list[_Run] = []
    words: list[str] = []
    for token in _TOKEN.finditer(clause):
        bare = token[0].strip(",.;!*_\"'()[]")
        is_value = _VALUE.search(token[0]) and not _WORD.fullmatch(token[0])
        if not is_value and not _MONTH.fullmatch(bare):
            words.append(bare.lower() or token[0])
        elif runs and all(map(_JOINS.fullmatch, words)):
            runs[-1] = runs[-1]._replace(end=token.end())
            words = []
        else:
            runs.append(_Run(token.start(), token.end(), tuple(words)))
            words = []
    return [run for run in runs if _CONTENT.search(clause, run.start, run.end)]


def _last_side(text: str) -> str:
    """Of arithmetic that is worked out, `3 * 4 = 12`, what it comes to."""
    *sides, value = text.split("=")
    return text if MATH.match(text) or not all(map(_ARITHMETIC.fullmatch, sides)) else value


def _without_dollars(text: str) -> str:
    """A statement stripped; one that is nothing but mathematics without its delimiters."""
    text = text.strip(" \t*_`\"'✅∎■□≈~=.。．,，;；!")
    math = MATH.fullmatch(text)
    content: str = next(filter(None, math.groups())) if math else text
    return content.strip(" \t\n.,")
