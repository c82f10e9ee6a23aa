"""Rules of the parallel sizes: who holds a model together, and who shares a sequence."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, BLOG, CODE, GUIDE, MODELARTS, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    MODEL,
    REF,
    ROLLOUT,
    count,
    devices,
    flag,
    is_megatron,
    model_parallel,
    response_length,
    sequence_parallel,
    uses_reference,
)

ULYSSES = f"{ACTOR}.ulysses_sequence_parallel_size"
PADDING = f"{MODEL}.use_remove_padding"
TENSOR = f"{ROLLOUT}.tensor_model_parallel_size"
ACTOR_TENSOR = f"{ACTOR}.megatron.tensor_model_parallel_size"

#: Tokens of a response from which a sequence is worth cutting, and tokens for each part.
LONG, PART = 8192, 2048


def sizes(plan: Plan, facts: Facts) -> Case | None:
    """Parallel sizes divide the devices and the model's heads."""
    return _rollout(plan, facts) or (_megatron(plan, facts) if is_megatron(plan) else None)


def _rollout(plan: Plan, facts: Facts) -> Case | None:
    """The rollout's replicas fill the devices."""
    all_of_them, size = devices(plan), count(plan, TENSOR)
    copies = count(plan, f"{ROLLOUT}.data_parallel_size") or 1
    if not all_of_them or not size:
        return None
    if all_of_them % (size * copies):
        best = _largest(size, all_of_them)
        return Case(
            f"{size * copies} does not divide {all_of_them} devices.", f"Set {TENSOR}={best}."
        )
    if facts.heads and facts.heads % size:
        best = _largest(size, facts.heads, all_of_them)
        text = f"{size} does not divide the model's {facts.heads} attention heads."
        return Case(text, f"Set {TENSOR}={best}.")
    return None


def _megatron(plan: Plan, facts: Facts) -> Case | None:
    """TP x PP x CP fill the devices, the experts' sizes too; TP stays within a node."""
    all_of_them, copy, size = devices(plan), model_parallel(plan), count(plan, ACTOR_TENSOR)
    pipeline = count(plan, f"{ACTOR}.megatron.pipeline_model_parallel_size")
    if not all_of_them or not copy or not size or not pipeline:
        return None
    if all_of_them % copy:
        text = f"TP x PP x CP = {copy} does not divide {all_of_them} devices."
        fix = f"Set TP, PP and CP so that their product divides {all_of_them}."
        return Case(text, fix, ACTOR_TENSOR)
    key = f"{ACTOR}.megatron.expert_model_parallel_size"
    experts = count(plan, key) or 1
    inner = count(plan, f"{ACTOR}.megatron.expert_tensor_parallel_size") or size
    if experts > 1 and all_of_them % (experts * inner * pipeline):
        text = (
            f"EP x ETP x PP = {experts * inner * pipeline} does not divide {all_of_them} devices."
        )
        return Case(text, f"Set {key}={_largest(experts, all_of_them // pipeline)}.", key)
    if facts.heads and facts.heads % size:
        text = f"{size} does not divide the model's {facts.heads} attention heads."
        return Case(text, f"Set {ACTOR_TENSOR}={_largest(size, facts.heads)}.", ACTOR_TENSOR)
    return _across_nodes(plan, size)


def _across_nodes(plan: Plan, size: int) -> Case | None:
    each = count(plan, "trainer.n_gpus_per_node")
    if not each or size <= each:
        return None
    text = f"{size} is more than the {each} devices of a node: every layer waits for the network."
    fix = f"Set {ACTOR_TENSOR}={each}, and raise pipeline_model_parallel_size."
    return Case(text, fix, ACTOR_TENSOR, "warning")


def _largest(size: int, *totals: int) -> int:
    """The largest power of two up to a size that divides all of some numbers."""
    best = 1
    while 2 * best <= size and all(total % (2 * best) == 0 for total in totals):
        best *= 2
    return best


def ulysses(plan: Plan, facts: Facts) -> Case | None:
    """A sequence's parts: they divide devices and heads; long answers want some."""
    size, all_of_them = count(plan, ULYSSES), devices(plan)
    if is_megatron(plan) or not size or not all_of_them:
        return None
    heads = facts.heads or all_of_them
    good = _largest(max(size, (response_length(plan) or 0) // PART), all_of_them, heads)
    fix = f"Set {ULYSSES}={good}."
    if all_of_them % size:
        return Case(f"{size} does not divide {all_of_them} devices.", fix, severity="error")
    if facts.heads and facts.heads % size:
        text = f"{size} does not divide the model's {facts.heads} attention heads."
        return Case(text, fix, severity="error")
    if facts.kv_heads and facts.kv_heads % size and size % facts.kv_heads:
        text = f"{size} and the model's {facts.kv_heads} key-value heads do not divide."
        return Case(text, fix, severity="error")
    length = response_length(plan) or 0
    if size == 1 and length > LONG and good > 1:
        return Case(f"1 with answers of {length} tokens.", f"{fix} It needs {PADDING}=True.")
    return None


def parts_need_packing(plan: Plan, _: Facts) -> Case | None:
    """Ulysses cuts packed sequences only."""
    both = [sequence_parallel(plan)]
    both += [sequence_parallel(plan, REF)] if uses_reference(plan) else []
    size = max((size for size in both if size), default=1)
    if is_megatron(plan) or size == 1 or flag(plan, PADDING) is not False:
        return None
    return Case(f"False, and {ULYSSES} is {size}: verl ends.", f"Set {PADDING}=True.")


RULES = (
    Rule(
        "L-37",
        "error",
        TENSOR,
        "parallel sizes divide the devices and the heads; TP within a node",
        f"{GUIDE}; {BLOG}; {CODE}",
        sizes,
    ),
    Rule(
        "L-57",
        "info",
        ULYSSES,
        "ulysses size: about response / 2048 over 8K; divides devices and heads",
        f"{MODELARTS}; {CODE}",
        ulysses,
    ),
    Rule(
        "L-58",
        "error",
        PADDING,
        "ulysses size > 1 needs use_remove_padding",
        f"{ASCEND}; {CODE}",
        parts_need_packing,
    ),
)
