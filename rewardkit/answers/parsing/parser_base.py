"""What every part of the parser stands on: the tokens and the place in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node
from rewardkit.answers.parsing.units import lookup_unit

#: Deepest nesting that is read.
MAX_DEPTH: Final = 64


class ParserBase(ABC):
    """One pass over the tokens; `at` is the next one to read.

    `letters_are_units`: whether a lone letter behind a number may be a unit, as in `5 m`.
    """

    def __init__(self, tokens: list[Token], *, letters_are_units: bool = False) -> None:
        self.tokens = tokens
        self.letters_are_units = letters_are_units
        self.position = 0
        self.depth = 0
        self.open_bars = 0
        self.open_brackets = 0

    @property
    def next(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def peek(self, steps: int) -> Token:
        """A token further on; the end token where the text ends before it."""
        return self.tokens[min(self.position + steps, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """The next token, read."""
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def is_next(self, *signs: str) -> bool:
        """Whether the next token is one of these operators or commands."""
        token = self.tokens[self.position]
        return token.text in signs and token.kind in ("op", "cmd")

    def accept(self, *signs: str) -> bool:
        """Read the next token if it is one of these signs."""
        if self.is_next(*signs):
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Read a sign that must be there."""
        if not self.accept(sign):
            raise UnreadableError(f"{sign} expected, not {self.next.text!r}")

    def descend(self) -> None:
        """One level deeper, up to the limit; the caller comes up again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deeply")

    def opens_condition(self) -> bool:
        r"""Whether a bracket opens a condition on a name: `(k \in Z)`, `(n \ge 1)`."""
        name = self.peek(1)
        return (
            self.is_next("(")
            and name.kind in ("word", "text", "letter")
            and len(name.text) == 1
            and self.peek(2).is_sign(r"\in", r"\ge", r"\le", r"\ne", "<", ">", "=", ",")
            and not (self.peek(2).is_sign(",") and not self.peek(4).is_sign(r"\in"))
        )

    def opens_unit(self) -> bool:
        """Whether a bracket holds a unit of several letters: `5 (cm)`."""
        unit = self.peek(1)
        words = unit.kind in ("word", "text", "han") and len(unit.text) > 1
        return (
            self.is_next("(")
            and words
            and self.peek(2).is_sign(")")
            and lookup_unit(unit.text) is not None
        )

    def opens_unit_fraction(self) -> bool:
        r"""Whether a fraction of units comes next: `\frac{\mathrm{m}}{\mathrm{s}}`."""
        unit = self.peek(2)
        in_text = self.is_next(r"\frac") and unit.kind == "text"
        return in_text and self.peek(3).text in ("}", "^") and lookup_unit(unit.text) is not None

    def opens_modulus(self) -> bool:
        """Whether a bracket opens `(mod 7)`."""
        return self.is_next("(") and self.peek(1).text in (r"\bmod", r"\pmod", "mod")

    def raw_text(self) -> str:
        """The text of one token or of one group in braces."""
        if not self.accept("{"):
            return self.advance().text
        parts = []
        while self.next.kind != "end" and not self.is_next("}"):
            parts.append(self.advance().text)
        self.expect("}")
        return "".join(parts)

    @abstractmethod
    def parse_items(self) -> Node:
        """A list of answers, or one."""

    @abstractmethod
    def parse_relation(self) -> Node:
        """One answer: a relation, or what stands on one side of it."""

    @abstractmethod
    def parse_sum(self) -> Node:
        """An expression."""

    @abstractmethod
    def parse_product(self) -> Node:
        """Factors."""

    @abstractmethod
    def parse_factor(self) -> Node:
        """A factor with a sign before it."""

    @abstractmethod
    def parse_power(self) -> Node:
        """An atom with what is attached to it."""

    @abstractmethod
    def starts_factor(self) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""

    @abstractmethod
    def parse_command(self, token: Token) -> Node:
        """A command and its arguments."""
