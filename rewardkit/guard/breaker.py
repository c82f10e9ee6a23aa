"""The circuit breaker: when a reward fails so often that the run would learn from zeros."""

from __future__ import annotations

import threading

#: A reward that fails on all of its first calls is broken, or its configuration is.
FIRST_CALLS = 32

#: Calls over which the share of failures is computed.
WINDOW_CALLS = 500


class Breaker:
    """Counts the failures of a reward in one process. Threads may count at once."""

    def __init__(self, share: float) -> None:
        """Start counting.

        Args:
            share: share of failures, in `WINDOW_CALLS` calls in a row, above which it trips.
        """
        self._share = share
        self._lock = threading.Lock()
        self._calls = self._failures = 0
        self._window_calls = self._window_failures = 0

    def count(self, *, is_failure: bool) -> str:
        """Count a call; return why the run should stop, or ""."""
        with self._lock:
            return self._count(is_failure=is_failure)

    def _count(self, *, is_failure: bool) -> str:
        self._calls += 1
        self._window_calls += 1
        if is_failure:
            self._failures += 1
            self._window_failures += 1
            if self._calls == self._failures == FIRST_CALLS:
                return f"it failed on all of its first {FIRST_CALLS} calls in this process"
        if self._window_calls < WINDOW_CALLS:
            return ""
        failures, calls = self._window_failures, self._window_calls
        self._window_calls = self._window_failures = 0
        if failures > self._share * calls:
            return f"it failed on {failures} of its last {calls} calls in this process"
        return ""
