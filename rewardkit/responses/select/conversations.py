"""A row's prompt and a response as one conversation, as verl's multi-turn SFT dataset reads it.

verl's rollout dumps have a response of several turns as one text, without special tokens. Its turns
are told apart only where the text has the form that ChatML with Hermes' tool calls leaves (Qwen's):
the results of tools are in a message of the user, between `<tool_response>` and `</tool_response>`.
Everything else that looks like several turns is refused, because verl would train on what the
policy did not write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rewardkit.responses.matching import squeeze

Message: TypeAlias = dict[str, Any]

#: Texts of a message besides its role and content that chat templates know.
OPTIONAL_TEXTS = ("name", "tool_call_id", "reasoning_content")

#: Marks of the end of a response in dumps that keep special tokens; the chat template adds its own.
_END_MARKS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")

#: Special tokens that begin a turn in a chat template.
_TURN_MARKS = ("<|im_start|>", "<|start_header_id|>", "[INST]")

#: Lines that begin a turn which is not the policy's, after special tokens are left out.
_OTHER_ROLES = ("user\n", "tool\n", "ipython\n")

_TOOL_OPEN, _TOOL_CLOSE = "<tool_response>\n", "\n</tool_response>"


class ConversationError(ValueError):
    """A prompt or a response that cannot be written as messages; the text says why."""


def prompt_messages(prompt: Any) -> list[Message]:
    """Return the messages of a row's prompt with the keys that chat templates know, without nulls.

    Raises:
        ConversationError: the prompt is empty, or a message has no role or a content that is not
            text.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(messages, list) or not messages:
        raise ConversationError("the row has no prompt")
    return [_message(message) for message in messages]


def response_messages(
    response: str, fields: Mapping[str, Any], prompt: Sequence[Message]
) -> list[Message]:
    """Return the messages that follow the prompt; the last one is the assistant's.

    Args:
        response: the scored text.
        fields: the fields of its record: `messages`, if it has them, is the whole conversation;
            `reasoning` is what a server's reasoning parser removed from the text.
        prompt: the messages of its row.

    Raises:
        ConversationError: the response is empty or has no end, or its turns cannot be told apart.
    """
    own = fields.get("messages")
    if isinstance(own, list) and own:
        return _own_messages(own, response, prompt)
    text = _without_end_marks(response)
    reasoning = fields.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        text = f"<think>\n{reasoning.strip()}\n</think>\n\n{text}"
    _require_end(text)
    return _split_turns(text)


def _own_messages(own: list[Any], response: str, prompt: Sequence[Message]) -> list[Message]:
    messages = [_message(message) for message in own]
    rest = messages[len(prompt) :]
    if list(map(_head, messages[: len(prompt)])) != list(map(_head, prompt)):
        raise ConversationError("its messages do not begin with the prompt of the row")
    if not rest or rest[0]["role"] != "assistant" or rest[-1]["role"] != "assistant":
        raise ConversationError("its messages do not end with an answer of the assistant")
    if squeeze(rest[-1]["content"]) not in squeeze(response):
        raise ConversationError("its messages do not end with the scored response")
    _require_end(rest[-1]["content"])
    return rest


def _head(message: Message) -> tuple[str, str]:
    return message["role"], squeeze(message["content"])


def _split_turns(text: str) -> list[Message]:
    """Return the turns of a text: the assistant's, and between them the results of its tools."""
    answer, *parts = text.split(f"user\n{_TOOL_OPEN}")
    messages = [{"role": "assistant", "content": answer.removesuffix("\n") if parts else answer}]
    for part in parts:
        results, mark, answer = part.partition(f"{_TOOL_CLOSE}\nassistant\n")
        n_results = results.count(f"{_TOOL_CLOSE}\n{_TOOL_OPEN}") + 1
        if not mark or messages[-1]["content"].count("<tool_call>") < n_results:
            raise ConversationError("the turns of its tools cannot be told apart")
        content = f"{_TOOL_OPEN}{results}{_TOOL_CLOSE}"
        messages.append({"role": "user", "content": content})
        is_last = part is parts[-1]
        answer = answer if is_last else answer.removesuffix("\n")
        messages.append({"role": "assistant", "content": answer})
    for message in messages[::2]:
        _require_one_turn(message["content"])
    _require_end(messages[-1]["content"])
    return messages


def _require_one_turn(text: str) -> None:
    if any(mark in text for mark in _TURN_MARKS):
        raise ConversationError("it has special tokens of a chat template")
    begins = [at for role in _OTHER_ROLES if (at := text.find(role)) >= 0]
    if "<tool_response>" in text or (begins and text.find("assistant\n", min(begins)) >= 0):
        raise ConversationError("it has turns of others, which cannot be told apart")


def _require_end(text: str) -> None:
    if not text.strip():
        raise ConversationError("it is empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConversationError("it has characters that are not Unicode text") from None
    if text.rfind("<think>") > text.rfind("</think>"):
        raise ConversationError("cut off: its thinking has no end")
    if text.rfind("<tool_call>") > text.rfind("</tool_call>"):
        raise ConversationError("cut off: its tool call has no end")


def _without_end_marks(text: str) -> str:
    for _ in range(2):  # the end of a turn, and the end of the text
        if mark := next((mark for mark in _END_MARKS if text.rstrip().endswith(mark)), ""):
            text = text.rstrip().removesuffix(mark)
    return text


def _message(message: Any) -> Message:
    fields = message if isinstance(message, Mapping) else {}
    role, content = fields.get("role"), fields.get("content")
    calls = fields.get("tool_calls") or []
    content = "" if content is None and calls else content
    if not isinstance(role, str) or not isinstance(content, str) or not isinstance(calls, list):
        raise ConversationError("a message has no role, or a content that is not text")
    texts = {name: fields[name] for name in OPTIONAL_TEXTS if isinstance(fields.get(name), str)}
    called = {"tool_calls": [_tool_call(call) for call in calls]} if calls else {}
    return {"role": role, "content": content, **texts, **called}


def _tool_call(call: Any) -> dict[str, Any]:
    """Return a tool call as OpenAI's API has it, with its arguments as an object."""
    fields = call if isinstance(call, Mapping) else {}
    function = fields.get("function") or fields
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    else:
        arguments = without_nulls(arguments)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ConversationError("a tool call has no name, or arguments that are not an object")
    call_id = {"id": fields["id"]} if isinstance(fields.get("id"), str) else {}
    return {**call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def without_nulls(value: Any) -> Any:
    """Return a value without the null fields that parquet gives to each object of a column."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
