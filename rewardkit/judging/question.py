"""How a judge is asked about a response, and what came of it. Imports no HTTP client."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from rewardkit.errors import UsageError
from rewardkit.judging.rubric import read_rubric, reverse_rubric
from rewardkit.judging.verdict import JudgeVerdict


class JudgeSettings(SimpleNamespace):
    """The options of the scorer `judge` by their names, with its `rubric` and its API `key`."""

    def __repr__(self) -> str:
        """Leave out the key, because tracebacks show this."""
        return f"JudgeSettings({self.base_url!r})"

    @property
    def server(self) -> tuple[Any, ...]:
        """What requests to one server have in common."""
        limits = (self.concurrency, self.request_seconds, self.retries)
        return (self.base_url, self.model, self.key, *limits)

    @property
    def budget(self) -> tuple[Any, ...]:
        """The limits of the `Budget` of this process."""
        return (self.budget_calls, self.budget_tokens, self.budget_window)


class JudgeQuestion(NamedTuple):
    """A sample as its judge sees it: the question and the gold, or "", and what is judged.

    `pred` is the final answer of the response, by which verl counts votes.
    """

    settings: JudgeSettings
    question: str
    gold: str
    response: str
    pred: str = ""


@dataclass
class Judgement:
    """What came of asking a judge about one response.

    `message` says why there is no verdict; `reply` is the last one of several. A verdict that `is_cached`
    is from the cache or from another sample's request.
    """

    outcome: Literal["verdict", "failed", "timeout", "over_budget"]
    verdict: JudgeVerdict | None = None
    message: str = ""
    prompt: tuple[Mapping[str, str], ...] = field(default=(), repr=False)
    reply: str = ""
    is_cached: bool = False
    seconds: float = 0.0
    prompt_tokens: int = 0
    reply_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.reply_tokens

    def cost(self, prompt_price: float, reply_price: float) -> float:
        """Return the price of the requests, from the prices of a million tokens."""
        return (self.prompt_tokens * prompt_price + self.reply_tokens * reply_price) / 1e6


@cache
def judge_settings(options: tuple[tuple[str, Any], ...]) -> JudgeSettings:
    """Return the judge with these options of the scorer `judge`, which are all of them.

    Raises:
        UsageError: the rubric, the API key or the URL cannot be used.
    """
    settings = JudgeSettings(**dict(options))
    url = settings.base_url
    if url and not (url.startswith(("http://", "https://")) and urlsplit(url).hostname):
        raise UsageError(f"base_url {url}: write it as http://HOST:PORT/v1.")
    settings.rubric = read_rubric(settings.rubric)
    if settings.reverse:
        settings.rubric = reverse_rubric(settings.rubric)
    if settings.failed_score is not None:
        update = {"failed_score": float(settings.failed_score)}
        settings.rubric = settings.rubric.model_copy(update=update)
    variable = settings.api_key_env
    settings.key = key = os.environ.get(variable, "").strip() if variable else ""
    if not (key.isascii() and key.isprintable()) or (variable and not key):
        raise UsageError(
            f"api_key_env {variable}: the variable is not set in this process, or is not a key. "
            "Set it in the environment that starts Ray, or in Ray's runtime_env."
        )
    return settings
