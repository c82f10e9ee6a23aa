"""`rewardkit compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared.console import print_json, print_table, printable, progress, warn
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import (
    HtmlFile,
    JsonFlag,
    Overwrite,
    SecondsPerRow,
    scorer_options,
)
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.responses.compare.comparison import CompareReport

EXAMPLES = examples(
    "rewardkit compare responses.jsonl --scorer gsm8k --scorer my_reward.py:compute_score",
    "rewardkit compare dump.jsonl --scorer gsm8k --scorer gsm8k --set-b method=robust --html c.html",
    "rewardkit compare responses.jsonl --scorer math_dapo --scorer math --export changed.jsonl",
)

#: Causes that are printed; the page and the JSON have all of them.
CAUSES = 12


def command(
    files: Annotated[
        list[str],
        typer.Argument(help="jsonl (.gz, .zst) or parquet files, folders, patterns; - for stdin."),
    ],
    scorers: Annotated[
        list[str],
        typer.Option("--scorer", help="A scorer's name or file.py:function; twice: A, then B."),
    ],
    set_a: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of A. Repeatable."),
    ] = None,
    set_b: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An option of B. Repeatable."),
    ] = None,
    response_key: Annotated[str | None, typer.Option(help="The field with the response.")] = None,
    gold_key: Annotated[str | None, typer.Option(help="The field with the gold.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="A jsonl to write: each changed verdict as a test case.")
    ] = None,
    html: HtmlFile = None,
    seconds_per_row: SecondsPerRow = 60.0,
    overwrite: Overwrite = False,
    as_json: JsonFlag = False,
) -> None:
    """Judge the same responses with two scorers and say where and why they disagree.

    Samples on which a scorer raises, ends its process or takes too long are counted, and no part
    of agreement and means. A scorer of yours runs in a process of its own. Whether one
    scorer is laxer than the other, or chance made it look so, is McNemar's exact test.
    """
    from rewardkit.output import require_absent, require_not_input
    from rewardkit.responses.compare.comparison import compare_files
    from rewardkit.scorers.isolated import open_scorer

    if len(scorers) != 2:
        raise UsageError(f"--scorer is given {len(scorers)} times; name two scorers, A and B.")
    if html:
        require_absent(html, overwrite=overwrite)
        for file in files:
            require_not_input(html, Path(file))
    options = [scorer_options(settings) for settings in (set_a, set_b)]
    if scorers[0] == scorers[1] and options[0] == options[1]:
        warn("A and B are one scorer with the same options: they can only agree.")
    names = [
        " ".join([s, *(given or ())]) for s, given in zip(scorers, (set_a, set_b), strict=True)
    ]
    with (
        open_scorer(scorers[0], options[0], seconds_per_row) as a,
        open_scorer(scorers[1], options[1], seconds_per_row) as b,
        progress(f"comparing on {', '.join(files)[:60]}") as advance,
    ):
        report = compare_files(
            files,
            (names[0], a),
            (names[1], b),
            response_key=response_key,
            gold_key=gold_key,
            export=export,
            overwrite=overwrite,
            progress=advance,
        )
    _warn(report)
    if html:
        _write_html(report, html, overwrite=overwrite)
    if as_json:
        print_json(report.summary())
    else:
        _print(report)
    if not report.judged:
        raise typer.Exit(1)


def _warn(report: CompareReport) -> None:
    for line in report.unread_examples:
        warn(f"{line.where}: not judged: {line.reason}")
    if report.unread > len(report.unread_examples):
        warn(f"... and {report.unread - len(report.unread_examples):,} more")
    for letter, side in (("A", report.a), ("B", report.b)):
        for name, times in side.raised.most_common():
            warn(f"{letter} {name} on {times:,} samples, first on {side.first[name]}")


def _write_html(report: CompareReport, out: Path, *, overwrite: bool) -> None:
    from rewardkit.pages.html import write_html
    from rewardkit.responses.compare.page import compare_page

    write_html(compare_page(report), out, overwrite=overwrite)


def _print(report: CompareReport) -> None:
    from rewardkit.responses.compare.page import SCORER_COLUMNS, agreement, scorer_rows

    right = {place: f"{n:,} ({n / max(report.judged, 1):.1%})" for place, n in report.right.items()}
    typer.echo(printable(f"{report.name}: {report.judged:,} samples judged by both"))
    print_table(
        ("", "B right", "B wrong"),
        (
            (name, right.get((a, True), "0"), right.get((a, False), "0"))
            for name, a in (("A right", True), ("A wrong", False))
        ),
    )
    typer.echo(agreement(report))
    print_table(SCORER_COLUMNS, scorer_rows(report))
    if report.groups:
        _print_causes(report)


def _print_causes(report: CompareReport) -> None:
    from rewardkit.responses.compare.page import CAUSE_COLUMNS, cause_rows

    rows = list(cause_rows(report))
    shown = f", the first {CAUSES} of {len(rows):,} causes" if len(rows) > CAUSES else ""
    print_table(
        CAUSE_COLUMNS, (cells for cells, _ in rows[:CAUSES]), title=f"where they disagree{shown}"
    )
    for cells, found in rows[:CAUSES]:
        first = found[0]
        answers = f"gold {first.gold[:60]!r}, A {first.pred_a[:60]!r}, B {first.pred_b[:60]!r}"
        ending = " ".join(first.ending.split())[-80:]
        typer.echo(printable(f"{cells[0]}x, as {first.where}: {answers}: …{ending}"))
