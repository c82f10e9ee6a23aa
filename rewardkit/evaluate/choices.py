"""What a server's answer says: choices as OpenAI's API has them, in a chat or a completion."""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class Reply:
    """The choices of one request, perhaps fewer than asked for; and their tokens, if told."""

    choices: tuple[Choice, ...]
    tokens: int | None


def reply_of(body: Any) -> Reply:
    """The choices of an answer, none if it has none."""
    fields = body if isinstance(body, dict) else {}
    listed, usage = fields.get("choices"), fields.get("usage")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    choices = [made for each in found if (made := choice_of(each)) is not None]
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return Reply(tuple(choices), tokens_of(tokens))


def choice_of(choice: Mapping[str, Any]) -> Choice | None:
    """A choice of a chat or a completion; None if it is neither."""
    message = choice.get("message")
    place = message if isinstance(message, dict) else choice
    if message is None and "text" not in choice:
        return None
    text = _text(place.get("content") if place is message else place.get("text"))
    reasoning = place.get("reasoning_content") or place.get("reasoning")
    return Choice(
        text,
        str(choice.get("finish_reason") or ""),
        reasoning if isinstance(reasoning, str) else "",
    )


def _text(content: Any) -> str:
    """A text, or the texts among the parts that some servers send in its place."""
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, dict) and each.get("type") == "text"]
        return "".join(map(_text, (each.get("text") for each in parts)))
    return content if isinstance(content, str) else ""


def tokens_of(value: Any) -> int | None:
    """A number of tokens; None for what cannot be one."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def read_json(body: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, or is nested more deeply than Python reads.
    """
    try:
        return json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
