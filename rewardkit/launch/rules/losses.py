"""Rules of the loss: clipping, aggregation, the optimizer; DAPO's penalty and sampling."""

from __future__ import annotations

from rewardkit.launch.plan import DAPO_RECIPE, Plan
from rewardkit.launch.presets import OVERLONG
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, GUIDE, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    MODEL,
    asked,
    count,
    flag,
    number,
    response_length,
    since,
    whole,
    word,
)

FILTER = "algorithm.filter_groups"
LOW, HIGH = f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high"

#: Learning rates of the sources, with some room around them.
SLOWEST, FASTEST = 1e-7, 1e-5


def clip_range(plan: Plan, _: Facts) -> Case | None:
    """DAPO clips higher above than below; the others alike."""
    low, high, both = number(plan, LOW), number(plan, HIGH), number(plan, f"{ACTOR}.clip_ratio")
    if low is None or high is None:
        return None
    if asked(plan, f"{ACTOR}.clip_ratio") and both not in {low, high, None}:
        text = f"{both:g} has no effect: clip_ratio_low {low:g} and clip_ratio_high {high:g} count."
        fix = f"Set {LOW}={both:g} and {HIGH}={both:g}."
        return Case(text, fix, f"{ACTOR}.clip_ratio", "warning")
    wanted = (0.2, 0.28) if plan.recipe.algorithm == "dapo" else (low, low)
    if (low, high) != wanted:
        text = f"{low:g} and {high:g}; {plan.recipe.algorithm.upper()} clips at "
        text += f"{wanted[0]:g} and {wanted[1]:g}."
        return Case(text, f"Set {LOW}={wanted[0]:g} and {HIGH}={wanted[1]:g}.")
    return None


def dual_clip(plan: Plan, _: Facts) -> Case | None:
    """The bound for negative advantages: 3 by default, 10 in the DAPO recipes, over 1 always."""
    key, value = f"{ACTOR}.clip_ratio_c", number(plan, f"{ACTOR}.clip_ratio_c")
    if value is None:
        return None
    if value <= 1:
        return Case(
            f"{value:g}: verl ends unless it is over 1.", f"Set {key}=10.", severity="error"
        )
    if plan.recipe.algorithm == "dapo" and not 3 <= value <= 10:
        return Case(f"{value:g}; the DAPO recipes have 10, verl's default is 3.", f"Set {key}=10.")
    return None


def aggregation(plan: Plan, _: Facts) -> Case | None:
    """Every token counts alike; GRPO's original averages each sequence first."""
    key, value = f"{ACTOR}.loss_agg_mode", word(plan, f"{ACTOR}.loss_agg_mode")
    original = value == "seq-mean-token-mean" and plan.recipe.algorithm == "grpo"
    if value in {None, "token-mean"} or original:
        return None
    text = f"{value}: tokens of long and short answers count differently."
    return Case(text, f"Set {key}=token-mean.")


def learning_rate(plan: Plan, _: Facts) -> Case | None:
    """1e-6 or 1e-5, of all weights; adapters take more."""
    key, value = f"{ACTOR}.optim.lr", number(plan, f"{ACTOR}.optim.lr")
    if value is None or (count(plan, f"{MODEL}.lora_rank", f"{MODEL}.lora.rank") or 0) > 0:
        return None
    if SLOWEST <= value <= FASTEST:
        return None
    return Case(f"{value:g} is far from what RL of all weights takes.", f"Set {key}=1e-6.")


def overlong(plan: Plan, _: Facts) -> Case | None:
    """The penalty's buffer lies within the response, and verl is told all of it."""
    if flag(plan, f"{OVERLONG}.enable") is not True:
        return None
    buffer, limit = whole(plan, f"{OVERLONG}.len"), response_length(plan)
    if buffer is None or limit is None:
        return None
    fix = f"Set {OVERLONG}.len={max(1, limit // 5)}."
    if buffer <= 0:
        return Case(f"{buffer} tokens: there is nothing to penalise in.", fix)
    if buffer >= limit:
        return Case(f"{buffer} tokens, and a response has {limit}: all would be penalised.", fix)
    return None if plan.module == DAPO_RECIPE else _told(plan, limit)


