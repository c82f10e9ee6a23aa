"""Ask a judge about one response: cache, budget, requests, one more try for an unusable reply.

Everything here runs on the background loop of the process, which owns the connections. Samples with
the same prompt, such as equal answers of a group, share one request.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from rewardkit.errors import RewardkitError, SourceError
from rewardkit.judging.cache import cache_key, read_entry, write_entry
from rewardkit.judging.prompt import build_messages
from rewardkit.judging.question import Judgement, JudgeQuestion, JudgeSettings
from rewardkit.judging.verdict import VerdictError, parse_verdict, require_no_echo, verdict_schema
from rewardkit.model_client.client import (
    ModelClient,
    NoContactError,
    PromptRefusedError,
    Server,
    TryAgainError,
)
from rewardkit.model_client.completions import TRUNCATED, CompletionReply

#: Requests per sample: a reply that is not a verdict is asked for once more.
MAX_QUESTIONS = 2

#: Changed when prompts or verdicts get another meaning, so that old entries of a cache do not count.
VERSION = 1

#: Why a sample for which the budget was spent has no verdict.
OVER_BUDGET = "the budget of this window is spent; raise it, or ask for fewer samples."

#: Bytes of a reply, with the thoughts of its model. Many requests wait at once in verl's process.
MAX_REPLY_BYTES = 1 << 23

#: Server errors to requests with a schema, each followed by an answer to one without, after which
#: schemas are not sent any more. verl's router answers 500 to whatever the server behind it refuses.
MAX_SCHEMA_ERRORS = 2

_AGAIN = (
    "\n\nAn earlier reply to this message could not be read. Reply with the JSON object only: begin "
    "with { and end with }."
)


class JudgeServer:
    """Requests to the server of a judge; belongs to one event loop."""

    def __init__(self, settings: JudgeSettings) -> None:
        server = Server(
            settings.base_url,
            key=settings.key,
            timeout_seconds=settings.request_seconds,
            max_reply_bytes=MAX_REPLY_BYTES,
        )
        self._client = ModelClient(server, settings.concurrency, settings.retries + 1)
        self._model: str = settings.model
        self._lock = asyncio.Lock()
        self._takes_schema: bool | None = None
        self._schema_errors = 0

    async def model(self) -> str:
        """Return the model's name, which the server is asked for once if it is not set."""
        async with self._lock:
            if self._model:
                return self._model
            url = self._client.server.base_url
            try:
                names = await self._client.model_names()
            except (TryAgainError, SourceError) as error:
                raise SourceError(
                    f"{url}/models: {error} Check base_url, or name the judge's model: model=NAME."
                ) from error
            if len(names) != 1:
                has = ", ".join(names[:5]) or "none"
                raise SourceError(f"{url}: name the judge's model with model=NAME; it has {has}.")
            self._model = names[0]
            return self._model

    async def ask(self, body: Mapping[str, Any], schema: Mapping[str, Any]) -> CompletionReply:
        """Send a request with the schema of its reply, or without if the server refuses schemas."""
        takes_schema = self._takes_schema  # it changes while this request waits
        if takes_schema is False:
            return await self._client.ask(body)
        verdict = {"name": "verdict", "strict": True, "schema": schema}
        response_format = {"type": "json_schema", "json_schema": verdict}
        try:
            reply = await self._client.ask(
                {**body, "response_format": response_format}, tries=0 if takes_schema else 1
            )
        except (PromptRefusedError, TryAgainError) as error:
            if takes_schema:
                raise
            failure = error
        else:
            self._takes_schema = True
            return reply
        reply = await self._client.ask(body)
        if self._takes_schema is None:  # it may have refused the schema, which it answers without
            if isinstance(failure, PromptRefusedError):
                self._schema_errors = MAX_SCHEMA_ERRORS
            elif not isinstance(failure, NoContactError) and not failure.finish_reason:
                self._schema_errors += not (failure.is_busy or failure.is_timeout)
            self._takes_schema = False if self._schema_errors >= MAX_SCHEMA_ERRORS else None
        return reply


@dataclass
class Budget:
    """What a process has spent in the current window; used by one event loop.

    A reward does not know the training step, so that a budget is for a window of samples of one process.
    With 8 reward workers and 1,024 responses a step, a window of 128 samples is about one step; responses
    without an answer need no judge and are not counted.

    Attributes:
        max_calls: requests; 0 for no limit.
        max_tokens: tokens of prompts and replies; 0 for no limit.
        window: samples after which the budget starts anew, those from the cache included; 0 for never.
        samples: samples in this window.
        calls: requests in this window, counted by who asks.
        tokens: tokens in this window, counted by who asks.
    """

    max_calls: int = 0
    max_tokens: int = 0
    window: int = 0
    samples: int = 0
    calls: int = 0
    tokens: int = 0

    def count_sample(self) -> None:
        """Count a sample; the first one after a window starts a new window."""
        if self.window and self.samples >= self.window:
            self.samples = self.calls = self.tokens = 0
        self.samples += 1

    @property
    def is_spent(self) -> bool:
        """Whether no further request may be sent in this window."""
        return 0 < self.max_calls <= self.calls or 0 < self.max_tokens <= self.tokens


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
        if budget.is_spent:
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
        if budget.is_spent:  # also by samples that were waiting at the same time
            break
        body = {
            "model": model,
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "seed": settings.seed + number,
        }
        budget.calls += 1
        reply = await server.ask(body, verdict_schema(settings.rubric))
        tokens = _count_tokens(reply, messages)
        judgement.prompt_tokens += tokens[0]
        judgement.reply_tokens += tokens[1]
        budget.tokens += sum(tokens)
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


def _count_tokens(reply: CompletionReply, messages: list[Mapping[str, str]]) -> tuple[int, int]:
    """Return the tokens of a prompt and its reply, at 4 characters each if the server does not say."""
    characters = sum(len(message["content"]) for message in messages)
    text = sum(len(choice.text) + len(choice.reasoning) for choice in reply.choices)
    return (
        characters // 4 if reply.prompt_tokens is None else reply.prompt_tokens,
        text // 4 if reply.tokens is None else reply.tokens,
    )
