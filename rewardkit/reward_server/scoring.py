"""The scorers behind a reward server: those that answer in microseconds at once, others in threads.

A scorer that is not ours has a process of its own for each thread (`scorers.isolated`), which is ended
where it takes too long: nothing it does stops the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import LifoQueue
from threading import Event
from typing import Any

from rewardkit.errors import RewardkitError, UnknownNameError, UsageError, call_catching
from rewardkit.reward_server.payload import Item, Verdict
from rewardkit.scorers import isolated
from rewardkit.scorers.auto import scorer_for
from rewardkit.scorers.base import Score, Scorer, Status, failure_result, wrong_score
from rewardkit.scorers.call import call_scorer, failed_score, failure_reason
from rewardkit.scorers.gold import explain_bad_gold

#: Scorers that look at a text once and never wait: a thread would cost more than they do.
AT_ONCE = frozenset({"gsm8k", "mcq"})

#: Items of a batch that one of our scorers judges before others get their turn.
PART = 16


class Judge:
    """A scorer that judges for many requests at a time. `close` ends its processes.

    Attributes:
        name: of the scorer, as it was given.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        jobs: int,
        seconds: float,
        wrong: float | None = None,
    ) -> None:
        """Load the scorer, here or in the first of its processes.

        Where it fails, a response gets `wrong`; None for what our scorer gives a wrong answer, or 0.

        Raises:
            UsageError: it does not load, or does not take its options.
        """
        self.name = name
        self._load = partial(isolated.start_scorer, name, options, seconds)
        self._ours = isolated.is_built_in(name)
        self._first = first = self._load()
        tried = call_catching(first, "", "1", {}) if self._ours and name != "auto" else None
        if isinstance(tried, UsageError):  # `math_verify` needs a package
            raise tried
        self._wrong = wrong_score(first) if wrong is None else wrong
        # Ours may be called from many threads; of others each thread takes one, the last one used.
        self._free: LifoQueue[Scorer | None] = LifoQueue()
        for scorer in [first if self._ours else None] * (jobs - 1) + [first]:
            self._free.put(scorer)
        self._jobs, self._threads = jobs, ThreadPoolExecutor(jobs, "judge")

    def close(self) -> None:
        """Wait for the threads and end the processes."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        while not self._free.empty():
            if scorer := self._free.get():
                isolated.close_scorer(scorer)

    @property
    def judging(self) -> int:
        """Scorers that are judging in threads."""
        return self._jobs - self._free.qsize()

    def label(self, item: Item) -> str:
        """The scorer of an item, as metrics name it: never a text of the client's."""
        if self.name != "auto" or not self._ours:
            return self.name
        chosen = call_catching(scorer_for, item.data_source, item.extra_info)
        if isinstance(chosen, Exception):
            return "unknown"
        return str(getattr(chosen, "__module__", "unknown")).rpartition(".")[2]

    def at_once(self, items: Sequence[Item], labels: Sequence[str]) -> list[Verdict] | None:
        """What the items get, in order; None if a scorer of theirs may wait."""
        fast = self._ours and AT_ONCE.issuperset(labels)
        return self._judged(self._first, items) if fast else None

    async def in_threads(self, items: Sequence[Item], gone: Event) -> list[Verdict]:
        """What the items get, in order; nothing for the rest once the client is `gone`.

        Threads take what waits from their own queue: they are busy though the event loop may be
        busier. Of one request no more waits there than they can take at once.
        """
        found: dict[int, list[Verdict]] = {}
        size = PART if self._ours else 1
        parts = iter(range(0, len(items), size))
        loop = asyncio.get_running_loop()

        async def work() -> None:
            for start in parts:
                part = items[start : start + size]
                found[start] = await loop.run_in_executor(
                    self._threads, self._in_thread, part, gone
                )

        await asyncio.gather(*(work() for _ in range(min(self._jobs, len(items)))))
        return [verdict for start in sorted(found) for verdict in found[start]]

    def _in_thread(self, items: Sequence[Item], gone: Event) -> list[Verdict]:
        if gone.is_set():
            return []
        scorer = self._free.get()
        try:
            if scorer is None:
                made = call_catching(self._load)
                if isinstance(made, Exception):
                    return [Verdict(failed_score(made, self._wrong), str(made))] * len(items)
                scorer = made
            return self._judged(scorer, items)
        finally:
            self._free.put(scorer)

    def _judged(self, scorer: Scorer, items: Sequence[Item]) -> list[Verdict]:
        return list(self._each(scorer, items))

    def _each(self, scorer: Scorer, items: Sequence[Item]) -> Iterator[Verdict]:
        for item in items:
            info = {**item.extra_info, "data_source": item.data_source}
            result = call_scorer(scorer, item.response, item.ground_truth, info)
            if isinstance(result, Exception):
                failure_result("reward-server", result)  # logs each cause once
                yield _failed(result, self._wrong)
            elif result.status is Status.BAD_GROUND_TRUTH:
                reason = explain_bad_gold(item.ground_truth, scorer)
                yield Verdict(result, f"the ground truth cannot be scored{reason}")
            else:
                yield Verdict(result)


def _failed(error: Exception, wrong_score: float) -> Verdict:
    """Return the verdict on an item on which the scorer failed, here or in another process."""
    reason = str(error) if isinstance(error, RewardkitError) else failure_reason(error)
    if isinstance(error, UnknownNameError):
        return Verdict(Score.wrong("", Status.UNKNOWN_DATA_SOURCE, wrong_score), reason)
    return Verdict(failed_score(error, wrong_score), reason)
