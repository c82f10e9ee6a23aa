"""How large a rehearsal is: the user's numbers, brought down to what a CPU does in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UsageError

#: Responses of a step that are aimed at, and prompts at most.
RESPONSES, PROMPTS = 32, 8

#: Tokens of a response. A token is a byte.
RESPONSE = 32

#: Tokens of a prompt at most; longer ones are cut from the left, which is said.
PROMPT = 4096

#: Responses to each prompt of a validation, at most.
VALIDATION = 4


@dataclass(frozen=True)
class Scale:
    """The sizes of a rehearsal.

    Attributes:
        prompts: of a step.
        responses: to each prompt; the user's own number.
        minibatch: prompts of an update.
        prompt: tokens of the longest prompt.
        response: tokens of a response.
        validation: responses to each prompt of the validation.
        steps: of training.
        cut: whether prompts are longer than that, and cut.
    """

    prompts: int
    responses: int
    minibatch: int
    prompt: int
    response: int
    validation: int
    steps: int
    cut: bool


def scaled(config: Mapping[str, Any], rows: int, longest: int, steps: int) -> Scale:
    """The sizes for a configuration.

    Args:
        config: dotted key -> value, as verl composes the user's settings.
        rows: of training data.
        longest: the longest prompt, in tokens.
        steps: of training.
    """
    responses = _positive(config, "actor_rollout_ref.rollout.n")
    batch = _positive(config, "data.train_batch_size")
    prompts = min(max(2, RESPONSES // responses), PROMPTS, batch, rows)
    updates = max(1, batch // _positive(config, "actor_rollout_ref.actor.ppo_mini_batch_size"))
    wanted = max(1, prompts // updates)
    return Scale(
        prompts=prompts,
        responses=responses,
        minibatch=max(n for n in range(1, wanted + 1) if prompts % n == 0),
        prompt=min(PROMPT, -(-longest // 64) * 64),
        response=min(RESPONSE, _positive(config, "data.max_response_length")),
        validation=min(VALIDATION, _positive(config, "actor_rollout_ref.rollout.val_kwargs.n")),
        steps=steps,
        cut=longest > PROMPT,
    )


def _positive(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"{key}={value}: verl needs a whole number from 1 on.")
    return value
