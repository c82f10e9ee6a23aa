"""Rules of the algorithm: what GRPO, DAPO and PPO each are, by their keys."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, BLOG, GUIDE, MODELARTS, TUTORIAL, Case, Rule, unless
from rewardkit.launch.rules.values import ACTOR, ROLLOUT, asked, count, flag, number, word

ESTIMATOR = "algorithm.adv_estimator"
IN_REWARD = "algorithm.use_kl_in_reward"
KL_LOSS = f"{ACTOR}.use_kl_loss"
MANAGER = "reward.reward_manager.name"

#: Estimators that compare the answers to one prompt with each other.
GROUPS = frozenset(
    {
        "grpo",
        "grpo_passk",
        "grpo_vectorized",
        "gdpo",
        "gpg",
        "opo",
        "reinforce_plus_plus_baseline",
        "rloo",
        "rloo_vectorized",
    }
)

#: What the sources take; below the first an advantage says little.
FEW, TYPICAL = 4, {"grpo": 64, "dapo": 16}


def _differs(plan: Plan, estimator: str, in_reward: bool, kl_loss: bool) -> Case | None:
    """The first of an algorithm's three settings that is another."""
    name = plan.recipe.algorithm.upper()
    if unless(word(plan, ESTIMATOR), estimator):
        text = f"{word(plan, ESTIMATOR)}; {name} takes {estimator}."
        return Case(text, f"Set {ESTIMATOR}={estimator}, or another algorithm:.", ESTIMATOR)
    for key, wanted in ((KL_LOSS, kl_loss), (IN_REWARD, in_reward)):
        if unless(flag(plan, key), wanted):
            text = f"{not wanted}; {name} has {wanted}."
            return Case(text, f"Set {key}={wanted}, if that is not meant.", key)
    return None


def grpo(plan: Plan, _: Facts) -> Case | None:
    """GRPO: a KL loss, no KL in the reward."""
    return _differs(plan, "grpo", False, True) if plan.recipe.algorithm == "grpo" else None


def dapo(plan: Plan, _: Facts) -> Case | None:
    """DAPO: no KL at all."""
    return _differs(plan, "grpo", False, False) if plan.recipe.algorithm == "dapo" else None


def ppo(plan: Plan, _: Facts) -> Case | None:
    """PPO: the KL in the reward."""
    return _differs(plan, "gae", True, False) if plan.recipe.algorithm == "ppo" else None


def coefficient_without_effect(plan: Plan, _: Facts) -> Case | None:
    """A KL coefficient that somebody set, of a KL that is off."""
    pairs = (("algorithm.kl_ctrl.kl_coef", IN_REWARD), (f"{ACTOR}.kl_loss_coef", KL_LOSS))
    for key, switch in pairs:
        value = number(plan, key)
        if value and asked(plan, key) and flag(plan, switch) is False:
            return Case(f"{value:g} has no effect: {switch} is False.", f"Set {switch}=True.", key)
    return None


def kl_twice(plan: Plan, _: Facts) -> Case | None:
    """The KL counts in the reward and in the loss."""
    if flag(plan, IN_REWARD) and flag(plan, KL_LOSS):
        return Case(f"{IN_REWARD} is True too: the KL counts twice.", f"Set {KL_LOSS}=False.")
    return None


def manager(plan: Plan, _: Facts) -> Case | None:
    """DAPO's manager for DAPO; only that one knows the length penalty."""
    wanted, name = "dapo" if plan.recipe.algorithm == "dapo" else "naive", word(plan, MANAGER)
    penalty = flag(plan, "reward.reward_kwargs.overlong_buffer_cfg.enable") is True
    if name == "naive" and penalty:
        return Case("naive ignores the length penalty.", f"Set {MANAGER}=dapo.")
    if name in {"naive", "dapo"} and name != wanted and not penalty:
        text = f"{name}; {plan.recipe.algorithm.upper()} takes {wanted}."
        return Case(text, f"Set {MANAGER}={wanted}.")
    return None


