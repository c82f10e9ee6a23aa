"""`rewardkit audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, print_wrapped, progress, warn
from rewardkit.cli.shared.options import examples, option
from rewardkit.table import Table

if TYPE_CHECKING:
    from rewardkit.audit.model import AuditReport

EXAMPLES = examples(
    "rewardkit audit my_reward.py:compute_score --data train.parquet --html audit.html",
    "rewardkit audit my_reward.py:compute_score --fail-on medium",
    "rewardkit audit gsm8k --set method=robust",
    "rewardkit audit judge --set base_url=http://127.0.0.1:8000/v1 --set model=judge",
)


def command(
    scorer: opt.ScorerArgument,
    data: Annotated[
        Path | None,
        option("verl parquet to sample rows from; the default is rows that come with rewardkit."),
    ] = None,
    rows: Annotated[
        int | None,
        option(
            "Number of rows to build attacks from; 64, or 4 of programs or for a scorer that asks a model.",
            min=1,
        ),
    ] = None,
    seed: Annotated[int, option("Random seed for sampling rows.")] = 0,
    settings: opt.Settings = None,
    load_seconds: opt.LoadSeconds = 60.0,
    fail_on: Annotated[
        Literal["high", "medium", "low"] | None,
        option("Exit with 1 on findings of this severity or worse."),
    ] = None,
    html: opt.HtmlFile = None,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Attack a scorer to find wrong answers that it rewards.

    Correct answers that it does not reward are found too. The scorer runs in its own process; if
    it hangs, exits or raises, that is reported as a finding. Grades: A no finding above low
    severity, B up to three of medium severity, C more of them, D one to three of high severity,
    F more of them, or the gold is not rewarded, or a plainly wrong answer is. A judge is attacked
    with texts that are known to fool models; the number of requests is printed first.
    """
    from rewardkit.audit.run import audit

    opt.require_html_path(html, overwrite=overwrite, inputs=[data] if data else [], scorer=scorer)
    with progress(f"attacking {scorer}") as advance:
        report = audit(
            scorer,
            data=data,
            rows=rows,
            seed=seed,
            options=opt.scorer_options(settings),
            load_seconds=load_seconds,
            progress=advance,
            announce=warn,
        )
    if html:
        from rewardkit.audit.page import audit_page
        from rewardkit.pages.html import write_html

        write_html(audit_page(report), html, overwrite=overwrite)
    if as_json:
        print_json(vars(report))
    else:
        _print(report)
    if fail_on and report.at_least(fail_on):
        raise typer.Exit(1)


def _print(report: AuditReport) -> None:
    from rewardkit.audit.model import GRADE_MEANINGS
    from rewardkit.text import row_count

    if report.failed:
        attacks = [
            (f.attack, f.kind, f.severity, f"{f.tried:,}", f"{f.failed:,}", f.failures[0].text)
            for f in report.failed
        ]
        columns = ("attack", "kind", "severity", "tried", "failed", "example")
        print_table(Table(columns, attacks, wrap={"example"}, below={"example"}))
        print_wrapped(
            "hole: a wrong answer is rewarded; miss: a right answer is not; conduct: how it behaves."
        )
    for profile in report.readings:
        rows, form = row_count(profile.rows), repr(profile.form("..."))
        print_wrapped(f"{profile.data_source or 'rows'}: {rows} as {form}; {profile.scores}")
    if report.left_out:
        print_wrapped(
            f"built-in rows that the scorer does not support: {', '.join(report.left_out)}"
        )
    typer.echo(
        f"{report.calls:,} calls, median {report.median_ms:.2f} ms, longest {report.worst_ms:,.0f} ms"
    )
    if report.omissions:
        print_wrapped(report.omissions)
    print_wrapped(GRADE_MEANINGS[report.grade])
    typer.echo(
        f"{report.scorer}: grade {report.grade}, "
        f"{len(report.failed)} of {len(report.findings)} attacks succeeded"
    )
