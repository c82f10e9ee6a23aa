"""Rules of sampling: in training and in validation."""

from __future__ import annotations

import re

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import CODE, GUIDE, Case, Rule
from rewardkit.launch.rules.values import (
    ROLLOUT,
    count,
    flag,
    number,
    only_validates,
    validates,
    whole,
    word,
)

VAL = f"{ROLLOUT}.val_kwargs"

#: Models that think before they answer: at temperature 0 they repeat themselves.
_THINKS = re.compile(r"qwq|thinking|deepseek-r1|qwen3(?!.*(instruct|base|coder))", re.IGNORECASE)

#: Below so many rows one answer each says little.
FEW_ROWS = 100


def sampling(plan: Plan, _: Facts) -> Case | None:
    """Training samples from the policy as it is."""
    for name, wanted in (("temperature", 1.0), ("top_p", 1.0)):
        key = f"{ROLLOUT}.{name}"
        value = number(plan, key)
        if value is not None and value != wanted:
            text = f"{value:g}: the answers are not those of the policy that is trained."
            return Case(text, f"Set {key}={wanted}.", key)
    key, top = f"{ROLLOUT}.top_k", whole(plan, f"{ROLLOUT}.top_k")
    best = 0 if word(plan, f"{ROLLOUT}.name") == "hf" else -1
    if top is not None and top not in {best, -1}:
        text = f"{top}: the answers are not those of the policy that is trained."
        return Case(text, f"Set {key}={best}.", key)
    return None


def validation_sampling(plan: Plan, facts: Facts) -> Case | None:
    """Thinking models validate at a temperature, small sets several times."""
    sample, heat = flag(plan, f"{VAL}.do_sample"), number(plan, f"{VAL}.temperature")
    train = number(plan, f"{ROLLOUT}.temperature")
    if sample and train is not None and train <= 0:
        text = f"True, and {ROLLOUT}.temperature is {train:g}: verl ends."
        return Case(text, f"Set {ROLLOUT}.temperature=1.0.", f"{VAL}.do_sample", "error")
    if not validates(plan) and not only_validates(plan):
        return None
    if sample and heat is not None and heat <= 0:
        fix = f"Set {VAL}.temperature=1.0 and {VAL}.top_p=0.7."
        return Case("0, and do_sample is True: nothing is sampled.", fix)
    if sample is False and _THINKS.search(plan.recipe.model):
        text = "greedy, and a thinking model repeats itself at temperature 0."
        return Case(
            text, f"Set {VAL}.do_sample=True, {VAL}.temperature=1.0 and {VAL}.top_p=0.7.", VAL
        )
    rows, times = facts.val_rows, count(plan, f"{VAL}.n")
    if rows and times == 1 and rows < FEW_ROWS:
        text = f"1 answer to each of {rows} rows: the figure jumps by {100 / rows:.1f} points."
        return Case(
            text, f"Set {VAL}.n={max(4, 2000 // rows)} and {VAL}.do_sample=True.", f"{VAL}.n"
        )
    return None


RULES = (
    Rule("L-26", "warning", ROLLOUT, "train at temperature 1, top_p 1, top_k -1", GUIDE, sampling),
    Rule(
        "L-27",
        "warning",
        f"{VAL}.temperature",
        "validation: thinking models sample, small sets several times",
        f"{GUIDE}; {CODE}",
        validation_sampling,
    ),
)
