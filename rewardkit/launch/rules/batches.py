"""Rules of the batches: prompts of a step and of an update, rows and tokens of a micro batch."""

from __future__ import annotations

from math import gcd

from rewardkit.launch.findings import Severity
from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import ASCEND, BLOG, CODE, GUIDE, TUTORIAL, Violation, rule, set_to
from rewardkit.launch.rules.values import (
    BATCH,
    DYNAMIC_BATCH,
    MICRO_BATCH,
    ROLLOUT,
    SAMPLES,
    ULYSSES_SIZE,
    PlanValues,
)

MINI_BATCH = f"{ACTOR}.ppo_mini_batch_size"
TOKENS = f"{ACTOR}.ppo_max_token_len_per_gpu"
LOG_PROB_MICRO_BATCH = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
LOG_PROB_DYNAMIC = f"{ROLLOUT}.log_prob_use_dynamic_bsz"

#: Most updates per rollout in the sources.
MAX_UPDATES = 16

#: From this many tokens of a response on padding costs much.
LONG_TOKENS = 4096

#: verl's default of the critic's budget, which its YAML does not list, from 0.9 on.
CRITIC_TOKENS = 32768

#: Tokens of one pass that fit on an 80 GB device beside a 7B model.
PASS_TOKENS = 32768


@rule("L-18", "error", MINI_BATCH, GUIDE, CODE)
def mini_batch(values: PlanValues) -> Violation | None:
    """A mini batch is at most a batch, and each device's part divides into micro batches."""
    batch, mini, micro = map(values.count, (BATCH, MINI_BATCH, MICRO_BATCH))
    if not batch or not mini:
        return None
    if mini > batch:
        message, extra = f"{mini} is more than {BATCH}={batch}.", " or less"
        if values.is_dynamic:
            return set_to(MINI_BATCH, batch, message, extra=extra, severity="warning")
        return set_to(MINI_BATCH, batch, message, extra=extra, refusal="actor-mini")
    samples, copies = values.count(SAMPLES), values.data_parallel
    if values.is_dynamic or not micro or not samples or not copies:
        return None
    rows = mini * samples // copies
    if rows and rows % micro:
        message = f"{micro} does not divide the {rows} rows that each device has of a mini batch "
        message += f"({mini} x n {samples} / {copies})."
        return set_to(MICRO_BATCH, gcd(rows, micro), message, refusal="worker-micro-divides")
    return None


