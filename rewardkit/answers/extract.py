r"""Where a response states its answer: text -> the statement, or None.

Every function is linear in the length of the response and returns the last statement: a model
that states several answers is taken at its last word. Statements come back stripped.

What is marked as the answer is read here; a response without any mark by `answers.unmarked`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rewardkit.answers.unmarked import MATH, PROSE, last_statement, plain, value_of_prose

Mark: TypeAlias = Literal["box", "tag", "phrase", "hash", "line", "sentence"]

#: Marks that are looked at, from the last one back.
MAX_MARKS: Final = 20
#: Characters behind a mark, and before a box, that are searched for what belongs to it.
TAIL_CHARS: Final = 2000
#: Characters behind its opening in which a box must close; what is longer is never compared.
BOX_CHARS: Final = 5000
#: Characters of a line behind `####` that are searched for a digit.
LINE_CHARS: Final = 4096
#: Characters at the end that are searched for `the answer is`.
PHRASE_CHARS: Final = 20_000


@dataclass(frozen=True)
class Answer:
    """What a response states as its answer.

    Attributes:
        text: the statement, stripped; several values stay together: `12 or 13`.
        mark: what marks it as the answer: `box`, `tag`, `phrase`, `hash`; without a mark where it
            stands: alone on its `line`, or in the last `sentence`.
    """

    text: str
    mark: Mark


def final_answer(response: str, gold: str = "") -> Answer | None:
    """The answer of a response, by the most explicit mark it has; None if it states none.

    In this order: the last box or run of boxes; `<answer>` tags; `the answer is`, `Answer:`,
    `答案：`; `####`; and where nothing is marked, the last line or sentence, if it states a result.
    Only what follows the last thought counts; inside a thought or a box that was never finished
    nothing does. What is denied (`the answer is not 12`) or doubted (`the answer could be 12`) is
    no statement.

    Args:
        response: the model's text.
        gold: the gold answer. It decides what is looked for in a response without a mark, and
            nothing else: words if the gold is words, else a number or other mathematics.
    """
    text = after_thought(response)
    if run := boxes(text):
        return Answer(", ".join(map(_without_phrase, run)), "box")
    if (statement := last_tag(text)) is not None:
        return Answer(_without_phrase(statement), "tag")
    if _OPEN_BOX.search(text):
        return None
    if (statement := last_phrase(text)) is not None:
        return Answer(statement, "phrase")
    if (statement := last_hash(text)) is not None and not _is_heading(statement, text):
        return Answer(statement, "hash")
    if unmarked := last_statement(text, gold):
        return Answer(*unmarked)
    return None


_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
)


def after_thought(text: str) -> str:
    """What a response says after its last thought; nothing if a thought is never finished."""
    for begin, end in _THOUGHTS:
        text = text.rpartition(end)[2]
        if begin in text:
            return ""
    return text


# --- boxes

_OPEN_BOX = re.compile(r"\\{1,2}(?:boxed|fbox)\s*\{")
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?: +([^\s{}$\\]{1,40}?)|(\d))(?=[.,]?(?:[\s$]|$))")
_BRACES = re.compile(r"\\{1,2}(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_BETWEEN_BOXES = re.compile(
    r"[\s$,;.&]|\\[()\[\],;: ]|\\q?quad|\\text\s*\{\s*(?:and|or)?\s*\}|and|or|和|与|或|/|\(|maybe|perhaps|possibly|\\text\s*\{\s*(?:maybe|perhaps|possibly)\s*\}"
)
_FEW_WORDS = re.compile(r"(?!.*\b(?:then|also|not?|but)\b)[A-Za-z ,]{1,14}")


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
    spans = sorted(_balanced_boxes(text, before, start + BOX_CHARS))
    if bare:
        spans.append(bare.span(1 if bare[1] else 2))
    if not spans:  # the last box is cut off
        spans = sorted(_balanced_boxes(text, max(0, start - 2 * BOX_CHARS), start))
    run: list[tuple[int, int]] = []
    for begin, end in reversed(spans):
        if run and not (end < run[-1][0] and _is_between(text[end + 1 : run[-1][0]])):
            break
        run.append((begin, end))
    return [text[begin:end].strip() for begin, end in reversed(run)]


def last_boxed(text: str) -> str | None:
    r"""The content of the last balanced `\boxed{}` (or `\fbox{}`); None without one.

    A box left open, as in a truncated response, is passed over. Escaped braces (`\{`) do not
    count as grouping.
    """
    run = boxes(text)
    return run[-1] if run else None


def _is_between(text: str) -> bool:
    text = text[: text.rfind("\\")]
    left = _BETWEEN_BOXES.sub("", text)
    return len(text) < 60 and (not left or bool(_FEW_WORDS.fullmatch(text)))


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
    spans: list[tuple[int, int]] = []
    open_braces: list[int] = []
    for token in _BRACES.finditer(text, start, stop):
        if _OPEN_BOX.match(token[0]):
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(-1)
        elif token[0] == "}" and open_braces and (begin := open_braces.pop()) >= 0:
            spans.append((begin, token.start()))
    return spans


# --- tags and `####`


def last_tag(text: str) -> str | None:
    """What the last `<answer>...</answer>` holds; None without one."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    return text[start + 8 : end].strip() if start >= 0 else None


