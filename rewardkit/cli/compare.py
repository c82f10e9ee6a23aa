"""`rewardkit compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.shared import options as opt
from rewardkit.cli.shared.completion import complete_scorers
from rewardkit.cli.shared.console import (
    print_json,
    print_table,
    print_wrapped,
    printable,
    progress,
    warn,
)
from rewardkit.cli.shared.help import examples
from rewardkit.cli.shared.options import option
from rewardkit.cli.shared.user_code import open_scorer_with_status
from rewardkit.errors import UsageError

if TYPE_CHECKING:
    from rewardkit.responses.compare_scorers import CompareReport

EXAMPLES = examples(
    "rewardkit compare responses.jsonl --scorer gsm8k --scorer my_reward.py:compute_score",
    "rewardkit compare dump.jsonl --scorer gsm8k --scorer gsm8k --set-b method=robust --html c.html",
    "rewardkit compare responses.jsonl --scorer math_dapo --scorer math --export changed.jsonl",
)

#: Causes that are printed; the page and the JSON have all.
MAX_CAUSES = 12


def command(
    files: opt.ResponseFiles,
    scorers: Annotated[
        list[str],
        option(
            "Scorer name or file.py:function. Use it twice: A, then B.",
            "--scorer",
            autocompletion=complete_scorers,
        ),
    ],
    set_a: Annotated[
        list[str] | None, option("Set an option of scorer A. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    set_b: Annotated[
        list[str] | None, option("Set an option of scorer B. Repeatable.", metavar="NAME=VALUE")
    ] = None,
    response_key: opt.ResponseKey = None,
    gold_key: opt.GoldKey = None,
    right_score: opt.RightScore = None,
    export: Annotated[
        Path | None, option("Output jsonl with each changed verdict as a test case.")
    ] = None,
    html: opt.HtmlFile = None,
    seconds_per_row: opt.SecondsPerRow = 60.0,
    load_seconds: opt.LoadSeconds = 60.0,
    overwrite: opt.Overwrite = False,
    as_json: opt.JsonFlag = False,
) -> None:
    """Compare two scorers on the same responses.

    Prints where and why the scorers disagree. Samples on which a scorer raises, exits or times out
    are counted separately and do not enter agreement or means. Custom scorers run in their own
    process. McNemar's exact test says whether one scorer accepts significantly more responses.
    """
    from rewardkit.responses.compare_scorers import compare_files

    if len(scorers) != 2:
        raise UsageError(f"--scorer is set {len(scorers)} times; name two scorers, A and B.")
    opt.require_html_path(html, overwrite=overwrite, inputs=map(Path, files), export=export)
    options = [opt.scorer_options(settings) for settings in (set_a, set_b)]
    if scorers[0] == scorers[1] and options[0] == options[1]:
        warn("A and B are the same scorer with the same options: they cannot disagree.")
    names = [
        " ".join([s, *(settings or ())])
        for s, settings in zip(scorers, (set_a, set_b), strict=True)
    ]
    with (
        open_scorer_with_status(scorers[0], options[0], seconds_per_row, load_seconds) as a,
        open_scorer_with_status(scorers[1], options[1], seconds_per_row, load_seconds) as b,
        progress(f"comparing on {', '.join(files)[:60]}") as advance,
    ):
        report = compare_files(
            files,
            (names[0], a),
            (names[1], b),
            response_key=response_key,
            gold_key=gold_key,
            right_score=right_score,
            announce=warn,
            export=export,
            overwrite=overwrite,
            progress=advance,
        )
    _warn(report)
    if html:
        from rewardkit.pages.html import write_html
        from rewardkit.responses.compare_scorers import compare_page

        write_html(compare_page(report), html, overwrite=overwrite)
    if as_json:
        print_json(report.summary())
    else:
        _print(report)
    if report.judged <= min(report.a.bad_golds, report.b.bad_golds):
        raise typer.Exit(1)


def _warn(report: CompareReport) -> None:
    from rewardkit.responses.tally import bad_gold_note

    for line in report.unread_examples:
        warn(f"{line.where}: skipped: {line.reason}")
    if report.unread > len(report.unread_examples):
        warn(f"... and {report.unread - len(report.unread_examples):,} more rows")
    for letter, side in (("A", report.a), ("B", report.b)):
        for name, times in side.raised.most_common():
            warn(f"{letter} {name} on {times:,} samples, first on {side.first[name]}")
        if note := bad_gold_note(side.bad_golds, len(side.nanoseconds)):
            warn(f"{letter}: {note}")


def _print(report: CompareReport) -> None:
    from rewardkit.responses.compare_scorers import SCORER_COLUMNS, agreement, scorer_rows

    counts = {
        place: f"{n:,} ({n / max(report.judged, 1):.1%})" for place, n in report.outcomes.items()
    }
    if not report.judged:
        typer.echo(printable(f"{report.name}: no sample was judged by both"))
        return
    typer.echo(printable(f"{report.name}: {report.judged:,} samples judged by both"))
    print_table(
        ("", "B correct", "B wrong"),
        (
            (name, counts.get((a, True), "0"), counts.get((a, False), "0"))
            for name, a in (("A correct", True), ("A wrong", False))
        ),
    )
    print_table(SCORER_COLUMNS, scorer_rows(report))
    if report.groups:
        _print_causes(report)
    print_wrapped(agreement(report))


def _print_causes(report: CompareReport) -> None:
    from rewardkit.responses.compare_scorers import CAUSE_COLUMNS, cause_rows

    rows = list(cause_rows(report))
    shown = f", the first {MAX_CAUSES} of {len(rows):,} causes" if len(rows) > MAX_CAUSES else ""
    print_table(
        CAUSE_COLUMNS,
        (cells for cells, _ in rows[:MAX_CAUSES]),
        title=f"where they disagree{shown}",
    )
    for cells, samples in rows[:MAX_CAUSES]:
        first = samples[0]
        answers = f"gold {first.gold[:60]!r}, A {first.pred_a[:60]!r}, B {first.pred_b[:60]!r}"
        ending = " ".join(first.ending.split())[-80:]
        print_wrapped(f"{cells[0]}x, for example {first.where}: {answers}: …{ending}")
