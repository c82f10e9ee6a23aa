"""Rules of the data: how many steps it makes, and in which order it comes."""

from __future__ import annotations

from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import ASCEND, GUIDE, MODELARTS, TUTORIAL, Case, Rule
from rewardkit.launch.rules.values import count, since, word

TEST, SAVE = "trainer.test_freq", "trainer.save_freq"


def steps(plan: Plan, facts: Facts) -> Case | None:
    """Rows make steps, and saving and testing happen within them."""
    rows, batch = facts.train_rows, count(plan, "data.train_batch_size")
    if not rows or not batch:
        return None
    if rows < batch:
        text = f"{batch} is more than the {rows} rows there are: no step would be made."
        fix = f"Set data.train_batch_size={rows} or less."
        return Case(text, fix, "data.train_batch_size", "error")
    total = count(plan, "trainer.total_training_steps")
    total = total or rows // batch * (count(plan, "trainer.total_epochs") or 1)
    for key in (SAVE, TEST):
        every = count(plan, key)
        if every and every > total:
            text = f"{every} is more than the run's {total} steps: only the last one counts."
            return Case(text, f"Set {key}={max(1, total // 5)}.", key)
    return None


def balanced(plan: Plan, _: Facts) -> Case | None:
    """Devices get sequences of equal sums; from 0.9 on always."""
    key = "trainer.balance_batch"
    if plan.settings.get(key) is False and not since(plan, 0, 9, 0):
        return Case("False: devices wait for the one with the longest answers.", f"Set {key}=True.")
    return None


def shuffled(plan: Plan, _: Facts) -> Case | None:
    """Rows come in another order each epoch."""
    if plan.settings.get("data.shuffle") is False:
        return Case("False: rows come as the file has them.", "Set data.shuffle=True.")
    return None


def prompt_column(plan: Plan, _: Facts) -> Case | None:
    """The column of the prompts; verl's own datasets have prompt."""
    key = word(plan, "data.prompt_key")
    if key and key != "prompt":
        return Case(f"{key}; verl's datasets have prompt.", "Set data.prompt_key=prompt.")
    return None


RULES = (
    Rule("L-68", "info", SAVE, "steps = rows // batch x epochs", TUTORIAL, steps),
    Rule("L-70", "info", "trainer.balance_batch", "balance_batch True", ASCEND, balanced),
    Rule("L-73", "info", "data.shuffle", "shuffle True", MODELARTS, shuffled),
    Rule("L-74", "info", "data.prompt_key", "prompt_key prompt", GUIDE, prompt_column),
)
