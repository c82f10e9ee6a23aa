"""The text that a scorer judges, from what a trainer passes as the response."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

from rewardkit.scorers.base import as_text

#: A special token that ends a turn, as a tokenizer prints it: <|im_end|>, </s>, ...
_END_TOKEN = re.compile(
    r"(?:<[|｜](?=[^<>|｜\s]*[A-Za-z])[^<>|｜\s]{1,40}[|｜]>|</s>|<pad>|<(?:seed:)?eos>|<end_of_turn>"
    r"|<turn\|>|\[EOS\]|\[\|[A-Za-z_]{1,40}\|\])\s*\Z"
)
_MAX_END_TOKEN_CHARS = 64

#: Characters at the end of the prompt by which its end is found where it was cut or re-decoded.
PROMPT_TAIL_CHARS = 64

#: Positions at which the end of a re-decoded prompt is looked for: composed, it is shorter.
MAX_PROMPT_END_POSITIONS = 2_000

#: Characters at the end of a response in which special tokens are removed. A body full of special
#: tokens took 5 s without this limit.
END_TOKENS_CHARS = 1024


def response_text(response: Any) -> str:
    """Return the text of a response without the special tokens at its end."""
    if isinstance(response, Mapping):
        response = [response]
    if isinstance(response, Sequence) and not isinstance(response, str):
        replies = [message for message in response if _field(message, "role") == "assistant"]
        response = _field(replies[-1], "content") if replies else ""
        if isinstance(response, Sequence) and not isinstance(response, str):
            response = "".join(map(_part_text, response))
    text = as_text(response)
    end = len(text)
    while token := _END_TOKEN.search(text, max(0, end - _MAX_END_TOKEN_CHARS), end):
        end = token.start()
    return text[:end]


def response_after_prompt(query: str, prompt: str) -> str | None:
    """Return the response in a query of OpenRLHF, which is the prompt and the response in one text.

    OpenRLHF decodes both with special tokens, cuts a long prompt at its start, and its tokenizer
    may compose characters (NFC) or clean up spaces.

    Returns:
        The text after the prompt without special tokens at its end; None if the end of the prompt
        is not found, because the examples in a prompt must not be judged as the response.
    """
    end = _prompt_end(query, prompt)
    if end is None:
        return None
    response = query[end:]
    return response[:-END_TOKENS_CHARS] + response_text(response[-END_TOKENS_CHARS:])


def _prompt_end(query: str, prompt: str) -> int | None:
    if query.startswith(prompt):
        return len(prompt)
    tail = prompt[-PROMPT_TAIL_CHARS:]
    last = len(prompt) + PROMPT_TAIL_CHARS
    if (start := query.rfind(tail, 0, last)) >= 0:
        return start + len(tail)
    normal_tail, last = _normal(tail), min(len(query), last)
    for end in range(last, max(0, last - MAX_PROMPT_END_POSITIONS), -1):
        before = query[max(0, end - 2 * PROMPT_TAIL_CHARS) : end]
        if normal_tail and _normal(before).endswith(normal_tail):
            return end
    return None


def _normal(text: str) -> str:
    """Return a text as tokenizers that normalise it see it: composed and without spaces."""
    return "".join(normalize("NFC", text).split())


def _part_text(part: Any) -> str:
    """Return the text of a part; a part with reasoning is not part of the answer."""
    if isinstance(part, str):
        return part
    kind = _field(part, "type")
    return as_text(_field(part, "text")) if kind in (None, "text", "output_text") else ""


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
