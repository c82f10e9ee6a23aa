r"""LaTeX -> MathML, by latex2mathml under limits.

Texts are hostile, and the library escapes nothing: its own output is never used. Of its tree known
elements and attributes are kept, every text is escaped, and what the tree would hide or show otherwise
than LaTeX does is refused, so that the page shows the source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

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
    """A formula is left as text. Internal to this module."""


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
