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
    from rewardkit.evaluate.leaderboard.leaderboard import Board

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
        typer.Option(
            metavar="FILE", help="Also write a page, and beside it one with each run's responses."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Put evaluated runs side by side: one row a run, one column a data source.

    Cells have 95 % intervals over questions. The best of a column is bold; a tilde marks runs whose
    difference to it, question by question, may be chance (paired t, p of 0.05 or more; not
    corrected for the number of runs).
    """
    from rewardkit.evaluate.leaderboard.leaderboard import board, runs_of
    from rewardkit.evaluate.leaderboard.render import refuse_existing_page, to_markdown, write_page
    from rewardkit.evaluate.results import read_results

    named = runs_of(runs)
    if html:
        refuse_existing_page(html, overwrite=overwrite)
    with progress("reading results") as advance:
        read = []
        for name, files in named:
            read.append(read_results(name, files))
            advance(1)
    found = board(read, figure)
    if as_json or output is Format.json:
        print_json(found.summary())
    elif output is Format.markdown:
        typer.echo(to_markdown(found))
    else:
        _print(found)
    for note in found.notes:
        warn(note)
    if html:
        with progress("writing responses") as advance:
            write_page(found, html, overwrite=overwrite, progress=advance)


def _print(found: Board) -> None:
    from rewardkit.evaluate.leaderboard.render import cells, head, title

    rows = [[row.run.name, *cells(found, row)] for row in found.rows]
    print_table(("run", *head(found)), rows, title=title(found))
    typer.echo("in brackets: 95 % over questions; * best, ~ the difference to it may be chance.")
