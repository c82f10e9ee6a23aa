"""Formulas out of the question, copied as the answer: none of them is an answer.

A formula counts as a copy only where it cannot be the answer that was asked for: it is not a plain value,
not the gold in another spelling, and holds no side or set that says what the gold says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plain_reader import is_constant
from readings import RELATION, Reading, bare, read, split, surely_differ

MOST = 3
_FORMULA = re.compile(
    r"\$\$(.{1,300}?)\$\$|(?<![\\$])\$([^$]{1,300})\$|\\\((.{1,300}?)\\\)|\\\[(.{1,300}?)\\\]",
    re.DOTALL,
)
#: A number, a fraction or a scientific number, as an answer gives it.
_VALUE = re.compile(
    r"[-+]?(?:\d[\d,.]*|\\[dt]?frac\{?-?\w+\}?\{?\w+\}?|\d+/\d+|\d[\d.]*\s*\\(?:times|cdot)\s*10\^\{?-?\d+\}?)"
    r"(?:\\?%|\^\{?\\circ\}?)?"
)
#: A number with a mark, which the reader does not read.
_MARKED = re.compile(r"\\?\$?\d[\d,.]*\s*(?:\\?%|\^\{?\\circ\}?|_\{?\d+\}?|:\s*\d+[^\d]*)?")
_WORDS = re.compile(r"(?:\\text\{)?[A-Za-z\u4e00-\u9fff ]+\}?")
_CHOICE = re.compile(r"(?:\\text\{)?\(?[A-J]\)?\}?")
_NAME = re.compile(r"[A-Za-z](?:_\{?\w+\}?)?|[A-Za-z]\([A-Za-z]\)")
_WORKED = re.compile(
    r"[-+*/^]|\\(?:[dtc]?frac|sqrt|cdot|times|sum|int|lim|prod|binom|log|ln|sin|cos|tan)"
)
_INTEGER = re.compile(r"\d+")
_TYPE = re.compile(
    r"\s|\\(?:left|right|big|Big|displaystyle|mathrm|mathbf|text)(?![A-Za-z])|\\[,;:! ]|[{}$~.]"
)
#: The question wants its own formula in another form.
_REWRITE = re.compile(
    r"(?:simplify|expand|factor|evaluate|compute|calculate|work out|write|express|化简|计算)[^$.]{0,40}$",
    re.IGNORECASE,
)


def copies(question: str, gold: str) -> Iterator[tuple[str, str]]:
    """(name, text) of the last formulas of the question."""
    names, answer = 0, bare(gold)
    for match in reversed([*_FORMULA.finditer(question)]):
        text = next(filter(None, match.groups())).strip(" .,;:?\n")
        if _is_copy(text, answer, question[: match.start()]):
            yield "of a formula", text
            names += 1
        if names == MOST:
            return


def folded(text: str) -> str:
    """The characters that carry meaning."""
    return _TYPE.sub("", text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac"))


def _is_copy(text: str, gold: str, before: str) -> bool:
    plain = bare(text)
    if _VALUE.fullmatch(plain) or not (
        _WORKED.search(plain.lstrip("-+")) and re.search(r"\d", plain)
    ):
        return False
    if len(plain) < 3 or re.search(r"\\text|[A-Za-z]{4,}", re.sub(r"\\[A-Za-z]+", "", plain)):
        return False
    if _CHOICE.fullmatch(gold):
        return False  # the formula may be the option's text
    if _WORDS.fullmatch(gold) and not _NAME.fullmatch(gold):
        return True
    if folded(gold) in folded(plain) and not _VALUE.fullmatch(gold):
        return False  # the answer is a part of it, perhaps all of it
    sides = split(plain, RELATION.pattern)
    if any(folded(side) == folded(gold) for side in sides):
        return False
    if len(sides) > 1:
        return _is_unsolved(sides, read(plain), read(gold))
    return _is_unworked(read(plain), gold, before)


def _is_unworked(formula: Reading | None, gold: str, before: str) -> bool:
    """Another value, or the same still to be worked out where a number or another form is asked for."""
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
    """An equation or a range with no side that could be the answer."""
    if formula is None or answer is None:
        return False
    if answer.kind in ("value", "quantity"):
        values = [read(side) for side in sides]
        return all(v is None or v.kind != "value" or surely_differ(v, answer) for v in values)
    if formula.kind == answer.kind == "equation":
        return surely_differ(formula, answer)
    return formula.kind != answer.kind and not any(map(_NAME.fullmatch, sides))
