"""What `train`, `check RECIPE` and `merge --recipe` share: read a request, check its plan, print findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from rewardkit.cli.shared.console import activity, echo, print_item, prints_to_stderr, warn
from rewardkit.redact import process_redactor

if TYPE_CHECKING:
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.preflight import PreflightReport
    from rewardkit.launch.request import LaunchRequest


def read_launch_request(
    recipe: str,
    fields: list[str] | None,
    overrides: list[str] | None = None,
    verl_version: str | None = None,
) -> LaunchRequest:
    """Read the launch request of a recipe; later messages hide its secrets."""
    from rewardkit.launch.request import read_request
    from rewardkit.launch.verl.releases import LATEST, installed_verl

    if verl_version is None and installed_verl() is None:
        warn(f"verl is not installed: planning for verl {LATEST} (see --verl-version).")
    request = read_request(
        recipe, fields=fields or (), overrides=overrides or (), verl=verl_version
    )
    process_redactor().learn(request.secrets)
    return request


def run_preflight(plan: Plan, load_seconds: float, *, rehearse: bool = False) -> PreflightReport:
    """Check a plan, with progress on stderr; only its rows and its scorer before a rehearsal."""
    from rewardkit.launch.preflight import preflight

    subject = f"the rows and the scorer of {plan.recipe.name}" if rehearse else plan.recipe.name
    with prints_to_stderr(), activity(f"checking {subject}") as on_step:
        return preflight(plan, load_seconds=load_seconds, on_step=on_step, rehearse=rehearse)


def print_preflight(
    result: PreflightReport, *, err: bool, lang: str, subject: str = "preflight"
) -> None:
    """Print one line per finding, the worst first; then the checks that were not possible.

    Args:
        result: the findings.
        err: whether to print to stderr.
        lang: `zh` to print also what each rule means, in Chinese.
        subject: what was checked, before the number of findings: `preflight` or `rows and scorer`.
    """
    from rewardkit.glossary.lookup import chinese_rules

    hide = process_redactor().text
    for finding in result.findings:
        source = f" [{finding.source}]" if finding.source else ""
        print_item(hide(f"{finding.severity:<7} {finding.rule:<9} {finding}{source}"), err=err)
        if lang == "zh" and (meaning := chinese_rules().get(finding.rule)):
            print_item(f"        {meaning}", err=err)
    for line in result.unchecked:
        print_item(hide(f"not checked: {line}"), err=err)
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


def stop_if_fatal(result: PreflightReport, *, strict: bool) -> None:
    """End the command with exit code 1 if the run must not start."""
    if result.is_fatal(strict=strict):
        worst = "warnings are errors with --strict"
        if result.is_fatal(strict=False):
            is_of_recipe = result.is_fatal(strict=False, on_this_machine=False)
            worst = "errors" if is_of_recipe else "findings about this machine"
        warn(f"error: not started: {worst} above. Fix them, or start anyway with --no-check.")
        raise typer.Exit(1)