def between(text: str, start: str, end: str) -> list[str]:
    """What stands between each `start` and the next `end`, as `re.findall("start(.*?)end")`.

    Linear in the text, which the regular expression is not where `end` is missing.
    """
    parts = []
    at = text.find(start)
    while at >= 0:
        stop = text.find(end, at + len(start))
        if stop < 0:
            break
        parts.append(text[at + len(start) : stop])
        at = text.find(start, stop + len(end))
    return parts


_QUOTES = ('"', "'", "`", "“")
_HEADING = re.compile(r"[^\W\d_]{2}|\d{1,2}[.)]\s+[^\W\d_]{2}")


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
        statement = text[at + 4 : end].strip("# \t\r\n").partition("\n")[0].strip()
        if any(map(str.isdigit, statement[:LINE_CHARS])):
            return statement
        last = statement if last is None else last
        end = at
    return last


def _is_heading(statement: str, text: str) -> bool:
    """Whether what follows `####` is Markdown's heading: words, with more text below them."""
    return bool(_HEADING.match(statement)) and not text.rstrip("# \t\r\n").endswith(statement)


# --- phrases

_ANSWER_WORDS = (
    "answer", "Answer", "ANSWER", "答案", "答：", "答:", "答え",
    "답은", "Antwort", "Réponse", "réponse", "Respuesta", "respuesta", "Ответ", "ответ",
)  # fmt: skip
_NOT = r"(?:\s*not\b|n['’]t\b)"
#: `answer is`, `Answer:` and their like; `doubt` where it is denied or only possible.
_PHRASE = re.compile(
    r"(?:answers?\b(?:\s+(?:to|of|for|in)\s[^.\n:：=$]{1,80}?(?=\s(?:is|are|was|equals)\b))?"
    r"(?:,?\s*(?:therefore|thus|then|hence|so),?)?"
    rf"(?:\s*(?P<doubt>\b(?:is|are|was|would|should|could|ca|can|do|does|did|must|may|might|will|wo)"
    rf"{_NOT}|\b(?:could|might|may|can|cannot)\b)"
    r"|\s+(?:is|are|was|equals|(?:would|should|must|will)\s+be|comes\s+(?:out\s+)?to|turns\s+out\s+to\s+be)\b"
    r"(?:\s+(?:therefore|thus|then|hence|indeed|simply|just|equal\s+to)\b)?\s*[:：]?"
    r"|(?:\s*\([^()\n]{0,40}\))?[*_\"' ]*(?:=>|-+>|[:：=→]))"
    r"|(?:Antwort|Réponse|Respuesta|Ответ)[*_ ]*(?:[:：]|(?:ist|est|es)\b(?!\s+(?:nicht|no)\b))"
    r"|答案(?:应该|应当|应|就|便|也|即)?(?:(?P<no>不|并不|并非|可能|也许|或许)|[是为：:=]|等于)[:：]?"
    r"|(?:答|答え|답은)[:：]|答えは|답은)[*_\"'`\s]*",
    re.IGNORECASE,
)
#: The end of a sentence or of what states something; `12. Or 13` goes on.
_SENTENCE = re.compile(
    r"[.。．；!！](?=[\"'*_`)\]]*(?:\s|$))"
    r"(?!\s+(?:or|alternatively|maybe|perhaps|possibly|otherwise|it\s+(?:could|might|may))\b)"
    r"|(?<=[?？])(?=[\"'*_`)\]]*(?:\s|$))|。|;(?!\s*or\b)(?:\s|$)|,\s+(?:because|since|so|which|where)\b|\s(?:because|since)\s"
    r"|，(?=其中|因为|由于|所以|理由|此时|这|即)",
    re.IGNORECASE,
)
#: A value that is set apart from the one that is meant: `12, not 13`.
_VALUE = r"(?=[-+(\[]?[\d$\\])"
_NOT_MEANT = re.compile(
    rf"\s*[,(]?\s*(?:(?:and|but)\s+)?(?:(?<=[,(\s])not|rather\s+than|instead\s+of)\s+{_VALUE}"
    rf"|[，,]?\s*(?:而不是|而非|不是)\s*{_VALUE}"
)
_BUT = re.compile(r"[^\n.]{1,40}?(?:,\s*|\s+)but\s+(?:rather\s+)?|[^\n。]{1,40}?，?\s*而是\s*")
_LEAD = re.compile(
    r"\s*(?:\\(?:text\w*|mathrm|mbox)\s*\{\s*)?(?:故|则|即|所以|因此)?(?:the\s+|my\s+|最终|正确|最后)?"
    r"(?:final\s+|correct\s+)?(?=answer|答)",
    re.IGNORECASE,
)
_LAST_WORDS = re.compile(r"(?:です|입니다|이다)$")


