"""AReaL: `RLVRWorkflow(reward_fn=reward("gsm8k"))`, or by name `"rewardkit.adapters.areal.reward_func"`.

AReaL calls the function in a pool of processes. It is pickled by name, and slow scorers block
nothing. docs/trainers.md has the columns of the data.
"""

from typing import Any

from rewardkit.adapters.common import SampleScorer, reward_maker, scorer_name


def _reward(scorer: SampleScorer, _prompt: str, completions: str, *_ids: Any, **row: Any) -> float:
    """Return the reward of a response with special tokens; a column may be called `prompt`."""
    return float(scorer(completions, row)["score"])


reward = reward_maker(_reward)
reward_func = reward(scorer_name())
