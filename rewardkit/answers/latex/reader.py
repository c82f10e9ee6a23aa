"""What every part of the parser stands on: the tokens and the place in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from rewardkit.answers.latex.tokens import Token, UnreadableError
from rewardkit.answers.latex.tree import Node

#: Deepest nesting that is read.
MAX_DEPTH: Final = 64


class Reader(ABC):
    """One pass over the tokens; `at` is the next one to read."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0

    # --- tokens

    @property
    def peek(self) -> str:
        """The text of the next token."""
        return self.tokens[self.at][1]

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.at][0]

    def take(self) -> Token:
        """The next token, read."""
        token = self.tokens[self.at]
        if token[0] != "end":
            self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Read the next token if it is one of these signs."""
        if self.peek in texts and self.kind in ("op", "cmd", "word"):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Read a sign that must be there."""
        if not self.accept(text):
            raise UnreadableError(f"{text} expected, not {self.peek!r}")

    def descend(self) -> None:
        """One level deeper, up to the limit; the caller comes up again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("nested too deeply")

    def flat(self) -> str:
        """The text of one token or of one group in braces."""
        if not self.accept("{"):
            return self.take()[1]
        text = ""
        while self.kind != "end" and self.peek != "}":
            text += self.take()[1]
        self.expect("}")
        return text

    @abstractmethod
    def items(self) -> Node:
        """A list of answers, or one."""

    @abstractmethod
    def relation(self) -> Node:
        """One answer: a relation or an expression."""

    @abstractmethod
    def sum(self) -> Node:
        """An expression."""

    @abstractmethod
    def factor(self) -> Node:
        """A factor with a sign before it."""

    @abstractmethod
    def power(self) -> Node:
        """An atom with what is attached to it."""

    @abstractmethod
    def starts_factor(self, *, after_power: bool = False) -> bool:
        """Whether the next token begins a factor that multiplies what came before."""
