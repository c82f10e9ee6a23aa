"""Rules of the micro batches: by tokens or by rows, and how many fit one pass."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.batch import MICRO
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, BLOG, CODE, GUIDE, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    REF,
    ROLLOUT,
    count,
    flag,
    is_dynamic,
    is_megatron,
    response_length,
    sequence_parallel,
    since,
    tokens,
    uses_critic,
    uses_reference,
)

BUDGET = f"{ACTOR}.ppo_max_token_len_per_gpu"
DYNAMIC = f"{ACTOR}.use_dynamic_bsz"
ROLLOUT_DYNAMIC = f"{ROLLOUT}.log_prob_use_dynamic_bsz"

#: From so many tokens of a response on padding costs much.
LONG = 4096

#: Tokens of one pass that fit an 80 GB device beside a 7B model.
PASS = 32768


def dynamic(plan: Plan, _: Facts) -> Case | None:
    """Micro batches by tokens; verl 0.8 and newer want the actor and its log-probs alike."""
    actor, log_prob = flag(plan, DYNAMIC), flag(plan, ROLLOUT_DYNAMIC, DYNAMIC)
    if actor is None or log_prob is None:
        return None
    if actor != log_prob and since(plan, 0, 8, 0):
        text = f"{log_prob}, and {DYNAMIC} is {actor}: verl {plan.verl} ends."
        return Case(text, f"Set {ROLLOUT_DYNAMIC}={actor}.", ROLLOUT_DYNAMIC, "error")
    length = response_length(plan) or 0
    if not actor and length >= LONG:
        text = f"False: a pass has the same rows whether they have 10 tokens or {length}."
        return Case(text, f"Set {DYNAMIC}=True; the micro batch sizes are ignored then.")
    return None


def _budgets(plan: Plan) -> list[tuple[str, int | None, int | None]]:
    """Key, tokens and parallel size of each model that is fed by tokens."""
    rollout, ref = (
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
        f"{REF}.log_prob_max_token_len_per_gpu",
    )
    found = []
    if is_dynamic(plan):
        found.append((BUDGET, count(plan, BUDGET), sequence_parallel(plan)))
    if flag(plan, ROLLOUT_DYNAMIC, DYNAMIC):
        found.append((rollout, count(plan, rollout, BUDGET), sequence_parallel(plan)))
    if uses_reference(plan) and flag(plan, f"{REF}.log_prob_use_dynamic_bsz", DYNAMIC):
        found.append((ref, count(plan, ref, BUDGET), sequence_parallel(plan, REF)))
    critic = "critic.ppo_max_token_len_per_gpu"
    if uses_critic(plan) and flag(plan, "critic.use_dynamic_bsz", DYNAMIC):
        name = "megatron.context_parallel_size"
        name = name if is_megatron(plan) else "ulysses_sequence_parallel_size"
        found.append((critic, count(plan, critic), count(plan, f"critic.{name}")))
    return found


def token_budget(plan: Plan, _: Facts) -> Case | None:
    """The longest sequence fits the tokens of one micro batch."""
    longest = tokens(plan)
    short = [
        (key, budget, size)
        for key, budget, size in _budgets(plan)
        if longest and budget and size and budget * size < longest
    ]
    if not short or not longest:
        return None
    key, budget, size = short[0]
    text = f"{budget} x sequence parallel {size} is less than prompt + response = {longest}."
    sets = " and ".join(f"{key}={-(-longest // size)}" for key, _, size in short if size)
    return Case(text, f"Set {sets}, or more.", key)


def forward_batch(plan: Plan, _: Facts) -> Case | None:
    """A pass without gradients takes more rows than one with."""
    micro, key = count(plan, MICRO), f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
    forward = count(plan, key)
    if is_dynamic(plan) or not micro or not forward or forward >= micro:
        return None
    text = f"{forward} is less than {MICRO}={micro}, though it keeps no gradients."
    return Case(text, f"Set {key}={2 * micro}.")


def long_pass(plan: Plan, _: Facts) -> Case | None:
    """Activations grow with rows x tokens."""
    micro, longest = count(plan, MICRO), tokens(plan)
    if is_dynamic(plan) or not micro or not longest or micro == 1 or micro * longest <= PASS:
        return None
    text = f"{micro} rows of {longest} tokens are {micro * longest} tokens a pass."
    return Case(text, f"Set {MICRO}={max(1, PASS // longest)}, or {DYNAMIC}=True.")


RULES = (
    Rule("L-16", "info", DYNAMIC, "use_dynamic_bsz True, alike for log-probs", GUIDE, dynamic),
    Rule(
        "L-17",
        "error",
        BUDGET,
        "dynamic batch: max_token_len_per_gpu x sequence parallel >= prompt + response",
        f"{ASCEND}; {CODE}",
        token_budget,
    ),
    Rule("L-60", "info", MICRO, "forward-only micro batches may be larger", ASCEND, forward_batch),
    Rule("L-69", "info", MICRO, "long context: smaller micro batches", BLOG, long_pass),
)
