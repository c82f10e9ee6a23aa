"""AReaL: the function for `reward_fn` of `RLVRWorkflow` or of the trainers' `workflow_kwargs`.

    from rewardkit.adapters.areal import reward
    RLVRWorkflow(reward_fn=reward("gsm8k", method="robust"), ...)

    RLVRWorkflow(reward_fn="rewardkit.adapters.areal.reward_func", ...)    # by name

Data: `messages`, `data_source`, `ground_truth` (or `answer`) and, if the scorer reads it,
`extra_info`. The parquet of `rewardkit prep` works with
`data_extract_prompt_fn=lambda row: row["prompt"]`. `data_source` chooses the scorer, unless
`REWARDKIT_SCORER` or `reward(...)` names one. A gold that cannot be scored counts as a wrong
answer.

AReaL calls the function in a pool of processes. It is pickled by name, and slow scorers block
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rewardkit.adapters.common import SampleScorer, scorer_name


def _reward(
    scorer: SampleScorer,
    prompt: str,
    completions: str,
    prompt_ids: Sequence[int],
    completion_ids: Sequence[int],
    /,
    **row: Any,
) -> float:
    """Return the reward of a response.

    Args:
        scorer: the scorer.
        prompt: unused.
        completions: the response, with special tokens.
        prompt_ids: unused.
        completion_ids: unused.
        row: the columns of the data; one may be called `prompt`, as in verl's parquet.
    """
    del prompt, prompt_ids, completion_ids
    return float(scorer(completions, row)["score"])


def reward(scorer: str = "auto", **options: Any) -> Callable[..., float]:
    """Return a reward function; the scorer `auto` goes by the column `data_source`."""
    return partial(_reward, SampleScorer(scorer, options))


reward_func = reward(scorer_name())
