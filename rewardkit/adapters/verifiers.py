"""verifiers (and prime-rl): a reward for the configuration of a taskset; see docs/trainers.md.

    [env.taskset.task.rewards]
    right = { fn = "rewardkit.adapters.verifiers:reward_func", weight = 1.0 }

    rubric = vf.Rubric(funcs=[reward_of_rubric("gsm8k")])           # verifiers before 0.4

Scorers run in threads, so the event loop can feed the rollouts meanwhile.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from rewardkit.adapters.common import SampleScorer, reward_maker, scorer_name


async def _task_reward(scorer: SampleScorer, task: Any, trace: Any) -> float:
    """Return the reward of verifiers 0.4 (`verifiers.v1`); `auto` goes by `data_source`."""
    return await _score(scorer, trace.last_reply, dict(task))


async def _rubric_reward(
    scorer: SampleScorer, completion: Any, answer: Any = None, info: Any = None
) -> float:
    """Return the reward of `Rubric(funcs=[...])` of verifiers 0.1 to 0.3."""
    return await _score(scorer, completion, {"answer": answer, "info": info})


async def _score(scorer: SampleScorer, response: Any, row: Mapping[str, Any]) -> float:
    info = row.get("extra_info") or row.get("info")
    info = info if isinstance(info, Mapping) else {}
    source = row.get("data_source") or info.get("data_source")
    row = {**row, "extra_info": info, "data_source": source}
    return float((await asyncio.to_thread(scorer, response, row))["score"])


reward = reward_maker(_task_reward)
reward_of_rubric = reward_maker(_rubric_reward)
reward_func = reward(scorer_name())
