"""Rewards by turn in verl 0.9: a turn earns 1 when it makes the answer right, -1 when it gives it up.

`compute_score` scores every turn of the model, and `TurnRewardLoop` puts each reward on the last token
of its turn; docs/how-to/turn-rewards.md has the overrides. The rewards of a response add up to 1 if its
last answer is right, and to 0 otherwise.
"""

from typing import Any

import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.experimental.agent_loop.tool_agent_loop import ToolAgentLoop

import rewardkit

SCORER = rewardkit.load_scorer("gsm8k", method="robust")


def compute_score(
    data_source: str,  # noqa: ARG001 - part of verl's signature
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the reward of the response, and those of its turns, which the loop wrote to `turns`."""
    turns = (extra_info or {}).get("turns") or [solution_str]
    correct = [float(SCORER(turn, ground_truth).correct) for turn in turns]
    rewards = [after - before for before, after in zip([0.0, *correct], correct, strict=False)]
    return {"score": correct[-1], "acc": correct[-1], "turn_rewards": rewards}


def turn_ends(mask: list[int]) -> list[int]:
    """Return the places of the last tokens of the model's turns; the mask is 0 in answers of tools."""
    return [i for i, bit in enumerate(mask) if bit and not any(mask[i + 1 : i + 2])]


def turn_starts(mask: list[int]) -> list[int]:
    """Return the places of the first tokens of the model's turns."""
    return [i for i, bit in enumerate(mask) if bit and (i == 0 or not mask[i - 1])]


class TurnRewardOutput(AgentLoopOutput):
    """The output of a loop, with a reward for each turn."""

    def as_dict(self) -> dict[str, Any]:
        """Return what verl's trainer reads; `rm_scores` has one reward for each token."""
        output = super().as_dict()
        # verl would take a list among the logged keys for a metric, so it is removed from them.
        rewards = output["extra_fields"].get("reward_extra_info", {}).pop("turn_rewards", None)
        if rewards is not None:
            output["rm_scores"] = torch.zeros(len(output["response_mask"]))
            output["rm_scores"][turn_ends(output["response_mask"].tolist())] = torch.tensor(rewards)
        return output


class TurnRewardLoop(ToolAgentLoop):
    """verl's loop for tools, which also gives the reward the text of each turn."""

    async def run(self, sampling_params: dict[str, Any], **options: Any) -> AgentLoopOutput:
        """Return the output of verl's loop."""
        output = await super().run(sampling_params, **options)
        mask = output.response_mask
        output.extra_fields["turns"] = [
            self.tokenizer.decode(output.response_ids[start : end + 1], skip_special_tokens=True)
            for start, end in zip(turn_starts(mask), turn_ends(mask), strict=True)
        ]
        return TurnRewardOutput.model_construct(output.model_fields_set, **dict(output))
