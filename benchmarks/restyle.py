"""Write the gold in equivalent spellings; all of them are right.

Each style applies only where its shape is certain: a pair is not an interval, a list without braces may
have an order, and a name is added only if the question asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias
from zlib import crc32

from plain_reader import is_constant, value
from readings import (
    LATEX,
    MIRROR,
    RELATION,
    at_depth_0,
    bare,
    bracketed,
    family,
    is_infinite,
    matrix,
    plain_number,
    quantity,
    read,
    split,
)

#: A function of the answer and its question that yields other spellings.
Style: TypeAlias = Callable[[str, str], Iterator[str]]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_VULGAR = {
    (1, 2): "½",
    (1, 3): "⅓",
    (2, 3): "⅔",
    (1, 4): "¼",
    (3, 4): "¾",
    (1, 5): "⅕",
    (1, 8): "⅛",
}
_POWER = re.compile(r"(?<![_\\])((?:\\[A-Za-z]+)|[A-Za-z0-9)])\^(?:\{(-?\d{1,3})\}|(\d)(?!\d))")
_WANTED_NAME = re.compile(
    r"(?:find|(?:values?|range) of|solve for|determine|what is)\s+(?:the )?(?:(?:values?|range) of\s+)?"
    r"(?:the )?(?:real )?(?:number |parameter )?\$([A-Za-z])\$",
    re.IGNORECASE,
)
_SIGNS = (
    (r"\\pi(?![A-Za-z])\s*", "π"),
    (r"\\infty(?![A-Za-z])", "∞"),
    (r"\\cup(?![A-Za-z])", "∪"),
    (r"\\leq?(?![A-Za-z])", "≤"),
    (r"\\geq?(?![A-Za-z])", "≥"),
    (r"\\leq?(?![A-Za-z])", r"\\leqslant "),
    (r"\\cdot(?![A-Za-z])", "·"),
    (r"\\times(?![A-Za-z])", "×"),
    (r"\\pm(?![A-Za-z])", "±"),
    (r"\\theta(?![A-Za-z])\s*", "θ"),
    (r"(?<![A-Za-z{\s])-", "−"),
    (r"\\frac(?![A-Za-z])", r"\\dfrac"),
    (r"\\sqrt\{(\d+)\}(?![\w\\({^])", r"√\1"),
    (r"^\\sqrt\{(\d+)\}$", r"\1^{1/2}"),
    (r"\\mathbb\{?Z\}?", "ℤ"),
    (r"\\in(?![A-Za-z])", "∈"),
    (r"\\neq?(?![A-Za-z])", "≠"),
)
_PLAIN = re.compile(r"[-\d.,()\[\]+=:%<>\sxyz]*\d[-\d.,()\[\]+=:%<>\sxyz]*")
_WIDE = {ord(c): ord(c) + 0xFEE0 for c in "-0123456789.,()[]+=:%<>"}
_UNIT_NAMES = {"cm": "centimeters", "km": "kilometers", "kg": "kilograms", "hr": "hours"}
_UNSAFE = re.compile(r"\\(?:sum|int|lim|prod|infty|[lc]?dots|pm|mp|text|begin)|[,=<>≤≥|!]|\.\.")
_DEGREES = re.compile(r"(-?\d+(?:\.\d+)?)\^\{?\\circ\}?")
_TIME = re.compile(r"(\d{1,2}:\d\d)(?:\s|~|\\ )*(?:\\text\{\s*)?([AaPp])\.?\s?[Mm]\.?\s*\}?")


def restylings(gold: str, question: str) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every other spelling, each text once."""
    text, texts = bare(gold), {gold.strip()}
    if (
        not text or "$" in text.replace("\\$", "")[1:]
    ):  # prose; a sum of money may begin with a dollar
        return
    for name, style in STYLES.items():
        for other in style(text, question):
            if other not in texts:
                texts.add(other)
                yield name, other


# --- signs and spelling ----------------------------------------------------------------------------


def another_sign(text: str, _: str) -> Iterator[str]:
    for pattern, new in _SIGNS:
        yield re.sub(pattern, new, text)


def unicode_powers(text: str, _: str) -> Iterator[str]:
    def superscript(match: re.Match[str]) -> str:
        if match[1].startswith("\\") and match[1] not in ("\\pi", "\\theta", "\\alpha"):
            return match[0]
        return match[1] + (match[2] or match[3]).translate(_SUPERSCRIPTS)

    if not re.search(r"\\(?:sum|int|prod|Big|lim)|_|\d\^\{?\\", text):
        yield _POWER.sub(superscript, text)


def unicode_fraction(text: str, _: str) -> Iterator[str]:
    match = re.fullmatch(r"(-?)(\d*)\\[dt]?frac(?:\{(\d)\}\{(\d)\}|(\d)(\d))", text)
    if match and (sign := _VULGAR.get((int(match[3] or match[5]), int(match[4] or match[6])))):
        yield f"{match[1]}{match[2]}{sign}"


