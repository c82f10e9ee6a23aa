"""How responses are sampled, and the body of the request for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from typing import Any

from rewardkit.errors import UsageError
from rewardkit.evaluate.pictures import messages_with_pictures
from rewardkit.evaluate.questions import Question
from rewardkit.model_client.client import ENDPOINTS
from rewardkit.redact import Redactor

#: Fields that `extra` must not set: they have an option, or change the shape of the reply.
RESERVED_FIELDS = frozenset({"model", "messages", "prompt", "n", "stream"})


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of a request; None leaves a parameter to the server.

    Attributes:
        api: `chat`, or `completions`, which sends the contents of the messages joined by empty
            lines, without a chat template.
        temperature: 0 is greedy.
        top_p: from 0 to 1.
        top_k: understood by vLLM and SGLang; OpenAI's API does not define it.
        max_tokens: maximum tokens per response.
        stop: strings that end a response.
        seed: each request gets a seed of its own, derived from this one, the row and the sample.
        extra: additional fields of the request.
    """

    api: str = "chat"
    _: KW_ONLY
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `UsageError` for an API or for extra fields that this client cannot use."""
        if self.api not in ENDPOINTS:
            raise UsageError(f"--api {self.api}: use one of {', '.join(ENDPOINTS)}.")
        if reserved := sorted(RESERVED_FIELDS & self.extra.keys()):
            raise UsageError(f"--extra-body: {', '.join(reserved)} cannot be set there.")
        try:
            json.dumps(self.record(), allow_nan=False)
        except ValueError as error:
            raise UsageError("sampling: JSON cannot represent nan and inf; use numbers.") from error

    def record(self) -> dict[str, Any]:
        """Return the parameters that are set, as results record them; secrets are redacted."""
        named = {name: value for name, value in vars(self).items() if value not in (None, (), {})}
        if self.extra:
            named["extra"] = Redactor().tree(self.extra)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in named.items()}

    def request_body(self, model: str, question: Question, first: int, n: int) -> dict[str, Any]:
        """Return the body of the request for samples `first` to `first + n - 1` of a question."""
        body: dict[str, Any] = {**self.extra, "model": model}
        if self.api == "chat":
            body["messages"] = messages_with_pictures(question.prompt, question.images)
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
            body["seed"] = _request_seed(self.seed, question.row, first)
        return body


def _request_seed(seed: int, row: int, sample: int) -> int:
    """Derive a request's seed: with one seed for all, all samples would be the same response."""
    key = f"{seed} {row} {sample}".encode()
    return int.from_bytes(blake2b(key, digest_size=4).digest(), "big") >> 1
