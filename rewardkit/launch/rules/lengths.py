"""Rules of the lengths: prompts, responses, and what the rollout takes at once."""

from __future__ import annotations

from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rollout import images
from rewardkit.launch.rules.rule import ASCEND, BLOG, CODE, GUIDE, Case, Rule
from rewardkit.launch.rules.values import ROLLOUT, count, flag, since, tokens, whole, word

AT_ONCE = f"{ROLLOUT}.max_num_batched_tokens"
CHUNKED = f"{ROLLOUT}.enable_chunked_prefill"
TRUNCATION = "data.truncation"
FILTER = "data.filter_overlong_prompts"

#: Tokens at once: verl's default, and where throughput ends.
USUAL, SLOW = 8192, 2048


def _longest(plan: Plan) -> int | None:
    """The longest sequence of the rollout."""
    longest = tokens(plan)
    return max(longest, count(plan, f"{ROLLOUT}.max_model_len") or 0) if longest else None


def tokens_at_once(plan: Plan, _: Facts) -> Case | None:
    """The rollout takes its longest sequence at once; some releases insist."""
    at_once, longest = count(plan, AT_ONCE), _longest(plan)
    if not at_once or not longest or at_once >= max(USUAL, longest):
        return None
    fix = f"Set {AT_ONCE}={max(USUAL, longest)}."
    chunked = flag(plan, CHUNKED) is not False and word(plan, f"{ROLLOUT}.name") == "vllm"
    ends = chunked and not since(plan, 0, 7, 0) and word(plan, f"{ROLLOUT}.mode") == "sync"
    if at_once < longest and ends:
        text = f"{at_once} is less than {longest} tokens: verl {plan.verl} ends."
        return Case(text, fix, severity="error")
    if at_once < longest:
        return Case(f"{at_once} is less than the longest sequence, {longest} tokens.", fix)
    if at_once > SLOW:
        return Case(f"{at_once} is less than verl's own {USUAL}.", fix)
    return None


def throughput(plan: Plan, _: Facts) -> Case | None:
    """2,048 tokens at once are slow, even where all sequences are short."""
    at_once, longest = count(plan, AT_ONCE), _longest(plan)
    if not at_once or not longest or at_once > SLOW or at_once < longest:
        return None
    return Case(f"{at_once} at once starves the device.", f"Set {AT_ONCE}={USUAL}.")


def chunked_prefill(plan: Plan, _: Facts) -> Case | None:
    """Long prompts are read in chunks beside the decoding of others."""
    if plan.settings.get(CHUNKED) is False and word(plan, f"{ROLLOUT}.name") == "vllm":
        text = "False: vLLM decodes nothing while it reads a long prompt."
        return Case(text, f"Set {CHUNKED}=True.")
    return None


def truncation(plan: Plan, _: Facts) -> Case | None:
    """Where an over-long prompt is cut; from 0.7 on verl does not read it."""
    how = word(plan, TRUNCATION)
    if since(plan, 0, 7, 0) or how in {None, "left", "error"}:
        return None
    fix = f"Set {TRUNCATION}=left."
    if how in {"right", "middle"}:
        return Case(f"{how}: the question's end or its middle is lost.", fix)
    return Case(f"{how}: verl knows left, right, middle and error.", fix, severity="error")


def filtered(plan: Plan, facts: Facts) -> Case | None:
    """Without the filter, an over-long prompt ends the run or is cut."""
    limit, strict = count(plan, "data.max_prompt_length"), word(plan, TRUNCATION) == "error"
    fits = limit and facts.longest_prompt is not None and facts.longest_prompt <= limit
    if flag(plan, FILTER) is not False or fits:
        return None
    fix = f"Set {FILTER}=True."
    if images(plan, facts) and since(plan, 0, 8, 0):
        return Case("False: a prompt with images over the limit ends the run.", fix)
    if not since(plan, 0, 7, 0):
        return Case("False: a prompt over the limit ends the run.", fix) if strict else None
    if plan.settings.get(TRUNCATION) == "error":
        text = f"False, and verl {plan.verl} does not read {TRUNCATION}: longer prompts are cut."
        return Case(text, fix)
    return None


def two_lengths(plan: Plan, _: Facts) -> Case | None:
    """The rollout's own length wins."""
    key = f"{ROLLOUT}.response_length"
    own, data = whole(plan, key), whole(plan, "data.max_response_length")
    if key in plan.settings and own is not None and data is not None and own != data:
        text = f"{own} wins over data.max_response_length={data}."
        return Case(text, f"Set data.max_response_length={own}, and leave this one out.")
    return None


def context(plan: Plan, facts: Facts) -> Case | None:
    """The model was made for sequences of that length."""
    longest, prompt = tokens(plan), count(plan, "data.max_prompt_length")
    if not facts.context or not longest or not prompt or longest <= facts.context:
        return None
    kind: Severity = "warning" if since(plan, 0, 7, 0) else "error"
    text = f"prompt + response = {longest} tokens, and the model was made for {facts.context}."
    room = facts.context - prompt
    fix = f"Set data.max_response_length={room}." if room > 0 else "Take another model."
    return Case(text, fix, severity=kind)


RULES = (
    Rule(
        "L-11",
        "warning",
        AT_ONCE,
        "max_num_batched_tokens >= 8192, prompt + response and max_model_len",
        f"{GUIDE}; {CODE}",
        tokens_at_once,
    ),
    Rule("L-12", "warning", AT_ONCE, "max_num_batched_tokens over 2048", ASCEND, throughput),
    Rule("L-13", "info", CHUNKED, "enable_chunked_prefill with vLLM", GUIDE, chunked_prefill),
    Rule("L-21", "info", TRUNCATION, "truncation left, or error", f"{GUIDE}; {CODE}", truncation),
    Rule(
        "L-25",
        "info",
        FILTER,
        "filter_overlong_prompts where a long prompt would end the run",
        f"{BLOG}; {ASCEND}; {CODE}",
        filtered,
    ),
    Rule(
        "L-28",
        "info",
        f"{ROLLOUT}.response_length",
        "rollout.response_length wins over data.max_response_length",
        GUIDE,
        two_lengths,
    ),
    Rule(
        "context",
        "warning",
        "data.max_response_length",
        "prompt + response fits the model's context",
        CODE,
        context,
    ),
)
