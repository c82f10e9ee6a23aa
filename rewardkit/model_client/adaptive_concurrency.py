"""A limit on concurrent requests that grows as long as more of them make the server faster.

By Little's law, answers per second are the requests in flight divided by the mean time of a request.
The limit grows as long as this rate grows with it. It halves when the server reports too many
requests (429, 503) or shows it: a request times out while most answers take long. At first the
limit doubles after one answer per allowed request. Later, a round is two answers per allowed
request, and the answers right after a change are not counted, because their requests were sent
before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

#: Requests at the start. From 64 on, runs of 2,000 requests took 13 to 25 % longer on a server with
#: room for 256, and up to 44 % if lengths have a long tail: the first round misjudges those.
INITIAL_REQUESTS = 256

#: A timeout counts as overload if the usual answer takes more than this share of the timeout;
#: otherwise it is a single outlier, such as a response that never ends.
SLOW_SHARE = 0.25

#: A larger limit is kept if the rate grows by at least this share of what the limit grew by.
MIN_GAIN = 0.25

#: Growth of the limit per round: until the first setback, and after it.
FIRST_GROWTH, GROWTH = 2.0, 1.5

#: Rounds without growth after a setback. The server may have more room by then.
REST_ROUNDS = 8


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
        self._growth, self._resting, self._changed = FIRST_GROWTH, 0, False
        self._before: tuple[int, float] | None = None  # the limit before, and its answers a second
        self._round_answers, self._round_seconds = 0, 0.0
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
        self._round_answers += 1
        self._round_seconds += seconds
        self._usual_seconds += (seconds - self._usual_seconds) / min(self.answers, self.allowed)
        is_short_round = self._changed or self._growth == FIRST_GROWTH
        if self._round_answers >= (1 if is_short_round else 2) * self.allowed:
            self._end_round()

    def record_refusal(self, sent: float, pause: float) -> None:
        """Halve the limit, because the server refused a request as one too many.

        Args:
            sent: time of the clock at which the request was sent.
            pause: seconds in which no request starts.
        """
        now = self._clock()
        self._resume_time = max(self._resume_time, now + pause)
        if sent > self._cut_time:
            self.allowed = max(1, self.allowed // 2)
            self._growth, self._before, self._resting = GROWTH, None, REST_ROUNDS
            self._cut_time, self._round_answers, self._round_seconds = now, 0, 0.0

    def record_timeout(self, sent: float, seconds: float) -> None:
        """Count a request that was sent at `sent` and had no answer after `seconds`."""
        if self._usual_seconds > SLOW_SHARE * seconds or not self.answers:
            self.record_refusal(sent, 0.0)

    def _end_round(self) -> None:
        """Grow the limit, keep it or go back, depending on the rate of the round."""
        rate = self.allowed * self._round_answers / max(self._round_seconds, 1e-9)
        if self._changed:
            self._changed = False
        elif self._resting:
            self._resting -= 1
        elif self._before and not self._is_worth_it(*self._before, rate):
            self.allowed, self._growth, self._resting = self._before[0], GROWTH, REST_ROUNDS
            self._before = None
        else:
            self._before = (self.allowed, rate)
            self.allowed = min(self.max_requests, int(self.allowed * self._growth + 0.5))
            self._changed = self._growth == GROWTH and self.allowed != self._before[0]
        self._round_answers, self._round_seconds = 0, 0.0
        self._wake()

    def _is_worth_it(self, allowed_before: int, rate_before: float, rate: float) -> bool:
        return rate >= rate_before * (1 + MIN_GAIN * (self.allowed / allowed_before - 1))

    async def _wait(self) -> None:
        """Wait until a slot may be free or the pause over."""
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
