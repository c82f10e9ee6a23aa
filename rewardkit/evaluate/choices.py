"""A choice as OpenAI's API has it, in a chat or a completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """One response.

    Attributes:
        text: what the scorer sees; "" if the server sent none.
        finish_reason: `stop`, `length` (truncated), or what else the server says; "" if nothing.
        reasoning: what a server with a reasoning parser took out of the text.
    """

    text: str
    finish_reason: str
    reasoning: str = ""


def choice_of(choice: Mapping[str, Any]) -> Choice | None:
    """A choice of a chat or a completion; None if it is neither."""
    message = choice.get("message")
    place = message if isinstance(message, dict) else choice
    if message is None and "text" not in choice:
        return None
    text = place.get("content") if place is message else place.get("text")
    reasoning = place.get("reasoning_content") or place.get("reasoning")
    return Choice(
        text if isinstance(text, str) else "",
        str(choice.get("finish_reason") or ""),
        reasoning if isinstance(reasoning, str) else "",
    )
