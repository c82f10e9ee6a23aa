"""Rules of the algorithm: clipping, groups of responses, DAPO's length penalty and sampling."""

from __future__ import annotations

from rewardkit.launch.plan import DAPO_RECIPE, FILTER_SINCE
from rewardkit.launch.presets import ACTOR, OVERLONG
from rewardkit.launch.rules.rule import Violation, Violations, rule, set_to
from rewardkit.launch.rules.values import MANAGER, SAMPLES, PlanValues
from rewardkit.launch.verl.releases import Release
from rewardkit.launch.verl.reward_managers import REWARD_MANAGERS

CLIP = f"{ACTOR}.clip_ratio"
CLIP_LOW, CLIP_HIGH = f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high"
FILTER_GROUPS = "algorithm.filter_groups"
GENERATED_BATCH = "data.gen_batch_size"
MAX_RESP_LEN = "reward.reward_kwargs.max_resp_len"

#: Estimators that compare the responses to one prompt with each other.
GROUP_ESTIMATORS = frozenset(
    "grpo grpo_passk grpo_vectorized gdpo gpg opo reinforce_plus_plus_baseline rloo "
    "rloo_vectorized".split()
)

#: Smaller groups make the advantage coarse.
SMALL_GROUP = 4
#: The advice for them. The sources have 16 (DAPO) and 64 (GRPO), but rollout time grows with the size,
#: and a prompt that is always or never solved has no gradient in a group of any size.
GROUP_SIZE = 8

#: Metrics of dynamic sampling that some release or its DAPO recipe computes.
COMPUTED_METRICS = frozenset({"reward", "seq_reward", "seq_final_reward"})


@rule("L-06", "info", CLIP_HIGH, "GUIDE; ASCEND")
def clip_range(values: PlanValues) -> Violations:
    """DAPO clips at 0.2 and 0.28, the other algorithms symmetrically."""
    both, low, high = values.number(CLIP), values.number(CLIP_LOW), values.number(CLIP_HIGH)
    if low is None or high is None:
        return
    if values.is_user_set(CLIP) and both not in {low, high, None}:
        message = f"{both:g} has no effect: verl uses clip_ratio_low={low:g} and "
        message += f"clip_ratio_high={high:g}."
        yield Violation(
            message, f"Set {CLIP_LOW}={both:g} and {CLIP_HIGH}={both:g}.", CLIP, "warning"
        )
    good_low, good_high = (0.2, 0.28) if values.algorithm == "dapo" else (low, low)
    if (low, high) != (good_low, good_high):
        message = (
            f"the plan clips at {low:g} and {high:g}, but {values.algorithm.upper()} clips at "
        )
        message += f"{good_low:g} and {good_high:g}."
        yield Violation(message, f"Set {CLIP_LOW}={good_low:g} and {CLIP_HIGH}={good_high:g}.")


@rule("L-08", "warning", MANAGER, "GUIDE")
def reward_manager(values: PlanValues) -> Violations:
    """The reward manager is dapo for DAPO and for a length penalty, naive otherwise."""
    algorithm, name = values.algorithm, values.text(MANAGER)
    good = algorithm if algorithm in {"dapo", "gdpo"} else "naive"
    has_penalty = values.flag(f"{OVERLONG}.enable") is True
    if has_penalty and name != "dapo" and name in REWARD_MANAGERS:
        yield set_to(MANAGER, "dapo", f"{name} ignores the length penalty.")
    if algorithm == "gdpo" and name == "naive":  # it passes more of a row's fields to the function
        return
    if not has_penalty and name in {"naive", "dapo"} and name != good:
        yield set_to(MANAGER, good, f"{name}, but {algorithm.upper()} has {good}.")