def slash(text: str, _: str) -> Iterator[str]:
    if match := re.fullmatch(r"(-?)\\[dt]?frac\{(\d+|[A-Za-z])\}\{(\d+|[A-Za-z])\}", text):
        yield f"{match[1]}{match[2]}/{match[3]}"
        yield f"{match[1]}({match[2]})/({match[3]})"


def full_width(text: str, _: str) -> Iterator[str]:
    if _PLAIN.fullmatch(text) and not re.search(r"\d,\d{3}", text):
        yield text.translate(_WIDE)
        yield text.translate({ord(c): _WIDE[ord(c)] for c in "(),"})


def thousands(text: str, _: str) -> Iterator[str]:
    if re.fullmatch(r"-?[1-9]\d{4,11}", text):
        for comma in (",", "{,}", "\\,", "\\ "):
            yield f"{int(text):,}".replace(",", comma)
    elif re.fullmatch(r"-?\d{1,3}(?:(?:\{,\}|\\[,!])\d{3})+", text):
        yield re.sub(r"\{,\}|\\[,!]", "", text)


def leading_zero(text: str, _: str) -> Iterator[str]:
    if re.fullmatch(r"-?0\.\d+", text):
        yield text.replace("0.", ".", 1)


# --- marks around an answer ------------------------------------------------------------------


def wrapped(text: str, _: str) -> Iterator[str]:
    latex = not re.search(r"\\(?:begin|text|mathrm)|[$%&]|[^\x00-\x7f]", text)
    words = re.search(r"[A-Za-z]{2,}", re.sub(r"\\[A-Za-z]+", "", text))
    if latex and not words and read(text):
        wraps = (
            r"\mathbf{@}",
            r"\boldsymbol{@}",
            r"\displaystyle @",
            r"\left. @ \right.",
            "{@}",
            "@.",
        )
        # Only one, because all of them would be most of the restylings.
        yield wraps[crc32(text.encode()) % len(wraps)].replace("@", text)


def sized_brackets(text: str, _: str) -> Iterator[str]:
    pairs = bracketed(text)
    if pairs and len(pairs[1]) > 1 and not re.search(r"\\big|\\Big", text):
        inside = text[len(pairs[0]) : -len(pairs[2])]
        yield rf"\big{pairs[0]} {inside} \big{pairs[2]}"
        yield rf"\Bigl{pairs[0]} {inside} \Bigr{pairs[2]}"
        yield rf"\left{pairs[0]} {inside} \right{pairs[2]}"


def spacing(text: str, _: str) -> Iterator[str]:
    if read(text) and not re.search(r"text|mathrm|\d,\d{3}", text):
        yield re.sub(r"(?<=[\w})])\s*([-+=<>])\s*(?=[\w\\({])", r" \1 ", text)
        yield re.sub(r"\s*,\s*", r",\\; ", text)


# --- order -----------------------------------------------------------------------------------------


