"""Base class of the parser's levels: the tokens, the position in them, and the limit on depth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from rewardkit.answers.parsing.tokens import Token, UnreadableError
from rewardkit.answers.parsing.tree import Node
from rewardkit.answers.parsing.units import lookup_unit

#: Deepest nesting that is parsed.
MAX_DEPTH: Final = 64


class ParserBase(ABC):
    """One pass over the tokens by recursive descent.

    Args:
        tokens: the tokens of a text, the end token last.
        letters_are_units: whether a lone letter after a number may be a unit, as in `5 m`.
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
        """Return the token `steps` further on; the end token beyond the end."""
        return self.tokens[min(self.position + steps, len(self.tokens) - 1)]

    def advance(self) -> Token:
        """Consume the next token and return it."""
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def is_next(self, *signs: str) -> bool:
        """Whether the next token is one of these operators or commands."""
        token = self.tokens[self.position]
        return token.text in signs and token.kind in ("op", "cmd")

    def accept(self, *signs: str) -> bool:
        """Consume the next token if it is one of these signs; return whether it was."""
        if self.is_next(*signs):
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        """Consume a sign.

        Raises:
            UnreadableError: the next token is another one.
        """
        if not self.accept(sign):
            raise UnreadableError(f"expected {sign}, not {self.next.text!r}")

    def descend(self) -> None:
        """Enter a deeper level; the caller leaves it by `depth -= 1`.

        Raises:
            UnreadableError: the level is deeper than `MAX_DEPTH`.
        """
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
        """Consume one token or one group in braces and return its text."""
        if not self.accept("{"):
            return self.advance().text
        parts = []
        while self.next.kind != "end" and not self.is_next("}"):
            parts.append(self.advance().text)
        self.expect("}")
        return "".join(parts)

    @abstractmethod
    def parse_items(self) -> Node:
        """Parse a list of answers, or one answer."""

    @abstractmethod
    def parse_relation(self) -> Node:
        """Parse one answer: a relation or a value."""

    @abstractmethod
    def parse_sum(self) -> Node:
        """Parse a sum."""

    @abstractmethod
    def parse_product(self) -> Node:
        """Parse a product."""

    @abstractmethod
    def parse_factor(self) -> Node:
        """Parse a factor, which may have a sign."""

    @abstractmethod
    def parse_power(self) -> Node:
        """Parse an atom with its scripts and postfix signs."""

    @abstractmethod
    def starts_factor(self) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""

    @abstractmethod
    def parse_command(self, token: Token) -> Node:
        """Parse a command with its arguments."""
