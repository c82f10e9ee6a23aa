"""verifiers (and prime-rl): a reward that a taskset's configuration plugs in.

    [env.taskset.task.rewards]
    right = { fn = "rewardkit.adapters.verifiers:reward_func", weight = 1.0 }

    rubric = vf.Rubric(funcs=[reward_of_rubric("gsm8k")])           # verifiers before 0.4

Data: the task's fields `data_source`, `ground_truth` (or `answer`) and, if the scorer reads it,
`extra_info` (or `info`); in a rubric `answer` and `info`. `data_source`, of the task or in `info`,
chooses the scorer, unless `REWARDKIT_SCORER` or the call names one. The response is the trace's
last reply. A gold that cannot be scored counts as a wrong answer.

Scoring is done in threads: the event loop, which feeds the rollouts, goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rewardkit.adapters.common import Judge, scorer_name


async def _score(judge: Judge, response: Any, row: Mapping[str, Any]) -> float:
    info = row.get("extra_info") or row.get("info")
    info = info if isinstance(info, Mapping) else {}
    row = {
        **row,
        "extra_info": info,
        "data_source": row.get("data_source") or info.get("data_source"),
    }
    return float((await asyncio.to_thread(judge, response, row))["score"])


def reward(scorer: str = "auto", **options: Any) -> Callable[[Any, Any], Awaitable[float]]:
    """A reward of verifiers 0.4 (`verifiers.v1`) with that scorer; `auto`: by `data_source`."""
    judge = Judge(scorer, options)

    async def rewarded(task: Any, trace: Any) -> float:
        return await _score(judge, trace.last_reply, dict(task))

    return rewarded


def reward_of_rubric(scorer: str = "auto", **options: Any) -> Callable[..., Awaitable[float]]:
    """A reward for `Rubric(funcs=[...])` of verifiers 0.1 to 0.3; `auto`: by `data_source`."""
    judge = Judge(scorer, options)

    async def rewarded(completion: Any, answer: Any = None, info: Any = None) -> float:
        return await _score(judge, completion, {"answer": answer, "info": info})

    rewarded.__name__ = judge.name  # that of its metric
    return rewarded


reward_func = reward(scorer_name())
