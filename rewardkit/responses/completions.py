"""What a server's answer says: choices as OpenAI's API has them, in a chat or a completion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The finish_reason of a response that was cut at `max_tokens`.
TRUNCATED = "length"

#: Ours: the server refused the prompt; it said neither a text nor why; the text is too long.
REFUSED, NO_CONTENT, TOO_LONG = "refused", "no_content", "too_long"

#: The server broke off: vLLM and SGLang say `abort` or `error`, others what follows. Another time it
#: may not.
INTERRUPTED = frozenset(
    {"abort", "aborted", "error", "network_error", "insufficient_system_resource"}
)

#: The server had a response, or could have had, and kept it back.
WITHHELD = frozenset({"content_filter", "sensitive", NO_CONTENT, TOO_LONG})

#: The finish_reason of what is not the model's response. It counts as wrong, and is counted apart.
UNUSABLE = INTERRUPTED | WITHHELD | {REFUSED}

#: Characters of a longer text than any model writes: 4 Mi, about a million tokens.
MAX_CHARACTERS = 1 << 22

#: What a message may have in place of a content.
_INSTEAD = ("reasoning_content", "reasoning", "tool_calls", "function_call", "refusal")


@dataclass(frozen=True)
class Choice:
    """One response.

    Attributes:
        text: what the scorer sees; "" if the server sent none.
        finish_reason: `stop`, `length` (truncated), what else the server says, or one of ours for
            what is no response; "" if nothing.
        reasoning: what a server with a reasoning parser took out of the text.
    """

    text: str
    finish_reason: str
    reasoning: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether it is the model's own response, however it ended."""
        return self.finish_reason not in UNUSABLE


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
    """A choice of a chat or a completion; None if it is neither.

    A thinking model that was cut, or stopped, before its answer has null content beside its
    reasoning: that is its response. Null content beside nothing at all is none.
    """
    message = choice.get("message")
    place = message if isinstance(message, dict) else choice
    if message is None and "text" not in choice:
        return None
    content = place.get("content") if place is message else place.get("text")
    found = place.get("reasoning_content") or place.get("reasoning")
    text, reasoning = _text(content), found if isinstance(found, str) else ""
    finish = str(choice.get("finish_reason") or "")
    if len(text) + len(reasoning) > MAX_CHARACTERS:
        return Choice("", TOO_LONG)
    is_empty = content is None and not any(place.get(name) for name in _INSTEAD)
    if is_empty and finish != TRUNCATED and finish not in UNUSABLE:
        finish = NO_CONTENT
    return Choice(text, finish, reasoning)


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
