"""The server of a judge: its model's name, whether it takes a JSON schema, and what it may cost."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rewardkit.errors import SourceError
from rewardkit.judging.settings import JudgeSettings
from rewardkit.model_client.client import (
    ModelClient,
    NoContactError,
    PromptRefusedError,
    Server,
    TryAgainError,
    UnusableError,
)
from rewardkit.model_client.completions import CompletionReply

#: Bytes of a reply, with the thoughts of its model. Many requests wait at once in verl's process.
MAX_REPLY_BYTES = 1 << 23

#: Server errors to requests with a schema, each followed by an answer to one without, after which
#: schemas are not sent any more. verl's router answers 500 to whatever the server behind it refuses.
MAX_SCHEMA_ERRORS = 2


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
        """Return the model's name, which the server is asked for once if it is not set.

        Raises:
            SourceError: the server has no list of models, or not exactly one.
        """
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
        """Send a request with the schema of its reply, or without if the server refuses schemas.

        Raises:
            TryAgainError, PromptRefusedError, SourceError: see `ModelClient.ask`.
        """
        if self._takes_schema is False:
            return await self._client.ask(body)
        response_format = {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": schema},
        }
        structured = {**body, "response_format": response_format}
        if self._takes_schema:
            return await self._client.ask(structured)
        try:
            reply = await self._client.ask(structured, tries=1)
        except PromptRefusedError:
            reply = await self._client.ask(body)
            self._takes_schema = False
        except TryAgainError as error:
            reply = await self._client.ask(body)
            is_other = isinstance(error, NoContactError | UnusableError)
            may_mean_refusal = not (is_other or error.is_busy or error.is_timeout)
            if may_mean_refusal and self._takes_schema is None:
                self._schema_errors += 1
                self._takes_schema = False if self._schema_errors >= MAX_SCHEMA_ERRORS else None
        else:
            self._takes_schema = True
        return reply


class Budget:
    """What a process has spent in the current window; used by one event loop. 0 stands for no limit.

    A reward does not know the training step, so that a budget is for a window of samples of one process.
    With 8 reward workers and 1,024 responses a step, a window of 128 samples is about one step; responses
    without an answer need no judge and are not counted. Without a window the budget is for the whole life
    of the process.
    """

    def __init__(
        self,
        calls: int = 0,
        tokens: int = 0,
        seconds: float = 0.0,
        window: int = 0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Set the limits.

        Args:
            calls: requests.
            tokens: tokens of prompts and replies.
            seconds: seconds in which at least one request was under way.
            window: samples after which the budget starts anew, those from the cache included.
            clock: returns the time in seconds.
        """
        self._limits, self._window, self._clock = (calls, tokens, seconds), window, clock
        self._samples = self._calls = self._tokens = self._active = 0
        self._seconds = self._start = 0.0

    def count_sample(self) -> None:
        """Count a sample; the first one after a window starts a new window."""
        if self._window and self._samples >= self._window:
            self._samples = self._calls = self._tokens = 0
            self._seconds, self._start = 0.0, self._clock()
        self._samples += 1

    def is_spent(self) -> bool:
        """Return whether no further request may be sent in this window."""
        seconds = self._seconds + (self._clock() - self._start if self._active else 0.0)
        spent = zip(self._limits, (self._calls, self._tokens, seconds), strict=True)
        return any(0 < limit <= value for limit, value in spent)

    @contextmanager
    def call(self) -> Iterator[Callable[[int], None]]:
        """Count the request of the block; give a function that counts its tokens."""
        if not self._active:
            self._start = self._clock()
        self._active += 1
        self._calls += 1
        try:
            yield self._count_tokens
        finally:
            self._active -= 1
            if not self._active:
                self._seconds += self._clock() - self._start

    def _count_tokens(self, tokens: int) -> None:
        self._tokens += tokens
