"""Rules of the batches and lengths: prompts of a step and of an update, rows and tokens of a pass."""

from __future__ import annotations

from collections.abc import Iterator

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import Violation, Violations, check, refusal
from rewardkit.launch.rules.values import (
    DYNAMIC_BATCH,
    LOG_PROB_MICRO_BATCH,
    MICRO_BATCH,
    ROLLOUT,
    ULYSSES_SIZE,
    PlanValues,
)

TOKENS = f"{ACTOR}.ppo_max_token_len_per_gpu"

#: verl's default of the critic's budget, which its YAML does not list, from 0.9 on.
CRITIC_TOKENS = 32768


@check("micro-batch")
def micro_batches(values: PlanValues) -> Violations:
    """Yield micro batch sizes that are missing, or set twice, where batches are cut by rows."""
    missing = []
    for name, key in _micro_batch_keys(values):
        total = key.removesuffix("_per_gpu")
        has_own, has_total = values.is_set(key), values.is_set(total)
        if has_own and has_total:
            message = f"it is set, and so is {total}: verl {values.plan.verl} stops."
            yield Violation(message, f"Leave {total} out.", key, refusal=f"{name}-micro-both")
        is_unread = refusal(f"worker-{name}-micro", values.plan.verl) and not key.startswith(REF)
        if not has_own and not has_total:
            missing.append((f"{name}-micro-none", key))
        elif has_total and is_unread:
            missing.append((f"worker-{name}-micro", key))
    if missing:
        name, key = missing[0]
        if values.is_megatron and key == MICRO_BATCH:
            name = "megatron-micro-none"
        keys = " and ".join(f"{key}=1" for _, key in missing)
        yield Violation(
            f"it is not set, and batches are cut by rows: verl {values.plan.verl} stops.",
            f"Set {DYNAMIC_BATCH}=True, or {keys} or more.",
            key,
            refusal=name,
        )


def _micro_batch_keys(values: PlanValues) -> Iterator[tuple[str, str]]:
    """Yield the name and the key of each model whose batches are cut by rows."""
    if not values.is_dynamic:
        yield "actor", MICRO_BATCH
        yield "log-prob", LOG_PROB_MICRO_BATCH
        if values.uses_reference:
            yield "log-prob", f"{REF}.log_prob_micro_batch_size_per_gpu"
    if values.uses_critic and not values.flag("critic.use_dynamic_bsz"):
        yield "critic", "critic.ppo_micro_batch_size_per_gpu"


@check("L-17")
def token_budget(values: PlanValues) -> Violations:
    """Yield the budgets of dynamic batches that are less than the longest sequence."""
    longest = values.sequence_tokens or 0
    small = [
        (key, tokens, size)
        for key, tokens, size in _token_budgets(values)
        if tokens and size and tokens * size < longest
    ]
    if small:
        key, tokens, size = small[0]
        message = f"{tokens} x sequence parallel {size} is less than prompt + response = {longest}."
        sizes = " and ".join(f"{key}={-(-longest // (size or 1))}" for key, _, size in small)
        yield Violation(message, f"Set {sizes}, or more.", key)


def _token_budgets(values: PlanValues) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield key, tokens and sequence parallel size of each model that has dynamic batches."""
    if values.is_dynamic:
        yield TOKENS, values.count(TOKENS), values.sequence_parallel()
    for model, owner in ((ROLLOUT, ACTOR), (REF, REF)):
        key = f"{model}.log_prob_max_token_len_per_gpu"
        is_dynamic = values.flag(f"{model}.log_prob_use_dynamic_bsz", DYNAMIC_BATCH)
        if is_dynamic and (model == ROLLOUT or values.uses_reference):
            yield key, values.count(key, TOKENS), values.sequence_parallel(owner)
    if values.uses_critic and values.flag("critic.use_dynamic_bsz", DYNAMIC_BATCH):
        name = "megatron.context_parallel_size" if values.is_megatron else ULYSSES_SIZE
        is_new = values.is_since(0, 9, 0)
        key = f"critic.{'ppo_infer' if is_new else 'ppo'}_max_token_len_per_gpu"
        tokens = values.count(key) or (CRITIC_TOKENS if is_new else None)
        yield key, tokens, values.count(f"critic.{name}")
