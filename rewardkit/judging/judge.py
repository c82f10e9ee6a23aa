"""Ask a judge about one response: cache, budget, requests, one more try for an unusable reply.

Everything here runs on the background loop of the process, which owns the connections. Samples with
the same prompt, such as equal answers of a group, share one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any, Literal
from weakref import WeakKeyDictionary

from rewardkit.errors import RewardkitError
from rewardkit.judging.budget import Budget, BudgetLimits
from rewardkit.judging.cache import cache_key, read_entry, write_entry
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.server import JudgeServer
from rewardkit.judging.settings import JudgeSettings, ServerSettings
from rewardkit.judging.verdict import (
    JudgeVerdict,
    VerdictError,
    parse_verdict,
    require_no_echo,
    verdict_schema,
)
from rewardkit.model_client.client import PromptRefusedError, TryAgainError
from rewardkit.model_client.completions import TRUNCATED, CompletionReply

#: Requests per sample: a reply that is not a verdict is asked for once more.
MAX_QUESTIONS = 2

#: Changed when prompts or verdicts get another meaning, so that old entries of a cache do not count.
VERSION = 1

#: Why a sample for which the budget was spent has no verdict.
OVER_BUDGET = "the budget of this window is spent; raise it, or ask for fewer samples."

_AGAIN = (
    "\n\nAn earlier reply to this message could not be read. Reply with the JSON object only: begin "
    "with { and end with }."
)


@dataclass(frozen=True)
class Judgement:
    """What came of asking a judge about one response.

    Attributes:
        outcome: `verdict`; `failed` without a readable verdict; `timeout`; or `over_budget`.
        verdict: the verdict, if there is one.
        message: why there is none.
        prompt: the messages that the judge got.
        reply: the judge's reply, or the last one of several.
        is_cached: the verdict is from the cache or from another sample's request.
        seconds: seconds that the requests took.
        prompt_tokens: tokens of the prompts.
        reply_tokens: tokens of the replies.
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

    def cost(self, prices: tuple[float, float]) -> float:
        """Return the price of the requests, in the currency of the prices."""
        return (self.prompt_tokens * prices[0] + self.reply_tokens * prices[1]) / 1e6


@dataclass
class _LoopState:
    """What the judges of one event loop share."""

    servers: dict[ServerSettings, JudgeServer] = field(default_factory=dict)
    budgets: dict[tuple[ServerSettings, BudgetLimits], Budget] = field(default_factory=dict)
    pending: dict[str, asyncio.Task[Judgement]] = field(default_factory=dict)


#: By event loop: a forked process has another loop, and connections of its own.
_states: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopState] = WeakKeyDictionary()


async def judge(settings: JudgeSettings, question: str, gold: str, response: str) -> Judgement:
    """Ask a judge about a response, on the background loop; ends within its timeout.

    Args:
        settings: the judge.
        question: the question of the row; "" if it is unknown.
        gold: the reference answer; "" if the rubric does not use it.
        response: what the judge sees of the response.
    """
    start = monotonic()
    try:
        return await asyncio.wait_for(
            _judge(settings, question, gold, response), settings.timeout_seconds
        )
    except asyncio.TimeoutError:
        message = f"it has not answered within {settings.timeout_seconds:g} s."
        return Judgement("timeout", message=message, seconds=monotonic() - start)
    except (TryAgainError, RewardkitError) as error:  # the server's URL or its list of models
        return Judgement("failed", message=str(error), seconds=monotonic() - start)


async def _judge(settings: JudgeSettings, question: str, gold: str, response: str) -> Judgement:
    state = _states.setdefault(asyncio.get_running_loop(), _LoopState())
    owner = (settings.server, settings.budget)
    budget = state.budgets.setdefault(owner, Budget(settings.budget))
    budget.count_sample()
    server = state.servers.get(settings.server)
    if server is None:
        server = state.servers[settings.server] = JudgeServer(settings.server)
    model = await server.model()
    messages = build_messages(settings.rubric, question, gold, response)
    key = _key(settings, model, messages)
    if (task := state.pending.get(key)) is not None:
        return replace(await asyncio.shield(task), **_SHARED)
    if (cached := await _read_cache(settings, key, messages)) is not None:
        return cached
    if budget.is_spent():
        return Judgement("over_budget", message=OVER_BUDGET, prompt=tuple(messages))
    if (task := state.pending.get(key)) is None:  # another sample may have asked meanwhile
        questioner = _Questioner(settings, server, budget, model, messages, response)
        task = asyncio.create_task(questioner.run(key))
        state.pending[key] = task
        task.add_done_callback(partial(_forget, state.pending, key))
        return await asyncio.shield(task)
    return replace(await asyncio.shield(task), **_SHARED)


def _forget(
    pending: dict[str, asyncio.Task[Judgement]], key: str, task: asyncio.Task[Judgement]
) -> None:
    pending.pop(key, None)
    if not task.cancelled():
        task.exception()  # the samples that wait raise it; there may be none


