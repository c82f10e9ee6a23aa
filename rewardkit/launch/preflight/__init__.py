"""Checks a run before it starts and before devices are rented."""

from collections.abc import Callable
from dataclasses import replace

from rewardkit.finding import sort_by_severity
from rewardkit.isolate.function import LOAD_TIMEOUT_SECONDS
from rewardkit.launch.findings import PreflightReport
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.files import check_files
from rewardkit.launch.preflight.reward import check_reward, check_with_verl
from rewardkit.launch.rules import check_rules
from rewardkit.launch.rules.facts import read_facts, read_machine

__all__ = ["PreflightReport", "preflight"]


def preflight(
    plan: Plan,
    *,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    on_step: Callable[[str], object] = lambda _: None,
    rehearse: bool = False,
) -> PreflightReport:
    """Check a plan: the files, the rules, the reward, verl's own validation, this machine.

    `load_seconds` is the timeout for importing the scorer's file; `on_step` gets what is checked now. Before a
    rehearsal only the columns and prompts of the files and the reward are checked, which takes seconds.
    """
    report, rows = PreflightReport(), 0

    def count_rows(number: int) -> None:
        nonlocal rows
        rows += number
        on_step(f"reading the files: {rows:,} rows")

    for key in plan.missing:
        fix = "Put its value in the recipe, or pass it after `--`."
        report.add("error", "missing", key, "is ??? in the recipe.", fix)
    on_step("reading the files")
    fits = check_files(plan, report, None if rehearse else count_rows)
    on_step(f"importing and trying {plan.recipe.reward.scorer}")
    reward = check_reward(plan, report, load_seconds)
    if not rehearse:
        on_step(f"composing the configuration with verl {plan.verl}")
        check_with_verl(plan, report, None if reward is None else load_seconds)
        on_step("checking this machine")
        facts = replace(
            read_facts(plan),
            train_rows=sum(file.rows for file in report.files if file.role == "train") or None,
            val_rows=sum(file.rows for file in report.files if file.role == "val") or None,
            fits_prompts=fits,
            machine=read_machine(plan, report.unchecked),
            **(reward or {}),
        )
        report.findings.extend(check_rules(plan, facts))
    return replace(report, findings=sort_by_severity(report.findings))
