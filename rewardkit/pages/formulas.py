r"""Find formulas in texts, and show them as MathML with their source at hand.

Formulas stand in `$...$`, `$$...$$`, `\(...\)` and `\[...\]`, in `\boxed{...}`, and in environments
such as `align`. A dollar sign may also mean money. What is not surely a formula stays text.

latex2mathml reads LaTeX, under limits. Texts are hostile, and the library escapes nothing: its own output is
never used. Of its tree known elements and attributes are kept, every text is escaped, and what the tree would
hide or show otherwise than LaTeX does is refused, so that the page shows the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup, escape

from rewardkit.errors import call_catching

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

#: Most characters of a formula, and groups inside each other. The library takes at most 0.2 s for one.
MAX_FORMULA_CHARACTERS = 2000
MAX_GROUPS = 20

#: Most elements of a formula inside each other.
MAX_DEPTH = 60

#: Formulas that are remembered, because responses to one prompt repeat them.
REMEMBERED_FORMULAS = 4096

_TAGS = frozenset(
    "mrow mi mn mo mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mtable "
    "mtr mtd mstyle menclose".split()
)
#: Elements with a number of parts of their own, without which a browser shows an error.
_PARTS = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
_LENGTH = r"-0\.\d{1,3}em|\d{1,2}(?:\.\d{1,4})?(?:em|ex|pt|px|mm|cm|in)|0|negativethinmathspace"
_WORD = "true|false|prefix|infix|postfix|normal|bold|bold-italic|left|center|right|[0-3]"
_ATTRIBUTES = {
    **dict.fromkeys(("width", "minsize", "maxsize", "linethickness"), re.compile(_LENGTH)),
    **dict.fromkeys(
        "stretchy fence form accent accentunder movablelimits mathvariant columnalign displaystyle "
        "scriptlevel".split(),
        re.compile(_WORD),
    ),
}

#: What the library would show otherwise than it is meant, or that changes what follows.
_UNSHOWN = re.compile(
    r"""
    [\^_]\s*(?:[0-9]{2}|[-+]\s*[\w\\]|[^\x00-\x7f]{2})  # 2^10 and x^-1 mean one thing to people
  | \\(?:text\w*|mbox|hbox|fbox|operatorname|tag)\*?\s*\{[^{}]*[\\{$^_&\#]  # other than plain text
  | \\(?:(?:re)?newcommand|newenvironment|DeclareMathOperator|def|let|verb|unicode|require)(?![A-Za-z])
  | \\(?:href|class|cssId|style|phantom|[hv]phantom|rule|tag|label)(?![A-Za-z])
  | \\boxed\s*(?:\{\s*\}|[^\s{])
  | (?<!\\)\\[0-9]  # not a command
    """,
    re.VERBOSE,
)
#: Two words with a blank between are prose, which LaTeX shows without its blanks.
_PROSE = re.compile(r"(?<![\\A-Za-z])(?:[A-Za-z]{2,}\s+[A-Za-z]{3,}|[A-Za-z]{3,}\s+[A-Za-z]{2,})")
_NOT_PROSE = re.compile(
    r"\\(?:text\w*|mbox|hbox|operatorname|begin|end)\*?\s*\{[^{}]*\}|\\[A-Za-z]+"
)
_HAS_CELLS = re.compile(r"\\(?:begin|\w*matrix|substack|cases)")
#: Environments that the library reads as the lines of one formula.
_ALIGNED = re.compile(
    r"(?<=\\begin)\{(?:aligned|gathered|split)\}|(?<=\\end)\{(?:aligned|gathered|split)\}"
)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ENTITY = re.compile(r"&#x([0-9A-F]{1,6});")


class MathNode(NamedTuple):
    """An element of MathML: its parts, or else its text."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    parts: tuple[MathNode, ...] = ()
    text: str = ""


class UnshownError(ValueError):
    """A formula is left as text."""


@lru_cache(REMEMBERED_FORMULAS)
def parse_latex(latex: str) -> tuple[MathNode, ...] | None:
    """Return the parts of a formula in a row; None if it has to be shown as text.

    Args:
        latex: the formula without its dollar signs or brackets.
    """
    if len(latex) > MAX_FORMULA_CHARACTERS or not latex.strip() or _is_unshown(latex):
        return None
    nodes = call_catching(_convert, latex)  # the library raises errors of every kind
    return nodes or None if isinstance(nodes, tuple) else None


def _convert(latex: str) -> tuple[MathNode, ...]:
    from latex2mathml.converter import convert_to_element

    row = convert_to_element(_ALIGNED.sub("{align*}", latex))[0]
    return tuple(_known(child, MAX_DEPTH) for child in row)


def node_markup(node: MathNode) -> Markup:
    """Return a part of a formula as MathML."""
    inside = Markup("").join(map(node_markup, node.parts)) if node.parts else escape(node.text)
    attributes = Markup("").join(Markup(' {}="{}"').format(*pair) for pair in node.attributes)
    return Markup("<{0}{1}>{2}</{0}>").format(node.tag, attributes, inside)


def _is_unshown(latex: str) -> bool:
    plain = _ESCAPED.sub("", latex)
    depths = accumulate((char == "{") - (char == "}") for char in plain)
    return (
        not all(char.isprintable() or char.isspace() for char in latex)
        or max(depths, default=0) > MAX_GROUPS
        or plain.count("{") != plain.count("}")
        or not {"$", "%", "#"}.isdisjoint(plain)  # after % the library hides the rest
        or bool(_UNSHOWN.search(latex))
        or bool(_PROSE.search(_NOT_PROSE.sub(" | ", latex)))
        or (("&" in plain or r"\\" in latex) and not _HAS_CELLS.search(latex))
    )


def _known(element: Element, depth: int) -> MathNode:
    """Return an element of the library's tree with what a page may have of it."""
    if element.tag not in _TAGS or not depth or element.get("linebreak"):
        raise UnshownError
    if any(element.get(name, "none") != "none" for name in ("columnlines", "rowlines")):
        raise UnshownError  # browsers draw no lines
    attributes = tuple(pair for pair in element.items() if pair[0] in _ATTRIBUTES)
    if not all(_ATTRIBUTES[name].fullmatch(value) for name, value in attributes):
        raise UnshownError
    # The library writes some characters as references, and leaves unknown commands as they are.
    text = _ENTITY.sub(lambda code: chr(int(code[1], 16)), element.text or "")
    if (len(text) > 1 and text.startswith("\\")) or not all(
        c.isprintable() or c == "\xa0" for c in text
    ):
        raise UnshownError
    parts = tuple(_known(child, depth - 1) for child in element)
    if len(parts) != _PARTS.get(element.tag, len(parts)):
        raise UnshownError
    if element.tag == "menclose":  # MathML Core has none
        if element.get("notation") != "box":
            raise UnshownError
        return MathNode("mrow", (("class", "boxed"),), parts)
    return MathNode(element.tag, attributes, parts, text)


#: Most blanks before a display that it replaces.
MAX_INDENT = 40

#: Most formulas of a text; the rest of it is shown as text.
MAX_FORMULAS = 300


class Formula(NamedTuple):
    """A formula in a text.

    Attributes:
        start: its first character, with its dollar sign or bracket.
        end: the character after its last.
        parts: its parts in a row.
        is_display: whether it stands on a line of its own.
    """

    start: int
    end: int
    parts: tuple[MathNode, ...]
    is_display: bool


class _Span(NamedTuple):
    """What may be a formula: its offsets in the text, and those of what is inside."""

    start: int
    end: int
    inside: tuple[int, int]
    is_display: bool


_CLOSERS = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]", "[asy]": "[/asy]", "```": "```"}
_DELIMITER = re.compile(r"(\\[()\[\]])|\\.|(\$\$?|\[/?asy\]|```)", re.DOTALL)
_ALONE = re.compile(
    r"\\boxed\s*(\{)|\\begin\{((?:[pbBvV]?matrix|smallmatrix|array|cases|aligned|align|split|gathered"
    r"|equation|gather)\*?)\}"
)
_LINE_END = re.compile(r"[ \t]{0,40}\n")
_BRACE = re.compile(r"\\.|([{}])", re.DOTALL)
#: An answer that is one formula, also with blanks inside its dollar signs.
_DOLLARS = re.compile(r"\s*(\$\$?)([^$]+)\1\s*", re.DOTALL)
#: What a formula between dollar signs neither starts nor ends with: `6$/kg`, `$5 - $3`, `$12/$`.
_NOT_AT_START = tuple(" \t\n/,)")
_NOT_AT_END = tuple(" \t\n=+-*/<>(,")
#: Characters of a source from which its formula may break after a relation.
_BREAKABLE_CHARACTERS = 30
_RELATIONS = frozenset("=<>≤≥≠≈≡∼≃≅∝∈⊂⊆→⇒⟹⇔⟺⩽⩾≪≫")


def find_formulas(text: str) -> Iterator[Formula]:
    """Yield the formulas of a text that can be shown, in order."""
    if "\\" not in text and "$" not in text:
        return
    for span in islice(_spans(text), MAX_FORMULAS):
        if parts := parse_latex(text[slice(*span.inside)]):
            start, end = _line_of(text, span) if span.is_display else span[:2]
            yield Formula(start, end, parts, span.is_display)


def _line_of(text: str, span: _Span) -> tuple[int, int]:
    """Return the ends of a display with the blanks beside it and its line break, which it replaces."""
    before = text[max(0, span.start - MAX_INDENT) : span.start]
    indent = len(before) - len(before.rstrip(" \t"))
    is_first = indent == len(before) or before[-indent - 1] == "\n"
    after = _LINE_END.match(text, span.end)
    return span.start - is_first * indent, after.end() if after else span.end


def show_formulas(text: str) -> Markup:
    """Return a text as HTML, with its formulas as MathML and the rest escaped."""
    return _markup(text, find_formulas(text))


def show_value(text: str) -> Markup:
    """Return an answer as HTML; without delimiters it may be a formula as a whole."""
    return _markup(text, find_value(text))


#: A formula: whether it is a display, its source, which the page hides, and MathML.
_FORMULA = Markup('<span class="math{}"><span class="tex" aria-hidden="true">{}</span>{}</span>')


def _markup(text: str, formulas: Iterable[Formula]) -> Markup:
    pieces, end = [], 0
    for formula, source, before in _sources(text, formulas):
        display = (" display", Markup(' displaystyle="true"')) if formula.is_display else ("", "")
        lines = (
            Markup("<math{}>{}</math>").format(display[1], Markup("").join(map(node_markup, line)))
            for line in _lines(formula.parts, source)
        )
        math = Markup("<wbr>").join(lines)
        pieces += [escape(before), _FORMULA.format(display[0], source, math)]
        end = formula.end
    return Markup("").join([*pieces, escape(text[end:])])


def _sources(text: str, formulas: Iterable[Formula]) -> Iterator[tuple[Formula, str, str]]:
    """Yield each formula with its source and the text between it and the one before."""
    end = 0
    for formula in formulas:
        yield formula, text[formula.start : formula.end], text[end : formula.start]
        end = formula.end


def find_value(text: str) -> list[Formula]:
    """Return the formulas of an answer, which may be one as a whole, without delimiters."""
    formulas, whole = list(find_formulas(text)), _DOLLARS.fullmatch(text)
    if formulas or not (whole or "\\" in text or "^" in text):
        return formulas
    parts = parse_latex(whole[2] if whole else text)
    return [Formula(0, len(text), parts, is_display=False)] if parts else []


def pack_formulas(formulas: Iterable[Formula], text: str) -> list[list[Any]]:
    """Return formulas as lists for `report.js`, which builds MathML from them.

    Each is the distance from the end of the one before, its length, both in UTF-16 as JavaScript
    counts, 1 for a display, and its lines. A node is a list of its tag, its attributes, and its parts
    or its text.
    """
    return [
        [
            *(utf16_length(before), utf16_length(source), int(formula.is_display)),
            *(list(map(_pack, line)) for line in _lines(formula.parts, source)),
        ]
        for formula, source, before in _sources(text, formulas)
    ]


def utf16_length(text: str) -> int:
    """Return the length of a text as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _pack(node: MathNode) -> list[Any]:
    parts = map(_pack, node.parts) if node.parts else (node.text,)
    return [node.tag, dict(node.attributes), *parts]


def _lines(parts: Sequence[MathNode], source: str) -> Iterator[Sequence[MathNode]]:
    """Yield the parts of a long formula up to each relation: browsers break no line in a formula."""
    start = 0
    for end, node in enumerate(parts[:-1], 1):
        is_relation = node.tag == "mo" and node.text in _RELATIONS
        if is_relation and len(source) > _BREAKABLE_CHARACTERS:
            yield parts[start:end]
            start = end
    yield parts[start:]


def _spans(text: str) -> Iterator[_Span]:
    """Yield what is between delimiters, and the boxes and environments outside of them."""
    marks = [match for match in _DELIMITER.finditer(text) if match[1] or match[2]]
    previous_end = 0
    for mark, following in pairwise(marks):
        closer = _CLOSERS.get(mark[0], "")
        if mark.start() < previous_end or not closer:
            continue
        if mark[0] in ("[asy]", "```"):  # code; without an end it goes on to the end of the text
            yield from _spans_alone(text, previous_end, mark.start())
            end = text.find(closer, mark.end())
            previous_end = end + len(closer) if end >= 0 else len(text)
        elif following[0] == closer and _is_formula(text, mark, following):
            yield from _spans_alone(text, previous_end, mark.start())
            inside = (mark.end(), following.start())
            yield _Span(mark.start(), following.end(), inside, mark[0] in ("$$", r"\["))
            previous_end = following.end()
    yield from _spans_alone(text, previous_end, len(text))


def _is_formula(text: str, opening: re.Match[str], closing: re.Match[str]) -> bool:
    """Whether two delimiters are near enough and, for dollar signs, do not mean money."""
    if closing.start() - opening.end() > MAX_FORMULA_CHARACTERS:
        return False
    inside = text[opening.end() : closing.start()]
    if opening[0] != "$":
        return True
    before = text[max(0, opening.start() - 1) : opening.start()]
    if before.isascii() and before.isalnum():  # `5$`, `A$5`
        return False
    is_tight = not inside.startswith(_NOT_AT_START) and not inside.endswith(_NOT_AT_END)
    return (
        is_tight and "\n\n" not in inside and not text[closing.end() : closing.end() + 1].isdigit()
    )


def _spans_alone(text: str, start: int, end: int) -> Iterator[_Span]:
    """Yield the boxes and environments from `start` to `end`; one that is not closed ends the search."""
    while match := _ALONE.search(text, start, end):
        limit = min(end, match.end() + MAX_FORMULA_CHARACTERS)
        name = match[2]
        close = (
            text.find(rf"\end{{{name}}}", match.end(), limit) + len(rf"\end{{{name}}}")
            if name
            else _closing_brace(text, match.end(), limit)
        )
        if close <= match.end():
            return
        yield _Span(match.start(), close, (match.start(), close), bool(name))
        start = close


def _closing_brace(text: str, start: int, end: int) -> int:
    """Return the offset behind the brace that closes an open one; -1 if there is none."""
    depth = 1
    for match in _BRACE.finditer(text, start, end):
        depth += {"{": 1, "}": -1}.get(match[1], 0)
        if not depth:
            return match.end()
    return -1
