"""A limit on what a judge may cost: requests, tokens, or seconds of waiting.

A reward does not know the training step, so that a budget is for a window of samples of one process.
With 8 reward workers and 1,024 responses a step, a window of 128 samples is about one step; responses
without an answer need no judge and are not counted. Without a window the budget is for the whole life
of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True)
class BudgetLimits:
    """What one process may spend in a window; 0 stands for no limit.

    Attributes:
        calls: requests.
        tokens: tokens of prompts and replies.
        seconds: seconds in which at least one request was under way.
        window: samples after which the budget starts anew, those from the cache included; 0 for
            never.
    """

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    window: int = 0


class Budget:
    """What a process has spent in the current window; used by one event loop."""

    def __init__(self, limits: BudgetLimits, clock: Callable[[], float] = monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._samples = self._calls = self._tokens = self._active = 0
        self._seconds = self._start = 0.0

    def count_sample(self) -> None:
        """Count a sample; the first one after a window starts a new window."""
        window = self._limits.window
        if window and self._samples >= window:
            self._samples = self._calls = self._tokens = 0
            self._seconds, self._start = 0.0, self._clock()
        self._samples += 1

    def is_spent(self) -> bool:
        """Return whether no further request may be sent in this window."""
        limits = self._limits
        running = self._clock() - self._start if self._active else 0.0
        return (
            0 < limits.calls <= self._calls
            or 0 < limits.tokens <= self._tokens
            or 0 < limits.seconds <= self._seconds + running
        )

    def begin_call(self) -> None:
        """Count a request that is about to be sent."""
        if not self._active:
            self._start = self._clock()
        self._active += 1
        self._calls += 1

    def end_call(self, tokens: int) -> None:
        """Count a request that has ended, and its tokens."""
        self._active -= 1
        self._tokens += tokens
        if not self._active:
            self._seconds += self._clock() - self._start
