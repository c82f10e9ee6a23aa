"""EasyR1: the file and function that `worker.reward.reward_function` names.

    RM=$(python -c 'import rewardkit.adapters.easyr1 as m; print(m.__file__)')
    python3 -m verl.trainer.main worker.reward.reward_function=$RM:reward_func \
        worker.reward.reward_function_kwargs='{scorer: gsm8k, method: robust}' \
        data.prompt_key=problem data.answer_key=answer ...

Data: a prompt as text and an answer. EasyR1 hands over no other column, so `scorer` (or
`REWARDKIT_SCORER`) names the scorer, unless the answer is a struct with `data_source`,
`ground_truth` and, if the scorer reads it, `extra_info`; `docs/trainers.md` makes such columns
of `rewardkit prep`'s parquet. What else the kwargs have are options of the scorer. A gold that
cannot be scored counts as a wrong answer, with `error` 1 in the charts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rewardkit.adapters.common import Judge, scorer_name

REWARD_NAME = "rewardkit"
REWARD_TYPE = "batch"


def _reward(judge: Judge, reward_inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """The results of a batch: `overall`, the reward, and `accuracy` and flags, which are averaged.

    Args:
        judge: the scorer.
        reward_inputs: EasyR1's, with `response` and `ground_truth`.
    """
    verdicts = [
        judge(each["response"], {"ground_truth": each["ground_truth"]}) for each in reward_inputs
    ]
    names = {"overall": "score", "accuracy": "acc"}
    keys = {**names, **{flag: flag for flag in ("no_answer", "timeout", "error")}}
    return [{name: float(each[key]) for name, key in keys.items()} for each in verdicts]


def reward(scorer: str = "auto", **options: Any) -> Callable[..., list[dict[str, float]]]:
    """A reward function of that scorer with these options; `auto`: by the answer's data_source."""
    return partial(_reward, Judge(scorer, options))


_MADE: dict[str, Callable[..., list[dict[str, float]]]] = {}


def _named(scorer: str, options: Mapping[str, Any]) -> Callable[..., list[dict[str, float]]]:
    key = repr((scorer, sorted(options.items())))  # options may be lists
    if key not in _MADE:
        _MADE[key] = reward(scorer, **options)
    return _MADE[key]


def reward_func(
    reward_inputs: Sequence[Mapping[str, Any]], scorer: str = "", **options: Any
) -> list[dict[str, float]]:
    """The results of a batch by the scorer that `reward_function_kwargs` names."""
    return _named(scorer or scorer_name(), options)(reward_inputs)


_named(scorer_name(), {})  # a wrong name is an error where the file is loaded, before any rollout
