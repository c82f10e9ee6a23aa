"""Requests to one server with adaptive concurrency, retries and back-off."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

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

#: Requests at the start. From 64 on, runs of 2,000 requests took 13 to 25 % longer on a server with
#: room for 256, and up to 44 % if lengths have a long tail.
INITIAL_REQUESTS = 256

#: A timeout counts as overload if the usual answer takes more than this share of the timeout;
#: otherwise it is a single outlier, such as a response that never ends.
SLOW_SHARE = 0.25

#: The limit is doubled after one answer per allowed request, and after the first setback grown by
#: half after this many: the server may have more room by then.
REST_ROUNDS = 16


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


class AdaptiveConcurrency:
    """Slots for requests of one event loop, which halve when the server has too many of them.

    The server reports it (429, 503), or shows it: a request times out while most answers take long. The
    limit grows again while no request is refused, up to the user's own limit.

    Attributes:
        max_requests: upper limit of concurrent requests.
        allowed: the current limit.
        answers: number of answered requests so far.
    """

    def __init__(self, max_requests: int, clock: Callable[[], float] = monotonic) -> None:
        self.max_requests, self.allowed = max_requests, min(max_requests, INITIAL_REQUESTS)
        self.answers = 0
        self._clock = clock
        self._active = 0
        self._resume_time = 0.0  # no request starts before this time
        self._cut_time = -1.0  # a refusal of a request sent before this time is old news
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._answers_since_change = 0
        self._usual_seconds = 0.0  # moving average of the time of an answer

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a request may start, and hold its slot during the block."""
        while self._active >= self.allowed or self._clock() < self._resume_time:
            await self._wait()
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self._wake()

    def record_answer(self, seconds: float) -> None:
        """Count a request that was answered after `seconds`."""
        self.answers += 1
        self._answers_since_change += 1
        self._usual_seconds += (seconds - self._usual_seconds) / min(self.answers, self.allowed)
        rounds, growth = (1, 2.0) if self._cut_time < 0 else (REST_ROUNDS, 1.5)
        if self._answers_since_change >= rounds * self.allowed:
            self.allowed = min(self.max_requests, int(self.allowed * growth + 0.5))
            self._answers_since_change = 0
            self._wake()

    def record_refusal(self, sent: float, pause: float) -> None:
        """Halve the limit, because the server refused a request as one too many."""
        now = self._clock()
        self._resume_time = max(self._resume_time, now + pause)
        if sent > self._cut_time:
            self.allowed = max(1, self.allowed // 2)
            self._cut_time, self._answers_since_change = now, 0

    def record_timeout(self, sent: float, seconds: float) -> None:
        """Count a request that was sent at `sent` and had no answer after `seconds`."""
        if self._usual_seconds > SLOW_SHARE * seconds or not self.answers:
            self.record_refusal(sent, 0.0)

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if (pause := self._resume_time - self._clock()) > 0:
            asyncio.get_running_loop().call_later(pause, self._wake)
        await waiter

    def _wake(self) -> None:
        free = self.allowed - self._active
        while free > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1