#: What a sample that shares the request of another one reports.
_SHARED: dict[str, Any] = {"is_cached": True, "seconds": 0.0, "prompt_tokens": 0, "reply_tokens": 0}


def _key(settings: JudgeSettings, model: str, messages: list[dict[str, str]]) -> str:
    return cache_key(
        {
            "version": VERSION,
            "model": model,
            "rubric": settings.rubric.digest,
            "messages": messages,
            "sampling": [settings.temperature, settings.max_tokens, settings.seed],
        }
    )


async def _read_cache(
    settings: JudgeSettings, key: str, messages: list[dict[str, str]]
) -> Judgement | None:
    """Return the judgement of an entry of the cache, whose reply is read as strictly as a new one."""
    reply = await asyncio.to_thread(read_entry, settings.cache, key) if settings.cache else None
    if reply is None:
        return None
    try:
        verdict = parse_verdict(reply, settings.rubric)
    except VerdictError:
        return None
    return Judgement("verdict", verdict, prompt=tuple(messages), reply=reply, is_cached=True)


class _BudgetSpentError(Exception):
    """The budget does not allow another request."""


class _Questioner:
    """The questions about one prompt."""

    def __init__(
        self,
        settings: JudgeSettings,
        server: JudgeServer,
        budget: Budget,
        model: str,
        messages: list[dict[str, str]],
        response: str,
    ) -> None:
        self.settings, self.server, self.budget = settings, server, budget
        self.model, self.messages, self.response = model, messages, response
        self.start = monotonic()
        self.prompt_tokens = self.reply_tokens = 0

    async def run(self, key: str) -> Judgement:
        """Ask within the timeout, and once more if the reply is not a verdict; fill the cache."""
        reply = message = ""
        try:
            for number in range(MAX_QUESTIONS):
                answer = await asyncio.wait_for(self._ask(number), self._seconds_left())
                reply, message = answer.choices[0].text, ""
                try:
                    verdict = parse_verdict(reply, self.settings.rubric)
                    require_no_echo(reply, verdict, self.settings.rubric, self.response)
                except VerdictError as error:
                    is_cut = answer.choices[0].finish_reason == TRUNCATED
                    hint = " It was cut off: raise max_tokens." if is_cut else ""
                    message = f"the reply is not a verdict: {error}.{hint}"
                    continue
                if self.settings.cache:
                    await asyncio.to_thread(write_entry, self.settings.cache, key, reply)
                return self._judgement("verdict", verdict=verdict, reply=reply)
        except _BudgetSpentError:
            if not message:
                return self._judgement("over_budget", message=OVER_BUDGET)
        except asyncio.TimeoutError:
            message = f"it has not answered within {self.settings.timeout_seconds:g} s."
            return self._judgement("timeout", message=message, reply=reply)
        except (TryAgainError, PromptRefusedError, RewardkitError) as error:
            is_timeout = isinstance(error, TryAgainError) and error.is_timeout
            outcome: Literal["timeout", "failed"] = "timeout" if is_timeout else "failed"
            return self._judgement(outcome, message=str(error), reply=reply)
        return self._judgement("failed", message=message, reply=reply)

    def _seconds_left(self) -> float:
        return max(0.0, self.settings.timeout_seconds - (monotonic() - self.start))

    async def _ask(self, number: int) -> CompletionReply:
        settings, messages = self.settings, self.messages
        if number:
            last = {**messages[-1], "content": messages[-1]["content"] + _AGAIN}
            messages = [*messages[:-1], last]
        body = {
            "model": self.model,
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": settings.seed + number,
        }
        if self.budget.is_spent():  # by samples that were waiting at the same time
            raise _BudgetSpentError
        self.budget.begin_call()
        tokens = 0
        try:
            reply = await self.server.ask(body, verdict_schema(settings.rubric))
            prompt_tokens, reply_tokens = _tokens(reply, messages)
            tokens = prompt_tokens + reply_tokens
            self.prompt_tokens += prompt_tokens
            self.reply_tokens += reply_tokens
            return reply
        finally:
            self.budget.end_call(tokens)

    def _judgement(
        self,
        outcome: Literal["verdict", "failed", "timeout", "over_budget"],
        *,
        verdict: JudgeVerdict | None = None,
        message: str = "",
        reply: str = "",
    ) -> Judgement:
        return Judgement(
            outcome,
            verdict,
            message,
            prompt=tuple(self.messages),
            reply=reply,
            seconds=monotonic() - self.start,
            prompt_tokens=self.prompt_tokens,
            reply_tokens=self.reply_tokens,
        )


def _tokens(reply: CompletionReply, messages: list[dict[str, str]]) -> tuple[int, int]:
    """Return the tokens of a prompt and its reply, at 4 characters each if the server does not say."""
    characters = sum(len(message["content"]) for message in messages)
    text = sum(len(choice.text) + len(choice.reasoning) for choice in reply.choices)
    return (
        characters // 4 if reply.prompt_tokens is None else reply.prompt_tokens,
        text // 4 if reply.tokens is None else reply.tokens,
    )
