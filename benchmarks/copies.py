"""Copy formulas of the question as the answer; every copy is wrong.

A formula counts as a copy only if it cannot be the answer: it is not a plain value, it is not the gold
in another spelling, and none of its sides or sets is equal to the gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plain_reader import is_constant
from readings import RELATION, Reading, bare, read, split, surely_differ

MAX_COPIES = 3
_FORMULA = re.compile(
    r"\$\$(.{1,300}?)\$\$|(?<![\\$])\$([^$]{1,300})\$|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]",
    re.DOTALL,
)
#: A number, a fraction or a number in scientific notation.
_VALUE = re.compile(
    r"[-+]?(?:\d[\d,.]*|\\[dt]?frac\{?-?\w+\}?\{?\w+\}?|\d+/\d+|\d[\d.]*\s*\\(?:times|cdot)\s*10\^\{?-?\d+\}?)"
    r"(?:\\?%|\^\{?\\circ\}?)?"
)
#: A number with a mark that the reader does not read.
_MARKED = re.compile(r"\\?\$?\d[\d,.]*\s*(?:\\?%|\^\{?\\circ\}?|_\{?\d+\}?|:\s*\d+[^\d]*)?")
_WORDS = re.compile(r"(?:\\text\{)?[A-Za-z\u4e00-\u9fff ]+\}?")
_CHOICE = re.compile(r"(?:\\text\{)?\(?[A-J]\)?\}?")
_NAME = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?|[A-Za-z]\([A-Za-z]\)")
_OPERATION = re.compile(
    r"[-+*/^]|\\(?:[dtc]?frac|sqrt|cdot|times|sum|int|lim|prod|binom|log|ln|sin|cos|tan)"
)
_INTEGER = re.compile(r"\d+")
_FORMATTING = re.compile(
    r"\s|\\(?:left|right|big|Big|displaystyle|mathrm|mathbf|text)(?![A-Za-z])|\\[,;:! ]|[{}$~.]"
)
#: The question asks for its own formula in another form.
_REWRITE = re.compile(
    r"(?:simplify|expand|factor|evaluate|compute|calculate|work out|write|express|化简|计算)[^$.]{0,40}$",
    re.IGNORECASE,
)


def copies(question: str, gold: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of the last formulas of the question."""
    count, answer = 0, bare(gold)
    for match in reversed([*_FORMULA.finditer(question)]):
        text = next(filter(None, match.groups())).strip(" .,;:?\n")
        if _is_copy(text, answer, question[: match.start()]):
            yield "of a formula", text
            count += 1
        if count == MAX_COPIES:
            return


def strip_formatting(text: str) -> str:
    """Return only the characters that carry meaning."""
    return _FORMATTING.sub("", text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac"))


def _is_copy(text: str, gold: str, before: str) -> bool:
    plain = bare(text)
    if _VALUE.fullmatch(plain) or not (
        _OPERATION.search(plain.lstrip("-+")) and re.search(r"\d", plain)
    ):
        return False
    if len(plain) < 3 or re.search(r"\\text|[A-Za-z]{4,}", re.sub(r"\\[A-Za-z]+", "", plain)):
        return False
    if _CHOICE.fullmatch(gold):
        return False  # the formula may be the option's text
    if _WORDS.fullmatch(gold) and not _NAME.fullmatch(gold):
        return True
    if strip_formatting(gold) in strip_formatting(plain) and not _VALUE.fullmatch(gold):
        return False  # the gold is a part of the formula, perhaps all of it
    sides = split(plain, RELATION.pattern)
    if any(strip_formatting(side) == strip_formatting(gold) for side in sides):
        return False
    if len(sides) > 1:
        return _is_unsolved(sides, read(plain), read(gold))
    return _is_not_computed(read(plain), gold, before)


def _is_not_computed(formula: Reading | None, gold: str, before: str) -> bool:
    """Return whether the formula is another value, or the gold before it is computed or rewritten."""
    answer = read(gold)
    number = (
        _VALUE.fullmatch(gold) or _MARKED.fullmatch(gold) or (answer and answer.kind == "quantity")
    )
    if formula is None:
        return answer is not None
    if formula.kind == "value" and is_constant(formula.parts) and number:
        return True
    return surely_differ(formula, answer) or (answer is not None and bool(_REWRITE.search(before)))


def _is_unsolved(sides: list[str], formula: Reading | None, answer: Reading | None) -> bool:
    """Return whether an equation or range has no side that could be the answer."""
    if formula is None or answer is None:
        return False
    if answer.kind in ("value", "quantity"):
        values = [read(side) for side in sides]
        return all(v is None or v.kind != "value" or surely_differ(v, answer) for v in values)
    if formula.kind == answer.kind == "equation":
        return surely_differ(formula, answer)
    return formula.kind != answer.kind and not any(map(_NAME.fullmatch, sides))
