"""`rewardkit leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.console import print_json, print_table, printable, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import argument, option

if TYPE_CHECKING:
    from rewardkit.evaluate.leaderboard import Leaderboard

EXAMPLES = examples(
    "rewardkit leaderboard runs/base runs/step_100 runs/step_200",
    "rewardkit leaderboard before=runs/a.jsonl after=runs/b.jsonl --figure pass@8",
    "rewardkit leaderboard runs/* --html board.html",
    "rewardkit leaderboard runs/* --format markdown > board.md",
)


def command(
    runs: Annotated[
        list[str],
        argument(
            "Result files of rewardkit eval, or folders of them, as written with --suite.",
            metavar="[NAME=]RUN...",
        ),
    ],
    figure: Annotated[str, option("Metric to compare: mean@n, pass@K or maj@K.")] = "mean@n",
    output: Annotated[
        Literal["table", "markdown", "json"], option("Output format.", "--format")
    ] = "table",
    html: Annotated[
        Path | None, option("Also write the leaderboard as an HTML page.", metavar="FILE")
    ] = None,
    as_json: Annotated[
        bool, option("Print the result as JSON, as --format json does.", "--json")
    ] = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare evaluated runs in one table.

    The table has one row per run and one column per data source, with 95 % intervals over
    questions. The best run of a column is bold; a tilde marks runs whose difference from it may be
    chance (paired t-test over questions, p of 0.05 or more; not corrected for the number of runs).
    """
    from rewardkit.evaluate.leaderboard import build_leaderboard, parse_runs
    from rewardkit.evaluate.leaderboard_page import (
        require_new_page,
        to_markdown,
        write_leaderboard_page,
    )
    from rewardkit.evaluate.results import read_results

    files_by_run = parse_runs(runs)
    if html:
        require_new_page(html, overwrite=overwrite)
    with progress("reading results") as advance:
        results = []
        for name, files in files_by_run:
            results.append(read_results(name, files))
            advance(1)
    table = build_leaderboard(results, figure)
    if as_json or output == "json":
        print_json(table.summary())
    elif output == "markdown":
        typer.echo(to_markdown(table))
    else:
        _print(table)
    for note in table.notes:
        warn(note)
    if html:
        write_leaderboard_page(table, html, overwrite=overwrite)


def _print(table: Leaderboard) -> None:
    from rewardkit.evaluate.leaderboard_page import column_names, leaderboard_title, row_cells

    rows = [[row.run.name, *row_cells(table, row)] for row in table.rows]
    print_table(("run", *column_names(table)), rows, title=leaderboard_title(table))
    if best := table.best():
        typer.echo(printable(best.sentence()))
    typer.echo(
        "in brackets: 95 % interval over questions; * best; ~ the difference from it may be chance."
    )
