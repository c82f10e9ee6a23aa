r"""LaTeX -> the parts of a formula, as it was written: rows, scripts, names, numbers and signs.

Commands are read in `mathml.py`. Texts are hostile: a formula has bounds in length and depth, and the
time is linear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

from rewardkit.pages import math_symbols as symbols

#: Most groups and commands inside each other.
MAX_DEPTH: Final = 20


class MathNode(NamedTuple):
    """A part of a formula: a kind of `math_symbols.KINDS`, and its parts or its text."""

    kind: str
    parts: tuple[MathNode, ...] = ()
    text: str = ""


class UnshownError(ValueError):
    """A formula is left as text. Internal to the reader."""


_TOKEN = re.compile(
    r"""
    (?P<number>[0-9]{1,3}(?:(?:,|\{,\})[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)
  | \\(?P<command>[A-Za-z]+|.)
  | (?P<letters>[A-Za-z]+)
  | (?P<han>[\u2e80-\u9fff\uf900-\ufaff\uff01-\uff60]+)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANKS = re.compile(r"\s*")
#: Tokens that end a row, and nothing else.
_ENDS = frozenset({"", "}", "&", r"\\", r"\right", r"\end"})
#: Words that stay one word; shorter ones are products of letters.
_WORD_LETTERS: Final = 4
#: Two words with a blank between are prose if one has this many letters.
_PROSE_LETTERS: Final = 3

_WITH_LIMITS = frozenset({"large-limits", "limit", "braced"})
_OPERANDS = frozenset(
    {"name", "upright", "bold", "number", "words", "closing", "fraction", "display-fraction"}
    | {"function", "square-root", "root", "row"}
)
_NOT_OPERANDS = frozenset(
    {"sign", "relation", "prefix", "opening", "left", "middle", "large", "large-limits", "limit"}
)


class FormulaReader:
    """The formula, and the place up to which it is read; `mathml.CommandReader` adds the commands."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.token, self.token_at = ("", ""), -1  # the last token that was looked at
        self.last_word = (-1, 0)  # end and length of the last letters

    def peek(self) -> tuple[str, str]:
        """Skip blanks; return the kind and the text of the next token, "" at the end."""
        if self.at != self.token_at:
            blanks = _BLANKS.match(self.source, self.at)
            self.token_at = self.at = blanks.end() if blanks else self.at
            match = _TOKEN.match(self.source, self.at)
            self.token = (match.lastgroup or "", match[0]) if match else ("", "")
        return self.token

    def accept(self, text: str) -> bool:
        """Read a token if it is this one."""
        if self.peek()[1] != text:
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        """Read a token."""
        if not self.accept(text):
            raise UnshownError

    def parse_row(self, ends: frozenset[str]) -> list[MathNode]:
        """Read parts up to one of the ends, which is not read."""
        self.enter()
        parts: list[MathNode] = []
        while (token := self.peek()[1]) not in ends:
            if token in _ENDS:
                raise UnshownError
            atoms = [MathNode("row")] if token in ("^", "_", "'") else self.parse_atoms()
            parts += atoms[:-1]
            parts += [self.parse_scripts(atom) for atom in atoms[-1:]]
        self.depth -= 1
        return _with_spaces(parts)

    def parse_scripts(self, base: MathNode) -> MathNode:
        """Read the scripts of a part."""
        primes = 0
        while self.accept("'"):
            primes += 1
        if primes:
            base = MathNode("row", (base, MathNode("ordinary", text="\N{PRIME}" * primes)))
        scripts: dict[str, MathNode] = {}
        while (sign := self.peek()[1]) in ("^", "_"):
            self.at += 1
            if sign in scripts:
                raise UnshownError
            scripts[sign] = self.parse_script()
        low, above = scripts.get("_"), scripts.get("^")
        under, over, both = (
            ("under", "over", "underover")
            if base.kind in _WITH_LIMITS
            else ("sub", "sup", "subsup")
        )
        if low and above:
            return MathNode(both, (base, low, above))
        if low or above:
            return MathNode(under if low else over, (base, low or above or base))
        return base

    def parse_script(self) -> MathNode:
        r"""Read a script. `2^10` and `x^-1` mean one thing to people and another to LaTeX."""
        kind, text = self.peek()
        if (kind == "number" and len(text) > 1) or text in ("+", "-") or kind == "han":
            following = self.source[self.at + 1 : self.at + 2]
            if kind != "sign" or following.isalnum() or following == "\\":
                raise UnshownError
        return self.parse_argument()

    def parse_argument(self) -> MathNode:
        """Read a group in braces, or one digit, letter or command."""
        kind, text = self.peek()
        if text == "{":
            return self.parse_group()
        if kind in ("number", "letters"):
            self.at += 1
            if not text[0].isalnum():
                raise UnshownError
            return MathNode("number" if kind == "number" else "name", text=text[0])
        if text in _ENDS or text in ("^", "_", "'", "]"):
            raise UnshownError
        return group(self.parse_atoms())

    def parse_group(self) -> MathNode:
        """Read a group in braces."""
        self.expect("{")
        parts = self.parse_row(frozenset("}"))
        self.expect("}")
        return group(parts)

    def parse_atoms(self) -> list[MathNode]:
        """Read one token and its arguments."""
        kind, text = self.peek()
        if text == "{":
            return [self.parse_group()]
        start, self.at = self.at, self.at + len(text)
        if kind == "number":
            return [MathNode("number", text=text.replace("{,}", ","))]
        if kind == "letters":
            return self.read_letters(text, start)
        if kind == "command":
            return self.read_command(text[1:])
        return [MathNode("words", text=text)] if kind == "han" else [_read_sign(text)]

    def read_letters(self, text: str, start: int) -> list[MathNode]:
        """Return letters one by one, or as a word if they are many."""
        end, length = self.last_word
        is_after_blank = end < start and not self.source[end:start].strip() and end >= 0
        if (
            is_after_blank
            and min(length, len(text)) > 1
            and max(length, len(text)) >= _PROSE_LETTERS
        ):
            raise UnshownError  # LaTeX shows prose without its blanks
        self.last_word = (self.at, len(text))
        if len(text) >= _WORD_LETTERS:
            return [MathNode("name", text=text)]
        return [MathNode("name", text=letter) for letter in text]

    def read_command(self, name: str) -> list[MathNode]:
        """Read the arguments of a command."""
        raise NotImplementedError

    def enter(self) -> None:
        """Count a group or a command, which ends with `self.depth -= 1`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnshownError


def group(parts: Sequence[MathNode]) -> MathNode:
    """Return the only part, or a row of the parts."""
    return parts[0] if len(parts) == 1 else MathNode("row", tuple(parts))


def _read_sign(char: str) -> MathNode:
    """Return the node of a character other than an ASCII letter or digit."""
    if char == "~":
        return MathNode("medium")
    if char in symbols.OPENING or char in symbols.CLOSING:
        return MathNode("opening" if char in symbols.OPENING else "closing", text=char)
    if char in "+-*/,;:":
        return MathNode("sign", text="\N{MINUS SIGN}" if char == "-" else char)
    if char in "=<>":
        return MathNode("relation", text=char)
    if char in "$\\{}^_&#" or not char.isprintable():
        raise UnshownError
    if char.isascii():
        return MathNode("ordinary" if char in "|%!." else "words", text=char)
    if char.isalpha():
        return MathNode("name", text=char)
    return MathNode("sign" if unicodedata.category(char) == "Sm" else "words", text=char)


def _base_kind(node: MathNode) -> str:
    return node.parts[0].kind if node.kind in ("sub", "sup", "subsup") else node.kind


def _with_spaces(parts: list[MathNode]) -> list[MathNode]:
    """Set a sign at the start of a term close to it, and functions off from what is beside them."""
    nodes_with_spaces: list[MathNode] = []
    before = ""
    for node in parts:
        kind = _base_kind(node)
        if kind == "sign" and node.text in "+\N{MINUS SIGN}±∓" and before in {*_NOT_OPERANDS, ""}:
            nodes_with_spaces.append(MathNode("prefix", text=node.text))
        else:
            is_apart = "function" in (kind, before) and before in _OPERANDS and kind in _OPERANDS
            opens = node.kind == "row" and [n.kind for n in node.parts[:1]] == ["left"]
            nodes_with_spaces += (
                [MathNode("thin")] if is_apart and not (before == "function" and opens) else []
            )
            nodes_with_spaces.append(node)
        before = kind
    return nodes_with_spaces
