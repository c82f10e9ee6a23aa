"""verifiers (and prime-rl): a reward for the configuration of a taskset; see docs/trainers.md.

    [env.taskset.task.rewards]
    right = { fn = "rewardkit.adapters.verifiers:reward_func", weight = 1.0 }

    rubric = vf.Rubric(funcs=[reward_of_rubric("gsm8k")])           # verifiers before 0.4

Scorers run in threads, so the event loop can feed the rollouts meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rewardkit.adapters.common import SampleScorer, scorer_name


async def _score(scorer: SampleScorer, response: Any, row: Mapping[str, Any]) -> float:
    info = row.get("extra_info") or row.get("info")
    info = info if isinstance(info, Mapping) else {}
    source = row.get("data_source") or info.get("data_source")
    row = {**row, "extra_info": info, "data_source": source}
    return float((await asyncio.to_thread(scorer, response, row))["score"])


def reward(scorer: str = "auto", **options: Any) -> Callable[[Any, Any], Awaitable[float]]:
    """Return a reward for verifiers 0.4 (`verifiers.v1`); `auto` goes by `data_source`."""
    sample_scorer = SampleScorer(scorer, options)

    async def task_reward(task: Any, trace: Any) -> float:
        return await _score(sample_scorer, trace.last_reply, dict(task))

    return task_reward


def reward_of_rubric(scorer: str = "auto", **options: Any) -> Callable[..., Awaitable[float]]:
    """Return a reward for `Rubric(funcs=[...])` of verifiers 0.1 to 0.3."""
    sample_scorer = SampleScorer(scorer, options)

    async def rubric_reward(completion: Any, answer: Any = None, info: Any = None) -> float:
        return await _score(sample_scorer, completion, {"answer": answer, "info": info})

    rubric_reward.__name__ = sample_scorer.name  # verifiers names the metric after it
    return rubric_reward


reward_func = reward(scorer_name())
