"""Callbacks by which an evaluation reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ProgressCallbacks:
    """Functions that an evaluation calls while it runs; the defaults do nothing.

    Attributes:
        message: called with a sentence for a person to read.
        start: called when a set of questions begins, with its name, the number of responses that an
            earlier run already has, and the number of responses in the end.
        advance: called after each reply with the number of its responses and of their tokens.
    """

    message: Callable[[str], object] = lambda _: None
    start: Callable[[str, int, int], object] = lambda _name, _finished, _total: None
    advance: Callable[[int, int], object] = lambda _responses, _tokens: None
