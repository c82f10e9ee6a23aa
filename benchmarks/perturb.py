"""Make wrong answers that look like the gold, by one change in each.

An edit changes the text and counts only where `surely_differ` is certain that the answers differ.
`perturb_marks.py` has the edits of words, units and marks, which the reader does not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from perturb_marks import SURE, Edit
from readings import (
    at_depth_0,
    bare,
    bracketed,
    family,
    is_infinite,
    matrix,
    plain_number,
    read,
    split,
    surely_differ,
)

_INTEGER = re.compile(r"(?<![\d._\\A-Za-z{])\d{1,6}(?![\d.])")
_GROUPED = re.compile(r"\d{1,3}(?:(?:,|\{,\}|\\[,!])\d{3})+(?!\d)")
_BRACED = re.compile(r"(?<=\{)\d{1,6}(?=\})")
_EXPONENT = re.compile(r"(?<=\^)\d(?!\d)|(?<=\^\{)-?\d{1,3}(?=\})")
_FRACTION = re.compile(r"\\([dt]?)frac\{([^{}]+)\}\{([^{}]+)\}")
_ROOT = re.compile(r"\\sqrt(?:\{([^{}]+)\}|(\d))")
_SIGN = re.compile(r"[-+]")
_CONSTANT = re.compile(r"[-+]\s*[Cck](?![A-Za-z])|[Cc]_|\\pm|\\mp")
_LETTER = re.compile(r"(?<![A-Za-z\\_])(?<!\\text\{)[xyz](?![A-Za-z])")


def perturbations(gold: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every wrong answer, each text once."""
    text, texts = bare(gold), {gold.strip()}
    reading = read(text)
    for name, edit in SURE.items():
        for other in edit(text):
            if other not in texts:
                texts.add(other)
                yield name, other
    if reading is None:
        return
    for name, edit in READ.items():
        for other in edit(text):
            if other not in texts and surely_differ(reading, read(other)):
                texts.add(other)
                yield name, other


