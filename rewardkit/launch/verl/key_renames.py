"""Keys that verl renamed, moved or stopped reading, by release.

Plans are made in the vocabulary of verl 0.9.1 and translated to the release they are for. Sources:
the configurations and the code of the releases' wheels; verl's `migrate_legacy_reward_impl` (0.7.1
and 0.8.0) for the reward's keys.
"""

from __future__ import annotations

from dataclasses import dataclass

#: A release that has not come yet.
NEVER = (99, 0, 0)


@dataclass(frozen=True)
class KeyRename:
    """A key (or all below it, if it ends in a dot) that has another name before a release.

    Attributes:
        new: its name in 0.9.1.
        old: its name before `since`; "" where there was no such setting.
        since: the first release that reads the new name.
        fsdp_only: the old name holds for FSDP, Megatron always had the new one.
    """

    new: str
    old: str
    since: tuple[int, ...]
    fsdp_only: bool = False


A = "actor_rollout_ref."

#: The longer ones first: the first that fits is taken.
RENAMES: tuple[KeyRename, ...] = (
    KeyRename("reward.custom_reward_function.", "custom_reward_function.", (0, 7, 1)),
    KeyRename("reward.reward_manager.name", "reward_model.reward_manager", (0, 7, 1)),
    KeyRename("reward.reward_kwargs.", "reward_model.reward_kwargs.", (0, 7, 1)),
    KeyRename("reward.reward_model.model_path", "reward_model.model.path", (0, 7, 1)),
    KeyRename("reward.reward_model.enable", "reward_model.enable", (0, 7, 1)),
    KeyRename("reward.reward_model.rollout.", "reward_model.rollout.", (0, 7, 1)),
    KeyRename("reward.num_workers", "reward_model.num_workers", (0, 7, 1)),
    KeyRename("reward.sandbox_fusion.", "reward_model.sandbox_fusion.", (0, 7, 1)),
    KeyRename(f"{A}actor.optim.clip_grad", f"{A}actor.grad_clip", (0, 8, 0), fsdp_only=True),
    KeyRename("critic.optim.clip_grad", "critic.grad_clip", (0, 8, 0), fsdp_only=True),
    KeyRename(
        "critic.ppo_infer_micro_batch_size_per_gpu",
        "critic.forward_micro_batch_size_per_gpu",
        (0, 8, 0),
    ),
    KeyRename(
        "critic.ppo_infer_max_token_len_per_gpu",
        "critic.forward_max_token_len_per_gpu",
        (0, 8, 0),
    ),
    KeyRename(
        f"{A}actor.optim.lr_scheduler_type",
        f"{A}actor.optim.warmup_style",
        (0, 6, 1),
        fsdp_only=True,
    ),
    KeyRename(
        f"{A}actor.fsdp_config.use_torch_compile",
        f"{A}actor.use_torch_compile",
        (0, 8, 0),
        fsdp_only=True,
    ),
    KeyRename(
        f"{A}ref.fsdp_config.use_torch_compile",
        f"{A}ref.use_torch_compile",
        (0, 8, 0),
        fsdp_only=True,
    ),
    KeyRename(
        "critic.fsdp.ulysses_sequence_parallel_size",
        "critic.ulysses_sequence_parallel_size",
        (0, 8, 0),
        fsdp_only=True,
    ),
    KeyRename("critic.fsdp.", "critic.model.fsdp_config.", (0, 8, 0), fsdp_only=True),
    KeyRename(
        f"{A}rollout.checkpoint_engine.update_weights_bucket_megabytes",
        f"{A}rollout.update_weights_bucket_megabytes",
        (0, 7, 1),
    ),
    KeyRename(
        f"{A}rollout.multi_turn.max_assistant_turns", f"{A}rollout.multi_turn.max_turns", (0, 4, 1)
    ),
    KeyRename("ray_kwargs.ray_init.", "ray_init.", (0, 6, 1)),
    KeyRename("global_profiler.steps", "trainer.profile_steps", (0, 6, 1)),
)

#: Of verl's DAPO recipe, which kept the reward's old names in every release it was made for.
DAPO_RECIPE_RENAMES: tuple[KeyRename, ...] = (
    KeyRename(
        "reward.reward_kwargs.overlong_buffer_cfg.",
        "reward_model.overlong_buffer.",
        NEVER,
    ),
    *(KeyRename(move.new, move.old, NEVER) for move in RENAMES if move.new.startswith("reward.")),
)


@dataclass(frozen=True)
class IgnoredKey:
    """A key that a span of releases composes, or takes after a `+`, and does not act on.

    Attributes:
        key: its name; a dot at the end means all below it.
        since: the first release of the span.
        why: what happens there, and what to use instead.
        before: the first release after the span.
        fatal: the release does not ignore it, it ends.
        only: where it is dead only under one trainer, which: `fsdp` or `megatron`.
    """

    key: str
    since: tuple[int, ...]
    why: str
    before: tuple[int, ...] = NEVER
    fatal: bool = False
    only: str = ""


