"""Sizes of a rehearsal: the user's numbers, reduced to what a CPU does in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardkit.errors import UsageError

#: Responses and prompts of a step.
TARGET_RESPONSES = 32
MAX_PROMPTS = 8

#: A token is a byte. Longer prompts are cut from the left, with a note.
MAX_RESPONSE_TOKENS = 32
MAX_PROMPT_TOKENS = 2048

#: A prompt with pictures is never cut.
MAX_PICTURE_PROMPT_TOKENS = 4096

#: Responses to each prompt of a validation.
MAX_VALIDATION_RESPONSES = 4


@dataclass(frozen=True, kw_only=True)
class RehearsalScale:
    """The sizes of a rehearsal.

    Attributes:
        prompts: prompts of a step.
        responses: responses to each prompt; the user's own number.
        minibatch: prompts of an update.
        prompt: tokens of the longest prompt.
        response: tokens of a response.
        validation: responses to each prompt of the validation.
        steps: steps of training.
        is_cut: whether longer prompts are cut to `prompt` tokens.
    """

    prompts: int
    responses: int
    minibatch: int
    prompt: int
    response: int
    validation: int
    steps: int
    is_cut: bool


def sample_rows(config: Mapping[str, Any], steps: int) -> int:
    """Return the rows that steps of a small batch take.

    Raises:
        UsageError: a size of the configuration is not a positive integer.
    """
    responses = _positive(config, "actor_rollout_ref.rollout.n")
    prompts = min(max(2, TARGET_RESPONSES // responses), MAX_PROMPTS)
    return min(prompts, _positive(config, "data.train_batch_size")) * steps


def choose_scale(
    config: Mapping[str, Any], rows: int, longest: int, steps: int, pictures: int = 0
) -> RehearsalScale:
    """Return the sizes for a configuration.

    Args:
        config: dotted key -> value, as verl composes the user's settings.
        rows: rows of training data; each of them is trained on.
        longest: the longest prompt, in tokens, without its pictures.
        steps: steps of training.
        pictures: the most tokens of a row's pictures.

    Raises:
        UsageError: a size of the configuration is not a positive integer, or a prompt with pictures
            would have to be cut.
    """
    limit = MAX_PICTURE_PROMPT_TOKENS if pictures else MAX_PROMPT_TOKENS
    if pictures and longest > limit:
        raise UsageError(
            f"a prompt of rows with pictures has {longest:,} bytes; a rehearsal takes at most "
            f"{limit:,}, because cutting it might remove the mark of a picture."
        )
    responses = _positive(config, "actor_rollout_ref.rollout.n")
    batch = _positive(config, "data.train_batch_size")
    # verl leaves out the rows of an epoch that fill no batch.
    prompts = rows // steps if rows % steps == 0 else rows
    updates = max(1, batch // _positive(config, "actor_rollout_ref.actor.ppo_mini_batch_size"))
    per_update = max(1, prompts // updates)
    return RehearsalScale(
        prompts=prompts,
        responses=responses,
        minibatch=max(n for n in range(1, per_update + 1) if prompts % n == 0),
        prompt=-(-(min(limit, longest) + pictures) // 64) * 64,
        response=min(MAX_RESPONSE_TOKENS, _positive(config, "data.max_response_length")),
        validation=min(
            MAX_VALIDATION_RESPONSES, _positive(config, "actor_rollout_ref.rollout.val_kwargs.n")
        ),
        steps=steps,
        is_cut=longest > limit,
    )


def _positive(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or value < 1:
        raise UsageError(f"{key}={value}: verl needs a whole number from 1 on.")
    return value
