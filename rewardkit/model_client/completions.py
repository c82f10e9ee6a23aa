"""Parse the replies of OpenAI's API: the choices of a chat or of a completion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The finish_reason of a response that was truncated at `max_tokens`.
TRUNCATED = "length"

#: Our own values of finish_reason: the server refused the prompt, sent null content without a
#: reason, or sent a text above `MAX_CHARACTERS`.
REFUSED, NO_CONTENT, TOO_LONG = "refused", "no_content", "too_long"

#: The finish_reason if the server broke off; another try may succeed. vLLM and SGLang say `abort` or
#: `error`, other servers use the rest.
INTERRUPTED = frozenset(
    {"abort", "aborted", "error", "network_error", "insufficient_system_resource"}
)

#: The finish_reason if the server withheld the response.
WITHHELD = frozenset({"content_filter", "sensitive", NO_CONTENT, TOO_LONG})

#: The finish_reason of a choice that is not the model's response. It counts as wrong, and is counted
#: separately.
UNUSABLE = INTERRUPTED | WITHHELD | {REFUSED}

#: Longer texts are discarded: 4 Mi characters, about a million tokens, is more than a model writes.
MAX_CHARACTERS = 1 << 22

#: Fields of a message that may take the place of its content.
_CONTENT_SUBSTITUTES = ("reasoning_content", "reasoning", "tool_calls", "function_call", "refusal")


@dataclass(frozen=True)
class Choice:
    """One response of a reply.

    Attributes:
        text: the text that the scorer gets; "" if the server sent none.
        finish_reason: `stop`, `length` (truncated), another value of the server's, or one of ours if
            the choice is not a response; "" if the server sent none.
        reasoning: the reasoning that a server with a reasoning parser removed from the text.
    """

    text: str
    finish_reason: str
    reasoning: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether it is the model's own response, however it ended."""
        return self.finish_reason not in UNUSABLE

    def fields(self) -> dict[str, Any]:
        """Return the choice as the fields of a response in a file, without an empty reasoning."""
        reasoning = {"reasoning": self.reasoning} if self.reasoning else {}
        return {"response": self.text, **reasoning, "finish_reason": self.finish_reason}


@dataclass(frozen=True)
class CompletionReply:
    """The choices of a reply, which may be fewer than requested, and their tokens if known."""

    choices: tuple[Choice, ...]
    tokens: int | None
    prompt_tokens: int | None = None


def parse_reply(body: Any) -> CompletionReply:
    """Return the choices of a reply's JSON value; empty if it has none."""
    fields = body if isinstance(body, dict) else {}
    items, usage = fields.get("choices"), fields.get("usage")
    items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    choices = [choice for item in items if (choice := parse_choice(item)) is not None]
    usage = usage if isinstance(usage, dict) else {}
    tokens, prompt_tokens = usage.get("completion_tokens"), usage.get("prompt_tokens")
    return CompletionReply(
        tuple(choices), parse_token_count(tokens), parse_token_count(prompt_tokens)
    )


def parse_choice(choice: Mapping[str, Any]) -> Choice | None:
    """Return a choice of a chat or a completion; None if it is neither.

    If a thinking model was truncated or stopped before its answer, its message has reasoning and
    null content. That is its response. Null content with nothing beside it is not a response.
    """
    message = choice.get("message")
    source = message if isinstance(message, dict) else choice
    if message is None and "text" not in choice:
        return None
    content = source.get("content") if source is message else source.get("text")
    text, reasoning = _text(content), source.get("reasoning_content") or source.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, str) else ""
    finish = str(choice.get("finish_reason") or "")
    if len(text) + len(reasoning) > MAX_CHARACTERS:
        return Choice("", TOO_LONG)
    is_empty = content is None and not any(source.get(name) for name in _CONTENT_SUBSTITUTES)
    if is_empty and finish != TRUNCATED and finish not in UNUSABLE:
        finish = NO_CONTENT
    return Choice(text, finish, reasoning)


def _text(content: Any) -> str:
    """Return a text, or the joined texts of the list of parts that some servers send instead."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(map(_text, (part.get("text") for part in parts)))
    return content if isinstance(content, str) else ""


def parse_token_count(value: Any) -> int | None:
    """Return a number of tokens; None for any other value."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None
