"""Ask a judge about one response: cache, budget, requests, one more try for an unusable reply.

Everything here runs on the background loop of the process, which owns the connections. Samples with
the same prompt, such as equal answers of a group, share one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal
from weakref import WeakKeyDictionary

from rewardkit.errors import RewardkitError
from rewardkit.judging.budget import Budget
from rewardkit.judging.cache import cache_key, read_entry, write_entry
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.server import JudgeServer
from rewardkit.judging.settings import JudgeSettings
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

_LATE = "it has not answered within {:g} s."
_AGAIN = (
    "\n\nAn earlier reply to this message could not be read. Reply with the JSON object only: begin "
    "with { and end with }."
)


@dataclass
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

    def cost(self, prompt_price: float, reply_price: float) -> float:
        """Return the price of the requests, from the prices of a million tokens."""
        return (self.prompt_tokens * prompt_price + self.reply_tokens * reply_price) / 1e6


@dataclass
class _LoopState:
    """What the judges of one event loop share."""

    servers: dict[Any, JudgeServer] = field(default_factory=dict)
    budgets: dict[Any, Budget] = field(default_factory=dict)
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
        message = _LATE.format(settings.timeout_seconds)
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
        server = state.servers[settings.server] = JudgeServer(settings)
    model = await server.model()
    messages = build_messages(settings.rubric, question, gold, response)
    key = cache_key(
        {
            "version": VERSION,
            "model": model,
            "rubric": settings.rubric.digest,
            "messages": messages,
            "sampling": [settings.temperature, settings.max_tokens, settings.seed],
        }
    )
    if (task := state.pending.get(key)) is not None:
        return _shared(await asyncio.shield(task))
    if (cached := await _read_cache(settings, key, messages)) is not None:
        return cached
    if budget.is_spent():
        return Judgement("over_budget", message=OVER_BUDGET, prompt=tuple(messages))
    if (task := state.pending.get(key)) is not None:  # another sample has asked meanwhile
        return _shared(await asyncio.shield(task))

    def forget(task: asyncio.Task[Judgement]) -> None:
        state.pending.pop(key, None)
        if not task.cancelled():
            task.exception()  # the samples that wait raise it; there may be none

    asking = _ask_within_timeout(settings, server, budget, model, messages, response, key)
    task = state.pending[key] = asyncio.create_task(asking)
    task.add_done_callback(forget)
    return await asyncio.shield(task)


def _shared(judgement: Judgement) -> Judgement:
    return replace(judgement, is_cached=True, seconds=0.0, prompt_tokens=0, reply_tokens=0)


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


async def _ask_within_timeout(
    settings: JudgeSettings,
    server: JudgeServer,
    budget: Budget,
    model: str,
    messages: list[dict[str, str]],
    response: str,
    key: str,
) -> Judgement:
    judgement, start = Judgement("failed", prompt=tuple(messages)), monotonic()
    asking = _ask_twice(judgement, settings, server, budget, model, messages, response)
    try:
        await asyncio.wait_for(asking, settings.timeout_seconds)
    except asyncio.TimeoutError:
        judgement.outcome, judgement.message = "timeout", _LATE.format(settings.timeout_seconds)
    except (TryAgainError, PromptRefusedError, RewardkitError) as error:
        is_timeout = isinstance(error, TryAgainError) and error.is_timeout
        judgement.outcome = "timeout" if is_timeout else "failed"
        judgement.message = str(error)
    if judgement.verdict and settings.cache:
        await asyncio.to_thread(write_entry, settings.cache, key, judgement.reply)
    judgement.seconds = monotonic() - start
    return judgement


async def _ask_twice(
    judgement: Judgement,
    settings: JudgeSettings,
    server: JudgeServer,
    budget: Budget,
    model: str,
    messages: list[dict[str, str]],
    response: str,
) -> None:
    """Fill in the judgement; ask once more if the reply is not a verdict."""
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
    }
    for number in range(MAX_QUESTIONS):
        if number:
            last = {**messages[-1], "content": messages[-1]["content"] + _AGAIN}
            body |= {"messages": [*messages[:-1], last], "seed": settings.seed + number}
        if budget.is_spent():  # also by samples that were waiting at the same time
            if not number:
                judgement.outcome, judgement.message = "over_budget", OVER_BUDGET
            return
        budget.begin_call()
        before = judgement.tokens
        try:
            reply = await server.ask(body, verdict_schema(settings.rubric))
            _count_tokens(judgement, reply, body["messages"])
        finally:
            budget.end_call(judgement.tokens - before)
        choice = reply.choices[0]
        judgement.reply = choice.text
        try:
            verdict = parse_verdict(choice.text, settings.rubric)
            require_no_echo(choice.text, verdict, settings.rubric, response)
        except VerdictError as error:
            is_cut = choice.finish_reason == TRUNCATED
            hint = " It was cut off: raise max_tokens." if is_cut else ""
            judgement.message = f"the reply is not a verdict: {error}.{hint}"
        else:
            judgement.outcome, judgement.verdict, judgement.message = "verdict", verdict, ""
            return


def _count_tokens(
    judgement: Judgement, reply: CompletionReply, messages: list[dict[str, str]]
) -> None:
    """Count the tokens of a question, at 4 characters each if the server does not say."""
    characters = sum(len(message["content"]) for message in messages)
    text = sum(len(choice.text) + len(choice.reasoning) for choice in reply.choices)
    judgement.prompt_tokens += (
        characters // 4 if reply.prompt_tokens is None else reply.prompt_tokens
    )
    judgement.reply_tokens += text // 4 if reply.tokens is None else reply.tokens
