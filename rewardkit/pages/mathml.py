r"""LaTeX -> MathML, as it was written.

The answer engine reads values: to it `\frac{2}{4}` is one half, and its trees do not keep the form.
This reader keeps it, and gives up (None) on all that it cannot show exactly as LaTeX does: unknown
commands, text in place of mathematics, and scripts such as `2^10`, which people read as `2^{10}` and
LaTeX does not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from markupsafe import Markup, escape

from rewardkit.pages import math_symbols as symbols
from rewardkit.pages.math_reader import FormulaReader, MathNode, UnshownError, group

#: Most characters of a formula.
MAX_FORMULA_CHARACTERS: Final = 2000

#: Formulas that are remembered, because responses to one prompt repeat them.
REMEMBERED_FORMULAS: Final = 4096

_NAME = re.compile(r"\s*\{([A-Za-z]+\*?)\}")
_COLUMNS = re.compile(r"\s*\{[lcr\s]*\}")
_ROW_GAP = re.compile(r"\s*\[-?[0-9.]+\s*(?:pt|em|ex|mm|cm)\]")
_WIDTH = re.compile(r"\s*\{[0-9.]+\s*(?:pt|em|ex|mm|cm|in)\}")
_PLAIN = re.compile(r"\s*\{([A-Za-z0-9]+)\}")
_ESCAPE = re.compile(r"\\([%$&_#{}, ])")

_TEXT_COMMANDS = frozenset(
    "text textnormal textrm textup textmd textsf texttt textit textbf textsc mbox hbox".split()
)


@lru_cache(REMEMBERED_FORMULAS)
def parse_latex(latex: str) -> tuple[MathNode, ...] | None:
    """Return the parts of a formula in a row; None if it has to be shown as text.

    Args:
        latex: the formula without its dollar signs or brackets.
    """
    if len(latex) > MAX_FORMULA_CHARACTERS or not latex.strip():
        return None
    reader = CommandReader(latex)
    try:
        return tuple(reader.parse_row(frozenset({""})))
    except UnshownError:
        return None


def to_mathml(latex: str) -> Markup | None:
    """Return a formula as MathML without the `math` element; None as in `parse_latex`."""
    parts = parse_latex(latex)
    return None if parts is None else Markup("").join(map(node_markup, parts))


def node_markup(node: MathNode) -> Markup:
    """Return a part of a formula as MathML."""
    tag, attributes = symbols.KINDS[node.kind]
    inside = Markup("").join(map(node_markup, node.parts)) if node.parts else escape(node.text)
    opening = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return Markup(f"<{tag}{opening}>{inside}</{tag}>")  # noqa: S704 - the tables' names, escaped text


class CommandReader(FormulaReader):
    """The commands of a formula."""

    def read_command(self, name: str) -> list[MathNode]:
        """Read the arguments of a command."""
        if name in symbols.IGNORED:
            return []
        name = " " if name.isspace() else name
        if name in symbols.SPACES:
            return [MathNode(symbols.SPACES[name])] if symbols.SPACES[name] else []
        if name == "qquad":
            return [MathNode("quad"), MathNode("quad")]
        if name in _TEXT_COMMANDS or name in ("mathrm", "operatorname"):
            return [self.read_text(name)]
        if node := _read_symbol(name):
            return [node]
        if name not in _COMMANDS:
            raise UnshownError
        self.enter()
        node = _COMMANDS[name](self, name)
        self.depth -= 1
        return [node]

    def read_text(self, name: str) -> MathNode:
        r"""Read `\text{...}`, in which blanks count and mathematics is not read."""
        self.at += name == "operatorname" and self.source[self.at : self.at + 1] == "*"
        self.expect("{")
        end = self.at
        while end < len(self.source) and self.source[end] != "}":
            end += 2 if self.source[end] == "\\" else 1
        inside, self.at = self.source[self.at : end], end
        self.expect("}")
        plain = _ESCAPE.sub("", inside)
        if not inside or set(plain) & set("\\{}$^_&#"):
            raise UnshownError
        text = _ESCAPE.sub(lambda match: match[1].replace(",", " "), inside).replace("~", " ")
        if name in _TEXT_COMMANDS:
            return MathNode("words", text=re.sub(r"\s+", "\N{NO-BREAK SPACE}", text))
        if name == "operatorname":
            return MathNode("function", text="".join(text.split()))
        return MathNode("upright" if len(text) == 1 else "words", text="".join(text.split()))

    def read_fraction(self, name: str) -> MathNode:
        """Read a numerator and a denominator."""
        kind = "display-fraction" if name in ("dfrac", "cfrac") else "fraction"
        return MathNode(kind, (self.parse_argument(), self.parse_argument()))

    def read_binomial(self, _: str) -> MathNode:
        """Read a binomial coefficient."""
        stack = MathNode("stack", (self.parse_argument(), self.parse_argument()))
        return MathNode("row", _fenced("(", [stack], ")"))

    def read_root(self, _: str) -> MathNode:
        """Read a root, with its degree in brackets."""
        if not self.accept("["):
            return MathNode("square-root", (self.parse_argument(),))
        degree = group(self.parse_row(frozenset("]")))
        self.expect("]")
        return MathNode("root", (self.parse_argument(), degree))

    def read_accent(self, name: str) -> MathNode:
        """Read what is under an accent."""
        sign, is_wide = symbols.ACCENTS[name]
        accent = MathNode("wide" if is_wide else "accent", text=sign)
        return MathNode("accented", (self.parse_argument(), accent))

    def read_lower_accent(self, name: str) -> MathNode:
        """Read what is above a line or a brace."""
        accent = MathNode("wide", text=symbols.LOWER_ACCENTS[name])
        kind = "braced" if name == "underbrace" else "underlined"
        return MathNode(kind, (self.parse_argument(), accent))

    def read_stack(self, name: str) -> MathNode:
        r"""Read `\overset{a}{b}` and `\underset{a}{b}`."""
        script, base = self.parse_argument(), self.parse_argument()
        return MathNode("under" if name == "underset" else "over", (base, script))

    def read_box(self, _: str) -> MathNode:
        r"""Read the argument of `\boxed`."""
        inside = self.parse_group()
        if inside == MathNode("row"):
            raise UnshownError
        return MathNode("boxed", (inside,))

    def read_bold(self, _: str) -> MathNode:
        """Read a bold argument."""
        if plain := _PLAIN.match(self.source, self.at):
            self.at = plain.end()
            return MathNode("bold", text=plain[1])
        return self.parse_group()

    def read_operator(self, _: str) -> MathNode:
        """Read a group that stands for an operator."""
        return self.parse_group()

    def read_gap(self, _: str) -> MathNode:
        """Read a space of any width."""
        if not (width := _WIDTH.match(self.source, self.at)):
            raise UnshownError
        self.at = width.end()
        return MathNode("medium")

    def read_styled(self, name: str) -> MathNode:
        """Read a capital letter in another font."""
        node = self.parse_argument()
        if node.kind != "name" or not re.fullmatch("[A-Z]", node.text):
            raise UnshownError
        return MathNode("upright", text=symbols.styled_letter(node.text, name))

    def read_modulus(self, name: str) -> MathNode:
        r"""Read `\pmod{7}` or `\bmod`."""
        word, gap = MathNode("words", text="mod"), MathNode("medium")
        if name != "pmod":
            return MathNode("row", (gap, word, gap))
        inside = self.parse_argument()
        fences = MathNode("opening", text="("), MathNode("closing", text=")")
        return MathNode("row", (gap, fences[0], word, gap, inside, fences[1]))

    def read_negation(self, _: str) -> MathNode:
        r"""Read the sign that `\not` strikes out."""
        node = group(self.parse_atoms())
        text = unicodedata.normalize("NFC", f"{node.text}\N{COMBINING LONG SOLIDUS OVERLAY}")
        if len(text) != 1:
            raise UnshownError
        return MathNode("relation", text=text)

    def read_delimiter(self, kind: str) -> list[MathNode]:
        r"""Read the sign after `\left`, `\middle` or `\right`; a full stop is none."""
        _, text = self.peek()
        self.at += len(text)
        if text == ".":
            return []
        sign = symbols.DELIMITERS.get(text[1:], "") if text[:1] == "\\" else text
        if not sign or sign not in "()[]{}|/‖⟨⟩⌊⌋⌈⌉":
            raise UnshownError
        return [MathNode(kind, text=sign)]

    def read_fences(self, _: str) -> MathNode:
        r"""Read up to `\right`."""
        left = self.read_delimiter("left")
        inside = self.parse_row(frozenset({r"\right"}))
        self.expect(r"\right")
        return MathNode("row", (*left, *inside, *self.read_delimiter("right")))

    def read_middle(self, _: str) -> MathNode:
        r"""Read the sign after `\middle`."""
        return group(self.read_delimiter("middle"))

    def read_environment(self, _: str) -> MathNode:
        """Read a matrix, cases or rows of formulas."""
        name = self.read_name()
        if name not in symbols.ENVIRONMENTS:
            raise UnshownError
        left, right, kind = symbols.ENVIRONMENTS[name]
        if name == "array":
            columns = _COLUMNS.match(self.source, self.at)
            if not columns:  # lines between the columns carry meaning
                raise UnshownError
            self.at = columns.end()
        lines: list[list[MathNode]] = [[]]
        while not self.accept(r"\end"):
            lines[-1].append(MathNode("cell", tuple(self.parse_row(_CELL_ENDS))))
            if self.accept(r"\\"):
                gap = _ROW_GAP.match(self.source, self.at)
                self.at = gap.end() if gap else self.at
                lines.append([])
            elif not self.accept("&") and self.peek()[1] != r"\end":
                raise UnshownError
        if self.read_name() != name:
            raise UnshownError
        rows = [MathNode("line", tuple(line)) for line in lines if any(cell.parts for cell in line)]
        return MathNode("row", _fenced(left, [MathNode(kind, tuple(rows))], right))

    def read_name(self) -> str:
        """Read the name of an environment in braces."""
        match = _NAME.match(self.source, self.at)
        if not match:
            raise UnshownError
        self.at = match.end()
        return match[1]


_CELL_ENDS = frozenset({"&", r"\\", r"\end"})


def _fenced(left: str, parts: Sequence[MathNode], right: str) -> tuple[MathNode, ...]:
    before = (MathNode("left", text=left),) if left else ()
    after = (MathNode("right", text=right),) if right else ()
    return (*before, *parts, *after)


def _read_symbol(name: str) -> MathNode | None:
    """Return the node of a command without arguments; None for other commands."""
    if name in ("%", "$", "#", "&", "_"):
        return MathNode("ordinary", text=name)
    if name in symbols.DELIMITERS:
        sign = symbols.DELIMITERS[name]
        fences = {"opening": symbols.OPENING, "closing": symbols.CLOSING}
        kind = next((kind for kind, signs in fences.items() if sign in signs), "ordinary")
        return MathNode(kind, text=sign)
    if name in symbols.LARGE_OPERATORS:
        sign, has_limits = symbols.LARGE_OPERATORS[name]
        return MathNode("large-limits" if has_limits else "large", text=sign)
    for kind, table in (("name", symbols.LETTERS), ("upright", symbols.UPRIGHT)):
        if name in table:
            return MathNode(kind, text=table[name])
    if name in symbols.SIGNS:
        sign = symbols.SIGNS[name]
        return MathNode("relation" if name in symbols.RELATIONS else "sign", text=sign)
    if name in symbols.FUNCTIONS or name in symbols.LIMIT_FUNCTIONS:
        return MathNode("function" if name in symbols.FUNCTIONS else "limit", text=name)
    return None


_COMMANDS: Mapping[str, Callable[[CommandReader, str], MathNode]] = {
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac"), CommandReader.read_fraction),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), CommandReader.read_binomial),
    **dict.fromkeys(symbols.ACCENTS, CommandReader.read_accent),
    **dict.fromkeys(symbols.LOWER_ACCENTS, CommandReader.read_lower_accent),
    **dict.fromkeys(("overset", "underset", "stackrel"), CommandReader.read_stack),
    **dict.fromkeys(("mathbf", "boldsymbol", "bm", "bold"), CommandReader.read_bold),
    **dict.fromkeys(("mathbb", "mathcal", "mathscr"), CommandReader.read_styled),
    **dict.fromkeys(("pmod", "bmod", "mod"), CommandReader.read_modulus),
    "sqrt": CommandReader.read_root,
    "boxed": CommandReader.read_box,
    "mathop": CommandReader.read_operator,
    "hspace": CommandReader.read_gap,
    "not": CommandReader.read_negation,
    "left": CommandReader.read_fences,
    "middle": CommandReader.read_middle,
    "begin": CommandReader.read_environment,
}
