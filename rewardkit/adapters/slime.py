"""slime: the function for `--custom-rm-path`; see docs/trainers.md.

    python train.py --custom-rm-path rewardkit.adapters.slime.reward_func \
        --input-key prompt --label-key reward_model --metadata-key extra_info \
        --apply-chat-template ...

Scorers run in threads, so slime's event loop can feed the engines meanwhile. With `--reward-key score
--eval-reward-key acc` samples keep everything that verl would log. `--group-rm` works too.
"""

import asyncio
from typing import Any

from rewardkit.adapters.common import SampleScorer, reward_maker, scorer_name


async def _reward(scorer: SampleScorer, args: Any, sample: Any, **_: Any) -> Any:
    """Return the reward of a sample, or the list of rewards of a list of samples.

    The reward is a number, or a dictionary if slime's `args.reward_key` asks for one.
    """
    if isinstance(sample, list):
        return await asyncio.gather(*(_reward(scorer, args, item) for item in sample))
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    source = metadata.get("data_source")
    row = {"ground_truth": sample.label, "data_source": source, "extra_info": metadata}
    result = await asyncio.to_thread(scorer, sample.response, row)
    return result if getattr(args, "reward_key", None) else result["score"]


reward = reward_maker(_reward)
reward_func = reward(scorer_name())
