"""The scorer behind a reward server: a fast one runs in the event loop, another one in threads.

A scorer of the user's has processes of its own (`scorers.isolated`), which are killed if it takes too
long. No scorer can stop the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rewardkit.errors import RewardkitError, UnknownNameError
from rewardkit.reward_server.payload import ItemResult, RequestItem
from rewardkit.scorers.base import (
    Score,
    Status,
    call_scorer,
    error_text,
    explain_bad_gold,
    failed_score,
    failure_reason,
    failure_result,
    spec_of,
)
from rewardkit.scorers.isolated import close_scorer, is_built_in, start_scorer

if TYPE_CHECKING:
    from rewardkit.reward_server.server import ServerConfig

#: Scorers that look at a text once and never wait: a thread would cost more than they do.
FAST_SCORERS = frozenset({"gsm8k", "mcq"})

#: Items of a request that one thread scores with one of our scorers before others get their turn.
ITEMS_PER_TURN = 16


class ScorerPool:
    """One scorer that serves many requests at a time. `close` ends its threads and processes.

    Attributes:
        name: the scorer's name or `file.py:function`.
    """

    def __init__(self, config: ServerConfig) -> None:
        """Load the scorer, in this process or in one of its own.

        Raises:
            UsageError: the scorer cannot be loaded or refuses an option.
        """
        self.name, self._jobs, self._turns = config.scorer, config.jobs, 0
        is_ours = is_built_in(self.name)
        self._turn_items = ITEMS_PER_TURN if is_ours else 1
        limits = config.seconds, config.load_seconds
        self._scorer = start_scorer(self.name, config.options, *limits, workers=self._jobs)
        own = spec_of(self._scorer).wrong_score
        self._wrong = own if config.wrong is None else config.wrong
        self._threads = ThreadPoolExecutor(self._jobs, "scorer")

    def close(self) -> None:
        """Wait for the threads and end the processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        close_scorer(self._scorer)

    def count_busy(self) -> int:
        """Return the number of threads that score."""
        return min(self._jobs, self._turns)

    async def score(
        self, items: Sequence[RequestItem], is_disconnected: Callable[[], Awaitable[bool]]
    ) -> list[ItemResult]:
        """Return the results of items in order; fewer if the client closes the connection.

        The threads take work from a queue of their own, so that they are busy even when the event
        loop is busier. One request puts no more there than the threads can take at once.
        """
        if self.name in FAST_SCORERS:
            return self._score(items)
        starts = iter(range(0, len(items), self._turn_items))
        results: dict[int, list[ItemResult]] = {}
        loop = asyncio.get_running_loop()

        async def work() -> None:
            for start in starts:
                if await is_disconnected():
                    return
                turn = items[start : start + self._turn_items]
                self._turns += 1
                results[start] = await loop.run_in_executor(self._threads, self._score, turn)
                self._turns -= 1

        await asyncio.gather(*(work() for _ in range(min(self._jobs, len(items)))))
        return [result for start in sorted(results) for result in results[start]]

    def _score(self, items: Sequence[RequestItem]) -> list[ItemResult]:
        return [self._score_item(item) for item in items]

    def _score_item(self, item: RequestItem) -> ItemResult:
        info = {**item.extra_info, "data_source": item.data_source}
        result = call_scorer(self._scorer, item.response, item.ground_truth, info)
        if isinstance(result, Exception):
            failure_result("reward-server", result)  # logs each cause once
            is_ours = isinstance(result, RewardkitError)
            reason = error_text(result) if is_ours else failure_reason(result)
            score = failed_score(result, self._wrong)
            if isinstance(result, UnknownNameError):
                score = Score.wrong("", Status.UNKNOWN_DATA_SOURCE, self._wrong)
            return ItemResult(score, reason)
        if result.status is Status.BAD_GROUND_TRUTH:
            reason = explain_bad_gold(item.ground_truth, self._scorer)
            return ItemResult(result, f"the ground truth cannot be scored{reason}")
        return ItemResult(result)
