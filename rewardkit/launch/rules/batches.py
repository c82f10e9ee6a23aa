"""Rules of the batches and lengths: prompts of a step and of an update, rows and tokens of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from rewardkit.launch.presets import ACTOR, REF
from rewardkit.launch.rules.rule import Violation, Violations, rule, set_to
from rewardkit.launch.rules.values import (
    BATCH,
    DYNAMIC_BATCH,
    LOG_PROB_MICRO_BATCH,
    MICRO_BATCH,
    MINI_BATCH,
    ROLLOUT,
    ULYSSES_SIZE,
    PlanValues,
)

TOKENS = f"{ACTOR}.ppo_max_token_len_per_gpu"
LOG_PROB_DYNAMIC = f"{ROLLOUT}.log_prob_use_dynamic_bsz"
BATCHED_TOKENS = f"{ROLLOUT}.max_num_batched_tokens"
FILTER_PROMPTS, TRUNCATION = "data.filter_overlong_prompts", "data.truncation"
MAX_RESPONSE, RESPONSE = "data.max_response_length", f"{ROLLOUT}.response_length"

#: Most updates per rollout in the sources.
MAX_UPDATES = 16

#: verl's default of the critic's budget, which its YAML does not list, from 0.9 on.
CRITIC_TOKENS = 32768

#: Tokens of one pass that fit on an 80 GB device beside a 7B model.
PASS_TOKENS = 32768

#: verl's default for the tokens that the rollout processes at once; so few limit its throughput (L-12).
DEFAULT_TOKENS, SLOW_TOKENS = 8192, 2048


@rule("L-18", "error", MINI_BATCH, "GUIDE; CODE")
def mini_batch(values: PlanValues) -> Violations:
    """A mini batch is at most a batch, and each device's part divides into micro batches."""
    batch, mini, micro = values.batch, values.mini_batch, values.micro_batch
    if not batch or not mini:
        return
    if mini > batch:
        message, extra = f"{mini} is more than {BATCH}={batch}.", " or less"
        if values.is_dynamic:
            yield set_to(MINI_BATCH, batch, message, extra=extra, severity="warning")
        yield set_to(MINI_BATCH, batch, message, extra=extra, refusal="actor-mini")
    samples, copies = values.samples, values.data_parallel
    if values.is_dynamic or not micro or not samples or not copies:
        return
    rows = mini * samples // copies
    if rows and rows % micro:
        check = "worker-micro-divides"  # newer releases fail where they cut the rows
        yield set_to(
            MICRO_BATCH,
            gcd(rows, micro),
            f"{micro} does not divide the {rows} rows that each device has of a mini batch "
            f"({mini} x n {samples} / {copies}).",
            refusal=check if values.refusal(check) else "",
        )


