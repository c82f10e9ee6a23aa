"""EasyR1: the file and function for `worker.reward.reward_function`.

    RM=$(python -c 'import rewardkit.adapters.easyr1 as m; print(m.__file__)')
    python3 -m verl.trainer.main worker.reward.reward_function=$RM:reward_func \
        worker.reward.reward_function_kwargs='{scorer: gsm8k, method: robust}' \
        data.prompt_key=problem data.answer_key=answer ...

Data: a prompt as text and an answer. EasyR1 passes no other column, so `scorer` (or
`REWARDKIT_SCORER`) names the scorer, unless the answer is a struct with `data_source`,
`ground_truth` and, if the scorer reads it, `extra_info`; `docs/trainers.md` shows how to make such
a column from the parquet of `rewardkit prep`. The other kwargs are options of the scorer. A gold
that cannot be scored counts as a wrong answer and sets `error` to 1 in the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from rewardkit.adapters.common import FLAGS, SampleScorer, scorer_name

REWARD_NAME = "rewardkit"
REWARD_TYPE = "batch"

RewardFunction: TypeAlias = Callable[..., list[dict[str, float]]]

#: EasyR1's names of the values that it averages, and ours.
_METRICS = {"overall": "score", "accuracy": "acc", **{flag: flag for flag in FLAGS[1:]}}


def _reward(
    scorer: SampleScorer, reward_inputs: Sequence[Mapping[str, Any]]
) -> list[dict[str, float]]:
    """Return the metrics of a batch: `overall`, which is the reward, `accuracy` and the flags.

    Args:
        scorer: the scorer.
        reward_inputs: the batch as EasyR1 passes it, with `response` and `ground_truth`.
    """
    results = [
        scorer(sample["response"], {"ground_truth": sample["ground_truth"]})
        for sample in reward_inputs
    ]
    return [{name: float(result[key]) for name, key in _METRICS.items()} for result in results]


def reward(scorer: str = "auto", **options: Any) -> RewardFunction:
    """Return a reward function; the scorer `auto` goes by the `data_source` of the answer."""
    return partial(_reward, SampleScorer(scorer, options))


_functions: dict[str, RewardFunction] = {}


def reward_func(
    reward_inputs: Sequence[Mapping[str, Any]], scorer: str = "", **options: Any
) -> list[dict[str, float]]:
    """Return the metrics of a batch by the scorer that `reward_function_kwargs` names."""
    scorer = scorer or scorer_name()
    key = repr((scorer, sorted(options.items())))  # an option may be a list, which has no hash
    if key not in _functions:
        _functions[key] = reward(scorer, **options)
    return _functions[key](reward_inputs)


reward_func([])  # an unknown scorer fails when the file is loaded, not in training
