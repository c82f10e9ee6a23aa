"""The preflight of a run: run it, print its findings, and stop on errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from rewardkit.cli.shared.chinese import localized
from rewardkit.cli.shared.console import activity, echo, print_item, prints_to_stderr, warn
from rewardkit.redact import process_redactor

if TYPE_CHECKING:
    from rewardkit.launch.findings import LaunchFinding
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.preflight import PreflightReport


def run_preflight(plan: Plan, load_seconds: float) -> PreflightReport:
    """Run the preflight of a plan, with progress on stderr."""
    from rewardkit.launch.preflight import preflight

    with prints_to_stderr(), activity(f"checking {plan.recipe.name}") as on_step:
        return preflight(plan, load_seconds=load_seconds, on_step=on_step)


def run_rehearsal_check(plan: Plan, load_seconds: float) -> PreflightReport:
    """Check the prompts and the scorer of a plan, with progress on stderr."""
    from rewardkit.launch.preflight import check_before_rehearsal

    with prints_to_stderr(), activity(f"checking the rows and the scorer of {plan.recipe.name}"):
        return check_before_rehearsal(plan, load_seconds=load_seconds)


def print_preflight(result: PreflightReport, *, err: bool, subject: str = "preflight") -> None:
    """Print one line per finding, the worst first; then the checks that were not possible.

    Args:
        result: the findings.
        err: whether to print to stderr.
        subject: what was checked, before the number of findings: `preflight` or `rows and scorer`.
    """
    for finding in result.findings:
        source = f" [{source_text(finding.source)}]" if finding.source else ""
        line = f"{localized(finding.severity):<7} {finding.rule:<9} {_text(finding)}{source}"
        print_item(process_redactor().text(line), err=err)
    for line in result.unchecked:
        print_item(localized(process_redactor().text(f"not checked: {line}")), err=err)
    counts = [
        f"{n} {kind}{'s' if n != 1 and kind != 'info' else ''}"
        for kind in ("error", "warning", "info")
        if (n := sum(finding.severity == kind for finding in result.findings))
    ]
    if missing := sum(finding.severity == "machine" for finding in result.findings):
        counts.append(f"{missing} about this machine")
    counts = counts or ["nothing found"]
    if result.unchecked:
        counts.append(f"{len(result.unchecked)} not checked")
    echo(f"{subject}: {', '.join(counts)}", err=err)


def source_text(source: str) -> str:
    """Return the guides, posts and code from which a rule comes, in the language of the command."""
    return localized("; ").join(map(localized, source.split("; ")))


def _text(finding: LaunchFinding) -> str:
    """Return a finding's key, text and fix."""
    text, fix = localized(finding.text), localized(finding.fix)
    if (text, fix) == (finding.text, finding.fix):
        return str(finding)
    return f"{finding.key}：{text}{fix}"


def stop_if_fatal(result: PreflightReport, *, strict: bool) -> None:
    """End the command with exit code 1 if the run must not start."""
    if result.is_fatal(strict=strict):
        worst = "warnings are errors with --strict"
        if result.is_fatal(strict=False):
            is_of_recipe = result.is_fatal(strict=False, on_this_machine=False)
            worst = "errors" if is_of_recipe else "findings about this machine"
        warn(f"error: not started: {worst} above. Fix them, or start anyway with --no-check.")
        raise typer.Exit(1)