def _replace(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _first_and_last(matches: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the first and the last match."""
    return [matches[0], matches[-1]][: len(matches)] if matches else []


# --- edits that the reader judges ------------------------------------------------------------------


def another_number(text: str) -> Iterator[str]:
    if _CONSTANT.search(text) and not family(text):
        return
    groups = [match.span() for match in _GROUPED.finditer(text)]
    plain = [m for m in _INTEGER.finditer(text) if not any(a <= m.start() < b for a, b in groups)]
    for match in _first_and_last(plain) + _first_and_last([*_BRACED.finditer(text)]):
        yield _replace(text, match, str(int(match[0]) + 1))


def another_exponent(text: str) -> Iterator[str]:
    if re.search(r"=\s*0$|^0\s*=", text):  # (x-1)^2 = 0 has the solutions of (x-1)^3 = 0
        return
    for match in _first_and_last([*_EXPONENT.finditer(text)]):
        yield _replace(text, match, str(int(match[0]) + 1))


def digits_swapped(text: str) -> Iterator[str]:
    if plain_number(text) is None:
        return
    for match in list(re.finditer(r"\d(?=\d)", text))[
        :12
    ]:  # from the 15th digit on, a change may be rounding noise
        at = match.start()
        yield text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def point_moved(text: str) -> Iterator[str]:
    if match := re.fullmatch(r"(-?\d*)\.(\d)(\d*)", text):
        yield f"{match[1]}{match[2]}.{match[3] or 0}"
        if match[1].strip("-"):
            yield f"{match[1][:-1] or 0}.{match[1][-1]}{match[2]}{match[3]}"


def sign_of_the_whole(text: str) -> Iterator[str]:
    if re.fullmatch(r"-?(?:\d+(?:\.\d+)?|\\[dt]?frac\{\w+\}\{\w+\})", text):
        yield text[1:] if text.startswith("-") else f"-{text}"


def sign_of_a_term(text: str) -> Iterator[str]:
    if not _CONSTANT.search(text):
        for match in _first_and_last([m for m in at_depth_0(text, _SIGN) if m.start()]):
            yield _replace(text, match, {"-": "+", "+": "-"}[match[0]])


def fraction_upside_down(text: str) -> Iterator[str]:
    for match in _first_and_last([*_FRACTION.finditer(text)]):
        yield _replace(text, match, rf"\{match[1]}frac{{{match[3]}}}{{{match[2]}}}")


def root_dropped(text: str) -> Iterator[str]:
    for match in _first_and_last([*_ROOT.finditer(text)]):
        yield _replace(text, match, f"({match[1] or match[2]})")


def another_variable(text: str) -> Iterator[str]:
    names = set(_LETTER.findall(text))
    if (
        len(names) == 1
        and not re.match(r"[xyz]\s*=", text)
        and "w" not in text
        and not re.search(r"[A-Za-z}]\(", text)
    ):
        yield _LETTER.sub("w", text)


def another_function(text: str) -> Iterator[str]:
    for one, two in (("\\sin", "\\cos"), ("\\cos", "\\sin"), ("\\ln", "\\sqrt")):
        if one in text:
            yield text.replace(one, two, 1)


def items_swapped(text: str) -> Iterator[str]:
    if (parts := bracketed(text)) and parts[0] in ("(", "[", "\\langle") and not _is_interval(text):
        for i, j in combinations(range(len(parts[1])), 2):
            items = list(parts[1])
            items[i], items[j] = items[j], items[i]
            yield f"{parts[0]} {', '.join(items)} {parts[2]}"


def item_dropped(text: str) -> Iterator[str]:
    reading, parts = read(text), bracketed(text)
    if reading and reading.kind in ("tuple", "set") and parts:
        for n in _ends(parts[1]):
            items = [item for m, item in enumerate(parts[1]) if m != n]
            yield f"{parts[0]} {', '.join(items)} {parts[2]}" if items[1:] else items[0]
    if reading and reading.kind == "list":
        items = split(text, r",|;|\\text\{\s*(?:and|or)\s*\}|、")
        for n in _ends(items):
            yield ", ".join(item for m, item in enumerate(items) if m != n)


def _ends(items: list[str]) -> set[int]:
    return {0, len(items) - 1} if len(items) > 1 else set()


def answer_beside(text: str) -> Iterator[str]:
    reading = read(text)
    choice = re.fullmatch("[A-J]", text)  # `A, 4397` may be a letter and the text of its option
    if reading and reading.kind in ("value", "label") and len(text) < 80 and not choice:
        yield rf"{text} \text{{ or }} 4391"
        yield f"{text}, 4397"


def another_bracket(text: str) -> Iterator[str]:
    if not _is_interval(text):
        return
    other = {"(": "[", "[": "(", ")": "]", "]": ")"}
    pieces = split(text, r"\\cup(?![A-Za-z])|∪")
    for n, piece in enumerate(pieces):
        parts = bracketed(piece)
        if not parts or len(parts[1]) != 2:
            return
        opening, (low, high), closing = parts
        changed = [] if is_infinite(low) else [f"{other[opening]}{low},{high}{closing}"]
        changed += [] if is_infinite(high) else [f"{opening}{low},{high}{other[closing]}"]
        for one in changed:
            yield r" \cup ".join([*pieces[:n], one, *pieces[n + 1 :]])


def piece_dropped(text: str) -> Iterator[str]:
    pieces = split(text, r"\\cup(?![A-Za-z])|∪")
    if len(pieces) > 1 and _is_interval(text):
        for n in _ends(pieces):
            yield r" \cup ".join(piece for m, piece in enumerate(pieces) if m != n)


def _is_interval(text: str) -> bool:
    reading = read(text)
    return reading is not None and reading.kind == "union"


def another_relation(text: str) -> Iterator[str]:
    pairs = (
        ("\\leq", "<"),
        ("\\geq", ">"),
        ("\\le", "<"),
        ("\\ge", ">"),
        ("<", "\\le "),
        (">", "\\ge "),
    )
    for one, two in pairs:
        if match := re.search(re.escape(one) + r"(?![A-Za-z])", text):
            yield _replace(text, match, two)
    yield text.translate(str.maketrans("<>", "><")) if re.search("[<>]", text) else text


def matrix_turned(text: str) -> Iterator[str]:
    if not (parts := matrix(text)):
        return
    kind, rows = parts
    columns = [list(column) for column in zip(*rows, strict=False)]
    for changed in (columns, rows[::-1], [row[::-1] for row in rows]):
        body = r" \\ ".join(" & ".join(row) for row in changed)
        yield rf"\begin{{{kind}}} {body} \end{{{kind}}}"


READ: dict[str, Edit] = {
    edit.__name__.replace("_", " "): edit
    for edit in (
        another_number,
        another_exponent,
        digits_swapped,
        point_moved,
        sign_of_the_whole,
        sign_of_a_term,
        fraction_upside_down,
        root_dropped,
        another_variable,
        another_function,
        items_swapped,
        item_dropped,
        answer_beside,
        another_bracket,
        piece_dropped,
        another_relation,
        matrix_turned,
    )
}