@rule("L-19", "error", BATCH, CODE)
def divisible_batches(values: PlanValues) -> Violation | None:
    """Batches x n divide over the devices."""
    batch, samples, mini = map(values.count, (BATCH, SAMPLES, MINI_BATCH))
    devices, copies, micro = values.devices, values.data_parallel, values.count(MICRO_BATCH) or 1
    if not batch or not samples or not devices or not copies:
        return None
    unit, name = devices, "the devices"
    if values.is_megatron:
        unit, name = copies * micro, f"{copies} copies x micro batch {micro}"
    step = batch_step(values)
    if batch % step:
        message = f"{batch} x n {samples} = {batch * samples} does not divide by {unit} ({name})."
        larger, rows = -(-batch // step) * step, values.facts.train_rows
        best = larger - step if rows and step <= rows < larger else larger
        return set_to(BATCH, best, message, refusal="batch")
    if mini and mini * samples % copies:
        severity: Severity = "error" if values.is_since(0, 8, 0) else "warning"
        message = f"{mini} x n {samples} = {mini * samples} does not divide by {copies} copies."
        step = copies // gcd(copies, samples)
        best = -(-mini // step) * step
        return set_to(MINI_BATCH, best, message, severity=severity, refusal="worker-mini-copies")
    return _log_prob_batches(values, batch * samples // copies)


def _log_prob_batches(values: PlanValues, rows: int) -> Violation | None:
    """Check, from 0.8 on, that the micro batches of the log-probs divide a device's rows."""
    micro = values.count(LOG_PROB_MICRO_BATCH)
    if values.is_dynamic or not values.is_since(0, 8, 0) or not micro or not rows % micro:
        return None
    message = f"{micro} does not divide the {rows} rows that each device has of a batch."
    return set_to(LOG_PROB_MICRO_BATCH, gcd(rows, micro), message)


def batch_step(values: PlanValues) -> int:
    """Return the number of prompts that a batch has a multiple of; 1 if any number will do."""
    samples, copies, unit = values.count(SAMPLES), values.data_parallel, values.devices
    if not samples or not copies or (values.is_dynamic and values.is_since(0, 6, 0)):
        return 1
    if values.is_megatron:
        unit = copies * (values.count(MICRO_BATCH) or 1)
    return unit // gcd(unit, samples) if unit else 1


@rule("L-20", "info", MINI_BATCH, TUTORIAL)
def updates_per_step(values: PlanValues) -> Violation | None:
    """A batch has a whole, small number of mini batches: each is one update."""
    batch, mini = values.count(BATCH), values.count(MINI_BATCH)
    if not batch or not mini or mini > batch:
        return None
    updates, rest = divmod(batch, mini)
    if rest:
        message = f"{mini} does not divide {BATCH}={batch}: the last update has {rest} prompts."
        return set_to(MINI_BATCH, gcd(batch, mini), message, severity="warning")
    if updates > MAX_UPDATES:
        message = f"{mini} makes {updates} updates per step: the later ones are far off policy."
        return set_to(MINI_BATCH, max(1, batch // MAX_UPDATES), message, extra=" or more")
    return None


@rule("L-16", "info", DYNAMIC_BATCH, GUIDE, CODE)
def dynamic_batches(values: PlanValues) -> Violation | None:
    """use_dynamic_bsz is True, for the actor and its log-probs alike."""
    actor, log_prob = values.flag(DYNAMIC_BATCH), values.flag(LOG_PROB_DYNAMIC, DYNAMIC_BATCH)
    if actor is None or log_prob is None:
        return None
    if actor != log_prob and values.is_since(0, 8, 0):
        message = f"{log_prob} makes verl {values.plan.verl} stop: {DYNAMIC_BATCH} is {actor}."
        return set_to(LOG_PROB_DYNAMIC, actor, message, severity="error", refusal="worker-dynamic")
    length = values.response_tokens or 0
    if actor or length < LONG_TOKENS:
        return None
    message = f"False gives each pass the same number of rows, whether of 10 tokens or of {length}."
    return set_to(DYNAMIC_BATCH, True, message, extra="; verl then ignores the micro batch sizes")


@rule("L-17", "error", TOKENS, ASCEND, CODE)
def token_budget(values: PlanValues) -> Violation | None:
    """Dynamic batches: max_token_len_per_gpu x sequence parallel >= prompt + response."""
    longest = values.sequence_tokens
    if not longest:
        return None
    small = [
        (key, tokens, size)
        for key, tokens, size in _token_budgets(values)
        if tokens and size and tokens * size < longest
    ]
    if not small:
        return None
    key, tokens, size = small[0]
    message = f"{tokens} x sequence parallel {size} is less than prompt + response = {longest}."
    sizes = " and ".join(f"{key}={-(-longest // (size or 1))}" for key, _, size in small)
    return Violation(message, f"Set {sizes}, or more.", key)


def _token_budgets(values: PlanValues) -> list[tuple[str, int | None, int | None]]:
    """Return key, tokens and sequence parallel size of each model that has dynamic batches."""
    budgets = []
    if values.is_dynamic:
        budgets.append((TOKENS, values.count(TOKENS), values.sequence_parallel()))
    if values.flag(LOG_PROB_DYNAMIC, DYNAMIC_BATCH):
        key = f"{ROLLOUT}.log_prob_max_token_len_per_gpu"
        budgets.append((key, values.count(key, TOKENS), values.sequence_parallel()))
    if values.uses_reference and values.flag(f"{REF}.log_prob_use_dynamic_bsz", DYNAMIC_BATCH):
        key = f"{REF}.log_prob_max_token_len_per_gpu"
        budgets.append((key, values.count(key, TOKENS), values.sequence_parallel(REF)))
    if values.uses_critic and values.flag("critic.use_dynamic_bsz", DYNAMIC_BATCH):
        name = "megatron.context_parallel_size" if values.is_megatron else ULYSSES_SIZE
        budgets.append((*_critic_tokens(values), values.count(f"critic.{name}")))
    return budgets


def _critic_tokens(values: PlanValues) -> tuple[str, int | None]:
    """Return the critic's budget of tokens, by the key that the release reads."""
    if not values.is_since(0, 9, 0):
        key = "critic.ppo_max_token_len_per_gpu"
        return key, values.count(key)
    key = "critic.ppo_infer_max_token_len_per_gpu"
    return key, values.count(key) or CRITIC_TOKENS


@rule("L-60", "info", MICRO_BATCH, ASCEND)
def forward_batch(values: PlanValues) -> Violation | None:
    """Micro batches without gradients can be larger than those with gradients."""
    micro, forward = values.count(MICRO_BATCH), values.count(LOG_PROB_MICRO_BATCH)
    if values.is_dynamic or not micro or not forward or forward >= micro:
        return None
    message = f"{micro} rows fit with gradients, but {LOG_PROB_MICRO_BATCH}={forward} without."
    return Violation(message, f"Set {LOG_PROB_MICRO_BATCH}={2 * micro}.")


@rule("L-69", "info", MICRO_BATCH, BLOG)
def long_pass(values: PlanValues) -> Violation | None:
    """Long sequences have small micro batches: activations grow with rows x tokens."""
    micro, longest = values.count(MICRO_BATCH), values.sequence_tokens
    if values.is_dynamic or not micro or not longest or micro == 1:
        return None
    if micro * longest <= PASS_TOKENS:
        return None
    message = f"{micro} rows of {longest} tokens make passes of {micro * longest} tokens."
    return Violation(
        message, f"Set {MICRO_BATCH}={max(1, PASS_TOKENS // longest)}, or {DYNAMIC_BATCH}=True."
    )
