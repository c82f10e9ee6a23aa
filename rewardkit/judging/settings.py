"""How a judge is asked: server, rubric, limits, cache and budget."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rewardkit.errors import UsageError
from rewardkit.judging.budget import BudgetLimits
from rewardkit.judging.rubric import Rubric


@dataclass(frozen=True)
class ServerSettings:
    """A server and the limits of requests to it.

    Attributes:
        base_url: URL of the API, such as `http://127.0.0.1:8000/v1`.
        model: the model's name; "" to ask the server, which must have one model only.
        key: the API key.
        concurrency: upper limit of concurrent requests of this process.
        request_seconds: timeout per request, in seconds.
        tries: tries per request.
    """

    base_url: str
    model: str = ""
    key: str = ""
    concurrency: int = 64
    request_seconds: float = 60.0
    tries: int = 5

    def __repr__(self) -> str:
        """Leave out the key, because tracebacks show this."""
        return f"ServerSettings({self.base_url!r}, {self.model!r})"


@dataclass(frozen=True)
class JudgeSettings:
    """How a judge is asked.

    Attributes:
        server: the server, the model and the limits of requests.
        rubric: what is asked.
        timeout_seconds: seconds for one sample, with waiting, retries and the second question.
        temperature: sampling temperature.
        max_tokens: tokens of a reply.
        seed: random seed of the requests.
        cache: folder of the cache; "" for none.
        budget: what this process may spend.
        prices: price of a million tokens of prompts, and of replies.
    """

    server: ServerSettings
    rubric: Rubric
    timeout_seconds: float = 120.0
    temperature: float = 0.0
    max_tokens: int = 512
    seed: int = 0
    cache: str = ""
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    prices: tuple[float, float] = (0.0, 0.0)


def read_api_key(variable: str) -> str:
    """Return the API key in an environment variable; "" for no variable.

    Raises:
        UsageError: the variable is not set, or is not a key.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise UsageError(
            f"api_key_env {variable}: the variable is not set in this process, or is not a key. "
            "Set it in the environment that starts Ray, or in Ray's runtime_env."
        )
    return key
