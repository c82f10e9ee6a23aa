"""A limit on concurrent requests that halves when the server has too many of them.

The server reports it (429, 503), or shows it: a request times out while most answers take long. The
limit grows again while no request is refused, up to the user's own limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

#: Requests at the start. From 64 on, runs of 2,000 requests took 13 to 25 % longer on a server with
#: room for 256, and up to 44 % if lengths have a long tail.
INITIAL_REQUESTS = 256

#: A timeout counts as overload if the usual answer takes more than this share of the timeout;
#: otherwise it is a single outlier, such as a response that never ends.
SLOW_SHARE = 0.25

#: The limit is doubled after one answer per allowed request, and after the first setback grown by
#: half after this many: the server may have more room by then.
REST_ROUNDS = 16


class AdaptiveConcurrency:
    """Slots for requests, used by one event loop.

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
