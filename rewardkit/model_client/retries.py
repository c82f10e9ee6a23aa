"""Requests to one server with adaptive concurrency, retries and back-off."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from time import monotonic
from typing import Any

from rewardkit.model_client.adaptive_concurrency import AdaptiveConcurrency
from rewardkit.model_client.client import (
    ClientPool,
    NoContactError,
    Server,
    TryAgainError,
    UnusableError,
    request_model_names,
    send_request,
)
from rewardkit.model_client.completions import WITHHELD, CompletionReply

#: Tries of a request while the server has not answered anything yet: the URL may be wrong.
FIRST_TRIES = 3

#: Tries of a request whose response the server withholds, because it usually does so again.
WITHHELD_TRIES = 3

#: The pause before the second try, which doubles from try to try, and its maximum.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 60.0


class ModelClient:
    """A client of one server, which belongs to one event loop.

    Attributes:
        server: the server that gets the requests.
        tries: tries per request.
    """

    def __init__(self, server: Server, concurrency: int = 256, tries: int = 9) -> None:
        self.server, self.tries = server, tries
        self._limit = AdaptiveConcurrency(concurrency)
        self._clients = ClientPool(server)
        self._random = random.Random(0)  # noqa: S311 - spreads the tries, protects nothing

    @property
    def answers(self) -> int:
        """Number of answered requests so far."""
        return self._limit.answers

    async def close(self) -> None:
        """Close all connections."""
        await self._clients.close()

    async def model_names(self) -> list[str]:
        """Return the names of the server's models.

        Raises:
            TryAgainError: the server does not answer, or not with a list of models.
            SourceError: it has no such list.
        """
        with self._clients.client() as http:
            return await request_model_names(http, self.server)

    async def ask(self, body: Mapping[str, Any], *, tries: int = 0) -> CompletionReply:
        """Send a request, again after failures that may pass, and return the server's reply.

        Raises:
            TryAgainError: all tries failed; `NoContactError` if the URL may be wrong,
                `UnusableError` if no reply had a usable choice.
            PromptRefusedError: the server refuses this prompt.
            SourceError: no request can succeed, because the model, URL or key is wrong.
        """
        most, done, answers = tries or self.tries, 0, 0
        while True:
            try:
                return await self._send(body)
            except TryAgainError as error:
                self.server.check()
                if error.is_busy and self.answers > answers:
                    done, answers = 0, self.answers  # it answers others: our turn will come
                done += 1
                tries = most
                if isinstance(error, NoContactError) and not self.answers:
                    tries = min(FIRST_TRIES, most)
                elif isinstance(error, UnusableError) and error.finish_reason in WITHHELD:
                    tries = min(WITHHELD_TRIES, most)
                if done >= tries:
                    raise
                await asyncio.sleep(self._pause(done, error))

    async def _send(self, body: Mapping[str, Any]) -> CompletionReply:
        async with self._limit.slot():
            start = monotonic()
            try:
                with self._clients.client() as http:
                    reply = await send_request(http, self.server, body)
            except TryAgainError as error:
                if error.is_busy:
                    self._limit.record_refusal(start, error.retry_after)
                elif error.is_timeout:
                    self._limit.record_timeout(start, self.server.timeout_seconds)
                raise
            self._limit.record_answer(monotonic() - start)
            return reply

    def _pause(self, tries: int, error: TryAgainError) -> float:
        """Return the seconds before the next try: longer each time, and at least what it asks."""
        backoff = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** (tries - 1))
        pause = backoff * self._random.uniform(0.5, 1)
        return error.retry_after + pause / 4 if error.retry_after else pause
