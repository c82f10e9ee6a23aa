"""Chats in raw rows: `messages` with roles (OpenAI), and `conversations` with senders (ShareGPT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit.answers.extract import final_answer, text_after_thought
from rewardkit.preprocess.column_map import UnreadableValueError

#: Senders of ShareGPT's messages, by OpenAI's roles.
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant"}


def messages_in(value: Any) -> list[tuple[str, Any]]:
    """Return role and content of the messages in a list; [] for another value.

    A content that is a list of texts, as OpenAI's parts are, is their text; null is "", as in a
    message that calls tools.
    """
    items = value if isinstance(value, (list, tuple)) else ()
    messages = []
    for item in items:
        if isinstance(item, Mapping):
            role = item.get("role") or item.get("from")
            content = item.get("content") if "content" in item else item.get("value")
            has_content = not item.keys().isdisjoint(("content", "value", "tool_calls"))
            if isinstance(role, str) and has_content and item.get("ground_truth") is None:
                text = "" if content is None else _plain_content(content)
                messages.append((_ROLES.get(role.lower(), role.lower()), text))
    return messages


def is_chat(value: Any) -> bool:
    """Return whether a value is a list of messages and nothing else."""
    return isinstance(value, list) and bool(value) and len(messages_in(value)) == len(value)


def answer_in_chat(value: Any) -> str:
    """Return the answer that the last message of a chat states in a form that scorers read.

    The form is a box, `<answer>`, `Answer:`, `####`, or nothing but the answer.

    Raises:
        UnreadableValueError: the last message is not the assistant's text, or states no such answer.
        TypeError: its content is not text.
    """
    role, text = messages_in(value)[-1]
    if role != "assistant" or text == "":
        raise UnreadableValueError("the chat does not end with the assistant's answer")
    if not isinstance(text, str):
        raise TypeError(f"the answer is {type(text).__name__}, not text")
    answer = final_answer(text, text)
    is_one_line = "\n" not in text_after_thought(text).strip()
    if answer is None or answer.mark == "sentence" or (answer.mark == "line" and not is_one_line):
        raise UnreadableValueError(
            "the assistant's message states no answer in a box, <answer>, `Answer:` or `####`"
        )
    return answer.text


def _plain_content(content: Any) -> Any:
    is_text = isinstance(content, list) and all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content
    )
    return "\n".join(part["text"] for part in content) if is_text else content
