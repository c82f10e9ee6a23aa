"""`rewardkit audit`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import print_json, print_table, progress
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import HtmlFile, JsonFlag, Overwrite, Settings, scorer_options

if TYPE_CHECKING:
    from rewardkit.audit.model import AuditReport

EXAMPLES = examples(
    "rewardkit audit my_reward.py:compute_score --data train.parquet --html audit.html",
    "rewardkit audit my_reward.py:compute_score --fail-on medium",
    "rewardkit audit gsm8k --set method=robust",
)


class SeverityName(str, Enum):
    """The severities, for --fail-on."""

    high = "high"
    medium = "medium"
    low = "low"


def command(
    scorer: Annotated[str, typer.Argument(help="A scorer's name, or file.py:function.")],
    data: Annotated[
        Path | None, typer.Option(help="A verl parquet to take rows from; else packaged rows.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows to attack with.")] = 64,
    seed: Annotated[int, typer.Option(help="Of the draw of the rows.")] = 0,
    settings: Settings = None,
    fail_on: Annotated[
        SeverityName | None, typer.Option(help="Exit 1 if something so severe, or worse, is found.")
    ] = None,
    html: HtmlFile = None,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Attack a scorer as a policy would: wrong answers that pay, right ones that get nothing.

    The scorer runs in a process of its own and may hang, exit or raise: that is reported, too.
    Grades: A nothing worse than low, B up to three of medium severity, C more of them, D one of
    high severity, F more than three, or the gold gets nothing, or a plainly wrong answer is paid.
    """
    from rewardkit.audit.run import audit
    from rewardkit.output import require_absent

    if html:
        require_absent(html, overwrite=overwrite)
    with progress(f"attacking {scorer}") as advance:
        report = audit(
            scorer,
            data=data,
            rows=rows,
            seed=seed,
            options=scorer_options(settings),
            progress=advance,
        )
    if html:
        _write_html(report, html, overwrite=overwrite)
    if as_json:
        print_json(vars(report))
    else:
        _print(report)
    if fail_on and report.at_least(fail_on.value):
        raise typer.Exit(1)


def _write_html(report: AuditReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.audit.page import audit_page
    from rewardkit.pages.html import write_html

    write_html(audit_page(report), out, overwrite=overwrite)


def _print(report: AuditReport) -> None:
    if report.failed:
        print_table(
            ("attack", "kind", "severity", "tried", "failed", "an example"),
            (
                (f.attack, f.kind, f.severity, f"{f.tried:,}", f"{f.failed:,}", f.failures[0].text)
                for f in report.failed
            ),
        )
    for reading in report.readings:
        typer.echo(
            f"{reading.data_source or 'rows'}: {reading.rows} rows as {reading.form('...')!r}; "
            f"the gold gets {reading.right:g}, a wrong answer {reading.wrong:g}"
        )
    if report.left_out:
        typer.echo(f"packaged rows that it does not judge: {', '.join(report.left_out)}")
    typer.echo(
        f"{report.scorer}: grade {report.grade}; {len(report.failed)} of {len(report.findings)} "
        f"attacks went through in {report.calls:,} calls "
        f"(median {report.median_ms:.2f} ms, longest {report.worst_ms:,.0f} ms)"
    )