def last_phrase(text: str) -> str | None:
    """What follows the last `answer is`, `Answer:` or `答案：`, up to the end of its sentence.

    None without one, and where the last one denies, doubts or asks: `the answer is not 12`.
    """
    floor, end = max(0, len(text) - PHRASE_CHARS), len(text)
    for _ in range(MAX_MARKS):
        at = max(text.rfind(word, floor, end) for word in _ANSWER_WORDS)
        if at < 0:
            return None
        end = at
        mark = _PHRASE.match(text, at)
        if not mark or not _begins_word(text, at):
            continue
        denied = mark["doubt"] or mark["no"]
        if denied and (meant := _BUT.match(text, mark.end(), mark.end() + 60)):
            return _statement(text, meant.end())
        if denied:
            return None
        statement = _statement(text, mark.end())
        if statement.endswith(("?", "？")):
            return None
        if statement and not ("\n" in mark[0] and PROSE.search(statement)):
            return value_of_prose(statement)
    return None


def _begins_word(text: str, at: int) -> bool:
    """Whether no letter of the same script stands right before: `故答案`, but not `reanswer`."""
    before = text[at - 1 : at]
    return text[at] > "⺀" or not before.isalnum() or before > "⺀"


def _statement(text: str, at: int) -> str:
    """The statement that begins at a place: its mathematics, or the rest of its sentence."""
    opening = text[at - 1 : at]
    rest = plain(text[at : at + TAIL_CHARS]).lstrip("*_ \t\n")
    if opening in ('"', "`") and (close := rest.find(opening)) > 0:
        rest = rest[:close]
    math = MATH.match(rest)
    head = math[0] if math else ""
    line = rest[len(head) :].partition("\n")[0]
    stop = min(
        [m.start() for m in (_SENTENCE.search(line), _NOT_MEANT.search(line)) if m] or [len(line)]
    )
    behind = line[:stop].strip(" *_`\t\r.")
    if math and not behind:
        content: str = next(filter(None, math.groups()))
        return content.strip()
    statement = _LAST_WORDS.sub("", (head + line[:stop]).strip(" *_`#\t\r\n\"'✅∎■□"))
    return statement if "{" in statement else statement.rstrip("}")


def _without_phrase(text: str) -> str:
    r"""What a box or a tag states, without `The answer is` before it, in `\text{}` or not."""
    lead = _LEAD.match(text)
    mark = lead and _PHRASE.match(text, lead.end())
    if not lead or not mark or mark["doubt"] or mark["no"]:
        return text
    rest = text[mark.end() :]
    if "{" in lead[0]:
        rest = rest[1:] if rest[:1] == "}" else rest.removesuffix("}")
    return rest.strip() or text


# --- golds

_STATES = re.compile(r"\banswer is\b|\bAnswer:|答案[是为：:]", re.IGNORECASE)


def gold_answer(text: str) -> str:
    """The gold answer itself: of a solution what it marks as the answer, else the whole text.

    A box, `####` or `the answer is` marks it. What is marked by nothing is not cut down: prose
    that ends in a formula may say more than the formula.
    """
    if "\\boxed" in text and (run := boxes(text)):
        return ", ".join(run)
    tail = text[-PHRASE_CHARS:]
    if "####" in tail and (statement := last_hash(tail)):
        return statement
    if _STATES.search(tail) and (statement := last_phrase(tail)):
        return statement
    return text.strip()
