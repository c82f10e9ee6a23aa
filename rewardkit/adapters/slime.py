"""slime: the function for `--custom-rm-path`.

    python train.py --custom-rm-path rewardkit.adapters.slime.reward_func \
        --input-key prompt --label-key reward_model --metadata-key extra_info \
        --apply-chat-template ...

Data: a prompt, a label and metadata. The keys above fit the parquet of `rewardkit prep`, whose
`extra_info` names the scorer of each row. In other data the `data_source` (or `scorer`) of the
metadata chooses it, unless `REWARDKIT_SCORER` names one. The scorer gets the metadata as
`extra_info`. With `--reward-key score --eval-reward-key acc` samples keep everything that verl
would log, otherwise only the score. A gold that cannot be scored counts as a wrong answer.
`--group-rm` works too.

Scorers run in threads, so slime's event loop can feed the engines meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from rewardkit.adapters.common import SampleScorer, scorer_name


async def _reward(scorer: SampleScorer, args: Any, sample: Any, **_: Any) -> Any:
    """Return the reward of a sample, or the list of rewards of a list of samples.

    Args:
        scorer: the scorer.
        args: slime's arguments; `reward_key` asks for dictionaries.
        sample: slime's Sample, or a list of them.

    Returns:
        A float, or a dictionary with `score`, `acc`, `pred` and the flags.
    """
    if isinstance(sample, list):
        return await asyncio.gather(*(_reward(scorer, args, item) for item in sample))
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    source = metadata.get("data_source")
    row = {"ground_truth": sample.label, "data_source": source, "extra_info": metadata}
    result = await asyncio.to_thread(scorer, sample.response, row)
    return result if getattr(args, "reward_key", None) else result["score"]


def reward(scorer: str = "auto", **options: Any) -> Callable[..., Any]:
    """Return a reward function; the scorer `auto` goes by the metadata."""
    return partial(_reward, SampleScorer(scorer, options))


reward_func = reward(scorer_name())
