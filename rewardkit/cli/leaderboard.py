"""`rewardkit leaderboard`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import print_json, print_table, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import Overwrite

if TYPE_CHECKING:
    from rewardkit.evaluate.leaderboard.leaderboard import Leaderboard

EXAMPLES = examples(
    "rewardkit leaderboard runs/base runs/step_100 runs/step_200",
    "rewardkit leaderboard before=runs/a.jsonl after=runs/b.jsonl --figure pass@8",
    "rewardkit leaderboard runs/* --html board.html",
    "rewardkit leaderboard runs/* --format markdown > board.md",
)


class Format(str, Enum):
    """How the table is printed."""

    table = "table"
    markdown = "markdown"
    json = "json"


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RUN...", help="Result files of eval, or folders of them, as of --suite."
        ),
    ],
    figure: Annotated[str, typer.Option(help="mean@n, pass@K or maj@K.")] = "mean@n",
    output: Annotated[Format, typer.Option("--format", help="Of what is printed.")] = Format.table,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the leaderboard as an HTML page."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Put evaluated runs side by side: one row a run, one column a data source.

    Cells have 95 % intervals over questions. The best of a column is bold; a tilde marks runs whose
    difference to it, question by question, may be chance (paired t, p of 0.05 or more; not
    corrected for the number of runs).
    """
    from rewardkit.evaluate.leaderboard.leaderboard import build_leaderboard, parse_runs
    from rewardkit.evaluate.leaderboard.render import (
        require_new_page,
        to_markdown,
        write_leaderboard_page,
    )
    from rewardkit.evaluate.results import read_results

    named = parse_runs(runs)
    if html:
        require_new_page(html, overwrite=overwrite)
    with progress("reading results") as advance:
        read = []
        for name, files in named:
            read.append(read_results(name, files))
            advance(1)
    found = build_leaderboard(read, figure)
    if as_json or output is Format.json:
        print_json(found.summary())
    elif output is Format.markdown:
        typer.echo(to_markdown(found))
    else:
        _print(found)
    for note in found.notes:
        warn(note)
    if html:
        write_leaderboard_page(found, html, overwrite=overwrite)


def _print(found: Leaderboard) -> None:
    from rewardkit.evaluate.leaderboard.render import column_names, leaderboard_title, row_cells

    rows = [[row.run.name, *row_cells(found, row)] for row in found.rows]
    print_table(("run", *column_names(found)), rows, title=leaderboard_title(found))
    typer.echo("in brackets: 95 % over questions; * best, ~ the difference to it may be chance.")
