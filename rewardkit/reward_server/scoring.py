"""The scorers behind a reward server: fast ones run in the event loop, others in threads.

A scorer of the user's has one process for each thread (`scorers.isolated`), which is
killed if it takes too long. No scorer can stop the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import LifoQueue
from threading import Event
from typing import Any

from rewardkit.errors import RewardkitError, UnknownNameError, UsageError, call_catching
from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.reward_server.payload import ItemResult, RequestItem
from rewardkit.scorers.base import Score, Scorer, Status, failure_result, wrong_score
from rewardkit.scorers.call import call_scorer, error_text, failed_score, failure_reason
from rewardkit.scorers.gold import explain_bad_gold
from rewardkit.scorers.isolated import close_scorer, is_built_in, start_scorer
from rewardkit.scorers.row_scorer import scorer_for

#: Scorers that look at a text once and never wait: a thread would cost more than they do.
FAST_SCORERS = frozenset({"gsm8k", "mcq"})

#: Items of a request that one thread scores with one of our scorers before others get their turn.
ITEMS_PER_TURN = 16


class ScorerPool:
    """One scorer that serves many requests at a time. `close` ends its threads and processes.

    Attributes:
        name: the scorer's name or `file.py:function`.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        jobs: int,
        seconds: float,
        wrong: float | None = None,
        *,
        load_seconds: float = LOAD_TIMEOUT_SECONDS,
    ) -> None:
        """Load the scorer, in this process or in the first of its own.

        Args:
            name: the scorer's name or `file.py:function`.
            options: options of the scorer.
            jobs: threads that score.
            seconds: timeout per response for a custom scorer.
            wrong: the score of a response on which the scorer fails; None for the wrong score of
                our scorer, or 0 for a custom one.
            load_seconds: timeout for importing a custom scorer.

        Raises:
            UsageError: the scorer cannot be loaded or refuses an option.
        """
        self.name = name
        self._load = partial(start_scorer, name, options, seconds, load_seconds)
        self._is_ours = is_built_in(name)
        self._first = first = self._load()
        trial = call_catching(first, "", "1", {}) if self._is_ours and name != "auto" else None
        if isinstance(trial, UsageError):  # `math_verify` needs a package
            raise trial
        self._wrong = wrong_score(first) if wrong is None else wrong
        # All threads share a scorer of ours; of a custom one each takes its own, the last used one
        # first. None stands for one that is not loaded yet.
        self._free: LifoQueue[Scorer | None] = LifoQueue()
        for scorer in [first if self._is_ours else None] * (jobs - 1) + [first]:
            self._free.put(scorer)
        self._jobs, self._threads = jobs, ThreadPoolExecutor(jobs, "scorer")

    def close(self) -> None:
        """Wait for the threads and end the processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._free.empty():
            if scorer := self._free.get():
                close_scorer(scorer)

    def count_busy(self) -> int:
        """Return the number of scorers that are running in threads."""
        return self._jobs - self._free.qsize()

    def name_for(self, item: RequestItem) -> str:
        """Return the name of an item's scorer for metrics, which is never text of the client's."""
        if self.name != "auto" or not self._is_ours:
            return self.name
        scorer = call_catching(scorer_for, item.data_source, item.extra_info)
        if isinstance(scorer, Exception):
            return "unknown"
        return str(getattr(scorer, "__module__", "unknown")).rpartition(".")[2]

    def are_fast(self, names: Sequence[str]) -> bool:
        """Return whether the scorers of these names may run in the event loop."""
        return self._is_ours and FAST_SCORERS.issuperset(names)

    def score(self, items: Sequence[RequestItem]) -> list[ItemResult]:
        """Return the results of items in order, from scorers that are fast."""
        return [score_item(self._first, item, self._wrong) for item in items]

    async def score_in_threads(
        self, items: Sequence[RequestItem], is_closed: Event
    ) -> list[ItemResult]:
        """Return the results of items in order; fewer if the client closes the connection.

        The threads take work from a queue of their own, so that they are busy even when the event
        loop is busier. One request puts no more there than the threads can take at once.
        """
        results: dict[int, list[ItemResult]] = {}
        size = ITEMS_PER_TURN if self._is_ours else 1
        starts = iter(range(0, len(items), size))
        loop = asyncio.get_running_loop()

        async def work() -> None:
            for start in starts:
                turn = items[start : start + size]
                results[start] = await loop.run_in_executor(
                    self._threads, self._score_turn, turn, is_closed
                )

        await asyncio.gather(*(work() for _ in range(min(self._jobs, len(items)))))
        return [result for start in sorted(results) for result in results[start]]

    def _score_turn(self, items: Sequence[RequestItem], is_closed: Event) -> list[ItemResult]:
        if is_closed.is_set():
            return []
        scorer = self._free.get()
        try:
            if scorer is None:
                loaded = call_catching(self._load)
                if isinstance(loaded, Exception):
                    score = failed_score(loaded, self._wrong)
                    return [ItemResult(score, str(loaded))] * len(items)
                scorer = loaded
            return [score_item(scorer, item, self._wrong) for item in items]
        finally:
            self._free.put(scorer)


def score_item(scorer: Scorer, item: RequestItem, wrong: float) -> ItemResult:
    """Return the result of an item; `wrong` is its score if the scorer fails."""
    info = {**item.extra_info, "data_source": item.data_source}
    result = call_scorer(scorer, item.response, item.ground_truth, info)
    if isinstance(result, Exception):
        failure_result("reward-server", result)  # logs each cause once
        is_ours = isinstance(result, RewardkitError)
        reason = error_text(result) if is_ours else failure_reason(result)
        if isinstance(result, UnknownNameError):
            return ItemResult(Score.wrong("", Status.UNKNOWN_DATA_SOURCE, wrong), reason)
        return ItemResult(failed_score(result, wrong), reason)
    if result.status is Status.BAD_GROUND_TRUTH:
        reason = explain_bad_gold(item.ground_truth, scorer)
        return ItemResult(result, f"the ground truth cannot be scored{reason}")
    return ItemResult(result)
