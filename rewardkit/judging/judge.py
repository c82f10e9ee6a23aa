"""Ask a judge about one response: cache, budget, requests, one more try for an unusable reply.

Everything here runs on the background loop of the process, which owns the connections. Samples with
the same prompt, such as equal answers of a group, share one request.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal
from weakref import WeakKeyDictionary

from rewardkit.errors import RewardkitError
from rewardkit.judging.cache import cache_key, read_entry, write_entry
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.server import Budget, JudgeServer
from rewardkit.judging.settings import JudgeQuestion
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


async def judge(question: JudgeQuestion) -> Judgement:
    """Ask a judge about a response, on the background loop; ends within its timeout."""
    seconds = question.settings.timeout_seconds
    return await _within(seconds, _judge(question), Judgement("failed"))


async def _within(
    seconds: float, work: Coroutine[Any, Any, Judgement], failure: Judgement
) -> Judgement:
    """Return the judgement of some work, or else the other one with the reason."""
    start = monotonic()
    try:
        return await asyncio.wait_for(work, seconds)
    except asyncio.TimeoutError:
        failure.outcome, failure.message = "timeout", f"it has not answered within {seconds:g} s."
    except (TryAgainError, PromptRefusedError, RewardkitError) as error:
        is_timeout = isinstance(error, TryAgainError) and error.is_timeout
        failure.outcome, failure.message = "timeout" if is_timeout else "failed", str(error)
    failure.seconds = monotonic() - start
    return failure


async def _judge(question: JudgeQuestion) -> Judgement:
    settings = question.settings
    state = _states.setdefault(asyncio.get_running_loop(), _LoopState())
    budget = state.budgets.setdefault((settings.server, settings.budget), Budget(*settings.budget))
    budget.count_sample()
    server = state.servers.get(settings.server)
    if server is None:
        server = state.servers[settings.server] = JudgeServer(settings)
    model = await server.model()
    messages = build_messages(settings.rubric, *question[1:4])
    key = cache_key(
        {
            "version": VERSION,
            "model": model,
            "rubric": settings.rubric.digest,
            "messages": messages,
            "sampling": [settings.temperature, settings.max_tokens, settings.seed],
        }
    )
    judgement = Judgement("over_budget", message=OVER_BUDGET, prompt=tuple(messages))
    if key not in state.pending:
        if settings.cache and (reply := await asyncio.to_thread(read_entry, settings.cache, key)):
            with suppress(VerdictError):  # it is read as strictly as a new one
                verdict = parse_verdict(reply, settings.rubric)
                prompt = judgement.prompt
                return Judgement("verdict", verdict, prompt=prompt, reply=reply, is_cached=True)
        if budget.is_spent():
            return judgement
    if (task := state.pending.get(key)) is not None:  # another sample asks, perhaps meanwhile
        shared = await asyncio.shield(task)
        return replace(shared, is_cached=True, seconds=0.0, prompt_tokens=0, reply_tokens=0)

    def forget(task: asyncio.Task[Judgement]) -> None:
        state.pending.pop(key, None)
        if not task.cancelled():
            task.exception()  # the samples that wait raise it; there may be none

    work = _ask(judgement, question, server, budget, model, key)
    task = asyncio.create_task(_within(settings.timeout_seconds, work, judgement))
    state.pending[key] = task
    task.add_done_callback(forget)
    return await asyncio.shield(task)


async def _ask(
    judgement: Judgement,
    question: JudgeQuestion,
    server: JudgeServer,
    budget: Budget,
    model: str,
    key: str,
) -> Judgement:
    """Fill in the judgement, which has its prompt; ask once more if the reply is not a verdict."""
    start, messages, settings = monotonic(), [*judgement.prompt], question.settings
    for number in range(MAX_QUESTIONS):
        if number:
            messages[-1] = {"role": "user", "content": judgement.prompt[-1]["content"] + _AGAIN}
        if budget.is_spent():  # also by samples that were waiting at the same time
            break
        body = {
            "model": model,
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": settings.seed + number,
        }
        before = judgement.tokens
        with budget.call() as count_tokens:
            reply = await server.ask(body, verdict_schema(settings.rubric))
            _count_tokens(judgement, reply, messages)
            count_tokens(judgement.tokens - before)
        choice = reply.choices[0]
        judgement.reply = choice.text
        try:
            verdict = parse_verdict(choice.text, settings.rubric)
            require_no_echo(choice.text, verdict, settings.rubric, question.response)
        except VerdictError as error:
            is_cut = choice.finish_reason == TRUNCATED
            hint = " It was cut off: raise max_tokens." if is_cut else ""
            judgement.outcome = "failed"
            judgement.message = f"the reply is not a verdict: {error}.{hint}"
        else:
            judgement.outcome, judgement.verdict, judgement.message = "verdict", verdict, ""
            if settings.cache:
                await asyncio.to_thread(write_entry, settings.cache, key, choice.text)
            break
    judgement.seconds = monotonic() - start
    return judgement


def _count_tokens(
    judgement: Judgement, reply: CompletionReply, messages: list[Mapping[str, str]]
) -> None:
    """Count the tokens of a question, at 4 characters each if the server does not say."""
    characters = sum(len(message["content"]) for message in messages)
    text = sum(len(choice.text) + len(choice.reasoning) for choice in reply.choices)
    judgement.prompt_tokens += (
        characters // 4 if reply.prompt_tokens is None else reply.prompt_tokens
    )
    judgement.reply_tokens += text // 4 if reply.tokens is None else reply.tokens
