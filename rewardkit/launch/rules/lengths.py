"""Rules of the lengths: prompts, responses, and the tokens that the rollout processes at once."""

from __future__ import annotations

from rewardkit.launch.findings import Severity
from rewardkit.launch.rules.expected_values import BATCHED_TOKENS, SLOW_TOKENS, TRUNCATION
from rewardkit.launch.rules.rule import ASCEND, BLOG, CODE, GUIDE, Violation, rule, set_to
from rewardkit.launch.rules.values import ROLLOUT, PlanValues

FILTER_PROMPTS = "data.filter_overlong_prompts"
MAX_RESPONSE = "data.max_response_length"
RESPONSE = f"{ROLLOUT}.response_length"

#: verl's default for the tokens that the rollout processes at once.
DEFAULT_TOKENS = 8192


@rule("L-11", "warning", BATCHED_TOKENS, GUIDE, CODE)
def batched_tokens(values: PlanValues) -> Violation | None:
    """max_num_batched_tokens >= 8192, prompt + response and max_model_len."""
    tokens, longest = values.count(BATCHED_TOKENS), values.rollout_tokens
    if not tokens or not longest or tokens >= max(DEFAULT_TOKENS, longest):
        return None
    best = max(DEFAULT_TOKENS, longest)
    if tokens < longest:
        is_chunked = values.flag(f"{ROLLOUT}.enable_chunked_prefill") is not False
        is_sync_vllm = values.engine == "vllm" and values.text(f"{ROLLOUT}.mode") == "sync"
        if is_chunked and is_sync_vllm and not values.is_since(0, 7, 0):
            message = f"{tokens} is less than the longest sequence, {longest} tokens: verl "
            message += f"{values.plan.verl} stops."
            return set_to(BATCHED_TOKENS, best, message, severity="error")
        message = f"{tokens} is less than the longest sequence, {longest} tokens."
        return set_to(BATCHED_TOKENS, best, message)
    if tokens > SLOW_TOKENS:
        message = f"{tokens} is less than verl's default, {DEFAULT_TOKENS}."
        return set_to(BATCHED_TOKENS, best, message)
    return None


@rule("L-25", "info", FILTER_PROMPTS, BLOG, ASCEND, CODE)
def long_prompts(values: PlanValues) -> Violation | None:
    """filter_overlong_prompts is True where a long prompt would stop the run."""
    limit, longest = values.count("data.max_prompt_length"), values.facts.longest_prompt
    fits = limit and longest is not None and longest <= limit
    if values.flag(FILTER_PROMPTS) is not False or fits:
        return None
    fix = f"Set {FILTER_PROMPTS}=True."
    if values.reads_images and values.is_since(0, 8, 0):
        return Violation("False lets a prompt with images over the limit stop the run.", fix)
    if not values.is_since(0, 8, 0):  # 0.7 neither cuts a prompt nor pads all to one length
        message = "False lets a prompt over the limit stop the run."
        ends = values.is_since(0, 7, 0) or values.text(TRUNCATION) == "error"
        return Violation(message, fix) if ends else None
    if values.explicit(TRUNCATION) == "error":
        message = f"False lets verl {values.plan.verl} cut long prompts: it ignores {TRUNCATION}."
        return Violation(message, fix)
    return None


@rule("L-28", "info", RESPONSE, GUIDE)
def two_response_lengths(values: PlanValues) -> Violation | None:
    """rollout.response_length wins over data.max_response_length."""
    rollout, data = values.integer(RESPONSE), values.integer(MAX_RESPONSE)
    if values.explicit(RESPONSE) is None or rollout is None or data in {None, rollout}:
        return None
    message = f"{rollout} wins over {MAX_RESPONSE}={data}."
    return Violation(message, f"Set {MAX_RESPONSE}={rollout}, and leave this one out.")


@rule("context", "warning", MAX_RESPONSE, CODE)
def context(values: PlanValues) -> Violation | None:
    """Prompt + response fit the model's context."""
    limit, prompt = values.facts.context, values.count("data.max_prompt_length")
    longest = values.sequence_tokens
    if not limit or not longest or not prompt or longest <= limit:
        return None
    severity: Severity = "warning" if values.is_since(0, 7, 0) else "error"
    message = f"prompt + response = {longest} tokens, and the model was trained for {limit}."
    room = limit - prompt
    fix = f"Set {MAX_RESPONSE}={room}." if room > 0 else "Choose another model."
    return Violation(message, fix, severity=severity)
