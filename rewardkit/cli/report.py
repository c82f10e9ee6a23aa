"""`rewardkit report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.completion import complete_scorers
from rewardkit.cli.shared.console import as_share, print_json, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import argument, option

if TYPE_CHECKING:
    from rewardkit.responses.report.page import WrittenReport

EXAMPLES = examples(
    "rewardkit report scored.jsonl --html report.html",
    "rewardkit report rollouts/ --html report.html",
    "rewardkit report responses.jsonl --scorer math --html report.html",
)


#: Reasons that are printed for skipped rows.
MAX_REASONS = 5


def command(
    files: Annotated[
        list[str],
        argument("jsonl or parquet files, folders or glob patterns.", metavar="SCORED..."),
    ],
    html: Annotated[Path, option("Output HTML page.", metavar="FILE")],
    scorer: Annotated[
        str,
        option(
            "Scorer for rows without a score; auto uses the scorer of each row.",
            autocompletion=complete_scorers,
        ),
    ] = "auto",
    settings: opt.Settings = None,
    response_key: opt.ResponseKey = None,
    gold_key: opt.GoldKey = None,
    right_score: opt.RightScore = None,
    max_responses: Annotated[
        int, option("Maximum number of responses in the page's list.", min=100, max=200_000)
    ] = 50_000,
    seconds_per_row: opt.SecondsPerRow = 60.0,
    load_seconds: opt.LoadSeconds = 60.0,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Show scored responses as a page to filter and read.

    Reads the output of `rewardkit score --out` and verl's dumps; rows without a score are scored.
    The page works offline. Its figures count all responses; beyond --max-responses its list is an
    even sample with responses of every status.
    """
    from rewardkit.responses.report.page import write_report
    from rewardkit.responses.tally import bad_gold_note

    with progress("reading responses") as advance:
        written = write_report(
            files,
            html,
            scorer=scorer,
            options=opt.scorer_options(settings),
            response_key=response_key,
            gold_key=gold_key,
            max_responses=max_responses,
            seconds=seconds_per_row,
            load_seconds=load_seconds,
            right_score=right_score,
            announce=warn,
            overwrite=overwrite,
            progress=advance,
        )
    for reason, n in written.totals.unread.most_common(MAX_REASONS):
        rows = "row" if n == 1 else "rows"
        warn(f"{n:,} {rows} skipped: {reason} (first {written.totals.first[reason]})")
    if (more := len(written.totals.unread) - MAX_REASONS) > 0:
        warn(f"... and rows for {more:,} more {'reason' if more == 1 else 'reasons'}")
    total = written.totals.total
    if note := bad_gold_note(total.bad_golds, total.n):
        warn(note)
    if as_json:
        print_json(written.summary())
    else:
        typer.echo(_summary(written, html))
    if total.n == total.bad_golds:
        raise typer.Exit(1)


def _summary(written: WrittenReport, html: Path) -> str:
    total = written.totals.total
    listed = "" if written.listed == total.n else f" {written.listed:,} of them are listed."
    size = (
        f"{written.size / 1e6:,.1f} MB" if written.size >= 1e6 else f"{written.size / 1e3:,.0f} kB"
    )
    if total.accuracy is None:
        figure = f"{total.n:,} responses, mean score {total.score_sum / total.n:.4f}"
    else:
        figure = f"{as_share(total.correct, total.n)} of {total.n:,} responses correct"
    return f"{html}: {figure}, {size}.{listed}"