def _told(plan: Plan, limit: int) -> Case | None:
    """What the main trainer's reward manager reads besides the length."""
    key = "reward.reward_kwargs.max_resp_len"
    if plan.get(f"{OVERLONG}.log") is None:
        text = "missing: verl ends at the first sample."
        return Case(text, f"Set {OVERLONG}.log=False.", f"{OVERLONG}.log")
    if plan.get(key) is None:
        fix = f"Set {key}=${{data.max_response_length}}."
        return Case("missing: verl ends where it makes the reward manager.", fix, key)
    if (told := whole(plan, key)) is not None and told != limit:
        text = f"{told}, and a response has {limit}: the penalty starts at another length."
        return Case(text, f"Set {key}={limit}.", key, "warning")
    return None


def dynamic_sampling(plan: Plan, _: Facts) -> Case | None:
    """Groups are compared by a metric that there is."""
    if flag(plan, f"{FILTER}.enable") is not True:
        return None
    key = f"{FILTER}.metric"
    metric = plan.settings[key] if key in plan.settings else plan.get(key)
    if metric in (None, ""):
        return Case("not set: groups cannot be compared.", f"Set {key}=acc.")
    own, others = ("reward", {"seq_reward", "seq_final_reward"})
    if not since(plan, 0, 9, 0):
        own, others = ("seq_reward", {"reward"})
    if isinstance(metric, str) and metric in others:
        text = f"verl {plan.verl} has no {metric}: the run ends at the first batch."
        return Case(text, f"Set {key}={own}, or acc where the reward function returns it.")
    return _refill(plan)


def _refill(plan: Plan) -> Case | None:
    """Before 0.9: a round makes gen_batch_size prompts, and a number of rounds has to do."""
    made, kept = count(plan, "data.gen_batch_size"), count(plan, "data.train_batch_size")
    if since(plan, 0, 9, 0) or not made or not kept or made >= kept:
        return None
    key, rounds = "data.gen_batch_size", count(plan, f"{FILTER}.max_num_gen_batches")
    fix = f"Set {key}={2 * kept}."
    if rounds and rounds * made < kept:
        return Case(f"{rounds} rounds of {made} never make a batch of {kept}.", fix, key)
    text = f"{made} is less than a batch of {kept}: every step takes several rounds."
    return Case(text, fix, key, "warning")


RULES = (
    Rule(
        "L-06",
        "info",
        HIGH,
        "DAPO clips at 0.2 and 0.28, the others symmetrically",
        f"{GUIDE}; {ASCEND}",
        clip_range,
    ),
    Rule(
        "L-07",
        "info",
        f"{ACTOR}.clip_ratio_c",
        "clip_ratio_c over 1; 10 in the DAPO recipes",
        ASCEND,
        dual_clip,
    ),
    Rule(
        "L-09",
        "info",
        f"{ACTOR}.loss_agg_mode",
        "loss_agg_mode token-mean; seq-mean-token-mean is the original GRPO",
        GUIDE,
        aggregation,
    ),
    Rule("L-39", "info", f"{ACTOR}.optim.lr", "lr 1e-6 or 1e-5", GUIDE, learning_rate),
    Rule(
        "L-49",
        "error",
        f"{OVERLONG}.len",
        "the overlong buffer is shorter than the response; max_resp_len and log are given",
        ASCEND,
        overlong,
    ),
    Rule(
        "L-50",
        "error",
        f"{FILTER}.metric",
        "dynamic sampling has a metric; before 0.9 gen_batch_size >= train_batch_size",
        ASCEND,
        dynamic_sampling,
    ),
)
