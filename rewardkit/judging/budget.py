"""A limit on what a judge may cost: requests, tokens, or seconds of waiting.

A reward does not know the training step, so that a budget is for a window of samples of one process.
With 8 reward workers and 1,024 responses a step, a window of 128 samples is about one step; responses
without an answer need no judge and are not counted. Without a window the budget is for the whole life
of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic


class Budget:
    """What a process has spent in the current window; used by one event loop. 0 stands for no limit."""

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