def group_size(plan: Plan, _: Facts) -> Case | None:
    """An algorithm of groups needs several answers to a prompt."""
    answers, estimator = count(plan, f"{ROLLOUT}.n"), word(plan, ESTIMATOR)
    if not answers or estimator not in GROUPS:
        return None
    typical = TYPICAL.get(plan.recipe.algorithm, 16)
    if answers == 1:
        text = f"1, and {estimator} compares the answers to a prompt: nothing would be learnt."
        return Case(text, f"Set {ROLLOUT}.n={typical}.")
    if answers < FEW:
        text = f"{answers} answers to a prompt make a coarse advantage (typical: {typical})."
        return Case(text, f"Set {ROLLOUT}.n=8 or more, if the time allows.", severity="info")
    return None


def kl_size(plan: Plan, _: Facts) -> Case | None:
    """A KL loss of 0 costs a reference model, one of 0.1 and more holds the policy still."""
    key, value = f"{ACTOR}.kl_loss_coef", number(plan, f"{ACTOR}.kl_loss_coef")
    if value is None or flag(plan, KL_LOSS) is not True:
        return None
    if value == 0:
        return Case("0: a reference model is loaded for nothing.", f"Set {KL_LOSS}=False.")
    if value >= 0.1:
        return Case(f"{value:g} leaves little room to explore.", f"Start with {key}=0.001.")
    return None


def kl_type(plan: Plan, _: Facts) -> Case | None:
    """The estimator of the KL loss."""
    value = word(plan, f"{ACTOR}.kl_loss_type")
    if flag(plan, KL_LOSS) and value and value.rstrip("+") not in {"low_var_kl", "k3"}:
        fix = f"Set {ACTOR}.kl_loss_type=low_var_kl."
        return Case(f"{value} varies more than low_var_kl (k3), which all recipes use.", fix)
    return None


def entropy(plan: Plan, _: Facts) -> Case | None:
    """No entropy bonus."""
    value = number(plan, f"{ACTOR}.entropy_coeff")
    if value:
        return Case(f"{value:g}; all recipes have 0.", f"Set {ACTOR}.entropy_coeff=0.")
    return None


RULES = (
    Rule(
        "L-01",
        "warning",
        ESTIMATOR,
        "GRPO: adv_estimator grpo, use_kl_loss True, use_kl_in_reward False",
        f"{GUIDE}; {ASCEND}; {BLOG}",
        grpo,
    ),
    Rule(
        "L-02",
        "warning",
        ESTIMATOR,
        "DAPO: adv_estimator grpo, use_kl_loss False, use_kl_in_reward False",
        f"{GUIDE}; {ASCEND}",
        dapo,
    ),
    Rule("L-03", "warning", IN_REWARD, "PPO: use_kl_in_reward True, use_kl_loss False", GUIDE, ppo),
    Rule(
        "L-04",
        "info",
        "algorithm.kl_ctrl.kl_coef",
        "a KL coefficient needs its switch",
        f"{ASCEND}; {TUTORIAL}",
        coefficient_without_effect,
    ),
    Rule("L-05", "warning", KL_LOSS, "KL in the reward or in the loss", MODELARTS, kl_twice),
    Rule("L-08", "warning", MANAGER, "reward manager: dapo for DAPO, else naive", GUIDE, manager),
    Rule(
        "L-10",
        "error",
        f"{ROLLOUT}.n",
        "algorithms of groups need n > 1 (GRPO 64, DAPO 16)",
        f"{ASCEND}; {GUIDE}",
        group_size,
    ),
    Rule(
        "L-46",
        "info",
        f"{ACTOR}.kl_loss_coef",
        "kl_loss_coef starts at 0.001; more means less exploration",
        f"{GUIDE}; {BLOG}",
        kl_size,
    ),
    Rule("L-47", "info", f"{ACTOR}.kl_loss_type", "kl_loss_type low_var_kl", MODELARTS, kl_type),
    Rule("L-48", "info", f"{ACTOR}.entropy_coeff", "entropy_coeff 0", MODELARTS, entropy),
)
