"""Printing what was found before a run starts; shared by `check RECIPE` and `train`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from rewardkit.cli.shared.console import printable, progress, redactor, warn

if TYPE_CHECKING:
    from rewardkit.launch.plan import Plan
    from rewardkit.launch.preflight import Preflight


def look(plan: Plan) -> Preflight:
    """Run the preflight of a plan, with progress."""
    from rewardkit.launch.preflight import preflight

    with progress(f"checking {plan.recipe.name}") as advance:
        return preflight(plan, progress=advance)


def say(found: Preflight, *, err: bool) -> None:
    """The findings, the worst first, a line each; then what was not looked at."""
    for finding in found.findings:
        source = f" [{finding.source}]" if finding.source else ""
        line = f"{finding.severity:<7} {finding.rule:<9} {finding}{source}"
        typer.echo(printable(redactor().text(line)), err=err)
    for line in found.unchecked:
        typer.echo(printable(redactor().text(f"not checked: {line}")), err=err)
    counts = [
        f"{n} {kind}{'s' if n != 1 and kind != 'info' else ''}"
        for kind in ("error", "warning", "info")
        if (n := sum(finding.severity == kind for finding in found.findings))
    ]
    typer.echo(f"preflight: {', '.join(counts) or 'nothing found'}", err=err)


def stop_if_fatal(found: Preflight, *, strict: bool) -> None:
    """End with exit code 1 where the run must not start."""
    if found.fatal(strict=strict):
        worst = "errors" if found.fatal(strict=False) else "warnings are errors with --strict"
        warn(f"error: not started: {worst} above. Mend them, or see --no-check.")
        raise typer.Exit(1)