@rule("L-19", "error", BATCH, "CODE")
def divisible_batches(values: PlanValues) -> Violations:
    """Batches x n divide over the devices."""
    batch, samples, mini = values.batch, values.samples, values.mini_batch
    devices, copies, micro = values.devices, values.data_parallel, values.micro_batch or 1
    if not batch or not samples or not devices or not copies:
        return
    unit, name = devices, "the devices"
    if values.is_megatron:
        unit, name = copies * micro, f"{copies} copies x micro batch {micro}"
    step = batch_step(values)
    if batch % step:
        message = f"{batch} x n {samples} = {batch * samples} does not divide by {unit} ({name})."
        larger, rows = -(-batch // step) * step, values.facts.train_rows
        best = larger - step if rows and step <= rows < larger else larger
        yield set_to(BATCH, best, message, refusal="batch")
    if mini and mini * samples % copies:
        message = f"{mini} x n {samples} = {mini * samples} does not divide by {copies} copies."
        step = copies // gcd(copies, samples)
        best = -(-mini // step) * step
        yield set_to(MINI_BATCH, best, message, refusal="worker-mini-copies")
        yield set_to(MINI_BATCH, best, message, severity="warning")
    micro, rows = values.log_prob_micro_batch or 1, batch * samples // copies
    if not values.is_dynamic and values.is_since(0, 8, 0) and rows % micro:
        message = f"{micro} does not divide the {rows} rows that each device has of a batch."
        yield set_to(LOG_PROB_MICRO_BATCH, gcd(rows, micro), message)


def batch_step(values: PlanValues) -> int:
    """Return the number of prompts that a batch has a multiple of; 1 if any number will do."""
    samples, copies, unit = values.samples, values.data_parallel, values.devices
    if not samples or not copies or not unit or values.is_dynamic:
        return 1
    if values.is_megatron:
        unit = copies * (values.micro_batch or 1)
    return unit // gcd(unit, samples)


@rule("L-20", "info", MINI_BATCH, "TUTORIAL")
def updates_per_step(values: PlanValues) -> Violations:
    """A batch has a whole, small number of mini batches: each is one update."""
    batch, mini = values.batch, values.mini_batch
    if not batch or not mini or mini > batch:
        return
    updates, rest = divmod(batch, mini)
    if rest:
        message = f"{mini} does not divide {BATCH}={batch}: the last update has {rest} prompts."
        yield set_to(MINI_BATCH, gcd(batch, mini), message, severity="warning")
    if updates > MAX_UPDATES:
        message = f"{mini} makes {updates} updates per step: the later ones are far off policy."
        yield set_to(MINI_BATCH, max(1, batch // MAX_UPDATES), message, extra=" or more")


@rule("L-16", "info", DYNAMIC_BATCH, "GUIDE; CODE")
def dynamic_batches(values: PlanValues) -> Violations:
    """use_dynamic_bsz is True, for the actor and its log-probs alike."""
    actor, log_prob = values.flag(DYNAMIC_BATCH), values.flag(LOG_PROB_DYNAMIC, DYNAMIC_BATCH)
    if actor is None or log_prob is None:
        return
    if actor != log_prob:
        message = f"{log_prob} makes verl {values.plan.verl} stop: {DYNAMIC_BATCH} is {actor}."
        yield set_to(LOG_PROB_DYNAMIC, actor, message, severity="error", refusal="worker-dynamic")
    if not actor and values.has_long_responses:
        length = values.response_tokens
        yield set_to(
            DYNAMIC_BATCH,
            True,
            f"False gives each pass the same number of rows, whether of 10 tokens or of {length}.",
            extra="; verl then ignores the micro batch sizes",
        )


@rule("L-17", "error", TOKENS, "ASCEND; CODE")
def token_budget(values: PlanValues) -> Violations:
    """Dynamic batches: max_token_len_per_gpu x sequence parallel >= prompt + response."""
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
        size = values.count(f"critic.{name}")
        if values.is_since(0, 9, 0):
            key = "critic.ppo_infer_max_token_len_per_gpu"
            yield key, values.count(key) or CRITIC_TOKENS, size
        else:
            key = "critic.ppo_max_token_len_per_gpu"
            yield key, values.count(key), size


@rule("L-60", "info", MICRO_BATCH, "ASCEND")
def forward_batch(values: PlanValues) -> Violations:
    """Micro batches without gradients can be larger than those with gradients."""
    micro, forward = values.micro_batch, values.log_prob_micro_batch
    if not values.is_dynamic and micro and forward and forward < micro:
        message = f"{micro} rows fit with gradients, but {LOG_PROB_MICRO_BATCH}={forward} without."
        yield Violation(message, f"Set {LOG_PROB_MICRO_BATCH}={2 * micro}.")


@rule("L-69", "info", MICRO_BATCH, "BLOG")
def long_pass(values: PlanValues) -> Violations:
    """Long sequences have small micro batches: activations grow with rows x tokens."""
    micro, longest = values.micro_batch or 1, values.sequence_tokens or 0
    if not values.is_dynamic and micro > 1 and micro * longest > PASS_TOKENS:
        message = f"{micro} rows of {longest} tokens make passes of {micro * longest} tokens."
        extra = f", or {DYNAMIC_BATCH}=True"
        yield set_to(MICRO_BATCH, max(1, PASS_TOKENS // longest), message, extra=extra)


@rule("L-11", "warning", BATCHED_TOKENS, "GUIDE; CODE")
def batched_tokens(values: PlanValues) -> Violations:
    """max_num_batched_tokens >= 8192, prompt + response and max_model_len."""
    tokens, longest = values.count(BATCHED_TOKENS), values.rollout_tokens
    if not tokens or not longest:
        return
    best = max(DEFAULT_TOKENS, longest)
    if tokens < longest:
        message = f"{tokens} is less than the longest sequence, {longest} tokens."
        yield set_to(BATCHED_TOKENS, best, message)
    if SLOW_TOKENS < tokens < DEFAULT_TOKENS:
        message = f"{tokens} is less than verl's default, {DEFAULT_TOKENS}."
        yield set_to(BATCHED_TOKENS, best, message)


@rule("L-25", "info", FILTER_PROMPTS, "BLOG; ASCEND; CODE")
def long_prompts(values: PlanValues) -> Violations:
    """filter_overlong_prompts is True where a long prompt would stop the run."""
    limit, longest = values.prompt_tokens, values.facts.longest_prompt
    fits = limit and longest is not None and longest <= limit
    if values.flag(FILTER_PROMPTS) is not False or fits:
        return
    fix = f"Set {FILTER_PROMPTS}=True."
    if not values.is_since(0, 8, 0):  # 0.7 neither cuts a prompt nor pads all to one length
        yield Violation("False lets a prompt over the limit stop the run.", fix)
    if values.reads_images:
        yield Violation("False lets a prompt with images over the limit stop the run.", fix)
    if values.explicit(TRUNCATION) == "error":
        message = f"False lets verl {values.plan.verl} cut long prompts: it ignores {TRUNCATION}."
        yield Violation(message, fix)


@rule("L-28", "info", RESPONSE, "GUIDE")
def two_response_lengths(values: PlanValues) -> Violations:
    """rollout.response_length wins over data.max_response_length."""
    rollout, data = values.integer(RESPONSE), values.integer(MAX_RESPONSE)
    if values.explicit(RESPONSE) is None or rollout is None or data in {None, rollout}:
        return
    message = f"{rollout} wins over {MAX_RESPONSE}={data}."
    yield Violation(message, f"Set {MAX_RESPONSE}={rollout}, and leave this one out.")


@rule("context", "warning", MAX_RESPONSE, "CODE")
def context(values: PlanValues) -> Violations:
    """Prompt + response fit the model's context."""
    limit, prompt, longest = values.facts.context, values.prompt_tokens, values.sequence_tokens
    if limit and prompt and longest and longest > limit:
        room = limit - prompt
        fix = f"Set {MAX_RESPONSE}={room}." if room > 0 else "Choose another model."
        yield Violation(
            f"prompt + response = {longest} tokens, and the model was trained for {limit}.", fix
        )
