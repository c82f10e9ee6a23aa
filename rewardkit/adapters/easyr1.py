"""EasyR1: the file and function for `worker.reward.reward_function`; see docs/trainers.md.

    RM=$(python -c 'import rewardkit.adapters.easyr1 as m; print(m.__file__)')
    python3 -m verl.trainer.main worker.reward.reward_function=$RM:reward_func \
        worker.reward.reward_function_kwargs='{scorer: gsm8k, method: robust}' ...

EasyR1 passes the answer and no other column. A struct with `data_source` and `ground_truth` may stand
for it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardkit.adapters.common import FLAGS, SampleScorer, reward_maker, scorer_name

REWARD_NAME = "rewardkit"
REWARD_TYPE = "batch"

#: EasyR1's names of the values that it averages, and ours.
_METRICS = {"overall": "score", "accuracy": "acc", **{flag: flag for flag in FLAGS[1:]}}


def _reward(
    scorer: SampleScorer, reward_inputs: Sequence[Mapping[str, Any]]
) -> list[dict[str, float]]:
    """Return the metrics of a batch: `overall`, which is the reward, `accuracy` and the flags."""
    results = [
        scorer(sample["response"], {"ground_truth": sample["ground_truth"]})
        for sample in reward_inputs
    ]
    return [{name: float(result[key]) for name, key in _METRICS.items()} for result in results]


reward = reward_maker(_reward)
_functions: dict[str, Callable[..., list[dict[str, float]]]] = {}


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
