"""How many requests are under way at once: as many as make the server faster, and no more.

By Little's law the answers a second are the requests under way over the mean time of one. Their
number grows as long as that grows with it, and halves when the server says that it has too many
(429, 503), or shows it: one is not answered in time, and the others hardly are. At first it doubles
with every answer to each request allowed; then it is judged over two, and those that were asked
before a change are not counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic

#: Requests to start with. From 64 on, runs of 2,000 requests took 13 to 25 % longer on a server with
#: room for 256, and up to 44 % where lengths have a long tail: the first round misjudges those.
START = 256

#: A request that is not answered in time is one too many if the usual answer takes more than this
#: part of that time; else it is an odd one, without an end, say.
SLOW = 0.25

#: More requests are worth it if the server gets faster by at least this part of what they grew.
WORTH = 0.25

#: How much they grow: at first, and once that was too much, or was refused.
FIRST_GROWTH, GROWTH = 2.0, 1.5

#: Rounds without growth after one that was not worth it: the server may have more room by then.
REST = 8


class Limit:
    """Slots for requests. One event loop uses it.

    Attributes:
        most: requests under way at once, never more.
        allowed: as many for now.
        answers: requests answered so far.
    """

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self.most, self.allowed = most, min(most, START)
        self.answers = 0
        self._clock = clock
        self._active = 0
        self._resume = 0.0  # no request before this time
        self._cut = -1.0  # refusals of requests sent until then say nothing new
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._growth, self._resting, self._changed = FIRST_GROWTH, 0, False
        self._before: tuple[int, float] | None = None  # requests allowed, and answers a second
        self._done, self._seconds = 0, 0.0
        self._usual = 0.0  # seconds that an answer took of late

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """A slot for one request, once there is one and no pause."""
        while self._active >= self.allowed or self._clock() < self._resume:
            await self._turn()
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self._wake()

    def answered(self, seconds: float) -> None:
        """Count a request that was answered in that time."""
        self.answers += 1
        self._done += 1
        self._seconds += seconds
        self._usual += (seconds - self._usual) / min(self.answers, self.allowed)
        quick = self._changed or self._growth == FIRST_GROWTH
        if self._done >= (1 if quick else 2) * self.allowed:
            self._judge_round()

    def refused(self, sent: float, pause: float) -> None:
        """A request, sent at that time of the clock, was one too many: halve them.

        None is sent for `pause` seconds.
        """
        now = self._clock()
        self._resume = max(self._resume, now + pause)
        if sent > self._cut:
            self.allowed = max(1, self.allowed // 2)
            self._growth, self._before, self._resting = GROWTH, None, REST
            self._cut, self._done, self._seconds = now, 0, 0.0

    def timed_out(self, sent: float, seconds: float) -> None:
        """A request, sent at that time of the clock, was not answered in so many seconds."""
        if self._usual > SLOW * seconds or not self.answers:
            self.refused(sent, 0.0)

    def _judge_round(self) -> None:
        """Grow, stay, or go back, by what the round brought."""
        rate = self.allowed * self._done / max(self._seconds, 1e-9)
        if self._changed:
            self._changed = False
        elif self._resting:
            self._resting -= 1
        elif self._before and not self._worth(*self._before, rate):
            self.allowed, self._growth, self._resting = self._before[0], GROWTH, REST
            self._before = None
        else:
            self._before = (self.allowed, rate)
            self.allowed = min(self.most, int(self.allowed * self._growth + 0.5))
            self._changed = self._growth == GROWTH and self.allowed != self._before[0]
        self._done, self._seconds = 0, 0.0
        self._wake()

    def _worth(self, allowed: int, before: float, now: float) -> bool:
        return now >= before * (1 + WORTH * (self.allowed / allowed - 1))

    async def _turn(self) -> None:
        """Wait until something may have changed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        if (pause := self._resume - self._clock()) > 0:
            asyncio.get_running_loop().call_later(pause, self._wake)
        await waiter

    def _wake(self) -> None:
        free = self.allowed - self._active
        while free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                free -= 1
