"""Rules of the batches: prompts of a step, of an update, rows of a device."""

from __future__ import annotations

from math import gcd

from rewardkit.launch.findings import Severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.rules.facts import Facts
from rewardkit.launch.rules.rule import CODE, GUIDE, TUTORIAL, Case, Rule
from rewardkit.launch.rules.values import (
    ACTOR,
    ROLLOUT,
    count,
    data_parallel,
    devices,
    is_dynamic,
    is_megatron,
    since,
)

BATCH = "data.train_batch_size"
MINI = f"{ACTOR}.ppo_mini_batch_size"
MICRO = f"{ACTOR}.ppo_micro_batch_size_per_gpu"

#: Updates with one rollout's answers, in the sources at most.
UPDATES = 16


def mini_batch(plan: Plan, _: Facts) -> Case | None:
    """A mini batch is part of the batch, and made of whole micro batches."""
    batch, mini, micro = count(plan, BATCH), count(plan, MINI), count(plan, MICRO)
    if not batch or not mini:
        return None
    if mini > batch:
        kind: Severity = "warning" if is_dynamic(plan) else "error"
        text = f"{mini} is more than {BATCH}={batch}."
        return Case(text, f"Set {MINI}={batch} or less.", severity=kind)
    answers, copies = count(plan, f"{ROLLOUT}.n"), data_parallel(plan)
    if is_dynamic(plan) or not micro or not answers or not copies:
        return None
    rows = mini * answers // copies
    if rows and rows % micro:
        text = f"{micro} does not divide the {rows} rows that a device has of a mini batch "
        text += f"({mini} x n {answers} / {copies})."
        return Case(text, f"Set {MICRO}={gcd(rows, micro)}.", MICRO)
    return None


def divisible(plan: Plan, _: Facts) -> Case | None:
    """Batches divide over the devices."""
    batch, answers, all_of_them = count(plan, BATCH), count(plan, f"{ROLLOUT}.n"), devices(plan)
    copies, mini = data_parallel(plan), count(plan, MINI)
    if not batch or not answers or not all_of_them or not copies:
        return None
    micro = count(plan, MICRO) or 1
    unit = copies * micro if is_megatron(plan) else all_of_them
    if batch * answers % unit and not (is_dynamic(plan) and since(plan, 0, 6, 0)):
        what = f"{copies} copies x micro batch {micro}" if is_megatron(plan) else "the devices"
        text = f"{batch} x n {answers} = {batch * answers} does not divide by {unit} ({what})."
        return Case(text, f"Set {BATCH}={_multiple(batch, answers, unit)}.")
    if mini and mini * answers % copies:
        kind: Severity = "error" if since(plan, 0, 8, 0) else "warning"
        text = f"{mini} x n {answers} = {mini * answers} does not divide by {copies} copies."
        return Case(text, f"Set {MINI}={_multiple(mini, answers, copies)}.", MINI, kind)
    return _log_prob(plan, batch * answers // copies)


def _log_prob(plan: Plan, rows: int) -> Case | None:
    """From 0.8 on the log-probs' micro batches must divide too."""
    key = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"
    micro = count(plan, key)
    if is_dynamic(plan) or not since(plan, 0, 8, 0) or not micro or not rows % micro:
        return None
    text = f"{micro} does not divide the {rows} rows that a device has of a batch."
    return Case(text, f"Set {key}={gcd(rows, micro)}.", key)


def _multiple(size: int, answers: int, unit: int) -> int:
    """The next larger size whose rows divide by a unit."""
    step = unit // gcd(unit, answers)
    return -(-size // step) * step


def updates(plan: Plan, _: Facts) -> Case | None:
    """Updates of one rollout: more than one is off policy."""
    batch, mini = count(plan, BATCH), count(plan, MINI)
    if not batch or not mini or mini > batch:
        return None
    if batch % mini:
        text = (
            f"{mini} does not divide {BATCH}={batch}: the last update has {batch % mini} prompts."
        )
        return Case(text, f"Set {MINI}={gcd(batch, mini)}.", MINI, "warning")
    if batch // mini > UPDATES:
        text = f"{batch // mini} updates a step: the later ones learn from an older policy."
        return Case(text, f"Set {MINI}={max(1, batch // UPDATES)} or more.", MINI)
    return None


RULES = (
    Rule(
        "L-18",
        "error",
        MINI,
        "mini batch <= batch, and a multiple of micro batches on each device",
        f"{GUIDE}; {CODE}",
        mini_batch,
    ),
    Rule("L-19", "error", BATCH, "batches x n divide over the devices", CODE, divisible),
    Rule("L-20", "info", MINI, "updates per step = batch / mini batch", TUTORIAL, updates),
)
