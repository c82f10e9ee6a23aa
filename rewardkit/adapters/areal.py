"""AReaL: the function that `RLVRWorkflow` (`reward_fn`) and the trainers' `workflow_kwargs` take.

    from rewardkit.adapters.areal import reward
    RLVRWorkflow(reward_fn=reward("gsm8k", method="robust"), ...)

    RLVRWorkflow(reward_fn="rewardkit.adapters.areal.reward_func", ...)    # by name

Data: `messages`, and `data_source`, `ground_truth` (or `answer`) and, if the scorer reads it,
`extra_info`; the parquet of `rewardkit prep` with
`data_extract_prompt_fn=lambda row: row["prompt"]`. `data_source` chooses the scorer, unless
`REWARDKIT_SCORER` or `reward(...)` names one. A gold that cannot be scored counts as a wrong
answer.

AReaL calls it in a pool of processes: it is pickled by name, and slow scorers block nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rewardkit.adapters.common import Judge, scorer_name


def _reward(
    judge: Judge,
    prompt: str,
    completions: str,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    /,
    **row: Any,
) -> float:
    """The reward of a response.

    Args:
        judge: the scorer.
        prompt: unused.
        completions: the response, special tokens kept.
        prompt_ids: unused.
        completion_ids: unused.
        row: the data's columns; one may be called `prompt`, as in verl's parquet.
    """
    del prompt, prompt_ids, completion_ids
    return float(judge(completions, row)["score"])


def reward(scorer: str = "auto", **options: Any) -> Callable[..., float]:
    """A reward function of that scorer with these options; `auto`: by `data_source`."""
    return partial(_reward, Judge(scorer, options))


reward_func = reward(scorer_name())
