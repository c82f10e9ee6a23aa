"""What the model wrote and called in a rollout of several turns, and what its tools returned.

verl gives a reward one text for a whole rollout: the turns of the model, with the results of tools between
them and without the marks that separate them (`experimental/reward_loop/reward_manager/naive.py` of 0.9.1
decodes all tokens). A policy can write a text that looks the same, so nothing is read from it. The
messages are in verl's loop for tools, which drops them; `launch.verl.tool_loop` passes them on as
`extra_info["extras"]["rollout_messages"]`, from the first one after the prompt.

Where they are, a scorer judges the model's last message, and no text of a tool.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.errors import DataError

#: The keys under which the messages stand in `extra_info`. verl's batches have `extras` for every loop,
#: so that rows of different loops can be in one batch.
EXTRAS, MESSAGES = "extras", "rollout_messages"

#: verl's number of turns of a rollout with one turn of the model: the prompt is one too.
TURNS_OF_ONE = 2

#: Why a part has no conversation.
NO_MESSAGES = (
    "the messages of the rollout did not arrive. They come from rewardkit's agent loop through verl's "
    "manager naive, remote or rate_limited; see docs/how-to/conversations.md."
)

#: How verl's loop answers a call that it could not execute (`_call_tool` in
#: experimental/agent_loop/tool_agent_loop.py of 0.9.1).
_REFUSALS = ("Unknown function '", "Invalid JSON in arguments for '", "Error executing tool '")


class ToolCall(NamedTuple):
    """A call of a tool, with its arguments as JSON.

    `result` is None if the tool did not run. `is_read` says whether the model wrote a message after it.
    A call that cannot be read has no name.
    """

    tool: str
    arguments: str
    result: str | None
    is_read: bool


class Conversation(NamedTuple):
    """The turns of the model as text, without its calls, and the calls, both in their order."""

    turns: tuple[str, ...]
    calls: tuple[ToolCall, ...] = ()
    ground_truth: Any = ""


def are_messages(value: Sequence[Any]) -> bool:
    """Return whether a list consists of messages."""
    return bool(value) and all(isinstance(item, Mapping) and "role" in item for item in value)


def text_of_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the messages from the model's first one on as one text, as a reward of verl gets it.

    The text is that of Qwen's template without special tokens, with the calls and results in their blocks.
    """
    lines: list[str] = []
    role = "assistant"
    for message in _rollout(messages):
        is_result, text = message.get("role") == "tool", _text(message)
        previous, role = role, "user" if is_result else str(message.get("role"))
        lines += [role] * (role != previous)
        lines += (
            [f"<tool_response>\n{text}\n</tool_response>"] if is_result else filter(None, [text])
        )
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            own = call.get("function", call) if isinstance(call, Mapping) else call
            text = json.dumps(own, ensure_ascii=False, default=str)
            lines.append(f"<tool_call>\n{text}\n</tool_call>")
    return "\n".join(lines)


def with_messages(
    extra_info: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return `extra_info` with the messages of a rollout, from its first one by the model on."""
    return {**extra_info, EXTRAS: {MESSAGES: _rollout(messages)}}


def _rollout(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    roles = [message.get("role") for message in messages]
    return list(messages[roles.index("assistant") :]) if "assistant" in roles else []


def _messages(extra_info: Any) -> Any:
    extras = extra_info.get(EXTRAS) if isinstance(extra_info, Mapping) else None
    return extras.get(MESSAGES) if isinstance(extras, Mapping) else None


def one_turn(extra_info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `extra_info` of a response of one turn, as verl's managers write it, without messages."""
    others = {name: value for name, value in extra_info.items() if name != EXTRAS}
    return {**others, "num_turns": TURNS_OF_ONE}


def has_messages(extra_info: Any) -> bool:
    """Return whether the messages of the rollout are there."""
    return _messages(extra_info) is not None


def text_to_judge(response: str, extra_info: Any) -> str:
    """Return what a scorer judges: the model's last message; the response if there are no messages.

    Raises:
        DataError: the messages cannot be read.
    """
    conversation = read_conversation(extra_info)
    return conversation.turns[-1] if conversation else response


def read_conversation(extra_info: Any) -> Conversation | None:
    """Return the conversation of a sample; None if its messages are not there.

    Raises:
        DataError: the messages cannot be read.
    """
    if (messages := _messages(extra_info)) is None:
        return None
    if hasattr(messages, "tolist"):  # a list in a parquet
        messages = messages.tolist()
    if not isinstance(messages, list) or not are_messages(messages):
        raise DataError(f"extra_info.{EXTRAS}.{MESSAGES} is not a list of messages.")
    places = [i for i, message in enumerate(messages) if message.get("role") == "assistant"]
    calls: list[ToolCall] = []
    for place, end in zip(places, [*places[1:], len(messages)], strict=True):
        results = [m for m in messages[place + 1 : end] if m.get("role") == "tool"]
        calls += _calls(messages[place], results, is_read=end < len(messages))
    return Conversation(tuple(_text(messages[i]) for i in places) or ("",), tuple(calls))


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, which may be a list of texts and images."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "".join(text for text in texts if isinstance(text, str))


def _calls(
    message: Mapping[str, Any], results: Sequence[Mapping[str, Any]], *, is_read: bool
) -> Iterator[ToolCall]:
    """Yield the calls of a message, each with its result: by its id, or else by its place."""
    from rewardkit.structures.calls import UnreadableCallError, call_of  # only for rows of tools

    values = message.get("tool_calls")
    for place, value in enumerate(values if isinstance(values, list) else []):
        try:
            call = call_of(value)
            arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
        except (UnreadableCallError, RecursionError):  # nested too deep
            yield ToolCall("", "", None, is_read)
            continue
        identity = value.get("id")
        own = [r for r in results if identity is not None and r.get("tool_call_id") == identity]
        own = own or [r for r in results[place : place + 1] if r.get("tool_call_id") is None]
        text = _text(own[0]) if own else ""
        result = text if own and not text.startswith(_REFUSALS) else None
        yield ToolCall(call.name, arguments, result, is_read)
