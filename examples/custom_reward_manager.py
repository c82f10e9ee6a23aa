"""A reward manager for verl 0.7.0 to 0.9.1: a response that was cut off at the length limit earns 0.

verl loads the class from this file; docs/how-to/custom-reward-manager.md has the overrides. The reward
itself stays a file of its own, which this manager calls through verl's manager `naive`.
"""

from typing import Any

from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager


class CutOffRewardManager(NaiveRewardManager):
    """verl's `naive`, with the length of the response in tokens, which no scorer can see."""

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """Score one response, and log its length and whether it was cut off."""
        result = await super().run_single(data)
        batch = data[-1:][0].batch
        width = batch["responses"].shape[-1]
        tokens = int(batch["attention_mask"][-width:].sum())
        is_ended = int(batch["responses"][tokens - 1]) == self.tokenizer.eos_token_id
        is_cut_off = tokens >= self.config.data.max_response_length and not is_ended
        # verl logs these as metrics. Every response needs the same keys.
        result["reward_extra_info"] |= {"tokens": tokens, "cut_off": float(is_cut_off)}
        if is_cut_off:
            result["reward_score"] = 0.0
        return result
