"""How responses are sampled, and the request that asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.evaluate.questions import Question
from rewardkit.redact import Redactor

#: Where each kind of request goes, below the base URL.
ENDPOINTS = {"chat": "chat/completions", "completions": "completions"}

#: What `extra` may not set: it has an option of its own, or is not what this client reads.
RESERVED = frozenset({"model", "messages", "prompt", "n", "stream"})


@dataclass(frozen=True)
class Sampling:
    """What a request says besides model and prompt; None leaves it to the server.

    Attributes:
        api: `chat`, or `completions`: the contents of the messages, joined by empty lines, without
            a chat template.
        temperature: 0 is greedy.
        top_p: from 0 to 1.
        top_k: no field of OpenAI's API; vLLM and SGLang take it.
        max_tokens: of a response.
        stop: texts that end a response.
        seed: each request's own seed is made of it, the row and the sample.
        extra: more fields of the request.
    """

    api: str = "chat"
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an API and extra fields that this client cannot use."""
        if self.api not in ENDPOINTS:
            raise UsageError(f"--api {self.api}: it is one of {', '.join(ENDPOINTS)}.")
        if taken := sorted(RESERVED & self.extra.keys()):
            raise UsageError(f"--extra-body: {', '.join(taken)} cannot be set there.")
        try:
            json.dumps(self.recorded(), allow_nan=False)
        except ValueError as error:
            raise UsageError("sampling: nan and inf are no numbers that JSON can hold.") from error

    def recorded(self) -> dict[str, Any]:
        """What is said, for the file of responses, without secrets; the same for the same."""
        named = {name: value for name, value in vars(self).items() if value not in (None, (), {})}
        if self.extra:
            named["extra"] = Redactor().tree(self.extra)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in named.items()}

    def body(self, model: str, question: Question, first: int, n: int) -> dict[str, Any]:
        """The request for samples `first` to `first + n - 1` of a question."""
        body: dict[str, Any] = {**self.extra, "model": model}
        if self.api == "chat":
            body["messages"] = question.prompt
        else:
            body["prompt"] = "\n\n".join(message["content"] for message in question.prompt)
        for name in ("temperature", "top_p", "top_k", "max_tokens"):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        if n > 1:  # some servers refuse the field
            body["n"] = n
        if self.stop:
            body["stop"] = list(self.stop)
        if self.seed is not None:
            body["seed"] = _seed(self.seed, question.row, first)
        return body


def _seed(seed: int, row: int, sample: int) -> int:
    """A request's own: the same seed for all samples would make them one response."""
    key = f"{seed} {row} {sample}".encode()
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1