IGNORED_KEYS: tuple[IgnoredKey, ...] = (
    IgnoredKey(
        "custom_reward_function.",
        (0, 9, 0),
        "composes and is ignored: verl trains with its own scorer of the data_source. "
        "Use reward.custom_reward_function.*",
    ),
    IgnoredKey(
        "reward_model.overlong_buffer.",
        (0, 9, 0),
        "no such key: use reward.reward_kwargs.overlong_buffer_cfg.* with the dapo reward manager",
        fatal=True,
    ),
    IgnoredKey("reward_model.", (0, 9, 0), "composes and is ignored: use reward.*"),
    IgnoredKey(
        "sandbox_fusion.", (0, 9, 0), "composes and is ignored: use reward.sandbox_fusion.*"
    ),
    IgnoredKey(
        "algorithm.filter_groups.max_num_gen_batches",
        (0, 9, 0),
        "ignored with a warning: generation goes on until the batch is full; "
        "max_inflight_gen_batches bounds what is in flight, which is another thing",
    ),
    IgnoredKey(
        "data.gen_batch_size",
        (0, 9, 0),
        "forced to 1 with dynamic sampling, without it the loader's fetch size",
    ),
    IgnoredKey("trainer.balance_batch", (0, 9, 0), "read by nothing: the trainer always balances"),
    IgnoredKey(
        "critic.ppo_max_token_len_per_gpu",
        (0, 9, 0),
        "read by nothing: both budgets are critic.ppo_infer_max_token_len_per_gpu (32768)",
    ),
    IgnoredKey(
        f"{A}rollout.mode",
        (0, 7, 0),
        "rollouts are asynchronous, and verl ends where it says sync",
        fatal=True,
    ),
    IgnoredKey("trainer.use_pf_ppo", (0, 9, 0), "read by the old trainer only"),
    IgnoredKey("data.reward_fn_key", (0, 9, 0), "read by nothing: the column is data_source"),
    IgnoredKey(
        f"{A}actor.grad_clip",
        (0, 8, 0),
        "read by nothing: use actor_rollout_ref.actor.optim.clip_grad",
    ),
    IgnoredKey("critic.grad_clip", (0, 8, 0), "read by nothing: use critic.optim.clip_grad"),
    IgnoredKey(
        f"{A}actor.grad_clip",
        (0, 0, 0),
        "FSDP's: Megatron reads actor.optim.clip_grad",
        only="megatron",
    ),
    IgnoredKey(
        "critic.forward_micro_batch_size_per_gpu",
        (0, 8, 0),
        "read by nothing: use critic.ppo_infer_micro_batch_size_per_gpu",
    ),
    IgnoredKey(
        "critic.forward_max_token_len_per_gpu",
        (0, 8, 0),
        "read by nothing: use critic.ppo_infer_max_token_len_per_gpu",
    ),
    IgnoredKey(
        f"{A}actor.megatron.grad_offload",
        (0, 9, 1),
        "removed: param_offload releases the gradients too",
        fatal=True,
    ),
    IgnoredKey(
        f"{A}ref.megatron.grad_offload",
        (0, 9, 1),
        "removed: param_offload releases the gradients too",
        fatal=True,
    ),
    IgnoredKey(
        "trainer.use_legacy_worker_impl", (0, 8, 0), "there is one implementation of the workers"
    ),
    IgnoredKey(
        f"{A}rollout.micro_batch_size",
        (0, 4, 1),
        "not a field of the rollout: verl ends",
        fatal=True,
    ),
    IgnoredKey(
        f"{A}rollout.multi_turn.max_turns",
        (0, 4, 1),
        "renamed to max_assistant_turns: verl ends",
        fatal=True,
    ),
    IgnoredKey(
        f"{A}actor.load_weight", (0, 9, 0), "not a field of the actor: verl ends", fatal=True
    ),
    IgnoredKey(
        "algorithm.rollout_is",
        (0, 6, 1),
        "moved to algorithm.rollout_correction.rollout_is: verl ends",
        fatal=True,
    ),
    IgnoredKey(
        f"{A}rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache",
        (0, 7, 0),
        "vLLM 0.13 renamed it: use engine_kwargs.vllm.mm_processor_cache_gb=0",
        fatal=True,
    ),
)


def to_latest_key(key: str, *, megatron: bool = False) -> str:
    """A key's name in verl 0.9.1, whatever release it was written for."""
    for move in (*DAPO_RECIPE_RENAMES, *RENAMES):
        if move.old and _fits(key, move.old) and not (megatron and move.fsdp_only):
            return move.new + key[len(move.old) :]
    return key


def to_release_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> str:
    """A 0.9.1 key's name in a release; "" if the release has no such setting."""
    for move in DAPO_RECIPE_RENAMES if dapo_recipe else ():
        if _fits(key, move.new):
            return move.old and move.old + key[len(move.new) :]
    for move in RENAMES:
        if number < move.since and _fits(key, move.new) and not (megatron and move.fsdp_only):
            return move.old and move.old + key[len(move.new) :]
    return key


def ignored_key(
    key: str, number: tuple[int, ...], *, megatron: bool = False, dapo_recipe: bool = False
) -> IgnoredKey | None:
    """Why a release does not act on a key, None if it does (as far as is known)."""
    engine = "megatron" if megatron else "fsdp"
    for entry in IGNORED_KEYS:
        spans = entry.since <= number < entry.before
        ours = entry.only in {"", engine}
        if spans and ours and _fits(key, entry.key) and not (dapo_recipe and "reward" in entry.key):
            return entry
    return None


def _fits(key: str, name: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name
