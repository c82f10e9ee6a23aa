"""slime: the function that `--custom-rm-path` names.

    python train.py --custom-rm-path rewardkit.adapters.slime.reward_func \
        --input-key prompt --label-key reward_model --metadata-key extra_info \
        --apply-chat-template ...

Data: a prompt, a label and metadata; these keys are those of `rewardkit prep`'s parquet, whose
`extra_info` names the scorer of each row. Elsewhere the metadata's `data_source` (or `scorer`)
chooses it, unless `REWARDKIT_SCORER` names one; the scorer sees the metadata as `extra_info`.
With `--reward-key score --eval-reward-key acc` samples keep all that verl would log, else the
score. A gold that cannot be scored counts as a wrong answer. `--group-rm` works as well.

Scoring is done in threads: slime's event loop, which feeds the engines, goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from rewardkit.adapters.common import Judge, scorer_name


async def _reward(judge: Judge, args: Any, sample: Any, **_: Any) -> Any:
    """The reward of a sample; of a list of samples the list of their rewards.

    Args:
        judge: the scorer.
        args: slime's; `reward_key` asks for dictionaries.
        sample: slime's Sample, or a list of them.

    Returns:
        A float, or a dictionary with `score`, `acc`, `pred` and the flags.
    """
    if isinstance(sample, list):
        return await asyncio.gather(*(_reward(judge, args, each) for each in sample))
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    source = metadata.get("data_source")
    row = {"ground_truth": sample.label, "data_source": source, "extra_info": metadata}
    verdict = await asyncio.to_thread(judge, sample.response, row)
    return verdict if getattr(args, "reward_key", None) else verdict["score"]


def reward(scorer: str = "auto", **options: Any) -> Callable[..., Any]:
    """A reward function of that scorer with these options; `auto`: by the metadata."""
    return partial(_reward, Judge(scorer, options))


reward_func = reward(scorer_name())
