"""Checks a run before it starts and before devices are rented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rewardkit.isolate.loading import LOAD_TIMEOUT_SECONDS
from rewardkit.launch.findings import LaunchFinding, sort_by_severity
from rewardkit.launch.plan import Plan
from rewardkit.launch.preflight.environment import check_environment
from rewardkit.launch.preflight.file_probe import probe_files
from rewardkit.launch.preflight.files import check_files, files_on_this_machine
from rewardkit.launch.preflight.report import PreflightReport
from rewardkit.launch.preflight.reward import check_reward
from rewardkit.launch.preflight.verl import check_with_verl
from rewardkit.launch.rules import check_rules
from rewardkit.launch.rules.facts import RunFacts, read_facts

__all__ = ["PreflightReport", "check_before_rehearsal", "preflight"]


def preflight(
    plan: Plan,
    *,
    load_seconds: float = LOAD_TIMEOUT_SECONDS,
    on_step: Callable[[str], object] = lambda _: None,
) -> PreflightReport:
    """Check a plan: the files, the rules, the reward, verl's own validation, this machine.

    Args:
        plan: the run.
        load_seconds: timeout for importing the scorer's file.
        on_step: called with what is checked now.
    """
    report = PreflightReport()
    report.findings.extend(_missing(plan))
    on_step("reading the files")
    check_files(plan, report, _row_counter(on_step))
    report.findings.extend(check_rules(plan, _run_facts(plan, report)))
    on_step(f"importing and trying {plan.recipe.reward.scorer}")
    loads = check_reward(plan, report, load_seconds)
    on_step(f"composing the configuration with verl {plan.verl}")
    check_with_verl(plan, report, load_seconds if loads else None)
    on_step("checking this machine")
    check_environment(plan, report)
    return replace(report, findings=sort_by_severity(report.findings))


def _row_counter(on_step: Callable[[str], object]) -> Callable[[int], object]:
    rows = 0

    def count(n: int) -> None:
        nonlocal rows
        rows += n
        on_step(f"reading the files: {rows:,} rows")

    return count


def _missing(plan: Plan) -> Iterator[LaunchFinding]:
    for key in plan.missing:
        fix = "Put its value in the recipe, or pass it after `--`."
        yield LaunchFinding("error", "missing", key, "is ??? in the recipe.", fix)


def check_before_rehearsal(
    plan: Plan, *, load_seconds: float = LOAD_TIMEOUT_SECONDS
) -> PreflightReport:
    """Check the columns and prompts of the files on this machine, and the reward; it takes seconds.

    Args:
        plan: the run.
        load_seconds: timeout for importing the scorer's file.
    """
    report = PreflightReport()
    probe_files(plan, report)
    report.files.extend(files_on_this_machine(plan))
    check_reward(plan, report, load_seconds)
    return replace(report, findings=sort_by_severity(report.findings))


def _run_facts(plan: Plan, report: PreflightReport) -> RunFacts:
    """Return the known facts about the model, the devices and the files."""
    train, val = report.files_of("train"), report.files_of("val")
    lengths = [file.longest_tokens for file in train if file.longest_tokens is not None]
    return replace(
        read_facts(plan),
        train_rows=sum(file.rows for file in train) or None,
        val_rows=sum(file.rows for file in val) or None,
        longest_prompt=max(lengths, default=None),
    )