@rule("L-10", "error", SAMPLES, "ASCEND; GUIDE")
def group_size(values: PlanValues) -> Violations:
    """Algorithms that compare responses in groups need n > 1, such as 8."""
    size, estimator = values.samples, values.text("algorithm.adv_estimator")
    if not size or size >= SMALL_GROUP or estimator not in GROUP_ESTIMATORS:
        return
    extra = ". Leave out prompts that are always or never solved (rewardkit select): no group size "
    extra += "gives them a gradient"
    if size == 1:
        message = f"1 response per prompt leaves {estimator} nothing to compare and to learn from."
        yield set_to(SAMPLES, GROUP_SIZE, message, extra=extra)
    message = f"{size} responses per prompt make the advantage coarse."
    yield set_to(SAMPLES, GROUP_SIZE, message, extra=extra, severity="info")


@rule("L-49", "error", f"{OVERLONG}.len", "ASCEND")
def length_penalty(values: PlanValues) -> Violations:
    """The overlong buffer is shorter than the response, and max_resp_len and log are set."""
    buffer, limit = values.integer(f"{OVERLONG}.len"), values.response_tokens
    if values.flag(f"{OVERLONG}.enable") is not True or buffer is None or limit is None:
        return
    fix = f"Set {OVERLONG}.len={max(1, limit // 5)}."
    if buffer <= 0:
        yield Violation(f"a buffer of {buffer} tokens penalises nothing.", fix)
    if buffer >= limit:
        message = f"a buffer of {buffer} tokens penalises every response of up to {limit} tokens."
        yield Violation(message, fix)
    if values.plan.module == DAPO_RECIPE:  # it sets the others itself
        return
    if values.plan.get(f"{OVERLONG}.log") is None:
        message = "it is not set, and verl stops at the first sample without it."
        yield set_to(f"{OVERLONG}.log", False, message)
    if values.plan.get(MAX_RESP_LEN) is None:
        message = "it is not set, and verl cannot make the reward manager without it."
        yield set_to(MAX_RESP_LEN, "${data.max_response_length}", message)
    longest = values.integer(MAX_RESP_LEN)
    if longest not in {limit, None}:
        message = f"{longest} moves the penalty's start: responses have up to {limit} tokens."
        yield set_to(MAX_RESP_LEN, limit, message, severity="warning")


@rule("L-50", "error", f"{FILTER_GROUPS}.metric", "ASCEND")
def dynamic_sampling(values: PlanValues) -> Violations:
    """Dynamic sampling has a metric; before 0.9 gen_batch_size >= train_batch_size."""
    if values.flag(f"{FILTER_GROUPS}.enable") is not True:
        return
    key, settings = f"{FILTER_GROUPS}.metric", values.plan.settings
    metric = settings[key] if key in settings else values.plan.get(key)
    if metric in (None, ""):
        yield set_to(key, "acc", "it is not set, and groups are compared by it.")
    computed = computed_metrics(values.plan.release)
    if isinstance(metric, str) and metric in COMPUTED_METRICS - {*computed}:
        message = f"verl {values.plan.verl} has no metric {metric} and stops at the first batch."
        extra = ", or acc if the reward function returns it" if computed else ""
        yield set_to(key, (*computed, "acc")[0], message, extra=extra)
    generated, needed = values.count(GENERATED_BATCH), values.batch
    if values.is_since(*FILTER_SINCE) or not generated or not needed or generated >= needed:
        return
    rounds = values.count(f"{FILTER_GROUPS}.max_num_gen_batches")
    if rounds and rounds * generated < needed:
        message = f"{rounds} rounds of {generated} prompts never fill a batch of {needed}."
        yield set_to(GENERATED_BATCH, 2 * needed, message)
    message = f"{generated} is less than the batch of {needed}: every step takes several rounds."
    yield set_to(GENERATED_BATCH, 2 * needed, message, severity="warning")


def computed_metrics(release: Release) -> tuple[str, ...]:
    """Return the metrics of dynamic sampling that a release computes, the usual one first.

    All others are read from what the reward function returns. 0.9.1 computes the reward, which is its
    default there; 0.9.0 and main's snapshot compute none (verl trainer/ppo/v1/replay_buffer.py).
    """
    if release.number < FILTER_SINCE:
        return ("seq_reward", "seq_final_reward")
    return ("reward",) if release.keys.get(f"{FILTER_GROUPS}.metric") == "reward" else ()
