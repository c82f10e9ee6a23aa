"""verifiers 0.4 (and prime-rl): a reward for the configuration of a taskset; see docs/trainers.md.

    [env.taskset.task.rewards]
    right = { fn = "rewardkit.adapters.verifiers:reward_func", weight = 1.0 }

Scorers run in threads, so the event loop can feed the rollouts meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rewardkit.adapters.common import SampleScorer, scorer_name


def reward(scorer: str = "auto", **options: Any) -> Callable[[Any, Any], Awaitable[float]]:
    """Return a reward of a trace (`verifiers.v1`); `auto` goes by `data_source`."""
    sample_scorer = SampleScorer(scorer, options)

    async def task_reward(task: Any, trace: Any) -> float:  # verifiers reads the names
        row = dict(task)
        info = row.get("extra_info") or row.get("info")
        info = info if isinstance(info, Mapping) else {}
        source = row.get("data_source") or info.get("data_source")
        row |= {"extra_info": info, "data_source": source}
        return float((await asyncio.to_thread(sample_scorer, trace.last_reply, row))["score"])

    return task_reward


reward_func = reward(scorer_name())