def terms_reversed(text: str, _: str) -> Iterator[str]:
    signs = at_depth_0(text, re.compile(r"[-+]"))
    if not signs or not value(text) or _UNSAFE.search(text):
        return
    starts = sorted({0, *(m.start() for m in signs)})
    terms = [text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    if len(terms) > 1 and all(term.lstrip("+- ") and value(term) for term in terms):
        signed = [term if term[0] in "+-" else f"+{term}" for term in terms]
        yield " ".join(signed[::-1]).removeprefix("+").strip()


def factors_reversed(text: str, _: str) -> Iterator[str]:
    if not value(text) or re.search(
        r"\\times|\\(?!frac|dfrac|sqrt|pi|cdot|left|right)[A-Za-z]", text
    ):
        return
    factors = split(text, r"\\cdot(?![A-Za-z])")
    plain = not at_depth_0(text, re.compile(r"[-+/]"))
    if plain and len(factors) > 1 and not re.search(r"\\cdot\s*10\^", text):
        yield r" \cdot ".join(factors[::-1])
    if match := re.fullmatch(r"(\d+)\s*(\\pi|\\sqrt\{\d+\}|[a-z]\^?\d?)", text):
        yield rf"{match[2]} \cdot {match[1]}"
        yield rf"{match[1]} \cdot {match[2]}"
        yield rf"{match[1]} \times {match[2]}"
        yield f"{match[1]} * {match[2]}"


def items_reversed(text: str, _: str) -> Iterator[str]:
    reading, parts = read(text), bracketed(text)
    if reading is None:
        return
    if reading.kind == "set" and parts:
        yield rf"\{{{', '.join(parts[1][::-1])}\}}"
    if reading.kind == "list" and all(item.kind == "label" for item in reading.parts):
        items, names = split(text, ","), {item.parts[0] for item in reading.parts}
        if len(items) == len(names) == len(reading.parts):
            yield ", ".join(items[::-1])


def pieces_reversed(text: str, _: str) -> Iterator[str]:
    reading = read(text)
    if reading and reading.kind == "union":
        yield r" \cup ".join(split(text, r"\\cup(?![A-Za-z])|∪")[::-1])


def sides_swapped(text: str, _: str) -> Iterator[str]:
    reading, sides = read(text), split(text, "=")
    labelled = reading and reading.kind == "label" and re.match(r"[A-Za-z]\s*=", text)
    equation = reading and reading.kind == "equation" and not is_constant(reading.parts)
    if (labelled or equation) and len(sides) == 2:
        yield f"{sides[1]} = {sides[0]}"
        # Only for a curve: another equation with zero on one side would have to be solved again.
        curve = equation and {"x", "y"} <= set(re.findall("[a-z]", sides[0]))
        if curve and sides[1] != "0" and value(sides[1]):
            yield f"{sides[0]} - ({sides[1]}) = 0"


# --- names -----------------------------------------------------------------------------------------


def another_bound_name(text: str, question: str) -> Iterator[str]:
    match = re.match(r"[fghFGHPp]\(([a-z])\)\s*=", text)
    new = next((c for c in "tusz" if c not in text + question), "")
    glued = match and re.search(rf"[A-Za-z]{match[1]}|{match[1]}[A-Za-z]", text)
    if match and new and not glued and value(text[match.end() :]):
        yield re.sub(rf"(?<![A-Za-z\\]){match[1]}(?![A-Za-z])", new, text)
    if (parts := family(text)) and parts[1] not in re.sub(
        r"\\[A-Za-z]+|[A-Za-z]{2,}", "", question
    ):
        letter = next(c for c in "mnk" if c != parts[1])
        if letter not in re.sub(r"\\[A-Za-z]+", "", text):
            yield re.sub(rf"(?<![A-Za-z\\]){parts[1]}(?![A-Za-z])", letter, text)


def label(text: str, question: str) -> Iterator[str]:
    names = set(_WANTED_NAME.findall(question))
    known = value(text)
    if len(names) == 1 and known and is_constant(known):
        yield f"{names.pop()} = {text}"
    if match := re.fullmatch(r"([A-Za-z])\s*=\s*([^=,]+)", text):
        known = value(match[2])
        if known and is_constant(known):
            yield match[2]


def inequality(text: str, question: str) -> Iterator[str]:
    """Write an interval as an inequality in the name that the question asks for."""
    names, reading, parts = set(_WANTED_NAME.findall(question)), read(text), bracketed(text)
    if len(names) != 1 or not reading or reading.kind != "union" or not parts:
        return
    name, (low, high) = names.pop(), parts[1]
    left = "" if is_infinite(low) else f"{low} {'<' if parts[0] == '(' else chr(92) + 'le'} "
    right = "" if is_infinite(high) else f" {'<' if parts[2] == ')' else chr(92) + 'le'} {high}"
    if left or right:
        yield f"{left}{name}{right}"


def interval(text: str, question: str) -> Iterator[str]:
    """Write an inequality from either side, and as an interval unless integers are meant."""
    reading = read(text)
    if not reading or reading.kind != "inequality":
        return
    sides, ops = split(text, RELATION.pattern), reading.parts[0]
    if at_depth_0(text, RELATION)[0][0] in (">", "≥", r"\gt", r"\ge", r"\geq", r"\geqslant"):
        sides = sides[::-1]  # `read` turns it round, too
    upwards, downwards = sides[0], sides[-1]
    for op, side in zip(ops, sides[1:], strict=True):
        upwards += f" {LATEX[op]} {side}"
    for op, side in zip(ops[::-1], sides[-2::-1], strict=True):
        downwards += f" {LATEX[op.translate(MIRROR)]} {side}"
    yield from (upwards, downwards)
    names = set(sides) & set("xyt")
    if len(names) != 1 or re.search(r"integer|natural|whole", question):
        return
    at = sides.index(names.pop())
    if all(is_constant(end) for side in sides[:at] + sides[at + 1 :] if (end := value(side))):
        low = f"{'(' if ops[0] == '<' else '['}{sides[0]}" if at else r"(-\infty"
        high = f"{sides[-1]}{')' if ops[-1] == '<' else ']'}" if at < len(ops) else r"\infty)"
        yield f"{low}, {high}"


# --- units and special forms -----------------------------------------------------------------------


def unit_in_other_type(text: str, _: str) -> Iterator[str]:
    number, unit, power = quantity(text) or ("", "", "")
    if not number or not unit.isascii():
        return
    yield rf"{number}\text{{ {unit}}}{power}"
    yield rf"{number}\,\mathrm{{{unit}}}{power}"
    yield rf"{number}~\mathrm{{{unit}}}{power}"
    if plain_number(number) is not None and len(unit) > 1:  # 5 m may be a product
        yield f"{number} {unit}{power}"
    if unit in _UNIT_NAMES and not power:
        yield rf"{number} \text{{ {_UNIT_NAMES[unit]}}}"


def other_marks(text: str, _: str) -> Iterator[str]:
    """Write degrees, percents, money, times, bases, congruences, ratios and choices with other marks."""
    if match := _DEGREES.fullmatch(text):
        yield from (match[1] + end for end in ("°", r"^{\circ}", r"\degree", r" \text{ degrees}"))
    if match := re.fullmatch(r"(-?\d+(?:\.\d+)?)\\?%", text):
        yield from (match[1] + end for end in ("%", r"\%", r"\,\%", r"\text{ percent}"))
    if match := re.fullmatch(r"\\?\$(\d[\d,]*(?:\.\d\d)?)", text):
        yield from (f"{match[1]} dollars", rf"\text{{\${match[1]}}}", rf"\${match[1]}")
    if match := _TIME.fullmatch(text):
        half = match[2].lower()
        yield from (
            f"{match[1]} {end}"
            for end in (f"{half}.m.", f"{half.upper()}M", rf"\text{{ {half}.m.}}")
        )
    if match := re.fullmatch(r"(\d+)_\{?(\d{1,2})\}?", text):
        yield from (f"{match[1]}_{{{match[2]}}}", f"{match[1]}_{{({match[2]})}}")
    if match := re.fullmatch(r"(.+)\\pmod\{?\s*(\d+)\}?", text):
        yield from (rf"{match[1]}\ (\bmod\ {match[2]})", f"{match[1]} (mod {match[2]})")
    if match := re.fullmatch(r"(\d+)\s*:\s*(\d+)", text):
        yield from (f"{match[1]} : {match[2]}", rf"{match[1]}\colon {match[2]}")
    if match := re.fullmatch(r"(?:\\text\{)?\(?([A-E])\)?\}?", text):
        letter = match[1]
        yield from (f"({letter})", rf"\text{{{letter}}}", rf"\textbf{{({letter})}}", f"{letter}.")


def words(text: str, _: str) -> Iterator[str]:
    match = re.fullmatch(r"(?:\\text\{\s*)?([A-Za-z]{4,}(?: [A-Za-z]{3,})?)\s*\}?", text)
    if match:
        yield from (match[1], rf"\text{{{match[1]}}}", rf"\textbf{{{match[1]}}}", match[1].lower(), match[1].upper(), f"{match[1]}.")  # fmt: skip
    if re.fullmatch(r"[一-鿿]{1,6}", text):
        yield from (f"{text}。", rf"\text{{{text}}}")


def matrix_in_other_type(text: str, _: str) -> Iterator[str]:
    if not read(text) or not (parts := matrix(text)):
        return
    kind, rows = parts
    for other in {"pmatrix", "bmatrix"} - {kind}:
        body = "\\\\\n".join("&".join(row) for row in rows)
        yield rf"\begin{{{other}}}{body}\end{{{other}}}"
    if all(len(row) == 1 for row in rows) and len(rows) > 1:
        yield f"({', '.join(row[0] for row in rows)})"


def vector_in_other_type(text: str, _: str) -> Iterator[str]:
    parts = bracketed(text)
    if parts and parts[0] == r"\langle" and parts[2] == r"\rangle" and len(parts[1]) > 1:
        yield f"({', '.join(parts[1])})"
        yield rf"\left\langle {', '.join(parts[1])} \right\rangle"


def branches_reversed(text: str, _: str) -> Iterator[str]:
    match = re.fullmatch(r"(.*\\begin\{cases\})(.*)(\\end\{cases\})", text, re.DOTALL)
    if match and "otherwise" not in text and "else" not in text:
        rows = [row.strip() for row in match[2].split(r"\\") if row.strip()]
        yield match[1] + r" \\ ".join(rows[::-1]) + match[3]


STYLES: dict[str, Style] = {
    style.__name__.replace("_", " "): style
    for style in (
        another_sign,
        unicode_powers,
        unicode_fraction,
        slash,
        full_width,
        thousands,
        leading_zero,
        wrapped,
        sized_brackets,
        spacing,
        terms_reversed,
        factors_reversed,
        items_reversed,
        pieces_reversed,
        sides_swapped,
        another_bound_name,
        label,
        inequality,
        interval,
        unit_in_other_type,
        other_marks,
        words,
        matrix_in_other_type,
        vector_in_other_type,
        branches_reversed,
    )
}
